use std::sync::Arc;

use contexture_store::{Durability, FileLog, FileOptions, Log};

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
