//! The figures that undertext claims, each as a ratio to a named yardstick measured in the same run.
//!
//! Both sides run alternately, A B A B. The ratio is given for the medians, because machines are noisy, for the tenth
//! percentiles, and for the means, because postponed work is paid for later. Name figures, or the files they are in, to run only
//! these: `cargo bench -- append growth`. `--mb=100` sets the size of the agents' sessions, 1,000 MB by default; `--into=FOLDER`
//! creates them there and measures nothing. If `UNDERTEXT_BASELINE` names another binary, each figure of a process is paired with
//! it, on a store that it created itself. `benches/README.md` describes each figure.
//!
//! Invariant: figures never write outside a temporary folder next to the build.

#![allow(missing_docs, reason = "a benchmark has no readers of its documentation")]
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::needless_pass_by_value,
    reason = "a benchmark stops at the first surprise and prints"
)]

mod agents;
mod back;
mod browse;
mod build;
mod compact;
mod context;
mod cut;
mod finding;
mod generator;
mod growth;
mod kept;
mod native;
mod page;
mod plain;
mod search;
mod secrets;

use std::{
    collections::BTreeMap,
    io::{BufWriter, Write as _},
    ops::Range,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::LazyLock,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use undertext::{
    store::Access,
    verbs::{self, Archive, Layers, Machine, Session, Workspace},
    wire::{Draft, Speaker},
};

const UNDERTEXT: &str = env!("CARGO_BIN_EXE_undertext");

/// Measures and prints a figure.
type Figure = fn(&Arguments);

/// The parsed command line.
struct Arguments {
    /// Total size of the agents' sessions, in megabytes.
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
    let figures: [(&str, &str, Figure); 45] = [
        ("native", "append", native::append),
        ("native", "batch", native::batch),
        ("native", "process", native::process),
        ("native", "tail", native::tail),
        ("native", "revert", native::revert),
        ("native", "sessions", native::sessions),
        ("native", "verify-ids", native::verify_ids),
        ("native", "verify", native::verify),
        ("agents", "import", agents::import),
        ("agents", "unchanged", agents::unchanged),
        ("agents", "burst", agents::burst),
        ("agents", "path", agents::path),
        ("agents", "forks", agents::forks),
        ("agents", "size", agents::size),
        ("search", "scan", search::scan),
        ("search", "index", search::index),
        ("search", "index-many", search::many),
        ("search", "finding", finding::finding),
        ("secrets", "audit", secrets::audit),
        ("secrets", "redact", secrets::redact),
        ("context", "pairs", context::pairs),
        ("context", "context", context::context),
        ("context", "tokens", context::tokens),
        ("context", "tokens-again", context::tokens_again),
        ("cut", "truncate", cut::truncate),
        ("cut", "audit", cut::audit),
        ("compact", "compact", compact::extract),
        ("compact", "compact-store", compact::store),
        ("compact", "compact-check", compact::check),
        ("compact", "turn", compact::turn),
        ("compact", "kept", kept::kept_facts),
        ("growth", "lists", growth::lists),
        ("growth", "fresh", growth::fresh),
        ("growth", "log", growth::log),
        ("growth", "status", growth::status),
        ("growth", "shapes", growth::shapes),
        ("growth", "long", growth::long),
        ("growth", "steps", growth::steps),
        ("growth", "back", back::back),
        ("growth", "peers", growth::peers),
        ("growth", "deep", growth::deep),
        ("browse", "keys", browse::keys),
        ("browse", "long", browse::long),
        ("page", "page", page::page),
        ("build", "build", build::build),
    ];
    for (group, name, figure) in figures {
        // Building and testing everything takes longer than most other figures together, so these must be named.
        let is_all = wanted.is_empty() && group != "build";
        if is_all || wanted.iter().any(|wanted| wanted == name || wanted == group) {
            figure(&arguments);
        }
    }
    let size = std::fs::metadata(UNDERTEXT).unwrap().len();
    println!("binary           {:.1} MB (limit 18)", bytes(size) / 1e6);
}

/// A longer run is killed, and not repeated.
const LONG: Duration = Duration::from_secs(20);

/// Returns the program to measure.
fn own() -> &'static Path {
    static OWN: LazyLock<PathBuf> = LazyLock::new(|| installed(Path::new(UNDERTEXT), "undertext"));
    &OWN
}

/// Returns the program that figures of processes are paired with, if there is one.
#[expect(clippy::disallowed_methods, reason = "another binary lies outside of the project")]
fn baseline() -> Option<&'static Path> {
    static BASELINE: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let program = std::env::var_os("UNDERTEXT_BASELINE")?;
        Some(installed(Path::new(&program), "baseline"))
    });
    BASELINE.as_deref()
}

