//! Wrong calls: what is typed, the exit code, and what the answer must say.

use std::fs;

use super::conversation;
use crate::env::TestEnv;

/// What is typed, the exit code, and words of the answer.
type Call = (&'static [&'static str], i32, &'static str);

const NUMBER: &str = "it must be a whole number from 0 on";
const COUNT: &str = "it must be a whole number from 1 on";

const CALLS: [Call; 78] = [
    // Words that are no command.
    (&["search"], 2, "there is no command \"search\""),
    (&["revrt"], 2, "there is no command \"revrt\""),
    (&["Log"], 2, "perhaps you mean: undertext help log"),
    (&["help", "nosuch"], 2, "there is no command \"nosuch\""),
    (&["help", "log", "more"], 2, "there is no command \"log more\""),
    (&["--nosuch"], 2, "unexpected argument '--nosuch'"),
    (&["--store"], 2, "a value is required for '--store <DIR>'"),
    (&["--color", "blue", "log"], 2, "invalid value 'blue'"),
    (&["completions", "tcsh"], 2, "invalid value 'tcsh'"),
    // Numbers.
    (&["log", "-n", "abc"], 2, NUMBER),
    (&["log", "-n", "-5"], 2, NUMBER),
    (&["log", "-n", "1.5"], 2, NUMBER),
    (&["log", "-n", ""], 2, NUMBER),
    (&["log", "-n"], 2, "a value is required for '-n <N>'"),
    (&["log", "-n", "99999999999999999999999"], 2, NUMBER),
    (&["operations", "-n", "abc"], 2, NUMBER),
    (&["operations", "-n", "-1"], 2, NUMBER),
    (&["sessions", "-n", "many"], 2, NUMBER),
    (&["sessions", "-n", "-1"], 2, NUMBER),
    (&["sessions", "--since", "someday"], 2, "it is an age such as 7d, a day such as yesterday"),
    (&["export", "--generation", "x"], 2, NUMBER),
    (&["export", "--generation", "99"], 2, "there is no generation 99"),
    (&["truncate", "--max-chars", "abc"], 2, COUNT),
    (&["truncate", "--window", "0"], 2, COUNT),
    (&["truncate", "--window", "-1"], 2, COUNT),
    (&["context", "--turns", "0"], 2, COUNT),
    (&["context", "--turns", "-3"], 2, COUNT),
    (&["context", "--max-tokens", "lots"], 2, COUNT),
    (&["context", "--window", "lots"], 2, NUMBER),
    (&["compact", "--window", "-9"], 2, NUMBER),
    (&["compact", "--keep", "some"], 2, "neither a number of messages nor a share"),
    (&["append", "x", "--max-chars", "-1"], 2, COUNT),
    // Operations.
    (&["undo", "abc"], 2, "abc is neither an operation nor a session"),
    (&["undo", "-1"], 2, "-1 is neither an operation nor a session"),
    (&["undo", "99"], 2, "there is no operation 99"),
    (&["undo", "1"], 2, "it began the session"),
    (&["undo", "1", "2"], 2, "cannot tell a session from the rest"),
    (&["redo"], 2, "there is nothing to redo"),
    // Places.
    (&["revert"], 2, "<PLACE>"),
    (&["revert", "99"], 2, "no checkpoint matches \"99\""),
    (&["revert", "@99"], 2, "no checkpoint matches \"99\""),
    (&["revert", "-1"], 2, "no checkpoint matches \"-1\""),
    (&["revert", "12345678901234"], 2, "no entry matches \"12345678901234\""),
    (&["revert", "nosuch"], 2, "no entry matches \"nosuch\""),
    (&["revert", ""], 2, "no entry matches \"\""),
    (&["revert", "HEAD~99"], 2, "no entry matches \"HEAD~99\""),
    (&["revert", "HEAD~x"], 2, "no entry matches \"HEAD~x\""),
    (&["revert", "1", "-m", ""], 2, "the note is empty"),
    (&["revert", "1", "2"], 2, "cannot tell a session from the rest"),
    (&["revert", "1", "nosuch"], 2, "no session matches \"nosuch\""),
    (&["revert", "1", "2", "3"], 2, "unexpected argument '3'"),
    (&["checkpoint", "-m", ""], 2, "the note is empty"),
    (&["show", "nosuch"], 2, "no entry matches \"nosuch\""),
    (&["show", "9999999"], 2, "checkpoint 9999999 is typed @9999999"),
    (&["show", "HEAD", "nosuch"], 2, "no session matches \"nosuch\""),
    (&["show", "HEAD", "--lines", "x"], 2, "lines are numbers"),
    (&["log", "--at", "nosuch"], 2, "no entry matches \"nosuch\""),
    (&["diff", "nosuch", "HEAD"], 2, "no entry matches \"nosuch\""),
    (&["diff", "HEAD", "HEAD", "nosuch"], 2, "no session matches \"nosuch\""),
    (&["switch", "nosuch"], 2, "no branch is called \"nosuch\""),
    (&["switch", "@1"], 2, "to go back there on the current branch: undertext revert @1"),
    (&["branch", "main"], 2, "go to it: undertext switch main"),
    (&["branch", "a b"], 2, "white space"),
    (&["branch", "bad-cafe"], 2, "it reads like an id"),
    (&["branch", "new", "nosuch"], 2, "no entry matches \"nosuch\""),
    // Sessions and files.
    (&["log", "nosuch"], 2, "no session matches \"nosuch\""),
    (&["log", ""], 2, "no session matches \"\""),
    (&["log", "x", "-s", "y"], 2, "two sessions are named: x and y"),
    (&["log", "/no/such/file.jsonl"], 2, "there is no file /no/such/file.jsonl"),
    (&["clear", "/no/such/file.jsonl"], 2, "there is no file /no/such/file.jsonl"),
    (&["log", "nowhere.jsonl"], 2, "there is no file nowhere.jsonl"),
    (&["log", "."], 2, ". is a folder, and not a session"),
    (&["clear", "."], 2, ". is a folder, and not a session"),
    (&["log", "folder"], 2, "take in the session files in it: undertext import "),
    (&["log", "notes.txt"], 2, "holds no session of a known format"),
    (&["clear", "notes.txt"], 2, "holds no session of a known format"),
    // Results.
    (
        &["append", "--result", "nosuch", "text"],
        2,
        "no call on the current path has the id \"nosuch\"",
    ),
    (&["append", "--result", "call", "text"], 0, ""),
];

#[test]
fn a_wrong_call_is_refused_in_plain_words_and_changes_nothing() {
    let env = TestEnv::new();
    conversation(&env);
    let call = ["append", "-q", "--call", "Read", "--input", "{}", "--id", "call"];
    env.run(&call).success();
    fs::create_dir(env.project().join("folder")).unwrap();
    fs::write(env.project().join("notes.txt"), "Nothing.\n").unwrap();
    let operations = || env.run(&["operations", "--json"]).success().stdout;
    for (args, code, words) in CALLS {
        let before = operations();
        let said = env.run(args).to_string();
        let exit = if code == 0 { String::new() } else { format!("[exit status: {code}]\n") };
        assert!(said.ends_with(&exit), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
        // None of what the parser of arguments would say by itself.
        for foreign in
            ["invalid digit", "to pass '", "try '--help'", "tip:", "unrecognized", "out of range"]
        {
            assert!(!said.contains(foreign), "{args:?}: {said}");
        }
        assert!(code == 0 || operations() == before, "{args:?} changed something: {said}");
    }
}
