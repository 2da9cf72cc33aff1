//! Files of agents that are written, and those that are not, whatever a store says.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use insta::assert_snapshot;

use super::{conversation, json, live_path, pipe, store};
use crate::env::TestEnv;
use crate::needs;

const MINE: &str = "export EDITOR=vi\n";

/// What changes a session.
const CHANGES: [&[&str]; 8] = [
    &["revert", "0"],
    &["revert", "0", "--rotate"],
    &["revert", "0", "-m", "Again."],
    &["append", "--note", "From elsewhere."],
    &["clear"],
    &["compact", "--summarizer", "extract"],
    &["undo"],
    &["checkpoint"],
];

fn records() -> String {
    let record = |n: u8, parent: &str, role: &str, words: &str| {
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":false,\"userType\":\"external\",\"cwd\":\"/work\",\"sessionId\":\"boat\",\
             \"version\":\"2.1.0\",\"type\":\"{role}\",\"message\":{{\"role\":\"{role}\",\"content\":\"{words}\"}},\
             \"uuid\":\"u{n}\",\"timestamp\":\"2026-01-01T00:00:0{n}.000Z\"}}\n"
        )
    };
    let lines = [
        record(1, "null", "user", "Build a boat."),
        record(2, "\"u1\"", "assistant", "Of wood?"),
        record(3, "\"u2\"", "user", "Of steel."),
        record(4, "\"u3\"", "assistant", "It floats."),
        "no record: echo owned >> ~/.profile\n".to_owned(),
    ];
    lines.concat()
}

/// A machine with a session that an agent keeps, and that is taken in.
fn kept() -> (TestEnv, PathBuf) {
    let env = TestEnv::new();
    let file = env.home().join(".claude/projects/-work/boat.jsonl");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, records()).unwrap();
    env.run(&["import"]).success();
    fs::write(env.home().join(".bashrc"), MINE).unwrap();
    (env, file)
}

/// A machine that got a store of which a session has this file, below the home folder: what was said where it was made is
/// not known here. Whoever made it even knew this computer's number.
fn copied(file: &str, before: &[&[&str]]) -> (TestEnv, PathBuf) {
    let env = TestEnv::new();
    let file = env.home().join(file);
    fs::write(&file, records()).unwrap();
    env.run(&["attach", file.to_str().unwrap()]).success();
    for command in before {
        env.run(&[command, &["-s", "boat"][..]].concat()).success();
    }
    fs::remove_file(env.home().join(".local/state/undertext/attached")).unwrap();
    (env, file)
}

/// Runs every change, and asserts that each is refused and that nothing is committed.
#[track_caller]
fn all_refused(env: &TestEnv) {
    let operations = env.run(&["operations", "boat"]).success().stdout;
    for change in CHANGES {
        let told = env.run(&[change, &["-s", "boat"][..]].concat()).to_string();
        let is_refused = told.contains("[exit status: 3]") || told.contains("[exit status: 2]");
        assert!(is_refused && told.contains("error: "), "{change:?}: {told}");
    }
    assert_eq!(env.run(&["operations", "boat"]).success().stdout, operations);
}

