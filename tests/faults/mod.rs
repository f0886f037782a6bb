//! Faults F1 to F7: what is acknowledged survives them, and each says how often it was tried.
//!
//! F2 to F4 run on a disk of our own that fails, fills up and forgets (`sim`); F1, F4, F5 and F6 also
//! run the built `ctx` on the real one.

mod ctx;
mod f1_again;
mod f1_kill;
mod f2_cut;
mod f3_power;
mod f4_disk;
mod f5_races;
mod f5_writers;
mod f6_damage;
mod f7_servers;
mod sim;

use contexture_store::{From, Key, Log, Record, Stream};
use serde_json::json;

fn stream() -> Stream {
    Stream::session(Key::new("s").unwrap())
}

fn record(id: &str) -> Record {
    let payload = json!({"says": format!("{id}: {}", "x".repeat(40))});
    Record::new(&json!({"id": id, "type": "custom", "payload": payload})).unwrap()
}

fn ids(log: &dyn Log, stream: &Stream) -> Vec<String> {
    let records = log.read(stream, From::Start).unwrap();
    records
        .map(|record| record.unwrap().id().to_string())
        .collect()
}

/// Numbers that look random, the same for the same seed.
struct Random(u64);

impl Random {
    fn new() -> Self {
        let seed = std::env::var("CONTEXTURE_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed: u64 = seed.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.unwrap().subsec_nanos().into()
        });
        println!("seed {seed} (CONTEXTURE_SEED repeats it)");
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}
