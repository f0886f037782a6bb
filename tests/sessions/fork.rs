use serde_json::json;

use crate::common::{Project, id, ids};

#[test]
fn a_fork_gets_a_free_name_and_copies_nothing() {
    let project = Project::with_session("s");
    assert_eq!(project.ctx(&["sessions", "fork", "s"]).success(), "s-2\n");
    assert_eq!(project.ctx(&["sessions", "fork", "s"]).success(), "s-3\n");
    let last = id(project.entries("s").last().unwrap());
    assert_eq!(
        project
            .ctx(&["sessions", "fork", "s", "mine", "--json"])
            .json(),
        json!({ "session": "mine", "from": "s", "entryId": last })
    );
    let size = |name: &str| std::fs::metadata(project.log(name)).unwrap().len();
    assert!(size("s") > 20_000);
    assert!(size("mine") < 1_000, "{} bytes", size("mine"));
    let error = project
        .ctx(&["sessions", "fork", "s", "mine"])
        .failure_json(1, "there is a session `mine` already");
    assert_eq!(error["hint"], "choose another name");
}

#[test]
fn both_go_their_own_way() {
    let project = Project::new();
    let told = project.say("s", &["one", "two"]);
    project.ctx(&["sessions", "fork", "s", "f"]).success();
    let at_s = project.say("s", &["left"]);
    let at_f = project.say("f", &["right"]);
    let said = |session: &str| -> Vec<String> {
        let inspected = project.ctx(&["inspect", session, "--json"]).json();
        let messages = inspected["modelMessages"].as_array().unwrap();
        messages
            .iter()
            .map(|message| message["content"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(said("s"), ["one", "two", "left"]);
    assert_eq!(said("f"), ["one", "two", "right"]);
    assert!(!ids(&project.entries("f")).contains(&at_s[0]));
    assert!(!ids(&project.entries("s")).contains(&at_f[0]));
    // A fork of the fork, before and behind the point where the first parted.
    project.ctx(&["sessions", "fork", "f", "g"]).success();
    project.say("g", &["further"]);
    assert_eq!(said("g"), ["one", "two", "right", "further"]);
    project
        .ctx(&["sessions", "fork", "g", "h", "--at", &told[0]])
        .success();
    assert_eq!(said("h"), ["one"]);
    assert_eq!(
        project.entry_of("h", "session_header")["payload"]["forkedFrom"],
        json!(null),
        "the first header is that of the root"
    );
    let header = project.entries("h").pop().unwrap();
    assert_eq!(header["payload"]["forkedFrom"]["session"], "s");
    project.ctx(&["doctor"]).success();
}

#[test]
fn the_point_is_named_by_the_beginning_of_its_id() {
    let project = Project::with_session("s");
    let request = project.entry_of("s", "request");
    let forked = project
        .ctx(&[
            "sessions",
            "fork",
            "s",
            "f",
            "--at",
            &id(&request)[..6],
            "--json",
        ])
        .json();
    assert_eq!(forked["entryId"], request["id"]);
    let error = project
        .ctx(&["sessions", "fork", "s", "g", "--at", "e1"])
        .failure_json(3, "it could be ");
    assert_eq!(error["code"], "NoEntry");
    assert!(
        error["hint"]
            .as_str()
            .unwrap()
            .contains("the beginning of an id")
    );
    for nowhere in ["nowhere", ""] {
        project
            .ctx(&["sessions", "fork", "s", "g", "--at", nowhere])
            .failure(3, &format!("session `s` has no entry `{nowhere}`"));
    }
    assert!(!project.log("g").exists());
}

#[test]
fn what_others_begin_with_stays() {
    let project = Project::new();
    project.say("s", &["one"]);
    project.ctx(&["sessions", "fork", "s", "f"]).success();
    project.ctx(&["sessions", "fork", "f", "g"]).success();
    let error = project
        .ctx(&["sessions", "rm", "s"])
        .failure_json(5, "session `s` is the beginning of f");
    assert_eq!(error["code"], "Forked");
    assert_eq!(error["hint"], "remove the forks first");
    project.ctx(&["sessions", "rm", "f"]).failure(5, "of g");
    assert_eq!(project.entries("g").len(), 4);
    // From the leaves to the root.
    assert_eq!(
        project.ctx(&["sessions", "rm", "g"]).success(),
        "removed: g\n"
    );
    assert_eq!(
        project.ctx(&["sessions", "rm", "f", "--json"]).json(),
        json!({ "removed": "f" })
    );
    project.ctx(&["sessions", "rm", "s"]).success();
    assert_eq!(
        project.ctx(&["sessions", "list", "--json"]).json(),
        json!([])
    );
    project
        .ctx(&["sessions", "rm", "s"])
        .failure(1, "there is no session `s`");
    // Nothing of it is left, and its name is free.
    let left = std::fs::read_dir(project.path().join(".contexture/sessions")).unwrap();
    assert_eq!(left.count(), 0);
    assert_eq!(project.say("s", &["again"]).len(), 1);
}

#[test]
fn a_fork_whose_beginning_is_gone_says_so() {
    let project = Project::new();
    project.say("s", &["one"]);
    project.ctx(&["sessions", "fork", "s", "f"]).success();
    std::fs::remove_file(project.log("s")).unwrap();
    for command in [&["inspect", "f"][..], &["sessions", "show", "f"]] {
        project
            .ctx(command)
            .failure(3, "session `f`: was forked from `s`, which is gone");
    }
    let (found, _) = project.ctx(&["doctor"]).ends(1);
    assert!(
        found.contains("was forked from `s`, which is gone"),
        "{found}"
    );
}
