//! What is refused, noticed or waited for when something goes wrong: each guard has a test that fails without it.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, SystemTime},
};

use rusqlite::Connection;
use serde_json::{Value, json};
use undertext::{
    context::cut::Limit,
    disk::{Disk, IfHeld, Kernel},
    json::{Fields, Raw},
    model::{EntryNumber, Landmark, Message, OperationNumber, Timestamp},
    store::{Access, SessionFilter, StoreError},
    verbs::{self, Ambient, Archive, Bound, Compacting, Notice, OpsError, Session},
    wire::{
        Answers, Draft, Envelope, Failure, Files, Graph, Identify, Invalid, Layout, Native,
        Path as Steps, Read, Sent, Setting, Traits, Walk, Write,
        compaction::{Compaction, Lines},
    },
};
use uuid::Uuid;

use crate::{
    fixture::{self, Seeded, exported, said, say, workspace},
    needs,
};

/// Returns an archive with a session of three messages.
fn begun(root: &Path) -> (Archive, Session) {
    let mut archive = fixture::open(root, 1);
    let session = fixture::session(&mut archive);
    for text in ["one", "two", "three"] {
        say(&mut archive, &session, text);
    }
    (archive, session)
}

#[test]
fn an_undo_of_a_switch_switches_back() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, session) = begun(folder.path());
    let second = verbs::find_place(&archive.at(&session).unwrap(), "HEAD~1").unwrap();
    verbs::branch(&archive.at(&session).unwrap(), "older", Some(&second)).unwrap();
    verbs::switch(&archive.at(&session).unwrap(), "older").unwrap();
    assert_eq!(said(&archive, &session, None), ["one", "two"]);
    let undone = verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
    assert_eq!(undone.command, "switch");
    let current = verbs::branches(&archive.at(&session).unwrap())
        .unwrap()
        .into_iter()
        .find(|one| one.current);
    assert_eq!(current.unwrap().branch.as_deref(), Some("main"));
    assert_eq!(said(&archive, &session, None), ["one", "two", "three"]);
    say(&mut archive, &session, "four");
    let older = verbs::find_place(&archive.at(&session).unwrap(), "older").unwrap();
    assert_eq!(said(&archive, &session, Some(&older)), ["one", "two"]);
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn an_undo_of_a_hiding_shows_the_session_again() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, session) = begun(folder.path());
    let listed = |archive: &Archive| archive.sessions(&SessionFilter::default()).unwrap().len();
    let hidden = verbs::hide(&archive.at(&session).unwrap(), true).unwrap();
    assert_eq!(listed(&archive), 0);
    verbs::undo(&archive.at(&session).unwrap(), hidden.done.operation).unwrap();
    assert_eq!(listed(&archive), 1);
}

/// A clock that goes back by a minute with every look.
struct Backward(i64);

impl Ambient for Backward {
    fn now(&mut self) -> Timestamp {
        self.0 -= 60_000;
        Timestamp(self.0)
    }

    fn uuid(&mut self) -> Uuid {
        self.0 -= 1;
        Uuid::from_u128(u128::from(self.0.unsigned_abs()) << 64)
    }
}

#[test]
fn operations_follow_one_another_in_time_though_the_clock_goes_back() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Box::new(Backward(981_173_106_000));
    let mut archive = Archive::open(folder.path(), Access::Write, clock).unwrap();
    let session = fixture::session(&mut archive);
    for text in ["one", "two", "three"] {
        say(&mut archive, &session, text);
    }
    let operations = archive.store().operations(session.key, OperationNumber::ALL).unwrap();
    let times: Vec<Timestamp> = operations.iter().map(|operation| operation.at).collect();
    assert_eq!(times.len(), 4);
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "{times:?}");
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn a_change_waits_until_the_archive_is_not_locked() {
    let Some(proc) = needs::proc() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (archive, session) = begun(folder.path());
    drop(archive);
    let path = folder.path().join("lock");
    let held = fs::File::options().write(true).open(&path).unwrap();
    held.lock().unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    // The kernel lists who waits for a lock: "1: -> FLOCK  ADVISORY  WRITE 123 08:01:456 0 EOF".
    let is_waited_for = || {
        let locks = fs::read_to_string(proc.join("locks")).unwrap();
        locks.lines().any(|line| line.contains("->") && line.contains(&format!(":{inode} ")))
    };
    thread::scope(|scope| {
        let writer = scope.spawn(|| say(&mut fixture::open(folder.path(), 2), &session, "four"));
        while !is_waited_for() {
            assert!(!writer.is_finished(), "it wrote while another program had the lock");
            thread::sleep(Duration::from_millis(1));
        }
        drop(held);
        writer.join().unwrap();
    });
    let archive = fixture::open(folder.path(), 3);
    assert_eq!(said(&archive, &session, None).last().unwrap(), "four");
}

