//! Every hint can be typed as it stands: each command line that any command prints is typed into a shell, where it is
//! accepted and works on the same store and the same session.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rusqlite::Connection;
use undertext::store::Access;
use undertext::verbs::{self, Archive, Machine, Session};

use super::json;
use crate::env::TestEnv;

/// A machine with several sessions in one folder and a store that only `--store` names.
struct World {
    env: TestEnv,
    store: PathBuf,
    /// Every command line that was typed, without what is particular to it.
    typed: BTreeSet<String>,
}

/// What a command printed on both streams, and its exit code.
struct Said {
    data: String,
    text: String,
    code: Option<i32>,
}

impl World {
    fn new() -> Self {
        let env = TestEnv::new();
        let store = env.home().join("it's my store");
        let world = Self { env, store, typed: BTreeSet::new() };
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
        let folder = world.env.home().join(".claude/projects/-garden");
        fs::create_dir_all(&folder).unwrap();
        let claude = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl";
        fs::copy(examples.join("claude-garden.jsonl"), folder.join(claude)).unwrap();
        for (example, name) in [
            ("pi-boat.jsonl", "a boat.jsonl"),
            ("codex-weather.jsonl", "-weather.jsonl"),
            ("native-tools.jsonl", "native-tools.jsonl"),
        ] {
            fs::copy(examples.join(example), world.env.project().join(name)).unwrap();
        }
        let project = world.env.project();
        for title in ["The older of two", "It's the newer one"] {
            world.must(&project, &["new", "-q"]);
            world.must(&project, &["append", "-q", title]);
            world.must(&project, &["append", "-q", "--role", "assistant", "Yes."]);
            world.must(&project, &["append", "-q", "And then?"]);
        }
        world.must(&project, &["import", "-q"]);
        world
    }

    /// Runs a command of the store in a folder.
    fn run(&self, folder: &Path, args: &[&str]) -> Said {
        let mut command = self.env.command();
        command.current_dir(folder).args(args).arg("--store").arg(&self.store);
        let output = command.stdin(Stdio::null()).output().unwrap();
        Said::of(&output)
    }

    #[track_caller]
    fn must(&self, folder: &Path, args: &[&str]) -> String {
        let said = self.run(folder, args);
        assert_eq!(said.code, Some(0), "{args:?}: {}", said.text);
        said.data
    }

    /// Types a command line in a folder.
    fn type_in(&mut self, folder: &Path, line: &str) -> Said {
        let words =
            line.split(' ').skip(1).take_while(|word| word.chars().all(|c| c.is_ascii_lowercase()));
        self.typed.extend(words.take(1).map(str::to_owned));
        let mut shell = self.env.shell("sh", line);
        Said::of(&shell.current_dir(folder).stdin(Stdio::null()).output().unwrap())
    }

    /// Returns how many operations each session has.
    fn operations(&self) -> BTreeMap<String, u64> {
        let archive = Archive::open(&self.store, Access::Read, Box::new(Machine)).unwrap();
        let count = |session: Session| {
            let newest = verbs::operations(&archive.at(&session).unwrap(), 1).unwrap().shown;
            (session.name.id, newest[0].operation.n.get())
        };
        archive.every().unwrap().into_iter().map(count).collect()
    }

    /// Runs a command and types what it hints at; what that hints at is typed too.
    #[track_caller]
    fn follow(&mut self, folder: &Path, args: &[&str], session: Option<&String>) {
        let before = self.operations();
        let said = self.run(folder, args);
        let changed = changed(&before, &self.operations());
        assert!(changed.len() <= 1, "{args:?} changed {changed:?}: {}", said.text);
        let is_it = |found: &&String| session.is_none_or(|session| session == *found);
        assert!(changed.iter().all(|found| is_it(&found)), "{args:?} changed {changed:?}");
        self.type_all(folder, &format!("{args:?}"), &said, session.or(changed.first()), 2);
    }

    #[track_caller]
    fn type_all(
        &mut self,
        folder: &Path,
        from: &str,
        said: &Said,
        expected: Option<&String>,
        depth: u32,
    ) {
        for line in said.lines() {
            let before = self.operations();
            let answer = self.type_in(folder, &line);
            let told =
                format!("{from} hints `{line}`, which says ({:?}): {}", answer.code, answer.text);
            assert_ne!(answer.code, Some(2), "{told}");
            // An agent may have no way to a place; that is a failure, and not a wrong hint.
            let is_refused = answer.text.contains("that the agent would resume from there");
            assert!(is_refused || !answer.text.contains("error: "), "{told}");
            let changed = changed(&before, &self.operations());
            // A session that is begun or taken in is another one.
            if !["import", "new"].iter().any(|verb| line.starts_with(&format!("undertext {verb}")))
            {
                let is_same =
                    |session: &String| expected.is_none_or(|expected| expected == session);
                assert!(changed.len() <= 1 && changed.iter().all(is_same), "{changed:?}, {told}");
                let undoes = ["undo", "redo"]
                    .iter()
                    .any(|verb| line.starts_with(&format!("undertext {verb}")));
                let undoes = undoes && !line.contains("--list");
                assert!(!undoes || changed.len() == 1, "nothing was undone: {told}");
            }
            if depth > 0 && changed.len() == 1 {
                self.type_all(folder, &line, &answer, changed.first(), depth - 1);
            }
        }
    }
}

