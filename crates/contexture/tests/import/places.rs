//! What has a place of its own is there, and what has none is named.

use std::collections::BTreeSet;

use contexture::entry::Target;
use contexture::import::Imported;
use contexture::{Content, Entry, Message, Part, Payload, Session, Settings, Turn, View};
use serde_json::{Value, json};

use crate::import::{FIXTURES, read, shape, text};

#[track_caller]
fn entry<'a>(imported: &'a Imported, id: &str) -> &'a Entry {
    let found = imported.entries.iter().find(|e| e.id.as_str() == id);
    found.unwrap_or_else(|| panic!("no entry {id}"))
}

#[track_caller]
fn message(entry: &Entry) -> &Message {
    match &entry.payload {
        Payload::Message { message } => message,
        other => panic!("{other:?}"),
    }
}

fn meta(entry: &Entry) -> Value {
    serde_json::to_value(&entry.meta).unwrap()
}

/// The first lines of a file.
fn beginning(name: &str, lines: usize) -> Imported {
    let lines: Vec<_> = text(name).lines().take(lines).collect();
    Imported::read(lines.join("\n").as_bytes()).unwrap()
}

#[test]
fn lines_of_one_api_message_are_one_message() {
    let imported = read("claude-code-2.1");
    let first = entry(&imported, "19b4f246-1aa2-4ad8-bbb4-aef3d4361d1e");
    assert_eq!(message(first).tool_calls.len(), 2);
    assert_eq!(first.timestamp, "2026-11-15T13:04:28.185Z");
    let lines = meta(first)["source"].as_array().unwrap().clone();
    assert_eq!(lines.len(), 4);
    for line in &lines {
        assert_eq!(line["message"]["usage"]["cache_read_input_tokens"], 200);
        assert_eq!(line["message"]["id"], "msg_011");
    }
    assert_eq!(lines[3]["uuid"], "2730bf19-a38e-43fe-ad9b-364a13412fa0");
    // Where the calls stood is known, too.
    assert_eq!(
        lines[2]["message"]["content"],
        json!({"0": {"type": "tool_use"}})
    );
}

#[test]
fn results_of_parallel_calls_follow_each_other() {
    let imported = read("claude-code-2.1");
    let call = "19b4f246-1aa2-4ad8-bbb4-aef3d4361d1e";
    let one = entry(&imported, "b480fe3d-0613-411c-9026-b9e80ff5560c");
    let two = entry(&imported, "d9e34ec9-fd02-40ca-8a79-a394cd60b779");
    assert_eq!(one.parent_id.as_ref().unwrap().as_str(), call);
    assert_eq!(two.parent_id.as_ref(), Some(&one.id));
    // What the file said of it is not lost.
    let named = &meta(two)["source"]["parentUuid"];
    assert_eq!(named, "c881491d-d27f-498f-b42f-bf9f6f5caefa");
}

#[test]
fn a_compaction_keeps_what_the_tool_kept() {
    let imported = beginning("claude-code-compacted", 8);
    assert_eq!(
        shape::history(&imported),
        "00 summary \"All before: one was first, two second.\"\n01 assistant \"Second.\"\n02 user \"Three\"\n"
    );
    let Payload::CompactionSummary(compaction) = &entry(&imported, "a7").payload else {
        panic!("no compaction");
    };
    assert_eq!(compaction.tokens_before, 155_000);
    // Files from before there were boundaries.
    let imported = beginning("claude-code-compacted", 4);
    assert_eq!(
        shape::history(&imported),
        "00 summary \"Before boundaries: one was first.\"\n01 user \"Two\"\n"
    );
}

#[test]
fn a_summary_of_nothing_is_shown() {
    // A file that goes on from another begins with its summary.
    let lines: Vec<_> = text("claude-code-compacted")
        .lines()
        .skip(2)
        .take(2)
        .collect();
    let imported = Imported::read(lines.join("\n").as_bytes()).unwrap();
    assert_eq!(
        shape::history(&imported),
        "00 user \"Before boundaries: one was first.\"\n01 user \"Two\"\n"
    );
}

