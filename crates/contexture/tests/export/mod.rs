//! A session for people and for other programs.

mod documents;
mod page;
mod wire;

use crate::common::scenario::Scenario;
use contexture::export::{self, Meta};

fn meta() -> Meta {
    Meta {
        title: "A session".to_owned(),
        ..Meta::default()
    }
}

fn markdown(s: &Scenario) -> String {
    export::markdown(s.view(), &meta()).unwrap()
}

fn html(s: &Scenario) -> String {
    export::html(s.view(), &meta()).unwrap()
}
