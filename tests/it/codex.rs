//! Codex's threads of several files: each is read as Codex sends it, whatever the order in which its files come, and a
//! history that lies elsewhere is told and never taken from the agent.
//!
//! What is expected of segments, forks and rollbacks here was seen in the requests of Codex 0.169.0.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use undertext::{
    context::Shape,
    json::Raw,
    model::{Block, FileNumber, Message},
    verbs::{self, Archive, Asked, Gap, Machine, OpsError, Session, SyncError, Workspace},
    wire::{Codex, Draft, Graph as _, Read as _, Walk as _, Write as _},
};

use crate::{
    env::TestEnv,
    fixture::{Seeded, damage},
    graph::said_of,
    needs,
    replay::SUMMARY,
    resume::view,
    rollout::{Home, Rollout, SECOND, THIRD, THREAD, Thread, later},
};

pub(crate) fn import(archive: &mut Archive, paths: &[PathBuf]) {
    verbs::import(archive, paths, paths, &mut |_| ()).unwrap();
}

fn imported(paths: &[PathBuf]) -> (Archive, Session) {
    let mut archive = Archive::in_memory(Seeded::boxed(7));
    for path in paths {
        verbs::import(&mut archive, std::slice::from_ref(path), &[], &mut |_| ()).unwrap();
    }
    let mut sessions = archive.every().unwrap();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let session = sessions.remove(0);
    (archive, session)
}

/// Returns what the agent would be sent of the current branch: the words of people and models.
pub(crate) fn sent(archive: &Archive, session: &Session) -> String {
    let Some(position) = archive.store().state(session.key).unwrap().position() else {
        return String::new();
    };
    let view = view(archive, session);
    let path = position.head.map(|head| session.format.path(&view, head, usize::MAX).unwrap());
    let sent = session.format.context(&view, &path.unwrap_or_default().entries).unwrap();
    words(said_of(session.format, &sent, |entry| view.line(entry).unwrap()).into_iter())
}

fn words(said: impl Iterator<Item = Message>) -> String {
    said.map(|message| message.text()).collect::<Vec<_>>().join(" | ")
}

/// Returns the same of a file that is read as it is.
pub(crate) fn peeked(file: &Path) -> (String, Option<Gap>) {
    let (archive, session) = verbs::peek(file, Box::new(Machine)).unwrap();
    let elsewhere = verbs::elsewhere(&archive.at(&session).unwrap()).unwrap();
    (sent(&archive, &session), elsewhere.map(|found| found.gap))
}

const TWO: &str = "rules | one | to one | two | to two";

fn of_two() -> String {
    format!("{TWO} | five | to five | six | to six")
}

fn of_three() -> String {
    format!("{TWO} | five | to five | seven | to seven")
}

#[test]
fn a_segment_goes_on_from_its_base_whatever_the_order_of_the_files() {
    for two in [true, false] {
        let thread = if two { Thread::of_two() } else { Thread::new() };
        let files = &thread.files[..if two { 2 } else { 3 }];
        let expected = if two { of_two() } else { of_three() };
        let mut ways: Vec<Vec<PathBuf>> = vec![vec![thread.home.codex()]];
        for turn in 0..files.len() {
            let mut order = files.to_vec();
            order.rotate_left(turn);
            ways.push(order.clone());
            order.reverse();
            ways.push(order);
        }
        for way in ways {
            let (mut archive, session) = imported(&way);
            assert_eq!(sent(&archive, &session), expected, "{way:?}");
            assert_eq!(verbs::elsewhere(&archive.at(&session).unwrap()).unwrap(), None);
            assert_eq!(verbs::kin(&archive.at(&session).unwrap()).unwrap(), None, "{way:?}");
            assert!(verbs::rebuild(&mut archive, &session).unwrap().equal);
            assert_eq!(damage(&archive), [""; 0]);
        }
    }
}

#[test]
fn a_path_reads_as_little_as_it_is_asked_for_and_crosses_files() {
    let thread = Thread::new();
    let (archive, session) = imported(&[thread.home.codex()]);
    let view = view(&archive, &session);
    let head = archive.store().state(session.key).unwrap().position().unwrap().head.unwrap();
    let whole = Codex.path(&view, head, usize::MAX).unwrap().entries;
    for limit in 1..=whole.len() + 1 {
        let last = Codex.path(&view, head, limit).unwrap().entries;
        assert_eq!(last, whole[whole.len().saturating_sub(limit)..]);
    }
    // From an entry of another file the same view finds what leads there.
    for (n, &entry) in whole.iter().enumerate() {
        assert_eq!(Codex.path(&view, entry, usize::MAX).unwrap().entries, whole[..=n]);
    }
}

