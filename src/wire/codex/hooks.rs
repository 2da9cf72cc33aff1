//! Codex's hook: the program that it notifies at the end of each turn, which is a single command in the user's settings.
//!
//! ```text
//! notify = ["/bin/sh", "-c", "for e; do :; done; p='/bin/undertext'; ..", "undertext", <what was there before>, ..]
//! ```
//!
//! Codex appends the event as the last argument. The script calls the program with it, then the previous command as Codex
//! would have, even if the program no longer exists. A script that somebody extended is theirs: it is never changed, and counts
//! as a call if it makes this one.
//!
//! Codex also has hooks for other events. But it silently skips those that the user has not reviewed in its own screens, and
//! after every change they must be reviewed again: a session would seem to be recorded and would not be. Codex deletes nothing
//! that a turn has written to its file, so the end of each turn is enough.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{
    json,
    wire::{
        Call, Hooks, Invalid,
        hooks::{behind_call, program},
    },
};

/// The name under which the script calls the program.
const AGENT: &str = super::TRAITS.name;
/// The key of the setting.
const KEY: &str = "notify";
/// The words before the script.
const SHELL: [&str; 2] = ["/bin/sh", "-c"];
/// The name under which the script runs.
const NAME: &str = "undertext";
/// The beginning of the script: it finds the last argument.
const LAST: &str = "for e; do :; done; ";
/// The event, as an argument of the call.
const TOLD: &str = " \"$e\"";
/// The rest of the script: it runs the command that was there before.
const BEFORE: &str = "[ $# -lt 2 ] || exec \"$@\"";
/// The end of the script if the settings file already existed and was empty.
const KEPT: &str = " # keeps file";

/// The hook in the settings.
#[derive(Debug)]
pub(super) struct CodexHooks;

impl Hooks for CodexHooks {
    fn file(&self) -> &'static str {
        "config.toml"
    }

    fn hooked(&self, settings: Option<&[u8]>, call: &Call) -> Result<Vec<u8>, Invalid> {
        let called = call.script(AGENT, TOLD);
        let script = format!("{LAST}{called}{BEFORE}");
        if let Some(settings) = settings
            && let Some(found) = find(text(settings)?)?
            && found.script.strip_suffix(KEPT).unwrap_or(&found.script) == script
        {
            return Ok(settings.to_vec());
        }
        let rest = settings.map(|settings| self.unhooked(settings)).transpose()?.flatten();
        let kept = if rest.as_ref().is_some_and(Vec::is_empty) { KEPT } else { "" };
        let rest = text(rest.as_deref().unwrap_or_default())?;
        if altered(rest)?.iter().any(|altered| altered.contains(&called)) {
            return Ok(rest.as_bytes().to_vec());
        }
        let [shell, option] = SHELL;
        let words = [shell, option, &format!("{script}{kept}"), NAME].map(json::quote).join(", ");
        let (at, added) = if let Some(held) = words_of(rest)? {
            let is_word =
                |item: &Spanned<DeValue<'_>>| matches!(item.get_ref(), DeValue::String(_));
            if !held.items.iter().all(is_word) {
                return Err(Invalid(format!("{KEY:?} in it is not a list of strings")));
            }
            (held.span.start + 1, format!("{words}, "))
        } else {
            // Top-level keys must come before all sections.
            (behind_mark(rest), format!("{KEY} = [{words}]\n"))
        };
        let (before, behind) = rest.split_at_checked(at).ok_or_else(strange)?;
        Ok([before, &added, behind].concat().into_bytes())
    }

    fn unhooked(&self, settings: &[u8]) -> Result<Option<Vec<u8>>, Invalid> {
        let settings = text(settings)?;
        let Some(Found { script, span, alone }) = find(settings)? else {
            return Ok(Some(settings.as_bytes().to_vec()));
        };
        let behind = |at: usize| settings.get(at..).unwrap_or_default();
        let comma = ([", ", ","].into_iter()).find(|comma| behind(span.end).starts_with(comma));
        let cut = match (comma, alone) {
            (Some(comma), _) => span.start..span.end + comma.len(),
            (None, Some(key)) => {
                let line = behind(key.end).split_inclusive('\n').next().unwrap_or_default();
                if line.trim().is_empty() {
                    let start = settings.get(..key.start).and_then(|before| before.rfind('\n'));
                    start.map_or(behind_mark(settings), |start| start + 1)..key.end + line.len()
                } else {
                    // A comment after it is somebody else's.
                    key
                }
            }
            (None, None) => return Err(strange()),
        };
        let left = [settings.get(..cut.start), settings.get(cut.end..)]
            .map(Option::unwrap_or_default)
            .concat();
        let is_made = !script.ends_with(KEPT);
        Ok((!left.is_empty() || !is_made).then(|| left.into_bytes()))
    }

    fn is_altered(&self, settings: &[u8]) -> bool {
        let altered = text(settings).and_then(altered);
        altered.is_ok_and(|altered| !altered.is_empty())
    }

    fn programs(&self, settings: &[u8]) -> Vec<String> {
        let words = text(settings).and_then(calling);
        words.unwrap_or_default().iter().filter_map(|word| program(word)).collect()
    }
}

