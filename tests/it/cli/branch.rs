//! `branch` and `switch`: names for places, and which of them the live file holds.

use std::fs;

use insta::assert_snapshot;

use super::{conversation, json, live, live_path};
use crate::env::TestEnv;

#[test]
fn a_branch_is_made_listed_and_switched_to() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let before = live(&env, &session);
    assert_snapshot!(env.run(&["branch", "again", "@1"]).masked(), @"
    Session entry-id  Why does the build fail?  (native)
    Made branch again at entry-id
    ------- stderr -------
    hint: to continue on that branch: undertext switch again
    ");
    assert_snapshot!(env.run(&["switch", "again"]).masked(), @r#"
    entry-id is now on again, just before @1 "Then mend it."
    @1 (1 turn) is kept on branch main. Nothing is deleted.
    Context about 39 → 23 tokens (<1%)
    Undo  undertext undo
    "#);
    assert!(before.starts_with(&live(&env, &session)));
    assert_eq!(live(&env, &session).split(|&byte| byte == b'\n').count(), 3);
    assert_snapshot!(env.run(&["branch"]).masked(), @"
    *  again  entry-id  just now                             A symbol is missing.
       main   entry-id  just now  reverted, 1 turn after @0  Done.
    ");

    env.run(&["switch", "main"]).success();
    assert!(live(&env, &session) == before);
    let aside = format!("{}.undertext-1", live_path(&env, &session).display());
    assert!(fs::read(aside).unwrap() == before);
    assert_snapshot!(env.run(&["switch", "main"]), @"e572dff8 is already on main; nothing was changed");
}

#[test]
fn branches_are_json_too() {
    let env = TestEnv::new();
    conversation(&env);
    assert_snapshot!(env.run(&["branch", "start", "HEAD~1", "--json"]).masked(), @r#"{"type":"branch","session":"e572dff8-2304-400b-856a-555ac3a4558d","title":"Why does the build fail?","format":"native","branch":"start","entry":"entry-id","from":null,"hidden":false,"operation":6,"rotated":null,"written":null}"#);
    assert_snapshot!(env.run(&["branch", "--json"]).masked(), @r#"
    {"type":"branch","branch":"main","entry":"entry-id","current":true,"time":"2001-02-03T04:05:10.000Z","words":"Done.","reverted":false,"after":null,"turns":null}
    {"type":"branch","branch":"start","entry":"entry-id","current":false,"time":"2001-02-03T04:05:08.000Z","words":"A symbol is missing.","reverted":false,"after":null,"turns":null}
    "#);
    assert_snapshot!(env.run(&["switch", "main", "--json"]).masked(), @r#"{"type":"switch","session":"e572dff8-2304-400b-856a-555ac3a4558d","title":"Why does the build fail?","format":"native","branch":"main","entry":"entry-id","operation":null,"rotated":null,"written":null,"before":null,"at":{"checkpoint":1,"words":"Then mend it."},"turns":[],"kept":null,"compactions":[],"tokens":null,"files":[],"prompt":null,"resume":null,"dry_run":false}"#);
}

#[test]
fn names_and_places_that_cannot_be_are_refused() {
    let env = TestEnv::new();
    conversation(&env);
    assert_snapshot!(env.run(&["branch", "main"]), @r#"
    ------- stderr -------
    error: there is already a branch "main"
    hint: to switch to it: undertext switch main
    [exit status: 2]
    "#);
    assert_snapshot!(env.run(&["branch", "../up"]), @r#"
    ------- stderr -------
    error: invalid branch name "../up": white space, control characters and @ ~ : / \ are not allowed
    hint: a name such as second-try is valid; see the help: undertext branch --help
    [exit status: 2]
    "#);
    assert_snapshot!(env.run(&["branch", "cafe"]), @r#"
    ------- stderr -------
    error: invalid branch name "cafe": it looks like an id
    hint: a name such as second-try is valid; see the help: undertext branch --help
    [exit status: 2]
    "#);
    assert_snapshot!(env.run(&["branch", "far", "HEAD~99"]), @r#"
    ------- stderr -------
    error: no entry matches "HEAD~99"
    hint: HEAD does not exist, or has fewer turns before it
    hint: list the entries with their ids: undertext log
    [exit status: 1]
    "#);
    assert_snapshot!(env.run(&["switch", "mian"]), @r#"
    ------- stderr -------
    error: there is no branch "mian"
    hint: available: main; list them: undertext branch
    [exit status: 1]
    "#);
}

#[test]
fn a_branch_that_is_hidden_is_in_no_list_and_keeps_what_it_led_to() {
    let env = TestEnv::new();
    conversation(&env);
    let whole = env.run(&["log", "--json"]).success().stdout;
    env.run(&["revert", "1"]).success();
    assert_snapshot!(env.run(&["branch", "--hide", "main.1"]).masked(), @"
    Session entry-id  Why does the build fail?  (native)
    Hid main.1, which ends at entry-id
    ------- stderr -------
    hint: to undo: undertext undo --op 7
    ");
    assert_eq!(env.run(&["branch", "--json"]).success().stdout.lines().count(), 1);
    assert_snapshot!(env.run(&["operations", "-n", "1"]), @"7  2001-02-03 04:05  hide  hid main.1 from lists");
    assert_snapshot!(env.run(&["branch", "--hide", "main"]), @"
    ------- stderr -------
    error: cannot hide main: it is the current branch
    hint: switch to another branch first; list the branches: undertext branch
    [exit status: 2]
    ");
    assert_snapshot!(env.run(&["branch", "--hide", "main.1"]), @r#"
    ------- stderr -------
    error: there is no branch "main.1"
    hint: available: main; list them: undertext branch
    [exit status: 1]
    "#);
    // Its end is found by its id, and its name is free.
    let last = json(whole.lines().last().unwrap())["entry"].as_str().unwrap().to_owned();
    env.run(&["branch", "main.1", &last]).success();
    env.run(&["undo", "--op", "8"]).success();
    env.run(&["undo", "--op", "7"]).success();
    env.run(&["switch", "main.1"]).success();
    assert_eq!(env.run(&["log", "--json"]).success().stdout, whole);
    env.run(&["verify"]).success();
}

#[test]
fn a_branch_that_ends_with_a_note_is_listed_by_what_it_says() {
    let env = TestEnv::new();
    conversation(&env);
    env.run(&["revert", "1", "-m", "Look at the linker first."]).success();
    let listed = env.run(&["branch"]).success().stdout;
    let main = listed.lines().find(|line| line.starts_with('*')).unwrap();
    assert!(main.ends_with("  Look at the linker first."), "{listed}");
}

#[test]
fn a_branch_gets_another_name_and_its_old_one_back() {
    let env = TestEnv::new();
    let session = conversation(&env);
    env.run(&["revert", "1"]).success();
    let names = || -> Vec<String> {
        let said = env.run(&["branch", "--json"]).success().stdout;
        said.lines().map(|line| json(line)["branch"].as_str().unwrap().to_owned()).collect()
    };
    assert_snapshot!(env.run(&["branch", "--rename", "main.1", "wrong-turn"]), @"
    Session e572dff8  Why does the build fail?  (native)
    Renamed main.1 to wrong-turn
    ------- stderr -------
    hint: to undo: undertext undo --op 7
    ");
    assert_eq!(names(), ["main", "wrong-turn"]);
    // The current branch stays the current one, and goes on under its name.
    let before = live(&env, &session);
    env.run(&["branch", "--rename", "main", "again"]).success();
    assert!(live(&env, &session) == before);
    env.run(&["append", "-q", "Go on."]).success();
    assert_snapshot!(env.run(&["operations", "-n", "2"]), @"
     9  2001-02-03 04:05  append  1 entry on again
     8  2001-02-03 04:05  branch  renamed main to again
    ");
    env.run(&["undo"]).success();
    env.run(&["undo", "--op", "8"]).success();
    env.run(&["undo", "--op", "7"]).success();
    assert_eq!(names(), ["main", "main.1"]);
    env.run(&["verify"]).success();
    for (old, new, code, words) in [
        ("nosuch", "x", 1, "there is no branch \"nosuch\""),
        ("main.1", "main", 2, "there is already a branch \"main\""),
        ("main.1", "a b", 2, "white space"),
    ] {
        let said = env.run(&["branch", "--rename", old, new]);
        assert_eq!(said.code(), Some(code), "{said}");
        assert!(said.stderr.contains(words), "{said}");
    }
    assert_eq!(env.run(&["branch", "--rename", "main"]).code(), Some(2));
}

#[test]
fn a_branch_with_a_name_like_a_number_is_found_by_it() {
    let env = TestEnv::new();
    conversation(&env);
    env.run(&["branch", "+1", "@0"]).success();
    let told = env.run(&["revert", "+1", "--dry-run", "--json"]).success().stdout;
    assert!(json(&told)["checkpoint"].is_null(), "{told}");
}

/// It was told to be undone, and the branch was there and current.
#[test]
fn an_undo_of_a_branch_that_was_used_since_is_refused() {
    let env = TestEnv::new();
    conversation(&env);
    env.run(&["branch", "side", "HEAD~1"]).success();
    let made = env.run(&["operations", "-n", "1", "--json"]).success().stdout;
    let made = json(&made)["operation"].to_string();
    env.run(&["switch", "side"]).success();
    env.run(&["append", "And then?"]).success();
    let before = env.run(&["operations"]).success().stdout;
    let refused = env.run(&["undo", "--op", &made]);
    assert_eq!(refused.code(), Some(2), "{refused}");
    assert!(refused.stderr.contains("the branch that it created has been used since"), "{refused}");
    assert_eq!(env.run(&["operations"]).success().stdout, before);
}
