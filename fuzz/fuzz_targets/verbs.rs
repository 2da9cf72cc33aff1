//! A session's file of any bytes goes through the verbs of every format. `tests/it/fuzz.rs` holds the claim.

#![no_main]

#[path = "../../tests/it/fuzz.rs"]
#[allow(dead_code)]
mod fuzz;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::verbs(bytes));
