//! What a stranger waits for: a cold build, as `cargo run` makes one, and then `cargo test`. The processor time of all that
//! cargo runs is printed too, because it hardly depends on what else the machine does.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crate::{Arguments, bytes};

/// Builds the program into an empty folder, and runs the tests there.
pub(crate) fn build(_: &Arguments) {
    let target = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    cargo(target.path(), "build", 180);
    println!("target           {:.2} GB (limit 1.2)", bytes(size(target.path())) / 1e9);
    cargo(target.path(), "test", 480);
}

/// Runs cargo and prints how long it took, by the clock and in all its processes.
fn cargo(target: &Path, name: &str, limit: u64) {
    let mut command = Command::new("cargo");
    command.args([name, "--quiet", "--locked", "--offline", "--target-dir"]).arg(target);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("UNDERTEXT_SWEEP");
    let (begun, before) = (Instant::now(), used());
    let ended = command.stdout(Stdio::null()).status().unwrap();
    let (took, used) = (begun.elapsed().as_secs(), used().saturating_sub(before).as_secs());
    let failed = if ended.success() { "" } else { ", and failed" };
    println!("{name:<16} {took} s (limit {limit} on two cores), {used} s of processors{failed}");
}

/// Returns the processor time of all processes that have ended below this one.
pub(crate) fn used() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name of the program, in brackets, may hold anything; hundredths of a second are the 16th and the 17th field.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks = fields.split(' ').skip(13).take(2).map(|ticks| ticks.parse::<u64>().unwrap());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let size = |entry: std::fs::DirEntry| {
        let meta = entry.metadata().unwrap();
        if meta.is_dir() { size(&entry.path()) } else { meta.len() }
    };
    entries.map(size).sum()
}
