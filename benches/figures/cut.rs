//! Truncation and its audit.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use undertext::{
    context::cut::Limit,
    model::Role,
    ops::{self, Archive, Session},
    wire::Draft,
};

use crate::{
    Arguments, begin, bytes, compare_programs, folder, open, own, text, timed, within_programs,
};

/// How many messages a session has that is truncated, and every how manyeth is a result that is too long.
const MESSAGES: usize = 5_000;
const EVERY: usize = 100;
/// How long such a result is, and any other message: 25 MB in all.
const LONG: usize = 350_000;
const SHORT: usize = 1_500;

/// How many results an audited session has that were cut.
const CUT: usize = 10_000;

/// A session of calls and results, some of which are long.
fn filled(archive: &mut Archive) -> Session {
    let (session, workspace) = begin(archive);
    let draft = |n: usize| match n % 4 {
        0 => Draft::Message(Role::User, text(n, SHORT)),
        1 => Draft::Call { id: format!("c{n}"), name: "Bash".into(), input: "{}".into() },
        2 => {
            let length = if n % EVERY == 2 { LONG } else { SHORT };
            Draft::Result { id: format!("c{}", n - 1), output: text(n, length), error: None }
        }
        _ => Draft::Message(Role::Assistant, text(n, SHORT)),
    };
    for from in (0..MESSAGES).step_by(500) {
        let drafts: Vec<Draft> = (from..from + 500).map(draft).collect();
        ops::append(archive, &session, &workspace, &drafts).unwrap();
    }
    session
}

fn run(program: &Path, store: &Path, args: &[&str]) {
    let mut command = Command::new(program);
    command.arg("--store").arg(store).args(args).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().unwrap().success());
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap().success());
}

/// 50 long results of 5,000 messages are cut, by one process; the yardstick writes and syncs a file as long as the session's.
pub(crate) fn truncate(_: &Arguments) {
    let folder = folder();
    let (whole, copied) = (folder.path().join("whole"), folder.path().join("copy"));
    let mut archive = open(&whole);
    let session = filled(&mut archive);
    let id = session.name.id.clone();
    drop(archive);
    let live = whole.join("transcripts").join(format!("{id}.jsonl"));
    let content = fs::read(&live).unwrap();
    let other = folder.path().join("other");
    compare_programs(
        "truncate",
        3.0,
        7,
        ("cut", |program| {
            copy(&whole, &copied);
            timed(|| run(program, &copied, &["truncate", &id]))
        }),
        ("write and sync", || {
            timed(|| {
                let mut file = fs::File::create(&other).unwrap();
                file.write_all(&content).unwrap();
                file.sync_all().unwrap();
            })
        }),
    );
    copy(&whole, &copied);
    run(own(), &copied, &["truncate", &id]);
    let before = open(&whole).store().sizes().unwrap();
    let after = open(&copied).store().sizes().unwrap();
    let grown = bytes(after.stored - before.stored) / bytes(content.len() as u64) * 100.0;
    println!(
        "truncate-size    {grown:.2}% (limit 1)   the store grows by {:.2} MB, the session has {:.1} MB",
        bytes(after.stored - before.stored) / 1e6,
        bytes(content.len() as u64) / 1e6,
    );
}

/// 10,000 results that were cut are listed by one process.
pub(crate) fn audit(_: &Arguments) {
    let folder = folder();
    let mut archive = open(folder.path());
    let (session, workspace) = begin(&mut archive);
    let pair = |n: usize| {
        let (id, name, input) = (format!("c{n}"), "Read".to_owned(), "{}".to_owned());
        let call = Draft::Call { id: id.clone(), name, input };
        [call, Draft::Result { id, output: text(n, 2_600), error: None }]
    };
    for from in (0..CUT).step_by(1_000) {
        let drafts: Vec<Draft> = (from..from + 1_000).flat_map(pair).collect();
        let limit = Some(Limit::of_chars(2_000));
        let done = ops::append_cut(&mut archive, &session, &workspace, &drafts, limit).unwrap();
        assert_eq!(done.cut.len(), 1_000);
    }
    drop(archive);
    let id = session.name.id;
    within_programs("audit", Duration::from_millis(100), 9, |program| {
        timed(|| run(program, folder.path(), &["audit", "--json", &id]))
    });
}
