//! A model's answer of any bytes is an answer or an error. `tests/it/fuzz.rs` holds the claim.

#![no_main]

#[path = "../../tests/it/fuzz.rs"]
#[allow(dead_code)]
mod fuzz;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::stream(bytes));
