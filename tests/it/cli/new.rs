//! `new`: the id of a session, and what it records of its surroundings.

use std::fs;

use insta::assert_snapshot;

use super::{json, live, live_path, store};
use crate::env::TestEnv;

#[test]
fn a_session_gets_the_id_that_it_is_given() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["new", "--id", "review-42"]), @r"
    Session review-42
    Live file $HOME/.local/share/undertext/transcripts/review-42.jsonl
    ");
    env.run(&["append", "-q", "-s", "review-42", "Hello"]).success();
    assert!(String::from_utf8(live(&env, "review-42")).unwrap().contains("Hello"));
    env.run(&["verify"]).success();
}

#[test]
fn an_id_that_a_session_or_a_file_has_is_refused() {
    let env = TestEnv::new();
    env.run(&["new", "-q", "--id", "one"]).success();
    env.run(&["append", "-q", "Hello"]).success();
    let taken = || env.run(&["new", "--id", "one"]);
    assert_snapshot!(taken(), @r#"
    ------- stderr -------
    error: there is already a session "one"
    hint: use another id, or continue in it: undertext append -s one
    [exit status: 2]
    "#);
    env.run(&["sessions", "--hide", "one"]).success();
    assert!(taken().stderr.contains("there is already"));
    env.run(&["forget", "one", "--yes"]).success();
    assert!(taken().stderr.contains("there is already"));
    env.run(&["verify"]).success();

    fs::write(live_path(&env, "two"), "{}\n").unwrap();
    assert_snapshot!(env.run(&["new", "--id", "two"]), @r#"
    ------- stderr -------
    error: invalid session id "two": the store's folder transcripts already has a file of that name
    hint: review-42 is a valid id; see the help: undertext new --help
    [exit status: 2]
    "#);
    assert_eq!(fs::read(live_path(&env, "two")).unwrap(), b"{}\n");
}

#[test]
fn an_id_that_is_no_file_name_or_means_something_else_is_refused_and_makes_no_store() {
    let env = TestEnv::new();
    let long = "a".repeat(129);
    for id in [
        "", ".", "..", ".a", "-a", "a/b", "../a", "a b", "a\n", "é", "a@1", "a..b", "HEAD", "12",
        &long,
    ] {
        let refused = env.run(&["new", "--here", "--id", id]);
        assert!(refused.to_string().contains("[exit status: 2]"), "{id:?}: {refused}");
        assert!(refused.stderr.contains("invalid session id"), "{id:?}: {refused}");
    }
    assert!(!store(&env).exists() && !env.project().join(".undertext").exists());
}

#[test]
fn the_system_and_the_dependencies_of_the_package_are_recorded_by_name() {
    let env = TestEnv::new();
    let package = r#"{"dependencies":{"left":"^1","right":"git+https://u:secret@h/r"}}"#;
    fs::write(env.project().join("package.json"), package).unwrap();
    env.run(&["new", "-q"]).success();
    let layers = env.run(&["status", "--layers", "--json"]).success().stdout;
    assert!(!layers.contains("secret"), "{layers}");
    let layers = json(&layers)["layers"].clone();
    assert_eq!(layers["workspace"]["dependencies"], serde_json::json!(["left", "right"]));
    assert!(layers["system"]["kernel"].as_str().is_some_and(|kernel| !kernel.is_empty()));
}
