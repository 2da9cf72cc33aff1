//! `hook`: at once, silent, never an error, into the user's own store only, and nothing that an agent wrote is missed.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use undertext::verbs::Queue;
use undertext::wire::Named;

use super::{json, pipe, store};
use crate::env::TestEnv;

/// A record behind the example's last.
const MORE: &str = concat!(
    r#"{"type":"user","message":{"role":"user","content":"And tomorrow?"},"uuid":"5d0e3c52-0000-4000-8000-000000000001","parentUuid":null,"sessionId":"7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40","timestamp":"2026-08-20T10:00:00Z"}"#,
    "\n"
);
const SESSION: &str = "7c2a51de-90b4-4e6f-8a53-0d1f6b7e2c40";

fn example(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)).unwrap()
}

/// Returns where Claude Code keeps the example's session.
fn transcript(env: &TestEnv) -> PathBuf {
    let folder = env.home().join(".claude/projects/-garden");
    fs::create_dir_all(&folder).unwrap();
    folder.join(format!("{SESSION}.jsonl"))
}

fn event(path: &Path) -> String {
    serde_json::json!({ "hook_event_name": "Stop", "transcript_path": path, "session_id": SESSION })
        .to_string()
}

#[track_caller]
fn hook(env: &TestEnv, args: &[&str], stdin: &[u8]) {
    let said = env.run_with_stdin(args, stdin);
    assert_eq!(
        (said.code(), said.stdout.as_str(), said.stderr.as_str()),
        (Some(0), "", ""),
        "{args:?}"
    );
}

fn log(env: &TestEnv) -> String {
    fs::read_to_string(env.home().join(".local/state/undertext/hooks/log")).unwrap_or_default()
}

/// Waits until the log says something.
#[track_caller]
fn wait(env: &TestEnv, words: &str) {
    let begun = Instant::now();
    while !log(env).contains(words) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{words} is not in {}", log(env));
        thread::sleep(Duration::from_millis(20));
    }
}

fn sessions(env: &TestEnv) -> Vec<serde_json::Value> {
    let listed = env.run(&["sessions", "--json", "--store", store(env).to_str().unwrap()]);
    listed.stdout.lines().map(json).collect()
}

#[test]
fn a_session_is_taken_in_once_its_agent_has_written_it() {
    let (env, path) = loop {
        let env = TestEnv::new();
        let (path, whole) = (transcript(&env), example("claude-garden.jsonl"));
        fs::remove_dir_all(env.home().join(".claude")).unwrap();
        // The file, and the folders above it, are begun after the event, and its end follows later.
        let begun = Instant::now();
        hook(&env, &["hook", "claude"], event(&path).as_bytes());
        thread::sleep(Duration::from_millis(150));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let (begin, end) = whole.split_at(whole.len() / 2);
        let half = Instant::now();
        fs::write(&path, begin).unwrap();
        thread::sleep(Duration::from_millis(150));
        fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(end).unwrap();
        // A machine so busy that it seemed to be written sooner, or never, says nothing.
        let is_soon = begun.elapsed() < Duration::from_secs(5);
        if is_soon && half.elapsed() < Duration::from_millis(400) {
            break (env, path);
        }
    };
    wait(&env, "28 new entries");
    assert_eq!(sessions(&env).len(), 1);
    // What grew is taken in by the next event; one without news adds nothing.
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(MORE.as_bytes()).unwrap();
    hook(&env, &["hook", "claude", &event(&path)], b"");
    wait(&env, "1 new entry");
    let mode =
        |path: &str| fs::metadata(env.home().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(".local/state/undertext/hooks/log"), 0o600);
    assert_eq!(mode(".local/state/undertext/hooks"), 0o700);
    env.run(&["verify"]).success();
}

