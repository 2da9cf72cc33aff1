//! Hooks: how an agent notifies another program of its sessions, and the user settings that make it do so.
//!
//! ```text
//! Claude Code  settings.json            hooks.EVENT[].hooks[] {type, command, timeout}: a shell command; the event is on stdin
//! Codex        config.toml              notify = [program, argument, ..]: the event is one more argument
//! pi           extensions/undertext.ts  a module of our own: the event is one more argument
//! ```
//!
//! An event is only data: it names a session and can do nothing else.
//!
//! A call never disturbs the agent: if the program no longer exists, nothing runs, nothing is printed, and the exit code is 0.
//! The program gets only the environment variables that were set when the hook was installed, because the agent's own may come
//! from a project.
//!
//! Invariant: removing the call from settings right after adding it restores their bytes.

use std::{fmt, path::PathBuf};

use crate::{
    json::Raw,
    wire::{Invalid, fields::text},
};

/// The settings that make an agent call a program on its events.
pub trait Hooks: fmt::Debug + Sync {
    /// Returns the path of the settings file that contains the call, relative to the agent's folder.
    fn file(&self) -> &'static str;

    /// Returns the settings with the call added, or unchanged if it is already there. `None` means there is no settings file.
    fn hooked(&self, settings: Option<&[u8]>, call: &Call) -> Result<Vec<u8>, Invalid>;

    /// Returns the settings without the call, whichever program it names; None if nothing else is left in them.
    fn unhooked(&self, settings: &[u8]) -> Result<Option<Vec<u8>>, Invalid>;

    /// Returns the programs named by the calls in the settings, whatever their paths.
    fn programs(&self, settings: &[u8]) -> Vec<String>;

    /// Returns the setting that stops the agent from making any call.
    fn hindrance(&self, _settings: &[u8]) -> Option<&'static str> {
        None
    }

    /// Returns true if somebody edited a call in the settings. An edited call is not removed with the others.
    fn is_altered(&self, _settings: &[u8]) -> bool {
        false
    }

    /// Returns true if the settings file is our own but may contain edits by somebody else. Whoever replaces or removes it must
    /// keep a copy.
    fn may_hold_more(&self, _settings: &[u8]) -> bool {
        false
    }
}

/// The field of an event that names a session.
#[derive(Clone, Copy, Debug)]
pub enum EventField {
    /// It contains the path of the session's file.
    File(&'static str),
    /// It contains the session id.
    Session(&'static str),
}

impl EventField {
    /// Returns what an event names.
    pub fn read(self, event: &[u8]) -> Option<Named> {
        let event = Raw::object(event.trim_ascii())?;
        Some(match self {
            Self::File(field) => Named::File(text(event, field)?.into()),
            Self::Session(field) => Named::Session(text(event, field)?),
        })
    }
}

/// What an event names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The file of a session.
    File(PathBuf),
    /// A session id.
    Session(String),
}

/// The call that an agent is to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The path of the program.
    pub program: String,
    /// The environment variables of the call. It gets no others.
    pub variables: Vec<(String, String)>,
}

/// The beginning of the part of a script that calls a program.
const BEGIN: &str = "p=";
/// The script between the program and the variables.
const CLEAN: &str = "; [ ! -x \"$p\" ] || /usr/bin/env -i";
/// The script between the variables and the agent's name.
const HOOK: &str = " \"$p\" hook ";
/// The script after the arguments: it discards all output.
const SILENT: &str = " >/dev/null 2>&1; ";

impl Call {
    /// Returns a shell script that calls the program for an agent if the program exists, and then continues. `told` is appended
    /// to the call's arguments.
    pub(super) fn script(&self, agent: &str, told: &str) -> String {
        let variables =
            self.variables.iter().map(|(name, value)| format!(" {name}={}", quote(value)));
        let variables: String = variables.collect();
        let program = quote(&self.program);
        format!("{BEGIN}{program}{CLEAN}{variables}{HOOK}{agent}{told}{SILENT}")
    }
}

/// Returns true if a script calls this program for an agent, whatever its path.
pub(super) fn calls(script: &str, agent: &str) -> bool {
    let called = script.strip_prefix(BEGIN).and_then(|rest| rest.split_once(HOOK));
    let told = called.and_then(|(_, told)| told.strip_prefix(agent));
    told.is_some_and(|told| told.starts_with(' ') && told.contains(SILENT))
}

/// Returns the rest of a script after its call of this program for an agent, whatever its path; None unless the script begins
/// with the call exactly as it was written.
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

/// A single quote within a single-quoted shell word.
const ESCAPED: &str = r"'\''";

/// Quotes a word for a shell.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', ESCAPED))
}

/// Returns the text after a quoted word.
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
