//! `log`: the conversation of a branch.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};

use insta::assert_snapshot;
use serde_json::json;

use super::{Stored, conversation, with_examples};
use crate::env::TestEnv;

#[test]
fn a_session_file_is_read_as_it_is() {
    let env = with_examples();
    assert_snapshot!(env.run(&["log", "native-rewind.jsonl"]), @"
    @0  user  004000d2  2026-03-14 09:00
      Build me a clock that chimes.

    assistant  dfd12df8  2026-03-14 09:00
      Shall it chime the hours or the quarters?

    @3  user  d56dbdf6  2026-03-14 09:00
      The hours, please.

    assistant  a24070e2  2026-03-14 09:00
      Hours it is.

    @4  user  dd44b48d  2026-03-14 09:00
      How often does it need winding?

    assistant  4b20ea40  2026-03-14 09:00
      Once a week, on Sundays.

    ──── boundary  d14b0989  2026-03-14 09:00  1,200 → 300 tokens ────
      Conversation compacted

    summary  5dc4d20a  2026-03-14 09:00
      Ann wants a clock that chimes the hours. The movement is designed.

    note  06d61b5e  2026-03-14 09:00
      The workshop is closed on Mondays.

    @5  user  26da59e7  2026-03-14 09:00
      Then draw the dial.

    assistant  2d77fc52  2026-03-14 09:00
      Roman numerals, with IIII instead of IV, as clockmakers do.
    ");
    assert!(!env.home().join(".local").exists(), "nothing was written");
}

/// Returns a session's file whose model gives its calls one id: `>` and words is what a call runs, `<` and words its output, and
/// any other words are the person's.
fn one_id(said: &[&str]) -> String {
    let records = said.iter().enumerate().map(|(n, said)| {
        let of = |role: &str| json!({ "role": role, "content": "" });
        let mut record = match said.split_at(1) {
            (">", command) => json!({ "type": "tool_use", "message": of("assistant"),
                "tool": { "id": "call_0", "name": "Bash", "input": { "command": command } } }),
            ("<", output) => json!({ "type": "tool_result", "message": of("system"),
                "toolResult": { "id": "call_0", "output": output } }),
            _ => json!({ "type": "user", "message": { "role": "user", "content": said } }),
        };
        let uuid = |n: usize| format!("00000000-0000-4000-8000-{n:012}");
        record["uuid"] = json!(uuid(n + 1));
        record["parentUuid"] = json!(n.checked_sub(1).map(|_| uuid(n)));
        record["sessionId"] = json!("5e555e55-0000-4000-8000-000000000009");
        record["timestamp"] = json!(format!("2026-03-14T09:00:{n:02}.000Z"));
        record["version"] = json!("1");
        record["cwd"] = json!("/project");
        format!("{record}\n")
    });
    records.collect()
}

#[test]
fn each_call_has_its_own_output_beneath_it_though_ids_recur() {
    let env = TestEnv::new();
    let said = [
        "Begin.", ">first", "<one", ">second", ">third", "<two", "<three", ">fourth", "Go on.",
        ">fifth", "<five",
    ];
    fs::write(env.project().join("s.jsonl"), one_id(&said)).unwrap();
    let expected =
        ["$ first", "one", "$ second", "two", "$ third", "three", "$ fourth", "$ fifth", "five"];
    for args in [&["log", "s.jsonl"][..], &["export", "--as", "markdown", "s.jsonl"]] {
        let shown = env.run(args).success().stdout;
        let shown = shown.lines().map(str::trim).filter_map(|line| {
            let whole = line.starts_with('$').then(|| line.split("  ").next().unwrap_or(line));
            whole.or_else(|| expected.iter().copied().find(|output| *output == line))
        });
        assert_eq!(shown.collect::<Vec<_>>(), expected, "{args:?}");
    }
    // Two calls in one answer, only the second of which is looked at.
    let shown = env.run(&["log", "s.jsonl", "-n", "2"]).success().stdout;
    assert!(shown.contains("$ fifth") && shown.contains("five"), "{shown}");
}

#[test]
fn tools_are_short_and_hostile_text_is_harmless() {
    let env = with_examples();
    let output = env.run(&["log", "native-tools.jsonl"]);
    assert!(!output.stdout.contains(['\x1b', '\x07', '\r', '\u{202e}']));
    assert_snapshot!(output, @r"
      system: You mend kettles.

    @0  user  1cb5b153  2026-03-14 09:00
      Why does the kettle not whistle?

    assistant  e9dbae54  2026-03-14 09:00
      thinking, 5 lines: The whistle is a resonator. It needs steam at speed. The lid may leak. Or the …
      Let me look.
      Read kettle/spout.txt:1-40  2cff17e9
         1 ~~ steam
         2 ~~~ steam
         3 ~~~~ steam
        … 37 more lines: undertext show 92ace1dd -s native-tools.jsonl
      $ heat --until whistling  220e9883
        failed:
        no gas in the pipe

    assistant  8dc0e23b  2026-03-14 09:00
      The pipe is empty. These are the steps:
      1. Step 1 of the repair
      2. Step 2 of the repair
      3. Step 3 of the repair
      4. Step 4 of the repair
      5. Step 5 of the repair
      6. Step 6 of the repair
      7. Step 7 of the repair
      8. Step 8 of the repair
      9. Step 9 of the repair
      10. Step 10 of the repair
      11. Step 11 of the repair
      12. Step 12 of the repair
      13. Step 13 of the repair
      14. Step 14 of the repair
      15. Step 15 of the repair
      16. Step 16 of the repair
      17. Step 17 of the repair
      18. Step 18 of the repair
      19. Step 19 of the repair
      20. Step 20 of the repair

    @1  user  7447073b  2026-03-14 09:00
      My note:\x1b[2J\x1b]52;c;cm0gLXJmIC8=\x07 over\x0dwritten, admin\u{202e}txt.exe

    assistant  e91b5097  2026-03-14 09:00
      That note moves the cursor, fills the clipboard and turns the line around. Nothing of it is sent.
    ");
}

#[test]
fn what_is_no_conversation_is_shown_when_asked_for() {
    let env = with_examples();
    assert_snapshot!(env.run(&["log", "native-tools.jsonl", "--all", "-n", "5", "--full"]), @r"
    opaque  42e6ad49

    meta  0675fc15

    assistant  8dc0e23b  2026-03-14 09:00:08
      The pipe is empty. These are the steps:
      1. Step 1 of the repair
      2. Step 2 of the repair
      3. Step 3 of the repair
      4. Step 4 of the repair
      5. Step 5 of the repair
      6. Step 6 of the repair
      7. Step 7 of the repair
      8. Step 8 of the repair
      9. Step 9 of the repair
      10. Step 10 of the repair
      11. Step 11 of the repair
      12. Step 12 of the repair
      13. Step 13 of the repair
      14. Step 14 of the repair
      15. Step 15 of the repair
      16. Step 16 of the repair
      17. Step 17 of the repair
      18. Step 18 of the repair
      19. Step 19 of the repair
      20. Step 20 of the repair

    @1  user  7447073b  2026-03-14 09:00:09
      My note:\x1b[2J\x1b]52;c;cm0gLXJmIC8=\x07 over\x0dwritten, admin\u{202e}txt.exe

    assistant  e91b5097  2026-03-14 09:00:10
      That note moves the cursor, fills the clipboard and turns the line around. Nothing of it is sent.
    ");
}

#[test]
fn a_target_is_where_the_conversation_ends() {
    let env = with_examples();
    let at = |entry: &str| env.run(&["log", "native-rewind.jsonl", "-n", "1", "--at", entry]);
    assert_snapshot!(at("@2"), @"
    assistant  4dafac79  2026-03-14 09:00
      I have added a mute between ten and six.
    ");
    assert_snapshot!(at("HEAD~2"), @"
    assistant  a24070e2  2026-03-14 09:00
      Hours it is.
    ");
    assert_snapshot!(at("aa000006"), @"
    assistant  4dafac79  2026-03-14 09:00
      I have added a mute between ten and six.
    ");
    assert_snapshot!(at("@9"), @r#"
    ------- stderr -------
    error: no checkpoint matches "9"
    hint: the nearest are @3 "The hours, please.", @4 "How often does it need winding?", @5 "Then draw the dial."
    hint: list the checkpoints: undertext log native-rewind.jsonl --checkpoints
    [exit status: 1]
    "#);
}

#[test]
fn entries_are_objects_with_exact_texts() {
    let env = with_examples();
    assert_snapshot!(env.run(&["log", "--json", "native-tools.jsonl", "--at", "@0", "-n", "6"]), @r#"
    {"type":"entry","entry":"e9dbae5476ecf16b730d29f5c2835465adb72741a6c83e8dd5731b91e138b63a","uuid":"bb000003-0000-4000-8000-000000000000","kind":"assistant","role":"assistant","time":"2026-03-14T09:00:03.000Z","checkpoint":null,"own":null,"checkpoints":[],"model":"kettle-mender-1","usage":{"input":120,"output":30,"cache_read":0,"cache_write":0},"blocks":[{"block":"thinking","text":"The whistle is a resonator.\nIt needs steam at speed.\nThe lid may leak.\nOr the spout.\nLook first."},{"block":"text","text":"Let me look."}]}
    {"type":"entry","entry":"2cff17e9f6b771c0c06edfe5abc063a1d1fa8c57f052db38a21f0733bbde0ab5","uuid":"bb000004-0000-4000-8000-000000000000","kind":"assistant","role":"assistant","time":"2026-03-14T09:00:04.000Z","checkpoint":null,"own":null,"checkpoints":[],"model":null,"usage":null,"blocks":[{"block":"call","id":"call-1","name":"Read","input":{"path":"kettle/spout.txt","limit":40}}]}
    {"type":"entry","entry":"92ace1dd7b8b5435732452d965a75a3eca67731b0d2cc126d66a0b80d0806c81","uuid":"bb000005-0000-4000-8000-000000000000","kind":"result","role":"tool","time":"2026-03-14T09:00:05.000Z","checkpoint":null,"own":null,"checkpoints":[],"model":null,"usage":null,"blocks":[{"block":"result","id":"call-1","text":" 1 ~~ steam\n 2 ~~~ steam\n 3 ~~~~ steam\n 4 ~~~~~ steam\n 5 ~ steam\n 6 ~~ steam\n 7 ~~~ steam\n 8 ~~~~ steam\n 9 ~~~~~ steam\n10 ~ steam\n11 ~~ steam\n12 ~~~ steam\n13 ~~~~ steam\n14 ~~~~~ steam\n15 ~ steam\n16 ~~ steam\n17 ~~~ steam\n18 ~~~~ steam\n19 ~~~~~ steam\n20 ~ steam\n21 ~~ steam\n22 ~~~ steam\n23 ~~~~ steam\n24 ~~~~~ steam\n25 ~ steam\n26 ~~ steam\n27 ~~~ steam\n28 ~~~~ steam\n29 ~~~~~ steam\n30 ~ steam\n31 ~~ steam\n32 ~~~ steam\n33 ~~~~ steam\n34 ~~~~~ steam\n35 ~ steam\n36 ~~ steam\n37 ~~~ steam\n38 ~~~~ steam\n39 ~~~~~ steam\n40 ~ steam","error":false}]}
    {"type":"entry","entry":"220e9883beda9f1e4cc689660ac4c2fbeb25b20e3c5f3fd14cfe7279529c13b7","uuid":"bb000006-0000-4000-8000-000000000000","kind":"assistant","role":"assistant","time":"2026-03-14T09:00:06.000Z","checkpoint":null,"own":null,"checkpoints":[],"model":null,"usage":null,"blocks":[{"block":"call","id":"call-2","name":"Bash","input":{"command":"heat --until whistling"}}]}
    {"type":"entry","entry":"fa4eb5ae9a22b1648630a6b5461a065d0fd383465c409ddcb80d8cb7925fddfc","uuid":"bb000007-0000-4000-8000-000000000000","kind":"result","role":"tool","time":"2026-03-14T09:00:07.000Z","checkpoint":null,"own":null,"checkpoints":[],"model":null,"usage":null,"blocks":[{"block":"result","id":"call-2","text":"no gas in the pipe","error":true}]}
    {"type":"entry","entry":"8dc0e23b42b1fae848ebdd4ccf91e4c1820368c2f5f229e6fbd14698f225b870","uuid":"bb000008-0000-4000-8000-000000000000","kind":"assistant","role":"assistant","time":"2026-03-14T09:00:08.000Z","checkpoint":null,"own":null,"checkpoints":[],"model":null,"usage":null,"blocks":[{"block":"text","text":"The pipe is empty. These are the steps:\n1. Step 1 of the repair\n2. Step 2 of the repair\n3. Step 3 of the repair\n4. Step 4 of the repair\n5. Step 5 of the repair\n6. Step 6 of the repair\n7. Step 7 of the repair\n8. Step 8 of the repair\n9. Step 9 of the repair\n10. Step 10 of the repair\n11. Step 11 of the repair\n12. Step 12 of the repair\n13. Step 13 of the repair\n14. Step 14 of the repair\n15. Step 15 of the repair\n16. Step 16 of the repair\n17. Step 17 of the repair\n18. Step 18 of the repair\n19. Step 19 of the repair\n20. Step 20 of the repair"}]}
    "#);
}

#[test]
fn a_stored_session_shows_its_branches() {
    let stored = Stored::reverted();
    assert_snapshot!(stored.run(&["log"]), @"
    @0  user  id-00000  04:05
      Paint the boat.

    assistant  id-00001  04:05
      Which colour?

    @1  before colours

    note  id-00002  04:05
      <note-from-later>
      This conversation was further along before and has been taken back to this point. What was said and done after it is no longer visible to you, but files and other things in the working directory may already have been changed by it. From there, this was left for you:

      Red paint is sold out.

      Try the other shop.

      Take it into account, look at the present state before you rely on it, and go on from here.
      </note-from-later>

    assistant  id-00003  04:05
      Then blue.
    ");
    assert_snapshot!(stored.run(&["log", "--at", "main.1", "-n", "2"]), @"
    user  id-00000  04:05
      Red.

    assistant  id-00001  04:05
      Red it is.
    ");
}

#[test]
fn a_live_file_that_has_grown_is_shown_and_not_touched() {
    let stored = Stored::reverted();
    let mut live = OpenOptions::new().append(true).open(&stored.live).unwrap();
    writeln!(live, "{{}}").unwrap();
    assert_snapshot!(stored.run(&["log", "-n", "1"]), @"
    assistant  id-00000  04:05
      Then blue.
    ");
}

#[test]
fn a_session_without_entries_says_so() {
    assert_snapshot!(Stored::new().run(&["log"]), @"
    ------- stderr -------
    Nothing has been said yet
    ");
}

#[test]
fn what_is_no_session_is_an_error() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["log", "nowhere.jsonl"]), @"
    ------- stderr -------
    error: there is no file or session nowhere.jsonl
    hint: list the sessions: undertext sessions
    [exit status: 1]
    ");
    std::fs::write(env.project().join("notes.txt"), "no session\n").unwrap();
    assert_snapshot!(env.run(&["log", "notes.txt"]), @"
    ------- stderr -------
    error: $HOME/project/notes.txt is not a session in a known format
    hint: see which agents' sessions undertext reads: undertext import --help
    [exit status: 2]
    ");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let env = with_examples();
    for args in [["log", "native-tools.jsonl"], ["graph", "native-tools.jsonl"]] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let output = env.command().args(args).stdout(writer).output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
    }
}

#[test]
fn the_last_none_of_them_are_all() {
    let env = TestEnv::new();
    conversation(&env);
    for verb in ["log", "operations"] {
        let all = env.run(&[verb]).success();
        assert_eq!(env.run(&[verb, "-n", "0"]).success().to_string(), all.to_string(), "{verb}");
        assert_ne!(env.run(&[verb, "-n", "1"]).success().stdout, all.stdout, "{verb}");
    }
    let all = env.run(&["operations", "--all"]).success().stdout;
    assert_eq!(env.run(&["operations", "--all", "-n", "0"]).success().stdout, all);
}