#[test]
fn turns_keep_their_numbers_and_what_was_left_stays_a_branch() {
    let thread = Thread::new();
    let env = TestEnv::new();
    env.run(&[Path::new("import"), &thread.home.codex()]).success();
    insta::assert_snapshot!(env.run(&["graph", THREAD]).masked(), @"
    entry-id  one                                                                       1 Aug 2026 10:00
    ◉  @6  10:00  seven                                                                        main
    │ ○  @5  10:00  six                                                                        reverted
    ├─╯
    ○  @4  10:00  five
    │ ○  @3  10:00  four                                                                       reverted
    │ ○  @2  10:00  three                                                                      reverted
    ├─╯
    ○  @1  10:00  two
    ○  @0  10:00  one
    ");
    let numbers = env.run(&["log", THREAD, "--json"]).success().stdout;
    let numbers: Vec<(u64, String)> = numbers
        .lines()
        .filter_map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            Some((line["checkpoint"].as_u64()?, line["blocks"][0]["text"].as_str()?.to_owned()))
        })
        .collect();
    let expected = [(0, "one"), (1, "two"), (4, "five"), (6, "seven")];
    assert_eq!(numbers, expected.map(|(n, words)| (n, words.to_owned())));
    // Of each file all that leads there is shown, records that are no part of the conversation included.
    let all = env.run(&["log", THREAD, "--all", "-n", "999", "--json"]).success().stdout;
    assert_eq!(all.lines().count(), 12 + 6 + 6, "{all}");
}

#[test]
fn segments_that_come_later_move_the_session_and_its_live_file() {
    let thread = Thread::new();
    let root = thread.home.0.path().join("store");
    let mut archive = crate::fixture::open(&root, 3);
    let hidden: Vec<Vec<u8>> = thread.files.iter().map(|path| fs::read(path).unwrap()).collect();
    for path in &thread.files[1..] {
        fs::remove_file(path).unwrap();
    }
    let home = [thread.home.codex()];
    import(&mut archive, &home);
    let session = archive.every().unwrap().remove(0);
    let live = |archive: &Archive| verbs::status(&archive.at(&session).unwrap()).unwrap().live;
    assert_eq!(sent(&archive, &session), format!("{TWO} | three | to three | four | to four"));
    assert_eq!(live(&archive).as_ref(), Some(&thread.files[0]));
    for n in 1..3 {
        fs::write(&thread.files[n], &hidden[n]).unwrap();
        // Until it is taken in, nothing is written where Codex does not look any more.
        assert_eq!(
            verbs::left_for(&archive.at(&session).unwrap()).unwrap().as_ref(),
            Some(&thread.files[n])
        );
        let drafts = [Draft::Note("lost".into())];
        let refused = verbs::append(&archive.at(&session).unwrap(), &Workspace::default(), &drafts);
        assert!(matches!(refused, Err(OpsError::Sync(SyncError::Left { .. }))), "{refused:?}");
        assert_eq!(fs::read(&thread.files[n - 1]).unwrap(), hidden[n - 1]);
        import(&mut archive, &home);
        assert_eq!(sent(&archive, &session), [of_two(), of_three()][n - 1]);
        assert_eq!(live(&archive).as_ref(), Some(&thread.files[n]));
        assert_eq!(verbs::left_for(&archive.at(&session).unwrap()).unwrap(), None);
    }
    let of_file = |path: &Path| {
        let (archive, session) = verbs::peek(path, Box::new(Machine)).unwrap();
        verbs::left_for(&archive.at(&session).unwrap()).unwrap()
    };
    assert_eq!(of_file(&thread.files[0]).as_ref(), Some(&thread.files[2]));
    assert_eq!(of_file(&thread.files[2]), None);
    // An older file that grows, or comes again, moves nothing.
    let mut first = hidden[0].clone();
    first.extend(b"{\"timestamp\":\"2027-01-01T00:00:00.000Z\",\"ordinal\":90,\"type\":\"x\",\"payload\":{}}\n");
    fs::write(&thread.files[0], first).unwrap();
    import(&mut archive, &home);
    assert_eq!(sent(&archive, &session), of_three());
    assert_eq!(live(&archive).as_ref(), Some(&thread.files[2]));
    let old = verbs::attach(&archive.at(&session).unwrap(), Some(&thread.files[0]));
    assert!(matches!(old, Err(OpsError::Sync(SyncError::Left { .. }))), "{old:?}");
    assert_eq!(damage(&archive), [""; 0]);
}

#[test]
fn a_branch_that_a_command_moved_is_kept_when_codex_goes_on_in_another_file() {
    let thread = Thread::of_two();
    let second = fs::read(&thread.files[1]).unwrap();
    fs::remove_file(&thread.files[1]).unwrap();
    let root = thread.home.0.path().join("store");
    let mut archive = crate::fixture::open(&root, 4);
    let home = [thread.home.codex()];
    import(&mut archive, &home);
    let session = archive.every().unwrap().remove(0);
    let nowhere = Workspace::default();
    verbs::revert(&archive.at(&session).unwrap(), &nowhere, "3", None).unwrap();
    let moved = sent(&archive, &session);
    assert_eq!(moved, format!("{TWO} | three | to three"));
    fs::write(&thread.files[1], second).unwrap();
    import(&mut archive, &home);
    assert_eq!(sent(&archive, &session), of_two());
    let branches = verbs::branches(&archive.at(&session).unwrap()).unwrap();
    assert_eq!(branches.len(), 3, "{branches:?}");
}

