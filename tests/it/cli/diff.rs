//! `diff`: how two branches differ, from where they part.

use std::fs;

use insta::assert_snapshot;

use super::{Stored, json, with_examples};
use crate::env::TestEnv;

#[test]
fn what_a_revert_left_is_compared_with_what_came_instead() {
    let stored = Stored::reverted();
    assert_snapshot!(stored.run(&["diff", "main.1"]).masked(), @"
    2 entries in common, up to id-00000
    -user  id-00001  2001-02-03 04:05:14
    -  Red.
    -assistant  id-00002  2001-02-03 04:05:16
    -  Red it is.
    +note  id-00003  2001-02-03 04:05:18
    +  <note-from-later>
    +  This conversation was further along before and has been taken back to this point. What was said and done after it is no longer visible to you, but files and other things in the working directory may already have been changed by it. From there, this was left for you:
    +
    +  Red paint is sold out.
    +
    +  Try the other shop.
    +
    +  Take it into account, look at the present state before you rely on it, and go on from here.
    +  </note-from-later>
    +assistant  id-00004  2001-02-03 04:05:20
    +  Then blue.
    [exit status: 1]
    ");
    assert_snapshot!(stored.run(&["diff", "main.1", "HEAD", "--stat"]).masked(), @"
    2 entries in common, up to id-00000
    on the first side only        2 entries   14 characters
    on the other side only        2 entries  451 characters
    changed                       0 entries
    same text, different entries  0 entries
    the same                      0 entries
    [exit status: 1]
    ");
    assert_snapshot!(stored.run(&["diff", "HEAD", "HEAD"]).masked(), @"4 entries in common, up to id-00000");
}

#[test]
fn a_fork_that_writes_its_own_session_id_says_the_same() {
    let env = with_examples();
    let file = fs::read_to_string(env.project().join("native-tools.jsonl")).unwrap();
    let id = json(file.lines().next().unwrap())["sessionId"].as_str().unwrap().to_owned();
    let forked: Vec<String> = file
        .lines()
        .take(9)
        .map(|line| line.replace(&id, "0f0f0f0f-0000-4000-8000-000000000000") + "\n")
        .collect();
    let forked = forked.concat().replace("no gas in the pipe", "the pipe\\nis empty");
    fs::write(env.project().join("fork.jsonl"), forked).unwrap();
    env.run(&["import", "-q", "native-tools.jsonl", "fork.jsonl"]).success();
    assert_snapshot!(env.run(&["diff", "-s", &id, "--with", "0f0f"]).masked(), @r"
    Nothing in common
    = 6 entries have the same text: entry-id to entry-id, on the other side entry-id to entry-id
    ~ result  entry-id is entry-id, 18 characters are 17
    @@ -1 +1,2 @@
    -no gas in the pipe
    +the pipe
    +is empty
    -assistant  entry-id  2026-03-14 09:00:08
    -  The pipe is empty. These are the steps:
    -  1. Step 1 of the repair
    -  2. Step 2 of the repair
    -  3. Step 3 of the repair
    -  4. Step 4 of the repair
    -  5. Step 5 of the repair
    -  6. Step 6 of the repair
    -  7. Step 7 of the repair
    -  8. Step 8 of the repair
    -  9. Step 9 of the repair
    -  10. Step 10 of the repair
    -  11. Step 11 of the repair
    -  12. Step 12 of the repair
    -  13. Step 13 of the repair
    -  14. Step 14 of the repair
    -  15. Step 15 of the repair
    -  16. Step 16 of the repair
    -  17. Step 17 of the repair
    -  18. Step 18 of the repair
    -  19. Step 19 of the repair
    -  20. Step 20 of the repair
    -@1  user  entry-id  2026-03-14 09:00:09
    -  My note:\x1b[2J\x1b]52;c;cm0gLXJmIC8=\x07 over\x0dwritten, admin\u{202e}txt.exe
    -assistant  entry-id  2026-03-14 09:00:10
    -  That note moves the cursor, fills the clipboard and turns the line around. Nothing of it is sent.
    [exit status: 1]
    ");
    assert_snapshot!(env.run(&["diff", "-s", &id, "--with", "0f0f", "--stat", "--json"]).masked(), @r#"
    {"type":"fork","entry":null,"common":0}
    {"type":"stat","same":0,"renewed":6,"changed":1,"one":{"entries":3,"characters":698},"other":{"entries":0,"characters":0}}
    [exit status: 1]
    "#);
}

#[test]
fn a_change_within_a_long_text_is_shown_alone() {
    let env = TestEnv::new();
    env.run(&["new"]).success();
    env.run(&["append", "-q", "Look."]).success();
    let lines = |from: u32| (from..300).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat();
    let call = ["append", "-q", "--call", "Read", "--input", "{}", "--id", "c"];
    let args = ["append", "-q", "--result", "c", "-"];
    env.run(&call).success();
    env.run_with_stdin(&args, lines(1).as_bytes()).success();
    env.run(&["revert", "0", "-q"]).success();
    env.run(&["append", "-q", "Look."]).success();
    env.run(&call).success();
    env.run_with_stdin(&args, lines(2).replace("\n150\n", "\nhalf\n").as_bytes()).success();
    let shown = env.run(&["diff", "main.1"]).stdout;
    let (_, changed) = shown.split_once("~ result").unwrap();
    let (_, lines) = changed.split_once('\n').unwrap();
    assert_snapshot!(lines, @r"
    @@ -1,4 +1,3 @@
    -1
     2
     3
     4
    @@ -147,7 +146,7 @@
     147
     148
     149
    -150
    +half
     151
     152
     153
    ");
}
