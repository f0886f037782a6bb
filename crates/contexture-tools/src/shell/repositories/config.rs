//! A repository's configuration without what git would run or read because of it.
//!
//! Known settings that do neither are kept, everything else is dropped: git has hundreds of settings, and new ones come.
//! Only lines that can be read in one way are kept, so git never sees a setting that was not looked at.

use std::fmt::Write;

/// A configuration that had to be changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Cleaned {
    /// What is left of it.
    pub text: String,
    /// The settings that were dropped.
    pub dropped: Vec<String>,
}

/// What a setting's value may be.
#[derive(Clone, Copy)]
enum Value {
    Any,
    /// An address that names no program.
    Address,
    /// A folder that commands may write to.
    Folder,
    OneOf(&'static [&'static str]),
}
use Value::{Address, Any, Folder, OneOf};

/// A setting, and what its value may be.
type Setting = (&'static str, Value);

/// Settings that are kept, by section, for those with a name of their own and those without. `*` is every setting.
const KEPT: &[(&str, bool, &[Setting])] = &[
    (
        "core",
        false,
        &[
            ("abbrev", Any),
            ("autocrlf", Any),
            ("bare", Any),
            ("bigfilethreshold", Any),
            ("checkstat", Any),
            ("commentchar", Any),
            ("commitgraph", Any),
            ("compression", Any),
            ("eol", Any),
            ("filemode", Any),
            ("ignorecase", Any),
            ("logallrefupdates", Any),
            ("longpaths", Any),
            ("precomposeunicode", Any),
            ("quotepath", Any),
            ("repositoryformatversion", Any),
            ("safecrlf", Any),
            ("sharedrepository", Any),
            ("sparsecheckout", Any),
            ("sparsecheckoutcone", Any),
            ("symlinks", Any),
            ("trustctime", Any),
            ("untrackedcache", Any),
            ("worktree", Folder),
        ],
    ),
    (
        "extensions",
        false,
        &[
            ("compatobjectformat", Any),
            ("noop", Any),
            ("objectformat", Any),
            ("preciousobjects", Any),
            ("refstorage", Any),
            ("relativeworktrees", Any),
            ("worktreeconfig", Any),
        ],
    ),
    (
        "user",
        false,
        &[("email", Any), ("name", Any), ("useconfigonly", Any)],
    ),
    ("author", false, &[("email", Any), ("name", Any)]),
    ("committer", false, &[("email", Any), ("name", Any)]),
    ("init", false, &[("defaultbranch", Any)]),
    (
        "remote",
        true,
        &[
            ("fetch", Any),
            ("mirror", Any),
            ("prune", Any),
            ("prunetags", Any),
            ("push", Any),
            ("pushurl", Address),
            ("skipdefaultupdate", Any),
            ("skipfetchall", Any),
            ("tagopt", Any),
            ("url", Address),
        ],
    ),
    (
        "branch",
        true,
        &[
            ("description", Any),
            ("merge", Any),
            ("pushremote", Address),
            ("rebase", Any),
            ("remote", Address),
        ],
    ),
    (
        "branch",
        false,
        &[
            ("autosetupmerge", Any),
            ("autosetuprebase", Any),
            ("sort", Any),
        ],
    ),
    (
        "submodule",
        true,
        &[
            ("active", Any),
            ("branch", Any),
            ("fetchrecursesubmodules", Any),
            ("ignore", Any),
            ("update", OneOf(&["checkout", "merge", "none", "rebase"])),
            ("url", Address),
        ],
    ),
    ("submodule", false, &[("active", Any), ("recurse", Any)]),
    ("advice", false, &[("*", Any)]),
    ("color", false, &[("*", Any)]),
    ("color", true, &[("*", Any)]),
    ("column", false, &[("*", Any)]),
    (
        "diff",
        false,
        &[
            ("algorithm", Any),
            ("mnemonicprefix", Any),
            ("renames", Any),
        ],
    ),
    ("fetch", false, &[("prune", Any), ("prunetags", Any)]),
    ("gc", false, &[("*", Any)]),
    ("i18n", false, &[("*", Any)]),
    ("index", false, &[("*", Any)]),
    ("lfs", false, &[("repositoryformatversion", Any)]),
    ("log", false, &[("date", Any), ("decorate", Any)]),
    (
        "merge",
        false,
        &[("conflictstyle", Any), ("ff", Any), ("renames", Any)],
    ),
    ("pack", false, &[("*", Any)]),
    ("pull", false, &[("ff", Any), ("rebase", Any)]),
    (
        "push",
        false,
        &[
            ("autosetupremote", Any),
            ("default", Any),
            ("followtags", Any),
        ],
    ),
    (
        "rebase",
        false,
        &[("autosquash", Any), ("autostash", Any), ("updaterefs", Any)],
    ),
    ("rerere", false, &[("*", Any)]),
    ("status", false, &[("*", Any)]),
    ("tag", false, &[("sort", Any)]),
];

/// Takes out what git would run or read elsewhere because of this configuration, or says that there is nothing.
/// `inside` says of a path, as git would take it, whether commands may write there.
pub fn clean(bytes: &[u8], inside: impl Fn(&str) -> bool) -> Option<Cleaned> {
    let mut text = String::new();
    let mut dropped = Vec::new();
    let mut section = None;
    let mut place = String::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = std::str::from_utf8(line).ok().filter(|line| is_plain(line));
        let Some(line) = line else {
            // It may have begun a section.
            section = None;
            place.clear();
            dropped.push("a line that cannot be read".to_owned());
            continue;
        };
        let kept = match parse(line) {
            Line::Nothing => true,
            Line::Section { name, of } => {
                place = match of {
                    Some(of) => format!("{name}.{of}"),
                    None => name.clone(),
                };
                let known = KEPT
                    .iter()
                    .find(|kept| kept.0 == name && kept.1 == of.is_some());
                section = known.map(|kept| kept.2);
                // Without its settings it says nothing.
                section.is_some()
            }
            Line::Setting { name, value } => {
                let known = section.and_then(|kept| {
                    let fits = |known: &str| known == "*" || known == name;
                    kept.iter().find(|(known, _)| fits(known))
                });
                let kept = known.is_some_and(|(_, may)| may.allows(value, &inside));
                if !kept {
                    let dot = if place.is_empty() { "" } else { "." };
                    dropped.push(format!("{place}{dot}{name}"));
                }
                kept
            }
            Line::Unclear => {
                section = None;
                place.clear();
                dropped.push("a line that cannot be read".to_owned());
                false
            }
        };
        if kept {
            _ = writeln!(text, "{line}");
        }
    }
    dropped.dedup();
    (!dropped.is_empty()).then_some(Cleaned { text, dropped })
}

