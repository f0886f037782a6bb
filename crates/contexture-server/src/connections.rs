//! The open connections, and which of them is closed to make room for a new one.
//!
//! Everybody on this machine has the same address, so refusing a peer's next connection would lock out the owner as well.
//! A new connection is therefore always taken, and the one that has been idle for longest is closed if there are too many.
//! Connections that have shown a valid secret are counted apart from those that have not, so that neither crowd out the
//! others. While a request with a valid secret is in progress its connection does not count and is not closed; how many
//! of those there may be is bounded by [`crate::access::Calls`].

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::Notify;

use crate::limits::Limits;

/// All open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: Limits,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    all: HashMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    peer: IpAddr,
    /// Whether it has ever shown a valid secret.
    known: bool,
    /// Whether a request with a valid secret is in progress.
    busy: bool,
    idle_since: Instant,
    evicted: Arc<Notify>,
}

/// An open connection. It leaves the table when it is dropped.
#[derive(Debug)]
pub(crate) struct Connection {
    id: u64,
    peer: IpAddr,
    evicted: Arc<Notify>,
    table: Arc<Connections>,
}

/// The connection that a request came over; none in a test without one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Peer(pub Option<Arc<Connection>>);

/// A request on a connection, up to where its answer is sent.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Connection>);

impl Connections {
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            open: Mutex::default(),
        })
    }

    /// Adds a connection, and closes the longest idle one if there are too many.
    pub fn open(self: &Arc<Self>, peer: IpAddr) -> Arc<Connection> {
        let peer = shared_address(peer);
        let evicted = Arc::new(Notify::new());
        let mut open = self.lock();
        let id = open.next;
        open.next += 1;
        let entry = Entry {
            peer,
            known: false,
            busy: false,
            idle_since: Instant::now(),
            evicted: Arc::clone(&evicted),
        };
        open.all.insert(id, entry);
        open.make_room(&self.limits, peer, false);
        drop(open);
        Arc::new(Connection {
            id,
            peer,
            evicted,
            table: Arc::clone(self),
        })
    }

    /// Closes the connection that has been idle for longest, an unknown one if there is any. Whether there was one.
    pub fn evict_one(&self) -> bool {
        let mut open = self.lock();
        open.evict(|entry| !entry.known) || open.evict(|_| true)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Closes what is beyond the limits, of this peer's connections first.
    fn make_room(&mut self, limits: &Limits, peer: IpAddr, known: bool) {
        if known {
            self.keep(limits.known, |entry| entry.known);
        } else {
            self.keep(limits.unknown_of_peer, |entry| {
                !entry.known && entry.peer == peer
            });
            self.keep(limits.unknown, |entry| !entry.known);
        }
    }

    /// Closes the longest idle ones of these until so many are left.
    fn keep(&mut self, max: usize, which: impl Fn(&Entry) -> bool) {
        let count = |open: &Self| {
            let idle = open
                .all
                .values()
                .filter(|entry| !entry.busy && which(entry));
            idle.count()
        };
        while count(self) > max && self.evict(&which) {}
    }

    /// Closes the longest idle one of these. Whether there was one.
    fn evict(&mut self, which: impl Fn(&Entry) -> bool) -> bool {
        let candidates = self
            .all
            .iter()
            .filter(|(_, entry)| !entry.busy && which(entry));
        let oldest = candidates.min_by_key(|(id, entry)| (entry.idle_since, **id));
        let Some(id) = oldest.map(|(id, _)| *id) else {
            return false;
        };
        if let Some(entry) = self.all.remove(&id) {
            entry.evicted.notify_one();
        }
        true
    }
}

impl Connection {
    /// Waits until the connection has to make room for another.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Begins a request.
    pub fn turn(self: &Arc<Self>) -> Turn {
        Turn(Arc::clone(self))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.table.lock().all.remove(&self.id);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let Connection {
            id, peer, table, ..
        } = &*self.0;
        let mut open = table.lock();
        if let Some(entry) = open.all.get_mut(id) {
            entry.busy = false;
            entry.idle_since = Instant::now();
            let known = entry.known;
            open.make_room(&table.limits, *peer, known);
        }
    }
}

