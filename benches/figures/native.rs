//! Figures of native sessions.
//!
//! Sizes: 1 KB is a typical message; 100 is a busy turn's records; 1,000,000 entries is more than any session that was
//! seen; 5,000 sessions is years of work.

use std::{
    collections::BTreeMap,
    fs::File,
    io::Write,
    ops::Range,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use undertext::{
    model::{EntryId, LineId, Running},
    ops,
    wire::Draft,
};

use crate::{
    Arguments, begin, compare, compare_programs, filled, folder, message, open, own, text, timed,
};

fn raw_append(file: &mut File, line: &[u8]) -> Duration {
    timed(|| {
        file.write_all(line).unwrap();
        file.sync_data().unwrap();
    })
}

/// A store with one native session that a program made, which only that program has to be able to read.
struct Made {
    store: PathBuf,
    session: String,
}

/// The stores that programs made for a figure.
struct Stores<'a> {
    folder: &'a Path,
    made: BTreeMap<PathBuf, Made>,
    count: usize,
    length: usize,
}

impl<'a> Stores<'a> {
    /// Has each program make its own store: a session with so many messages of about so many bytes.
    fn new(folder: &'a Path, count: usize, length: usize) -> Self {
        Self { folder, made: BTreeMap::new(), count, length }
    }

    fn of(&mut self, program: &Path) -> &Made {
        if !self.made.contains_key(program) {
            let store = self.folder.join(format!("store-{}", self.made.len()));
            let session = begin_with(program, &store);
            for from in (0..self.count).step_by(20_000) {
                let to = self.count.min(from + 20_000);
                append_with(program, &store, &session, from..to, self.length);
            }
            self.made.insert(program.to_owned(), Made { store, session });
        }
        &self.made[program]
    }
}

/// Has a program begin a session, and returns its id.
fn begin_with(program: &Path, store: &Path) -> String {
    let mut command = Command::new(program);
    let output = command.args(["-q", "--store"]).arg(store).args(["new", "--json"]).output();
    let told: serde_json::Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    told["session"].as_str().unwrap().to_owned()
}

fn append_with(program: &Path, store: &Path, session: &str, range: Range<usize>, length: usize) {
    let mut command = Command::new(program);
    command.args(["-q", "--store"]).arg(store).args(["append", "--jsonl", "-s", session]);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stream = std::io::BufWriter::new(child.stdin.take().unwrap());
    for seed in range {
        let role = if seed.is_multiple_of(2) { "user" } else { "assistant" };
        let words = text(seed, length);
        let record =
            serde_json::json!({ "type": role, "message": { "role": role, "content": words } });
        writeln!(stream, "{record}").unwrap();
    }
    drop(stream);
    assert!(child.wait().unwrap().success());
}

/// Returns how long a program takes for a command about a session, whose output nobody reads.
fn run(program: &Path, made: &Made, args: &[&str]) -> Duration {
    let mut command = Command::new(program);
    command.args(["-q", "--store"]).arg(&made.store).args(args).args(["-s", &made.session]);
    command.stdout(Stdio::null());
    timed(|| assert!(command.status().unwrap().success()))
}

pub(crate) fn append(_: &Arguments) {
    let folder = folder();
    let mut archive = open(folder.path());
    let (session, workspace) = begin(&mut archive);
    let mut raw =
        File::options().append(true).create(true).open(folder.path().join("raw")).unwrap();
    let mut seed = 0;
    let ours = || {
        seed += 1;
        let draft = message(seed, 700);
        timed(|| drop(ops::append(&mut archive, &session, &workspace, &[draft]).unwrap()))
    };
    let line = text(0, 1024);
    compare(
        "append",
        1.4,
        2000,
        ("1 KB, durable", ours),
        ("append + fdatasync", || raw_append(&mut raw, line.as_bytes())),
    );
}

pub(crate) fn batch(_: &Arguments) {
    let folder = folder();
    let mut archive = open(folder.path());
    let (session, workspace) = begin(&mut archive);
    let mut raw =
        File::options().append(true).create(true).open(folder.path().join("raw")).unwrap();
    let mut seed = 0;
    let ours = || {
        let drafts: Vec<Draft> = (seed..seed + 100).map(|seed| message(seed, 700)).collect();
        seed += 100;
        timed(|| drop(ops::append(&mut archive, &session, &workspace, &drafts).unwrap())) / 100
    };
    let line = text(0, 1024);
    compare(
        "batch",
        0.15,
        400,
        ("a message of 100", ours),
        ("append + fdatasync", || raw_append(&mut raw, line.as_bytes())),
    );
}

pub(crate) fn process(_: &Arguments) {
    let folder = folder();
    let raw = folder.path().join("raw");
    let line = text(1, 700);
    let mut stores = Stores::new(folder.path(), 0, 0);
    let mut ours = |program: &Path| {
        let made = stores.of(program);
        let script = "for i in {1..20}; do \"$UNDERTEXT\" -q --store \"$STORE\" append -s \"$SESSION\" \"$i $LINE\" >/dev/null || exit 1; done";
        let mut command = Command::new("bash");
        command.args(["-c", script]).env("UNDERTEXT", program).env("STORE", &made.store);
        command.env("SESSION", &made.session).env("LINE", &line).current_dir(folder.path());
        timed(|| assert!(command.status().unwrap().success())) / 20
    };
    let other = || {
        let script =
            "for i in {1..20}; do printf '%s\\n' \"$i $LINE\" >> \"$RAW\"; sync -d \"$RAW\"; done";
        let mut command = Command::new("bash");
        command.args(["-c", script]).env("RAW", &raw).env("LINE", &line);
        timed(|| assert!(command.status().unwrap().success())) / 20
    };
    compare_programs(
        "process",
        2.0,
        30,
        ("undertext append", |program| ours(program)),
        ("printf >> file; sync -d file", other),
    );
}