const GARDEN: &str = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40";

/// A record of Claude Code.
fn claude(n: u32, parent: Option<u32>, text: &str) -> String {
    let role = if n % 2 == 1 { "user" } else { "assistant" };
    let record = json!({
        "parentUuid": parent.map(|n| format!("u{n}")), "isSidechain": false, "userType": "external", "cwd": "/w",
        "sessionId": GARDEN, "version": "2.1.20", "type": role, "message": {"role": role, "content": text},
        "uuid": format!("u{n}"), "timestamp": format!("2026-01-01T00:00:{n:02}.000Z"),
    });
    format!("{record}\n")
}

/// Returns an archive with the session of an agent's file that holds these lines.
fn attached(root: &Path, content: &str) -> (Archive, Session, PathBuf) {
    let file = root.join(format!("{GARDEN}.jsonl"));
    fs::write(&file, content).unwrap();
    let mut archive = fixture::open(&root.join("store"), 1);
    let (session, _) = verbs::take_up(&mut archive, &file).unwrap();
    (archive, session, file)
}

#[test]
fn a_file_that_was_written_again_and_is_longer_is_not_taken_for_an_append() {
    let folder = tempfile::tempdir().unwrap();
    let before = claude(1, None, "one") + &claude(2, Some(1), "two");
    let (archive, session, file) = attached(folder.path(), &before);
    let after = claude(11, None, "another")
        + &claude(12, Some(11), "answer")
        + &claude(13, Some(12), "more");
    assert!(after.len() > before.len());
    fs::write(&file, &after).unwrap();
    let notices = verbs::checkpoint(&archive.at(&session).unwrap(), None).unwrap().done.notices;
    assert!(matches!(notices.as_slice(), [Notice::Followed { .. }]), "{notices:?}");
    assert_eq!(said(&archive, &session, None), ["another", "answer", "more"]);
    assert!(exported(&archive, &session, None) == after.as_bytes());
    assert!(exported(&archive, &session, Some(1)) == before.as_bytes());
}

#[test]
fn what_is_appended_to_an_agents_file_moves_the_head_as_the_agent_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let content = claude(1, None, "one") + &claude(2, Some(1), "two");
    let (mut archive, session, file) = attached(folder.path(), &content);
    // A record that an agent writes beside the conversation, and one of a sub-agent.
    let snapshot = json!({ "type": "file-history-snapshot", "messageId": "u2", "snapshot": {}, "isSnapshotUpdate": false });
    let aside =
        claude(21, Some(2), "aside").replace("\"isSidechain\":false", "\"isSidechain\":true");
    for line in [snapshot.to_string(), aside] {
        let drafts = [Draft::Record(line.trim_end().as_bytes().to_vec())];
        verbs::append(&archive.at(&session).unwrap(), &workspace(), &drafts).unwrap();
        assert_eq!(said(&archive, &session, None), ["one", "two"]);
        let (alone, there) = verbs::peek(&file, Seeded::boxed(2)).unwrap();
        assert_eq!(said(&alone, &there, None), ["one", "two"]);
    }
    say(&mut archive, &session, "three");
    let (alone, there) = verbs::peek(&file, Seeded::boxed(2)).unwrap();
    assert_eq!(said(&alone, &there, None), ["one", "two", "three"]);
}

/// An agent that writes as the native format does, and sends no record that holds a word: at all, or behind a boundary.
#[derive(Debug)]
struct Deaf {
    word: &'static str,
    is_behind: bool,
}

impl Identify for Deaf {
    fn traits(&self) -> &'static Traits {
        Native.traits()
    }

    fn knows(&self, record: &Fields<'_>) -> bool {
        Native.knows(record)
    }

    fn session(&self, record: Raw<'_>) -> Option<String> {
        Native.session(record)
    }

    fn folder(&self, record: Raw<'_>) -> Option<String> {
        Native.folder(record)
    }
}

