//! The connections, and what happens when one is lost.
//!
//! A few connections, each used by one call at a time, rather than one with all calls in line: a
//! server works through a connection in order, so there a call would wait for the disk and for the
//! row locks of every call before it. And a call that owns its connection can simply throw it away
//! when anything is wrong with it.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::Client;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::PgOptions;
use super::connect::{Meter, connect};
use super::failure::Failure;
use super::target::Target;
use crate::StoreError;

pub struct Pool {
    target: Target,
    tls: MakeRustlsConnect,
    options: PgOptions,
    permits: Semaphore,
    idle: RefCell<Vec<Session>>,
    /// Whether the database was ever reached.
    met: Cell<bool>,
}

/// The waits between attempts double from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The server ends a statement that takes too long. One that does not even do that is given up.
const GRACE: Duration = Duration::from_secs(2);

impl Pool {
    pub fn new(target: Target, tls: MakeRustlsConnect, options: PgOptions) -> Self {
        Self {
            permits: Semaphore::new(options.connections.max(1)),
            target,
            tls,
            options,
            idle: RefCell::default(),
            met: Cell::new(false),
        }
    }

    /// Runs something on a connection, and again on another one when that is lost. It must be
    /// something that may be done twice: nobody knows whether it was.
    pub async fn run<T>(
        &self,
        work: &impl AsyncFn(&Client) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let mut lost: Option<Instant> = None;
        let mut pause = FIRST_PAUSE;
        loop {
            let left = lost.map_or(self.options.patience, |lost| {
                self.options.patience.saturating_sub(lost.elapsed())
            });
            let failure = match self.attempt(work, left).await {
                Ok(done) => return Ok(done),
                Err(failure) => failure,
            };
            let since = *lost.get_or_insert_with(Instant::now);
            let over = since.elapsed() + pause >= self.options.patience;
            if over || !failure.may_pass(self.met.get()) {
                let waited = over.then(|| since.elapsed());
                return Err(failure.into_error(&self.target, waited));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Ends the connections as the server likes it, but does not wait long for that.
    pub async fn close(&self) {
        for Session {
            client, mut driver, ..
        } in self.idle.take()
        {
            drop(client);
            let _ = timeout(Duration::from_millis(200), &mut driver.0).await;
        }
    }

    async fn attempt<T>(
        &self,
        work: &impl AsyncFn(&Client) -> Result<T, Failure>,
        to_connect: Duration,
    ) -> Result<T, Failure> {
        let limit = self.options.statement_timeout + GRACE;
        let Ok(_permit) = timeout(limit, self.permits.acquire()).await else {
            return Err(Failure::Busy(limit));
        };
        let waiting = self.idle.borrow_mut().pop();
        let session = match waiting {
            Some(session) if !session.client.is_closed() => session,
            _ => timeout(to_connect, self.open())
                .await
                .unwrap_or(Err(Failure::Silent(to_connect)))?,
        };
        session.meter.reset();
        // After any failure the connection goes, too: it may be in the middle of something.
        let done = timeout(limit, work(&session.client))
            .await
            .unwrap_or(Err(Failure::Silent(limit)))
            .map_err(|failure| session.meter.explain(failure))?;
        self.idle.borrow_mut().push(session);
        Ok(done)
    }

    async fn open(&self) -> Result<Session, Failure> {
        let connected = connect(&self.target.config, &self.tls).await?;
        let session = Session {
            client: connected.client,
            driver: Driver(connected.driver),
            meter: connected.meter,
        };
        let set = session.client.batch_execute(&self.settings()).await;
        set.map_err(|error| session.meter.explain(error.into()))?;
        self.met.set(true);
        Ok(session)
    }

    /// Whatever the server's own settings are: durable when acknowledged, each statement sees what
    /// was committed before it, and no plan reads a whole table because it was small once.
    fn settings(&self) -> String {
        format!(
            "SET statement_timeout = {};
             SET default_transaction_isolation = 'read committed';
             SET enable_seqscan = off;
             SELECT set_config('synchronous_commit', 'on', false)
                 WHERE current_setting('synchronous_commit') <> 'remote_apply'",
            self.options
                .statement_timeout
                .as_millis()
                .clamp(1, i32::MAX as u128)
        )
    }
}

struct Session {
    client: Client,
    driver: Driver,
    meter: Meter,
}

/// What moves a connection's bytes. It ends with the session, whatever the server does.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}
