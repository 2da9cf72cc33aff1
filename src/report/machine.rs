//! The state of a machine: trusted stores, settings, and manual pages.

use std::path::Path;

use serde::Serialize;

use super::shape::{path, report};
use crate::model::hint::Line;
use crate::{model::StoreId, settings::Setting};

/// A store in a folder, and whether it is trusted.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Trust<'a> {
    /// The folder of the store.
    #[serde(serialize_with = "path")]
    pub path: &'a Path,
    /// Whether the store is trusted.
    pub trusted: bool,
    /// The store's id, if it is trusted.
    pub store: Option<StoreId>,
}

report!(Trust<'_>, "trust", hints: |it| {
    let off = || Line::new("trust").flag("off").with(it.path).to("to stop trusting it");
    it.store.map(|_| off())
});

/// A trusted store.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TrustedStore<'a> {
    /// The folder of the store.
    #[serde(serialize_with = "path")]
    pub path: &'a Path,
    /// The store's id.
    pub store: StoreId,
    /// Whether the store is used.
    pub used: bool,
    /// Why the store is not used.
    pub problem: Option<&'a str>,
}

report!(TrustedStore<'_>, "trusted");

/// A setting, and whether it has an effect.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReadSetting<'a> {
    /// The setting.
    #[serde(flatten)]
    pub set: &'a Setting,
    /// Whether the value takes effect; it does not if the key does not exist.
    pub taken: bool,
}

report!(ReadSetting<'_>, "setting");

/// A manual page that was written.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Page<'a> {
    /// The file.
    #[serde(serialize_with = "path")]
    pub path: &'a Path,
}

report!(Page<'_>, "page");
