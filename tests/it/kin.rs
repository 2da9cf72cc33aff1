//! Sessions that were made of others, and sub-agents: found whatever the order in which their files come.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use undertext::store::SessionFilter;
use undertext::verbs::{self, Archive, Bond, Kin, Session};

use crate::env::TestEnv;
use crate::fixture::{self, Seeded};
use crate::needs;

/// A record of Claude Code's: its number, its parent's, its session, and whatever else it says.
fn claude(n: u32, parent: Option<u32>, session: &str, more: &str) -> String {
    let parent = parent.map_or("null".to_owned(), |n| format!("\"u{n}\""));
    let role = if n % 2 == 1 { "user" } else { "assistant" };
    format!(
        "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/w\",\"sessionId\":\"{session}\",\
         \"version\":\"2.1.0\",\"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\"content\":\"Words {n}\"}},\
         \"uuid\":\"u{n}\",\"timestamp\":\"2026-03-01T10:00:{n:02}.000Z\"{more}}}\n"
    )
}

fn chain(numbers: &[u32], session: &str, more: impl Fn(u32) -> String) -> String {
    let parents = std::iter::once(None).chain(numbers.iter().copied().map(Some));
    numbers.iter().zip(parents).map(|(n, parent)| claude(*n, parent, session, &more(*n))).collect()
}

fn codex(second: u32, kind: &str, payload: &str) -> String {
    format!(
        "{{\"timestamp\":\"2026-03-01T10:00:{second:02}.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n"
    )
}

fn meta(second: u32, id: &str, more: &str) -> String {
    codex(second, "session_meta", &format!("{{\"id\":\"{id}\",\"cwd\":\"/w\"{more}}}"))
}

fn said(second: u32, words: &str) -> String {
    let payload = format!(
        "{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":\"{words}\"}}]}}"
    );
    codex(second, "response_item", &payload)
}

fn ordinal(n: u32, line: &str) -> String {
    line.replacen('{', &format!("{{\"ordinal\":{n},"), 1)
}

fn pi(id: &str, parent: &str) -> String {
    format!(
        "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":{parent},\"timestamp\":\"2026-03-01T10:00:00.000Z\",\
         \"message\":{{\"role\":\"user\",\"content\":\"{id}\"}}}}\n"
    )
}

fn pi_header(id: &str, more: &str) -> String {
    format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"{id}\",\"timestamp\":\"2026-03-01T10:00:00.000Z\",\"cwd\":\"/w\"{more}}}\n"
    )
}

fn kimi(turns: &[&str]) -> String {
    let mut lines = vec!["{\"role\": \"_system_prompt\", \"content\": \"At ten.\"}".to_owned()];
    for (n, turn) in turns.iter().enumerate() {
        lines.push(format!("{{\"role\": \"_checkpoint\", \"id\": {n}}}"));
        lines.push(format!("{{\"role\":\"user\",\"content\":\"{turn}\"}}"));
        lines.push(format!("{{\"role\":\"assistant\",\"content\":\"To {turn}.\"}}"));
    }
    lines.join("\n") + "\n"
}

/// Writes a family of each agent and returns the files.
fn families(root: &Path) -> Vec<PathBuf> {
    let nothing = |_| String::new();
    let copied = |n| match n {
        11 | 12 => {
            format!(",\"forkedFrom\":{{\"sessionId\":\"c-one\",\"messageUuid\":\"u{}\"}}", n - 10)
        }
        _ => String::new(),
    };
    let aside = |_| ",\"agentId\":\"a1\"".to_owned();
    let aside = chain(&[31, 32], "c-one", aside).replace("Sidechain\":false", "Sidechain\":true");
    let resumed = chain(&[41, 42], "c-old", nothing) + &claude(43, Some(42), "c-new", "");
    let codex_turns = [said(2, "one"), said(3, "two")].concat();
    let spawned = ",\"source\":{\"subagent\":{\"thread_spawn\":{\"parent_thread_id\":\"x-one\"}}}";
    let files = [
        // It went on after it was forked.
        ("claude/c-one.jsonl", chain(&[1, 2, 3, 4, 5, 6], "c-one", nothing)),
        ("claude/c-two.jsonl", chain(&[1, 2, 3, 4, 7, 8], "c-two", nothing)),
        ("claude/c-three.jsonl", chain(&[1, 2, 3, 4, 7, 9], "c-three", nothing)),
        ("claude/c-four.jsonl", chain(&[11, 12, 13], "c-four", copied)),
        ("claude/c-one/subagents/agent-a1.jsonl", aside),
        ("claude/c-new.jsonl", resumed),
        ("codex/rollout-1.jsonl", meta(1, "x-one", "") + &codex_turns + &said(4, "three")),
        (
            "codex/rollout-2.jsonl",
            meta(10, "x-two", ",\"forked_from_id\":\"x-one\"")
                + &meta(10, "x-one", "")
                + &[said(10, "one"), said(10, "two"), said(11, "other")].concat(),
        ),
        ("codex/rollout-3.jsonl", meta(12, "x-three", spawned) + &said(13, "work")),
        (
            "codex/rollout-4.jsonl",
            meta(
                14,
                "x-four",
                ",\"history_base\":{\"thread_id\":\"x-five\",\"end_ordinal_exclusive\":2}",
            ) + &said(15, "after"),
        ),
        (
            "codex/rollout-5.jsonl",
            ordinal(0, &meta(1, "x-five", ""))
                + &ordinal(1, &said(2, "page"))
                + &ordinal(2, &said(3, "next")),
        ),
        (
            "pi/1_p-one.jsonl",
            pi_header("p-one", "") + &pi("aaaaaaa1", "null") + &pi("aaaaaaa2", "\"aaaaaaa1\""),
        ),
        (
            "pi/2_p-two.jsonl",
            pi_header("p-two", ",\"parentSession\":\"/h/.pi/1_p-one.jsonl\"")
                + &pi("aaaaaaa1", "null")
                + &pi("bbbbbbb2", "\"aaaaaaa1\""),
        ),
        ("kimi/k-one/context.jsonl", kimi(&["rise", "shine", "rest"])),
        ("kimi/k-two/context.jsonl", kimi(&["rise", "leave"])),
        ("kimi/k-one/subagents/s1/context.jsonl", kimi(&["help"])),
    ];
    let write = |(name, content): &(&str, String)| {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    };
    files.iter().map(write).collect()
}

