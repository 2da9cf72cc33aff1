//! Any bytes, in any two parts, come back as they were: through the lines, and through a session of any format.
//!
//! The first byte says where the parts are cut. `tests/it/round_trip.rs` holds the claims and runs them without a fuzzer.

#![no_main]

#[path = "../../tests/it/round_trip.rs"]
mod round_trip;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((cut, bytes)) = bytes.split_first() {
        let cut = bytes.len() * usize::from(*cut) / 255;
        round_trip::lines_agree_with_a_simple_reader(bytes);
        round_trip::bytes_come_back(bytes, cut);
    }
});
