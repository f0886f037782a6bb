//! What a package index says of a project: as JSON (PEP 691), or as a page with links (PEP 503).

use std::collections::BTreeMap;

use contexture::json::{self, ReadError};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Deserialize;

use super::WeightsError;
use super::web::{Address, Web};

/// The most bytes of a page. Those of one project have a few hundred KiB at most.
const MOST: usize = 8 << 20;
/// The most memory that one may take while it is read.
const MAX_HELD_BYTES: usize = 128 << 20;
/// JSON rather than a page.
const FORMS: &str = "application/vnd.pypi.simple.v1+json, \
                     application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01";

/// Where a file can be fetched, and what is said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub address: Address,
    pub bytes: Option<u64>,
    /// In lower-case hexadecimal digits.
    pub sha256: Option<String>,
}

/// Asks a page for a file of this name; none where the page does not have it.
pub(super) async fn ask(
    web: &Web,
    page: &Address,
    file: &str,
) -> Result<Option<Link>, WeightsError> {
    let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(FORMS))]);
    let (mut response, from) = web.get(page, &headers).await?;
    let kind = response.headers().get(CONTENT_TYPE);
    let json = kind.is_some_and(|kind| kind.as_bytes().ends_with(b"json"));
    let wrong = |what: String| WeightsError::Nonsense {
        place: from.place(),
        what,
    };
    let mut body = Vec::new();
    while let Some(chunk) = web.next(&from, &mut response).await? {
        body.extend_from_slice(chunk.as_ref());
        if body.len() > MOST {
            return Err(wrong(format!("its page has more than {} MiB", MOST >> 20)));
        }
    }
    match json {
        true => in_json(&body, &from, file)
            .map_err(|error| wrong(format!("its page makes no sense: {error}"))),
        false => Ok(in_html(&String::from_utf8_lossy(&body), &from, file)),
    }
}

#[derive(Deserialize)]
struct Page {
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    filename: String,
    url: String,
    size: Option<u64>,
    #[serde(default)]
    hashes: BTreeMap<String, String>,
}

fn in_json(body: &[u8], page: &Address, file: &str) -> Result<Option<Link>, ReadError> {
    let Page { files } = json::read(body, MAX_HELD_BYTES)?;
    let found = files.into_iter().find(|known| known.filename == file);
    Ok(found.and_then(|found| {
        Some(Link {
            address: page.join(&found.url)?,
            bytes: found.size,
            sha256: found.hashes.get("sha256").and_then(|hash| hash_of(hash)),
        })
    }))
}

fn in_html(html: &str, page: &Address, file: &str) -> Option<Link> {
    let mut base = page.clone();
    for (tag, href) in hrefs(html) {
        let Some(address) = base.join(&href) else {
            continue;
        };
        if tag == "base" {
            base = address;
        } else if address.file_name() == file {
            let fragment = address.url().fragment().unwrap_or_default();
            let mut said = fragment.split('&');
            let hash = said.find_map(|part| hash_of(part.strip_prefix("sha256=")?));
            return Some(Link {
                address,
                bytes: None,
                sha256: hash,
            });
        }
    }
    None
}

/// A SHA-256; what is none counts as not given: we know the model's own.
fn hash_of(text: &str) -> Option<String> {
    let right = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    right.then(|| text.to_ascii_lowercase())
}

/// The `href` of each `a` and `base`, in their order. A tag that does not end is the page's last: looking
/// behind it would take a hostile page's length squared.
fn hrefs(html: &str) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if rest.starts_with("!--") {
            rest = rest.find("-->").map_or("", |end| &rest[end..]);
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        if name.is_empty() {
            continue;
        }
        let name = ["a", "base"]
            .into_iter()
            .find(|known| name.eq_ignore_ascii_case(known));
        rest = after;
        loop {
            match attribute(rest) {
                Next::Attribute(key, value, after) => {
                    rest = after;
                    if let Some(name) = name
                        && key.eq_ignore_ascii_case("href")
                    {
                        found.push((name, unescaped(value)));
                    }
                }
                Next::End => break,
                Next::Unclosed => return found,
            }
        }
    }
    found
}

/// What comes next in a tag.
enum Next<'a> {
    /// A name, a value, and what follows.
    Attribute(&'a str, &'a str, &'a str),
    End,
    Unclosed,
}

fn attribute(text: &str) -> Next<'_> {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
    let end = text.find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '>' | '/'));
    let Some(end) = end else {
        return Next::Unclosed;
    };
    let (key, rest) = text.split_at(end);
    let Some(value) = rest.trim_ascii_start().strip_prefix('=') else {
        return match key.is_empty() {
            true => Next::End,
            false => Next::Attribute(key, "", rest),
        };
    };
    let value = value.trim_ascii_start();
    let (value, rest) = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => match value[1..].split_once(quote) {
            Some(split) => split,
            None => return Next::Unclosed,
        },
        _ => match value.find(|c: char| c.is_ascii_whitespace() || c == '>') {
            Some(end) => value.split_at(end),
            None => return Next::Unclosed,
        },
    };
    Next::Attribute(key, value, rest)
}

