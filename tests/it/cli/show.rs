//! `show`: one entry, whole or some of its lines.

use std::fs;

use insta::assert_snapshot;

use super::{Stored, with_examples};

#[test]
fn an_entry_is_shown_whole() {
    let env = with_examples();
    assert_snapshot!(env.run(&["show", "@1.0", "-s", "native-tools.jsonl"]), @r#"
    @1  user  7447073b  2026-03-14 09:00
      My note:\x1b[2J\x1b]52;c;cm0gLXJmIC8=\x07 over\x0dwritten, admin\u{202e}txt.exe
    "#);
    assert_snapshot!(env.run(&["show", "fa4eb5ae", "-s", "native-tools.jsonl"]), @"
    entry  fa4eb5ae9a22b1648630a6b5461a065d0fd383465c409ddcb80d8cb7925fddfc
    uuid   bb000007-0000-4000-8000-000000000000
    kind   result
    role   tool
    time   2026-03-14 09:00:07

    no gas in the pipe
    ");
}

#[test]
fn some_lines_are_shown_alone() {
    let env = with_examples();
    let lines =
        |lines: &str| env.run(&["show", "bb000005", "-s", "native-tools.jsonl", "--lines", lines]);
    assert_snapshot!(lines("39:"), @"
    39 ~~~~~ steam
    40 ~ steam
    ");
    assert_snapshot!(lines("7"), @" 7 ~~~ steam");
    assert_snapshot!(lines("39:41"), @"
    ------- stderr -------
    error: the text has only 40 lines
    hint: see the help: undertext show --help
    [exit status: 2]
    ");
    assert_snapshot!(lines("0"), @"
    ------- stderr -------
    error: invalid value '0' for '--lines <A:B>': lines are counted from 1
    hint: see the help: undertext show --help
    [exit status: 2]
    ");
}

#[test]
fn raw_bytes_are_those_of_the_line() {
    let env = with_examples();
    let file = fs::read(env.project().join("native-tools.jsonl")).unwrap();
    let line = file.split(|&byte| byte == b'\n').nth(10).unwrap();
    let shown = env.command().args(["show", "@1.0", "-s", "native-tools.jsonl", "--raw"]).output();
    assert_eq!(shown.unwrap().stdout, line);
}

#[test]
fn an_object_has_the_lines_that_were_asked_for() {
    let env = with_examples();
    let args = ["show", "bb000007", "-s", "native-tools.jsonl", "--json", "--lines", "1"];
    assert_snapshot!(env.run(&args), @r#"{"type":"entry","entry":"fa4eb5ae9a22b1648630a6b5461a065d0fd383465c409ddcb80d8cb7925fddfc","uuid":"bb000007-0000-4000-8000-000000000000","kind":"result","role":"tool","time":"2026-03-14T09:00:07.000Z","checkpoint":null,"own":null,"checkpoints":[],"model":null,"usage":null,"blocks":[{"block":"result","id":"call-2","text":"no gas in the pipe","error":true}],"text":"no gas in the pipe","from":1,"lines":1}"#);
}

#[test]
fn an_entry_that_is_not_there_is_an_error() {
    let env = with_examples();
    assert_snapshot!(env.run(&["show", "bb", "-s", "native-tools.jsonl"]), @r#"
    ------- stderr -------
    error: "bb" matches 8 entries
    hint: type more characters of one of these: 47df01ce, 1cb5b153, e9dbae54, 2cff17e9, 92ace1dd, 220e9883, fa4eb5ae, 8dc0e23b
    [exit status: 2]
    "#);
    assert_snapshot!(env.run(&["show", "HEAD~99", "-s", "native-tools.jsonl"]), @r#"
    ------- stderr -------
    error: no entry matches "HEAD~99"
    hint: HEAD does not exist, or has fewer turns before it
    hint: list the entries with their ids: undertext log native-tools.jsonl
    [exit status: 1]
    "#);
    assert_snapshot!(env.run(&["show", "../x\x1b[2J", "-s", "native-tools.jsonl"]), @r#"
    ------- stderr -------
    error: no entry matches "../x\u{1b}[2J"
    hint: separate two places with a space:  /x\x1b[2J
    hint: list the entries with their ids: undertext log native-tools.jsonl
    [exit status: 1]
    "#);
    let stored = Stored::new();
    let said = stored.run(&["show", "HEAD"]);
    assert_snapshot!(said, @"
    ------- stderr -------
    error: that place is before the first entry of the session
    hint: list the entries with their ids: undertext log
    [exit status: 2]
    ");
    for other in [&["show", "HEAD", "--hidden"][..], &["redact", "HEAD"]] {
        assert_eq!(stored.run(other).to_string(), said.to_string());
    }
}
