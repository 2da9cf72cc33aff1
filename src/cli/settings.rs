//! Settings files: where they are, and what is told of what is wrong in them.

use std::fs;
use std::io::ErrorKind;

use anyhow::{Context as _, anyhow};
use undertext::settings::{File, Settings};

use super::Context;
use super::archive::shown;
use super::error::CommandError;

/// The name of a settings file.
const NAME: &str = "config.toml";

impl Context {
    /// Reads the settings of the user and of the store, and warns of keys that mean nothing.
    pub(crate) fn settings(&mut self) -> Result<Settings, CommandError> {
        let user = self.env.config_home.as_ref().map(|folder| folder.join("undertext").join(NAME));
        let store = self.store.as_ref().map(|folder| folder.join(NAME));
        let mut texts = Vec::new();
        for path in user.into_iter().chain(store) {
            match fs::read_to_string(&path) {
                Ok(text) => texts.push((shown(&path), text)),
                Err(error)
                    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(error) => {
                    let failed: Result<Settings, _> = Err(error);
                    return failed
                        .with_context(|| format!("cannot read the settings in {}", shown(&path)))
                        .map_err(CommandError::user);
                }
            }
        }
        let files: Vec<File<'_>> = texts.iter().map(|(name, text)| File { name, text }).collect();
        let (settings, unknown) = Settings::read(&files).map_err(|error| {
            CommandError::user(anyhow!(error))
                .hinted("all keys, explained: undertext context --settings")
        })?;
        for key in unknown {
            self.output.warn(&key.to_string());
        }
        Ok(settings)
    }
}
