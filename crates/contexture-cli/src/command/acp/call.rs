//! A tool's call as an editor shows it: what kind of work, on which files, with which change.

use std::path::{Path, PathBuf};

use agent_client_protocol::v1::schema::{
    Diff, ToolCall as Shown, ToolCallContent, ToolCallLocation, ToolKind,
};
use contexture::{ToolCall, json};
use contexture_tools::Effect;
use serde_json::{Map, Value};

/// The most characters of a title.
const TITLE: usize = 120;
/// The largest file whose text before a change is shown.
const LARGEST: u64 = 1 << 20;
/// The most files of a call that are named.
const MOST: usize = 32;

/// Arguments that name a file.
const PATHS: [&str; 6] = [
    "path",
    "file_path",
    "filePath",
    "file",
    "source",
    "destination",
];
/// Arguments that are a file's new text.
const TEXTS: [&str; 3] = ["content", "contents", "file_text"];
/// Arguments that are a piece of a file, and what stands in its place.
const PIECES: [(&str, &str); 3] = [
    ("oldText", "newText"),
    ("old_string", "new_string"),
    ("old_str", "new_str"),
];

/// A call that is about to run, with the change that it asks for.
pub fn shown(call: &ToolCall, tool: &str, effect: Option<Effect>, cwd: &Path) -> Shown {
    let about = recalled(call, tool, effect, cwd);
    if about.kind != ToolKind::Edit {
        return about;
    }
    let arguments = call.arguments_object().unwrap_or_default();
    let changes = changes(&arguments, &files(&arguments, cwd), cwd);
    about.content(changes)
}

/// A call of which files may say other things by now.
pub fn recalled(call: &ToolCall, tool: &str, effect: Option<Effect>, cwd: &Path) -> Shown {
    let arguments = call.arguments_object().unwrap_or_default();
    let kind = kind(tool, effect);
    let files = files(&arguments, cwd);
    let raw = match call.arguments.trim() {
        "" => Value::Object(Map::new()),
        _ if !arguments.is_empty() => Value::Object(arguments.clone()),
        text => json::from_text(text).unwrap_or_else(|_| Value::String(text.to_owned())),
    };
    Shown::new(call.id.clone(), title(tool, &arguments))
        .name(tool.to_owned())
        .kind(kind)
        .locations(files.into_iter().map(ToolCallLocation::new).collect())
        .raw_input(raw)
}

/// What the tool does, in a few words: a command is its own title.
pub fn title(tool: &str, arguments: &Map<String, Value>) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let about = match tool {
        "exec_shell" => text("command").map(str::to_owned),
        _ => {
            let named = PATHS.iter().chain(&["query", "name", "url", "words"]);
            let first = named.copied().find_map(text);
            first.map(|about| format!("{tool} {about}"))
        }
    };
    let line = about.unwrap_or_else(|| tool.to_owned());
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TITLE) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// The kind of work. Of other people's tools only the name says it.
pub fn kind(tool: &str, effect: Option<Effect>) -> ToolKind {
    let name = tool.rsplit(':').next().unwrap_or(tool).to_lowercase();
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let says = |any: &[&str]| words.iter().any(|word| any.contains(word));
    match tool {
        "exec_shell" => return ToolKind::Execute,
        "chat_send" => return ToolKind::Other,
        _ => {}
    }
    let acting = [
        (
            &["write", "edit", "create", "replace", "patch"][..],
            ToolKind::Edit,
        ),
        (&["delete", "remove", "rm"], ToolKind::Delete),
        (&["move", "rename", "mv"], ToolKind::Move),
        (
            &["run", "exec", "execute", "shell", "bash"],
            ToolKind::Execute,
        ),
        (&["fetch", "download", "http"], ToolKind::Fetch),
    ];
    let looking = [
        (
            &["search", "find", "grep", "query", "recall"][..],
            ToolKind::Search,
        ),
        (&["fetch", "download", "http"], ToolKind::Fetch),
        (&["read", "list", "get", "load"], ToolKind::Read),
    ];
    let among = |rows: &[(&[&str], ToolKind)]| {
        let row = rows.iter().find(|(any, _)| says(any));
        row.map(|(_, kind)| *kind)
    };
    match effect {
        Some(Effect::Acts) => among(&acting).unwrap_or(ToolKind::Other),
        Some(Effect::Reads | Effect::Tells) => among(&looking).unwrap_or(ToolKind::Read),
        None => {
            let either = among(&acting).or_else(|| among(&looking));
            either.unwrap_or(ToolKind::Other)
        }
    }
}

/// The files that the arguments name.
fn files(arguments: &Map<String, Value>, cwd: &Path) -> Vec<PathBuf> {
    let one = PATHS
        .iter()
        .filter_map(|name| arguments.get(*name)?.as_str());
    let many = arguments.get("paths").and_then(Value::as_array);
    let many = many.into_iter().flatten().filter_map(Value::as_str);
    one.chain(many)
        .filter(|path| !path.is_empty() && !path.contains("://") && !path.contains('\0'))
        .map(|path| cwd.join(path))
        .take(MOST)
        .collect()
}