#[test]
fn a_file_alone_finds_its_base_by_its_name() {
    let thread = Thread::new();
    let [first, second, third] = &thread.files;
    assert_eq!(peeked(third), (of_three(), None));
    assert_eq!(peeked(second), (of_two(), None));
    // In another folder of the day, put away, or compressed.
    let day = thread.home.codex().join("sessions/2026/09/30");
    let put_away = thread.home.codex().join("archived_sessions");
    let name = first.file_name().unwrap();
    for folder in [&day, &put_away] {
        fs::create_dir_all(folder).unwrap();
        fs::rename(first, folder.join(name)).unwrap();
        assert_eq!(peeked(third), (of_three(), None), "{}", folder.display());
        fs::rename(folder.join(name), first).unwrap();
    }
    let whole = fs::read(first).unwrap();
    let mut compressed = first.clone().into_os_string();
    compressed.push(".zst");
    fs::write(&compressed, zstd::encode_all(whole.as_slice(), 3).unwrap()).unwrap();
    fs::remove_file(first).unwrap();
    assert_eq!(peeked(third), (of_three(), None));
    let (archive, session) = imported(&[thread.home.codex()]);
    assert_eq!(sent(&archive, &session), of_three());
    fs::remove_file(&compressed).unwrap();
    // Codex follows no link, and neither is one followed here.
    let aside = thread.home.0.path().join("aside.jsonl");
    fs::write(&aside, &whole).unwrap();
    symlink(&aside, first).unwrap();
    let own = "five | to five | seven | to seven".to_owned();
    assert_eq!(peeked(third), (own.clone(), Some(Gap::Missing)));
    fs::remove_file(first).unwrap();
    fs::create_dir(first).unwrap();
    assert_eq!(peeked(third), (own, Some(Gap::Missing)));
}

#[test]
fn a_file_that_is_named_is_taken_in_with_those_from_which_it_goes_on() {
    let thread = Thread::new();
    let (archive, session) = imported(&thread.files[2..]);
    assert_eq!(sent(&archive, &session), of_three());
}

#[test]
fn a_base_that_cannot_be_read_is_told_and_what_the_file_holds_is_shown() {
    let own = || "five | to five | six | to six".to_owned();
    let check = |change: &dyn Fn(&Thread), gap: Gap| {
        let thread = Thread::of_two();
        change(&thread);
        assert_eq!(peeked(&thread.files[1]), (own(), Some(gap.clone())));
        let (archive, session) = imported(&[thread.home.codex()]);
        assert_eq!(sent(&archive, &session), own());
        let found = verbs::elsewhere(&archive.at(&session).unwrap()).unwrap().unwrap();
        assert_eq!((found.gap, found.file.as_str()), (gap, THREAD));
        assert_eq!(verbs::kin(&archive.at(&session).unwrap()).unwrap(), None);
    };
    let base = |thread: &Thread, change: &dyn Fn(&mut Value)| {
        let text = fs::read_to_string(&thread.files[1]).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        let mut first: Value = serde_json::from_str(first).unwrap();
        change(&mut first["payload"]["history_base"]);
        fs::write(&thread.files[1], format!("{first}\n{rest}")).unwrap();
    };
    check(&|thread| fs::remove_file(&thread.files[0]).unwrap(), Gap::Missing);
    let cut = |thread: &Thread| {
        let whole = fs::read(&thread.files[0]).unwrap();
        fs::write(&thread.files[0], &whole[..whole.len() / 4]).unwrap();
    };
    check(&cut, Gap::Short);
    check(&|thread| base(thread, &|base| base["end_byte_offset"] = json!(1_u64 << 40)), Gap::Short);
    check(&|thread| base(thread, &|base| base["end_byte_offset"] = json!(u64::MAX)), Gap::Short);
    check(&|thread| base(thread, &|base| base["end_byte_offset"] = json!(0)), Gap::Short);
    check(&|thread| base(thread, &|base| base["end_byte_offset"] = json!(20)), Gap::Short);
    check(&|thread| base(thread, &|base| base["end_byte_offset"] = json!("all")), Gap::Short);
    let without = |base: &mut Value| drop(base.as_object_mut().unwrap().remove("end_byte_offset"));
    check(&|thread| base(thread, &without), Gap::Short);
}

#[test]
fn files_that_go_on_from_each_other_end() {
    let home = Home::new();
    let circle = |from: &str, words: &str| {
        let mut rollout = Rollout::behind(THREAD, from, (9, 400), &json!({}));
        rollout.turn(words);
        rollout
    };
    home.write(10, &later(SECOND), &circle(THIRD, "a"));
    let last = home.write(11, &later(THIRD), &circle(SECOND, "b"));
    let (said, gap) = peeked(&last);
    assert!(said.ends_with("b | to b"), "{said}");
    assert_eq!(gap, Some(Gap::Endless));
    let (archive, session) = imported(&[home.codex()]);
    assert_eq!(
        verbs::elsewhere(&archive.at(&session).unwrap()).unwrap().unwrap().gap,
        Gap::Endless
    );
    assert!(verbs::log_all(&archive.at(&session).unwrap(), None, 99).is_ok());
    assert!(
        verbs::graph(
            &archive.at(&session).unwrap(),
            verbs::Detail { all: true, ..verbs::Detail::default() }
        )
        .is_ok()
    );

    let home = Home::new();
    let itself = home.write(10, &later(SECOND), &circle(SECOND, "a"));
    assert_eq!(peeked(&itself), ("a | to a".to_owned(), Some(Gap::Endless)));
}

