//! Figures of agents' sessions: importing them, and the size of the resulting store.
//!
//! Sizes: 1 GB in 100 files is a busy year of one person; 5,000 messages is a long session that is forked.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use undertext::{
    live::Writable,
    model::SessionName,
    store::Access,
    verbs::{self, Archive, Machine},
};

use crate::{
    Arguments, PerProgram, bytes, compare, compare_programs, folder,
    generator::{self, Chance, Repeats, Sources},
    own,
    plain::Agent,
    timed, within_programs,
};

/// Number of files in an import.
const FILES: u64 = 100;

/// Runs a program over a store. Returns the elapsed time and the peak memory in bytes.
fn run(program: &Path, store: &Path, args: &[&str], paths: &[&Path]) -> (Duration, u64) {
    let mut command = Command::new(program);
    command.args(["-q", "--store"]).arg(store).args(args).args(paths).stdout(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn().unwrap();
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let watch = std::thread::spawn(move || {
        let mut peak = 0;
        // The status of an ended process has no sizes.
        while let Some(now) = fs::read_to_string(&status).ok().as_deref().and_then(peak_of) {
            peak = peak.max(now);
            std::thread::sleep(Duration::from_millis(20));
        }
        peak
    });
    assert!(child.wait().unwrap().success());
    let took = start.elapsed();
    (took, watch.join().unwrap())
}

/// Returns the peak memory of a process, as the system reports it.
fn peak_of(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Creates the sessions of an import in a folder. Returns their files and their total size in bytes.
pub(crate) fn sessions(arguments: &Arguments, folder: &Path) -> (Vec<PathBuf>, u64) {
    fs::create_dir(folder).unwrap();
    generator::write(&Sources::read(), folder, 1, FILES, arguments.megabytes * 1_000_000)
}

pub(crate) fn is_there(command: &str) -> bool {
    Command::new(command).arg("--version").stdout(Stdio::null()).status().is_ok()
}

fn percent(part: u64, whole: u64) -> f64 {
    100.0 * bytes(part) / bytes(whole)
}

pub(crate) fn import(arguments: &Arguments) {
    let folder = folder();
    let source = folder.path().join("sessions");
    let (files, size) = sessions(arguments, &source);
    let repeats = Repeats::of(&files);
    println!(
        "generated        {:.0} MB in {} lines of {:.1} KB; long strings {:.0}% (real 76), repeated in line {:.1}% (8.0), in file {:.1}% (18.1), elsewhere {:.1}% (2.4)",
        bytes(size) / 1e6,
        repeats.lines,
        bytes(repeats.bytes) / bytes(repeats.lines) / 1e3,
        percent(repeats.long, repeats.bytes),
        percent(repeats.line, repeats.bytes),
        percent(repeats.file, repeats.bytes),
        percent(repeats.other, repeats.bytes)
    );
    let store = folder.path().join("store");
    let mut peak = 0;
    let mut ours = |program: &Path| {
        let _ = fs::remove_dir_all(&store);
        let (took, most) = run(program, &store, &["import"], &[&source]);
        if program == own() {
            peak = peak.max(most);
        }
        took
    };
    if is_there("git") {
        let stream = folder.path().join("stream");
        blobs(&files, &stream);
        let repository = folder.path().join("git");
        let git = || {
            let _ = fs::remove_dir_all(&repository);
            let mut init = Command::new("git");
            init.args(["init", "-q", "--bare"]).arg(&repository);
            assert!(init.status().unwrap().success());
            let mut command = Command::new("git");
            command.arg("-C").arg(&repository).args(["fast-import", "--quiet"]);
            command.stdin(File::open(&stream).unwrap()).stdout(Stdio::null());
            timed(|| assert!(command.status().unwrap().success()))
        };
        compare_programs(
            "import",
            0.16,
            3,
            ("all", &mut ours),
            ("git fast-import of the lines", git),
        );
        fs::remove_file(&stream).unwrap();
    }
    if is_there("jq") {
        let jq = || {
            let mut command = Command::new("jq");
            command.args(["-c", "."]).args(&files).stdout(Stdio::null());
            timed(|| assert!(command.status().unwrap().success()))
        };
        compare_programs("import", 0.22, 3, ("all", &mut ours), ("jq -c .", jq));
    }
    let took = ours(own());
    println!("                 {:.0} MB/s", bytes(size) / 1e6 / took.as_secs_f64());
    println!("import memory    {:.0} MB at its peak (limit 1000)", bytes(peak) / 1e6);
    println!("import store     {:.1}% of the raw bytes", percent(size_of(&store), size));
}

/// Writes the lines of files as blobs for `git fast-import`.
fn blobs(files: &[PathBuf], to: &Path) {
    let mut stream = BufWriter::new(File::create(to).unwrap());
    for file in files {
        for line in fs::read(file).unwrap().split_inclusive(|&byte| byte == b'\n') {
            writeln!(stream, "blob\ndata {}", line.len()).unwrap();
            stream.write_all(line).unwrap();
            stream.write_all(b"\n").unwrap();
        }
    }
    stream.flush().unwrap();
}

/// Returns the total size of a folder's files.
fn size_of(folder: &Path) -> u64 {
    let children = fs::read_dir(folder).unwrap().map(|child| child.unwrap());
    children
        .map(|child| match child.metadata().unwrap() {
            meta if meta.is_dir() => size_of(&child.path()),
            meta => meta.len(),
        })
        .sum()
}

/// Lets each program import sessions into its own store.
fn imported(sessions: &Path) -> PerProgram<'_, PathBuf> {
    PerProgram::new(|program, store| {
        run(program, store, &["import"], &[sessions]);
        store.to_owned()
    })
}

pub(crate) fn unchanged(arguments: &Arguments) {
    let folder = folder();
    let source = folder.path().join("sessions");
    let (_, size) = sessions(arguments, &source);
    let mut stores = imported(&source);
    println!("                 {:.0} MB in {FILES} files again", bytes(size) / 1e6);
    within_programs("unchanged", Duration::from_millis(50), 15, |program| {
        run(program, stores.of(program), &["import"], &[&source]).0
    });
}

/// A burst: each of many Claude Code sessions grows by one record, and one import picks up all of them.
pub(crate) fn burst(arguments: &Arguments) {
    const BEGUN: usize = 10;
    const ROUNDS: usize = 11;
    let sessions = arguments.megabytes.clamp(10, 1000);
    let folder = folder();
    let paths = [folder.path().join("sessions")];
    let grown = |seed| Agent::Claude.records(seed, BEGUN + 1 + ROUNDS);
    let sessions: Vec<(String, Vec<Value>)> = (0..sessions).map(grown).collect();
    for (session, records) in &sessions {
        Agent::Claude.write(&paths[0], session, &records[..BEGUN]);
    }
    let mut archive =
        Archive::open(&folder.path().join("store"), Access::Write, Box::new(Machine)).unwrap();
    let mut writable = Writable::default();
    writable.folder("claude", &paths[0]);
    archive.set_writable(writable);
    verbs::import(&mut archive, &paths, &paths, &mut |_| ()).unwrap();
    let line = |records: &[Value], round: usize| format!("{}\n", records[BEGUN + round]);
    let (mut round, mut again) = (0, 0);
    let ours = || {
        for (session, records) in &sessions {
            let path = paths[0].join(format!("{session}.jsonl"));
            let mut file = File::options().append(true).open(path).unwrap();
            file.write_all(line(records, round).as_bytes()).unwrap();
        }
        round += 1;
        timed(|| {
            let summary = verbs::import(&mut archive, &paths, &paths, &mut |_| ()).unwrap();
            assert_eq!(summary.entries, sessions.len() as u64);
        })
    };
    let mut raw = File::create(folder.path().join("raw")).unwrap();
    let yardstick = || {
        let lines: Vec<String> = sessions.iter().map(|(_, records)| line(records, again)).collect();
        again += 1;
        timed(|| {
            for line in lines {
                raw.write_all(line.as_bytes()).unwrap();
                raw.sync_data().unwrap();
            }
        })
    };
    println!("                 {} sessions grow by a record", sessions.len());
    compare("burst", 4.0, ROUNDS, ("import", ours), ("append + fdatasync", yardstick));
}

/// Returns the median of `rounds` runs, after one run to warm up.
fn median(rounds: usize, mut work: impl FnMut() -> Duration) -> Duration {
    work();
    let mut times: Vec<Duration> = (0..rounds).map(|_| work()).collect();
    times.sort_unstable();
    times[rounds / 2]
}

/// Returns the folder of real sessions, if there is one.
#[expect(clippy::disallowed_methods, reason = "real sessions lie outside of the project")]
pub(crate) fn corpus() -> Option<PathBuf> {
    let corpus = std::env::var_os("UNDERTEXT_CORPUS").map(PathBuf::from);
    if corpus.is_none() {
        println!("                 no UNDERTEXT_CORPUS, and nothing to measure");
    }
    corpus
}

pub(crate) fn path(_: &Arguments) {
    let Some(corpus) = corpus() else { return };
    let mut found = verbs::sources(&[corpus], &mut |_| ());
    found.sort_by_key(|source| source.bytes);
    let Some(largest) = found.last() else { return };
    let mut stores = imported(&largest.path);
    let SessionName { id, .. } = &largest.session;
    for args in [["log", "-n", "1"], ["log", "-n", "20"]] {
        let args: Vec<&str> = args.into_iter().chain([id.as_str()]).collect();
        let file = largest.path.file_name().unwrap().to_string_lossy();
        println!("                 {} of {file}", args[..3].join(" "));
        within_programs("path", Duration::from_millis(10), 51, |program| {
            run(program, stores.of(program), &args, &[]).0
        });
    }
    let archive = Archive::open(stores.of(own()), Access::Read, Box::new(Machine)).unwrap();
    let session = archive.session(&largest.session).unwrap().unwrap();
    let took = median(51, || {
        timed(|| {
            let log = verbs::log(&archive.at(&session).unwrap(), None, usize::MAX).unwrap();
            assert!(!log.lines.is_empty());
        })
    });
    println!("                 {took:?} the whole path with its messages, in an open store");
}

pub(crate) fn forks(_: &Arguments) {
    let folder = folder();
    let sources = Sources::read();
    let name = |n: u64| format!("00000000-0000-4000-8000-{n:012}");
    let path = |n: u64| folder.path().join(format!("{}.jsonl", name(n)));
    let enough = |_, records| records >= 5000;
    generator::session_file(&sources, Chance::new(7), &name(0), &path(0), enough);
    let store = folder.path().join("store");
    run(own(), &store, &["import"], &[&path(0)]);
    let before = stored(&store);
    let original = fs::read_to_string(path(0)).unwrap();
    let mut copies = 0;
    for n in 1..=10 {
        let fork = original.replace(&name(0), &name(n));
        fs::write(path(n), &fork).unwrap();
        copies += fork.len() as u64;
        run(own(), &store, &["import"], &[&path(n)]);
    }
    let grown = stored(&store) - before;
    println!(
        "forks            {:.1}% (limit 4)   ten forks grow the store by {:.1} MB, copies have {:.1} MB",
        percent(grown, copies),
        bytes(grown) / 1e6,
        bytes(copies) / 1e6
    );
}

/// Returns the size of a store without its free space.
fn stored(store: &Path) -> u64 {
    let archive = Archive::open(store, Access::Read, Box::new(Machine)).unwrap();
    archive.store().sizes().unwrap().stored
}

pub(crate) fn size(_: &Arguments) {
    let Some(corpus) = corpus() else { return };
    let folder = folder();
    let store = folder.path().join("store");
    let parts = [corpus.join("claude"), corpus.join("codex")];
    let parts: Vec<&Path> = parts.iter().map(PathBuf::as_path).collect();
    let (took, _) = run(own(), &store, &["import"], &parts);
    let raw: u64 = parts.iter().map(|part| size_of(part)).sum();
    println!(
        "size             {:.1}% (limit 20)   {:.1} MB of real sessions, taken in in {took:?}",
        percent(stored(&store), raw),
        bytes(raw) / 1e6
    );
    let (took, _) = run(own(), &store, &["store", "pack"], &[]);
    println!(
        "                 {:.1}% (limit 19)   packed in {took:?}",
        percent(stored(&store), raw)
    );
}
