//! `graph`: where paths part, and what stands at their ends.

use std::fs;
use std::path::Path;

use insta::assert_snapshot;

use super::{Stored, with_examples};
use crate::env::TestEnv;

#[test]
fn a_rewind_leaves_an_unnamed_end() {
    let env = with_examples();
    assert_snapshot!(env.run(&["graph", "native-rewind.jsonl"]), @"
    4b6f0c9e  Build me a clock that chimes.                                            14 Mar 2026 09:00
    ◉  @5  09:00  Then draw the dial.                                                          main
    ◆      09:00  compacted 1k → 300 tokens
    ○  @4  09:00  How often does it need winding?
    ○  @3  09:00  The hours, please.
    │ ○  @2  09:00  That is too loud at night.                                                 reverted
    │ ○  @1  09:00  The quarters.                                                              reverted
    ├─╯
    ○  @0  09:00  Build me a clock that chimes.
    ");
}

/// A branch stands between two records of one turn, and one that tells nothing follows it.
#[test]
fn a_branch_within_a_turn_is_drawn() {
    let env = TestEnv::new();
    let id = |n: usize| format!("{n:08}-0000-4000-8000-000000000000");
    let record = |n: usize, role: &str, content: &str| {
        let parent = (n > 1).then(|| id(n - 1));
        let words = serde_json::json!({ "role": role, "id": id(n), "content": content });
        serde_json::json!({
            "parentUuid": parent, "isSidechain": false, "cwd": "/w", "sessionId": id(9), "type": role, "uuid": id(n),
            "message": words, "content": content, "subtype": "informational",
            "timestamp": format!("2026-03-01T00:0{n}:00.000Z"),
        })
    };
    let records = [
        record(1, "user", "Build a boat."),
        record(2, "assistant", "It floats."),
        record(3, "system", "Saved."),
        record(4, "assistant", "It is blue."),
    ];
    let file = env.project().join("a.jsonl");
    fs::write(&file, records.map(|record| format!("{record}\n")).concat()).unwrap();
    env.run(&["import", "-q", "a.jsonl"]).success();
    env.run(&["branch", "blue", &id(2), &id(9)]).success();
    let drawn = env.run(&["graph", &id(9)]).success().stdout;
    assert!(drawn.contains("  blue\n") && drawn.contains("  main\n"), "{drawn}");
}

#[test]
fn each_state_of_a_file_that_its_agent_wrote_anew_is_drawn() {
    let env = TestEnv::new();
    let folder = env.home().join(".claude/projects/-w");
    fs::create_dir_all(&folder).unwrap();
    let id = |n: usize| format!("{n:08}-0000-4000-8000-000000000000");
    let record = |n: usize, parent: Option<usize>, said: &str| {
        serde_json::json!({
            "parentUuid": parent.map(id), "isSidechain": false, "userType": "external", "cwd": "/w",
            "sessionId": id(9), "version": "2.0.0", "type": "user", "uuid": id(n),
            "message": {"role": "user", "content": said},
            "timestamp": format!("2026-03-01T00:0{n}:00.000Z"),
        })
    };
    let base = record(1, None, "a base").to_string();
    for end in [Some((2, "the old end")), Some((3, "the new end")), None] {
        let end = end.map(|(n, said)| format!("\n{}", record(n, Some(1), said)));
        let file = folder.join(format!("{}.jsonl", id(9)));
        fs::write(file, format!("{base}{}\n", end.unwrap_or_default())).unwrap();
        env.run(&["import", "-q"]).success();
    }
    let session = id(9);
    for args in [&["graph", &session][..], &["graph", "--all", &session]] {
        let drawn = env.run(args).success().stdout;
        assert!(["the old end", "the new end", "a base"].iter().all(|said| drawn.contains(said)));
    }
}

#[test]
fn every_entry_is_shown_when_asked_for() {
    let env = with_examples();
    assert_snapshot!(env.run(&["graph", "native-tools.jsonl", "--all"]), @r"
    9c2d7f34  Why does the kettle not whistle?                       kettle-mender-1 · 14 Mar 2026 09:00
    ◉  e91b5097  assistant:  That note moves the cursor, fills the c…  (2026-03-14 09:00)  [main]  HEAD
    ○  @1  7447073b  My note:\x1b[2J\x1b]52;c;cm0gLXJmIC8=\x07 over\x0dwritten, ad…  (2026-03-14 09:00)
    ○  8dc0e23b  assistant:  The pipe is empty. These are the steps:  (2026-03-14 09:00)
    ○  fa4eb5ae  result:  no gas in the pipe  (2026-03-14 09:00)
    ○  220e9883  assistant:  Bash heat --until whistling  (2026-03-14 09:00)
    ○  92ace1dd  result:  1 ~~ steam  (2026-03-14 09:00)
    ○  2cff17e9  assistant:  Read kettle/spout.txt  (2026-03-14 09:00)
    ○  e9dbae54  assistant:  Let me look.  (2026-03-14 09:00)
    ○  @0  1cb5b153  Why does the kettle not whistle?  (2026-03-14 09:00)
    ○  47df01ce  system:  You mend kettles.  (2026-03-14 09:00)
    ");
}

#[test]
fn a_revert_leaves_a_branch_and_a_note() {
    assert_snapshot!(Stored::reverted().run(&["graph"]), @"
    id-00000  Paint the boat.                                                                3 Feb 04:05
    ◉      04:05  from later:  Red paint is sold out.                                          main
    │ ○      04:05  Red.                                                                       main.1
    ├─╯
    ○  @0  04:05  Paint the boat.  @1 before colours
    id-00000 is at @1
    ");
}

#[test]
fn nodes_are_objects_that_name_their_parents() {
    let env = with_examples();
    assert_snapshot!(env.run(&["graph", "native-rewind.jsonl", "--json"]), @r#"
    {"type":"node","node":0,"entry":"26da59e7f1371e77e1d41a7f63bd1d0565d324edd2bd6940b98d56b1d8b07afe","uuid":"aa000014-0000-4000-8000-000000000000","last":"2d77fc520e29cefeb08818325fd16b6c1edcc4e368e170ae2d1f76c621ade87b","kind":"user","time":"2026-03-14T09:00:14.000Z","words":"Then draw the dial.","entries":2,"cut":0,"found":0,"cleared":0,"tokens_before":null,"tokens_after":null,"lost":null,"parents":[1],"checkpoint":5,"own":null,"checkpoints":[],"branches":["main"],"head":true,"unnamed":false,"reverted":false,"undone":false,"edits":0,"commands":0,"failed":0,"sub_agent":false,"aside":false,"left":null,"to":null,"later":false}
    {"type":"node","node":1,"entry":"d14b098990ad56fb3fe1a42543ec59b1b4f1729abfcdc424036bf13add5d9e9e","uuid":"aa000011-0000-4000-8000-000000000000","last":"06d61b5eb96b5296bf974d91af9311ed536477653b4b87b3f170a7a82bdffefb","kind":"boundary","time":"2026-03-14T09:00:11.000Z","words":"Conversation compacted","entries":3,"cut":0,"found":0,"cleared":0,"tokens_before":1200,"tokens_after":300,"lost":0,"parents":[2],"checkpoint":null,"own":null,"checkpoints":[],"branches":[],"head":false,"unnamed":false,"reverted":false,"undone":false,"edits":0,"commands":0,"failed":0,"sub_agent":false,"aside":false,"left":null,"to":null,"later":false}
    {"type":"node","node":2,"entry":"dd44b48dba57a0212868519aa26fc1e2eea48e45cf5604da9fefe9c522e31dd9","uuid":"aa000009-0000-4000-8000-000000000000","last":"4b20ea40cc981f44c27b18a2c62de26f6193ae2a28e67ce87982bad487d16f77","kind":"user","time":"2026-03-14T09:00:09.000Z","words":"How often does it need winding?","entries":2,"cut":0,"found":0,"cleared":0,"tokens_before":null,"tokens_after":null,"lost":null,"parents":[3],"checkpoint":4,"own":null,"checkpoints":[],"branches":[],"head":false,"unnamed":false,"reverted":false,"undone":false,"edits":0,"commands":0,"failed":0,"sub_agent":false,"aside":false,"left":null,"to":null,"later":false}
    {"type":"node","node":3,"entry":"d56dbdf6aff1f5fdaa1b01cbad0562cb50fafcae915374dac515190b9caffd07","uuid":"aa000007-0000-4000-8000-000000000000","last":"a24070e2f1a6433c3e15c8a478139f8be07edff56492ca8b189ec184a1ddb9cb","kind":"user","time":"2026-03-14T09:00:07.000Z","words":"The hours, please.","entries":2,"cut":0,"found":0,"cleared":0,"tokens_before":null,"tokens_after":null,"lost":null,"parents":[6],"checkpoint":3,"own":null,"checkpoints":[],"branches":[],"head":false,"unnamed":false,"reverted":false,"undone":false,"edits":0,"commands":0,"failed":0,"sub_agent":false,"aside":false,"left":null,"to":null,"later":false}
    {"type":"node","node":4,"entry":"69673685f342ef08437af42a09f1066a6989c29b3a3c1cbb58d5255546e01a24","uuid":"aa000005-0000-4000-8000-000000000000","last":"4dafac793bd5576def5e6b92a3c81f9a07a7f60fc97d0b19b0137bf4b4308643","kind":"user","time":"2026-03-14T09:00:05.000Z","words":"That is too loud at night.","entries":2,"cut":0,"found":0,"cleared":0,"tokens_before":null,"tokens_after":null,"lost":null,"parents":[5],"checkpoint":2,"own":null,"checkpoints":[],"branches":[],"head":false,"unnamed":true,"reverted":true,"undone":false,"edits":0,"commands":0,"failed":0,"sub_agent":false,"aside":false,"left":null,"to":null,"later":false}
    {"type":"node","node":5,"entry":"4ca1e6d98f42d018eb27b1ea55797d976c7e1cf407241f6487e22aaf4a60dbf5","uuid":"aa000003-0000-4000-8000-000000000000","last":"8c5a00c0d8ecc648916bc1f5ecd6ed3ec3d4d5d1a14c7d5f7714086673fa2ad9","kind":"user","time":"2026-03-14T09:00:03.000Z","words":"The quarters.","entries":2,"cut":0,"found":0,"cleared":0,"tokens_before":null,"tokens_after":null,"lost":null,"parents":[6],"checkpoint":1,"own":null,"checkpoints":[],"branches":[],"head":false,"unnamed":false,"reverted":true,"undone":false,"edits":0,"commands":0,"failed":0,"sub_agent":false,"aside":false,"left":null,"to":null,"later":false}
    {"type":"node","node":6,"entry":"004000d2c7cd5745957d5ab833089b78588fdac29c28ee9e7211f835531f7f10","uuid":"aa000001-0000-4000-8000-000000000000","last":"dfd12df8fa62e6681e1716fbebb429fa013538de727cce06c2abf2996af74174","kind":"user","time":"2026-03-14T09:00:01.000Z","words":"Build me a clock that chimes.","entries":2,"cut":0,"found":0,"cleared":0,"tokens_before":null,"tokens_after":null,"lost":null,"parents":[],"checkpoint":0,"own":null,"checkpoints":[],"branches":[],"head":false,"unnamed":false,"reverted":false,"undone":false,"edits":0,"commands":0,"failed":0,"sub_agent":false,"aside":false,"left":null,"to":null,"later":false}
    "#);
}

#[test]
fn a_session_without_entries_has_a_branch() {
    assert_snapshot!(Stored::new().run(&["graph"]), @"
    id-00000  (no title)                                                                     3 Feb 04:05
    ◉  nothing yet  [main]  HEAD
    ");
    assert_snapshot!(Stored::new().run(&["graph", "--json"]), @r#"{"type":"branch","branch":"main","entry":null,"head":true}"#);
}

#[test]
fn what_is_not_found_is_a_no_as_in_a_search() {
    let env = with_examples();
    for verb in ["log", "graph"] {
        let told = env.run(&[verb, "native-rewind.jsonl", "--grep", "marigold"]);
        assert_eq!((told.code(), told.stderr.as_str()), (Some(1), "Nothing was found\n"), "{verb}");
        let told = env.run(&[verb, "native-rewind.jsonl", "--grep", "marigold", "--json"]);
        assert_eq!((told.code(), told.stderr.as_str()), (Some(1), ""), "{verb}");
        env.run(&[verb, "native-rewind.jsonl", "--grep", "clock", "--json"]).success();
        let told = env.run(&[verb, "native-rewind.jsonl", "--grep", "clock"]).success();
        assert_eq!(told.stderr, "", "{verb}");
    }
}

/// An undo in a Codex file repeats the turns that the revert took back.
#[test]
fn what_an_undo_repeats_is_drawn_once_and_what_was_undone_only_if_asked_for() {
    let env = TestEnv::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/codex-weather.jsonl");
    let folder = env.home().join(".codex/sessions/2026/08/02");
    fs::create_dir_all(&folder).unwrap();
    let name = "rollout-2026-08-02T10-00-00-019fc000-0000-7000-8000-000000000001.jsonl";
    fs::copy(example, folder.join(name)).unwrap();
    env.run(&["import", "-q"]).success();
    let drawn = |args: &[&str]| -> Vec<String> {
        let shown = env.run(&[&["graph", "019f"], args].concat()).success().stdout;
        shown.lines().skip(1).map(str::to_owned).collect()
    };
    let said = || -> Vec<String> {
        let nodes = env.run(&["graph", "019f", "--json"]).success().stdout;
        let nodes = nodes.lines().map(super::json).filter(|node| node["kind"] == "user");
        nodes.map(|node| node["words"].to_string()).collect()
    };
    assert!(said().len() > 2, "{:?}", said());
    let before = said();
    env.run(&["revert", "1", "-m", "Look at the wind.", "019f"]).success();
    assert!(drawn(&[]).iter().any(|row| row.contains("Look at the wind.")));
    env.run(&["undo", "019f"]).success();
    assert_eq!(said(), before);
    assert!(!drawn(&[]).iter().any(|row| row.contains("Look at the wind.")));
    let whole = drawn(&["--undone"]);
    let undone: Vec<&String> = whole.iter().filter(|row| row.ends_with("undone")).collect();
    assert!(undone.len() == 1 && undone[0].contains("Look at the wind."), "{whole:?}");
}
