//! Figures of searching, with and without the full-text index, and of building it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use crate::{
    Arguments, PerProgram, agents, baseline, bytes, compare_programs, folder, limited, own,
    plain::Agent, timed, within_programs,
};

/// A pattern in few lines, and one in many.
pub(crate) const RARE: &str = "segfault";
pub(crate) const COMMON: &str = "error";
/// Words that are searched for together.
const THREE: &str = "error self cargo";
/// The number of sessions that counts as many.
const SESSIONS: u64 = 100_000;

/// Runs a program over a store, reads all its output, and returns the elapsed time.
fn run(program: &Path, store: &Path, args: &[&str]) -> Duration {
    let mut command = Command::new(program);
    command.args(["-q", "--store"]).arg(store).args(args).stderr(Stdio::null());
    timed(|| {
        command.output().unwrap();
    })
}

/// Returns true if the program searches for words. Such a program has `-F` for exact text; older ones reject it.
fn searches_words(program: &Path) -> bool {
    let mut help = Command::new(program);
    help.args(["search", "-F", COMMON, "--help"]).stdout(Stdio::null()).stderr(Stdio::null());
    help.status().unwrap().success()
}

/// Imports sessions into a store in which a folder blocks the creation of the index. Returns the arguments that count lines.
fn without_index(sessions: &Path) -> PerProgram<'_, (PathBuf, Vec<&'static str>)> {
    PerProgram::new(move |program, store| {
        let mut import = Command::new(program);
        import.args(["-q", "--store"]).arg(store).arg("import").arg(sessions);
        assert!(import.status().unwrap().success());
        fs::create_dir(store.join("search.db")).unwrap();
        let fixed = searches_words(program).then_some("-F");
        (store.to_owned(), ["search", "--count"].into_iter().chain(fixed).collect())
    })
}

/// Searches 1,000 MB of sessions without an index, against `rg` over their files, and `zstd -dc | rg`.
pub(crate) fn scan(arguments: &Arguments) {
    let folder = folder();
    let source = folder.path().join("sessions");
    let (files, _) = agents::sessions(arguments, &source);
    let mut stores = without_index(&source);
    let mut packed = Vec::new();
    for (n, file) in files.iter().enumerate() {
        packed.push(folder.path().join(format!("{n}.zst")));
        let file = fs::read(file).unwrap();
        fs::write(&packed[n], zstd::encode_all(&file[..], 3).unwrap()).unwrap();
    }
    let piped = |line: &str, files: &[PathBuf]| {
        let mut command = Command::new("sh");
        command.args(["-c", line, "sh"]).args(files);
        timed(|| {
            command.output().unwrap();
        })
    };
    for (name, pattern) in [("scan-rare", RARE), ("scan-common", COMMON)] {
        let raw = format!("rg -S --no-filename {pattern} \"$@\" | wc -l");
        let mut ours = |program: &Path| {
            let (store, count) = stores.of(program);
            run(program, store, &[&count[..], &[pattern]].concat())
        };
        compare_programs(name, 4.0, 9, ("search", &mut ours), ("rg", || piped(&raw, &files)));
        let unpacked = format!("zstd -dcq \"$@\" | rg -S {pattern} | wc -l");
        let zstd = ("zstd -dc | rg", || piped(&unpacked, &packed));
        compare_programs(name, 1.0, 3, ("search", &mut ours), zstd);
    }
}

/// Imports sessions into a store and builds its full-text index. Returns the time for the index.
fn indexed(sessions: &Path) -> PerProgram<'_, (PathBuf, Duration)> {
    PerProgram::new(move |program, store| {
        let mut import = Command::new(program);
        import.args(["-q", "--store"]).arg(store).arg("import").arg(sessions);
        assert!(import.status().unwrap().success());
        let took = run(program, store, &["store", "index"]);
        (store.to_owned(), took)
    })
}

/// Builds the full-text index of 1,000 MB of sessions, and searches with it.
pub(crate) fn index(arguments: &Arguments) {
    let folder = folder();
    let source = folder.path().join("sessions");
    let (_, size) = agents::sessions(arguments, &source);
    let mut stores = indexed(&source);
    let (store, took) = stores.of(own());
    let taken: u64 = ["search.db", "search.db-wal"]
        .iter()
        .filter_map(|name| fs::metadata(store.join(name)).ok())
        .map(|meta| meta.len())
        .sum();
    println!(
        "index            {:.1}% of the raw bytes (limit 15)   {:.0} MB/s (at least 40)",
        100.0 * bytes(taken) / bytes(size),
        bytes(size) / 1e6 / took.as_secs_f64()
    );
    for (name, limit, pattern) in [("indexed-rare", 25, RARE), ("indexed-common", 50, COMMON)] {
        within_programs(name, Duration::from_millis(limit), 25, |program| {
            run(program, &stores.of(program).0, &["search", pattern])
        });
    }
    // An older program searches for the three words as one text.
    let paired = baseline().filter(|program| searches_words(program));
    limited("indexed-three", Duration::from_millis(75), 25, paired, |program| {
        run(program, &stores.of(program).0, &["search", THREE])
    });
}

/// Builds the full-text index of 100,000 short sessions.
pub(crate) fn many(_: &Arguments) {
    let folder = folder();
    let source = folder.path().join("sessions");
    for seed in 0..SESSIONS {
        let (session, records) = Agent::Claude.records(seed, 6);
        Agent::Claude.write(&source, &session, &records);
    }
    let files = fs::read_dir(&source).unwrap();
    let size: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    let mut stores = indexed(&source);
    let (_, took) = stores.of(own());
    println!("index-many       {:.0} MB/s (at least 40)", bytes(size) / 1e6 / took.as_secs_f64());
}