#[test]
fn whatever_was_compacted_can_be_brought_back() {
    let mut compacted = 0;
    for (name, _) in FIXTURES {
        let imported = read(name);
        let view = View::fold(imported.entries.clone()).unwrap();
        let ids: Vec<_> = view
            .log()
            .iter()
            .filter(|e| matches!(e.payload, Payload::CompactionSummary(_)))
            .map(|e| e.id.clone())
            .collect();
        compacted += ids.len();
        let mut entries = imported.entries.clone();
        for entry_id in ids {
            let last = entries.last().unwrap().id.clone();
            let undo = Payload::Revert(Target { entry_id });
            entries.push(Entry::derived(Some(&last), "", undo));
        }
        let view = View::fold(entries).unwrap();
        let first = imported
            .entries
            .iter()
            .position(|e| matches!(e.payload, Payload::Message { .. }));
        assert_eq!(view.live(0).next().map(|l| l.position), first, "{name}");
    }
    assert!(compacted >= 8, "{compacted}");
}

#[test]
fn helpers_and_paths_that_were_left_are_in_the_log() {
    let imported = read("claude-code-tree");
    assert_eq!(message(entry(&imported, "h2")).text(), "One.");
    let view = View::fold(imported.entries.clone()).unwrap();
    for id in ["h1", "h2", "h3", "u5", "u6"] {
        let position = view.position(&entry(&imported, id).id).unwrap();
        assert!(view.is_reverted(position), "{id}");
    }
    assert_eq!(
        message(entry(&imported, "u5")).text(),
        "This question was taken back."
    );
    let failed = message(entry(&imported, "u6"));
    assert!(!failed.include_in_context);
    // Its parent is not in the file: it follows what stood last.
    let lost = entry(&imported, "u9");
    assert_eq!(lost.parent_id.as_ref().unwrap().as_str(), "u7");
    assert_eq!(meta(lost)["source"]["parentUuid"], "gone");
}

#[test]
fn results_say_whether_they_failed() {
    let failed = |name: &str, id: &str| message(entry(&read(name), id)).extra["isError"].clone();
    assert_eq!(
        failed("claude-code-2.1", "304c79fc-d656-401f-b629-0b4d8634c61c"),
        true
    );
    assert_eq!(
        failed("claude-code-2.1", "d9e34ec9-fd02-40ca-8a79-a394cd60b779"),
        false
    );
    assert_eq!(failed("pi-3", "477a5256"), true);
    let imported = read("codex-turns");
    let result = imported.entries.iter().find(|e| {
        matches!(&e.payload, Payload::Message { message } if message.tool_call_id.as_deref() == Some("call_l"))
    });
    assert!(message(result.unwrap()).failed());
}

#[test]
fn a_seal_is_kept_for_its_maker_alone() {
    let thoughts = |message: &Message| match &message.content {
        Content::Parts(parts) => parts.clone(),
        other => panic!("{other:?}"),
    };
    let imported = read("pi-tree");
    let parts = thoughts(message(entry(&imported, "m2")));
    assert!(matches!(&parts[0], Part::Thinking { signature: Some(s), .. } if s == "c2VhbA=="));
    assert!(matches!(&parts[1], Part::Other(map) if map["data"] == "b3BhcXVl"));
    // Another maker's is not Anthropic's to check.
    let imported = read("pi-3");
    let parts = thoughts(message(entry(&imported, "b8c2016a")));
    let Part::Thinking {
        signature: None,
        extra,
        ..
    } = &parts[0]
    else {
        panic!("{parts:?}");
    };
    assert_eq!(extra["thinkingSignature"], "reasoning_content");
    let imported = read("codex-0.166");
    let parts = thoughts(message(entry(&imported, "rs_7")));
    let Part::Thinking {
        signature: None,
        extra,
        ..
    } = &parts[0]
    else {
        panic!("{parts:?}");
    };
    assert_eq!(extra["encrypted_content"], "gAAAAABencrypted");
    assert_eq!(extra["id"], "rs_7");
}

#[test]
fn a_summary_that_none_can_read_replaces_nothing() {
    let imported = read("codex-turns");
    assert!(shape::history(&imported).contains("\"Yes.\""));
    let sealed = imported.entries.iter().any(|e| {
        matches!(&e.payload, Payload::Custom(c)
            if c["line"]["payload"]["replacement_history"][1]["encrypted_content"] == "gBBB")
    });
    assert!(sealed);
}

