//! An agent's database of any bytes is read or refused. `tests/it/fuzz.rs` holds the claim.

#![no_main]

#[path = "../../tests/it/fuzz.rs"]
#[allow(dead_code)]
mod fuzz;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::database(bytes));
