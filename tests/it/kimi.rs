//! Kimi CLI's sessions: the file that the agent reads and all that it set aside are one session and one graph.

use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::Value;
use undertext::model::Kind;
use undertext::verbs::{self, Archive, GraphNode, GraphView, Machine, Session};
use undertext::wire::Departure;

use crate::env::TestEnv;
use crate::fixture::{self, Seeded};

const PROMPT: &str = r#"{"role": "_system_prompt", "content": "You keep a lighthouse."}"#;

fn checkpoint(n: u64) -> String {
    format!("{{\"role\": \"_checkpoint\", \"id\": {n}}}")
}

fn told(n: u64) -> String {
    user(&format!("<system>CHECKPOINT {n}</system>"))
}

fn user(words: &str) -> String {
    format!("{{\"role\":\"user\",\"content\":\"{words}\"}}")
}

fn step(n: u64, words: &str) -> Vec<String> {
    vec![
        checkpoint(n),
        told(n),
        format!("{{\"role\": \"_usage\", \"token_count\": {}}}", 100 + n),
        format!("{{\"role\":\"assistant\",\"content\":\"{words}\"}}"),
    ]
}

fn turn(n: u64, words: &str, answer: &str) -> Vec<String> {
    [vec![checkpoint(n), told(n), user(words)], step(n + 1, answer)].concat()
}

fn mail(words: &str) -> String {
    user(&format!(
        "<system>You just got a D-Mail from your future self. Read it and decide.\\n\\n{words}</system>"
    ))
}

fn summary(words: &str) -> String {
    let told =
        "<system>Previous context has been compacted. Here is the compaction output:</system>";
    format!(
        "{{\"role\":\"user\",\"content\":[{{\"type\":\"text\",\"text\":\"{told}\"}},\
         {{\"type\":\"text\",\"text\":\"{words}\"}}]}}"
    )
}

/// The states of a session in their order; the last is the one that the agent reads.
fn states() -> Vec<Vec<String>> {
    let begin = [vec![PROMPT.to_owned()], turn(0, "Light the lamp.", "It burns.")].concat();
    let second = turn(2, "Polish the lens.", "It shines.");
    // Rotated by a D-Mail to 2.
    let one = [begin.clone(), second].concat();
    let mailed = [
        begin.clone(),
        vec![checkpoint(2), told(2), mail("The lens is cracked.")],
        step(3, "Then I order a new one."),
    ]
    .concat();
    // Rotated by a compaction.
    let two = mailed;
    let three = [
        vec![PROMPT.to_owned(), checkpoint(0), summary("The lens is ordered.")],
        turn(1, "Is it here?", "Not yet."),
        turn(3, "And now?", "It is."),
    ]
    .concat();
    // Rotated by a revert to 3, without a message.
    let four =
        [three.get(..10).unwrap_or_default().to_vec(), turn(3, "Mount it.", "Done.")].concat();
    // Rotated by a clear.
    let live = [vec![PROMPT.to_owned()], turn(0, "Good night.", "Good night.")].concat();
    vec![one, two, three, four, live]
}

/// Writes a session's folder and returns its files in their order.
fn write(folder: &Path, states: &[Vec<String>]) -> Vec<PathBuf> {
    fs::create_dir_all(folder).unwrap();
    let last = states.len();
    let write = |(n, state): (usize, &Vec<String>)| {
        let name = if n == last { "context.jsonl".into() } else { format!("context_{n}.jsonl") };
        let path = folder.join(name);
        fs::write(&path, state.join("\n") + "\n").unwrap();
        path
    };
    (1..).zip(states).map(write).collect()
}

fn taken_in(paths: &[PathBuf]) -> (Archive, Session) {
    let mut archive = Archive::in_memory(Seeded::boxed(1));
    for path in paths {
        verbs::import(&mut archive, std::slice::from_ref(path), &[], &mut |_| ()).unwrap();
    }
    let session = fixture::only_session(&archive);
    (archive, session)
}

fn left(graph: &GraphView) -> Vec<(&str, &Departure)> {
    let left = |node: &'_ GraphNode| node.left.is_some();
    let nodes = graph.nodes.iter().filter(|node| left(node)).rev();
    nodes.map(|node| (node.words.as_str(), node.left.as_ref().unwrap())).collect()
}