#[test]
fn the_header_says_whose_session_it_was() {
    let header = |name: &str| match &read(name).entries[0] {
        Entry {
            id,
            payload: Payload::SessionHeader(header),
            ..
        } => (
            id.to_string(),
            header.agent.clone().unwrap(),
            header.cwd.clone(),
        ),
        other => panic!("{other:?}"),
    };
    let cwd = Some("/home/ana/project".to_owned());
    assert_eq!(header("pi-tree"), ("p0".into(), "pi".into(), cwd.clone()));
    assert_eq!(
        header("codex-turns"),
        ("c0".into(), "codex".into(), cwd.clone())
    );
    assert_eq!(header("claude-code-tree").1, "claude-code");
    assert_eq!(header("claude-code-tree").2, cwd);
}

#[test]
fn what_has_no_place_is_counted() {
    let kept = read("pi-tree").kept;
    assert_eq!(kept["pi.message.assistant.usage"], 1);
    assert_eq!(kept["pi.message.toolResult.details"], 1);
    assert_eq!(kept["pi.label"], 1);
    assert_eq!(kept["pi.compaction.details"], 1);
    assert!(!kept.contains_key("pi.message.user.content.text"));
    let kept = read("claude-code-2.1").kept;
    assert_eq!(kept["claude-code.attachment"], 5);
    assert_eq!(kept["claude-code.assistant.usage"], 12);
    assert_eq!(kept["claude-code.user.gitBranch"], 11);
    let kept = read("codex-0.50").kept;
    assert_eq!(kept["codex.event_msg.token_count"], 8);
    assert_eq!(kept["codex.turn_context.cwd"], 4);
}

#[test]
fn an_import_reads_the_same_again() {
    for (name, _) in FIXTURES {
        let imported = read(name);
        let log: String = imported
            .entries
            .iter()
            .map(|entry| format!("{}\n", serde_json::to_string(entry).unwrap()))
            .collect();
        let again = Imported::read(log.as_bytes()).unwrap();
        assert_eq!(again.entries, imported.entries, "{name}");
    }
}

#[test]
fn a_session_goes_on_from_an_import() {
    for (name, _) in FIXTURES {
        let mut session = Session::open(Settings::default(), read(name).entries).unwrap();
        let turn = Turn {
            messages: vec![Message::user("Where were we?")],
            ..Turn::default()
        };
        let built = session.build(turn).unwrap();
        assert_eq!(
            built.messages().last().unwrap().text(),
            "Where were we?",
            "{name}"
        );
    }
}

#[test]
fn numbers_stay_what_they_were_to_the_last_digit() {
    // Read by the standard library, which rounds correctly.
    let numbers = |text: &str| -> BTreeSet<u64> {
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | 'e' | '-');
        let words = text.split(|c: char| !is_number(c));
        let long = words.filter(|word| word.len() > 12 && word.contains('.'));
        long.filter_map(|word| word.parse::<f64>().ok())
            .map(f64::to_bits)
            .collect()
    };
    let mut checked = 0;
    for (name, text) in FIXTURES {
        let entries = read(name).entries;
        let log: String = entries
            .iter()
            .map(|e| serde_json::to_string(e).unwrap())
            .collect();
        let (wanted, found) = (numbers(text), numbers(&log));
        assert!(wanted.is_subset(&found), "{name}");
        checked += wanted.len();
    }
    assert!(checked > 5, "{checked}");
}

#[test]
fn what_a_user_said_while_the_model_worked_is_theirs() {
    let first = text("claude-code-compacted").lines().next().unwrap();
    let queued = json!({
        "parentUuid": "a1", "isSidechain": false, "type": "attachment", "uuid": "q1",
        "attachment": {"type": "queued_command", "prompt": "And hurry.", "commandMode": "prompt"},
    });
    let imported = Imported::read(format!("{first}\n{queued}").as_bytes()).unwrap();
    assert_eq!(
        shape::history(&imported),
        "00 user \"One\"\n01 user \"And hurry.\"\n"
    );
    let left = &meta(entry(&imported, "q1"))["source"]["attachment"];
    assert_eq!(
        *left,
        json!({"type": "queued_command", "commandMode": "prompt"})
    );
}
