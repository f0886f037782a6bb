#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| contexture_fuzz::pool(data));
