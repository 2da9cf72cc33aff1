//! What others could have put into a folder, a store or a transcript: nothing hangs, nothing is read without end, and no model is
//! shown what this user did not put before it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::Value;

use super::{conversation, json, pipe, store};
use crate::env::TestEnv;

fn endless(path: &Path) {
    symlink("/dev/zero", path).unwrap();
}

#[test]
fn no_file_of_a_folder_keeps_a_command_waiting() {
    let all = ["package.json", "Cargo.toml", "pyproject.toml", ".git", "git/HEAD", "git/config"];
    for name in all.into_iter().chain(["git/commondir"]) {
        for put in [pipe, endless] {
            let env = TestEnv::new();
            let path = env.project().join(name);
            if name.starts_with("git/") {
                fs::create_dir(env.project().join("git")).unwrap();
                fs::write(env.project().join(".git"), "gitdir: git\n").unwrap();
            }
            put(&path);
            let made = json(&env.run(&["new", "--json"]).success().stdout);
            env.run(&["append", "Hello", "-s", made["session"].as_str().unwrap()]).success();
        }
    }
}

#[test]
fn no_part_of_a_store_keeps_a_command_waiting() {
    for name in ["store.db", "store.db-wal", "store.db-shm", "lock", "config.toml"] {
        for put in [pipe, endless] {
            let env = TestEnv::new();
            let session = conversation(&env);
            let path = store(&env).join(name);
            let _ = fs::remove_file(&path);
            put(&path);
            for command in [&["log", &session][..], &["append", "More.", "-s", &session]] {
                let told = env.run(command).to_string();
                let is_refused = told.contains(", not a file");
                assert!(is_refused || told.contains("Done.") || name == "config.toml", "{told}");
            }
        }
    }
    // A WAL that is a link would be written where it leads.
    let env = TestEnv::new();
    let session = conversation(&env);
    let mine = env.home().join("mine");
    fs::write(&mine, "mine").unwrap();
    let wal = store(&env).join("store.db-wal");
    fs::remove_file(&wal).unwrap();
    symlink(&mine, &wal).unwrap();
    let told = env.run(&["append", "More.", "-s", &session]).to_string();
    assert!(told.contains("it is a link, not a file"), "{told}");
    assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
}

#[test]
fn a_lock_beside_a_session_that_is_none_holds_nobody_up() {
    for put in [pipe, endless] {
        let env = TestEnv::new();
        let folder = env.home().join(".pi/agent/sessions/--work--");
        fs::create_dir_all(&folder).unwrap();
        let header = "{\"type\":\"session\",\"version\":3,\"id\":\"boat\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/work\"}\n";
        let said = "{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"timestamp\":\"2026-01-01T00:00:01.000Z\",\
                    \"message\":{\"role\":\"user\",\"content\":\"Hello\",\"timestamp\":1}}\n";
        fs::write(folder.join("boat.jsonl"), [header, said].concat()).unwrap();
        env.run(&["import"]).success();
        put(&folder.join("boat.jsonl.lock"));
        env.run(&["append", "--note", "Hi.", "-s", "boat"]).success();
    }
}

