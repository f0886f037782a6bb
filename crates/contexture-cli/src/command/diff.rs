use std::path::Path;

use contexture::diff::{Diff as Difference, Side};
use contexture_store::Key;

use super::point::{Point, recorded};
use super::{print, print_json, to_value};
use crate::args::Diff;
use crate::error::CliError;
use crate::settings;
use crate::view::{self, Paint};
use crate::{config, store};

/// `ctx diff`.
pub fn diff(options: &Diff, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let key = Key::new(options.session.as_str())?;
    let config = config::load(dir)?;
    let loaded = store::open(dir)?.load(&key)?;
    let settings = settings::of_session(&options.limits, None, &config)?;
    let view = recorded(&loaded.view, settings)?;
    let a = Point::find(&view, &key, &options.a)?;
    let b = Point::find(&view, &key, &options.b)?;
    let side = |point: &Point| {
        let settings = point.settings(&options.limits, &config)?;
        point.request(settings, Side::of)
    };
    let difference = Difference::between(&view, &side(&a)?, &side(&b)?);
    if json {
        return print_json(&to_value(&difference)?);
    }
    let names = (named(&options.a, &a), named(&options.b, &b));
    print(view::diff(&difference, &view, &names, Paint::stdout()).as_bytes())
}

fn named(given: &str, point: &Point) -> String {
    match given.parse::<usize>() {
        Ok(number) if given != point.id.as_str() => format!("request {number}"),
        _ => point.id.to_string(),
    }
}
