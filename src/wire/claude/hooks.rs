//! Claude Code's hooks: for each event, a group of our own in the user's settings, with one shell command.
//!
//! ```text
//! {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "p='/bin/undertext'; ..; :", "timeout": 10}]}], ..}}
//! ```
//!
//! A container that is empty after removing the line was made for it and is removed too, unless the line ends with a comment
//! that names the container: that one already existed and was empty.
//!
//! A line that somebody extended is theirs: it is never changed, and counts as a call if it makes this one.
//! A group to which somebody added fields, such as a matcher, stays too, but without our line.

use serde::de::IgnoredAny;
use serde_json::json;

use crate::{
    json::{self, Kind, Raw},
    wire::{
        Call, Hooks, Invalid,
        hooks::{behind_call, calls, program},
    },
};

/// The name under which the lines call the program.
const AGENT: &str = super::TRAITS.name;
/// The events: a session starts or resumes, an answer ends, a compaction starts, a session ends. The last one is not sent if the
/// program is killed.
const EVENTS: [&str; 4] = ["SessionStart", "Stop", "PreCompact", "SessionEnd"];
/// After how many seconds the program stops waiting for the line. At the end of a session it waits only 1.5 unless set
/// otherwise.
const SECONDS: u64 = 10;
/// The end of a line.
const END: &str = ":";
/// The end of a line that names the containers which already existed.
const KEPT: &str = " # keeps";
/// The name of the whole file in that list, if it contained an empty object, and if it was empty.
const FILE: &str = "file";
const BLANK: &str = "blank";
/// The field with the events.
const FIELD: &str = "hooks";

/// The hooks in the settings.
#[derive(Debug)]
pub(super) struct ClaudeHooks;

impl Hooks for ClaudeHooks {
    fn file(&self) -> &'static str {
        "settings.json"
    }

    fn hooked(&self, settings: Option<&[u8]>, call: &Call) -> Result<Vec<u8>, Invalid> {
        let line = &format!("{}{END}", call.script(AGENT, ""));
        let rest = settings.map(|settings| self.unhooked(settings)).transpose()?.flatten();
        if let Some(settings) = settings.filter(|settings| holds(settings, line)) {
            return Ok(settings.to_vec());
        }
        let mut kept = Vec::new();
        let mut text = match rest {
            None => b"{}\n".to_vec(),
            Some(blank) if is_blank(&blank) => {
                kept.push(BLANK);
                [blank.as_slice(), b"{}"].concat()
            }
            Some(rest) => {
                kept.extend(object(&rest)?.fields().next().is_none().then_some(FILE));
                rest
            }
        };
        if let Some(hooks) = object(&text)?.get(FIELD) {
            let is_empty =
                |value: Raw<'_>| value.fields().next().is_none() && value.items().next().is_none();
            kept.extend(is_empty(hooks).then_some(FIELD));
            kept.extend(EVENTS.into_iter().filter(|event| hooks.get(event).is_some_and(is_empty)));
        }
        let kept =
            if kept.is_empty() { String::new() } else { format!("{KEPT} {}", kept.join(" ")) };
        let handler =
            json!({ "type": "command", "command": format!("{line}{kept}"), "timeout": SECONDS });
        let group = json!({ FIELD: [handler] }).to_string();
        for event in EVENTS {
            let groups = object(&text)?.get(FIELD).and_then(|hooks| hooks.get(event));
            if groups.is_some_and(|groups| alters(groups, line)) {
                continue;
            }
            text = with_field(&text, object(&text)?, FIELD, Kind::Object)?;
            text = with_field(&text, hooks(&text)?, event, Kind::Array)?;
            let groups = hooks(&text)?.get(event).ok_or_else(strange)?;
            text = json::with_item(&text, groups, &group).ok_or_else(strange)?;
        }
        Ok(text)
    }

    fn unhooked(&self, settings: &[u8]) -> Result<Option<Vec<u8>>, Invalid> {
        if is_blank(settings) {
            return Ok(Some(settings.to_vec()));
        }
        let mut text = settings.to_vec();
        let mut kept: Vec<String> = Vec::new();
        while let Some(found) = find(object(&text)?) {
            kept.extend(found.kept.iter().cloned());
            let is_kept = |name: &str| kept.iter().any(|kept| kept == name);
            let Found { hooks: (hooks_at, hooks), event: (event_at, event, groups), .. } = &found;
            let Found { group: (group_at, group, handlers), handler, .. } = &found;
            // Remove the outermost container that contains nothing else.
            let (within, n) = if handlers.items().count() > 1 || group.fields().count() > 1 {
                (*handlers, *handler)
            } else if groups.items().count() > 1 || is_kept(event) {
                (*groups, *group_at)
            } else if hooks.fields().count() > 1 || is_kept(FIELD) {
                (*hooks, *event_at)
            } else {
                (object(&text)?, *hooks_at)
            };
            text = json::without_item(&text, within, n).ok_or_else(strange)?;
        }
        let is_kept = |name: &str| kept.iter().any(|kept| kept == name);
        let is_empty = text != settings && object(&text)?.fields().next().is_none();
        if is_empty && is_kept(BLANK) {
            let (lead, rest) = text.split_at(text.len() - text.trim_ascii_start().len());
            let tail = rest.get(rest.trim_ascii_end().len()..).unwrap_or_default();
            return Ok(Some([lead, tail].concat()));
        }
        Ok((!is_empty || is_kept(FILE)).then_some(text))
    }

    fn hindrance(&self, settings: &[u8]) -> Option<&'static str> {
        const OFF: &str = "disableAllHooks";
        let off = object(settings).ok().and_then(|all| all.get(OFF)?.bool());
        (off == Some(true)).then_some(OFF)
    }

    fn is_altered(&self, settings: &[u8]) -> bool {
        let hooks = object(settings).ok().and_then(|all| all.get(FIELD));
        let mut events = hooks.into_iter().flat_map(Raw::fields);
        events.any(|(_, groups)| alters(groups, ""))
    }

    fn programs(&self, settings: &[u8]) -> Vec<String> {
        let hooks = object(settings).ok().and_then(|all| all.get(FIELD));
        let lines = hooks.into_iter().flat_map(Raw::fields).flat_map(|(_, groups)| lines(groups));
        lines.filter_map(|(line, _)| program(&line)).collect()
    }
}