#[test]
fn records_and_exports_are_files() {
    let env = TestEnv::new();
    let session = conversation(&env);
    pipe(&env.project().join("pipe"));
    assert_snapshot!(env.run(&["append", "--jsonl", "pipe", "-s", &session]), @"
    ------- stderr -------
    error: cannot read pipe: it is a pipe, not a file
    hint: to read a program's output, use stdin: undertext append --jsonl - -s e572dff8
    [exit status: 2]
    ");
    for out in ["pipe", "/dev/null"] {
        let told = env.run(&["export", &session, "-o", out, "--force"]).to_string();
        assert!(told.contains("cannot write to ") && told.contains(": it is a "), "{told}");
    }
    assert!(fs::metadata("/dev/null").is_ok_and(|meta| !meta.is_file()));
}

#[test]
fn an_import_stays_below_the_folders_that_were_named() {
    let env = TestEnv::new();
    let (inside, outside) = (env.project().join("in"), env.home().join("out"));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    let record = |id: &str| {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"{id}\",\"parentUuid\":null,\"sessionId\":\"{id}\",\
             \"message\":{{\"role\":\"user\",\"content\":\"Hello\"}}}}\n"
        )
    };
    fs::write(inside.join("a.jsonl"), record("a")).unwrap();
    fs::write(outside.join("b.jsonl"), record("b")).unwrap();
    symlink(&outside, inside.join("folder")).unwrap();
    symlink(outside.join("b.jsonl"), inside.join("file.jsonl")).unwrap();
    symlink("..", inside.join("loop")).unwrap();
    symlink("/proc/self", inside.join("self")).unwrap();
    symlink("a.jsonl", inside.join("same.jsonl")).unwrap();
    pipe(&inside.join("pipe"));
    assert_snapshot!(env.run(&["import", "in"]), @"
    Imported 1 session (1 new): 1 new entry, 105 B
    ------- stderr -------
    warning: skipped 6 (-v lists them): links: 5; pipes, sockets and devices: 1
    ");
    let told = env.run(&["import", "in", "--json"]).success().stdout;
    let summary: Value = json(told.lines().last().unwrap());
    assert_eq!(summary["left_out"]["link"], 5);
    // Named, a link is followed.
    env.run(&["import", "in/file.jsonl"]).success();
    for (path, why) in [
        ("/dev/zero", "neither a file nor a folder"),
        ("in/pipe", "neither a file nor a folder"),
        ("/proc/kmsg", "it is in a virtual file system"),
        ("/proc", "it is in a virtual file system"),
    ] {
        let told = env.run(&["import", path]).to_string();
        let is_told = told.contains(why) || !Path::new("/proc/kmsg").exists();
        assert!(is_told && told.ends_with("[exit status: 3]\n"), "{told}");
    }
}

/// Compacts a session that works in a folder and names some files, and returns what the model was sent.
fn sent(env: &TestEnv, cwd: &Path, files: &[&Path], flags: &[&str]) -> String {
    let got = env.home().join("sent");
    let _ = fs::remove_file(&got);
    let folder = env.home().join(".config/undertext");
    fs::create_dir_all(&folder).unwrap();
    let settings = format!(
        "[compaction]\nsummarizer = \"spy\"\nkeep = \"1\"\n[provider.spy]\nkind = \"command\"\ncommand = \"cat > {}; echo A summary.\"\n",
        got.display()
    );
    fs::write(folder.join("config.toml"), settings).unwrap();
    let cwd = cwd.to_str().unwrap();
    let mut lines = Vec::new();
    for n in 0..8 {
        let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let (role, words) = if n % 2 == 0 {
            ("user", names.join(" and "))
        } else {
            ("assistant", "Yes.".to_owned())
        };
        let parent = if n == 0 { Value::Null } else { format!("s{}", n - 1).into() };
        let message = serde_json::json!({ "role": role, "content": format!("{words} {}", "so it is ".repeat(60)) });
        let record = serde_json::json!({
            "type": role, "uuid": format!("s{n}"), "parentUuid": parent, "sessionId": "spied", "cwd": cwd, "message": message,
        });
        lines.push(format!("{record}\n"));
    }
    let session = env.home().join("spied.jsonl");
    fs::write(&session, lines.concat()).unwrap();
    let session = session.to_str().unwrap();
    let spied = env.home().join("spied-store");
    let _ = fs::remove_dir_all(&spied);
    let compact = ["--store", spied.to_str().unwrap(), "compact", session];
    env.run(&[&compact, flags].concat()).success();
    fs::read_to_string(got).unwrap()
}

#[test]
fn a_model_is_shown_the_users_folder_and_never_what_a_transcript_says() {
    let env = TestEnv::new();
    let home = env.home().canonicalize().unwrap();
    let project = home.join("project");
    let put = |name: &str| {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("TEXT OF {name}\n")).unwrap();
        path
    };
    let (key, notes) = (put(".ssh/id_rsa"), put("notes.txt"));
    let agents_keys = put("project/.claude.json");
    let (code, env_file, hidden) = (put("project/a.rs"), put("project/.env"), put("project/x.pem"));
    let linked = project.join("linked.rs");
    symlink(&key, &linked).unwrap();
    let twin = project.join("twin.rs");
    fs::hard_link(&key, &twin).unwrap();
    pipe(&project.join("pipe.rs"));
    endless(&project.join("zero.rs"));
    let (pipe, zero) = (project.join("pipe.rs"), project.join("zero.rs"));
    let secrets = [&key, &agents_keys, &env_file, &hidden, &linked, &twin];
    let all: Vec<&Path> =
        secrets.into_iter().chain([&notes, &code, &pipe, &zero]).map(PathBuf::as_path).collect();
    let shown = |cwd: &Path, flags: &[&str]| {
        let sent = sent(&env, cwd, &all, flags);
        let mut names: Vec<&str> = sent
            .match_indices("TEXT OF ")
            .map(|(at, _)| sent[at + 8..].split(['\n', '\\']).next().unwrap())
            .collect();
        names.sort_unstable();
        names.dedup();
        names.join(" ")
    };
    assert_eq!(shown(&project, &[]), "project/a.rs");
    // The session says that it works in the home folder: the user works in the project.
    assert_eq!(shown(&home, &[]), "project/a.rs");
    assert_eq!(shown(&home.join(".ssh"), &[]), "");
    assert_eq!(shown(&project, &["--outside"]), "notes.txt project/a.rs");
    assert_eq!(shown(&home, &["--folder", home.to_str().unwrap()]), "notes.txt project/a.rs");
    assert_eq!(shown(&home.join("nowhere"), &[]), "");
}