#[test]
fn a_store_that_came_from_elsewhere_writes_no_file_that_its_facts_name() {
    let (env, file) = copied(".bashrc", &[]);
    fs::write(&file, MINE).unwrap();
    assert_snapshot!(env.run(&["revert", "1", "-s", "boat"]), @r"
    ------- stderr -------
    error: cannot write to $HOME/.bashrc: the file is outside the agent's folders, and was never attached on this machine
    hint: if this is the session's own file, attach it: undertext attach $HOME/.bashrc
    hint: or tell undertext to leave the file alone: undertext attach -s boat --off
    [exit status: 3]
    ");
    all_refused(&env);
    assert_eq!(fs::read_to_string(&file).unwrap(), MINE);
    // Nor is it read into the store, which somebody else may get.
    let exported = env.run(&["export", "boat"]).success().stdout;
    assert_eq!(exported, records());
    // Who names it is told what it is; who has the session leave it alone goes on without it.
    let named = env.run(&["attach", file.to_str().unwrap()]);
    assert_snapshot!(named, @"
    ------- stderr -------
    error: $HOME/.bashrc is not a session in a known format
    hint: see which agents' sessions undertext reads: undertext import --help
    [exit status: 2]
    ");
    env.run(&["attach", "boat", "--off"]).success();
    env.run(&["revert", "1", "-s", "boat"]).success();
    assert_eq!(fs::read_to_string(&file).unwrap(), MINE);
    assert_eq!(fs::read_dir(env.home()).unwrap().count(), 3, "nothing lies beside it");
}

#[test]
fn a_path_that_was_met_on_another_computer_is_no_file_here() {
    let (env, file) = kept();
    // Another computer, or another account, has another number.
    fs::remove_dir_all(env.home().join(".local/state")).unwrap();
    fs::write(&file, MINE).unwrap();
    assert_snapshot!(env.run(&["revert", "1", "-s", "boat"]), @r#"
    boat is now just before @1 "Of steel."
    @1 (1 turn) is kept on branch main.1. Nothing is deleted.
    Context about 34 → 18 tokens (<1%)
    Your prompt @1, to send again or change:
      Of steel.
    Undo  undertext undo boat
    ------- stderr -------
    warning: only the store was changed: the session's file is on another computer or in another account
    The agent's own file is not changed
    hint: to write this state to a file: undertext export boat -o boat.jsonl
    "#);
    assert_eq!(fs::read_to_string(&file).unwrap(), MINE);
    let told = env.run(&["status", "boat"]).success().stdout;
    assert!(!told.contains("boat.jsonl"), "{told}");
    // Its own file is taken in as one of this computer's.
    fs::write(&file, records()).unwrap();
    env.run(&["import"]).success();
    assert!(env.run(&["status", "boat"]).success().stdout.contains("boat.jsonl"));
    env.run(&["append", "--note", "Here.", "-s", "boat"]).success();
    assert!(fs::read_to_string(&file).unwrap().contains("Here."));
    env.run(&["verify"]).success();
}

#[test]
fn what_a_kill_cut_short_elsewhere_is_not_carried_out_here() {
    let (env, file) = copied("boat.jsonl", &[&["revert", "1", "--rotate"]]);
    // As if the writer had died after its commit, before the exchange.
    let aside = env.home().join("boat.jsonl.undertext-1");
    fs::rename(&aside, &file).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), records());
    all_refused(&env);
    assert_eq!(fs::read_to_string(&file).unwrap(), records());
    // An import of it says so, and goes on.
    let told = env.run(&["import", file.to_str().unwrap()]).to_string();
    assert!(told.contains("its session cannot be changed"), "{told}");
    // Where this user points at the file, it is.
    env.run(&["attach", file.to_str().unwrap()]).success();
    assert!(fs::read_to_string(&file).unwrap() != records());
    env.run(&["verify"]).success();
}

#[test]
fn a_file_that_was_named_is_written_until_it_is_detached() {
    let env = TestEnv::new();
    let file = env.project().join("boat.jsonl");
    fs::write(&file, records()).unwrap();
    // An import reads it, and gives nobody leave to write it.
    env.run(&["import", "boat.jsonl"]).success();
    assert_snapshot!(env.run(&["attach", "boat"]), @r"
    ------- stderr -------
    error: cannot write to $HOME/project/boat.jsonl: the file is outside the agent's folders, and was never attached on this machine
    hint: if this is the session's own file, attach it: undertext attach $HOME/project/boat.jsonl
    hint: or tell undertext to leave the file alone: undertext attach -s boat --off
    [exit status: 3]
    ");
    env.run(&["revert", "1", "-s", "boat"]).success();
    assert_eq!(fs::read_to_string(&file).unwrap(), records());
    env.run(&["revert", "1", "-m", "Named.", "-s", "boat.jsonl"]).success();
    assert!(fs::read_to_string(&file).unwrap().contains("Named."));
    // What was named once needs no path again.
    env.run(&["append", "--note", "By its id.", "-s", "boat"]).success();
    assert!(fs::read_to_string(&file).unwrap().contains("By its id."));
    let list = env.home().join(".local/state/undertext/attached");
    assert!(fs::read_to_string(&list).unwrap().ends_with("/project/boat.jsonl\n"));
    env.run(&["attach", "boat", "--off"]).success();
    assert_eq!(fs::read_to_string(&list).unwrap(), "");
}

#[test]
fn nothing_but_a_file_in_its_agents_folder_is_written() {
    type Break = fn(&TestEnv, &Path);
    let breaks: [(&str, Break); 5] = [
        ("a link", |env, file| symlink(env.home().join(".bashrc"), file).unwrap()),
        ("a link that leads nowhere", |env, file| symlink(env.home().join("new"), file).unwrap()),
        ("a pipe", |_, file| pipe(file)),
        ("a folder", |_, file| fs::create_dir(file).unwrap()),
        ("a folder that leads out", |env, file| {
            let folder = file.parent().unwrap();
            fs::remove_dir(folder).unwrap();
            fs::create_dir(env.home().join("out")).unwrap();
            fs::write(env.home().join("out/boat.jsonl"), records()).unwrap();
            symlink(env.home().join("out"), folder).unwrap();
        }),
    ];
    for (what, broken) in breaks {
        let (env, file) = kept();
        fs::remove_file(&file).unwrap();
        broken(&env, &file);
        all_refused(&env);
        assert_eq!(fs::read_to_string(env.home().join(".bashrc")).unwrap(), MINE, "{what}");
        assert!(!env.home().join("new").exists(), "{what}");
        if let Ok(out) = fs::read_to_string(env.home().join("out/boat.jsonl")) {
            assert_eq!(out, records(), "{what}");
        }
        let reads = env.run(&["log", "boat"]).success();
        assert!(reads.stdout.contains("It floats."), "{what}: {reads}");
    }
}

#[test]
fn an_agents_folder_may_be_a_link_of_the_users_own() {
    let (env, file) = kept();
    let (usual, moved) = (env.home().join(".claude"), env.home().join("dotfiles"));
    fs::rename(&usual, &moved).unwrap();
    symlink(&moved, &usual).unwrap();
    env.run(&["revert", "1", "-m", "Moved.", "-s", "boat"]).success();
    assert!(fs::read_to_string(&file).unwrap().contains("Moved."));
}

#[test]
fn a_transcript_of_the_store_is_no_link_and_lies_in_no_linked_folder() {
    let env = TestEnv::new();
    let session = conversation(&env);
    let mine = env.home().join(".bashrc");
    fs::write(&mine, MINE).unwrap();
    let live = live_path(&env, &session);
    let append = || env.run(&["append", "More.", "-s", &session]);
    let moved = live.with_extension("moved");
    fs::rename(&live, &moved).unwrap();
    symlink(&mine, &live).unwrap();
    assert!(append().to_string().contains("it is a link, not a file"));
    fs::remove_file(&live).unwrap();
    fs::rename(&moved, &live).unwrap();
    let folder = store(&env).join("transcripts");
    fs::rename(&folder, env.home().join("elsewhere")).unwrap();
    symlink(env.home().join("elsewhere"), &folder).unwrap();
    let before = fs::read(env.home().join("elsewhere").join(live.file_name().unwrap())).unwrap();
    assert!(append().to_string().contains("the file's folder is a link"));
    assert!(before == fs::read(&live).unwrap());
    assert_eq!(fs::read_to_string(&mine).unwrap(), MINE);
}

#[test]
fn what_takes_the_place_of_a_file_keeps_its_owner_and_mode() {
    let Some(user) = needs::other_user() else { return };
    let (env, file) = kept();
    chown(&file, Some(user), Some(user)).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    env.run(&["revert", "1", "--rotate", "-s", "boat"]).success();
    let meta = fs::metadata(&file).unwrap();
    assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o777), (user, user, 0o640));
    assert!(fs::read_to_string(&file).unwrap() != records(), "it is a new file");
}

