use std::path::Path;

use contexture::Message;
use contexture_store::Key;

use super::point::{Point, recorded};
use super::{print, print_data, print_json};
use crate::args::{Format, Inspect};
use crate::error::CliError;
use crate::settings;
use crate::view::{self, Paint, Shown};
use crate::{config, store};

/// `ctx inspect`.
pub fn inspect(options: &Inspect, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let key = Key::new(options.session.as_str())?;
    let config = config::load(dir)?;
    let loaded = store::open(dir)?.load(&key)?;
    let point = match &options.at {
        None => Point::now(&loaded.view),
        Some(at) if at.parse::<usize>().is_ok() => {
            let settings = settings::of_session(&options.limits, None, &config)?;
            Some(Point::find(&recorded(&loaded.view, settings)?, &key, at)?)
        }
        Some(at) => Some(Point::find(&loaded.view, &key, at)?),
    };
    let Some(point) = point else {
        return Err(CliError::Usage {
            what: format!("session `{key}` has no entry that can be read"),
            hint: "`ctx doctor` says why".to_owned(),
        });
    };
    let format = Format::chosen(options.format, json)?;
    let mut settings = point.settings(&options.limits, &config)?;
    settings.wire = format.wire().unwrap_or(settings.wire);
    let title = match &options.at {
        Some(_) => format!("{key} at {}", point.id),
        None => key.to_string(),
    };
    point.request(settings, |built| match format {
        Format::Json => print_json(&built.to_result()),
        Format::Openai | Format::Anthropic | Format::Responses => print_data(built.body()),
        Format::View => {
            let messages: Vec<&Message> = built.messages().collect();
            let shown = Shown {
                title: &title,
                receipt: &built.receipt(),
                messages: &messages,
                bytes: built.body().len(),
            };
            print(view::request(&shown, Paint::stdout()).as_bytes())
        }
    })?
}
