//! The line to a server, which goes down and comes back while its tools stay.

use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::service::{Peer, RoleClient, ServiceError};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use super::{McpError, ServerConfig};
use crate::Secrets;

/// How long a call waits for a server that is being started again.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct Link {
    pub server: String,
    pub timeout: Duration,
    /// What its tools must not repeat in what they say of themselves.
    pub secrets: Secrets,
    line: watch::Sender<Line>,
}

#[derive(Clone)]
pub(super) enum Line {
    /// It is there.
    Up(Way),
    /// It may come back.
    Down(String),
    /// It does not come back.
    Gone(String),
}

/// The way to a server that is there.
#[derive(Clone)]
pub(super) struct Way {
    pub peer: Peer<RoleClient>,
    /// Whom to tell when nothing can be sent over it any more.
    pub broken: Arc<Notify>,
    /// Why nothing is read from it any more.
    pub fault: Arc<OnceLock<String>>,
}

impl Link {
    pub fn new(config: &ServerConfig, line: Line) -> Self {
        Self {
            server: config.name.clone(),
            timeout: config.timeout,
            secrets: Secrets::from_env().and(config.secrets()),
            line: watch::Sender::new(line),
        }
    }

    pub fn set(&self, line: Line) {
        self.line.send_replace(line);
    }

    /// Asks the server something. Dropping this cancels what was asked.
    pub async fn ask<T, F>(&self, ask: impl FnOnce(Peer<RoleClient>) -> F) -> Result<T, McpError>
    where
        F: Future<Output = Result<T, ServiceError>>,
    {
        let way = self.way().await?;
        match timeout(self.timeout, ask(way.peer)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                if matches!(
                    error,
                    ServiceError::TransportSend(_) | ServiceError::TransportClosed
                ) {
                    way.broken.notify_one();
                }
                Err(match way.fault.get() {
                    Some(fault) => McpError::TooMuch {
                        server: self.server.clone(),
                        what: fault.clone(),
                    },
                    None => McpError::from_service(&self.server, &error),
                })
            }
            Err(_) => Err(McpError::TimedOut {
                server: self.server.clone(),
                after: self.timeout,
            }),
        }
    }

    async fn way(&self) -> Result<Way, McpError> {
        let mut line = self.line.subscribe();
        let settled = line.wait_for(|line| !matches!(line, Line::Down(_)));
        let line = match timeout(PATIENCE.min(self.timeout), settled).await {
            Ok(Ok(line)) => line.clone(),
            _ => self.line.borrow().clone(),
        };
        match line {
            Line::Up(way) => Ok(way),
            Line::Down(why) | Line::Gone(why) => Err(McpError::NotRunning {
                server: self.server.clone(),
                why,
            }),
        }
    }
}
