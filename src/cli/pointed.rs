//! The files outside the store that this user's commands may write: those of the agents on this machine, and those the user
//! pointed at.
//!
//! You point at a file by typing its path in a command that changes its session: `attach FILE`, or FILE as the SESSION of a
//! command. The user's state folder remembers it until `attach FILE --off`. Files that an import reads are not pointed at.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use undertext::live::Writable;
use undertext::report::Forgetful;
use undertext::trust::Files;
use undertext::verbs::{self, AgentFolder, Session};
use undertext::wire::discover::{self, Home};
use undertext::wire::unread::UnreadHome;

use super::Context;
use super::error::CommandError;

impl Context {
    /// Returns a function that looks up a folder in an environment variable.
    fn variables(&self) -> impl Fn(&str) -> Option<PathBuf> {
        |name| self.env.variable(name).map(PathBuf::from)
    }

    /// Returns the agents on this machine that delete sessions on their own.
    pub(crate) fn forgetful_agents(&self) -> Vec<Forgetful> {
        verbs::forgetful(self.env.home.as_deref(), &self.variables())
    }

    /// Returns where agents would store their sessions on this machine.
    pub(crate) fn homes(&self) -> Vec<Home> {
        discover::homes(self.env.home.as_deref(), &self.variables())
    }

    pub(crate) fn agent_roots(&self) -> Vec<PathBuf> {
        discover::roots(self.env.home.as_deref(), &self.variables())
    }

    /// Returns the folders where agents store their sessions on this machine.
    pub(crate) fn agent_folders(&self) -> Vec<AgentFolder> {
        verbs::agent_folders(self.env.home.as_deref(), &self.variables())
    }

    /// Returns the folders on this machine with sessions of unsupported agents.
    pub(crate) fn unread_folders(&self) -> Vec<(UnreadHome, u64)> {
        verbs::unread_folders(self.env.home.as_deref(), &self.variables())
    }

    /// Returns the folders where agents store additional files away from their sessions, each with its format.
    pub(crate) fn annexes(&self) -> impl Iterator<Item = (&'static str, PathBuf)> + use<> {
        discover::annexes(self.env.home.as_deref(), &self.variables()).into_iter()
    }

    /// Returns which files of agents may be written.
    pub(crate) fn writable(&mut self) -> Writable {
        let mut writable = Writable::default();
        for folder in self.agent_folders() {
            writable.folder(folder.format, &folder.path);
        }
        // A usual folder that is missing may be created again with its files; one that only a variable names may not.
        for Home { format, path, each, .. } in self.homes().into_iter().filter(|home| home.is_usual)
        {
            match each {
                None => writable.folder(format, &path),
                Some(each) => writable.folder_in_each(format, &path, each),
            }
        }
        for (format, folder) in self.annexes() {
            writable.folder(format, &folder);
        }
        for list in discover::lists(self.env.home.as_deref(), &self.variables()) {
            writable.list(&list);
        }
        let files = self.pointed().map(|files| files.all()).transpose().unwrap_or_else(|error| {
            self.output.warn(&format!("the list of attached files cannot be read: {error}"));
            None
        });
        files.into_iter().flatten().for_each(|file| writable.file(file));
        writable
    }

    /// Remembers that this user pointed at a file, unless it is in its agent's own folder.
    pub(crate) fn point_at(&self, file: &Path, session: &Session) -> Result<(), CommandError> {
        let is_kept = |folder: AgentFolder| {
            folder.format == session.name.format
                && folder.path.canonicalize().is_ok_and(|folder| file.starts_with(folder))
        };
        if self.agent_folders().into_iter().any(is_kept) {
            return Ok(());
        }
        let Some(files) = self.pointed() else { return Ok(()) };
        Ok(files.add(file).context("cannot save the path that you named")?)
    }

    /// Forgets that this user pointed at a file.
    pub(crate) fn forget_file(&self, file: &Path) -> Result<(), CommandError> {
        let Some(files) = self.pointed() else { return Ok(()) };
        Ok(files.remove(file).context("cannot forget the file")?)
    }

    fn pointed(&self) -> Option<Files> {
        Some(Files::of(&self.env.state_home.as_ref()?.join("undertext")))
    }
}
