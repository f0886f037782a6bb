//! The facts of each step, held against the log that it left. No time is one of them.

use serde_json::{Value, json};

use crate::demo::scene::Scene;

const STEPS: [&str; 9] = [
    "build", "ask", "askAgain", "break", "hold", "compact", "undo", "verify", "done",
];

fn number(of: &Value, name: &str) -> u64 {
    let number = of[name].as_u64();
    number.unwrap_or_else(|| panic!("no `{name}` in {of}"))
}

/// Of how many hundred tokens the model had how many already.
fn percent(asked: &Value) -> u64 {
    number(asked, "reusedTokens") * 100 / number(asked, "inputTokens")
}

// needs: model
#[test]
fn each_step_is_what_it_says() {
    let Some(scene) = Scene::new() else { return };
    let facts = scene.ctx(&["demo", "--json"]).lines();
    let steps: Vec<&str> = facts.iter().map(|f| f["step"].as_str().unwrap()).collect();
    assert_eq!(steps, STEPS);
    let [build, ask, again, broken, hold, compact, undo, verify, done] = &facts[..] else {
        unreachable!()
    };

    let receipt = &build["receipt"];
    assert_eq!(receipt["digest"], ask["digest"], "what was built was sent");
    assert_eq!(receipt["budget"]["used"], ask["inputTokens"]);
    for asked in [ask, again, broken, hold] {
        assert_eq!(
            asked["predictedTokens"], asked["reusedTokens"],
            "the receipt predicts what is reused: {asked}"
        );
        assert_ne!(asked["answer"], "", "{asked}");
        assert!(asked["firstWordMs"].is_u64(), "{asked}");
    }
    assert_eq!(ask["reusedTokens"], 0, "the model begins cold");
    assert!(percent(again) >= 90, "mostly cached: {again}");
    assert!(again.get("firstChange").is_none(), "{again}");

    assert_eq!(broken["firstChange"], "section:clock");
    assert_eq!(broken["brokenBy"]["component"], "section:clock");
    assert!(percent(broken) <= 10, "little is left: {broken}");
    assert!(number(broken, "rebilledTokens") * 100 >= number(broken, "inputTokens") * 80);
    assert_eq!(hold["question"], broken["question"]);
    assert!(percent(hold) >= 90, "the prefix holds: {hold}");
    assert!(hold.get("firstChange").is_none(), "{hold}");

    assert!(number(compact, "tokensAfter") < number(compact, "tokensBefore"));
    let left = compact["leftOut"].as_array().unwrap();
    assert!(left.len() > 2, "{compact}");
    assert!(left.iter().all(|piece| piece["rule"] == "summarised"));
    assert_eq!(compact["summary"].as_array().unwrap().len(), 1);
    assert_ne!(compact["summary"][0]["text"], "");
    assert_eq!(compact["pinned"][0]["origin"], "entry:d02");
    assert_eq!(undo["after"], undo["before"], "byte for byte");
    assert_ne!(undo["compacted"], undo["before"]);
    assert_eq!(
        *verify,
        json!({"step": "verify", "requests": 4, "verified": 4})
    );

    let session = done["session"].as_str().unwrap();
    assert!(session.starts_with("demo-20"), "{session}");
    assert_eq!(build["session"], session);
    in_the_log(&scene, session, &[ask, again, hold]);
    let fork = broken["fork"].as_str().unwrap();
    in_the_log(&scene, fork, &[ask, again, broken]);
    its_commands_work(&scene, done);
    let now = scene.ctx(&["inspect", session, "--json"]).json();
    assert_eq!(
        now["receipt"]["excluded"][0]["rule"], "reverted",
        "of the compaction only its being undone is left: {now}"
    );
}

/// The session is an ordinary one, with these requests as they were told.
#[track_caller]
fn in_the_log(scene: &Scene, session: &str, asked: &[&Value]) {
    let entries = scene.ctx(&["sessions", "show", session, "--json"]).lines();
    let requests: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry["type"] == "request")
        .map(|entry| &entry["payload"])
        .collect();
    assert_eq!(requests.len(), asked.len());
    for (request, asked) in requests.iter().zip(asked) {
        let usage = &request["usage"];
        assert_eq!(request["digest"], asked["digest"]);
        assert_eq!(usage["prompt_tokens"], asked["inputTokens"]);
        let reused = &usage["prompt_tokens_details"]["cached_tokens"];
        assert_eq!(*reused, asked["reusedTokens"]);
    }
    let (_, said) = scene.ctx(&["replay", session, "--verify"]).ends(0);
    assert!(
        said.contains("3 recorded requests, each made again byte for byte"),
        "{said}"
    );
}

#[track_caller]
fn its_commands_work(scene: &Scene, done: &Value) {
    let commands = done["commands"].as_array().unwrap();
    let commands: Vec<Vec<&str>> = commands
        .iter()
        .map(|next| next["command"].as_str().unwrap().split(' ').collect())
        .collect();
    let names: Vec<&str> = commands.iter().map(|words| words[1]).collect();
    assert_eq!(names, ["inspect", "diff", "chat"]);
    let shown = scene.ctx(&commands[0][1..]).success();
    assert!(shown.contains("of 1,000 tokens"), "{shown}");
    let broke = scene.ctx(&commands[1][1..]).success();
    assert!(
        broke.contains("the prefix broke at item 0 (section:clock)"),
        "{broke}"
    );
}