fn kin(archive: &Archive) -> BTreeMap<String, Kin> {
    let sessions = archive.every().unwrap();
    let kin = |session: &Session| {
        Some((session.name.id.clone(), verbs::kin(&archive.at(session).unwrap()).unwrap()?))
    };
    sessions.iter().filter_map(kin).collect()
}

/// Returns what an entry of a session says, by its id.
fn words(archive: &Archive, id: &str, entry: Option<undertext::model::EntryId>) -> String {
    let Some(entry) = entry else { return String::new() };
    let session = archive.every().unwrap().into_iter().find(|found| found.name.id == id).unwrap();
    let target = verbs::find_place(&archive.at(&session).unwrap(), &entry.to_string()).unwrap();
    let said = verbs::messages(&archive.at(&session).unwrap(), target.entry().unwrap()).unwrap();
    said.iter().map(undertext::model::Message::text).collect()
}

#[test]
fn what_a_session_was_made_of_is_found_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let files = families(folder.path());
    let import = |order: &mut dyn Iterator<Item = &PathBuf>| {
        let mut archive = Archive::in_memory(Seeded::boxed(1));
        for path in order {
            verbs::import(&mut archive, std::slice::from_ref(path), &[], &mut |_| ()).unwrap();
        }
        archive
    };
    let archive = import(&mut files.iter());
    let found = kin(&archive);
    let told: Vec<String> = found
        .iter()
        .map(|(id, kin)| {
            let here = words(&archive, id, kin.here);
            let held =
                if kin.is_held { words(&archive, &kin.session, kin.there) } else { "gone".into() };
            format!("{id} {} {}: {here} | {held}", kin.bond.words(), kin.session)
        })
        .collect();
    assert_snapshot!(told.join("\n"), @"
    c-four fork of c-one: Words 12 | Words 2
    c-new fork of c-old: Words 42 | gone
    c-one/a1 sub-agent of c-one:  | 
    c-three fork of c-two: Words 7 | Words 7
    c-two fork of c-one: Words 4 | Words 4
    k-one/s1 sub-agent of k-one:  | 
    k-two fork of k-one:  | 
    p-two fork of p-one: aaaaaaa1 | aaaaaaa1
    x-four fork of x-five:  | page
    x-three sub-agent of x-one:  | 
    x-two fork of x-one: two | two
    ");
    for step in [3, 5, 11] {
        let order = (0..files.len()).map(|n| &files[(n * step + 1) % files.len()]);
        assert_eq!(kin(&import(&mut order.rev())), found);
    }
    let mut archive = import(&mut files.iter());
    for session in archive.every().unwrap() {
        assert!(verbs::rebuild(&mut archive, &session).unwrap().equal, "{session:?}");
    }
    assert_eq!(fixture::damage(&archive), [""; 0]);
}

