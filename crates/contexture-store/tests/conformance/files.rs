use std::sync::Arc;

use contexture_store::{Durability, FileLog, FileOptions, Log, ProjectLog, UserState};

use crate::conformance::chats;
use crate::conformance::suite::{self, PROMISES};

#[test]
fn a_folder_keeps_every_promise() {
    for durability in [Durability::Sync, Durability::Os] {
        let folder = tempfile::tempdir().unwrap();
        let options = FileOptions {
            durability,
            ..FileOptions::default()
        };
        let home = || Arc::new(FileLog::new(folder.path(), options.clone())) as Arc<dyn Log>;
        for (promise, check) in PROMISES.into_iter().chain(chats::PROMISES) {
            println!("{durability:?}: {promise}");
            check(&home);
        }
        suite::threads(&home);
    }
}

#[test]
fn a_project_keeps_every_promise() {
    let folder = tempfile::tempdir().unwrap();
    let state = UserState::new(folder.path().join("state"));
    let state = state.project(folder.path()).unwrap();
    let home = || {
        let data = folder.path().join("data");
        let log = ProjectLog::new(&data, Some(&state), FileOptions::default());
        Arc::new(log.unwrap()) as Arc<dyn Log>
    };
    for (promise, check) in PROMISES.into_iter().chain(chats::PROMISES) {
        println!("{promise}");
        check(&home);
    }
    suite::threads(&home);
}
