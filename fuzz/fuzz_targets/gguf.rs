#![no_main]

#[path = "../src/gguf.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::gguf(data));