/// Copies a program, as installing does. The linker's output is in memory in many small pieces, which makes each start slower.
#[expect(clippy::disallowed_methods, reason = "a program that was built is copied whole")]
fn installed(program: &Path, name: &str) -> PathBuf {
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&copy);
    std::fs::copy(program, &copy).unwrap();
    copy
}

/// The times of one side, shortest first.
struct Times(Vec<Duration>);

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    fn median(&self) -> Duration {
        self.0[self.0.len() / 2]
    }

    fn tenth(&self) -> Duration {
        self.0[self.0.len() / 10]
    }

    fn mean(&self) -> Duration {
        self.0.iter().sum::<Duration>() / u32::try_from(self.0.len()).unwrap()
    }

    /// Formats the ratios of the medians, the tenth percentiles and the means.
    fn over(&self, other: &Self) -> String {
        let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
        let median = ratio(self.median(), other.median());
        let tenth = ratio(self.tenth(), other.tenth());
        let mean = ratio(self.mean(), other.mean());
        format!("{median:>6.2} x, {tenth:.2} x, mean {mean:.2} x")
    }
}

/// Runs both sides alternately and prints the ratios of their times. Each side returns the part of its time that counts.
fn compare(
    name: &str,
    limit: f64,
    rounds: usize,
    (ours, mut a): (&str, impl FnMut() -> Duration),
    yardstick: (&str, impl FnMut() -> Duration),
) {
    measure(name, limit, rounds, None, (ours, |_: &Path| a()), yardstick);
}

/// Compares a program like [`compare`], and pairs it with the baseline.
fn compare_programs(
    name: &str,
    limit: f64,
    rounds: usize,
    ours: (&str, impl FnMut(&Path) -> Duration),
    yardstick: (&str, impl FnMut() -> Duration),
) {
    measure(name, limit, rounds, baseline(), ours, yardstick);
}

fn measure(
    name: &str,
    limit: f64,
    rounds: usize,
    baseline: Option<&Path>,
    (ours, mut a): (&str, impl FnMut(&Path) -> Duration),
    (yardstick, mut b): (&str, impl FnMut() -> Duration),
) {
    a(own());
    b();
    let mut pairs = Pairs::begin(baseline, &mut a);
    let (mut times, mut others) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        times.push(a(own()));
        others.push(b());
        pairs.run(&mut a);
    }
    let (times, others) = (Times::of(times), Times::of(others));
    println!(
        "{name:<16} {} (limit {limit})   {ours} {:?}, {yardstick} {:?}, {rounds} rounds",
        times.over(&others),
        times.median(),
        others.median()
    );
    pairs.tell(&times);
}

/// Runs one side, and prints its median against a time limit.
fn within(name: &str, limit: Duration, rounds: usize, mut ours: impl FnMut() -> Duration) {
    limited(name, limit, rounds, None, |_: &Path| ours());
}

/// Measures a program like [`within`], and pairs it with the baseline.
fn within_programs(
    name: &str,
    limit: Duration,
    rounds: usize,
    ours: impl FnMut(&Path) -> Duration,
) {
    limited(name, limit, rounds, baseline(), ours);
}

fn limited(
    name: &str,
    limit: Duration,
    rounds: usize,
    baseline: Option<&Path>,
    mut ours: impl FnMut(&Path) -> Duration,
) {
    ours(own());
    let mut pairs = Pairs::begin(baseline, &mut ours);
    let mut times = Vec::new();
    for _ in 0..rounds {
        times.push(ours(own()));
        pairs.run(&mut ours);
    }
    let times = Times::of(times);
    println!(
        "{name:<16} {:?}, {:?} (limit {limit:?})   {rounds} rounds",
        times.median(),
        times.tenth()
    );
    pairs.tell(&times);
}

/// The baseline's side of a figure.
struct Pairs<'b> {
    baseline: Option<&'b Path>,
    times: Vec<Duration>,
}

impl<'b> Pairs<'b> {
    fn begin(baseline: Option<&'b Path>, side: &mut impl FnMut(&Path) -> Duration) -> Self {
        let first = baseline.map(side);
        let is_long = first.is_some_and(|first| first >= LONG);
        if is_long {
            println!("                 the baseline takes more than {LONG:?}");
        }
        Self { baseline: baseline.filter(|_| !is_long), times: Vec::new() }
    }

    fn run(&mut self, side: &mut impl FnMut(&Path) -> Duration) {
        self.times.extend(self.baseline.map(side));
    }

    fn tell(self, times: &Times) {
        if self.times.is_empty() {
            return;
        }
        let baseline = Times::of(self.times);
        println!(
            "        paired   {}   the baseline {:?}",
            times.over(&baseline),
            baseline.median()
        );
    }
}

