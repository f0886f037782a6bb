//! A point of a session's past, and the request that stands there.

use std::sync::Arc;

use contexture::build::{Built, Session, Settings, Turn};
use contexture::entry::RequestRecord;
use contexture::{Entry, EntryId, Payload, View, import, replay};
use contexture_store::{Key, resolve};

use crate::args::Limits;
use crate::config::Config;
use crate::error::CliError;
use crate::settings;

/// A session as it was: the log up to a point, and what stands there.
pub struct Point {
    /// The entry that was named.
    pub id: EntryId,
    entries: Vec<Arc<Entry>>,
    /// The request that was sent there, if it is one.
    request: Option<RequestRecord>,
}

impl Point {
    /// Where the log ends now.
    pub fn now(view: &View) -> Option<Self> {
        let last = view.log().last()?;
        Some(Self {
            id: last.id.clone(),
            entries: view.log().to_vec(),
            request: None,
        })
    }

    /// The point that a user names.
    pub fn find(view: &View, key: &Key, wanted: &str) -> Result<Self, CliError> {
        let id = named(view, key, wanted)?;
        let position = view.position(&id).unwrap_or_default();
        let entry = &view.log()[position];
        let (end, request) = match &entry.payload {
            Payload::Request(record) => {
                // Others may have written to the log before it was recorded: it was made without that.
                let made_at = record.at.as_ref().and_then(|at| view.position(at));
                let end = made_at.map_or(position, |made_at| made_at + 1);
                (end, Some(record.clone()))
            }
            _ => (position + 1, None),
        };
        Ok(Self {
            id,
            entries: view.log()[..end].to_vec(),
            request,
        })
    }

    /// The settings for its request: those of the record where it was sent, else the session's.
    pub fn settings(&self, limits: &Limits, config: &Config) -> Result<Settings, CliError> {
        let last = self
            .entries
            .iter()
            .rev()
            .find_map(|entry| match &entry.payload {
                Payload::Request(record) => Some(record),
                _ => None,
            });
        // Nothing was sent: what else the log says of the model decides how it counts.
        let unsent = RequestRecord {
            model: import::model(self.entries.iter().map(AsRef::as_ref)).map(str::to_owned),
            ..RequestRecord::default()
        };
        let record = self.request.as_ref().or(last).unwrap_or(&unsent);
        let mut settings = settings::of_session(limits, Some(record), config)?;
        if let Some(sent) = &self.request {
            settings.wire = sent.wire.unwrap_or_default();
            let budget = limits.budget.or(sent.max_input_tokens);
            settings.config.max_input_tokens = budget.unwrap_or(settings.config.max_input_tokens);
            if settings.config.reserved_output >= settings.config.max_input_tokens {
                // What is reserved now was not reserved then.
                settings.config.reserved_output = 0;
            }
        }
        Ok(settings)
    }

    /// Shows the request to `show`: as it was sent, or as it would be made.
    pub fn request<T>(
        &self,
        settings: Settings,
        show: impl FnOnce(&Built<'_>) -> T,
    ) -> Result<T, CliError> {
        let mut session = Session::open(settings, self.entries.iter().cloned())?;
        match &self.request {
            Some(record) => {
                session.address(record);
                Ok(show(&session.current()?))
            }
            None => Ok(show(&session.build(Turn::default())?)),
        }
    }
}

/// The entry that a user names: a request by its number, or any entry by its id or the beginning of it.
pub fn named(view: &View, key: &Key, wanted: &str) -> Result<EntryId, CliError> {
    let number = wanted.parse::<usize>().ok();
    let requests = || {
        let log = view.log().iter();
        log.filter(|entry| matches!(entry.payload, Payload::Request(_)))
    };
    let is_id = view.position(&EntryId::from(wanted)).is_some();
    match number.filter(|_| !is_id) {
        None => Ok(resolve(view, key, wanted)?),
        Some(n) => match requests().nth(n) {
            Some(entry) => Ok(entry.id.clone()),
            // A few digits begin some id by chance: that is not what was meant.
            None if wanted.len() < SHORTEST_PREFIX => Err(no_request(key, n, requests().count())),
            None => resolve(view, key, wanted).map_err(|_| no_request(key, n, requests().count())),
        },
    }
}

/// Of digits alone: shorter ones are numbers of requests.
const SHORTEST_PREFIX: usize = 6;

fn no_request(key: &Key, number: usize, requests: usize) -> CliError {
    CliError::Usage {
        what: format!("session `{key}` has neither a request nor an entry `{number}`"),
        hint: match requests {
            0 => "it has no requests yet".to_owned(),
            n => format!("its requests are 0 to {}", n - 1),
        },
    }
}

/// The log with a record of each request.
pub fn recorded(view: &View, settings: Settings) -> Result<View, CliError> {
    let log = view.log().iter();
    let entries = log.map(|entry| entry.as_ref().clone()).collect();
    Ok(replay::recorded(settings, entries)?)
}
