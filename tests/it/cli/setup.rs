//! `setup`: an agent's settings are shown changed before they are, hold nothing but the call in addition, and are as before
//! without it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use insta::assert_snapshot;
use serde_json::Value;

use super::{json, pipe, screens};
use crate::env::TestEnv;

const AGENTS: [(&str, &str); 3] = [
    ("claude", ".claude/settings.json"),
    ("codex", ".codex/config.toml"),
    ("pi", ".pi/agent/extensions/undertext.ts"),
];

/// Returns a machine on which every agent was used.
fn machine() -> TestEnv {
    let env = TestEnv::new();
    for folder in [".claude", ".codex", ".pi/agent"] {
        fs::create_dir_all(env.home().join(folder)).unwrap();
    }
    env
}

fn path(env: &TestEnv, agent: &str) -> PathBuf {
    env.home().join(AGENTS.iter().find(|(name, _)| *name == agent).unwrap().1)
}

/// Replaces the path of the program, which lies elsewhere on each machine.
fn masked(text: &str) -> String {
    text.replace(env!("CARGO_BIN_EXE_undertext"), "/bin/undertext")
}

/// Puts the program somewhere else. Another process does: what this one has open to write, a copy of it that is about to run
/// something has open too, and what is open to write cannot be run.
fn copy_program(to: &Path) {
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_undertext")).arg(to).status().unwrap();
    assert!(copied.success());
}

