//! Figures of going back and forth in an agent's own attached session: a long one against a short one with the same end.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use rusqlite::Connection;

use crate::{Arguments, compare, folder, own, plain::Agent, timed};

const SHORT: usize = 1_000;
const LONG: usize = 1_000_000;
/// Number of records after the compaction.
const BEHIND: usize = 400;

/// A home folder in which an agent has one session, already imported.
struct Home(PathBuf);

impl Home {
    fn make(folder: &Path, agent: Agent, count: usize) -> Self {
        let home = Self(folder.join(format!("{}-{count}", agent.name())));
        let sessions = home.0.join(agent.folder());
        agent.write_long(&sessions, 1, count, BEHIND);
        if agent == Agent::Counted {
            index(&home.0.join(".codex"), &sessions, &agent.records(1, 0).0);
        }
        home.run(&["import"]);
        home
    }

    fn run(&self, args: &[&str]) -> Duration {
        let mut command = Command::new(own());
        command.arg("-q").args(args).env("HOME", &self.0).stdout(Stdio::null());
        for variable in
            ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "UNDERTEXT_STORE"]
        {
            command.env_remove(variable);
        }
        let mut done = false;
        let took = timed(|| done = command.status().unwrap().success());
        assert!(done, "{args:?}");
        took
    }
}

/// Creates the index of a Codex that has listed its only thread completely.
fn index(codex: &Path, sessions: &Path, thread: &str) {
    let file = fs::read_dir(sessions).unwrap().next().unwrap().unwrap();
    let open = |name: &str, table: &str| {
        let db = Connection::open(codex.join(name)).unwrap();
        db.execute_batch(&format!("PRAGMA journal_mode = WAL; CREATE TABLE {table}")).unwrap();
        db
    };
    let state = "threads (id TEXT PRIMARY KEY, rollout_path TEXT NOT NULL)";
    let path = file.path();
    open("state_5.sqlite", state)
        .execute("INSERT INTO threads VALUES (?1, ?2)", (thread, path.to_str().unwrap()))
        .unwrap();
    let list = "thread_history_projection_state
        (thread_id TEXT PRIMARY KEY, next_rollout_byte_offset INTEGER NOT NULL)";
    let length = file.metadata().unwrap().len();
    open("thread_history_1.sqlite", list)
        .execute("INSERT INTO thread_history_projection_state VALUES (?1, ?2)", (thread, length))
        .unwrap();
}

/// What runs before a command and after it.
type Around<'a> = [&'a dyn Fn(&Home); 2];

/// `revert`, `undo`, `redo`, `switch`, `append` and `truncate --dry-run` on 1,000,000 entries against 1,000.
pub(crate) fn back(_: &Arguments) {
    let folder = folder();
    for agent in Agent::ALL.into_iter().chain([Agent::Counted]) {
        let (session, _) = agent.records(1, 0);
        let homes = [LONG, SHORT].map(|count| Home::make(folder.path(), agent, count));
        for home in &homes {
            home.run(&["branch", "side", "HEAD~8", "-s", &session]);
        }
        let revert = ["revert", "HEAD~8", &session];
        let append = ["append", "some words", "-s", &session];
        let dry = ["truncate", &session, "--dry-run", "--max-chars", "2000"];
        let undo: &dyn Fn(&Home) = &|home| {
            home.run(&["undo", &session]);
        };
        let nothing: &dyn Fn(&Home) = &|_| ();
        let reverted: &dyn Fn(&Home) = &|home| {
            home.run(&revert);
        };
        let undone: &dyn Fn(&Home) = &|home| {
            home.run(&revert);
            home.run(&["undo", &session]);
        };
        let back: &dyn Fn(&Home) = &|home| {
            home.run(&["switch", "main", "-s", &session]);
        };
        // Per command: the step it needs before it, and the step that brings the session back.
        let commands: [(&str, &[&str], Around<'_>); 6] = [
            ("revert", &revert, [nothing, undo]),
            ("undo", &["undo", &session], [reverted, nothing]),
            ("redo", &["redo", &session], [undone, undo]),
            ("switch", &["switch", "side", "-s", &session], [nothing, back]),
            ("append-home", &append, [nothing, undo]),
            ("truncate-dry", &dry, [nothing, nothing]),
        ];
        for (name, args, [before, after]) in commands {
            let timed = |home: &Home| {
                before(home);
                let took = home.run(args);
                after(home);
                took
            };
            let [long, short] = &homes;
            compare(
                &format!("long-{name}-{}", agent.name()),
                1.5,
                11,
                ("of 1,000,000 entries", || timed(long)),
                ("of 1,000", || timed(short)),
            );
        }
    }
}
