//! `export`: a session's file, byte for byte.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use insta::assert_snapshot;

use super::{Stored, store, with_examples};
use crate::env::TestEnv;

#[test]
fn the_bytes_are_those_of_the_file() {
    let env = with_examples();
    for name in ["native-rewind.jsonl", "native-tools.jsonl"] {
        let odd =
            [fs::read(env.project().join(name)).unwrap(), b" \r\n{\"torn\":".to_vec()].concat();
        fs::write(env.project().join(name), &odd).unwrap();
        let exported = env.command().args(["export", name]).output().unwrap();
        assert!(exported.stdout == odd && exported.stderr.is_empty(), "{name}");
    }
}

#[test]
fn a_compressed_file_comes_back_as_it_lay_on_the_disk() {
    let env = with_examples();
    let content = fs::read(env.project().join("native-rewind.jsonl")).unwrap();
    let other = fs::read(env.project().join("native-tools.jsonl")).unwrap();
    let pack = |content: &[u8], level| zstd::encode_all(content, level).unwrap();
    let path = env.project().join("clock.jsonl.zst");
    let export = |args: &[&str]| {
        let output = env.command().arg("export").args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    fs::write(&path, pack(&content, 19)).unwrap();
    assert!(export(&["clock.jsonl.zst"]) == content);
    assert!(export(&["clock.jsonl.zst", "--container"]) == pack(&content, 19));
    env.run(&["import", "clock.jsonl.zst"]).success();
    let _ = export(&["4b6f", "-o", "out.jsonl.zst"]);
    assert!(fs::read(env.project().join("out.jsonl.zst")).unwrap() == pack(&content, 19));
    // Packed anew, it has the same content and other bytes.
    fs::write(&path, pack(&content, 1)).unwrap();
    assert_snapshot!(env.run(&["import", "clock.jsonl.zst"]), @"Imported 1 session (0 new): 0 new entries, 0 B");
    assert!(export(&["4b6f", "--container"]) == pack(&content, 1));
    let grown = [content.clone(), other].concat();
    fs::write(&path, pack(&grown, 3)).unwrap();
    env.run(&["import", "clock.jsonl.zst"]).success();
    assert!(export(&["4b6f", "--file", "clock.jsonl.zst"]) == grown);
    assert!(export(&["4b6f", "--container"]) == pack(&grown, 3));
    assert_snapshot!(env.run(&["export", "4b6f", "--list"]), @"1  27 entries  9.8 kB  current  by operation 1  ~/project/clock.jsonl.zst  (1.6 kB compressed)");
    env.run(&["verify"]).success();
    assert_snapshot!(env.run(&["export", "native-tools.jsonl", "--container"]), @"
    ------- stderr -------
    error: cannot use --container: generation 1 was not compressed
    hint: leave out --container, and name a file that does not end in .zst
    [exit status: 1]
    ");
    assert_snapshot!(env.run(&["export", "4b6f", "--file", "no.jsonl"]), @"
    ------- stderr -------
    error: the session has no file no.jsonl, or several with that name
    hint: available: clock.jsonl.zst; list them: undertext export 4b6f0c9e --list
    [exit status: 1]
    ");
}

#[test]
fn a_file_is_never_replaced_unasked() {
    let stored = Stored::reverted();
    let live = fs::read(&stored.live).unwrap();
    let out = stored.env.project().join("out.jsonl");
    let export = |args: &[&str]| stored.run(&[&["export", "-o", "out.jsonl"], args].concat());
    let _ = export(&[]).success();
    assert!(fs::read(&out).unwrap() == live);
    fs::write(&out, "mine").unwrap();
    assert_snapshot!(export(&[]), @r"
    ------- stderr -------
    error: $HOME/project/out.jsonl already exists
    hint: replace it with --force
    [exit status: 2]
    ");
    assert_eq!(fs::read(&out).unwrap(), b"mine");
    let _ = export(&["--force"]).success();
    assert!(fs::read(&out).unwrap() == live);
    assert_eq!(fs::read_dir(stored.env.project()).unwrap().count(), 1, "nothing else is left");
    assert_snapshot!(stored.run(&["export", "-o", "."]), @"
    ------- stderr -------
    error: $HOME/project/. is a folder; name a file in it
    [exit status: 2]
    ");
    assert_snapshot!(stored.run(&["export", "-o", "no/such/folder"]), @"
    ------- stderr -------
    error: cannot write $HOME/project/no/such/folder: there is no such file or folder
    hint: name a path in an existing folder
    [exit status: 2]
    ");
}

#[test]
fn no_file_of_a_store_or_an_agent_is_replaced_however_it_is_named() {
    let env = with_examples();
    let name = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl";
    let agents = env.home().join(".claude/projects/-garden").join(name);
    fs::create_dir_all(agents.parent().unwrap()).unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/claude-garden.jsonl");
    fs::copy(&example, &agents).unwrap();
    env.run(&["import"]).success();
    env.run(&["import", "native-tools.jsonl"]).success();
    let (store, project) = (store(&env), env.project());
    // A name that a store has not taken yet is no place either.
    let own = ["store.db", "store.db-wal", "store.witness", "lock", "new", "transcripts/new"];
    let own = own.map(|name| store.join(name));
    symlink(&store, project.join("linked")).unwrap();
    symlink(agents.parent().unwrap(), project.join("garden")).unwrap();
    fs::copy(&example, agents.with_file_name("not-taken-in.jsonl")).unwrap();
    fs::create_dir_all(project.join("other/transcripts")).unwrap();
    fs::write(project.join("other/store.db"), "another store").unwrap();
    let others = [
        agents.clone(),
        agents.with_file_name("not-taken-in.jsonl"),
        project.join("garden").join(name),
        project.join("garden/../-garden").join(name),
        project.join("native-tools.jsonl"),
        project.join("linked/store.db"),
        project.join("other/store.db"),
    ];
    let session = ["7c2a", "native-rewind.jsonl"];
    let forms = [&[][..], &["--as", "markdown"], &["--leave-damaged"]];
    for path in own.iter().chain(&others) {
        let before = fs::read(path).ok();
        for (session, form) in
            session.iter().flat_map(|it| forms.iter().map(move |form| (it, form)))
        {
            let out = path.to_str().unwrap();
            let args = [&["export", session, "-o", out, "--force"], *form].concat();
            let refused = env.run(&args);
            assert_eq!(refused.code(), Some(2), "{args:?}: {refused}");
            assert!(
                refused.stderr.contains("inside a store") || refused.stderr.contains("an agent"),
                "{refused}"
            );
        }
        assert!(fs::read(path).ok() == before, "{}", path.display());
    }
    let out = agents.to_str().unwrap();
    assert_snapshot!(env.run(&["export", "7c2a", "--force", "-o", out]), @"
    ------- stderr -------
    error: cannot use $HOME/.claude/projects/-garden/7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40.jsonl: it is a session file that an agent reads
    hint: name another file; to change an agent's own file, use revert, switch or restore, which keep the old content
    [exit status: 2]
    ");
    let out = store.join("store.db");
    assert_snapshot!(env.run(&["export", "7c2a", "--force", "-o", out.to_str().unwrap()]), @"
    ------- stderr -------
    error: cannot use $HOME/.local/share/undertext/store.db: it is inside a store; name a place outside the store
    [exit status: 2]
    ");
    // A file that nobody reads can be replaced, and one that is not there yet be made where an agent looks for some.
    env.run(&["export", "native-rewind.jsonl", "--force", "-o", "native-rewind.jsonl"]).success();
    env.run(&["export", "7c2a", "-o", "garden/copy.jsonl"]).success();
    env.run(&["verify"]).success();
}

#[test]
fn every_state_of_the_file_can_be_written() {
    let stored = Stored::reverted();
    let list = stored.run(&["export", "--list"]).success().stdout;
    let names: Vec<&str> = list.lines().filter_map(|line| line.rsplit('/').next()).collect();
    assert_eq!(names.len(), 2, "{list}");
    assert!(names[0].ends_with(".undertext-1"), "{list}");
    assert!(list.lines().nth(1).unwrap().contains("current"), "{list}");
    let mut aside = stored.live.clone().into_os_string();
    aside.push(".undertext-1");
    let old = stored.env.command().args(["export", "--generation", "1"]).output().unwrap();
    assert!(old.stdout == fs::read(aside).unwrap());
    assert_snapshot!(stored.run(&["export", "--generation", "3"]), @"
    ------- stderr -------
    error: there is no generation 3
    hint: generations 1 to 2 exist; list them: undertext export --list
    [exit status: 1]
    ");
}

#[test]
fn a_conversation_is_a_document_to_read() {
    let env = with_examples();
    let whole = ["export", "native-tools.jsonl", "--as", "markdown", "--thinking"];
    let document = env.run(&whole).success().stdout;
    assert!(!document.contains(['\x1b', '\x07', '\r', '\u{202e}']));
    assert_snapshot!("document", document);
    let wrote = env.run(&[&whole[..], &["-o", "kettle.md"]].concat());
    assert_snapshot!(wrote, @"
    ------- stderr -------
    Wrote 1.8 kB to kettle.md
    ");
    assert_eq!(fs::read_to_string(env.project().join("kettle.md")).unwrap(), document);
    assert_eq!(env.run(&["export", "--as", "markdown", "--list"]).code(), Some(2));
}

#[test]
fn a_dash_is_the_standard_output() {
    let env = TestEnv::new();
    super::conversation(&env);
    for form in [&[][..], &["--as", "markdown"]] {
        let said = env.run(&[&["export", "-o", "-"], form].concat()).success();
        assert_eq!(said.stdout, env.run(&[&["export"], form].concat()).success().stdout);
    }
    assert!(!env.project().join("-").exists());
}

#[test]
fn what_there_is_nothing_of_is_said() {
    let env = TestEnv::new();
    env.run(&["new", "-q"]).success();
    let said = |args: &[&str]| {
        let said = env.run(args);
        assert_eq!(said.stdout, "", "{said}");
        said.stderr
    };
    assert_eq!(said(&["export"]), "Nothing has been said yet\n");
    assert_eq!(said(&["checkpoints"]), "Nothing to go back to: there are no checkpoints yet\n");
    env.run(&["append", "-q", "Look."]).success();
    assert_eq!(said(&["show", "HEAD", "--grep", "nowhere"]), "Nothing was found\n");
}
