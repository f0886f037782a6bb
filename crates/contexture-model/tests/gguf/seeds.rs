//! The fuzz target over its seeds: among them every input that once broke a promise.

#[path = "../../../../fuzz/src/gguf.rs"]
mod target;

use std::path::Path;

#[test]
fn every_seed_passes_its_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/gguf");
    let mut seeds = 0;
    for seed in std::fs::read_dir(folder).unwrap() {
        target::gguf(&std::fs::read(seed.unwrap().path()).unwrap());
        seeds += 1;
    }
    assert!(seeds > 0, "gguf has no seeds");
}
