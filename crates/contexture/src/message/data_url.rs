//! Pictures and files by their address.

use std::borrow::Cow;

/// A picture that providers can show.
pub(super) enum Picture<'a> {
    Url(&'a str),
    Data {
        media_type: &'static str,
        /// In base64.
        data: Cow<'a, str>,
    },
}

impl<'a> Picture<'a> {
    pub fn at(url: &'a str) -> Option<Self> {
        let lower = url.get(..8).unwrap_or(url).to_ascii_lowercase();
        if lower.starts_with("http://") || lower.starts_with("https://") {
            return Some(Self::Url(url));
        }
        let DataUrl { media, data } = DataUrl::parse(url)?;
        let media_type = match media.as_str() {
            "image/jpeg" | "image/jpg" => "image/jpeg",
            "image/png" => "image/png",
            "image/gif" => "image/gif",
            "image/webp" => "image/webp",
            _ => return None,
        };
        Some(Self::Data { media_type, data })
    }
}

/// A `data:` address in base64.
pub(super) struct DataUrl<'a> {
    /// The media type, in lower case and without its parameters.
    pub media: String,
    /// The data, still in base64.
    pub data: Cow<'a, str>,
}

impl<'a> DataUrl<'a> {
    pub fn parse(url: &'a str) -> Option<Self> {
        let (head, data) = url.split_once(',')?;
        let head = head.to_ascii_lowercase();
        let media = head.strip_prefix("data:")?.strip_suffix(";base64")?;
        let media = media.split(';').next().unwrap_or_default().trim();
        // Some encoders break lines.
        let data: Cow<'a, str> = if data.contains(char::is_whitespace) {
            data.split_whitespace().collect::<String>().into()
        } else {
            data.into()
        };
        let digits = data.trim_end_matches('=');
        (!digits.is_empty() && digits.bytes().all(|byte| digit(byte).is_some())).then(|| Self {
            media: media.to_owned(),
            data,
        })
    }

    /// The data as text, if it is in UTF-8.
    pub fn decode(&self) -> Option<String> {
        let digits = self.data.trim_end_matches('=');
        let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
        let (mut held, mut bits) = (0_u32, 0);
        for byte in digits.bytes() {
            held = (held & 0xFF) << 6 | digit(byte)?;
            bits += 6;
            if bits >= 8 {
                bits -= 8;
                bytes.push((held >> bits & 0xFF) as u8);
            }
        }
        String::from_utf8(bytes).ok()
    }
}

/// The six bits that a digit of base64 stands for.
fn digit(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}