impl Said {
    fn of(output: &std::process::Output) -> Self {
        let streams =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        let [data, talk] = streams;
        Self { text: format!("{data}{talk}"), data, code: output.status.code() }
    }

    /// Returns the command lines in what was said.
    fn lines(&self) -> Vec<String> {
        let line = |line: &str| {
            // Without a command, each line ends with what the one before two spaces does.
            let next = line.strip_prefix("  undertext ").map(|line| line.split("  ").next());
            let back = ["Undo  undertext ", "Redo  undertext "];
            let back =
                |part: &'_ str| back.iter().find_map(|back| part.strip_prefix(back).map(str::len));
            let back =
                line.split("        ").find_map(|part| Some(&part[part.len() - back(part)?..]));
            let next = next.or_else(|| back.map(Some));
            let command = next.unwrap_or_else(|| Some(line.split_once(": undertext ")?.1))?;
            Some(format!("undertext {command}"))
        };
        let told = self.text.lines().filter(|line| !line.starts_with("Usage: "));
        let lines: Vec<String> = told.filter_map(line).collect();
        let hints = self.text.lines().filter(|line| line.starts_with("hint:"));
        for hint in hints.filter(|hint| hint.contains("undertext ")) {
            let is_command = hint.contains(": undertext ");
            assert!(is_command || !hint.contains("undertext -"), "no command can be typed: {hint}");
        }
        lines
    }
}