impl Files for Deaf {}

impl Layout for Deaf {}

impl Read for Deaf {
    fn envelope(&self, record: Raw<'_>) -> Envelope {
        Native.envelope(record)
    }

    fn messages(&self, record: Raw<'_>) -> Vec<Message> {
        Native.messages(record)
    }

    fn answers<'a>(&self, record: Raw<'a>) -> Answers<'a> {
        Native.answers(record)
    }
}

impl Walk for Deaf {
    fn head(&self, graph: &dyn Graph) -> Result<Option<EntryNumber>, Failure> {
        Native.head(graph)
    }

    fn path(&self, graph: &dyn Graph, head: EntryNumber, limit: usize) -> Result<Steps, Failure> {
        Native.path(graph, head, limit)
    }

    fn context(&self, graph: &dyn Graph, path: &[EntryNumber]) -> Result<Sent, Failure> {
        let is_deaf = !self.is_behind || graph.landmark(Landmark::Boundary, graph.end())?.is_some();
        let mut sent = Sent::default();
        for entry in Native.context(graph, path)?.entries {
            let line = graph.line(entry)?;
            if !(is_deaf && String::from_utf8_lossy(&line).contains(self.word)) {
                sent.entries.push(entry);
            }
        }
        Ok(sent)
    }

    fn leaves(&self, graph: &dyn Graph) -> Result<Vec<EntryNumber>, Failure> {
        Native.leaves(graph)
    }
}

impl Write for Deaf {
    fn write(&self, draft: &Draft, setting: &Setting) -> Result<Vec<u8>, Invalid> {
        Native.write(draft, setting)
    }

    fn compaction(
        &self,
        graph: &dyn Graph,
        compaction: &Compaction<'_>,
        settings: &[Setting; 2],
    ) -> Result<Option<Lines>, Failure> {
        Native.compaction(graph, compaction, settings)
    }
}

/// Asserts that a change of a session is refused, and leaves its store and its file as they were.
#[track_caller]
fn assert_refused<T: std::fmt::Debug>(
    archive: &mut Archive,
    session: &Session,
    why: &str,
    change: impl FnOnce(&mut Archive) -> Result<T, OpsError>,
) {
    let live = fixture::live(archive, session);
    let state = |archive: &Archive| {
        (archive.store().state(session.key).unwrap().hash(), fs::read(&live).unwrap())
    };
    let before = state(archive);
    let refused = change(archive);
    assert!(matches!(&refused, Err(error) if error.to_string().contains(why)), "{refused:?}");
    assert!(state(archive) == before);
}

#[test]
fn a_compaction_that_the_agent_would_not_resume_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    for n in 0..20 {
        say(&mut archive, &session, &format!("message {n}. {}", "word ".repeat(200)));
    }
    let asked = crate::compact::asked(200_000);
    let wanted = || Compacting::of(&asked, &|| Timestamp(0));
    let here = workspace();
    for (word, why) in [
        ("isCompactSummary", "the agent would not read all the messages that should be kept"),
        ("message 19.", "the agent would not read all the messages that should be kept"),
        ("message 18.", "the agent would read a context that differs from what undertext shows"),
    ] {
        let format: &'static Deaf = Box::leak(Box::new(Deaf { word, is_behind: true }));
        let session = Session { format, ..session.clone() };
        assert_refused(&mut archive, &session, why, |archive| {
            verbs::compact(&archive.at(&session).unwrap(), &here, &wanted(), &mut |_| ())
        });
    }
    let made =
        verbs::compact(&archive.at(&session).unwrap(), &here, &wanted(), &mut |_| ()).unwrap();
    assert!(made.done.operation.is_some());
}