#[test]
fn a_store_of_another_user_is_read_and_not_changed() {
    let Some(user) = needs::other_user() else { return };
    let env = TestEnv::new();
    let session = conversation(&env);
    for part in [store(&env), store(&env).join("store.db")] {
        chown(part, Some(user), Some(user)).unwrap();
    }
    assert_snapshot!(env.run(&["append", "More.", "-s", &session]), @"
    ------- stderr -------
    error: $HOME/.local/share/undertext belongs to user 12345, and only user 12345 may change it
    hint: run this as user 12345, without sudo
    hint: commands that only read still work
    [exit status: 3]
    ");
    assert!(env.run(&["log", &session]).success().stdout.contains("Done."));
    // Nor does root make a store in a folder of theirs.
    let theirs = env.home().join("theirs");
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(user), Some(user)).unwrap();
    assert_snapshot!(env.run(&["--store", theirs.join("a/b").to_str().unwrap(), "new"]), @"
    ------- stderr -------
    Store: ~/theirs/a/b
    error: $HOME/theirs belongs to user 12345, and only user 12345 may change it
    hint: run this as user 12345, without sudo
    hint: commands that only read still work
    [exit status: 3]
    ");
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0);
    let made = json(&env.run(&["--store", "mine", "new", "--json"]).success().stdout);
    assert!(made["session"].is_string());
}

