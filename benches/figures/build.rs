//! How long a newcomer waits: a cold build, as by `cargo run`, then `cargo test`. The CPU time of all of cargo's processes is
//! printed too, because it hardly depends on the machine's other load.

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

/// Runs cargo, and prints the elapsed time and the CPU time of all its processes.
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

/// Returns the CPU time of all ended child processes.
pub(crate) fn used() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The program's name, in brackets, may contain anything. The times, in hundredths of a second, are fields 16 and 17.
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