/// A line of ours, and each container around it with its index in the next outer one.
struct Found<'a> {
    hooks: (usize, Raw<'a>),
    event: (usize, String, Raw<'a>),
    group: (usize, Raw<'a>, Raw<'a>),
    handler: usize,
    kept: Vec<String>,
}

/// Finds the first line of ours.
fn find(settings: Raw<'_>) -> Option<Found<'_>> {
    let hooks = field(settings, FIELD)?;
    for (event_at, (event, groups)) in hooks.1.fields().enumerate() {
        for (group_at, group) in groups.items().enumerate() {
            let Some(handlers) = group.get(FIELD) else { continue };
            for (handler, said) in handlers.items().enumerate() {
                let line = said.get("command").and_then(Raw::text).unwrap_or_default();
                if let Some(kept) = kept(&line) {
                    let event = (event_at, String::from_utf8_lossy(event).into_owned(), groups);
                    let group = (group_at, group, handlers);
                    return Some(Found { hooks, event, group, handler, kept });
                }
            }
        }
    }
    None
}

/// Returns the containers that a line names as already existing; None if somebody extended the line.
fn kept(line: &str) -> Option<Vec<String>> {
    let end = behind_call(line, AGENT, "")?.strip_prefix(END)?;
    let words = if end.is_empty() { end } else { end.strip_prefix(KEPT)? };
    let is_name = |word: &str| [FILE, BLANK, FIELD].contains(&word) || EVENTS.contains(&word);
    let words = words.split_whitespace();
    words.map(|word| is_name(word).then(|| word.to_owned())).collect()
}

/// Returns the lines that call the program, each with whether it is unchanged.
fn lines(groups: Raw<'_>) -> Vec<(String, bool)> {
    let handlers = groups.items().filter_map(|group| group.get(FIELD)).flat_map(Raw::items);
    let lines = handlers.filter_map(|said| said.get("command").and_then(Raw::text));
    let lines = lines.filter(|line| calls(line, AGENT));
    lines.map(|line| (line.clone().into_owned(), kept(&line).is_some())).collect()
}

/// Returns true if somebody extended this line.
fn alters(groups: Raw<'_>, line: &str) -> bool {
    lines(groups).iter().any(|(found, is_made)| !is_made && found.starts_with(line))
}

/// Returns true if the settings contain this line once for each event, and no other line of ours.
fn holds(settings: &[u8], line: &str) -> bool {
    let Some(hooks) = object(settings).ok().and_then(|all| all.get(FIELD)) else { return false };
    let made = |groups: Raw<'_>, line: &str| {
        let lines = lines(groups);
        lines.iter().filter(|(found, is_made)| *is_made && found.starts_with(line)).count()
    };
    let at = |event: &str| hooks.get(event).map(|groups| (made(groups, line), groups));
    let own: usize = EVENTS.iter().filter_map(|event| at(event)).map(|(own, _)| own).sum();
    let all: usize = hooks.fields().map(|(_, groups)| made(groups, "")).sum();
    let once = |(own, groups)| own + usize::from(alters(groups, line)) == 1;
    all == own && EVENTS.iter().all(|event| at(event).is_some_and(once))
}

/// Returns the effective field of this name in an object, with its index.
fn field<'a>(object: Raw<'a>, name: &str) -> Option<(usize, Raw<'a>)> {
    let named = |(n, (key, value)): (usize, (&[u8], Raw<'a>))| {
        (key == name.as_bytes()).then_some((n, value))
    };
    object.fields().enumerate().filter_map(named).last()
}

/// Adds an empty field unless it exists. Fails if the existing one is of another kind.
fn with_field(text: &[u8], within: Raw<'_>, name: &str, kind: Kind) -> Result<Vec<u8>, Invalid> {
    let (empty, what) = match kind {
        Kind::Array => ("[]", "list"),
        _ => ("{}", "section"),
    };
    match within.get(name) {
        Some(value) if value.kind() == kind => Ok(text.to_vec()),
        Some(_) => Err(Invalid(format!("{name:?} in it is not a {what}"))),
        None => {
            let item = format!("{}:{empty}", json::quote(name));
            json::with_item(text, within, &item).ok_or_else(strange)
        }
    }
}

/// Parses the settings as an object.
fn object(text: &[u8]) -> Result<Raw<'_>, Invalid> {
    Raw::object(text.trim_ascii()).ok_or_else(|| {
        let fails = serde_json::from_slice::<IgnoredAny>(text).err();
        let place =
            fails.map(|at| format!(": it fails at line {}, column {}", at.line(), at.column()));
        Invalid(format!("it is not a JSON object{}", place.unwrap_or_default()))
    })
}

/// Returns true if settings are blank, which counts as an empty object.
fn is_blank(settings: &[u8]) -> bool {
    settings.iter().all(|byte| b" \t\r\n".contains(byte))
}

fn hooks(text: &[u8]) -> Result<Raw<'_>, Invalid> {
    object(text)?.get(FIELD).ok_or_else(strange)
}

/// The error for settings in which an added field is not found again, such as one whose name is spelt with escapes.
fn strange() -> Invalid {
    Invalid("its layout cannot be edited in place".to_owned())
}
