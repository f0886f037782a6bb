use std::path::PathBuf;
use std::time::Duration;

use super::PipSettings;

/// The sections that count for a download, the weakest first. Variables are stronger than all.
const SECTIONS: [&str; 3] = ["global", "install", "download"];

/// What `pip config list` says, and what the environment does.
pub(super) fn settings(
    listed: &str,
    variables: impl Iterator<Item = (String, String)>,
) -> PipSettings {
    let mut all = Vec::new();
    // A line is section.key='value'. Variables are listed too, and taken from where they are instead.
    for line in listed.lines() {
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        let Some((section, key)) = name.rsplit_once('.') else {
            continue;
        };
        let rank = SECTIONS.iter().position(|known| *known == section);
        if let (Some(rank), Some(value)) = (rank, unquoted(value)) {
            all.push((rank, key.to_owned(), value));
        }
    }
    for (name, value) in variables {
        if let Some(key) = name.strip_prefix("PIP_") {
            all.push((SECTIONS.len(), key.to_owned(), value));
        }
    }
    all.sort_by_key(|(rank, ..)| *rank);
    let mut read = Read::default();
    for (_, key, value) in all {
        let key = key.to_ascii_lowercase().replace('_', "-");
        read.set(&key, value.trim());
    }
    read.done()
}

/// What was set so far.
#[derive(Default)]
struct Read {
    index: Option<String>,
    extra: Vec<String>,
    no_index: bool,
    rest: PipSettings,
}

impl Read {
    fn set(&mut self, key: &str, value: &str) {
        // As pip has it: empty is not set.
        if value.is_empty() {
            return;
        }
        let list = || value.split_whitespace().map(str::to_owned).collect();
        match key {
            "index-url" => self.index = Some(value.to_owned()),
            "extra-index-url" => self.extra = list(),
            "no-index" => {
                let yes = ["1", "true", "yes", "on", "y", "t"];
                self.no_index = yes.contains(&value.to_ascii_lowercase().as_str());
            }
            "find-links" => self.rest.find_links = list(),
            "cert" => self.rest.cert = Some(at_home(value)),
            "proxy" => self.rest.proxy = Some(value.to_owned()),
            "timeout" | "default-timeout" => {
                if let Ok(seconds @ 0.1..=86_400.0) = value.parse::<f64>() {
                    self.rest.timeout = Duration::from_secs_f64(seconds);
                }
            }
            "retries" => {
                if let Ok(retries) = value.parse() {
                    self.rest.retries = retries;
                }
            }
            _ => {}
        }
    }

    fn done(mut self) -> PipSettings {
        if let Some(index) = self.index {
            self.rest.indexes = vec![index];
        }
        self.rest.indexes.append(&mut self.extra);
        if self.no_index {
            self.rest.indexes.clear();
        }
        self.rest
    }
}

/// A path that may begin with the user's home.
pub(in super::super) fn at_home(path: &str) -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// A text as Python writes it for programmers. None where it is not one.
fn unquoted(text: &str) -> Option<String> {
    let text = text.trim();
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut out = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let digits = match chars.next()? {
            'n' => {
                out.push('\n');
                continue;
            }
            'r' => {
                out.push('\r');
                continue;
            }
            't' => {
                out.push('\t');
                continue;
            }
            'x' => 2,
            'u' => 4,
            'U' => 8,
            other => {
                out.push(other);
                continue;
            }
        };
        let code: String = chars.by_ref().take(digits).collect();
        out.push(char::from_u32(u32::from_str_radix(&code, 16).ok()?)?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(listed: &str, variables: &[(&str, &str)]) -> PipSettings {
        let variables = variables.iter();
        settings(
            listed,
            variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        )
    }

    #[test]
    fn a_variable_is_stronger_than_a_section_and_a_narrow_section_than_a_wide_one() {
        let listed = "\
:env:.index-url='https://never.example/simple'
download.index-url='https://download.example/simple'
global.extra-index-url='https://a.example/simple\\nhttps://b.example/simple'
global.index-url='https://global.example/simple'
global.timeout='60'
install.index-url='https://install.example/simple'
list.index-url='https://other.example/simple'
";
        let read = of(listed, &[("PIP_DEFAULT_TIMEOUT", "7"), ("HOME", "/h")]);
        let wanted = ["download", "a", "b"].map(|host| format!("https://{host}.example/simple"));
        assert_eq!(read.indexes, wanted);
        assert_eq!(read.timeout, Duration::from_secs(7));
        let read = of(listed, &[("PIP_INDEX_URL", "http://own.example/x")]);
        assert_eq!(read.indexes[0], "http://own.example/x");
        assert_eq!(read.indexes.len(), 3);
    }

    #[test]
    fn without_settings_it_is_as_pip_is() {
        assert_eq!(of("", &[]), PipSettings::default());
        let empty = [
            ("PIP_INDEX_URL", ""),
            ("PIP_TIMEOUT", "soon"),
            ("PIP_RETRIES", "-1"),
        ];
        assert_eq!(
            of("nonsense\n=\n.='\nglobal.cert=5\n", &empty),
            PipSettings::default()
        );
    }

    #[test]
    fn every_setting_counts() {
        let read = of(
            "global.no-index='false'\n",
            &[
                ("PIP_NO_INDEX", "1"),
                ("PIP_FIND_LINKS", "/wheels  file:///more\n./here"),
                ("PIP_CERT", "/ca.pem"),
                ("PIP_PROXY", "http://me:secret@proxy.example:3128"),
                ("PIP_RETRIES", "2"),
            ],
        );
        assert!(read.indexes.is_empty());
        assert_eq!(read.find_links, ["/wheels", "file:///more", "./here"]);
        assert_eq!(read.cert, Some(PathBuf::from("/ca.pem")));
        assert_eq!(
            read.proxy.as_deref(),
            Some("http://me:secret@proxy.example:3128")
        );
        assert_eq!(read.retries, 2);
        assert!(!format!("{read:?}").contains("secret"));
    }

    #[test]
    fn texts_are_read_as_python_writes_them() {
        for (text, wanted) in [
            (r#"'a b'"#, Some("a b")),
            (r#""it's""#, Some("it's")),
            (r#"'\\x\'\x41\u00e4\U0001f600\n'"#, Some("\\x'Aä😀\n")),
            (r#"'"#, None),
            (r#"'\"#, None),
            (r#"'\x4'"#, Some("\u{4}")),
            (r#"'\xzz'"#, None),
            ("bare", None),
            ("", None),
        ] {
            assert_eq!(unquoted(text).as_deref(), wanted, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_pip_says_breaks_the_reader(
            listed in "([a-z:]{0,6}\\.?[a-z-]{0,12}=?['\"]?.{0,20}['\"]?\n){0,6}",
            value in ".{0,20}",
        ) {
            let read = of(&listed, &[("PIP_TIMEOUT", &value), ("PIP_FIND_LINKS", &value)]);
            prop_assert!(read.timeout > Duration::ZERO);
        }
    }
}