#[test]
fn a_command_that_names_a_copy_does_not_take_the_session_there() {
    let (env, file) = kept();
    fs::write(env.project().join("copy.jsonl"), records()).unwrap();
    env.run(&["export", "-o", "out.jsonl", "-s", "boat"]).success();
    let operations = env.run(&["operations", "boat"]).success().stdout;
    assert_snapshot!(env.run(&["revert", "1", "-s", "copy.jsonl"]), @"
    ------- stderr -------
    error: nothing was changed: session boat continues in $HOME/.claude/projects/-work/boat.jsonl, not in $HOME/project/copy.jsonl
    hint: name the session by its id or by the file in which it continues, as in: undertext status -s boat
    hint: or make the session continue in the file that you named: undertext attach $HOME/project/copy.jsonl
    [exit status: 2]
    ");
    for change in CHANGES {
        for copy in ["copy.jsonl", "out.jsonl"] {
            for dry in [&[][..], &["-n"][..]] {
                let told = env.run(&[change, &["-s", copy], dry].concat());
                assert_eq!(told.code(), Some(2), "{change:?}: {told}");
            }
        }
    }
    assert_eq!(env.run(&["operations", "boat"]).success().stdout, operations);
    assert_eq!(fs::read_to_string(env.project().join("copy.jsonl")).unwrap(), records());
    // The agent's own file goes on as the session's.
    env.run(&["revert", "1", "-m", "Named.", "-s", file.to_str().unwrap()]).success();
    assert!(fs::read_to_string(&file).unwrap().contains("Named."));
    // Who attaches the copy means it; where the other one is gone, there is nothing to lose.
    env.run(&["attach", "copy.jsonl"]).success();
    env.run(&["append", "--note", "Here.", "-s", "copy.jsonl"]).success();
    fs::remove_file(env.project().join("copy.jsonl")).unwrap();
    env.run(&["append", "--note", "There.", "-s", file.to_str().unwrap()]).success();
    assert!(fs::read_to_string(&file).unwrap().contains("There."));
}

/// What a change of the session had left was on a branch of which nobody was told.
#[test]
fn a_command_that_attaches_the_file_that_it_names_tells_what_that_leaves() {
    let (env, file) = kept();
    env.run(&["attach", "boat", "--off"]).success();
    env.run(&["revert", "1", "-s", "boat"]).success();
    let told = env.run(&["append", "--note", "Here.", "-s", file.to_str().unwrap()]).success();
    let words = "warning: main follows the file; main's old end is kept as branch main.2";
    assert!(told.stderr.contains(words), "{told}");
    let listed = env.run(&["branch", "-s", "boat"]).success().stdout;
    assert!(listed.contains("main.2"), "{listed}");
}