#[test]
fn a_truncation_that_the_agent_would_not_resume_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    say(&mut archive, &session, "Read it.");
    let (id, name, input) = ("c1".to_owned(), "Read".to_owned(), "{}".to_owned());
    let drafts = [
        Draft::Call { id: id.clone(), name, input },
        Draft::Result { id, output: "a line of what a tool said\n".repeat(200), error: None },
    ];
    verbs::append(&archive.at(&session).unwrap(), &workspace(), &drafts).unwrap();
    let bound = || Bound::of(Limit::of_chars(0));
    let deaf = Session {
        format: &Deaf { word: "characters are cut off here", is_behind: false },
        ..session.clone()
    };
    let why = "the agent would read a context that differs from what undertext shows";
    assert_refused(&mut archive, &deaf, why, |archive| {
        verbs::truncate(&archive.at(&deaf).unwrap(), &bound())
    });
    assert!(
        verbs::truncate(&archive.at(&session).unwrap(), &bound()).unwrap().done.operation.is_some()
    );
}

#[test]
fn a_line_that_was_changed_in_the_store_is_damage_and_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, session) = begun(folder.path());
    drop(archive);
    fixture::settle(folder.path());
    let db = Connection::open(folder.path().join("store.db")).unwrap();
    let changed = db
        .execute(
            "UPDATE fresh SET body = CAST(replace(CAST(body AS TEXT), 'three', 'THREE') AS BLOB)
             WHERE instr(body, CAST('three' AS BLOB)) > 0",
            [],
        )
        .unwrap();
    assert_eq!(changed, 1);
    drop(db);
    let archive = Archive::open(folder.path(), Access::Read, Seeded::boxed(2)).unwrap();
    let log = verbs::log(&archive.at(&session).unwrap(), None, usize::MAX).unwrap();
    let damaged: Vec<_> = log.lines.iter().filter(|line| line.damage.is_some()).collect();
    assert!(matches!(damaged.as_slice(), [line] if line.messages.is_empty()), "{damaged:?}");
    assert_eq!(log.damaged.len(), 1);
    assert!(!format!("{log:?}").contains("THREE"), "{log:?}");
    let is_corrupt =
        |error: &OpsError| matches!(error, OpsError::Store(StoreError::Corrupt { .. }));
    let mut bytes = Vec::new();
    let exported = verbs::export(&archive.at(&session).unwrap(), None, &mut |part| {
        bytes.extend_from_slice(part);
        Ok(())
    });
    assert!(exported.as_ref().is_err_and(is_corrupt), "{exported:?}");
    assert!(!String::from_utf8_lossy(&bytes).contains("THREE"));
}

#[test]
fn a_trigger_that_is_missing_or_was_changed_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let (archive, _) = begun(folder.path());
    let db = Connection::open(folder.path().join("store.db")).unwrap();
    assert_eq!(fixture::damage(&archive), [""; 0]);
    db.execute_batch(
        "DROP TRIGGER entry_is_not_updated; DROP TRIGGER run_is_not_deleted;
         CREATE TRIGGER run_is_not_deleted BEFORE DELETE ON run WHEN OLD.start = 0
         BEGIN SELECT RAISE(ABORT, 'append-only: run'); END;",
    )
    .unwrap();
    assert_eq!(
        fixture::damage(&archive),
        [
            "trigger entry_is_not_updated: it is missing",
            "trigger run_is_not_deleted: it was changed"
        ]
    );
}

#[test]
fn a_running_hash_that_is_wrong_is_damage_though_its_operation_covers_it() {
    let folder = tempfile::tempdir().unwrap();
    drop(fixture::open(folder.path(), 1));
    crate::store::commit_wrong_running_hash(&folder.path().join("store.db"));
    let archive = fixture::open(folder.path(), 2);
    let found = fixture::damage(&archive);
    let wanted =
        "generation 1: its running hash does not match the recorded one at entry 2".to_owned();
    assert!(found.contains(&wanted), "{found:?}");
    assert!(!found.iter().any(|problem| problem.starts_with("operation ")), "{found:?}");
    let session = fixture::only_session(&archive);
    assert!(verbs::verify(&archive, Some(&session), &mut |_| ()).unwrap().damaged > 0);
}

/// Two texts whose hashes begin with the same six bytes, found by trying 70 million.
fn twins() -> [String; 2] {
    let twins = [39_410_587, 69_936_611]
        .map(|n| format!("{n:08x} {}", "a text of 256 bytes or more is kept once. ".repeat(7)));
    let [one, other] = twins.each_ref().map(|text| *blake3::hash(text.as_bytes()).as_bytes());
    assert_eq!(one[..6], other[..6]);
    twins
}

