//! Settings files: where they are, warnings about them, and their merged values.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::anyhow;
use undertext::report::{Hint, ReadSetting};
use undertext::settings::{Author, Exclude, File, Mask, Read, Secrets, Setting, Settings};
use undertext::verbs::{Allowed, Masks};
use undertext::{disk, wire};

use super::common::{resolve, shown};
use super::{CommandError, Context, Exit};
use crate::render::safe;

/// The name of a settings file.
const NAME: &str = "config.toml";

impl Context {
    /// Returns the merged settings of the user and the store. The first call warns of ignored keys.
    pub(crate) fn settings(&mut self) -> Result<Settings, CommandError> {
        let read = self.read_settings()?;
        if !self.warned.insert("keys") {
            return Ok(read.settings);
        }
        warn_of_unknown(self, &read);
        if let Some(first) = read.refused.first() {
            let keys: Vec<String> = read.refused.iter().map(Setting::name).collect();
            self.output.warn(&format!(
                "{} may not set {}: only your own settings may run programs, send data, read files outside a session, exclude sessions or define secrets",
                first.file,
                keys.join(", "),
            ));
        }
        Ok(read.settings)
    }

    /// Returns the sessions that the user excludes from the store. Fails on a mistake in the settings rather than importing too
    /// much.
    pub(crate) fn exclude(&mut self) -> Result<Exclude, CommandError> {
        let is_unknown = |agent: &&String| wire::by_name(agent).is_none();
        let Read { settings: Settings { exclude, .. }, unknown, .. } = self.read_settings()?;
        let mut unknown = unknown.into_iter();
        if let Some(key) = unknown.find(|key| key.author == Author::User && key.may_exclude()) {
            let error =
                anyhow!("{key}; fix the key first, because it may be meant to exclude sessions");
            return Err(CommandError::user(error).hinted(Hint::settings("")));
        }
        let exclude = match exclude.agents.iter().find(is_unknown) {
            Some(agent) => Err(format!("exclude.agents: there is no agent {agent}")),
            None => exclude.at_home(self.env.home.as_deref(), &resolve),
        };
        exclude.map_err(|why| {
            let (error, hint) = (anyhow!("your settings: {why}"), Hint::settings(""));
            CommandError::user(error).hinted(hint)
        })
    }

    /// Reads the settings of the user and the store.
    pub(crate) fn read_settings(&mut self) -> Result<Read, CommandError> {
        let user = self.env.config.clone().map(|folder| (folder, Author::User));
        let store = self.root().ok().map(|folder| (folder, Author::Store));
        let mut texts = Vec::new();
        for (folder, author) in user.into_iter().chain(store) {
            let path = folder.join(NAME);
            let what = || format!("cannot read the settings in {}", shown(&path));
            match disk::read_text(&path, disk::TEXT) {
                Ok(text) => texts.push((shown(&path), author, text)),
                Err(error)
                    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
                {
                    if let Some(link) = astray(&path) {
                        let why = anyhow!("{}: {} is a broken link", what(), shown(link));
                        return Err(CommandError::user(why));
                    }
                }
                Err(error) => return Err(CommandError::user(anyhow!(error).context(what()))),
            }
        }
        let files: Vec<File<'_>> =
            texts.iter().map(|(name, author, text)| File { name, author: *author, text }).collect();
        Settings::read(&files)
            .map_err(|error| CommandError::user(anyhow!(error)).hinted(Hint::settings("")))
    }
}

/// Warns of unknown keys.
fn warn_of_unknown(context: &mut Context, read: &Read) {
    for key in &read.unknown {
        context.output.warn(&key.to_string());
    }
}

/// Returns what the user declared not to be a secret.
pub(crate) fn allowed(context: &mut Context) -> Result<Allowed, CommandError> {
    allowed_of(&context.settings()?)
}

/// Returns what settings declare not to be a secret.
pub(crate) fn allowed_of(settings: &Settings) -> Result<Allowed, CommandError> {
    let Secrets { allow_rules, allow_values, allow_entries } = &settings.secrets;
    Allowed::new(allow_rules, allow_values, allow_entries).map_err(|why| {
        let error = anyhow!("your settings, [secrets]: {why}");
        CommandError::user(error).hinted(Hint::settings(""))
    })
}

/// Returns what a document masks.
pub(crate) fn masks(context: &mut Context) -> Result<Masks, CommandError> {
    let Mask { homes, emails } = context.settings()?.mask;
    Ok(Masks { secrets: Some(allowed(context)?), homes, emails, ..Masks::default() })
}

/// Returns the excluded sessions for a command that does not import. A mistake in the settings excludes everything instead of
/// failing.
pub(crate) fn exclude_or_all(context: &mut Context) -> Exclude {
    context
        .exclude()
        .unwrap_or_else(|error| Exclude { unread: Some(error.in_one_line()), ..Exclude::default() })
}

/// Returns the settings that a store sets, as written.
pub(crate) fn of_store(folder: &Path) -> Vec<String> {
    let text = disk::read_text(&folder.join(NAME), disk::TEXT).unwrap_or_default();
    let file = File { name: NAME, author: Author::Store, text: &text };
    let read = Settings::read(&[file]).unwrap_or_default();
    let known = read.set.iter().filter(|set| !read.is_unknown(set));
    known.map(|set| format!("{} = {}", set.name(), set.value)).collect()
}

/// Prints the settings in force, each with its file and line. For unreadable files, it only prints the reason: an error in a
/// settings file sends the user here to see what is allowed in it.
pub(crate) fn show(context: &mut Context) -> Result<Exit, CommandError> {
    let read = context.read_settings().unwrap_or_else(|error| {
        context.output.warn(&error.in_one_line());
        Read::default()
    });
    warn_of_unknown(context, &read);
    if !context.json {
        context.output.write_all(safe::text(&read.explain()).as_bytes())?;
        return Ok(Exit::Yes);
    }
    let taken = read.set.iter().map(|set| (set, !read.is_unknown(set)));
    for (set, taken) in taken.chain(read.refused.iter().map(|set| (set, false))) {
        context.answer(&ReadSetting { set, taken })?;
    }
    Ok(Exit::Yes)
}

/// Returns the dangling link on the way to a file. Settings may exist behind it, for example on an unmounted disk.
fn astray(path: &Path) -> Option<&Path> {
    let there = path.ancestors().find(|above| fs::symlink_metadata(above).is_ok())?;
    fs::metadata(there).is_err().then_some(there)
}