enum Line<'a> {
    /// Blank, or a comment.
    Nothing,
    Section {
        name: String,
        of: Option<&'a str>,
    },
    Setting {
        name: String,
        value: &'a str,
    },
    Unclear,
}

/// Whether a line has nothing that would make git read it as another, or on in the next.
fn is_plain(line: &str) -> bool {
    line.chars().all(|c| c == '\t' || !c.is_control()) && !line.starts_with('\u{feff}')
}

fn parse(line: &str) -> Line<'_> {
    let line = line.trim_matches([' ', '\t']);
    if line.is_empty() || line.starts_with(['#', ';']) {
        return Line::Nothing;
    }
    let name = |text: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let named = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain);
        named.then(|| text.to_ascii_lowercase())
    };
    let read = || {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.strip_suffix(']')?;
            let Some((section, of)) = header.split_once(' ') else {
                return Some(Line::Section {
                    name: name(header)?,
                    of: None,
                });
            };
            let of = of
                .trim_start_matches(' ')
                .strip_prefix('"')?
                .strip_suffix('"')?;
            let of = Some(of).filter(|of| !of.contains(['"', '\\']));
            return Some(Line::Section {
                name: name(section)?,
                of: Some(of?),
            });
        }
        let Some((setting, value)) = line.split_once('=') else {
            return Some(Line::Setting {
                name: name(line)?,
                value: "true",
            });
        };
        let value = value.trim_start_matches([' ', '\t']);
        let quoted = value
            .strip_prefix('"')
            .and_then(|value| value.strip_suffix('"'));
        let special: &[char] = if quoted.is_some() {
            &['"', '\\']
        } else {
            &['"', '\\', '#', ';']
        };
        let value = Some(quoted.unwrap_or(value)).filter(|value| !value.contains(special))?;
        let setting = name(setting.trim_end_matches([' ', '\t']))?;
        Some(Line::Setting {
            name: setting,
            value,
        })
    };
    read().unwrap_or(Line::Unclear)
}

