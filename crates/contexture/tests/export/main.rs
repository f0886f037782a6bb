//! A session for people and for other programs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout
)]

#[path = "../common/mod.rs"]
mod common;
mod documents;
mod page;
mod wire;

use common::scenario::Scenario;
use contexture::export::{self, Meta};

fn meta() -> Meta {
    Meta {
        title: "A session".to_owned(),
    }
}

fn markdown(s: &Scenario) -> String {
    export::markdown(s.view(), &meta()).unwrap()
}

fn html(s: &Scenario) -> String {
    export::html(s.view(), &meta()).unwrap()
}
