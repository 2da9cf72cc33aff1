//! What holds for every command: streams, exit codes, and what is typed wrongly.

use std::fs;
use std::io;
use std::path::Path;

use insta::assert_snapshot;

use crate::env::TestEnv;

#[test]
fn no_command_says_what_there_is_and_what_to_type_next() {
    let env = TestEnv::new();
    assert_snapshot!(env.run::<&str>(&[]), @"
    Keep everything a coding agent ever saw, and go back to any of it

    No sessions yet. Looked in ~/.claude/projects, ~/.codex/sessions, ~/.codex/archived_sessions, ~/.pi/agent/sessions, ~/.openclaw/agents, ~/.kimi/sessions, ~/.clawdcode/projects.

    undertext import PATH  import sessions from elsewhere
    undertext help         list all commands
    ");
    env.run(&["new", "-q"]).success();
    env.run(&["append", "-q", "Why does the kettle not whistle?"]).success();
    assert_snapshot!(env.run::<&str>(&[]), @"
    undertext  1 session: native 1
    4 weeks  ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁█  1 session · 1 turn · 0 reverts · 0 compactions

    ~/project  1 session
    17eb9c06  just now  native  Why does the kettle not whistle?  1  <1%

    %: of the window
    undertext graph           see turns and branches
    undertext search whistle  find what was said
    undertext help            list all commands
    ");
    let elsewhere = env.command().current_dir(env.home()).arg("--store=my store").output().unwrap();
    let said = String::from_utf8(elsewhere.stdout).unwrap();
    assert!(said.contains("undertext import PATH --store 'my store'  "), "{said}");
}

#[test]
fn help_is_a_command_too() {
    let env = TestEnv::new();
    let said = |args: &[&str]| env.run(args).success().stdout;
    assert_eq!(said(&["help"]), said(&["--help"]));
    assert_eq!(said(&["help", "revert"]), said(&["revert", "--help"]));
    assert_eq!(said(&["help", "help"]), said(&["help", "--help"]));
    assert!(said(&["-h"]).contains("Every day:\n"));
    assert_snapshot!(env.run(&["help", "nosuch"]), @r#"
    ------- stderr -------
    error: there is no command "nosuch"
    hint: search for that text: undertext search nosuch
    hint: list the commands: undertext help
    [exit status: 2]
    "#);
}

#[test]
fn a_word_alone_shows_the_session_that_it_means_or_lists_several() {
    let env = TestEnv::new();
    let example = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
    for name in ["native-rewind.jsonl", "native-tools.jsonl", "pi-boat.jsonl"] {
        fs::copy(example(name), env.project().join(name)).unwrap();
        env.run(&["import", name]).success();
    }
    let said = |args: &[&str]| env.run(args).success().stdout;
    // A session file, the beginning of an id, a word of one title, and one of two.
    assert_eq!(said(&["pi-boat.jsonl"]), said(&["graph", "pi-boat.jsonl"]));
    assert_eq!(said(&["5d9e"]), said(&["graph", "5d9e"]));
    assert_eq!(said(&["boat"]), said(&["graph", "5d9e"]));
    assert_eq!(said(&["native"]), said(&["sessions", "native"]));
    assert_eq!(said(&["boat", "--json"]), said(&["graph", "5d9e", "--json"]));
    assert_eq!(env.run(&["nothing-like-it"]).code(), Some(2));
    assert_eq!(env.run(&["boat", "whistle"]).code(), Some(2));
    assert_eq!(said(&["ls"]), said(&["sessions"]));
    assert_eq!(said(&["cat", "@0", "5d9e"]), said(&["show", "@0", "5d9e"]));
}

#[test]
fn a_word_that_is_no_command_never_suggests_a_change() {
    let env = TestEnv::new();
    let help = env.run(&["help", "--all"]).success().stdout;
    let changing = [
        "revert",
        "undo",
        "redo",
        "switch",
        "branch",
        "checkpoint",
        "truncate",
        "compact",
        "clear",
        "import",
        "attach",
        "new",
        "append",
        "turn",
        "recover",
    ];
    for name in changing {
        assert!(help.contains(&format!("\n  {name} ")), "{name} is a command");
        let slips =
            [format!("{name}s"), name[1..].to_owned(), format!("{name}{name}"), format!("x{name}")];
        for slip in slips {
            let said = env.run(&[&slip]).to_string();
            if said.contains("there is no command") {
                let commands = said.lines().filter_map(|line| line.split_once(": undertext "));
                for (_, command) in commands {
                    assert!(
                        command.starts_with("help ")
                            || !changing.iter().any(|name| command.split(' ').any(|w| w == *name)),
                        "{slip}: {said}"
                    );
                }
            }
        }
    }
    assert_snapshot!(env.run(&["stauts"]), @r#"
    ------- stderr -------
    error: there is no command "stauts"
    hint: perhaps you mean: undertext stats
    hint: perhaps you mean: undertext status
    hint: list the commands: undertext help
    [exit status: 2]
    "#);
    assert_snapshot!(env.run(&["find"]), @r#"
    ------- stderr -------
    error: there is no command "find"
    hint: to find what was said: undertext help search
    hint: list the commands: undertext help
    [exit status: 2]
    "#);
}

#[test]
fn the_version_is_data() {
    assert_snapshot!(TestEnv::new().run(&["--version"]), @"undertext 0.2.0");
}

#[test]
fn wrong_use_is_explained_on_stderr() {
    assert_snapshot!(TestEnv::new().run(&["revret"]), @r#"
    ------- stderr -------
    error: there is no command "revret"
    hint: perhaps you mean: undertext help revert
    hint: list the commands: undertext help
    [exit status: 2]
    "#);
}

#[test]
fn control_characters_that_were_typed_are_not_sent_back() {
    let output = TestEnv::new().run(&["man", "\x1b]52;c;cm0=\x07\u{202e}"]);
    assert_snapshot!(output, @r#"
    ------- stderr -------
    error: there is no command "\u{1b}]52;c;cm0=\u{7}\u{202e}"
    hint: list the commands: undertext help
    [exit status: 2]
    "#);
}

#[cfg(unix)]
#[test]
fn an_argument_that_is_not_utf8_is_no_panic() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let odd = OsStr::from_bytes(b"odd\xff");
    let env = TestEnv::new();
    assert_snapshot!(env.run(&[OsStr::new("completions"), odd]), @"
    ------- stderr -------
    error: invalid value 'odd�' for '[SHELL]' [possible values: bash, elvish, fish, powershell, zsh]
    hint: see the help: undertext completions --help
    [exit status: 2]
    ");
    let output = env.run(&[OsStr::new("man"), OsStr::new("--out"), odd]).success();
    assert!(output.stderr.ends_with("pages to odd\\xff\n"), "{output}");
    assert!(env.project().join(odd).join("undertext.1").is_file());
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let env = TestEnv::new();
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let output = env.command().args(["completions", "zsh"]).stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[test]
fn colour_is_for_terminals_unless_asked_for() {
    let env = TestEnv::new();
    assert_snapshot!(env.run(&["completions"]), @r"
    ------- stderr -------
    error: cannot tell the shell from $SHELL
    hint: name it, such as: undertext completions bash
    [exit status: 2]
    ");
    let coloured = env.run(&["completions", "--color=always"]).stderr;
    assert!(coloured.starts_with("\x1b[1;31merror:\x1b[0m cannot tell"), "{coloured:?}");
}

#[test]
fn completions_are_for_the_users_shell_unless_named() {
    let env = TestEnv::new();
    let named = env.run(&["completions", "fish"]).success();
    let output = env.command().arg("completions").env("SHELL", "/bin/fish").output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), named.stdout);
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let env = TestEnv::new();
    assert!(env.run(&["man"]).success().stdout.contains(".TH undertext 1"));
    env.run(&["man", "--out", "one-a-command"]).success();
    let page = env.project().join("one-a-command/undertext-search.1");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(concat!("undertext ", env!("CARGO_PKG_VERSION"))), "{page}");
    // What stands on a line of its own in the help does so there, too.
    for words in [".SH EXAMPLES", "\n  undertext search"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let output = env.run(&["--json", "man", "--out", "pages"]).success();
    let pages: Vec<&str> = output.stdout.lines().collect();
    assert!(pages.contains(&r#"{"type":"page","path":"pages/undertext-man.1"}"#), "{output}");
    assert_eq!(output.stderr, format!("Wrote {} pages to pages\n", pages.len()));
    assert!(env.run(&["-q", "man", "--out", "pages"]).success().stderr.is_empty());
    assert_eq!(fs::read_dir(env.project().join("pages")).unwrap().count(), pages.len());
}

#[test]
fn a_failure_names_what_failed_and_why() {
    let env = TestEnv::new();
    fs::write(env.home().join("file"), "").unwrap();
    let pages = env.home().join("file/pages");
    assert_snapshot!(env.run(&["man", "--out", pages.to_str().unwrap()]), @"
    ------- stderr -------
    error: cannot create $HOME/file/pages: part of the path is a file, not a folder
    [exit status: 3]
    ");
}
