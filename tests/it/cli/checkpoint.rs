//! `checkpoint` and `checkpoints`: numbers that are given once.

use insta::assert_snapshot;

use super::attach::{Kept, kimis_folder};
use super::conversation;
use crate::env::TestEnv;

#[test]
fn turns_have_checkpoints_and_a_place_has_one() {
    let env = TestEnv::new();
    conversation(&env);
    assert_snapshot!(env.run(&["checkpoint", "-m", "before the refactoring"]), @r"
    Session e572dff8  Why does the build fail?  (native)
    Checkpoint 2
    ------- stderr -------
    hint: to come back to this checkpoint: undertext revert 2
    ");
    assert_snapshot!(env.run(&["checkpoint", "--json"]), @r#"{"type":"checkpoint","session":"e572dff8-2304-400b-856a-555ac3a4558d","title":"Why does the build fail?","format":"native","checkpoint":2,"operation":null,"rotated":null,"written":null}"#);
    assert_snapshot!(env.run(&["checkpoint", "-m", "other words"]), @r"
    ------- stderr -------
    error: this place already has checkpoint 2, and a checkpoint's note cannot be changed
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["checkpoints"]).masked(), @"
       @0  entry-id  just now  Why does the build fail?
       @1  entry-id  just now  Then mend it.
    *  @2  entry-id  just now  before the refactoring
    ");
    let newest = env.run(&["checkpoints", "-n", "1"]).success().stdout;
    assert!(newest.contains("@2") && newest.lines().count() == 1, "{newest}");
    assert_snapshot!(env.run(&["checkpoints", "--json"]).masked(), @r#"
    {"type":"checkpoint","checkpoint":0,"note":null,"operation":2,"own":null,"entry":null,"before":"entry-id","words":"Why does the build fail?","time":"2001-02-03T04:05:07.000Z"}
    {"type":"checkpoint","checkpoint":1,"note":null,"operation":4,"own":null,"entry":"entry-id","before":"entry-id","words":"Then mend it.","time":"2001-02-03T04:05:09.000Z"}
    {"type":"checkpoint","checkpoint":2,"note":"before the refactoring","operation":6,"own":null,"entry":"entry-id","before":null,"words":null,"time":"2001-02-03T04:05:11.000Z"}
    "#);
}

#[test]
fn a_checkpoint_is_shown_to_the_model_where_its_session_can() {
    let env = TestEnv::new();
    conversation(&env);
    assert_snapshot!(env.run(&["checkpoint", "--tell", "-q"]), @"Checkpoint 2");
    assert_snapshot!(env.run(&["checkpoint", "--tell", "-q"]), @"Checkpoint 2 is already here");
    let sent = env.run(&["context", "--json"]).success().stdout;
    assert_eq!(sent.matches("<system>CHECKPOINT 2</system>").count(), 1, "{sent}");
    env.run(&["append", "-q", "Go on."]).success();
    env.run(&["revert", "2"]).success();
    assert!(!env.run(&["context", "--json"]).success().stdout.contains("CHECKPOINT"));
    env.run(&["verify"]).success();
}

#[test]
fn kimi_gets_a_checkpoint_of_its_own() {
    let env = TestEnv::new();
    let file = kimis_folder(&env).join("context.jsonl");
    let lines = [
        "{\"role\": \"_checkpoint\", \"id\": 0}",
        "{\"role\":\"user\",\"content\":\"Build a boat.\"}",
        "{\"role\": \"_checkpoint\", \"id\": 1}",
        "{\"role\":\"assistant\",\"content\":\"Of wood?\"}",
    ];
    let list =
        serde_json::json!({ "work_dirs": [{ "path": env.project().canonicalize().unwrap() }] });
    std::fs::write(env.home().join(".kimi/kimi.json"), list.to_string()).unwrap();
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    env.run(&["import"]).success();
    assert_snapshot!(env.run(&["checkpoint", "--tell", "-q", "-s", "boat"]), @"Checkpoint 2");
    assert_snapshot!(env.run(&["checkpoint", "--tell", "-q", "-s", "boat"]), @"Checkpoint 2 is already here");
    let written = std::fs::read_to_string(&file).unwrap();
    let more: Vec<&str> = written.lines().skip(4).collect();
    assert_eq!(
        more,
        [
            "{\"role\": \"_checkpoint\", \"id\": 2}",
            "{\"role\":\"user\",\"content\":\"<system>CHECKPOINT 2</system>\"}",
        ]
    );
    env.run(&["verify"]).success();
}

#[test]
fn an_agent_without_checkpoints_is_told_none() {
    let kept = Kept::claude();
    kept.env.run(&["import"]).success();
    assert_snapshot!(kept.env.run(&["checkpoint", "--tell", "-s", "6b0a"]), @"
    ------- stderr -------
    error: a model sees checkpoints only in sessions of Kimi CLI or undertext's own
    [exit status: 2]
    ");
}

#[test]
fn an_undone_number_is_hidden_and_never_given_again() {
    let env = TestEnv::new();
    conversation(&env);
    env.run(&["checkpoint"]).success();
    env.run(&["undo", "--op", "6"]).success();
    assert_snapshot!(env.run(&["revert", "2"]), @r#"
    ------- stderr -------
    error: no checkpoint matches "2"
    hint: the nearest are @0 "Why does the build fail?", @1 "Then mend it."
    hint: list the checkpoints: undertext log --checkpoints
    [exit status: 1]
    "#);
    assert_snapshot!(env.run(&["checkpoint", "-q"]), @"Checkpoint 3");
}

#[test]
fn a_note_of_several_lines_is_told_alike_everywhere() {
    let env = TestEnv::new();
    conversation(&env);
    env.run(&["checkpoint", "-m", "before\nthe refactoring"]).success();
    for verb in ["checkpoints", "graph"] {
        let told = env.run(&[verb]).success().stdout;
        assert!(told.contains("before the refactoring"), "{told}");
    }
}