/// Lets a program create something in an empty folder.
type Make<'a, T> = dyn FnMut(&Path, &Path) -> T + 'a;

/// Something that each program creates for itself, because other programs may be unable to read it.
struct PerProgram<'a, T> {
    make: Box<Make<'a, T>>,
    made: BTreeMap<PathBuf, (tempfile::TempDir, T)>,
}

impl<'a, T> PerProgram<'a, T> {
    /// `make` runs once for each program, in its own folder.
    fn new(make: impl FnMut(&Path, &Path) -> T + 'a) -> Self {
        Self { make: Box::new(make), made: BTreeMap::new() }
    }

    /// Returns what a program created. The first call creates it.
    fn of(&mut self, program: &Path) -> &T {
        let (_, made) = self.made.entry(program.to_owned()).or_insert_with(|| {
            let folder = folder();
            let made = (self.make)(program, folder.path());
            (folder, made)
        });
        made
    }
}

/// A store with a native session, and the program that created it.
#[derive(Clone)]
struct Made {
    program: PathBuf,
    store: PathBuf,
    session: String,
}

impl Made {
    /// Lets a program begin a session.
    fn begin(program: &Path, store: &Path) -> Self {
        let mut command = Command::new(program);
        let output = command.args(["-q", "--store"]).arg(store).args(["new", "--json"]).output();
        let told: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        let session = told["session"].as_str().unwrap().to_owned();
        Self { program: program.to_owned(), store: store.to_owned(), session }
    }

    /// Returns a command about the session, with its output discarded.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["-q", "--store"]).arg(&self.store).args(args).args(["-s", &self.session]);
        command.stdout(Stdio::null());
        command
    }

    /// Lets the program append records, with additional arguments.
    fn append(&self, args: &[&str], records: impl Iterator<Item = Value>) {
        let mut command = self.command(&["append", "--jsonl"]);
        let mut child = command.args(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stream = BufWriter::new(child.stdin.take().unwrap());
        for record in records {
            writeln!(stream, "{record}").unwrap();
        }
        drop(stream);
        assert!(child.wait().unwrap().success());
    }

    /// Returns how long a command about the session takes.
    fn run(&self, args: &[&str]) -> Duration {
        let mut command = self.command(args);
        timed(|| assert!(command.status().unwrap().success()))
    }

    fn live(&self) -> PathBuf {
        self.store.join(format!("transcripts/{}.jsonl", self.session))
    }
}

/// Lets each program create a session with `count` messages of about `length` bytes each.
fn talks(count: usize, length: usize) -> PerProgram<'static, Made> {
    PerProgram::new(move |program, folder| {
        let made = Made::begin(program, folder);
        for from in (0..count).step_by(20_000) {
            made.append(&[], said(from..count.min(from + 20_000), length));
        }
        made
    })
}

/// Returns a native record for each message.
fn said(seeds: Range<usize>, length: usize) -> impl Iterator<Item = Value> {
    seeds.map(move |seed| {
        let role = if seed.is_multiple_of(2) { "user" } else { "assistant" };
        record(role, &text(seed, length))
    })
}

/// Returns the native record of a message.
fn record(role: &str, content: &str) -> Value {
    json!({ "type": role, "message": { "role": role, "content": content } })
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
    // Next to the build, which is on a disk. The temporary folder may be in memory, where a sync costs nothing.
    tempfile::tempdir_in(Path::new(UNDERTEXT).parent().unwrap()).unwrap()
}

fn open(folder: &Path) -> Archive {
    Archive::open(folder, Access::Write, Box::new(Machine)).unwrap()
}

fn begin(archive: &mut Archive) -> (Session, Workspace) {
    let workspace = Workspace { folder: "/w".into(), ..Workspace::default() };
    let created = verbs::new(archive, &Layers::default(), &workspace).unwrap();
    (created.session, workspace)
}

/// Returns text of about `length` bytes that differs for each seed.
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
    let role = if seed.is_multiple_of(2) { Speaker::User } else { Speaker::Assistant };
    Draft::Message(role, text(seed, length))
}

/// Creates a session of `count` messages, appended a thousand at a time.
fn filled(archive: &mut Archive, count: usize, length: usize) -> (Session, Workspace) {
    let (session, workspace) = begin(archive);
    for from in (0..count).step_by(1000) {
        let drafts: Vec<Draft> =
            (from..count.min(from + 1000)).map(|seed| message(seed, length)).collect();
        verbs::append(&archive.at(&session).unwrap(), &workspace, &drafts).unwrap();
    }
    (session, workspace)
}
