//! What servers may ask of us: where the project is. Nothing else is given to them.

// Roots are on their way out of the protocol, and servers in use ask for them.
#![allow(deprecated)]

use std::path::Path;
use std::sync::Arc;

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ErrorData, Implementation, ListRootsResult, ProtocolVersion,
    Root, RootsCapabilities,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::Notify;

/// Answers servers. Requests for a model's answer or the user's input are refused by default.
#[derive(Clone)]
pub(super) struct Handler {
    root: String,
    relist: Arc<Notify>,
}

impl Handler {
    /// `relist` is told when the list of tools changed.
    pub fn new(root: &Path, relist: Arc<Notify>) -> Self {
        Self {
            root: file_url(root),
            relist,
        }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut can = ClientCapabilities::default();
        can.roots = Some(RootsCapabilities::default());
        let us = Implementation::new("contexture", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(can, us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new(self.root.clone())]))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.relist.notify_one();
    }
}

fn file_url(path: &Path) -> String {
    use std::fmt::Write as _;
    let mut url = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => url.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => url.push(char::from(*byte)),
            byte => {
                let _ = write!(url, "%{byte:02X}");
            }
        }
    }
    url
}
