//! Where a link in a message's Markdown may lead: to the web, to a mailbox, or to a file beside the document.
//!
//! Whatever else is written there is no link. The list is of what is allowed and is compared with the text as it stands, so
//! that no escape, entity or blank can spell a scheme that is not on it.

/// Whether the text behind `](` is a target that may stay, on this line.
pub(super) fn of_link(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '\t']);
    match text.strip_prefix('<') {
        // What begins like a tag will not be one.
        Some(inside) => inside
            .split_once('>')
            .is_some_and(|(inside, _)| !inside.starts_with(is_letter) && is_allowed(inside)),
        None => {
            let end = text.find(|c: char| c.is_whitespace() || c == ')');
            match end {
                Some(0) => text.starts_with(')'),
                end => is_allowed(&text[..end.unwrap_or(text.len())]),
            }
        }
    }
}

/// Whether the text behind `]:` defines no target, or one that may stay.
pub(super) fn of_definition(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '\t']);
    if text.starts_with('<') {
        return false;
    }
    let (target, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    // Behind a target there is nothing but a title.
    let is_more = !matches!(
        rest.trim_start().chars().next(),
        None | Some('"' | '\'' | '(')
    );
    // A target may stand on the next line.
    is_more || !target.is_empty() && is_allowed(target)
}

/// The schemes of links.
const SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

fn is_allowed(target: &str) -> bool {
    let begins = |scheme: &str| {
        let head = target.get(..scheme.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(scheme))
    };
    SCHEMES.into_iter().any(begins) || is_relative(target)
}

/// Whether it has no scheme and names no host, however it is read.
fn is_relative(target: &str) -> bool {
    let end = target.find(['/', '?', '#']).unwrap_or(target.len());
    let (first, rest) = target.split_at(end);
    let sly = |c: char| matches!(c, ':' | '&' | '\\' | '<' | '`') || c.is_whitespace();
    let is_host =
        first.is_empty() && rest.starts_with('/') && rest[1..].starts_with(['/', '\\', '&']);
    !target.is_empty() && !first.contains(sly) && !is_host
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_web_mailboxes_and_files_beside_it() {
        for target in [
            "https://e.example/a?b=c&d=e#f",
            "HTTP://e.example",
            "mailto:a@e.example",
            "docs/build.md",
            "./a.md#x:y",
            "../a b.md",
            "#part",
            "?page=2",
            "/srv/a.txt",
            "größe.md",
            "a%20b.md",
        ] {
            let bare = target.replace(' ', "%20");
            assert!(of_link(&format!("{bare})")), "{target}");
            assert!(of_link(&format!(" {bare} \"title\")")), "{target}");
            assert!(of_definition(&format!(" {bare}")), "{target}");
        }
        assert!(of_link("<./a b.md>)") && of_link(")"));
    }

    #[test]
    fn whatever_runs_is_no_target_however_it_is_spelled() {
        for target in [
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "&#106;avascript:alert(1)",
            "&#x6A;avascript:alert(1)",
            "javascript&colon;alert(1)",
            "java&Tab;script&colon;x",
            "java&NewLine;script:x",
            "\\javascript:alert(1)",
            "javascript\\:alert(1)",
            "vbscript:x",
            "data:text/html,x",
            "file:///etc/passwd",
            "view-source:javascript:x",
            "x:y",
            "//e.example/x",
            "/\\e.example",
            "/&#47;e.example",
            "\\\\e.example\\x",
            "&sol;&sol;e.example",
            "https:javascript",
        ] {
            assert!(!of_link(&format!("{target})")), "{target}");
            assert!(!of_link(&format!("\t {target} 'title')")), "{target}");
            assert!(!of_link(&format!("<{target}>)")), "{target}");
            assert!(!of_definition(&format!(" {target}")), "{target}");
            assert!(!of_definition(&format!(" {target} \"title\"")), "{target}");
            assert!(!of_definition(&format!(" <{target}>")), "{target}");
        }
        // On the next line, or behind a code span.
        assert!(!of_link("") && !of_link("  ") && !of_definition("") && !of_definition(" "));
        assert!(!of_link("<java\tscript:x>)") && !of_link("<never closed"));
    }

    #[test]
    fn words_behind_a_bracket_are_words() {
        assert!(of_definition(" Note: not a target"));
        assert!(of_definition(" 1"));
    }
}
