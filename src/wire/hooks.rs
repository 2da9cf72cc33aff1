//! Hooks: how an agent tells another program that a session went on, and the settings of a user by which it does.
//!
//! ```text
//! Claude Code  settings.json            hooks.EVENT[].hooks[] {type, command, timeout}: a line for a shell, told on stdin
//! Codex        config.toml              notify = [program, argument, ..]: told by one more argument
//! pi           extensions/undertext.ts  a module of its own: told by one more argument
//! ```
//!
//! What a program is told is data: it names a session, and has no power beyond that.
//!
//! An agent is never hindered by a call: if the program no longer exists, nothing happens, nothing is printed, and the exit code is
//! 0. The program gets the variables that were set when the call was put in and no others, because those of the agent may
//! come from a project.
//!
//! Invariant: taking the call out of settings into which it was just put gives the bytes from before.

use std::path::{Path, PathBuf};

use crate::{json::Raw, wire::Invalid};

/// Knows how an agent tells a program of its sessions, and how its user's settings make it do so.
pub trait Hooks {
    /// Returns what an event names.
    fn named(&self, _event: Raw<'_>) -> Option<Named> {
        None
    }

    /// Returns whether a file in the agent's folders is one of this session, told from its path.
    fn is_file_of(&self, _file: &Path, _session: &str) -> bool {
        false
    }

    /// Returns the folder in which the files of a session's sub-agents lie, if the place of its own file tells: an agent
    /// that calls for each of them on its own needs none.
    fn sub_agents(&self, _file: &Path) -> Option<PathBuf> {
        None
    }

    /// Returns the file of the user's settings that holds the call, below the agent's own folder, if the agent has one.
    fn hook_file(&self) -> Option<&'static str> {
        None
    }

    /// Returns the settings with the call in them, the same ones if it is there already. Settings that are not there are
    /// None.
    fn hooked(&self, _settings: Option<&[u8]>, _call: &Call) -> Result<Vec<u8>, Invalid> {
        Err(Invalid("the agent calls no program".to_owned()))
    }

    /// Returns what in the settings has the agent make no call at all.
    fn hindrance(&self, _settings: &[u8]) -> Option<&'static str> {
        None
    }

    /// Returns whether the settings hold a call to which somebody added something: it is not taken out with the others.
    fn is_altered(&self, _settings: &[u8]) -> bool {
        false
    }

    /// Returns the programs that the calls in the settings name, wherever these lie.
    fn programs(&self, _settings: &[u8]) -> Vec<String> {
        Vec::new()
    }

    /// Returns whether the settings are a file of the call's own that may hold what somebody wrote: whoever replaces it or
    /// takes it away keeps a copy.
    fn may_hold_more(&self, _settings: &[u8]) -> bool {
        false
    }

    /// Returns the settings without the call, whichever program it names, or None if they hold nothing else.
    fn unhooked(&self, settings: &[u8]) -> Result<Option<Vec<u8>>, Invalid> {
        Ok(Some(settings.to_vec()))
    }
}

/// What an event of an agent names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The file of a session.
    File(PathBuf),
    /// A session, by its id.
    Session(String),
}

/// The program that an agent is to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Where it is.
    pub program: String,
    /// The variables that it is given, and no others.
    pub variables: Vec<(String, String)>,
}

/// How the part of a script begins in which a program is called.
const BEGIN: &str = "p=";
/// What is in a script between the program and the variables.
const CLEAN: &str = "; [ ! -x \"$p\" ] || /usr/bin/env -i";
/// What is in a script between the variables and the agent's name.
const HOOK: &str = " \"$p\" hook ";
/// What comes after the agent's name: nothing is printed.
const SILENT: &str = " >/dev/null 2>&1; ";

impl Call {
    /// Returns a script that calls the program for an agent, told by more words for a shell, if it is there; then goes on.
    pub(super) fn script(&self, agent: &str, told: &str) -> String {
        let variables =
            self.variables.iter().map(|(name, value)| format!(" {name}={}", quote(value)));
        let variables: String = variables.collect();
        let program = quote(&self.program);
        format!("{BEGIN}{program}{CLEAN}{variables}{HOOK}{agent}{told}{SILENT}")
    }
}