/// Returns the words that call the program.
fn calling(settings: &str) -> Result<Vec<String>, Invalid> {
    let Some(Words { items, .. }) = words_of(settings)? else { return Ok(Vec::new()) };
    let called = format!(" hook {AGENT}");
    let words = items.iter().filter_map(|item| item.get_ref().as_str());
    Ok(words.filter(|word| word.contains(&called)).map(str::to_owned).collect())
}

/// Returns the words that call the program but are not as undertext wrote them.
fn altered(settings: &str) -> Result<Vec<String>, Invalid> {
    let made = find(settings)?.map(|found| found.script);
    let mut words = calling(settings)?;
    words.retain(|word| made.as_deref() != Some(word));
    Ok(words)
}

/// The call in the settings.
struct Found {
    script: String,
    /// The span of its words.
    span: Range<usize>,
    /// The span of the key with its whole value, if it contains no other words.
    alone: Option<Range<usize>>,
}

/// Finds the call as undertext wrote it, whichever program it names.
fn find(settings: &str) -> Result<Option<Found>, Invalid> {
    let Some(Words { items, span: list, key }) = words_of(settings)? else { return Ok(None) };
    let word = |n: usize| match items.get(n)?.get_ref() {
        DeValue::String(word) => Some(word.as_ref()),
        _ => None,
    };
    let script = word(2).filter(|script| {
        let behind = script.strip_prefix(LAST).and_then(|it| behind_call(it, AGENT, TOLD));
        behind.is_some_and(|end| end.strip_suffix(KEPT).unwrap_or(end) == BEFORE)
            && [word(0), word(1)] == SHELL.map(Some)
            && word(3) == Some(NAME)
    });
    let Some((script, (first, last))) = script.zip(items.first().zip(items.get(3))) else {
        return Ok(None);
    };
    let span = first.span().start..last.span().end;
    let alone = (items.len() == 4).then_some(key..list.end);
    Ok(Some(Found { script: script.to_owned(), span, alone }))
}

/// The words of the key.
struct Words<'a> {
    items: Vec<Spanned<DeValue<'a>>>,
    /// Their span, brackets included.
    span: Range<usize>,
    /// The offset of the key.
    key: usize,
}

/// Returns the words of the key; None if it is missing.
fn words_of(settings: &str) -> Result<Option<Words<'_>>, Invalid> {
    let invalid = |error: &toml::de::Error| Invalid(format!("it is not TOML: {}", error.message()));
    let table = DeTable::parse(settings).map_err(|error| invalid(&error))?.into_inner();
    let found = table.into_iter().find(|(key, _)| key.get_ref().as_ref() == KEY);
    let Some((key, value)) = found else { return Ok(None) };
    let (span, key) = (value.span(), key.span().start);
    match value.into_inner() {
        DeValue::Array(items) => Ok(Some(Words { items: items.into_iter().collect(), span, key })),
        _ => Err(Invalid(format!("{KEY:?} in it is not a list of strings"))),
    }
}

/// Returns the offset of the text after its byte order mark.
fn behind_mark(settings: &str) -> usize {
    settings.len() - settings.trim_start_matches('\u{feff}').len()
}

fn text(settings: &[u8]) -> Result<&str, Invalid> {
    str::from_utf8(settings).map_err(|_| Invalid("it is not text".to_owned()))
}

fn strange() -> Invalid {
    Invalid("its layout cannot be edited in place".to_owned())
}