#[test]
fn the_bytes_of_a_base_count_and_its_ordinals_do_not() {
    let mut first = Rollout::first(THREAD);
    first.has_ordinals = false;
    first.turn("one");
    let one = first.end();
    first.turn("two");
    let check = |(ordinal, bytes): (u64, u64), expected: &str| {
        let home = Home::new();
        let mut second = Rollout::behind(THREAD, THREAD, (ordinal, bytes), &json!({}));
        second.turn("three");
        home.write(10, THREAD, &first);
        let file = home.write(11, &later(SECOND), &second);
        assert_eq!(peeked(&file), (format!("{expected} | three | to three"), None));
        let (archive, session) = imported(&[home.codex()]);
        assert_eq!(sent(&archive, &session), format!("{expected} | three | to three"));
    };
    let both = "rules | one | to one | two | to two";
    check(one, "rules | one | to one");
    check((one.0, first.end().1), both);
    check((first.end().0, one.1), "rules | one | to one");
    // Within a line, the lines before it are read.
    check((one.0, first.end().1 - 3), both);
    check((one.0, one.1 - 1), "rules | one | to one");
}

#[test]
fn a_rollback_in_a_segment_reaches_into_its_base() {
    for (turns, expected) in [
        (1, format!("{TWO} | five | to five")),
        (2, TWO.to_owned()),
        (3, "rules | one | to one".to_owned()),
        (4, "rules".to_owned()),
        (9, "rules".to_owned()),
    ] {
        let thread = Thread::of_two();
        let mut file = fs::read_to_string(&thread.files[1]).unwrap();
        file +=
            &json!({ "timestamp": "2026-08-01T11:00:00.000Z", "ordinal": 90, "type": "event_msg",
            "payload": { "type": "thread_rolled_back", "num_turns": turns } })
            .to_string();
        fs::write(&thread.files[1], file + "\n").unwrap();
        assert_eq!(peeked(&thread.files[1]), (expected.clone(), None), "{turns}");
        let (archive, session) = imported(&[thread.home.codex()]);
        assert_eq!(sent(&archive, &session), expected, "{turns}");
    }
}

#[test]
fn a_segment_that_says_nothing_yet_stands_where_it_begins() {
    let thread = Thread::of_two();
    let line = fs::read_to_string(&thread.files[1]).unwrap();
    fs::write(&thread.files[1], line.lines().next().unwrap().to_owned() + "\n").unwrap();
    assert_eq!(peeked(&thread.files[1]), (TWO.to_owned(), None));
    for order in [[0, 1], [1, 0]] {
        let (archive, session) = imported(&order.map(|n| thread.files[n].clone()));
        assert_eq!(sent(&archive, &session), TWO);
        let graph = verbs::graph(&archive.at(&session).unwrap(), verbs::Detail::default()).unwrap();
        assert_eq!(graph.nodes.iter().filter(|node| node.is_head).count(), 1);
        assert_eq!(graph.nodes.iter().filter(|node| node.is_unnamed).count(), 1);
    }
}

/// Returns where the live file of a session lies, or else its first file.
pub(crate) fn live(archive: &Archive, session: &Session) -> PathBuf {
    let state = archive.store().state(session.key).unwrap();
    archive.path_of(state.file(state.live.unwrap_or(FileNumber::FIRST)).unwrap()).unwrap()
}

