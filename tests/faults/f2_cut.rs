//! F2: the log cut at every byte offset.

use std::sync::{Arc, Mutex};

use contexture_store::{Durability, Expected, FileLog, FileOptions, Log, Notice, Record};

use crate::faults::{ids, record, stream};

#[test]
fn a_log_cut_at_every_byte_opens_and_goes_on() {
    // Appends of one, two and three records: a cut inside one takes all of it.
    let appends: Vec<Vec<Record>> = [1, 2, 3, 1, 3]
        .iter()
        .enumerate()
        .map(|(n, &size)| (0..size).map(|i| record(&format!("{n}-{i} ü"))).collect())
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions/s/log.jsonl");
    let mut ends = vec![0];
    {
        let log = FileLog::new(folder.path(), FileOptions::default());
        for append in &appends {
            log.append(&stream(), Expected::Any, append).unwrap();
            ends.push(std::fs::metadata(&path).unwrap().len() as usize);
        }
    }
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(ends.last(), Some(&whole.len()));
    for cut in 0..=whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        // A line that only lacks its end is whole: nothing is taken that is there.
        let survive = ends
            .iter()
            .filter(|&&end| end <= cut || end == cut + 1)
            .count()
            - 1;
        let survive = if cut == 0 { 0 } else { survive };
        let wanted: Vec<String> = appends[..survive]
            .iter()
            .flatten()
            .map(|record| record.id().to_string())
            .collect();
        let healed = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&healed);
        let options = FileOptions {
            durability: Durability::Os,
            listener: Arc::new(move |notice| heard.lock().unwrap().push(notice.clone())),
            ..FileOptions::default()
        };
        let log = FileLog::new(folder.path(), options);
        // Who only reads sees the same, and changes nothing.
        assert_eq!(ids(&log, &stream()), wanted, "cut at {cut}");
        assert_eq!(
            log.tail(&stream()).unwrap().map(String::from).as_ref(),
            wanted.last()
        );
        assert_eq!(std::fs::metadata(&path).unwrap().len() as usize, cut);
        log.append(&stream(), Expected::Any, &[record("next")])
            .unwrap();
        let mut after = wanted;
        after.push("next".to_owned());
        assert_eq!(ids(&log, &stream()), after, "cut at {cut}");
        let lost = cut.saturating_sub(ends[survive]);
        let said: Vec<Notice> = healed.lock().unwrap().clone();
        match lost {
            0 => assert_eq!(said, [], "cut at {cut}"),
            _ => assert_eq!(
                said,
                [Notice::Healed {
                    stream: stream(),
                    bytes: lost as u64
                }]
            ),
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
    }
    println!(
        "F2: cut at {} offsets, each opened, read and appended to",
        whole.len() + 1
    );
}