#[test]
fn every_rotation_shows_as_what_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let files = write(&folder.path().join("k"), &states());
    let (archive, session) = taken_in(&files[4..]);
    let graph = verbs::graph(&archive.at(&session).unwrap(), verbs::Detail::default()).unwrap();
    let to = |n: &str| Departure::Revert(n.into());
    assert_eq!(
        left(&graph),
        [
            ("Polish the lens.", &Departure::Mail("2".into())),
            ("The lens is cracked.", &Departure::Compaction),
            ("And now?", &to("3")),
            ("Mount it.", &Departure::Clear),
        ]
    );
    // What was compacted is followed by its summary.
    let summary = graph.nodes.iter().find(|node| node.kind == Kind::Boundary).unwrap();
    let above: Vec<_> = summary.parents.iter().map(|n| graph.nodes[*n].words.as_str()).collect();
    assert_eq!(above, ["The lens is cracked."]);
    // What both states begin with is there once.
    let lit = graph.nodes.iter().filter(|node| node.words == "Light the lamp.").count();
    assert_eq!(lit, 1);
    let unnamed: Vec<_> =
        graph.nodes.iter().filter(|node| node.is_unnamed).map(|node| &node.words).collect();
    assert_eq!(unnamed, ["Mount it.", "And now?", "Polish the lens."]);
}

#[test]
fn whichever_file_is_named_all_are_read_and_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let files = write(&folder.path().join("k"), &states());
    let (archive, session) = taken_in(&files[4..]);
    let drawn = |archive: &Archive, session: &Session| {
        let every = verbs::Detail { all: true, ..verbs::Detail::default() };
        verbs::graph(&archive.at(session).unwrap(), every).unwrap()
    };
    let graph = drawn(&archive, &session);
    let checkpoints = verbs::checkpoints(&archive.at(&session).unwrap()).unwrap();
    for orders in [vec![0], vec![2, 4], vec![4, 3, 2, 1, 0]] {
        let paths: Vec<PathBuf> = orders.into_iter().map(|n| files[n].clone()).collect();
        let (archive, session) = taken_in(&paths);
        assert_eq!(drawn(&archive, &session), graph);
        assert_eq!(verbs::checkpoints(&archive.at(&session).unwrap()).unwrap(), checkpoints);
    }
    let (peeked, session) = verbs::peek(&files[4], Seeded::boxed(1)).unwrap();
    assert_eq!(drawn(&peeked, &session), graph);
    // A rotated file that is named is what is shown.
    let (peeked, session) = verbs::peek(&files[0], Seeded::boxed(1)).unwrap();
    assert_eq!(fixture::said(&peeked, &session, None).last().unwrap(), "It shines.");
}

#[test]
fn the_agents_own_number_selects_on_the_current_path() {
    let folder = tempfile::tempdir().unwrap();
    let files = write(&folder.path().join("k"), &states()[..4]);
    let (archive, session) = taken_in(&files[3..]);
    let found = |archive: &Archive, wanted: &str| {
        let target = verbs::find_place(&archive.at(&session).unwrap(), wanted).unwrap();
        (target.checkpoint.unwrap().n, fixture::said(archive, &session, None).len())
    };
    // Each of the agent's has a number of undertext's, in the order of the files.
    let all = verbs::checkpoints(&archive.at(&session).unwrap()).unwrap();
    let own: Vec<_> = all.iter().map(|shown| shown.own.as_deref().unwrap()).collect();
    assert_eq!(
        own,
        [
            "kimi:0", "kimi:1", "kimi:2", "kimi:3", "kimi:3", "kimi:1", "kimi:2", "kimi:3",
            "kimi:4", "kimi:4"
        ]
    );
    let words: Vec<_> = all.iter().filter_map(|shown| shown.words.as_deref()).collect();
    assert_eq!(words, ["Light the lamp.", "Polish the lens.", "Is it here?", "And now?"]);
    assert_eq!(found(&archive, "kimi:3").0, 7);
    assert_eq!(found(&archive, "@kimi:0").0, 0);
    assert!(verbs::find_place(&archive.at(&session).unwrap(), "kimi:7").is_err());
    // A turn after a revert has the number that the agent gave out again.
    let log = verbs::log(&archive.at(&session).unwrap(), None, usize::MAX).unwrap();
    let turn = log.lines.iter().find(|line| line.kind == Kind::User && line.own == all[7].own);
    assert_eq!(turn.unwrap().messages[0].text(), "Mount it.");
    verbs::revert(&archive.at(&session).unwrap(), &fixture::workspace(), "kimi:3", None).unwrap();
    assert_eq!(fixture::said(&archive, &session, None).last().unwrap(), "Not yet.");
    verbs::revert(&archive.at(&session).unwrap(), &fixture::workspace(), "2", Some("Look again."))
        .unwrap();
    let said = fixture::said(&archive, &session, None);
    assert!(said.last().unwrap().contains("Look again."), "{said:?}");
    assert!(said.iter().any(|said| said == "It burns."));
    let graph = verbs::graph(&archive.at(&session).unwrap(), verbs::Detail::default()).unwrap();
    let note = graph.nodes.iter().find(|node| node.is_head).unwrap();
    assert!(note.is_from_later && note.words == "Look again.", "{note:?}");
    assert_eq!(fixture::damage(&archive), [""; 0]);
}

