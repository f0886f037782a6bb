use std::sync::Arc;

use contexture_store::{Log, PgLog, PgOptions};

use crate::conformance::chats;
use crate::conformance::suite::{self, PROMISES};
use crate::server::Server;

// needs: postgres
#[test]
fn a_database_keeps_every_promise() {
    let Some(server) = Server::get() else {
        return;
    };
    let database = server.database();
    let url = database.url();
    let home = || Arc::new(PgLog::connect(&url, PgOptions::default()).unwrap()) as Arc<dyn Log>;
    for (promise, check) in PROMISES.into_iter().chain(chats::PROMISES) {
        println!("{promise}");
        check(&home);
    }
    suite::threads(&home);
}