impl Value {
    fn allows(self, value: &str, inside: &impl Fn(&str) -> bool) -> bool {
        match self {
            Any => true,
            // `ext::` and the like are programs; what begins with a dash is an option.
            Address => !value.contains("::") && !value.trim_start().starts_with('-'),
            Folder => inside(value),
            OneOf(known) => known.contains(&value),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn left(text: &str) -> (String, Vec<String>) {
        let inside = |path: &str| !path.starts_with('/');
        match clean(text.as_bytes(), inside) {
            Some(cleaned) => (cleaned.text, cleaned.dropped),
            None => (text.to_owned(), Vec::new()),
        }
    }

    #[test]
    fn what_git_writes_itself_stays() {
        let usual = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
            [remote \"origin\"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
            [branch \"feature/x\"]\n\tremote = origin\n\tmerge = refs/heads/feature/x\n\
            [user]\n\tname = A B\n\temail = \"a#b@example.org\"\n# a comment \\\n\
            [core]\n\tworktree = ../../../sub\n[submodule \"sub\"]\n\tactive = true\n\turl = ../sub.git\n";
        assert_eq!(clean(usual.as_bytes(), |path| !path.starts_with('/')), None);
    }

    #[test]
    fn what_runs_programs_or_reads_elsewhere_goes() {
        for (hostile, dropped) in [
            ("[core]\n\tfsmonitor = touch x\n", "core.fsmonitor"),
            ("[core]\n\thooksPath = ../evil\n", "core.hookspath"),
            ("[core]\n\tsshCommand = x\n", "core.sshcommand"),
            ("[CORE]\n\tPAGER = x\n", "core.pager"),
            ("[core]\n\tworktree = /home\n", "core.worktree"),
            ("[include]\n\tpath = ../evil\n", "include.path"),
            (
                "[includeIf \"gitdir:/\"]\n\tpath = e\n",
                "includeif.gitdir:/.path",
            ),
            ("[filter \"x\"]\n\tclean = x\n", "filter.x.clean"),
            ("[filter \"x\"]\n\tprocess = x\n", "filter.x.process"),
            ("[diff \"x\"]\n\ttextconv = x\n", "diff.x.textconv"),
            ("[diff]\n\texternal = x\n", "diff.external"),
            ("[merge \"x\"]\n\tdriver = x\n", "merge.x.driver"),
            ("[gpg]\n\tprogram = x\n", "gpg.program"),
            ("[gpg \"ssh\"]\n\tprogram = x\n", "gpg.ssh.program"),
            ("[alias]\n\tst = !x\n", "alias.st"),
            ("[credential]\n\thelper = !x\n", "credential.helper"),
            ("[remote \"o\"]\n\turl = ext::sh -c x\n", "remote.o.url"),
            ("[remote \"o\"]\n\turl = \"ext::sh -c x\"\n", "remote.o.url"),
            ("[remote \"o\"]\n\turl = --upload-pack=x\n", "remote.o.url"),
            ("[remote \"o\"]\n\tuploadpack = x\n", "remote.o.uploadpack"),
            ("[remote \"o\"]\n\tvcs = x\n", "remote.o.vcs"),
            ("[branch \"b\"]\n\tremote = ext::x\n", "branch.b.remote"),
            ("[submodule \"s\"]\n\tupdate = !x\n", "submodule.s.update"),
            ("[sequence]\n\teditor = x\n", "sequence.editor"),
            ("[some]\n\tday = x\n", "some.day"),
        ] {
            let (text, gone) = left(hostile);
            assert_eq!(gone, [dropped], "{hostile}");
            assert!(!text.contains('='), "{text}");
        }
    }

    /// Each could be read by git as something else than by us.
    #[test]
    fn only_plain_lines_stay() {
        for hostile in [
            "[core] fsmonitor = x\n",
            "[core]fsmonitor=x\n",
            "[core]\n\tabbrev = 7\\\n\tfsmonitor = x\n",
            "[core]\n\tabbrev = \"7\n\tfsmonitor = x\n",
            "[core]\n\tabbrev = 7\r\n\tfsmonitor = x\r\n",
            "[user]\n\tname = \"a\\n[core]\\nfsmonitor = x\"\n",
            "[remote \"a\\\"]\n[core \"]\n\tfsmonitor = x\n",
            "\u{feff}[core]\n\tfsmonitor = x\n",
            "[core.x]\n\tfsmonitor = x\n",
            "[core]\n\u{b}fsmonitor = x\n",
            "[core]\n\tworktree = ..#/sub\n",
        ] {
            let (text, gone) = left(hostile);
            assert!(!gone.is_empty(), "{hostile:?}");
            assert!(
                !text.contains("fsmonitor") && !text.contains('#'),
                "{hostile:?}: {text:?}"
            );
            assert_eq!(clean(text.as_bytes(), |_| false), None, "{hostile:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_do_not_hide_anything() {
        let cleaned = clean(b"[core]\n\xff\n\tfsmonitor = x\n[user]\n\tname = a", |_| {
            true
        })
        .unwrap();
        assert_eq!(cleaned.text, "[core]\n[user]\n\tname = a\n");
    }
}