/// Returns the sessions that were changed.
fn changed(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Vec<String> {
    let moved = after.iter().filter(|(id, n)| before.get(*id) != Some(n));
    moved.map(|(id, _)| id.clone()).collect()
}

#[test]
fn what_a_command_hints_at_works_on_the_session_that_it_was_about() {
    let mut world = World::new();
    let (project, home) = (world.env.project(), world.env.home().to_owned());
    let listed = world.must(&home, &["sessions", "--json"]);
    let id_of = |title: &str| {
        let mut sessions = listed.lines().map(json);
        let found = sessions.rfind(|session| session["title"] == title);
        found.unwrap()["session"].as_str().unwrap().to_owned()
    };
    let (older, newer) = (id_of("The older of two"), id_of("It's the newer one"));
    // What is named, and from where; nothing takes the newest session of the folder.
    let garden = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40".to_owned();
    let targets: [(&Path, &[&str], Option<&String>); 7] = [
        (&project, &[], Some(&newer)),
        (&project, &["-s", &older], Some(&older)),
        (&project, &["-s", &newer[..5]], Some(&newer)),
        (&home, &["-s", "It's the newer one"], Some(&newer)),
        (&home, &["-s", "claude:7c2a"], Some(&garden)),
        (&project, &["-s", "a boat.jsonl"], None),
        (&project, &["-s=-weather.jsonl"], None),
    ];
    let long = "word ".repeat(2000);
    for (n, (folder, named, session)) in targets.into_iter().enumerate() {
        let call = format!("call_{n}");
        let again = format!("again_{n}");
        let branch = format!("try-{n}");
        let commands: Vec<Vec<&str>> = vec![
            vec!["revert", "0"],
            vec!["undo"],
            vec!["redo"],
            vec!["checkpoint"],
            vec!["branch", &branch, "HEAD"],
            vec!["branch", &branch],
            vec!["switch", &branch],
            vec!["switch", "main"],
            vec!["append", "--role", "user", "And now?"],
            vec!["append", "--call", "Read", "--input", "{}", "--id", &call],
            vec!["append", "--result", &call, "--max-chars", "2000", &long],
            vec!["append", "--result", "nosuch", "text"],
            vec!["append", "--call", "Read", "--input", "{}", "--id", &again],
            vec!["append", "--result", &again, &long],
            vec!["log", "--at", "nosuch"],
            vec!["log"],
            vec!["show", "0"],
            vec!["show", "HEAD"],
            vec!["diff", "main", "main.1"],
            vec!["truncate", "--max-chars", "2000"],
            vec!["audit"],
            vec!["compact", "--keep", "1"],
            vec!["compact", "--trigger", "auto"],
            vec!["recover"],
            vec!["revert", "99"],
            vec!["revert", "nosuch"],
            vec!["switch", "nosuch"],
            vec!["switch", "@0"],
            vec!["undo", "--op", "99"],
            vec!["undo", "--op", "1"],
            vec!["undo", "nosuch"],
            vec!["export", "--generation", "99"],
            vec!["export", "--container"],
            vec!["context", "--window", "10"],
            vec!["verify"],
            vec!["store", "rebuild"],
            vec!["attach", "--off"],
            vec!["revert", "0"],
            vec!["clear"],
            vec!["attach"],
            vec!["turn", "Hello"],
        ];
        for command in commands {
            world.follow(folder, &[command.as_slice(), named].concat(), session);
        }
    }
    world.follow(&project, &["sessions", "--hide", &older], Some(&older));
    world.follow(&project, &["audit", "a boat.jsonl"], None);
    world.follow(&project, &["log", "native-tools.jsonl"], None);
    let reached = ["undo", "redo", "revert", "switch", "show", "export", "audit", "log"];
    for verb in reached.into_iter().chain(["sessions", "graph", "context", "recover"]) {
        assert!(world.typed.contains(verb), "{verb} was never hinted at: {:?}", world.typed);
    }
}

#[test]
fn what_an_error_or_an_empty_machine_hints_at_is_accepted() {
    let commands: [&[&str]; 33] = [
        &[],
        &["sessions"],
        &["log"],
        &["undo"],
        &["append", "text"],
        &["append", "--call", "Read"],
        &["log", "nowhere.jsonl"],
        &["log", "/no/such/file.jsonl"],
        &["log", "."],
        &["clear", "a folder"],
        &["a folder"],
        &["trust", "a folder"],
        &["graph", "99"],
        &["checkpoint", "5"],
        &["clear", "nowhere.jsonl"],
        &["log", "nosuch"],
        &["verify"],
        &["store", "sizes"],
        &["doctor"],
        &["search"],
        &["stauts"],
        &["sohw"],
        &["revrt"],
        &["help", "nosuch"],
        &["log", "--al"],
        &["log", "-n", "abc"],
        &["--color", "x"],
        &["revert"],
        &["completions"],
        &["turn", "Hello"],
        &["turn", "Hello", "--provider", "nobody"],
        &["compact", "--summarizer", "nobody"],
        &["compact", "--bogus"],
    ];
    for command in commands {
        for is_there in [false, true] {
            let mut world = World {
                env: TestEnv::new(),
                store: PathBuf::from("../a store"),
                typed: BTreeSet::new(),
            };
            let project = world.env.project();
            fs::create_dir(project.join("a folder")).unwrap();
            if is_there {
                world.must(&project, &["new", "-q"]);
            }
            let said = world.run(&project, command);
            for line in said.lines() {
                let answer = world.type_in(&project, &line);
                // On a machine without a session the hint may lead to the hint to make one.
                let is_wrong =
                    answer.code == Some(2) && !answer.text.contains(": undertext import");
                assert!(!is_wrong, "{command:?} hints `{line}`: {}", answer.text);
                assert!(
                    !line.contains("import") || answer.code == Some(0),
                    "{line}: {}",
                    answer.text
                );
            }
        }
    }
}

#[test]
fn damage_and_settings_hint_at_what_helps() {
    let world = World::new();
    let project = world.env.project();
    let (mut world, id) = {
        let created = world.must(&project, &["new", "--json"]);
        (world, json(&created)["session"].as_str().unwrap().to_owned())
    };
    world.must(&project, &["append", "-q", "One."]);
    crate::fixture::settle(&world.store);
    let damage = "UPDATE record SET kind = 5 WHERE n = 1";
    Connection::open(world.store.join("store.db")).unwrap().execute_batch(damage).unwrap();
    let said = world.run(&project, &["verify", &id]);
    let [line] = said.lines().try_into().unwrap();
    assert_eq!(world.type_in(&project, &line).code, Some(0));
    assert_eq!(world.run(&project, &["verify", &id]).code, Some(0));

    fs::set_permissions(&world.store, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let said = world.run(&project, &["doctor"]);
    let [line] = said.lines().try_into().unwrap();
    assert_eq!(world.type_in(&project, &line).code, Some(0));
    assert_eq!(world.run(&project, &["doctor"]).code, Some(0));

    let settings = world.env.home().join(".config/undertext");
    fs::create_dir_all(&settings).unwrap();
    let call = r#"[provider.clerk]
kind = "command"
command = 'cat answer.json'
"#;
    fs::write(settings.join("config.toml"), call).unwrap();
    let answer =
        r#"{"tool_calls":[{"id":"it is one","function":{"name":"Look","arguments":"{}"}}]}"#;
    fs::write(project.join("answer.json"), answer).unwrap();
    let said = world.run(&project, &["turn", "Look.", "--provider", "clerk"]);
    let [line] = said.lines().try_into().unwrap();
    assert!(line.starts_with("undertext append --result 'it is one' - --store "), "{line}");
    assert_eq!(world.type_in(&project, &line).code, Some(0), "{line}");
    fs::write(settings.join("config.toml"), "window = 3").unwrap();
    let said = world.run(&project, &["context"]);
    let [line] = said.lines().try_into().unwrap();
    assert_eq!(world.type_in(&project, &line).code, Some(0));
}
