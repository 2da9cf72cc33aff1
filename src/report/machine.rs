//! The state of a machine: trusted stores, settings, and manual pages.

use std::path::Path;

use super::{hint::Line, shape::report};
use crate::{
    model::StoreId,
    settings::{Author, Setting},
};

/// A store in a folder, and whether it is trusted.
#[derive(Clone, Copy, Debug)]
pub struct Trust<'a> {
    /// Where it is.
    pub path: &'a Path,
    /// The store's id, if it is trusted.
    pub store: Option<StoreId>,
}

report!(Trust<'_>, "trust", |it| {
    path: it.path.to_string_lossy(),
    trusted: it.store.is_some(),
    store: it.store,
}, hints: |it| {
    let off = || Line::new("trust").flag("off").with(it.path).to("to stop trusting it");
    it.store.map(|_| off())
});

/// A trusted store.
#[derive(Clone, Copy, Debug)]
pub struct TrustedStore<'a> {
    /// Where it is.
    pub path: &'a Path,
    /// The store's id.
    pub store: StoreId,
    /// Why it is not used, if so.
    pub problem: Option<&'a str>,
}

report!(TrustedStore<'_>, "trusted", |it| {
    path: it.path.to_string_lossy(),
    store: it.store,
    used: it.problem.is_none(),
    problem: it.problem,
});

/// A setting, and whether it has an effect.
#[derive(Clone, Copy, Debug)]
pub struct ReadSetting<'a> {
    /// The setting.
    pub set: &'a Setting,
    /// Whether it has an effect.
    pub taken: bool,
}

report!(ReadSetting<'_>, "setting", |it| {
    key: it.set.name(),
    value: it.set.value,
    source: match it.set.author {
        Author::User => "user",
        Author::Store => "store",
    },
    file: it.set.file,
    line: it.set.line,
    taken: it.taken,
});

/// A manual page that was written.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The file.
    pub path: &'a Path,
}

report!(Page<'_>, "page", |it| { path: it.path.to_string_lossy() });
