//! What transcripts and execution memories promise, on every home.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contexture_store::{
    COMPACTED, Execution, Expected, From, Key, Log, Memories, Record, Said, Stream, ToolOutcome,
    Transcripts,
};
use serde_json::{Map, Value, json};

use crate::conformance::suite::{Home, Promise};

pub const PROMISES: [(&str, Promise); 10] = [
    ("a run is remembered with the fields of the spec", fields),
    ("previews and errors are cut to characters", cut),
    ("the same run twice is one", same_run),
    ("a full window becomes a summary and the last runs", window),
    ("a summary of a summary counts all", summary_of_summary),
    ("what is no run of this chat is skipped", skipped_runs),
    ("runs of a newer form are left alone", newer_runs),
    ("many at once remember all", many_at_once),
    ("a transcript is paged from its newest end", paged),
    ("a transcript's lines are of its chat", own_lines),
];

fn key() -> Key {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    Key::new(format!("chat:{}:{n}", std::process::id())).unwrap()
}

fn run(n: usize) -> Execution {
    Execution {
        ts: format!("2026-01-01T00:00:{n:02}Z"),
        request_id: format!("r{n}"),
        user_preview: format!("asked {n}"),
        output_preview: format!("said {n}"),
        ..Execution::default()
    }
}

fn called(tool: &str, success: Option<bool>, error: Option<&str>) -> ToolOutcome {
    ToolOutcome {
        tool: tool.to_owned(),
        success,
        error: error.map(str::to_owned),
    }
}

fn lines(log: &dyn Log, stream: &Stream) -> Vec<Value> {
    let records = log.read(stream, From::Start).unwrap();
    records
        .map(|record| record.unwrap().value().unwrap())
        .collect()
}

fn requests(memories: &Memories, key: &Key) -> Vec<String> {
    let read = memories.load(key).unwrap();
    read.lines.into_iter().map(|run| run.request_id).collect()
}

fn fields(home: Home<'_>) {
    let (log, key) = (home(), key());
    let memories = Memories::new(Arc::clone(&log), 200);
    let mut first = run(1);
    first.tool_calls = vec![
        called("exec_shell", Some(false), Some("exit 1")),
        called("canvas", None, None),
    ];
    memories.put(&key, first).unwrap();
    let mut line = lines(log.as_ref(), &Stream::memory(key.clone())).remove(0);
    line.as_object_mut().unwrap().remove("id").unwrap();
    assert_eq!(
        line,
        json!({
            "v": 1,
            "ts": "2026-01-01T00:00:01Z",
            "chatKey": key.as_str(),
            "requestId": "r1",
            "userPreview": "asked 1",
            "outputPreview": "said 1",
            "toolCalls": [{"tool": "exec_shell", "success": false, "error": "exit 1"}, {"tool": "canvas"}],
        })
    );
    assert!(memories.load(&self::key()).unwrap().lines.is_empty());
}

fn cut(home: Home<'_>) {
    let (log, key) = (home(), key());
    let memories = Memories::new(log, 200);
    memories
        .put(
            &key,
            Execution {
                user_preview: "é".repeat(2_001),
                output_preview: "字".repeat(5_000),
                tool_calls: vec![called("t", Some(false), Some(&"🦀".repeat(201)))],
                ..run(1)
            },
        )
        .unwrap();
    let read = memories.load(&key).unwrap().lines.remove(0);
    assert_eq!(read.user_preview, "é".repeat(2_000));
    assert_eq!(read.output_preview, "字".repeat(2_000));
    assert_eq!(read.tool_calls[0].error, Some("🦀".repeat(200)));
}

fn same_run(home: Home<'_>) {
    let (log, key) = (home(), key());
    let memories = Memories::new(log, 200);
    for n in [1, 1, 2, 1, 2] {
        memories.put(&key, run(n)).unwrap();
    }
    assert_eq!(requests(&memories, &key), ["r1", "r2"]);
    // A run is remembered while it goes on.
    let mut more = run(1);
    more.tool_calls = vec![called("shell", None, None)];
    memories.put(&key, more).unwrap();
    let lines = memories.load(&key).unwrap().lines;
    assert_eq!(requests(&memories, &key), ["r1", "r2"]);
    assert_eq!(lines[0].tool_calls, [called("shell", None, None)]);
}

fn window(home: Home<'_>) {
    let (log, key) = (home(), key());
    let memories = Memories::new(log, 4);
    for n in 0..4 {
        let mut run = run(n);
        run.tool_calls = vec![
            called("shell", Some(n != 1), None),
            called("other", None, None),
        ];
        memories.put(&key, run).unwrap();
    }
    assert_eq!(requests(&memories, &key), ["r0", "r1", "r2", "r3"]);
    memories.put(&key, run(4)).unwrap();
    assert_eq!(requests(&memories, &key), [COMPACTED, "r2", "r3", "r4"]);
    let first = memories.load(&key).unwrap().lines.remove(0);
    let all = first.compacted.unwrap();
    assert_eq!(all.count, 2);
    assert_eq!(
        (all.from.as_str(), all.to.as_str()),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")
    );
    let tool = |name: &str| (all.tools[name].calls, all.tools[name].failures);
    assert_eq!((tool("shell"), tool("other")), ((2, 1), (2, 0)));
}

