//! The list of formats, and how a record or a name selects one.

use std::path::Path;

use crate::{
    json::Fields,
    wire::{Claude, Codex, Format, Kimi, Native, Pi},
};

/// How many records are enough to recognise a format that knows some of them. Each check reads a record several times.
const SURE: usize = 8;

/// All formats, in detection order.
pub const FORMATS: [&dyn Format; 5] = [&Native, &Claude, &Codex, &Pi, &Kimi];

/// Returns the format with this name.
pub fn by_name(name: &str) -> Option<&'static dyn Format> {
    FORMATS.into_iter().find(|format| format.name() == name)
}

/// Returns the format that knows the most of the first few records; else the most of all records; else one that
/// some of them resemble.
pub fn detect(records: &[Fields<'_>]) -> Option<&'static dyn Format> {
    let known =
        |format: &dyn Format, of: &[Fields<'_>]| of.iter().filter(|of| format.knows(of)).count();
    let most = |of: &[Fields<'_>]| {
        let known = FORMATS.map(|format| (known(format, of), format)).into_iter();
        known.filter(|(n, _)| *n > 0).max_by_key(|(n, _)| *n).map(|(_, format)| format)
    };
    let resembles = |format: &&dyn Format| records.iter().any(|record| format.resembles(record));
    let first = records.get(..SURE).unwrap_or(records);
    most(first).or_else(|| most(records)).or_else(|| FORMATS.into_iter().find(resembles))
}

/// Returns true if an agent stores credentials in files of this name. Case is ignored.
pub fn is_secret(file: &Path) -> bool {
    let name = file.file_name().map(|name| name.to_string_lossy().to_lowercase());
    let mut secrets = FORMATS.iter().flat_map(|format| format.traits().secrets);
    name.is_some_and(|name| secrets.any(|secret| *secret == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_keys_are_known_wherever_they_lie() {
        for secret in ["/home/ann/.claude.json", "/srv/.Claude.JSON"] {
            assert!(is_secret(Path::new(secret)), "{secret}");
        }
        for plain in ["/home/ann/app/claude.json", "/home/ann/app/.claude/settings.json", "/"] {
            assert!(!is_secret(Path::new(plain)), "{plain}");
        }
    }
}