/// Returns whether a script calls this program for an agent, wherever that is.
pub(super) fn calls(script: &str, agent: &str) -> bool {
    let called = script.strip_prefix(BEGIN).and_then(|rest| rest.split_once(HOOK));
    let told = called.and_then(|(_, told)| told.strip_prefix(agent));
    told.is_some_and(|told| told.starts_with(' ') && told.contains(SILENT))
}

/// Returns how a script goes on behind its call of this program for an agent, wherever that is, if it begins with the
/// call as it was made.
pub(super) fn behind_call<'a>(script: &'a str, agent: &str, told: &str) -> Option<&'a str> {
    let mut rest = behind_quote(script.strip_prefix(BEGIN)?)?.strip_prefix(CLEAN)?;
    loop {
        if let Some(called) = rest.strip_prefix(HOOK) {
            return called.strip_prefix(agent)?.strip_prefix(told)?.strip_prefix(SILENT);
        }
        let (name, value) = rest.strip_prefix(' ')?.split_once('=')?;
        if !name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
            return None;
        }
        rest = behind_quote(value)?;
    }
}

/// Returns the program that a script calls.
pub(super) fn program(script: &str) -> Option<String> {
    script.match_indices(BEGIN).find_map(|(at, begin)| {
        let called = script.get(at + begin.len()..)?;
        let behind = behind_quote(called)?;
        let word = called.strip_suffix(behind).filter(|_| behind.starts_with(CLEAN))?;
        Some(word.strip_prefix('\'')?.strip_suffix('\'')?.replace(ESCAPED, "'"))
    })
}

/// How a quote has a quote in it.
const ESCAPED: &str = r"'\''";

/// Returns a word as a shell reads it.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', ESCAPED))
}

/// Returns what comes after such a word.
fn behind_quote(text: &str) -> Option<&str> {
    let mut rest = text.strip_prefix('\'')?;
    loop {
        let at = rest.find('\'')?;
        rest = rest.get(at..)?;
        match rest.strip_prefix(ESCAPED) {
            Some(inside) => rest = inside,
            None => return rest.strip_prefix('\''),
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reads and writes what it made itself")]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, process::Command};

    use super::*;

    #[test]
    fn a_script_is_known_again_and_runs_what_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let call = Call {
            program: "/bin/it's here".to_owned(),
            variables: vec![("HOME".to_owned(), "/home/a'n n".to_owned())],
        };
        let script = call.script("pi", " \"$e\"");
        assert!(calls(&script, "pi"));
        assert!(!calls(&script, "p"));
        for around in [script.clone(), format!("cp='1'; {script}")] {
            assert_eq!(program(&around).as_deref(), Some("/bin/it's here"), "{around}");
        }
        for other in ["", "p=1", "echo", "p='/x'; \"$p\" hook", "make hook pi; "] {
            assert!(!calls(other, "pi"), "{other}");
        }
        let behind = |script: &str| behind_call(script, "pi", " \"$e\"").map(str::to_owned);
        assert_eq!(behind(&script).as_deref(), Some(""));
        assert_eq!(behind(&format!("{script}echo 'done'")).as_deref(), Some("echo 'done'"));
        for changed in
            [("; [", "; echo; ["), (" HOME=", " A=1 HOME="), (" >", " 2 >"), ("'\\''", "'")]
        {
            let changed = script.replacen(changed.0, changed.1, 1);
            assert_eq!(behind(&changed), None, "{changed}");
        }
        let run = |script: &str| {
            let mut shell = Command::new("/bin/sh");
            shell.env_clear().env("SECRET", "x").args(["-c", &format!("{script}echo done")]);
            let output = shell.current_dir(folder.path()).output().unwrap();
            (String::from_utf8(output.stdout).unwrap(), output.status.code())
        };
        assert_eq!(run(&script), ("done\n".to_owned(), Some(0)), "there is no such program");
        let told = folder.path().join("told").to_str().unwrap().to_owned();
        let spy = folder.path().join("sp'y");
        let sh = format!("#!/bin/sh\necho \"$HOME|$SECRET|$*\" > {told}\necho loud\nexit 2\n");
        fs::write(&spy, sh).unwrap();
        fs::set_permissions(&spy, fs::Permissions::from_mode(0o700)).unwrap();
        let call = Call { program: spy.to_str().unwrap().to_owned(), ..call };
        assert_eq!(run(&call.script("pi", " 'a b'")), ("done\n".to_owned(), Some(0)));
        let said = fs::read_to_string(told).unwrap();
        assert_eq!(said, "/home/a'n n||hook pi a b\n");
    }
}