/// The change that the arguments ask for.
fn changes(arguments: &Map<String, Value>, files: &[PathBuf], cwd: &Path) -> Vec<ToolCallContent> {
    let [file] = files else {
        return Vec::new();
    };
    let text = |map: &Map<String, Value>, name: &str| Some(map.get(name)?.as_str()?.to_owned());
    let piece = |map: &Map<String, Value>| {
        PIECES.iter().find_map(|(old, new)| {
            let diff = Diff::new(file.clone(), text(map, new)?).old_text(text(map, old)?);
            Some(ToolCallContent::Diff(diff))
        })
    };
    if let Some(whole) = TEXTS.iter().find_map(|name| text(arguments, name)) {
        let diff = Diff::new(file.clone(), whole).old_text(before(file, cwd));
        return vec![ToolCallContent::Diff(diff)];
    }
    let edits = arguments.get("edits").and_then(Value::as_array);
    let edits = edits.into_iter().flatten().filter_map(Value::as_object);
    edits.filter_map(piece).chain(piece(arguments)).collect()
}

/// What the file says before the call. A model may name any file, and only those of the workspace are
/// anybody's business.
fn before(file: &Path, cwd: &Path) -> Option<String> {
    let (file, cwd) = (file.canonicalize().ok()?, cwd.canonicalize().ok()?);
    let about = file.metadata().ok()?;
    match about.is_file() && about.len() <= LARGEST && file.starts_with(cwd) {
        true => std::fs::read_to_string(file).ok(),
        false => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(tool: &str, effect: Effect, arguments: &Value) -> Value {
        at(Path::new("/work"), tool, effect, arguments)
    }

    fn at(cwd: &Path, tool: &str, effect: Effect, arguments: &Value) -> Value {
        let call = ToolCall::new("c", tool.replace(':', "__"), arguments.to_string());
        let shown = shown(&call, tool, Some(effect), cwd);
        serde_json::to_value(shown).unwrap()
    }

    #[test]
    fn a_command_is_its_own_title() {
        let shown = of(
            "exec_shell",
            Effect::Acts,
            &json!({"command": "cargo\n  test"}),
        );
        assert_eq!(shown["title"], "cargo test");
        assert_eq!(shown["kind"], "execute");
        assert_eq!(shown["rawInput"]["command"], "cargo\n  test");
    }

    #[test]
    fn a_file_that_is_read_has_a_place() {
        let shown = of(
            "fs:read_text_file",
            Effect::Reads,
            &json!({"path": "src/a.rs"}),
        );
        assert_eq!(shown["kind"], "read");
        assert_eq!(shown["title"], "fs:read_text_file src/a.rs");
        assert_eq!(shown["locations"], json!([{"path": "/work/src/a.rs"}]));
        assert!(shown.get("content").is_none());
    }

    #[test]
    fn a_change_is_shown_as_a_difference() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        std::fs::write(&file, "before").unwrap();
        let asked = json!({"path": file, "content": "after"});
        let shown = at(folder.path(), "fs:write_file", Effect::Acts, &asked);
        assert_eq!(shown["kind"], "edit");
        assert_eq!(
            shown["content"],
            json!([{"type": "diff", "path": file, "oldText": "before", "newText": "after"}])
        );
        // Attack: a model names a file that is none of its business.
        let elsewhere = of("fs:write_file", Effect::Acts, &asked);
        assert!(!elsewhere.to_string().contains("before"), "{elsewhere}");
        let edits =
            json!({"path": "b", "edits": [{"oldText": "x", "newText": "y"}, {"oldText": 1}]});
        let shown = of("fs:edit_file", Effect::Acts, &edits);
        assert_eq!(
            shown["content"],
            json!([{"type": "diff", "path": "/work/b", "oldText": "x", "newText": "y"}])
        );
    }

    #[test]
    fn arguments_that_are_no_object_are_shown_as_they_are() {
        let call = ToolCall::new("c", "x", "{broken");
        let shown = shown(&call, "x", None, Path::new("/"));
        assert_eq!(shown.raw_input, Some(json!("{broken")));
        assert_eq!(shown.title, "x");
    }

    #[test]
    fn names_say_the_kind_of_work() {
        for (tool, effect, expected) in [
            ("fs:move_file", Effect::Acts, ToolKind::Move),
            ("fs:delete_file", Effect::Acts, ToolKind::Delete),
            ("web:fetch", Effect::Reads, ToolKind::Fetch),
            ("fs:search_files", Effect::Reads, ToolKind::Search),
            ("x:launch", Effect::Acts, ToolKind::Other),
            ("context_recall", Effect::Reads, ToolKind::Search),
        ] {
            assert_eq!(kind(tool, Some(effect)), expected, "{tool}");
        }
    }
}
