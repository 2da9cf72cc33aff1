//! Figures of going back and forth in an agent's own session, which is attached: a long one against a short one that ends alike.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use crate::{Arguments, compare, folder, own, plain::Agent, timed};

const SHORT: usize = 1_000;
const LONG: usize = 1_000_000;
/// How many records stand behind the compaction.
const BEHIND: usize = 400;

/// A home in which an agent keeps one session, taken in.
struct Home(PathBuf);

impl Home {
    fn make(folder: &Path, agent: Agent, count: usize) -> Self {
        let home = Self(folder.join(format!("{}-{count}", agent.name())));
        agent.write_long(&home.0.join(agent.folder()), 1, count, BEHIND);
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

/// What is done before a command and behind it.
type Around<'a> = [&'a dyn Fn(&Home); 2];

/// `revert`, `undo`, `redo` and `truncate --dry-run` on 1,000,000 entries against 1,000.
pub(crate) fn back(_: &Arguments) {
    let folder = folder();
    for agent in Agent::ALL {
        let (session, _) = agent.records(1, 0);
        let homes = [LONG, SHORT].map(|count| Home::make(folder.path(), agent, count));
        let revert = ["revert", "HEAD~8", &session];
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
        // What a command needs before it, and what brings the session back to where it was.
        let commands: [(&str, &[&str], Around<'_>); 4] = [
            ("revert", &revert, [nothing, undo]),
            ("undo", &["undo", &session], [reverted, nothing]),
            ("redo", &["redo", &session], [undone, undo]),
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
