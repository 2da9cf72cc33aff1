//! The figures that undertext claims, each as a ratio against a named yardstick measured in the same run.
//!
//! Both sides run in turn, A B A B, and the ratio is that of the medians, because machines are noisy. Name figures to run
//! only these: `cargo bench -- append revert`; `--mb=100` makes the agents' sessions of that size instead of 1,000 MB,
//! `--into=FOLDER` makes them there and measures nothing.
//!
//! Invariant: figures write into a temporary folder beside the build.

#![allow(missing_docs, reason = "a benchmark has no readers of its documentation")]
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::needless_pass_by_value,
    reason = "a benchmark stops at the first surprise and prints"
)]

mod agents;
mod compact;
mod context;
mod cut;
mod generator;
mod native;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use undertext::{
    model::Role,
    ops::{self, Archive, Layers, Machine, Session, Workspace},
    store::Access,
    wire::Draft,
};

const UNDERTEXT: &str = env!("CARGO_BIN_EXE_undertext");

/// A figure measures and prints.
type Figure = fn(&Arguments);

/// What the command line says.
struct Arguments {
    /// How many megabytes the agents' sessions have.
    megabytes: u64,
}

fn main() {
    let (options, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with('-'));
    let megabytes = options.iter().find_map(|option| option.strip_prefix("--mb=")?.parse().ok());
    let arguments = Arguments { megabytes: megabytes.unwrap_or(1000) };
    if let Some(folder) = options.iter().find_map(|option| option.strip_prefix("--into=")) {
        agents::sessions(&arguments, Path::new(folder));
        return;
    }
    let figures: [(&str, Figure); 22] = [
        ("append", native::append),
        ("batch", native::batch),
        ("process", native::process),
        ("tail", native::tail),
        ("revert", native::revert),
        ("sessions", native::sessions),
        ("verify-ids", native::verify_ids),
        ("verify-bytes", native::verify_bytes),
        ("import", agents::import),
        ("unchanged", agents::unchanged),
        ("path", agents::path),
        ("forks", agents::forks),
        ("size", agents::size),
        ("pairs", context::pairs),
        ("context", context::context),
        ("tokens", context::tokens),
        ("tokens-again", context::tokens_again),
        ("truncate", cut::truncate),
        ("audit", cut::audit),
        ("compact", compact::extract),
        ("compact-store", compact::store),
        ("turn", compact::turn),
    ];
    for (name, figure) in figures {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            figure(&arguments);
        }
    }
    let size = std::fs::metadata(UNDERTEXT).unwrap().len();
    println!("binary           {:.1} MB (limit 18)", bytes(size) / 1e6);
}

/// Runs both sides in turn and prints the ratio of their medians; each side says what a part of its time is.
fn compare(
    name: &str,
    limit: f64,
    rounds: usize,
    (ours, mut a): (&str, impl FnMut() -> Duration),
    (yardstick, mut b): (&str, impl FnMut() -> Duration),
) {
    let (mut times, mut others) = (Vec::new(), Vec::new());
    a();
    b();
    for _ in 0..rounds {
        times.push(a());
        others.push(b());
    }
    times.sort_unstable();
    others.sort_unstable();
    let (ours_is, other_is) = (times[rounds / 2], others[rounds / 2]);
    let ratio = ours_is.as_secs_f64() / other_is.as_secs_f64();
    println!(
        "{name:<16} {ratio:>6.2} x (limit {limit})   {ours} {ours_is:?}, {yardstick} {other_is:?}, {rounds} rounds"
    );
}

/// Runs one side and prints its median against a limit in time.
fn within(name: &str, limit: Duration, rounds: usize, mut ours: impl FnMut() -> Duration) {
    ours();
    let mut times: Vec<Duration> = (0..rounds).map(|_| ours()).collect();
    times.sort_unstable();
    println!("{name:<16} {:?} (limit {limit:?})   {rounds} rounds", times[rounds / 2]);
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

#[expect(clippy::cast_precision_loss, reason = "sizes are shown to one digit")]
fn bytes(n: u64) -> f64 {
    n as f64
}

fn folder() -> tempfile::TempDir {
    // Beside the build, which is on a disk; the temporary folder may be in memory, where a sync is free.
    tempfile::tempdir_in(Path::new(UNDERTEXT).parent().unwrap()).unwrap()
}

fn open(folder: &Path) -> Archive {
    Archive::open(folder, Access::Write, Box::new(Machine)).unwrap()
}

fn begin(archive: &mut Archive) -> (Session, Workspace) {
    let workspace = Workspace { folder: "/w".into(), ..Workspace::default() };
    let created = ops::new(archive, &Layers::default(), &workspace).unwrap();
    (created.session, workspace)
}

/// Text of about so many bytes that no other call gives.
fn text(seed: usize, length: usize) -> String {
    let mut text = String::new();
    let mut state = seed as u64 + 1;
    while text.len() < length {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(WORDS[(state >> 33) as usize % WORDS.len()]);
        text.push(' ');
    }
    text
}

const WORDS: [&str; 24] = [
    "the",
    "file",
    "was",
    "changed",
    "let",
    "value",
    "=",
    "fn",
    "return",
    "error:",
    "expected",
    "src/main.rs",
    "test",
    "passed",
    "0x1f",
    "branch",
    "commit",
    "line",
    "412",
    "because",
    "we",
    "cannot",
    "{",
    "}",
];

fn message(seed: usize, length: usize) -> Draft {
    let role = if seed.is_multiple_of(2) { Role::User } else { Role::Assistant };
    Draft::Message(role, text(seed, length))
}

/// A session of so many messages, appended a thousand at a time.
fn filled(archive: &mut Archive, count: usize, length: usize) -> (Session, Workspace) {
    let (session, workspace) = begin(archive);
    for from in (0..count).step_by(1000) {
        let drafts: Vec<Draft> =
            (from..count.min(from + 1000)).map(|seed| message(seed, length)).collect();
        ops::append(archive, &session, &workspace, &drafts).unwrap();
    }
    (session, workspace)
}
