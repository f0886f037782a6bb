//! 10: keys that a file system may take for one are two sessions.

use crate::common::Project;

#[test]
fn keys_that_look_equal_are_not_one_file() {
    let pairs = [
        ("chat", "Chat"),
        ("caf\u{e9}", "cafe\u{301}"),
        ("\u{17f}", "s"),
        ("K", "\u{212a}"),
        ("ﬁ", "fi"),
        ("stra\u{df}e", "strasse"),
        ("a/b", "a%2Fb"),
        ("a/b", "a\\b"),
    ];
    for (a, b) in pairs {
        let project = Project::new();
        project.say(a, &["first"]);
        project.say(b, &["second"]);
        for (key, said) in [(a, "first"), (b, "second")] {
            let entries = project.entries(key);
            assert_eq!(entries.len(), 2, "{key:?}");
            assert_eq!(entries[1]["payload"]["message"]["content"], said);
        }
        let folder = std::fs::read_dir(project.path().join(".contexture/sessions")).unwrap();
        let mut names: Vec<String> = folder
            .map(|item| item.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(names.iter().all(|name| name.is_ascii()), "{names:?}");
        names
            .iter_mut()
            .for_each(|name| name.make_ascii_lowercase());
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 2, "{a:?} and {b:?} share a file");
        project.ctx(&["sessions", "rm", a]).success();
        assert_eq!(project.entries(b).len(), 2);
    }
}