#[test]
fn changes_of_a_thread_of_several_files_are_read_by_the_agent_as_they_are_shown() {
    let thread = Thread::new();
    let root = thread.home.0.path().join("store");
    let mut archive = crate::fixture::open(&root, 5);
    let home = [thread.home.codex()];
    import(&mut archive, &home);
    let session = archive.every().unwrap().remove(0);
    let nowhere = Workspace::default();
    let rest: Vec<Vec<u8>> = thread.files.iter().map(|path| fs::read(path).unwrap()).collect();
    let agrees = |archive: &Archive, expected: &str| {
        let live = live(archive, &session);
        assert_eq!(sent(archive, &session), expected);
        assert_eq!(peeked(&live).0, expected, "what the file says alone");
        let now: Vec<Vec<u8>> = thread.files.iter().map(|path| fs::read(path).unwrap()).collect();
        assert_eq!(now, rest, "an older file was written");
        let lines = fs::read_to_string(live).unwrap();
        let ordinals = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let ordinals: Vec<u64> = ordinals.map(|line| line["ordinal"].as_u64().unwrap()).collect();
        assert!(ordinals.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{ordinals:?}");
    };
    // Into the newest file, into the one before, into the first, and to a turn that no path leads to now.
    verbs::revert(&archive.at(&session).unwrap(), &nowhere, "6", None).unwrap();
    agrees(&archive, &format!("{TWO} | five | to five"));
    verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
    agrees(&archive, &of_three());
    verbs::revert(&archive.at(&session).unwrap(), &nowhere, "4", None).unwrap();
    agrees(&archive, TWO);
    verbs::revert(&archive.at(&session).unwrap(), &nowhere, "1", None).unwrap();
    agrees(&archive, "rules | one | to one");
    verbs::revert(&archive.at(&session).unwrap(), &nowhere, "3", None).unwrap();
    agrees(&archive, &format!("{TWO} | three | to three"));
    verbs::append(&archive.at(&session).unwrap(), &nowhere, &[Draft::Note("by hand".into())])
        .unwrap();
    agrees(&archive, &format!("{TWO} | three | to three | by hand"));
    verbs::switch(&archive.at(&session).unwrap(), "main.1").unwrap();
    agrees(&archive, &of_three());
    assert_eq!(damage(&archive), [""; 0]);
}

#[test]
fn a_session_without_a_live_file_goes_back_over_several_files_too() {
    let thread = Thread::new();
    let (archive, session) = imported(&[thread.home.codex()]);
    let nowhere = Workspace::default();
    for (checkpoint, expected) in [
        ("6", format!("{TWO} | five | to five")),
        ("5", format!("{TWO} | five | to five")),
        ("1", "rules | one | to one".to_owned()),
    ] {
        verbs::revert(&archive.at(&session).unwrap(), &nowhere, checkpoint, None).unwrap();
        assert_eq!(sent(&archive, &session), expected, "{checkpoint}");
        verbs::undo(&archive.at(&session).unwrap(), None).unwrap();
        assert_eq!(sent(&archive, &session), of_three());
    }
    assert_eq!(damage(&archive), [""; 0]);
}

/// What Codex itself sends of the thread of several files that it wrote.
#[test]
fn a_real_thread_of_two_files_is_sent_as_codex_sends_it() {
    let Some(corpus) = needs::corpus() else { return };
    let files = corpus.files("codex-made/segments");
    let expected =
        "first question | mock answer | second question | mock answer | RESUMED? | mock answer";
    let asked = |said: String| {
        let said = said.split(" | ").filter(|words| !words.trim_start().starts_with('<'));
        said.collect::<Vec<_>>().join(" | ")
    };
    for order in [[0, 1], [1, 0]] {
        let (archive, session) = imported(&order.map(|n: usize| files[n].clone()));
        assert_eq!(asked(sent(&archive, &session)), expected);
        let graph = verbs::graph(&archive.at(&session).unwrap(), verbs::Detail::default()).unwrap();
        let left: Vec<&str> = graph.nodes.iter().map(|node| node.words.as_str()).collect();
        assert!(left.contains(&"third question") && left.contains(&"fourth question"), "{left:?}");
    }
    let (said, gap) = peeked(&files[1]);
    assert_eq!((asked(said).as_str(), gap), (expected, None));
}

#[test]
fn a_message_between_agents_shows_who_tells_what_to_whom() {
    let sent = |author: &str, recipient: &str, kind: &str, payload: &str| {
        let text = format!(
            "Message Type: {kind}\nTask name: {recipient}\nSender: {author}\nPayload:\n{payload}"
        );
        json!({
            "timestamp": "2026-08-01T10:00:02.000Z", "type": "response_item",
            "payload": { "type": "agent_message", "author": author, "recipient": recipient,
                "content": [{ "type": "input_text", "text": text }] },
        })
    };
    let meta = json!({
        "timestamp": "2026-08-01T10:00:00.000Z", "type": "session_meta",
        "payload": { "id": THREAD, "timestamp": "2026-08-01T10:00:00.000Z", "cwd": "/w" },
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout.jsonl");
    let lines = [
        meta,
        sent("/lead", "/lead/audit", "NEW_TASK", "Look at the linker.\nAnd the flags."),
        sent("/lead/audit", "/lead", "FINAL_ANSWER", ""),
    ];
    fs::write(&path, lines.map(|line| format!("{line}\n")).concat()).unwrap();
    let (archive, session) = verbs::peek(&path, Box::new(Machine)).unwrap();
    let graph = verbs::graph(
        &archive.at(&session).unwrap(),
        verbs::Detail { all: true, ..verbs::Detail::default() },
    )
    .unwrap();
    let shown: Vec<&str> = graph.nodes.iter().map(|node| node.words.as_str()).collect();
    let told = ["/lead to /lead/audit: Look at the linker.", "/lead/audit to /lead: final answer"];
    assert!(told.iter().all(|told| shown.contains(told)), "{shown:?}");
}

/// Returns what the agent would be sent of a file of these lines behind a rollout's first records.
fn sent_behind(begun: &Rollout, lines: &[String]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout.jsonl");
    fs::write(&path, begun.bytes.clone() + &lines.join("\n") + "\n").unwrap();
    peeked(&path).0
}

fn framed(class: &str, payload: &Value) -> String {
    json!({ "timestamp": "2026-08-01T11:00:00.000Z", "type": class, "payload": payload })
        .to_string()
}

fn back(turns: u64) -> String {
    framed("event_msg", &json!({ "type": "thread_rolled_back", "num_turns": turns }))
}

fn asked(words: &str) -> Value {
    json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": words }] })
}

/// Each stands where a user's message would, and is no turn that a rollback counts.
#[test]
fn what_codex_says_in_the_users_place_is_no_turn() {
    let mut begun = Rollout::first(THREAD);
    begun.turn("one");
    begun.turn("two");
    for (words, is_turn) in [
        ("<recommended_plugins>\nx\n</recommended_plugins>", false),
        ("<agent_message_board_notification>x</agent_message_board_notification>", false),
        (" <SKILL>x</Skill>\n", false),
        ("<goal_context>x</goal_context>", false),
        ("<GOAL_CONTEXT>x</GOAL_CONTEXT>", true),
        ("<external_a>x</external_a>", false),
        ("<external_a>x</external_b>", true),
        ("<codex_internal_context source=\"user_goal\">x</codex_internal_context>", false),
        ("<codex_internal_context source=\"a b\">x</codex_internal_context>", true),
        ("<hook_prompt hook_run_id=\"stop:0\">x</hook_prompt>", false),
        ("<hook_prompt>x</hook_prompt>", true),
        ("Warning: The maximum number of unified exec processes you can keep open is 60", false),
        ("warning: the maximum number of unified exec processes you can keep open is 60", true),
        ("<startup_context>x</startup_context>", true),
        ("<recommended_plugins>x", true),
    ] {
        let lines = [framed("response_item", &asked(words)), back(1)];
        let expected = if is_turn { TWO } else { "rules | one | to one" };
        assert_eq!(sent_behind(&begun, &lines), expected, "{words}");
    }
}

/// Each of these was resumed by Codex 0.169.0, and this is what it sent.
#[test]
fn a_summary_is_no_turn_that_a_rollback_counts() {
    let summary = format!("{SUMMARY}sum");
    let summary = summary.as_str();
    let mut begun = Rollout::first(THREAD);
    begun.turn("one");
    begun.turn("two");
    let history = |words: &[&str]| {
        let items: Vec<Value> = words.iter().map(|words| asked(words)).collect();
        let resumed = json!({ "message": "", "replacement_history": items, "window_number": 1, "resume_metadata": {} });
        framed("compacted", &resumed)
    };
    let said = || framed("response_item", &asked(summary));
    let compacted = || framed("compacted", &json!({ "message": summary }));
    let three = || framed("response_item", &asked("three"));
    for (lines, expected) in [
        (vec![said(), back(1)], "rules | one | to one"),
        (vec![history(&["h1", "h2", summary]), three(), back(1)], &format!("h1 | h2 | {summary}")),
        (vec![history(&["h1", "h2", summary]), three(), back(2)], "h1"),
        (vec![history(&[summary, "h1"]), three(), back(9)], summary),
        (vec![compacted(), three(), back(1)], &format!("one | two | {summary}")),
        (vec![compacted(), three(), back(2)], "one"),
    ] {
        assert_eq!(sent_behind(&begun, &lines), expected, "{lines:?}");
    }
}

#[test]
fn words_that_only_begin_like_a_summary_are_the_users() {
    const BEGIN: &str = "Another language model started to solve this problem";
    for (words, is_summary, n_own) in [
        (format!("{SUMMARY}sum"), true, SUMMARY.len()),
        // As undertext wrote it before.
        (format!("{BEGIN}.\nsum"), true, BEGIN.len() + 2),
        (format!("{BEGIN}; is its patch right?"), false, 0),
        (format!("{BEGIN}. Is its patch right?"), false, 0),
        (SUMMARY.trim_end().to_owned(), false, 0),
        (format!(" {SUMMARY}sum"), false, 0),
    ] {
        let record = framed("response_item", &asked(&words));
        let said = Codex.messages(Raw::object(record.as_bytes()).unwrap());
        assert_eq!((said.len(), said[0].is_summary), (1, is_summary), "{words}");
        assert_eq!(Codex.own_words(&words), [n_own, 0], "{words}");
    }
}

#[test]
fn a_line_that_codex_passes_is_kept_and_neither_sent_nor_counted() {
    let mut begun = Rollout::first(THREAD);
    begun.turn("one");
    begun.turn("two");
    let said = || asked("said");
    let with = |key: &str, value: Value| {
        let mut item = said();
        item[key] = value;
        framed("response_item", &item)
    };
    let history = |history: Value| json!({ "message": "", "replacement_history": history });
    for line in [
        json!({ "type": "response_item", "payload": said() }).to_string(),
        json!({ "timestamp": 5, "type": "response_item", "payload": said() }).to_string(),
        said().to_string(),
        framed("response_item", &said()).replace("said", "\\ud800"),
        with("content", json!("said")),
        with("content", json!([{ "type": "text", "text": "said" }])),
        with("role", json!("system")),
        framed("compacted", &history(json!([said(), { "type": "message", "content": "x" }]))),
        framed("compacted", &history(json!({ "0": said() }))),
        framed("compacted", &json!({ "replacement_history": [said()] })),
        back(1 << 32),
    ] {
        assert_eq!(sent_behind(&begun, std::slice::from_ref(&line)), TWO, "{line}");
        let lines = [line.clone(), back(1)];
        assert_eq!(sent_behind(&begun, &lines), "rules | one | to one", "{line}");
    }
    // Words of a role of its own are sent.
    let words = with("role", json!("tool"));
    assert_eq!(sent_behind(&begun, &[words]), format!("{TWO} | said"));
}

/// Other programs write such files of Codex's records, and old versions did without envelopes: Codex resumes none.
#[test]
fn a_file_without_envelopes_or_times_is_shown_as_it_is() {
    let line = |class: &str, payload: Value| json!({ "timestamp": 1_772_569_904.6, "type": class, "payload": payload });
    let file = [
        line("session_meta", json!({ "id": THREAD, "cwd": "/w" })),
        line("response_item", asked("one")),
        line(
            "response_item",
            json!({ "role": "assistant", "type": "message", "content": "to one" }),
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout.jsonl");
    fs::write(&path, file.map(|line| format!("{line}\n")).concat()).unwrap();
    assert_eq!(peeked(&path).0, "one | to one");
    let env = TestEnv::new();
    let told = env.run(&[Path::new("attach"), &path]).success();
    assert!((told.stdout + &told.stderr).contains("Codex does not resume"));
}

#[test]
fn a_passed_line_is_told_by_verify_and_shown_by_no_turn() {
    let mut begun = Rollout::first(THREAD);
    begun.turn("one");
    let env = TestEnv::new();
    let file = env.project().join("rollout.jsonl");
    let passed = framed("response_item", &json!({ "type": "message", "content": asked("said") }));
    fs::write(&file, format!("{}{passed}\n", begun.bytes)).unwrap();
    env.run(&[Path::new("import"), &file]).success();
    let verified = env.run(&["verify", "-v"]).success();
    let told = verified.stdout + &verified.stderr;
    assert!(told.contains("a record that its agent ignores"), "{told}");
    let listed = env.run(&["checkpoints", THREAD]).success().stdout;
    assert!(!listed.contains("said"), "{listed}");
}

#[test]
fn a_result_is_written_as_the_kind_of_its_call_is_answered() {
    for (call, output, answer) in [
        (
            json!({ "type": "function_call", "name": "shell", "arguments": "{}" }),
            "done",
            json!({ "type": "function_call_output", "output": "done" }),
        ),
        (
            json!({ "type": "custom_tool_call", "name": "apply_patch", "input": "p" }),
            "done",
            json!({ "type": "custom_tool_call_output", "output": "done" }),
        ),
        (
            json!({ "type": "tool_search_call", "execution": "client", "arguments": {} }),
            r#"[{"name":"read"}]"#,
            json!({ "type": "tool_search_output", "execution": "client", "status": "completed", "tools": [{ "name": "read" }] }),
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let file = root.join("rollout.jsonl");
        let mut begun = Rollout::first(THREAD);
        begun.turn("one");
        let mut with_id = call.clone();
        with_id["call_id"] = json!("c");
        begun.line("response_item", with_id);
        fs::write(&file, &begun.bytes).unwrap();
        let mut archive = crate::fixture::open(&root.join("store"), 3);
        let (session, _) = verbs::take_up(&mut archive, &file).unwrap();
        let result =
            |output: &str| Draft::Result { id: "c".into(), output: output.into(), error: None };
        if call["type"] == "tool_search_call" {
            let words = [result("words")];
            let odd = verbs::append(&archive.at(&session).unwrap(), &Workspace::default(), &words);
            assert!(odd.is_err(), "{odd:?}");
        }
        verbs::append(&archive.at(&session).unwrap(), &Workspace::default(), &[result(output)])
            .unwrap();
        let written = fs::read_to_string(&file).unwrap();
        let mut answer = answer;
        answer["call_id"] = json!("c");
        let is_there =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["payload"] == answer;
        assert!(written.lines().any(is_there), "{written}");
    }
}

/// Returns the answers that are sent of a thread that says these things.
fn answers(said: &[(&str, Value)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout.jsonl");
    let mut begun = Rollout::first(THREAD);
    begun.turn("one");
    for (class, payload) in said {
        begun.line(class, payload.clone());
    }
    fs::write(&path, &begun.bytes).unwrap();
    let (archive, session) = verbs::peek(&path, Box::new(Machine)).unwrap();
    let asked = Asked { shape: Shape::Agent, ..crate::compact::asked(u64::MAX) };
    let found = verbs::context(&archive.at(&session).unwrap(), None, &asked).unwrap();
    let answers = found.prepared.items.iter().flat_map(|item| item.message().into_owned().blocks);
    answers
        .filter_map(|block| match &block {
            Block::Result { .. } => Some(block.answer_text().into_owned()),
            _ => None,
        })
        .collect()
}

#[test]
fn a_result_of_another_kind_answers_no_call() {
    let call =
        json!({ "type": "custom_tool_call", "name": "apply_patch", "input": "p", "call_id": "c" });
    let history =
        |items: &[&Value]| ("compacted", json!({ "message": "", "replacement_history": items }));
    for (class, expected) in
        [("custom_tool_call_output", "done"), ("function_call_output", "aborted")]
    {
        let answer = json!({ "type": class, "call_id": "c", "output": "done" });
        for said in [
            &[("response_item", call.clone()), ("response_item", answer.clone())][..],
            &[history(&[&call, &answer])],
            &[history(&[&call]), ("response_item", answer.clone())],
        ] {
            assert_eq!(answers(said), [expected], "{said:?}");
        }
    }
}

/// What is expected was seen in the requests of Codex 0.169.0 and 0.171.0.
#[test]
fn words_stand_in_for_the_pictures_that_codex_does_not_send() {
    const REMOTE: &str = "image content omitted because remote image URLs are not supported";
    const STRANGE: &str = "image content omitted because it could not be processed";
    const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgZGIGAAAOAAfXb+R4\
                       AAAAAElFTkSuQmCC";
    const GIF: &str = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
    const WEBP: &str = "UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAgA0JaQAA3AA/vuUAAA=";
    // Its frame and one byte of its pixels.
    const JPEG: &str = "/9j/wAAEAAD/2gACAA==";
    let data = |media: &str, data: &str| format!("data:{media};base64,{data}");
    let shown = [
        data("image/png", PNG),
        data("image/gif", GIF),
        data("image/webp", WEBP),
        data("image/jpeg", JPEG),
        data("text/plain", PNG),
        data("", PNG),
        data("image/png", PNG).replace("data", "DATA").replace("base64", "BASE64"),
        data("image/webp", WEBP.trim_end_matches('=')),
        data("image/png", &PNG.replace("CYII=", "CYIIeHh4")),
        "file:///x.png".to_owned(),
        "sediment://file_1".to_owned(),
        "x.png".to_owned(),
        String::new(),
    ];
    let strange = [
        data("image/png", ""),
        data("image/png", "%%%"),
        data("image/png", &format!(" {PNG}")),
        data("image/png", &format!("{PNG}\n")),
        data("text/plain", "aGVsbG8="),
        data("image/svg+xml", "PHN2Zy8+"),
        data("application/pdf", "JVBERi0xLjQ="),
        format!("data:image/png,{PNG}"),
    ];
    let remote = ["http://a/b.png", "HTTPS://a/b.png"].map(str::to_owned);
    let text = |words: &str| Some(Block::Text(words.to_owned()));
    let all = shown.into_iter().map(|url| (url, None));
    let all = all.chain(strange.into_iter().map(|url| (url, text(STRANGE))));
    for (url, words) in all.chain(remote.into_iter().map(|url| (url, text(REMOTE)))) {
        let parts = json!([{ "type": "input_text", "text": "see" }, { "type": "input_image", "image_url": url }]);
        let message = json!({ "type": "message", "role": "user", "content": parts });
        let output = json!({ "type": "function_call_output", "call_id": "c", "output": parts });
        let history = json!({ "message": "", "replacement_history": [message, output] });
        for (kind, payload) in
            [("response_item", message), ("response_item", output), ("compacted", history)]
        {
            let time = "2026-08-01T10:00:00.000Z";
            let line = json!({ "timestamp": time, "type": kind, "payload": payload }).to_string();
            let record = Raw::object(line.as_bytes()).unwrap();
            let images = |messages: Vec<Message>| -> Vec<Block> {
                let parts = messages.into_iter().flat_map(|message| message.blocks);
                let parts = parts.flat_map(|block| match block {
                    Block::Result { blocks, .. } => blocks,
                    other => vec![other],
                });
                parts.filter(|block| *block != Block::Text("see".to_owned())).collect()
            };
            let said = images(Codex.messages(record));
            assert!(said.iter().all(|block| matches!(block, Block::Image(_))), "{said:?}");
            let expected =
                words.clone().map_or_else(|| said.clone(), |words| vec![words; said.len()]);
            assert_eq!(images(Codex.sent(record, &[])), expected, "{kind} {url}");
        }
    }
}

#[test]
fn what_prepares_a_turn_is_repeated_once_however_often_it_comes_back() {
    let env = TestEnv::new();
    let folder = env.home().join(".codex/sessions/2026/08/01");
    fs::create_dir_all(&folder).unwrap();
    let id = "019fc000-4d1e-7a30-8b52-6f0e9d8c7b6a";
    let file = folder.join(format!("rollout-2026-08-01T10-00-00-{id}.jsonl"));
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/codex-weather.jsonl");
    fs::copy(example, &file).unwrap();
    env.run(&["import", "-q"]).success();
    let lines = || fs::read_to_string(&file).unwrap().lines().count();
    let grown = [0; 12].map(|_| {
        let before = lines();
        env.run(&["revert", "-q", "@1", "-s", id]).success();
        env.run(&["undo", "-q", "-s", id]).success();
        lines() - before
    });
    assert_eq!(grown[1..11], grown[2..], "each round adds as many lines: {grown:?}");
}