#[test]
fn an_event_whose_writer_leaves_stdin_open_is_taken_in() {
    let env = TestEnv::new();
    let path = transcript(&env);
    fs::write(&path, example("claude-garden.jsonl")).unwrap();
    let mut command = env.command();
    let mut hook = command.args(["hook", "claude"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = hook.stdin.take().unwrap();
    let event = event(&path);
    let (begin, end) = event.split_at(event.len() / 2);
    stdin.write_all(begin.as_bytes()).unwrap();
    stdin.write_all(format!("{end}\n").as_bytes()).unwrap();
    assert!(hook.wait().unwrap().success());
    wait(&env, "28 new entries");
    drop(stdin);
}

#[test]
fn many_events_at_once_are_one_session() {
    let env = TestEnv::new();
    let path = transcript(&env);
    fs::write(&path, example("claude-garden.jsonl")).unwrap();
    let event = event(&path);
    let spawn = |_| {
        let mut command = env.command();
        command.args(["hook", "claude", &event]).stdin(Stdio::null()).spawn().unwrap()
    };
    let hooks: Vec<_> = (0..8).map(spawn).collect();
    for mut hook in hooks {
        assert!(hook.wait().unwrap().success());
    }
    wait(&env, "28 new entries");
    let queue = env.home().join(".local/state/undertext/hooks");
    let begun = Instant::now();
    let is_left = || {
        let mut names = fs::read_dir(&queue).unwrap().map(|name| name.unwrap().file_name());
        names.any(|name| name.to_string_lossy().starts_with("named-"))
    };
    while is_left() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(log(&env).lines().count(), 1, "{}", log(&env));
    assert_eq!(sessions(&env).len(), 1);
}

/// The worker gave up after 30 seconds, and the next event may never come.
#[test]
fn what_cannot_be_imported_now_is_retried_by_one_worker_until_it_succeeds() {
    let env = TestEnv::new();
    let pi = env.home().join(".pi/agent/sessions/--boat--/a.jsonl");
    fs::create_dir_all(pi.parent().unwrap()).unwrap();
    fs::write(&pi, example("pi-boat.jsonl")).unwrap();
    env.run(&["import"]).success();
    let lock = fs::OpenOptions::new().write(true).open(store(&env).join("lock")).unwrap();
    lock.lock().unwrap();
    let path = transcript(&env);
    fs::write(&path, example("claude-garden.jsonl")).unwrap();
    let queue = Queue::of(&env.home().join(".local/state/undertext"));
    queue.add("claude", &Named::File(path)).unwrap();
    let mut command = env.command();
    let mut worker = command.args(["hook", "--work", "--wait", "1"]).spawn().unwrap();
    wait(&env, "the import runs again until it succeeds");
    // Another one has nothing to do.
    env.run(&["hook", "--work", "--wait", "1"]).success();
    assert_eq!(log(&env).lines().count(), 1, "{}", log(&env));
    drop(lock);
    wait(&env, "28 new entries");
    assert!(worker.wait().unwrap().success());
    assert_eq!(log(&env).lines().count(), 2, "{}", log(&env));
    assert!(queue.is_empty());
}

/// Whatever was named while the store was locked, or the disk full, was never taken in.
#[test]
fn what_failed_is_imported_once_its_cause_is_gone() {
    let env = TestEnv::new();
    let garden = transcript(&env);
    fs::write(&garden, example("claude-garden.jsonl")).unwrap();
    let settings = env.home().join(".config/undertext/config.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(&settings, "[exclude]\nagents = [\"claud\"]\n").unwrap();
    hook(&env, &["hook", "claude", &event(&garden)], b"");
    wait(&env, "there is no agent claud");
    assert_eq!(sessions(&env).len(), 0);
    fs::remove_file(&settings).unwrap();
    wait(&env, "28 new entries");
    // However often it was tried, the cause is reported once.
    assert_eq!(log(&env).lines().count(), 2, "{}", log(&env));
    let pi = env.home().join(".pi/agent/sessions/--boat--/a.jsonl");
    fs::create_dir_all(pi.parent().unwrap()).unwrap();
    fs::write(&pi, example("pi-boat.jsonl")).unwrap();
    hook(&env, &["hook", "pi", &event(&pi)], b"");
    wait(&env, "pi session");
    // So it is if the process was killed meanwhile: the name is there until its file was taken in.
    let queue = env.home().join(".local/state/undertext/hooks");
    fs::write(queue.join("named-0.taken"), format!("claude file {}", garden.display())).unwrap();
    // Another hook was killed long ago as it wrote a name, and one is writing now.
    let (long_ago, now) = (queue.join("named-1.71"), queue.join("named-2.72"));
    fs::write(&now, "claude fi").unwrap();
    let half = fs::File::create(&long_ago).unwrap();
    half.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
    fs::OpenOptions::new().append(true).open(&garden).unwrap().write_all(MORE.as_bytes()).unwrap();
    hook(&env, &["hook", "pi", &event(&pi)], b"");
    wait(&env, "1 new entry");
    let begun = Instant::now();
    let names = || {
        let names = fs::read_dir(&queue).unwrap().map(|it| it.unwrap().path());
        let is_name =
            |path: &PathBuf| path.file_name().unwrap().as_encoded_bytes().starts_with(b"named-");
        names.filter(is_name).collect::<Vec<_>>()
    };
    while names() != [now.clone()] {
        assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", names());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn codex_and_kimi_name_a_session_and_pi_its_file() {
    let env = TestEnv::new();
    let put = |path: &str, example_name: &str| {
        let path = env.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, example(example_name)).unwrap();
        path
    };
    let id = "019f3c52-77aa-7a10-9c3e-2d4b8e6f1a05";
    put(
        &format!(".codex/sessions/2026/08/20/rollout-2026-08-20T09-00-00-{id}.jsonl"),
        "codex-weather.jsonl",
    );
    let turn = format!(r#"{{"type":"agent-turn-complete","thread-id":"{id}","turn-id":"1"}}"#);
    hook(&env, &["hook", "codex", &turn], b"");
    wait(&env, "codex session");
    let pi = put(".pi/agent/sessions/--boat--/a.jsonl", "pi-boat.jsonl");
    hook(&env, &["hook", "pi", &event(&pi)], b"");
    wait(&env, "pi session");
    put(
        ".kimi/sessions/0123456789abcdef0123456789abcdef/a-session/context.jsonl",
        "kimi-lighthouse/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c/context.jsonl",
    );
    hook(
        &env,
        &["hook", "kimi"],
        br#"{"hook_event_name":"Stop","session_id":"a-session","cwd":"/"}"#,
    );
    wait(&env, "kimi session a-session");
    assert_eq!(sessions(&env).len(), 3);
}

/// They were left out at each event, and gone once Claude Code had cleaned up.
#[test]
fn the_sub_agents_of_a_session_come_in_with_it() {
    let env = TestEnv::new();
    let put = |path: &Path, bytes: &[u8]| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let listed = || {
        let listed = env.run(&["sessions", "--all", "--json", "--no-import"]).success().stdout;
        let ids = listed.lines().map(|line| json(line)["session"].as_str().unwrap().to_owned());
        let mut ids: Vec<_> = ids.collect();
        ids.sort();
        ids
    };
    let of_agent = |id: &str| {
        let text = String::from_utf8(example("claude-garden.jsonl")).unwrap();
        let aside = format!("\"isSidechain\":true,\"agentId\":\"{id}\"");
        assert!(text.contains("\"isSidechain\":false"), "{text}");
        text.replace("\"isSidechain\":false", &aside).into_bytes()
    };
    let path = transcript(&env);
    fs::write(&path, example("claude-garden.jsonl")).unwrap();
    let agents = path.with_extension("").join("subagents");
    put(&agents.join("agent-a1.jsonl"), &of_agent("a1"));
    put(&agents.join("agent-a1.meta.json"), b"{\"agentType\":\"x\"}");
    put(&agents.join("workflows/w1/agent-b2.jsonl"), &of_agent("b2"));
    put(&agents.join("workflows/w1/journal.txt"), b"no session");
    // Another session's are another event's.
    let other = path.with_file_name("another/subagents/agent-c3.jsonl");
    put(&other, &of_agent("c3"));
    let (a1, b2) = (format!("{SESSION}/a1"), format!("{SESSION}/b2"));
    hook(&env, &["hook", "claude"], event(&path).as_bytes());
    wait(&env, &b2);
    wait(&env, &a1);
    wait(&env, "28 new entries");
    assert_eq!(listed(), [SESSION, &a1, &b2]);
    assert!(!log(&env).contains("journal"), "{}", log(&env));
    let status = env.run(&["status", "-s", &a1, "--no-import"]).success();
    assert!(status.stdout.contains("1 file stored alongside"), "{status}");
    // One that came while the session's own file stayed as it was.
    put(&agents.join("agent-d4.jsonl"), &of_agent("d4"));
    hook(&env, &["hook", "claude"], event(&path).as_bytes());
    wait(&env, &format!("{SESSION}/d4"));
    // A folder behind a link is not read.
    let elsewhere = env.home().join("elsewhere");
    fs::rename(&agents, &elsewhere).unwrap();
    put(&elsewhere.join("agent-e5.jsonl"), &of_agent("e5"));
    symlink(&elsewhere, &agents).unwrap();
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(MORE.as_bytes()).unwrap();
    hook(&env, &["hook", "claude"], event(&path).as_bytes());
    wait(&env, "1 new entry");
    assert_eq!(listed().len(), 4);

    let kimi = env.home().join(".kimi/sessions/0123456789abcdef0123456789abcdef/a-session");
    let context = example("kimi-lighthouse/6f1d2c3b-4a59-4e68-9b7c-8d0e1f2a3b4c/context.jsonl");
    put(&kimi.join("context.jsonl"), &context);
    put(&kimi.join("subagents/s1/context.jsonl"), &context);
    hook(&env, &["hook", "kimi"], br#"{"session_id":"a-session"}"#);
    wait(&env, "kimi session a-session:");
    wait(&env, "kimi session a-session/s1:");
    env.run(&["verify"]).success();
}

#[test]
fn nothing_that_comes_in_is_an_error() {
    let env = TestEnv::new();
    let huge = vec![b'x'; 100 << 20];
    let object = format!(r#"{{"transcript_path":"{}"}}"#, "/a".repeat(100_000));
    for stdin in [
        &b""[..],
        b"no JSON",
        b"[]",
        b"{}",
        b"null",
        b"{\"hook_event_name\":\"Unheard\",\"x\":{}}",
        b"{\"transcript_path\":null}",
        b"{\"transcript_path\":7}",
        b"{\"transcript_path\":\"\"}",
        b"{\"transcript_path\":\"\\u0000\"}",
        b"{\"transcript_path\":\"/dev/zero\"}",
        b"\xff\xfe",
        object.as_bytes(),
        &huge,
    ] {
        hook(&env, &["hook", "claude"], stdin);
    }
    for args in [
        &["hook"][..],
        &["hook", "nosuch"],
        &["hook", "--bogus"],
        &["hook", "claude", "{}", "more"],
        &["hook", "codex", "{\"thread-id\":\"../../x\"}"],
        &["hook", "kimi", "{\"session_id\":\"..\"}"],
        &["hook", "claude", "--store", "/no/such/folder", "--wait", "x"],
    ] {
        hook(&env, args, b"");
    }
    wait(&env, "no agent \"nosuch\"");
    wait(&env, "longer than");
    assert!(!store(&env).exists());
    // One that never ends, and one that nobody writes.
    let mut silent = env.command();
    silent.args(["hook", "claude"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut silent = silent.spawn().unwrap();
    let pipe = silent.stdin.take();
    assert!(silent.wait().unwrap().success());
    drop(pipe);
    let endless = env.shell("sh", "yes | undertext hook claude").output().unwrap();
    assert!(endless.status.success() && endless.stdout.is_empty() && endless.stderr.is_empty());
    let help = env.run(&["hook", "--help"]).success();
    assert!(help.stdout.contains("Usage:"));
}

#[test]
fn a_file_outside_of_the_agents_folders_is_not_read() {
    let env = TestEnv::new();
    let inside = transcript(&env);
    let outside = env.project().join("a.jsonl");
    fs::write(&outside, example("claude-garden.jsonl")).unwrap();
    symlink(&outside, &inside).unwrap();
    let fifo = inside.with_file_name("fifo.jsonl");
    pipe(&fifo);
    for path in [&outside, &inside, &fifo] {
        hook(&env, &["hook", "claude"], event(path).as_bytes());
    }
    wait(&env, "it is a pipe, not a file");
    wait(&env, "a.jsonl: it is outside the agent's folders");
    wait(&env, "40.jsonl: it is outside the agent's folders");
    // Another agent's folder is outside too.
    fs::remove_file(&inside).unwrap();
    fs::write(&inside, example("claude-garden.jsonl")).unwrap();
    hook(&env, &["hook", "pi"], event(&inside).as_bytes());
    let begun = Instant::now();
    while log(&env).matches("40.jsonl: it is outside").count() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{}", log(&env));
        thread::sleep(Duration::from_millis(20));
    }
    assert!(!store(&env).exists());
}

#[test]
fn no_folder_and_no_variable_names_the_store() {
    let env = TestEnv::new();
    env.run(&["new", "--here", "-q"]).success();
    let path = transcript(&env);
    fs::write(&path, example("claude-garden.jsonl")).unwrap();
    let elsewhere = env.home().join("elsewhere");
    let mut command = env.command();
    command.env("UNDERTEXT_STORE", &elsewhere).args(["hook", "claude", &event(&path)]);
    assert!(command.stdin(Stdio::null()).status().unwrap().success());
    wait(&env, "28 new entries");
    assert!(!elsewhere.exists());
    assert_eq!(sessions(&env).len(), 1);
    let here = env.run(&["sessions", "--json"]).success();
    assert_eq!(here.stdout.lines().count(), 1, "only the one that was made here: {here}");
}

#[test]
fn a_program_that_changes_the_store_is_waited_for() {
    let env = TestEnv::new();
    env.run(&["new", "-q"]).success();
    let path = transcript(&env);
    fs::write(&path, example("claude-garden.jsonl")).unwrap();
    let lock = fs::File::options().write(true).open(store(&env).join("lock")).unwrap();
    lock.lock().unwrap();
    hook(&env, &["hook", "claude", &event(&path)], b"");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(log(&env), "");
    // A name that comes meanwhile waits in the queue.
    let absent = path.with_file_name("later.jsonl");
    hook(&env, &["hook", "claude", &event(&absent)], b"");
    drop(lock);
    wait(&env, "28 new entries");
    wait(&env, "later.jsonl: the file does not exist yet");
}

#[test]
fn what_a_worker_left_that_was_killed_is_taken_in_with_the_next() {
    let env = TestEnv::new();
    let path = transcript(&env);
    fs::write(&path, example("claude-garden.jsonl")).unwrap();
    let queue = Queue::of(&env.home().join(".local/state/undertext"));
    queue.add("claude", &Named::File(path)).unwrap();
    hook(&env, &["hook", "claude", &event(&env.home().join("none"))], b"");
    wait(&env, "28 new entries");
}

#[test]
fn a_log_stays_short() {
    let env = TestEnv::new();
    let folder = env.home().join(".local/state/undertext/hooks");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("log"), vec![b'\n'; 200 << 10]).unwrap();
    hook(&env, &["hook", "nosuch"], b"");
    assert_eq!(log(&env).lines().count(), 1);
    assert_eq!(fs::metadata(folder.join("log.1")).unwrap().len(), 200 << 10);
}

#[test]
fn where_nothing_can_be_written_the_agent_is_not_told() {
    let env = TestEnv::new();
    fs::write(env.home().join(".local"), "a file").unwrap();
    let path = transcript(&env);
    fs::write(&path, example("claude-garden.jsonl")).unwrap();
    hook(&env, &["hook", "claude"], event(&path).as_bytes());
    hook(&env, &["hook", "--work"], b"");
}
