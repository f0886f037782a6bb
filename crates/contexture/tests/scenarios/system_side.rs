//! Sections, runtime facts, hints, tools and injections.

use crate::common::scenario::Scenario;
use contexture::Role;
use contexture::prompt::Section;
use insta::assert_snapshot;
use serde_json::json;

#[test]
fn a_given_system_side_overrides_the_stored_one() {
    let role = Section::stable("role", "test", "You are terse.");
    let s = Scenario::new(1_000)
        .system("You are verbose.")
        .user("Go")
        .system("By the way: it is noon.")
        .sections(&[role]);
    assert_snapshot!(s.build().shape(), @r#"
    00 system kept 9 §role
    01 user kept 6 "Go"
    02 system kept 13 "By the way: it is noon."
    -- filtered e0
    "#);
}

#[test]
fn a_pinned_stored_prompt_stays_beside_a_given_one() {
    let role = Section::stable("role", "test", "You are terse.");
    let s = Scenario::new(1_000)
        .system("Never delete.")
        .pin("e0")
        .user("Go")
        .sections(&[role]);
    assert_snapshot!(s.build().shape(), @r#"
    00 system kept 9 §role
    01 system pinned 8 "Never delete."
    02 user kept 6 "Go"
    "#);
}

#[test]
fn hints_and_volatile_sections_come_only_when_they_changed() {
    let sections = |pool: &str| {
        [
            Section::stable("role", "t", "Be terse."),
            Section::volatile("pool", "t", pool),
        ]
    };
    let s = Scenario::new(1_000)
        .user("Go")
        .hints(json!({"time": "noon"}))
        .sections(&sections("2 free"))
        .build();
    assert_eq!(s.appended(), ["sections", "hints"]);
    let s = s
        .sent(None)
        .hints(json!({"time": "noon"}))
        .sections(&sections("2 free"))
        .build();
    assert!(s.appended().is_empty());
    assert_snapshot!(s.cache(), @"36 shared");
    let s = s
        .hints(json!({"time": "one"}))
        .sections(&sections("1 free"))
        .build();
    assert_snapshot!(s.shape(), @r###"
    00 system kept 8 §role
    01 user kept 6 "Go"
    02 system kept 7 "2 free"
    03 system kept 12 "## Hints\ntime: noon"
    04 system kept 7 "1 free"
    05 system kept 12 "## Hints\ntime: one"
    "###);
    assert_snapshot!(s.cache(), @"36 shared");
}

#[test]
fn a_changed_stable_section_breaks_the_prefix_and_is_named() {
    let sections = |tone: &str| {
        [
            Section::stable("role", "t", "You are Ada."),
            Section::stable("tone", "t", tone),
        ]
    };
    let s = Scenario::new(1_000)
        .user("Go")
        .sections(&sections("Be terse."))
        .build();
    let s = s.sent(None).sections(&sections("Be verbose.")).build();
    assert_snapshot!(s.shape(), @r#"
    00 system kept 9 §role
    00 system kept 4 §tone
    01 user kept 6 "Go"
    "#);
    assert_snapshot!(s.cache(), @"3 shared, then section:tone");
}

#[test]
fn a_section_that_turns_volatile_leaves_the_prefix() {
    let s = Scenario::new(1_000)
        .user("Go")
        .sections(&[Section::stable("run", "t", "Step 1")])
        .build();
    let s = s
        .sections(&[Section::volatile("run", "t", "Step 2")])
        .build();
    assert_snapshot!(s.shape(), @r#"
    00 user kept 6 "Go"
    01 system kept 8 "Step 2"
    "#);
}

#[test]
fn sections_and_tools_that_stand_twice_settle() {
    let twice = [
        Section::stable("role", "t", "one"),
        Section::stable("role", "t", "two"),
    ];
    let grep = |about: &str| json!({"type": "function", "function": {"name": "grep", "description": about}});
    let specs = [grep("one"), grep("two")];
    let s = Scenario::new(1_000)
        .user("Go")
        .sections(&twice)
        .specs(&specs)
        .build();
    assert_eq!(s.appended(), ["sections", "tools"]);
    assert_eq!(s.body()["tools"], json!([grep("two")]));
    let s = s.sections(&twice).specs(&specs).build();
    assert!(s.appended().is_empty(), "{:?}", s.appended());
}

#[test]
fn a_blank_system_side_is_none() {
    let s = Scenario::new(1_000)
        .user("Go")
        .sections(&[Section::stable("system", "input", " \n")]);
    assert_snapshot!(s.build().shape(), @r#"00 user kept 6 "Go""#);
}

#[test]
fn runtime_facts_stand_behind_the_stored_prompt() {
    let facts = |s: Scenario| s.runtime_init(json!({"os": "linux", "cwd": "/srv"}));
    let at_once = facts(Scenario::new(1_000).system("One"))
        .system("Two")
        .user("Go")
        .build();
    assert_snapshot!(at_once.shape(), @r###"
    00 system kept 6 "One"
    01 system kept 6 "Two"
    02 system kept 16 "## Runtime\ncwd: /srv\nos: linux"
    03 user kept 6 "Go"
    "###);
    // However the entries come, in whatever order the host fills its map.
    let facts = |s: Scenario| s.runtime_init(json!({"cwd": "/srv", "os": "linux"}));
    let bit_by_bit = facts(Scenario::new(1_000).system("One"))
        .build()
        .system("Two")
        .build()
        .user("Go")
        .build();
    assert_eq!(at_once.bytes(), bit_by_bit.bytes());
}

#[test]
fn tools_keep_their_order_and_come_in_place() {
    let s = Scenario::new(1_000)
        .user("Go")
        .turn_tools(&["a", "b", "c"])
        .build();
    let s = s.turn_tools(&["a", "c", "d"]).build().sent(None);
    let names = |s: &Scenario| {
        let tools = s.body()["tools"].as_array().unwrap().iter();
        tools
            .map(|t| t["function"]["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&s), ["a", "c", "d"]);
    let s = s.turn_tools(&["d", "c", "a"]).build();
    assert_eq!(names(&s), ["d", "c", "a"]);
    assert_snapshot!(s.cache(), @"0 shared, then tools");
    let s = s.tools(&["x"], &["d"]).build();
    assert_eq!(names(&s), ["c", "a", "x"]);
}

#[test]
fn tools_of_one_size_are_told_apart() {
    let s = Scenario::new(1_000)
        .user("Go")
        .turn_tools(&["read"])
        .build()
        .sent(None);
    let s = s.turn_tools(&["grep"]).build();
    assert_eq!(s.body()["tools"][0]["function"]["name"], "grep");
    assert_snapshot!(s.cache(), @"0 shared, then tools");
}

#[test]
fn deferred_tools_are_in_the_log_and_in_the_receipt() {
    let receipt =
        |s: &Scenario| serde_json::to_value(s.receipt()).unwrap()["deferredTools"].clone();
    let s = Scenario::new(1_000).user("Go").turn_tools(&["search"]);
    let s = s
        .deferred(
            &[("fs:read", 120), ("fs:write", 80)],
            "too many for the budget",
        )
        .build();
    assert_eq!(s.appended(), ["tools"]);
    let logged = serde_json::to_value(&s.view().log()[1].payload).unwrap();
    assert_snapshot!(logged["payload"], @r#"{"add":[{"type":"function","function":{"name":"search","parameters":{"type":"object"}}}],"remove":[],"deferred":[{"name":"fs:read","tokens":120},{"name":"fs:write","tokens":80}],"reason":"too many for the budget"}"#);
    assert_eq!(receipt(&s), json!({"count": 2, "tokens": 200}));
    // The same again is nothing new, and what the turn does not speak of stays.
    let s = s
        .deferred(&[("fs:read", 120), ("fs:write", 80)], "again")
        .build();
    assert!(s.appended().is_empty());
    let s = s.turn_tools(&["search", "find"]).build();
    assert_eq!(receipt(&s)["count"], 2);
    // One comes to be offered: one entry says both.
    let s = s.turn_tools(&["search", "find", "fs__read"]);
    let s = s.deferred(&[("fs:write", 80)], "found").build();
    assert_eq!(s.appended(), ["tools"]);
    assert_eq!(receipt(&s), json!({"count": 1, "tokens": 80}));
    // What is not offered is no part of the request.
    let s = s.sent(None).deferred(&[], "gone").build();
    assert_eq!(s.appended(), ["tools"]);
    assert_eq!(receipt(&s), json!(null));
    assert_snapshot!(s.cache(), @"65 shared");
    assert_eq!(s.body()["tools"].as_array().unwrap().len(), 3);
}

#[test]
fn custom_tools_come_and_go() {
    let custom = |name: &str| json!({"type": "custom", "custom": {"name": name}});
    let native = json!({"type": "web_search"});
    let s = Scenario::new(1_000)
        .user("Go")
        .specs(&[custom("a"), custom("b"), native])
        .build();
    let s = s.specs(&[custom("b")]).build();
    assert_eq!(s.body()["tools"], json!([custom("b")]));
    assert!(s.specs(&[custom("b")]).build().appended().is_empty());
}

#[test]
fn an_injection_is_shown_once() {
    let s = Scenario::new(1_000)
        .user("Go")
        .injection(Role::User, "Skill: fly", "skill:fly")
        .injection(Role::User, "Skill: fly", "skill:fly")
        .injection(Role::System, "Skill: swim", "skill:swim");
    assert_snapshot!(s.build().shape(), @r#"
    00 user kept 6 "Go"
    01 user kept 8 "Skill: fly"
    02 system kept 8 "Skill: swim"
    -- duplicate e2
    "#);
}
