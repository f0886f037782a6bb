//! The fuzz targets over their seeds: among them every input that once broke a promise.

#[path = "../../../fuzz/src/lib.rs"]
mod targets;

use std::path::Path;

#[test]
fn every_seed_passes_its_target() {
    for (name, target) in [
        ("build_input", targets::build_input as fn(&[u8])),
        ("entries", targets::entries),
        ("import", targets::import),
        ("message", targets::message),
        ("compose", targets::compose),
        ("pool", targets::pool),
        ("template", targets::template),
        ("tokenizer_json", targets::tokenizer_json),
    ] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
        let mut seeds = 0;
        for seed in std::fs::read_dir(folder.join(name)).unwrap() {
            target(&std::fs::read(seed.unwrap().path()).unwrap());
            seeds += 1;
        }
        assert!(seeds > 0, "{name} has no seeds");
    }
}