#[test]
fn lists_show_forks_and_put_sub_agents_below_their_session() {
    let env = TestEnv::new();
    families(&env.project());
    env.run(&["import", "."]).success();
    let of = |agent: &str, more: &[&str]| {
        env.run(&[&["sessions", "--agent", agent], more].concat()).stdout
    };
    assert_snapshot!(of("claude", &[]), @"
    ID           ACTIVE  TITLE                      TURNS
    c-new    2026-03-01  Words 41  (fork of c-old)      2  <1%
    c-four   2026-03-01  Words 11  (fork of c-one)      2  <1%
    c-three  2026-03-01  Words 1  (fork of c-two)       4  <1%
    c-two    2026-03-01  Words 1  (fork of c-one)       3  <1%
    c-one    2026-03-01  Words 1  (1 sub-agent)         3  <1%
    ");
    assert_snapshot!(of("claude", &["--all"]), @"
    ID            ACTIVE  TITLE                               TURNS
    c-new     2026-03-01  Words 41  (fork of c-old)               2  <1%
    c-four    2026-03-01  Words 11  (fork of c-one)               2  <1%
    c-three   2026-03-01  Words 1  (fork of c-two)                4  <1%
    c-two     2026-03-01  Words 1  (fork of c-one)                3  <1%
    c-one     2026-03-01  Words 1  (1 sub-agent)                  3  <1%
    c-one/a1  2026-03-01  └ (no title)  (sub-agent of c-one)      0  <1%
    ");
    assert_snapshot!(of("codex", &["--all"]), @"
    ID           ACTIVE  TITLE                         TURNS
    x-four   2026-03-01  after  (fork of x-five)           1  <1%
    x-two    2026-03-01  one  (fork of x-one)              3  <1%
    x-one    2026-03-01  one  (1 sub-agent)                3  <1%
    x-three  2026-03-01  └ work  (sub-agent of x-one)      1  <1%
    x-five   2026-03-01  page                              2  <1%
    ");
    // A sub-agent is selected behind its session, and is never meant by the session's id.
    assert_snapshot!(env.run(&["status", "c-on/a"]), @"
    session     c-one/a1 (claude)
    title       none yet
    folder      /w
    related     sub-agent of c-one
    branch      main
    head        81c6e145
    checkpoint  none yet
    holds       0 turns, 2 entries, 1 operation
    context     about 16 of 32,000 tokens; compaction due at 24,000 (23,984 to go)
    started     2026-03-01 10:00:31
    active      2026-03-01 10:00:32
    ");
    assert_snapshot!(env.run(&["graph", "c-on"]), @"
    c-one  Words 1                                                                      1 Mar 2026 10:00
    ◉  @2  10:00  Words 5                                                                          main
    ○  @1  10:00  Words 3
    ○  @0  10:00  Words 1
    ");
    assert_snapshot!(env.run(&["graph", "x-four"]), @"
    x-four  after                                                                       1 Mar 2026 10:00
    ◉  @0  10:00  after                                                                            main
    fork of x-five, at aae16d09; its earlier history is there and is not shown
    ------- stderr -------
    warning: the history before the fork is in the parent session x-five (in the store); that history is not shown
    ");
    assert_snapshot!(env.run(&["graph", "c-two"]), @"
    c-two  Words 1                                                                      1 Mar 2026 10:00
    ◉  @2  10:00  Words 7                                                                          main
    ○  @1  10:00  Words 3
    ○  @0  10:00  Words 1
    fork of c-one, at f323636f
    ");
}

#[test]
fn forks_of_real_sessions_are_found() {
    let Some(corpus) = needs::corpus() else { return };
    let found = |names: &[&str]| {
        let mut archive = Archive::in_memory(Seeded::boxed(1));
        let paths: Vec<PathBuf> = names.iter().map(|name| corpus.path(name)).collect();
        verbs::import(&mut archive, &paths, &[], &mut |_| ()).unwrap();
        assert_eq!(archive.sessions(&SessionFilter::default()).unwrap().len(), names.len());
        let kin = kin(&archive);
        assert_eq!(kin.len(), 1, "{kin:?}");
        kin.into_values().next().unwrap()
    };
    let shared = found(&[
        "claude/entire-2.1.12-sharedprefix-a.jsonl",
        "claude/entire-2.1.12-sharedprefix-b.jsonl",
    ]);
    assert!(shared.bond == Bond::Fork && shared.session.starts_with("e1bc91d1"));
    assert!(shared.is_held && shared.here.is_some() && shared.there.is_some());
    let child = found(&["codex/codexbar-fork-child.jsonl", "codex/codexbar-fork-parent.jsonl"]);
    assert_eq!((child.bond, child.session.as_str()), (Bond::Fork, "parent-session"));
    assert!(child.is_held && child.here.is_some() && child.there.is_some());
    let twice = found(&["codex/stdsyntax-twometa-fork.jsonl"]);
    assert_eq!(twice.bond, Bond::SubAgent);
    assert!(twice.session.starts_with("019fa6e3") && !twice.is_held);
    let resumed = found(&["claude/happy-1.0.56-continue.jsonl"]);
    assert_eq!(resumed.bond, Bond::Continuation);
    assert!(resumed.session.starts_with("789e105f") && resumed.here.is_some());
}