/// A text without HTML's escapes, as far as addresses have them.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(10).position(|byte| byte == b';');
        let escaped = end.and_then(|end| Some((character(&rest[1..end])?, end + 1)));
        let (c, length) = escaped.unwrap_or(('&', 1));
        out.push(c);
        rest = &rest[length..];
    }
    out + rest
}

fn character(name: &str) -> Option<char> {
    let number = |digits: &str, radix| char::from_u32(u32::from_str_radix(digits, radix).ok()?);
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => match name.strip_prefix('#')?.strip_prefix(['x', 'X']) {
            Some(digits) => number(digits, 16),
            None => number(&name[1..], 10),
        },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WHEEL: &str = "a_b-1.0-py3-none-any.whl";
    const HASH: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

    fn page() -> Address {
        Address::parse("https://me:pass@index.example/simple/a-b/").unwrap()
    }

    fn html(text: &str) -> Option<(String, Option<String>)> {
        let link = in_html(text, &page(), WHEEL)?;
        Some((link.address.url().to_string(), link.sha256))
    }

    #[test]
    fn links_are_found_however_they_are_written() {
        let whole = format!("https://index.example/files/{WHEEL}");
        let at = |path: &str| format!("https://index.example{path}/{WHEEL}");
        for (text, wanted) in [
            (
                format!("<a href=\"../../files/{WHEEL}\">x</a>"),
                whole.clone(),
            ),
            (format!("<A\n class=b HREF='{whole}' >"), whole.clone()),
            (format!("<a href={whole}>"), whole.clone()),
            (
                format!("<!-- <a href='/no/{WHEEL}'> --><a href='/files/{WHEEL}'>"),
                whole.clone(),
            ),
            (
                format!("<base href='/deep/er/'><a href={WHEEL}>"),
                at("/deep/er"),
            ),
            (
                format!("<a data-x='&gt;>' href='/files/{WHEEL}'>"),
                whole.clone(),
            ),
            (
                format!("<a href='/b&amp;c&#43;&#x2b;/{WHEEL}'>"),
                at("/b&c++"),
            ),
            (
                format!("<a href='/files/a_b-2.whl'><a href='/files/{WHEEL}'>"),
                whole.clone(),
            ),
            (
                format!("<a href='file:///etc/{WHEEL}'><a href='/files/{WHEEL}'>"),
                whole.clone(),
            ),
            (
                format!("<p>1 < 2, it's so <3 \n</p><a href='/files/{WHEEL}'>"),
                whole.clone(),
            ),
            (
                format!("<a href='javascript:x/{WHEEL}'><a href='/files/{WHEEL}'>"),
                whole,
            ),
        ] {
            assert_eq!(html(&text), Some((wanted, None)), "{text}");
        }
        for text in [
            "",
            "<a href='",
            "<a href",
            "<",
            "<a href='other.whl'>",
            "<!--",
        ] {
            assert_eq!(html(text), None, "{text}");
        }
    }

    #[test]
    fn a_hash_is_read_where_it_is_one() {
        let upper = HASH.to_uppercase();
        for (fragment, wanted) in [
            (format!("#sha256={HASH}"), Some(HASH)),
            (format!("#egg=a&amp;sha256={upper}"), Some(HASH)),
            ("#sha256=12".to_owned(), None),
            ("#md5=0123".to_owned(), None),
            (String::new(), None),
        ] {
            let (_, hash) = html(&format!("<a href='{WHEEL}{fragment}'>")).unwrap();
            assert_eq!(hash.as_deref(), wanted, "{fragment}");
        }
    }

    #[test]
    fn json_says_the_same_and_the_length() {
        let body = format!(
            r#"{{"meta":{{"api-version":"1.1"}},"files":[
            {{"filename":"other","url":"x","hashes":{{}}}},
            {{"filename":"{WHEEL}","url":"f/{WHEEL}","hashes":{{"sha256":"{HASH}"}},"size":12,"yanked":false}}]}}"#
        );
        let link = in_json(body.as_bytes(), &page(), WHEEL).unwrap().unwrap();
        assert_eq!(link.bytes, Some(12));
        assert_eq!(link.sha256.as_deref(), Some(HASH));
        let wanted = format!("https://index.example/simple/a-b/f/{WHEEL}");
        assert_eq!(link.address.url().as_str(), wanted);
        assert_eq!(in_json(br#"{"files":[]}"#, &page(), WHEEL).unwrap(), None);
        assert!(in_json(b"{}", &page(), WHEEL).is_err());
        let deep = "[".repeat(100_000);
        assert!(in_json(deep.as_bytes(), &page(), WHEEL).is_err());
    }

    proptest! {
        #[test]
        fn no_page_breaks_the_reader(
            text in "(<a|<base|<!--|-->| href=|['\">&;/=#]|&amp;|&#x|sha256=|[ä\n]|a_b-1.0-py3-none-any.whl){0,40}"
        ) {
            if let Some(link) = in_html(&text, &page(), WHEEL) {
                prop_assert_eq!(link.address.file_name(), WHEEL);
            }
        }
    }
}