#[test]
fn texts_that_have_the_same_tag_are_kept_apart() {
    let [one, other] = twins();
    let folder = tempfile::tempdir().unwrap();
    let mut archive = fixture::open(folder.path(), 1);
    let session = fixture::session(&mut archive);
    drop(archive);
    for (seed, text) in [(2, &one), (3, &other), (4, &one)] {
        let mut archive = fixture::open(folder.path(), seed);
        say(&mut archive, &session, text);
        drop(archive);
        // A program that has not seen the texts before finds them by their tags.
        fixture::settle(folder.path());
    }
    let mut archive = fixture::open(folder.path(), 5);
    assert_eq!(said(&archive, &session, None), [one.clone(), other, one]);
    fixture::assert_sound(&mut archive, &session);
}

#[test]
fn what_a_compaction_keeps_follows_its_summary_alone() {
    let folder = tempfile::tempdir().unwrap();
    let content: String =
        (1..=4).map(|n| claude(n, (n > 1).then(|| n - 1), &format!("words {n}"))).collect();
    let (archive, session, file) = attached(folder.path(), &content);
    verbs::branch(&archive.at(&session).unwrap(), "older", None).unwrap();
    // The agent compacts and keeps the last turn, which then follows the summary, though another branch stands in it.
    let segment = json!({ "headUuid": "u3", "anchorUuid": "u6", "tailUuid": "u4" });
    let boundary = json!({
        "parentUuid": null, "logicalParentUuid": "u4", "isSidechain": false, "type": "system",
        "subtype": "compact_boundary", "content": "Conversation compacted", "sessionId": GARDEN,
        "compactMetadata": { "trigger": "manual", "preTokens": 9, "preservedSegment": segment },
        "uuid": "u5", "timestamp": "2026-01-01T00:00:05.000Z",
    });
    let mut summary: Value = serde_json::from_str(&claude(6, Some(5), "the summary")).unwrap();
    summary["type"] = json!("user");
    summary["message"]["role"] = json!("user");
    summary["isCompactSummary"] = json!(true);
    let more = format!("{boundary}\n{summary}\n{}", claude(7, Some(6), "words 7"));
    fs::write(&file, content + &more).unwrap();
    verbs::checkpoint(&archive.at(&session).unwrap(), None).unwrap();
    let graph = verbs::graph(
        &archive.at(&session).unwrap(),
        verbs::Detail { all: true, ..verbs::Detail::default() },
    )
    .unwrap();
    let follows: Vec<String> = graph
        .nodes
        .iter()
        .map(|node| {
            let parents = node.parents.iter().map(|parent| graph.nodes[*parent].words.as_str());
            format!("{} follows {}", node.words, parents.collect::<Vec<_>>().join(" and "))
        })
        .collect();
    assert_eq!(
        follows,
        [
            "words 7 follows words 4",
            "words 4 follows words 3",
            "words 3 follows the summary",
            "the summary follows Conversation compacted",
            "Conversation compacted follows words 2",
            "words 2 follows words 1",
            "words 1 follows ",
        ]
    );
}

/// A disk on which an agent appends to its file when a step is taken, once.
#[derive(Debug)]
struct Meanwhile {
    step: &'static str,
    file: PathBuf,
    line: String,
    is_done: AtomicBool,
}

impl Meanwhile {
    fn at(&self, step: &str) {
        if step == self.step && !self.is_done.swap(true, Ordering::Relaxed) {
            let mut file = File::options().append(true).open(&self.file).unwrap();
            file.write_all(self.line.as_bytes()).unwrap();
        }
    }
}

impl Disk for Meanwhile {
    fn make(&self, folder: &File, name: &OsStr) -> io::Result<File> {
        self.at("make");
        Kernel.make(folder, name)
    }

    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        Kernel.write(file, bytes)
    }

    fn cut(&self, file: &File, length: u64) -> io::Result<()> {
        Kernel.cut(file, length)
    }

    fn copy(&self, file: &File, from: &File, length: u64) -> io::Result<u64> {
        Kernel.copy(file, from, length)
    }

    fn own(&self, file: &File, like: &File) -> io::Result<()> {
        Kernel.own(file, like)
    }

    fn stamp(&self, file: &File, at: SystemTime) -> io::Result<()> {
        self.at("stamp");
        Kernel.stamp(file, at)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        Kernel.sync(file)
    }

    fn link(&self, folder: &File, name: &OsStr, other: &OsStr) -> io::Result<()> {
        Kernel.link(folder, name, other)
    }

    fn rename(&self, folder: &File, name: &OsStr, to: &OsStr) -> io::Result<()> {
        self.at("rename");
        Kernel.rename(folder, name, to)
    }

    fn remove(&self, folder: &File, name: &OsStr) -> io::Result<()> {
        Kernel.remove(folder, name)
    }

    fn lock(&self, path: &Path, if_held: IfHeld) -> io::Result<Option<File>> {
        Kernel.lock(path, if_held)
    }
}

