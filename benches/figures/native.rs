//! Figures of native sessions.
//!
//! Sizes: 1 KB is a typical message; 100 records are a busy turn; 1,000,000 entries is more than any session seen; 5,000 sessions
//! is years of work.

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use undertext::{
    model::{EntryId, LineId, Running},
    verbs,
    wire::Draft,
};

use crate::{
    Arguments, LONG, PerProgram, begin, compare, compare_programs, filled, folder,
    growth::{of_sessions, run},
    message, open, own,
    plain::Agent,
    talks, text, timed,
};

fn raw_append(file: &mut File, line: &[u8]) -> Duration {
    timed(|| {
        file.write_all(line).unwrap();
        file.sync_data().unwrap();
    })
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
        timed(|| drop(verbs::append(&archive.at(&session).unwrap(), &workspace, &[draft]).unwrap()))
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
        timed(|| drop(verbs::append(&archive.at(&session).unwrap(), &workspace, &drafts).unwrap()))
            / 100
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
    let mut talks = talks(0, 0);
    let mut ours = |program: &Path| {
        let made = talks.of(program);
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
        2.3,
        30,
        ("undertext append", |program| ours(program)),
        ("printf >> file; sync -d file", other),
    );
}

pub(crate) fn tail(_: &Arguments) {
    let (mut thousand, mut million) = (talks(1_000, 100), talks(1_000_000, 100));
    let args = ["log", "-n", "500", "--json"];
    compare_programs(
        "tail",
        1.2,
        101,
        ("last 500 of 1,000,000", |program| million.of(program).run(&args)),
        ("of 1,000", || thousand.of(own()).run(&args)),
    );
}

pub(crate) fn revert(_: &Arguments) {
    let folder = folder();
    let mut talks = talks(100_000, 700);
    let live = talks.of(own()).live();
    let copy = folder.path().join("copy");
    let mut ours = |program: &Path| {
        let made = talks.of(program);
        let took = made.run(&["revert", "25000", "-m", "not this way"]);
        made.run(&["undo"]);
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
    let mut stores = of_sessions(5000);
    let ours = |program: &Path| run(program, stores.of(program), &["sessions", "-n", "50"]);
    // Both sides are started by `timeout`, so its cost is the same.
    let mut git = Command::new("timeout");
    git.arg(LONG.as_secs().to_string()).arg("git").arg("-C").arg(&repository);
    git.args(["log", "-50", "main"]).stdout(Stdio::null());
    let other = || timed(|| assert!(git.status().unwrap().success()));
    compare_programs("sessions", 1.2, 101, ("50 of 5,000", ours), ("git log -50", other));
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
    let only = Some(session.key);
    let ours = || timed(|| archive.store().check(only, &mut |it| panic!("{it:?}")).unwrap());
    let other = || {
        timed(|| {
            let mut running = Running::EMPTY;
            for line in &lines {
                running = running.then(b"\n", EntryId::of(None, LineId::of(line)));
            }
            std::hint::black_box(running);
        })
    };
    compare("verify-ids", 6.0, 7, ("ids", ours), ("a loop in memory", other));
}

pub(crate) fn verify(_: &Arguments) {
    let mut talks = talks(40_000, 3000);
    let live = talks.of(own()).live();
    verified("", &live, |program| {
        let made = talks.of(program);
        (made.store.clone(), made.session.clone())
    });
    let (session, records) = Agent::Claude.records(1, 200_000);
    let folder = folder();
    Agent::Claude.write(folder.path(), &session, &records);
    drop(records);
    let mut stores = PerProgram::new(|program, store| -> PathBuf {
        let mut command = Command::new(program);
        command.args(["-q", "--store"]).arg(store).arg("import").arg(folder.path());
        assert!(command.stdout(Stdio::null()).status().unwrap().success());
        store.to_owned()
    });
    let file = folder.path().join(format!("{session}.jsonl"));
    verified("-claude", &file, |program| (stores.of(program).clone(), session.clone()));
}

/// Measures the verification of a store with one session that was imported from a file. Each program has its own store.
fn verified(what: &str, file: &Path, mut store_of: impl FnMut(&Path) -> (PathBuf, String)) {
    let content = std::fs::read(file).unwrap();
    let packed = zstd::bulk::compress(&content, 3).unwrap();
    let other = || {
        timed(|| {
            let plain = zstd::bulk::decompress(&packed, content.len()).unwrap();
            for line in plain.split(|&byte| byte == b'\n') {
                std::hint::black_box(LineId::of(line));
            }
        })
    };
    let (store, session) = store_of(own());
    {
        let archive = open(&store);
        let ours =
            || timed(|| archive.store().check(None, &mut |fault| panic!("{fault:?}")).unwrap());
        let name = format!("verify-bytes{what}");
        compare(&name, 1.2, 7, ("the store's bytes", ours), ("unpack, hash each line", other));
    }
    let run = |program: &Path, store: &Path, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(["-q", "--store"]).arg(store).args(args).stdout(Stdio::null());
        timed(|| assert!(command.status().unwrap().success()))
    };
    compare_programs(
        &format!("verify{what}"),
        1.5,
        7,
        ("verify, a process", |program| run(program, &store_of(program).0, &["verify"])),
        ("store rebuild", || run(own(), &store, &["store", "rebuild", &session])),
    );
}