pub(crate) fn tail(_: &Arguments) {
    let (small, large) = (folder(), folder());
    let mut thousand = Stores::new(small.path(), 1_000, 100);
    let mut million = Stores::new(large.path(), 1_000_000, 100);
    let args = ["log", "-n", "500", "--json"];
    compare_programs(
        "tail",
        1.2,
        101,
        ("last 500 of 1,000,000", |program| run(program, million.of(program), &args)),
        ("of 1,000", || run(own(), thousand.of(own()), &args)),
    );
}

pub(crate) fn revert(_: &Arguments) {
    let folder = folder();
    let mut stores = Stores::new(folder.path(), 100_000, 700);
    let made = stores.of(own());
    let live = made.store.join(format!("transcripts/{}.jsonl", made.session));
    let copy = folder.path().join("copy");
    let mut ours = |program: &Path| {
        let made = stores.of(program);
        let took = run(program, made, &["revert", "25000", "-m", "not this way"]);
        run(program, made, &["undo"]);
        took
    };
    let kept = std::fs::metadata(&live).unwrap().len() / 2;
    let other = || {
        let _ = std::fs::remove_file(&copy);
        let script = "head -c \"$0\" \"$1\" > \"$2\" && sync \"$2\"";
        let mut command = Command::new("bash");
        command.args(["-c", script, &kept.to_string()]).args([&live, &copy]);
        timed(|| assert!(command.status().unwrap().success()))
    };
    compare_programs(
        "revert",
        4.0,
        11,
        ("half-way in 100,000", |program| ours(program)),
        ("head -c half > copy && sync copy", other),
    );
}

pub(crate) fn sessions(_: &Arguments) {
    let folder = folder();
    let repository = folder.path().join("git");
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(&repository).args(args).stdout(Stdio::null());
        command
    };
    std::fs::create_dir(&repository).unwrap();
    assert!(git(&["init", "-q"]).status().unwrap().success());
    let mut import = git(&["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stream = std::io::BufWriter::new(import.stdin.take().unwrap());
    for n in 1..=5000 {
        let words = text(n, 60);
        writeln!(
            stream,
            "commit refs/heads/main\ncommitter A <a@b> {n} +0000\ndata {}\n{words}",
            words.len()
        )
        .unwrap();
        writeln!(stream, "M 644 inline f\ndata {}\n{words}", words.len()).unwrap();
    }
    drop(stream);
    assert!(import.wait().unwrap().success());
    let mut made = BTreeMap::new();
    let mut store_of = |program: &Path| -> PathBuf {
        let next = folder.path().join(format!("store-{}", made.len()));
        let store: &PathBuf = made.entry(program.to_owned()).or_insert_with(|| {
            for seed in 0..5000 {
                let session = begin_with(program, &next);
                append_with(program, &next, &session, seed * 2..seed * 2 + 1, 200);
            }
            next
        });
        store.clone()
    };
    let ours = |program: &Path| {
        let mut command = Command::new(program);
        command.args(["--store"]).arg(store_of(program)).args(["sessions", "-n", "50"]);
        command.stdout(Stdio::null());
        timed(|| assert!(command.status().unwrap().success()))
    };
    let other = || timed(|| assert!(git(&["log", "-50", "main"]).status().unwrap().success()));
    compare_programs("sessions", 0.8, 101, ("50 of 5,000", ours), ("git log -50", other));
}

pub(crate) fn verify_ids(_: &Arguments) {
    const COUNT: usize = 1_000_000;
    let folder = folder();
    let mut archive = open(folder.path());
    let (session, _) = filled(&mut archive, COUNT, 40);
    let live = folder.path().join(format!("transcripts/{}.jsonl", session.name.id));
    let content = std::fs::read(live).unwrap();
    let lines: Vec<&[u8]> =
        content.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), COUNT);
    let ours = || timed(|| assert!(ops::verify_ids(&archive, &session).unwrap()));
    let other = || {
        timed(|| {
            let mut running = Running::EMPTY;
            for line in &lines {
                running = running.then(b"\n", EntryId::of(None, LineId::of(line)));
            }
            std::hint::black_box(running);
        })
    };
    compare("verify-ids", 6.0, 7, ("ids and running hashes", ours), ("a loop in memory", other));
}

pub(crate) fn verify_bytes(_: &Arguments) {
    let folder = folder();
    let mut stores = Stores::new(folder.path(), 40_000, 3000);
    let made = stores.of(own());
    let live = made.store.join(format!("transcripts/{}.jsonl", made.session));
    let content = std::fs::read(live).unwrap();
    let packed = zstd::bulk::compress(&content, 3).unwrap();
    let other = || {
        timed(|| {
            let plain = zstd::bulk::decompress(&packed, content.len()).unwrap();
            for line in plain.split(|&byte| byte == b'\n') {
                std::hint::black_box(LineId::of(line));
            }
        })
    };
    {
        let archive = open(&made.store);
        let ours = || timed(|| archive.store().check(&mut |fault| panic!("{fault:?}")).unwrap());
        compare("verify-bytes", 1.5, 7, ("the store's bytes", ours), ("zstd -d and hash", other));
    }
    compare_programs(
        "verify",
        4.0,
        7,
        ("verify, a process", |program| run(program, stores.of(program), &["verify"])),
        ("zstd -d and hash", other),
    );
}
