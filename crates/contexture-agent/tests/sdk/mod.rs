//! The official SDKs as witnesses: their types take every request that we send, and their clients
//! read every stream that our tests are made of as we do.

mod checker;
mod histories;
#[path = "../../../contexture/tests/properties/history.rs"]
#[allow(dead_code, reason = "each test binary uses its own share")]
mod history;
mod python;
mod runs;
mod streams;

use crate::run::harness;