#[test]
fn what_an_agent_appends_while_its_file_is_covered_is_not_lost() {
    let covered = claude(1, None, "the key is [redacted]*********")
        + &claude(2, Some(1), "two")
        + &claude(3, Some(2), "three");
    for step in ["stamp", "rename"] {
        let folder = tempfile::tempdir().unwrap();
        let before = claude(1, None, "the key is hunter2secret-01234") + &claude(2, Some(1), "two");
        let (mut archive, session, file) = attached(folder.path(), &before);
        let line = claude(3, Some(2), "three");
        let is_done = AtomicBool::new(false);
        archive.set_disk(Arc::new(Meanwhile { step, file: file.clone(), line, is_done }));
        let secret = verbs::Wanted::Secret("hunter2secret-01234");
        let done = verbs::redact(&mut archive, &secret, verbs::Cause::default(), &[]).unwrap();
        assert_eq!((done.covered.len(), done.left.len()), (1, 0), "{step}");
        assert_eq!(fs::read_to_string(&file).unwrap(), covered, "{step}");
        let notices = verbs::checkpoint(&archive.at(&session).unwrap(), None).unwrap().done.notices;
        assert!(matches!(notices[..], [Notice::Appended { entries: 1, .. }]), "{notices:?}");
        assert_eq!(said(&archive, &session, None).last().unwrap(), "three");
        assert_eq!(fixture::damage(&archive), [""; 0]);
    }
}

#[test]
fn what_another_program_appends_before_a_file_is_set_aside_joins_the_branch_that_was_left_there() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, session) = begun(folder.path());
    verbs::branch(&archive.at(&session).unwrap(), "bookmark", None).unwrap();
    let file = fixture::live(&archive, &session);
    let line = "{\"late\":\"words\"}\n".to_owned();
    let is_done = AtomicBool::new(false);
    archive.set_disk(Arc::new(Meanwhile { step: "make", file, line, is_done }));
    let reverted = verbs::revert(&archive.at(&session).unwrap(), &workspace(), "1", None).unwrap();
    let left = reverted.left.unwrap();
    let notices = verbs::checkpoint(&archive.at(&session).unwrap(), None).unwrap().done.notices;
    let [Notice::Late { entries: 1, branch: Some(branch), aside }] = &notices[..] else {
        panic!("{notices:?}");
    };
    assert_eq!(*branch, left);
    // One that lies elsewhere now, behind a link, hinders no change.
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(aside, &elsewhere).unwrap();
    std::os::unix::fs::symlink(elsewhere, aside).unwrap();
    say(&mut archive, &session, "go on");
    assert_eq!(fixture::damage(&archive), [""; 0]);
}

#[test]
fn who_reads_what_was_taken_out_keeps_it_in_the_log_and_hinders_no_change() {
    let folder = tempfile::tempdir().unwrap();
    let (mut archive, session) = begun(folder.path());
    let (mark, log) = (folder.path().join("redacting"), folder.path().join("store.db-wal"));
    let reader = Archive::open(folder.path(), Access::Read, Seeded::boxed(2)).unwrap();
    said(&reader, &session, None);
    say(&mut archive, &session, "four");
    fs::write(&mark, "").unwrap();
    say(&mut archive, &session, "five");
    let length = fs::metadata(&log).unwrap().len();
    say(&mut archive, &session, "six");
    let grown = fs::metadata(&log).unwrap().len() - length;
    let store = fs::metadata(folder.path().join("store.db")).unwrap().len();
    assert!(mark.exists() && grown < store / 2, "{grown} of {store}");
    drop(reader);
    say(&mut archive, &session, "seven");
    assert!(!mark.exists());
    assert_eq!(fixture::damage(&archive), [""; 0]);
}