impl Peer {
    /// The peer's address, as far as peers are told apart.
    pub fn address(&self) -> IpAddr {
        let connection = self.0.as_ref();
        connection.map_or(Ipv4Addr::UNSPECIFIED.into(), |connection| connection.peer)
    }

    /// Notes that the request showed a valid secret: until it is answered, the connection stays. `false` if the connection
    /// had to make room just before.
    pub fn admit(&self) -> bool {
        let Some(connection) = &self.0 else {
            return true;
        };
        let mut open = connection.table.lock();
        let entry = open.all.get_mut(&connection.id);
        entry.is_some_and(|entry| {
            (entry.known, entry.busy) = (true, true);
            true
        })
    }
}

/// The address by which a peer is counted: one for this machine, whose users have all of 127.0.0.0/8, and one for a
/// network of IPv6, of which a single machine has 2^64 addresses.
fn shared_address(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        ip if ip.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) => {
            let [a, b, c, d, ..] = ip.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        ip => ip,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn table() -> Arc<Connections> {
        Connections::new(Limits::from_open_files(1_024))
    }

    fn is_open(connection: &Connection) -> bool {
        connection.table.lock().all.contains_key(&connection.id)
    }

    fn address(n: u32) -> IpAddr {
        Ipv4Addr::from(0x0a00_0000 + n).into()
    }

    /// Attack 49.
    #[test]
    fn a_new_connection_closes_the_longest_idle_one_of_its_peer() {
        let table = table();
        let other = table.open(address(1));
        let all: Vec<_> = (0..=table.limits.unknown_of_peer)
            .map(|_| table.open(HERE))
            .collect();
        assert!(is_open(&other), "another peer's");
        assert!(!is_open(&all[0]) && all[1..].iter().all(|one| is_open(one)));
        drop(all[1].turn());
        let _next = table.open(HERE);
        assert!(is_open(&all[1]), "it was used since");
        assert!(!is_open(&all[2]) && is_open(&all[3]));
    }

    /// Attack 49.
    #[test]
    fn many_peers_together_are_bounded() {
        let table = table();
        let all: Vec<_> = (0..2_000).map(|n| table.open(address(n))).collect();
        let open = all.iter().filter(|one| is_open(one)).count();
        assert_eq!(open, table.limits.unknown);
        assert!(is_open(&all[1_999]));
        drop(all);
        assert!(table.lock().all.is_empty());
    }

    /// Attack 49.
    #[test]
    fn a_request_in_progress_keeps_its_connection() {
        let table = table();
        let connection = table.open(HERE);
        let peer = Peer(Some(Arc::clone(&connection)));
        let turn = connection.turn();
        assert!(peer.admit());
        let flood = || -> Vec<_> { (0..500).map(|_| table.open(HERE)).collect() };
        drop(flood());
        assert!(is_open(&connection), "in progress");
        drop(turn);
        drop(flood());
        assert!(
            is_open(&connection),
            "those who showed nothing close nobody else's"
        );
        // Whoever has a secret is bounded as well.
        let known: Vec<_> = (0..table.limits.known)
            .map(|_| {
                let other = table.open(HERE);
                let turn = other.turn();
                assert!(Peer(Some(Arc::clone(&other))).admit());
                drop(turn);
                other
            })
            .collect();
        assert!(!is_open(&connection) && is_open(&known[0]));
        assert!(!peer.admit(), "it is closed already");
    }

    #[test]
    fn want_of_file_handles_closes_an_unknown_one_first() {
        let table = table();
        let known = table.open(HERE);
        let turn = known.turn();
        assert!(Peer(Some(Arc::clone(&known))).admit());
        drop(turn);
        let unknown = table.open(HERE);
        assert!(table.evict_one());
        assert!(is_open(&known) && !is_open(&unknown));
        assert!(table.evict_one());
        assert!(!is_open(&known) && !table.evict_one());
    }

    #[test]
    fn peers_are_told_apart_by_what_they_cannot_choose() {
        let shared = |text: &str| shared_address(text.parse().unwrap()).to_string();
        for here in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert_eq!(shared(here), "127.0.0.1");
        }
        assert_eq!(shared("10.0.0.7"), "10.0.0.7");
        assert_eq!(shared("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }
}