fn summary_of_summary(home: Home<'_>) {
    let (log, key) = (home(), key());
    let memories = Memories::new(Arc::clone(&log), 3);
    for n in 0..30 {
        let mut run = run(n);
        run.tool_calls = vec![called("shell", Some(n % 3 != 0), None)];
        memories.put(&key, run).unwrap();
        let kept = memories.load(&key).unwrap();
        assert!(kept.lines.len() <= 3);
        let count = |run: &Execution| run.compacted.as_ref().map_or(1, |all| all.count);
        assert_eq!(kept.lines.iter().map(count).sum::<usize>(), n + 1);
    }
    // Another handle sees the same.
    let kept = Memories::new(home(), 3).load(&key).unwrap();
    let all = kept.lines[0].compacted.clone().unwrap();
    assert_eq!(
        (all.tools["shell"].calls, all.tools["shell"].failures),
        (28, 10)
    );
    assert_eq!(all.from, "2026-01-01T00:00:00Z");
    assert_eq!(all.to, "2026-01-01T00:00:27Z");
}

fn skipped_runs(home: Home<'_>) {
    let (log, key) = (home(), key());
    let stream = Stream::memory(key.clone());
    let strange = [
        json!({"id": "x1", "v": 1, "ts": "", "chatKey": "another", "requestId": "z"}),
        json!({"id": "x2", "chatKey": key.as_str()}),
        json!({"id": "x3", "v": 1, "ts": 7, "chatKey": key.as_str(), "requestId": "z"}),
    ];
    let strange = strange.map(|line| Record::new(&line).unwrap());
    log.append(&stream, Expected::Any, &strange).unwrap();
    let memories = Memories::new(log, 3);
    for n in 0..3 {
        memories.put(&key, run(n)).unwrap();
        assert_eq!(requests(&memories, &key).len(), n + 1, "run {n}");
    }
    memories.put(&key, run(3)).unwrap();
    assert_eq!(requests(&memories, &key), [COMPACTED, "r2", "r3"]);
    let first = memories.load(&key).unwrap().lines.remove(0);
    assert_eq!(first.compacted.unwrap().count, 2);
}

fn newer_runs(home: Home<'_>) {
    let (log, key) = (home(), key());
    let stream = Stream::memory(key.clone());
    let newer = json!({"id": "n", "v": 2, "ts": "", "chatKey": key.as_str(), "requestId": "z", "userPreview": [1]});
    let newer = Record::new(&newer).unwrap();
    log.append(&stream, Expected::Any, std::slice::from_ref(&newer))
        .unwrap();
    let memories = Memories::new(Arc::clone(&log), 2);
    for n in 0..5 {
        memories.put(&key, run(n)).unwrap();
    }
    let read = memories.load(&key).unwrap();
    assert_eq!((read.lines.len(), read.skipped), (5, 1));
    let first = log.read(&stream, From::Start).unwrap().next();
    assert_eq!(first.unwrap().unwrap(), newer);
}

fn many_at_once(home: Home<'_>) {
    let (log, key) = (home(), key());
    let memories = Memories::new(log, 5);
    std::thread::scope(|scope| {
        for who in 0..4 {
            let (memories, key) = (&memories, &key);
            scope.spawn(move || {
                for n in 0..12 {
                    memories.put(key, run(who * 12 + n)).unwrap();
                }
            });
        }
    });
    // Whoever is alone makes the room that the others left to make.
    memories.put(&key, run(48)).unwrap();
    let kept = memories.load(&key).unwrap();
    assert_eq!(kept.lines.len(), 5);
    let count = |run: &Execution| run.compacted.as_ref().map_or(1, |all| all.count);
    assert_eq!(kept.lines.iter().map(count).sum::<usize>(), 49);
}

fn said(n: usize) -> Said {
    Said {
        v: 1,
        ts: format!("t{n}"),
        chat_key: String::new(),
        role: if n.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        }
        .to_owned(),
        text: format!("message {n}"),
        request_id: None,
        extra: Map::new(),
    }
}

fn paged(home: Home<'_>) {
    let (log, key) = (home(), key());
    let chats = Transcripts::new(log);
    let all: Vec<Said> = (0..7).map(said).collect();
    chats.append(&key, &all[..3]).unwrap();
    chats.append(&key, &[]).unwrap();
    chats.append(&key, &all[3..]).unwrap();
    let texts = |count, offset, role: &str| -> Vec<String> {
        let read = chats
            .last(&key, count, offset, |said| {
                role.is_empty() || said.role == role
            })
            .unwrap();
        assert_eq!(read.skipped, 0);
        read.lines.into_iter().map(|said| said.ts).collect()
    };
    assert_eq!(texts(3, 0, ""), ["t4", "t5", "t6"]);
    assert_eq!(texts(3, 5, ""), ["t0", "t1"]);
    assert_eq!(texts(3, 7, ""), Vec::<String>::new());
    assert_eq!(texts(0, 0, ""), Vec::<String>::new());
    assert_eq!(texts(2, 1, "user"), ["t2", "t4"]);
    assert_eq!(texts(usize::MAX, 2, ""), ["t0", "t1", "t2", "t3", "t4"]);
}

fn own_lines(home: Home<'_>) {
    let (log, key) = (home(), key());
    let chats = Transcripts::new(Arc::clone(&log));
    let foreign = Said {
        chat_key: "another".to_owned(),
        ..said(1)
    };
    // The same text twice is said twice.
    chats.append(&key, &[foreign.clone(), foreign]).unwrap();
    let newer =
        json!({"id": "n", "v": 2, "ts": "", "chatKey": key.as_str(), "role": "user", "text": ""});
    let other =
        json!({"id": "o", "v": 1, "ts": "", "chatKey": "another", "role": "user", "text": ""});
    let strange = [newer, other].map(|line| Record::new(&line).unwrap());
    log.append(&Stream::chat(key.clone()), Expected::Any, &strange)
        .unwrap();
    let read = chats.last(&key, 10, 0, |_| true).unwrap();
    assert_eq!((read.lines.len(), read.skipped), (2, 2));
    assert!(read.lines.iter().all(|said| said.chat_key == key.as_str()));
}