#[test]
fn a_session_is_shown_with_its_numbers_and_what_is_beside_it_is_left_alone() {
    let env = TestEnv::new();
    write(&env.project().join("k"), &states());
    fs::write(env.project().join("k/wire.jsonl"), "{\"type\": \"metadata\"}\n").unwrap();
    fs::write(env.project().join("k/state.json"), "{\n}\n").unwrap();
    assert_snapshot!(env.run(&["graph", "k/context.jsonl"]), @"
    k  Light the lamp.                                                                       3 Feb 04:05
    ◉  @0 kimi:0  Good night.                                                                  main
    │ ○  @7 kimi:3  Mount it.  cleared                                                         reverted
    │ │ ○             And now?  reverted to kimi:3                                             reverted
    │ ├─╯
    │ ○  @5 kimi:1  Is it here?                                                                reverted
    │ ◆             compacted                                                                  reverted
    │ ○  @2 kimi:2  from later:  The lens is cracked.  compacted                               reverted
    │ │ ○             Polish the lens.  reverted by a D-Mail to kimi:2                         reverted
    │ ├─╯
    │ ○             Light the lamp.                                                            reverted
    ├─╯
    ○             system:  You keep a lighthouse.
    ");
    assert_snapshot!(env.run(&["log", "k/context.jsonl"]), @"
      system: You keep a lighthouse.
      1 record for the agent's own use: -v shows it

    @0  kimi:0  user  b79cec72
      Good night.

    @10  kimi:1  assistant  8b246caf
      Good night.
      1 record for the agent's own use: -v shows it
    ");
    assert_snapshot!(env.run(&["checkpoints", "k/context.jsonl"]), @"
        @0  kimi:0  997c0f11  Light the lamp.
        @1  kimi:1  997c0f11
        @2  kimi:2  aa2a4ee0  Polish the lens.
        @3  kimi:3  aa2a4ee0
        @4  kimi:3  2ecd3117
        @5  kimi:1  c1cd1496  Is it here?
        @6  kimi:2  c1cd1496
        @7  kimi:3  f036bae4  And now?
        @8  kimi:4  f036bae4
        @9  kimi:4  0580885e
    *  @10  kimi:1  b79cec72
    ");
    let file = env.run(&["log", "k/context.jsonl"]);
    assert_eq!(env.run(&["log", "k"]).stdout, file.success().stdout);
    assert_snapshot!(env.run(&["import", "-v", "k"]), @"
    Imported 1 session (1 new): 45 new entries, 3.6 kB
    Also imported 1 file stored alongside sessions, such as long tool results
    ------- stderr -------
    warning: skipped $HOME/project/k/wire.jsonl: kimi keeps it next to a session; undertext leaves it alone
    ");
}

/// What a summary stands for was called left behind by the agent.
#[test]
fn what_is_found_above_a_compaction_stands_there() {
    let env = TestEnv::new();
    // The last state but one stands behind the compaction, and begins as the one before it does.
    write(&env.project().join("k"), &states()[..4]);
    let found = |word: &str| -> Vec<_> {
        let told =
            env.run(&["search", "-F", "--json", word, "-s", "k/context.jsonl"]).success().stdout;
        let hits = told.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let hits = hits.filter(|hit| hit["type"] == "hit");
        hits.map(|hit| (hit["stands"].as_str().unwrap().to_owned(), hit["turn"].as_u64())).collect()
    };
    let stands = |stand: &str, turn: u64| [(stand.to_owned(), Some(turn))];
    assert_eq!(found("Mount it."), stands("current", 7));
    assert_eq!(found("Is it here?"), stands("current", 5));
    assert_eq!(found("Then I order"), stands("compacted", 0));
    assert_eq!(found("It burns."), stands("compacted", 0));
    assert_eq!(found("It shines."), [("left".to_owned(), None)]);
    assert_eq!(found("It is."), [("left".to_owned(), None)]);
}

#[test]
fn what_a_person_or_the_agent_left_for_later_is_shown() {
    let env = TestEnv::new();
    let state = [
        vec![PROMPT.to_owned()],
        turn(0, "Light the lamp.", "It burns."),
        vec![mail("The lens is cracked.")],
        step(2, "I see."),
    ];
    write(&env.project().join("k"), &[state.concat()]);
    env.run(&["import", "k", "-q"]).success();
    env.run(&["revert", "2", "-m", "Mind the oil.", "-s", "k"]).success();
    let shown = env.run(&["log", "-s", "k"]).success().stdout;
    let written = env.run(&["export", "--as", "markdown", "k"]).success().stdout;
    for words in ["The lens is cracked.", "Mind the oil."] {
        assert!(shown.contains(words) && written.contains(words), "{shown}{written}");
    }
    // Checkpoints that the agent sets within a turn are no turns.
    let undone = env.run(&["undo", "-s", "k"]).success();
    let back = env.run(&["revert", "1", "-s", "k"]).success();
    assert!(
        back.stdout.contains("@1 to @2 are kept on branch main.1. Nothing is deleted."),
        "{undone}{back}"
    );
}

#[test]
fn a_compaction_that_is_undone_leaves_no_turn() {
    let env = TestEnv::new();
    let state = [
        vec![PROMPT.to_owned()],
        turn(0, "Light the lamp.", "It burns."),
        turn(2, "Polish the lens.", "It shines."),
        turn(4, "Close the door.", "It is shut."),
    ];
    write(&env.project().join("k"), &[state.concat()]);
    env.run(&["import", "k", "-q"]).success();
    env.run(&["compact", "--keep", "1", "-s", "k"]).success();
    let undone = env.run(&["undo", "-s", "k"]).success();
    assert!(!undone.stdout.contains("@0"), "{undone}");
}

#[test]
fn a_line_ends_as_text_does() {
    let lines = [vec![PROMPT.to_owned()], turn(0, "Light the lamp.", "It burns.")].concat();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("context.jsonl");
    let [all, paired, alone, none] = ["\n", "\r\n", "\r", " "].map(|end| {
        fs::write(&path, lines.join(end) + end).unwrap();
        let (archive, session) = verbs::peek(&path, Box::new(Machine)).unwrap();
        fixture::said(&archive, &session, None).join(" | ")
    });
    assert!(all.starts_with("You keep a lighthouse. | ") && all.ends_with(" | It burns."), "{all}");
    assert_eq!([paired, alone, none], [all.clone(), all, String::new()]);
}

/// The agent makes an empty file before it sets its own aside under that name.
#[test]
fn an_empty_rotation_is_passed_over() {
    let env = TestEnv::new();
    let lines = [vec![PROMPT.to_owned()], turn(0, "Light the lamp.", "It burns.")].concat();
    write(&env.project().join("k"), &[lines]);
    for n in [1, 2] {
        fs::write(env.project().join(format!("k/context_{n}.jsonl")), "").unwrap();
        let imported = env.run(&["import", "k/context.jsonl"]).success();
        assert!(imported.stderr.is_empty(), "{imported}");
        env.run(&["context", "k/context.jsonl"]).success();
        env.run(&["attach", "k/context.jsonl"]).success();
        env.run(&["append", "-s", "k", "Polish the lens."]).success();
    }
    let empty = env.run(&["attach", "k/context_1.jsonl"]);
    assert!(empty.stderr.contains("is not a session in a known format"), "{empty}");
    // What is asked for by its name is told of.
    let empty = env.run(&["import", "k/context_1.jsonl"]);
    assert!(empty.stderr.contains("skipped"), "{empty}");
}

#[test]
fn what_the_agent_does_not_read_is_not_sent() {
    let env = TestEnv::new();
    let lines = [
        PROMPT,
        r#"{"role":"user","content":"Light the lamp."}"#,
        r#"{"role":"assistant","content":[],"tool_calls":[{"type":"function","id":"t","function":{"name":"Shell"}}]}"#,
        r#"{"role":"user","content":[{"type":"text"},{"type":"text","text":"Unread."}]}"#,
        r#"{"role":"user","name":5,"content":"Unread."}"#,
        r#"{"role":"assistant","content":"It burns."}"#,
    ];
    fs::write(env.project().join("context.jsonl"), lines.join("\n") + "\n").unwrap();
    let told = env.run(&["context", "--json", "context.jsonl"]).success().stdout;
    let request: Value = serde_json::from_str(told.lines().next().unwrap()).unwrap();
    let messages = request["request"]["messages"].as_array().unwrap().iter();
    let said: Vec<_> =
        messages.map(|message| message["content"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(said, ["You keep a lighthouse.", "Light the lamp.", "It burns."]);
}

/// The agent was told to have gone back where a command had.
#[test]
fn what_a_command_left_is_not_called_left_by_the_agent() {
    let env = TestEnv::new();
    let state = [
        vec![PROMPT.to_owned()],
        turn(0, "Light the lamp.", "It burns."),
        turn(1, "Mount it.", "It stands."),
    ];
    write(&env.project().join("k"), &[state.concat()]);
    env.run(&["import", "k", "-q"]).success();
    for (place, has_name) in [("1", true), ("main.1", false)] {
        env.run(&["revert", place, "-s", "k/context.jsonl"]).success();
        let drawn = env.run(&["graph", "-s", "k"]).success().stdout;
        assert!(drawn.contains("main.1") == has_name && !drawn.contains("left by"), "{drawn}");
    }
}
