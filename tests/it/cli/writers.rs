//! Writers: what looks at a store while other programs change it says nothing that is untrue.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{conversation, store};
use crate::env::TestEnv;
use crate::needs;

/// How many programs write.
const WRITERS: usize = 6;

/// Ends the writers, also where an assertion fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_healthy_store_is_never_called_damaged_while_six_programs_change_it() {
    let env = TestEnv::new();
    let sessions = [conversation(&env), conversation(&env), conversation(&env)];
    let template = env.command();
    let (program, folder) = (template.get_program(), template.get_current_dir().unwrap());
    let variables: Vec<_> = template.get_envs().filter_map(|(k, v)| Some((k, v?))).collect();
    // Each program has a clock and ids of its own.
    let command = || {
        let mut command = Command::new(program);
        command.current_dir(folder).env_clear().envs(variables.iter().copied());
        command.env_remove("UNDERTEXT_TEST_CLOCK").env_remove("UNDERTEXT_TEST_SEED");
        command
    };
    let (is_done, changes) = (AtomicBool::new(false), AtomicU32::new(0));
    let write = |writer: usize| {
        let session = &sessions[writer % sessions.len()];
        for n in 0.. {
            let args: &[&str] = match n % 6 {
                3 if writer == 0 => &["revert", "1"],
                5 if writer == 1 => &["undo"],
                _ => &["append", "-q", "And another word of it."],
            };
            let output = command().args(args).args(["-s", session]).output().unwrap();
            assert!(args[0] != "append" || output.status.success(), "{output:?}");
            changes.fetch_add(1, Ordering::Relaxed);
            if is_done.load(Ordering::Relaxed) {
                break;
            }
        }
    };
    let looks: [&[&str]; 3] = [&["verify"], &["doctor"], &["doctor", "--fix"]];
    let end = Instant::now() + needs::rounds(Duration::ZERO, Duration::from_secs(60));
    let (mut rounds, write) = (0, &write);
    thread::scope(|scope| {
        let _end = End(&is_done);
        for writer in 0..WRITERS {
            scope.spawn(move || write(writer));
        }
        while rounds < 4 || Instant::now() < end {
            for look in looks {
                let output = command().args(look).output().unwrap();
                assert!(output.status.success(), "{look:?}, round {rounds}: {output:?}");
            }
            rounds += 1;
        }
    });
    assert!(changes.load(Ordering::Relaxed) >= u32::try_from(WRITERS).unwrap());
    assert!(!fs::exists(store(&env).join("damaged-1")).unwrap());
    env.run(&["verify"]).success();
}
