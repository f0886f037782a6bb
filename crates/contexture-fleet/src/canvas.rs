//! What agents show to people: one page each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use contexture_agent::clock;
use contexture_store::{Expected, From, Key, Kind, Log, Record, StoreError, Stream};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The longest page.
pub const MOST_BYTES: usize = 512 << 10;
/// The longest title.
const TITLE: usize = 200;

/// An agent's page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Canvas {
    /// Whose.
    pub agent_name: String,
    /// The page. It is shown in a frame without rights.
    pub html: String,
    /// A few words for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When it was shown.
    pub updated_at: String,
    /// Whether it came with the project's folder from somebody else.
    #[serde(
        default,
        skip_deserializing,
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub foreign: bool,
}

/// All pages, kept over a restart.
pub struct Canvases {
    log: Arc<dyn Log>,
    pages: Mutex<BTreeMap<String, Canvas>>,
}

/// Why a page is not shown.
#[derive(Debug, thiserror::Error)]
pub enum CanvasError {
    /// It is too long.
    #[error("the page has {bytes} bytes, and {MOST_BYTES} are shown")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
    /// It could not be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Canvases {
    /// Reads the pages that were kept.
    pub fn open(log: Arc<dyn Log>) -> Result<Self, StoreError> {
        let mut pages = BTreeMap::new();
        for info in log.list(Kind::Canvas)? {
            let foreign = !log.is_own(&info.stream)?;
            for record in log.read(&info.stream, From::Start)? {
                if let Ok(canvas) = record?.read::<Canvas>()
                    && canvas.agent_name == info.stream.key.as_str()
                {
                    pages.insert(canvas.agent_name.clone(), Canvas { foreign, ..canvas });
                }
            }
        }
        Ok(Self {
            log,
            pages: Mutex::new(pages),
        })
    }

    /// Shows a page in the place of the agent's last one. It is on the disk before it is shown.
    pub fn update(
        &self,
        agent: &Key,
        html: String,
        title: Option<String>,
    ) -> Result<Canvas, CanvasError> {
        if html.len() > MOST_BYTES {
            return Err(CanvasError::TooLong { bytes: html.len() });
        }
        let canvas = Canvas {
            agent_name: agent.to_string(),
            html,
            title: title.map(|title| title.chars().take(TITLE).collect()),
            updated_at: clock::now(),
            foreign: false,
        };
        let mut kept = json!(canvas);
        kept["id"] = json!(canvas.updated_at);
        let mut pages = self.lock();
        self.log
            .replace(&place(agent), Expected::Any, &[Record::new(&kept)?])?;
        pages.insert(agent.to_string(), canvas.clone());
        Ok(canvas)
    }

    /// Takes a page away. Whether there was one.
    pub fn clear(&self, agent: &Key) -> Result<bool, StoreError> {
        let mut pages = self.lock();
        if !pages.contains_key(agent.as_str()) {
            return Ok(false);
        }
        self.log.remove(&place(agent))?;
        Ok(pages.remove(agent.as_str()).is_some())
    }

    /// An agent's page.
    pub fn get(&self, agent: &str) -> Option<Canvas> {
        self.lock().get(agent).cloned()
    }

    /// All pages, by agent.
    pub fn list(&self) -> Vec<Canvas> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Canvas>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(agent: &Key) -> Stream {
    Stream::new(Kind::Canvas, agent.clone())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use contexture_store::{FileLog, FileOptions};

    use super::*;

    #[test]
    fn a_page_is_the_agents_last_and_outlives_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let log = Arc::new(FileLog::new(folder.path(), FileOptions::default()));
            Canvases::open(log).unwrap()
        };
        let bot = Key::new("bot").unwrap();
        let canvases = open();
        canvases.update(&bot, "<p>1".into(), None).unwrap();
        canvases
            .update(&bot, "<p>2".into(), Some("t".repeat(300)))
            .unwrap();
        let again = open();
        let page = again.get("bot").unwrap();
        assert_eq!(
            (page.html.as_str(), page.title.unwrap().len()),
            ("<p>2", 200)
        );
        assert_eq!(again.list().len(), 1);
        assert!(again.clear(&bot).unwrap() && !again.clear(&bot).unwrap());
        assert!(open().list().is_empty());
    }

    #[test]
    fn a_page_that_is_too_long_leaves_the_last_one() {
        let folder = tempfile::tempdir().unwrap();
        let log = Arc::new(FileLog::new(folder.path(), FileOptions::default()));
        let canvases = Canvases::open(log).unwrap();
        let bot = Key::new("bot").unwrap();
        canvases.update(&bot, "x".repeat(MOST_BYTES), None).unwrap();
        let long = canvases.update(&bot, "x".repeat(MOST_BYTES + 1), None);
        assert!(matches!(long, Err(CanvasError::TooLong { .. })));
        assert_eq!(canvases.get("bot").unwrap().html.len(), MOST_BYTES);
    }
}