#[test]
fn the_change_is_shown_and_made_only_with_consent() {
    let env = machine();
    let settings = path(&env, "claude");
    fs::write(&settings, "{\n  \"model\": \"opus\"\n}\n").unwrap();
    let before = fs::read(&settings).unwrap();
    let asked = env.run(&["setup", "claude"]);
    assert_eq!(asked.code(), Some(1));
    assert_eq!(fs::read(&settings).unwrap(), before);
    assert_snapshot!(masked(&asked.to_string()), @r#"
    ~/.claude/settings.json
    @@ -1,3 +1,49 @@
     {
    -  "model": "opus"
    +  "model": "opus",
    +  "hooks": {
    +    "SessionStart": [
    +      {
    +        "hooks": [
    +          {
    +            "type": "command",
    +            "command": "p='/bin/undertext'; [ ! -x \"$p\" ] || /usr/bin/env -i HOME='$HOME' \"$p\" hook claude >/dev/null 2>&1; :",
    +            "timeout": 10
    +          }
    +        ]
    +      }
    +    ],
    +    "Stop": [
    +      {
    +        "hooks": [
    +          {
    +            "type": "command",
    +            "command": "p='/bin/undertext'; [ ! -x \"$p\" ] || /usr/bin/env -i HOME='$HOME' \"$p\" hook claude >/dev/null 2>&1; :",
    +            "timeout": 10
    +          }
    +        ]
    +      }
    +    ],
    +    "PreCompact": [
    +      {
    +        "hooks": [
    +          {
    +            "type": "command",
    +            "command": "p='/bin/undertext'; [ ! -x \"$p\" ] || /usr/bin/env -i HOME='$HOME' \"$p\" hook claude >/dev/null 2>&1; :",
    +            "timeout": 10
    +          }
    +        ]
    +      }
    +    ],
    +    "SessionEnd": [
    +      {
    +        "hooks": [
    +          {
    +            "type": "command",
    +            "command": "p='/bin/undertext'; [ ! -x \"$p\" ] || /usr/bin/env -i HOME='$HOME' \"$p\" hook claude >/dev/null 2>&1; :",
    +            "timeout": 10
    +          }
    +        ]
    +      }
    +    ]
    +  }
     }
    ------- stderr -------
    Nothing was changed
    hint: to make the change: undertext setup claude --yes
    [exit status: 1]
    "#);
    env.run(&["setup", "claude", "--dry-run"]).success();
    // A program is told what became of it.
    let change = |args: &[&str]| {
        let told = env.run(&[&["setup", "claude", "--json"], args].concat());
        json(&told.stdout)["change"].as_str().unwrap().to_owned()
    };
    assert_eq!((change(&[]), change(&["-n"])), ("declined".to_owned(), "planned".to_owned()));
    assert_eq!(fs::read(&settings).unwrap(), before);
    let made = env.run(&["setup", "claude", "--yes", "-q"]).success();
    assert!(
        made.stdout.ends_with("Claude Code calls undertext from its next start on\n"),
        "{made}"
    );
    let listed = env.run(&["setup"]).success();
    assert_snapshot!(listed, @r"
    claude  calls undertext          ~/.claude/settings.json
    codex   does not call undertext  ~/.codex/config.toml
    pi      does not call undertext  ~/.pi/agent/extensions/undertext.ts
    ------- stderr -------
    hint: to import the agent's sessions as they are written: undertext setup codex
    hint: to import the agent's sessions as they are written: undertext setup pi
    ");
    let again = env.run(&["setup", "claude", "--yes"]).success();
    assert_snapshot!(again, @r"
    Claude Code already calls undertext: ~/.claude/settings.json
    ");
    assert_eq!(change(&["--yes"]), "needless");
    let off = env.run(&["setup", "claude", "--off", "-y", "--json"]).success();
    assert_snapshot!(off, @r#"
    {"type":"setup","agent":"claude","path":"$HOME/.claude/settings.json","installed":false,"changed":true,"change":"made"}
    "#);
    assert_eq!(fs::read(&settings).unwrap(), before);
}

/// Has a person answer the question of a command, and returns what the terminal showed and how the command ended.
fn asked(env: &TestEnv, args: &[&str], answer: &str) -> (String, Option<i32>) {
    let (mut host, terminal) = screens::terminal();
    let mut command = env.command();
    command.args(args).env("TERM", "xterm").stdin(terminal.try_clone().unwrap());
    command.stdout(terminal.try_clone().unwrap()).stderr(terminal);
    let mut child = command.spawn().unwrap();
    // The terminal ends with the last process that has it open.
    drop(command);
    let (mut said, mut buffer, mut is_answered) = (String::new(), [0; 4096], false);
    while let Ok(n @ 1..) = host.read(&mut buffer) {
        said.push_str(&String::from_utf8_lossy(&buffer[..n]));
        if said.contains("[y/N]") && !is_answered {
            host.write_all(answer.as_bytes()).unwrap();
            is_answered = true;
        }
    }
    (said, child.wait().unwrap().code())
}

#[test]
fn a_person_is_asked() {
    let env = machine();
    let settings = path(&env, "claude");
    for (answer, code) in [("\n", 1), ("n\n", 1), ("what?\n", 1), ("Y\n", 0)] {
        let (said, ended) = asked(&env, &["setup", "claude"], answer);
        assert!(said.contains("Change ~/.claude/settings.json? [y/N] "), "{said}");
        assert_eq!((ended, settings.exists()), (Some(code), code == 0), "{answer:?}: {said}");
    }
    let (said, ended) = asked(&env, &["setup", "claude", "--off"], "yes\n");
    assert!(said.contains("no longer calls undertext"), "{said}");
    assert_eq!((ended, settings.exists()), (Some(0), false));
}

#[test]
fn settings_are_as_before_without_the_call() {
    let env = machine();
    for (agent, _) in AGENTS {
        let settings = path(&env, agent);
        env.run(&["setup", agent, "-y"]).success();
        let on = fs::read(&settings).unwrap();
        env.run(&["setup", agent, "-y"]).success();
        assert_eq!(fs::read(&settings).unwrap(), on, "twice is once");
        assert_eq!(fs::metadata(&settings).unwrap().mode() & 0o777, 0o600);
        env.run(&["setup", agent, "--off", "-y"]).success();
        assert!(!settings.exists(), "{agent}");
        env.run(&["setup", agent, "--off", "-y"]).success();
    }
    for (agent, text) in [
        ("claude", "{\"hooks\":{\"Stop\":[]}}"),
        ("claude", ""),
        ("claude", " \n"),
        ("codex", "notify=['a']"),
        ("codex", ""),
    ] {
        let settings = path(&env, agent);
        fs::write(&settings, text).unwrap();
        fs::set_permissions(&settings, fs::Permissions::from_mode(0o640)).unwrap();
        env.run(&["setup", agent, "-y"]).success();
        assert_ne!(fs::read_to_string(&settings).unwrap(), text);
        env.run(&["setup", agent, "--off", "-y"]).success();
        assert_eq!(fs::read_to_string(&settings).unwrap(), text);
        assert_eq!(fs::metadata(&settings).unwrap().mode() & 0o777, 0o640);
        let names = fs::read_dir(settings.parent().unwrap()).unwrap().count();
        assert_eq!(names, 1, "nothing is left next to {agent}'s settings");
    }
}

#[test]
fn settings_that_lie_elsewhere_are_changed_there() {
    let env = machine();
    let kept = env.home().join("dotfiles");
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("claude.json"), "{}").unwrap();
    symlink("../dotfiles/claude.json", path(&env, "claude")).unwrap();
    env.run(&["setup", "claude", "-y"]).success();
    assert!(fs::symlink_metadata(path(&env, "claude")).unwrap().is_symlink());
    assert!(fs::read_to_string(kept.join("claude.json")).unwrap().contains("hook claude"));
    env.run(&["setup", "claude", "--off", "-y"]).success();
    assert_eq!(fs::read_to_string(kept.join("claude.json")).unwrap(), "{}");
    // An agent that was given another folder is set up there, and calls with it.
    let other = env.home().join("other");
    fs::create_dir(&other).unwrap();
    let set_up =
        env.command().env("CLAUDE_CONFIG_DIR", "../other").args(["setup", "claude", "-y"]).output();
    assert!(set_up.unwrap().status.success());
    let text = fs::read_to_string(other.join("settings.json")).unwrap();
    assert!(text.contains("CLAUDE_CONFIG_DIR="), "{text}");
}

#[test]
fn settings_that_cannot_be_changed_are_left_alone() {
    let env = machine();
    let settings = path(&env, "claude");
    let refused = |why: &str| {
        for args in [&["setup", "claude", "-y"][..], &["setup", "claude", "--off", "-y"]] {
            let said = env.run(args);
            assert!(
                matches!(said.code(), Some(2 | 3)) && said.stderr.contains(why),
                "{why}: {said}"
            );
        }
        let listed = env.run(&["setup"]).success();
        assert!(listed.stdout.contains(why), "{why}: {listed}");
        assert_eq!(fs::read_dir(settings.parent().unwrap()).unwrap().count(), 1, "{why}");
    };
    for text in ["{\n  // a comment\n}", "\u{c}", "[1]", "{\"a\":"] {
        fs::write(&settings, text).unwrap();
        refused("not a JSON object");
        assert_eq!(fs::read_to_string(&settings).unwrap(), text);
    }
    fs::write(&settings, format!("{{\"a\":\"{}\"}}", "x".repeat(2 << 20))).unwrap();
    refused("longer than");
    fs::write(&settings, "{}").unwrap();
    fs::set_permissions(&settings, fs::Permissions::from_mode(0o444)).unwrap();
    refused("it is read-only");
    fs::remove_file(&settings).unwrap();
    symlink("nowhere", &settings).unwrap();
    refused("a broken link");
    fs::remove_file(&settings).unwrap();
    pipe(&settings);
    refused("it is a pipe");
    fs::remove_file(&settings).unwrap();
    fs::create_dir(&settings).unwrap();
    refused("it is a folder");
    fs::remove_dir(&settings).unwrap();
    fs::write(&settings, "{\"disableAllHooks\":true}").unwrap();
    let silenced = env.run(&["setup", "claude", "-n"]).success();
    assert!(
        silenced.stderr.contains("runs no programs while disableAllHooks is set"),
        "{silenced}"
    );
    let listed = env.run(&["setup"]).success().stdout;
    assert!(
        listed.starts_with("claude  runs no programs while disableAllHooks is set"),
        "{listed}"
    );
    // The last sentence had said that it calls, from its next start on.
    let told = "Claude Code is set up, and calls undertext once disableAllHooks is no longer set\n";
    let silenced = env.run(&["setup", "claude", "-y"]).success();
    assert!(silenced.stdout.ends_with(told), "{silenced}");
    assert_eq!(env.run(&["setup", "claude", "-y"]).success().stdout, told);
    env.run(&["setup", "claude", "--off", "-y"]).success();
    // An agent that calls no program is named as one of those that can be set up no more.
    assert_snapshot!(env.run(&["setup", "foo"]), @"
    ------- stderr -------
    error: invalid value 'foo' for '[AGENT]': use one of claude, codex, pi
    hint: see the help: undertext setup --help
    [exit status: 2]
    ");
    let unused = env.run(&["setup", "kimi"]);
    assert_snapshot!(unused, @r"
    ------- stderr -------
    error: kimi cannot run a program when it writes a session
    hint: import its sessions as they are written: undertext watch
    hint: list the agents that can be set up here: undertext setup
    [exit status: 2]
    ");
    let unused = env.run(&["setup", "openclaw"]);
    assert!(unused.stderr.starts_with("error: openclaw cannot run a program "), "{unused}");
    fs::remove_dir_all(env.home().join(".codex")).unwrap();
    assert_snapshot!(env.run(&["setup", "codex"]), @r"
    ------- stderr -------
    error: Codex was never used here: there is no ~/.codex
    hint: list the agents that can be set up here: undertext setup
    [exit status: 2]
    ");
}

/// Nothing was to be changed where the agents are only listed.
#[test]
fn what_is_wrong_with_settings_is_said_once_with_its_place() {
    let env = machine();
    fs::write(path(&env, "claude"), "{\n  \"model\": opus\n}\n").unwrap();
    fs::create_dir_all(path(&env, "codex")).unwrap();
    // A link that leads to itself cannot be read, whoever asks.
    fs::create_dir_all(path(&env, "pi").parent().unwrap()).unwrap();
    symlink("undertext.ts", path(&env, "pi")).unwrap();
    assert_snapshot!(env.run(&["setup"]).success().stdout, @"
    claude  it is not a JSON object: it fails at line 2, column 12  ~/.claude/settings.json
    codex   it is a folder, not a file                              ~/.codex/config.toml
    pi      it cannot be read: too many levels of symbolic links    ~/.pi/agent/extensions/undertext.ts
    ");
}

#[test]
fn a_call_to_which_a_person_added_something_is_left_and_told_of() {
    let env = machine();
    let settings = path(&env, "claude");
    env.run(&["setup", "claude", "-y"]).success();
    let on = fs::read_to_string(&settings).unwrap();
    let theirs = on.replacen("; :\"", "; : ; notify-send done\"", 1);
    assert_ne!(theirs, on);
    fs::write(&settings, &theirs).unwrap();
    assert_snapshot!(env.run(&["setup", "claude", "-y"]).success(), @"Claude Code already calls undertext: ~/.claude/settings.json");
    let off = env.run(&["setup", "claude", "--off", "-y"]);
    assert_eq!(off.code(), Some(1));
    assert!(
        off.stdout.ends_with(
            "Claude Code calls undertext only through that line from its next start on\n"
        ),
        "{off}"
    );
    let left = fs::read_to_string(&settings).unwrap();
    assert_eq!((left.matches("hook claude").count(), left.contains("notify-send")), (1, true));
    assert_snapshot!(env.run(&["setup", "claude", "--off"]), @r"
    ------- stderr -------
    warning: Claude Code still calls undertext through a line that was edited: remove that line from ~/.claude/settings.json by hand
    [exit status: 1]
    ");
    assert_snapshot!(env.run(&["setup", "claude", "--off", "--json", "-q"]), @r#"
    {"type":"setup","agent":"claude","path":"$HOME/.claude/settings.json","installed":true,"changed":false,"change":"needless"}
    ------- stderr -------
    warning: Claude Code still calls undertext through a line that was edited: remove that line from ~/.claude/settings.json by hand
    [exit status: 1]
    "#);
    let listed = env.run(&["setup"]).success().stdout;
    assert!(listed.starts_with("claude  calls undertext in another way"), "{listed}");
}

/// It was somebody else's for the setup, and no call where it was to be taken out.
#[test]
fn an_extension_that_is_not_as_it_was_made_is_replaced_and_a_copy_kept() {
    let env = machine();
    let extension = path(&env, "pi");
    env.run(&["setup", "pi", "-y"]).success();
    let made = fs::read_to_string(&extension).unwrap();
    let older = made.replace("\"turn_end\", ", "");
    fs::write(&extension, &older).unwrap();
    assert!(
        env.run(&["setup"]).success().stdout.contains("pi      calls undertext in another way")
    );
    assert_snapshot!(env.run(&["setup", "pi", "-y"]).success(), @r#"
    ~/.pi/agent/extensions/undertext.ts
    @@ -18,7 +18,7 @@
     }
     
     export default function (pi: any) {
    -  for (const event of ["session_start", "session_compact", "agent_end", "session_shutdown"]) {
    +  for (const event of ["session_start", "session_compact", "turn_end", "agent_end", "session_shutdown"]) {
         pi.on(event, (_: unknown, context: any) => tell(event, context));
       }
     }
    pi calls undertext from its next start on
    ------- stderr -------
    ~/.pi/agent/extensions/undertext.ts was edited: a copy of it is kept as ~/.pi/agent/extensions/undertext.ts.kept-1
    ~/.local/state/undertext/hooks/log lists what was imported and what was skipped
    hint: to import existing sessions: undertext import
    hint: to turn this off: undertext setup pi --off
    "#);
    let kept = |n: u8| extension.with_file_name(format!("undertext.ts.kept-{n}"));
    let read = |path: &PathBuf| fs::read_to_string(path).unwrap();
    assert_eq!((read(&extension), read(&kept(1))), (made.clone(), older));
    // A comment of somebody's own hinders no call, and stays.
    let theirs = format!("// Mine.\n{made}");
    fs::write(&extension, &theirs).unwrap();
    let needless = env.run(&["setup", "pi", "-y"]).success();
    assert!(needless.stdout.starts_with("pi already calls undertext"), "{needless}");
    assert_eq!(read(&extension), theirs);
    let planned = env.run(&["setup", "pi", "--off", "-n"]).success();
    assert!(planned.stderr.contains("undertext.ts.kept-2"), "{planned}");
    assert!(extension.exists() && !kept(2).exists());
    let off = env.run(&["setup", "pi", "--off", "-y"]).success();
    assert!(off.stdout.ends_with("pi no longer calls undertext from its next start on\n"), "{off}");
    assert!(!extension.exists() && read(&kept(2)) == theirs);
    let needless = env.run(&["setup", "pi", "--off"]).success();
    assert!(needless.stdout.starts_with("pi does not call undertext"), "{needless}");
}

/// The agents called nothing any more, and all was said to be in order.
#[test]
fn a_program_that_was_moved_away_is_told() {
    let env = machine();
    let own = env.home().join("bin/undertext");
    fs::create_dir(own.parent().unwrap()).unwrap();
    copy_program(&own);
    for (agent, _) in AGENTS {
        let mut command = Command::new(&own);
        command.env_clear().env("HOME", env.home()).args(["setup", agent, "-y"]);
        assert!(command.output().unwrap().status.success());
    }
    env.run(&["new", "-q"]).success();
    let in_order = env.run(&["doctor"]).success();
    assert!(in_order.stdout.contains("is in order"), "{in_order}");
    fs::rename(&own, own.with_file_name("moved")).unwrap();
    assert_snapshot!(env.run(&["setup"]).success(), @r"
    claude  calls $HOME/bin/undertext, which does not exist  ~/.claude/settings.json
    codex   calls $HOME/bin/undertext, which does not exist  ~/.codex/config.toml
    pi      calls $HOME/bin/undertext, which does not exist  ~/.pi/agent/extensions/undertext.ts
    ------- stderr -------
    hint: to import the agent's sessions as they are written: undertext setup claude
    hint: to import the agent's sessions as they are written: undertext setup codex
    hint: to import the agent's sessions as they are written: undertext setup pi
    ");
    let listed = env.run(&["setup", "--json"]).success().stdout;
    let first: Value = json(listed.lines().next().unwrap());
    assert_eq!((&first["installed"], &first["current"]), (&true.into(), &false.into()));
    assert!(first["problem"].as_str().unwrap().ends_with("bin/undertext, which does not exist"));
    let told = env.run(&["doctor"]);
    let named =
        "~/.pi/agent/extensions/undertext.ts: pi calls $HOME/bin/undertext, which does not exist\n";
    assert!(told.code() == Some(1) && told.stdout.contains(named), "{told}");
    assert!(
        !told.stdout.contains("in order") && told.stderr.contains("undertext setup pi"),
        "{told}"
    );
    let told = env.run(&["doctor", "--json"]);
    assert_eq!((told.code(), told.stdout.matches("\"calling\"").count()), (Some(1), 3), "{told}");
    for (agent, _) in AGENTS {
        env.run(&["setup", agent, "-y"]).success();
    }
    env.run(&["doctor"]).success();
    let listed = env.run(&["setup"]).success().stdout;
    assert_eq!(listed.matches("  calls undertext  ").count(), 3, "{listed}");
}

/// Runs a command as an agent's settings have it, with more variables than it passes on.
#[track_caller]
fn called(env: &TestEnv, words: &[&str], stdin: &str) -> (Option<i32>, String) {
    let mut shell = Command::new(words[0]);
    shell.args(&words[1..]).current_dir(env.project()).env_clear();
    shell
        .env("HOME", "/nowhere")
        .env("XDG_DATA_HOME", env.project())
        .env("UNDERTEXT_STORE", env.project().join("theirs"));
    let (read, mut write) = std::io::pipe().unwrap();
    write.write_all(stdin.as_bytes()).unwrap();
    drop(write);
    let output = shell.stdin(read).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[test]
fn what_an_agent_calls_works_in_any_environment_and_without_the_program() {
    let env = machine();
    let own = env.home().join("a bin/undertext");
    fs::create_dir(own.parent().unwrap()).unwrap();
    copy_program(&own);
    let set_up = |agent: &str| {
        let mut command = Command::new(&own);
        command.env_clear().env("HOME", env.home()).args(["setup", agent, "-y"]);
        assert!(command.output().unwrap().status.success());
    };
    fs::write(
        path(&env, "codex"),
        "notify = [\"/bin/sh\", \"-c\", \"echo theirs; echo $1\", \"sh\"]\n",
    )
    .unwrap();
    set_up("claude");
    set_up("codex");
    let settings: Value = json(&fs::read_to_string(path(&env, "claude")).unwrap());
    let line = settings["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap().to_owned();
    let config = fs::read_to_string(path(&env, "codex")).unwrap();
    let config: toml::Table = toml::from_str(&config).unwrap();
    let notify = config["notify"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let notify: Vec<&str> = notify.collect();

    let folder = env.home().join(".claude/projects/-garden");
    fs::create_dir_all(&folder).unwrap();
    let example =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    let transcript = folder.join("7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl");
    fs::copy(example, &transcript).unwrap();
    let event = serde_json::json!({ "transcript_path": transcript }).to_string();
    let turn = r#"{"thread-id":"none"}"#;
    let both = |env: &TestEnv| {
        assert_eq!(called(env, &["/bin/sh", "-c", &line], &event), (Some(0), String::new()));
        let words = [notify.as_slice(), &[turn]].concat();
        assert_eq!(called(env, &words, ""), (Some(0), format!("theirs\n{turn}\n")));
    };
    both(&env);
    let log = env.home().join(".local/state/undertext/hooks/log");
    let begun = std::time::Instant::now();
    while !fs::read_to_string(&log).unwrap_or_default().contains("28 new entries") {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(
        fs::read_dir(env.project()).unwrap().count(),
        0,
        "nothing goes where a project says"
    );
    fs::remove_file(&own).unwrap();
    both(&env);
}
