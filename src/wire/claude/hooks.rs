//! The hooks of Claude Code: a group of our own for each event in the user's settings, with one line for a shell.
//!
//! ```text
//! {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "p='/bin/undertext'; ..; :", "timeout": 10}]}], ..}}
//! ```
//!
//! A container that is empty once the line is out of it was made for it and goes too, unless the line ends with a comment
//! that names it: that one was there before, and empty.
//!
//! A line to which somebody added something is theirs: it is left as it is, and counts as a call if it makes this one.
//! So does a group that got more fields, such as a matcher, without our line in it.

use serde::de::IgnoredAny;
use serde_json::json;

use crate::{
    json::{self, Kind, Raw},
    wire::{
        Invalid,
        hooks::{behind_call, calls, program},
    },
};

/// The events: a session begins or goes on, an answer ends, a compaction begins, a session ends. The last one is not sent
/// where the program is killed.
const EVENTS: [&str; 4] = ["SessionStart", "Stop", "PreCompact", "SessionEnd"];
/// After how many seconds the program gives up on the line; it ends a session's end after 1.5 unless told.
const SECONDS: u64 = 10;
/// How a line ends.
pub(super) const END: &str = ":";
/// How a line goes on that names the containers which were there before.
const KEPT: &str = " # keeps";
/// The name of the whole file among them, of one that held an object and of one that held nothing.
const FILE: &str = "file";
const BLANK: &str = "blank";
/// The field that holds the events.
const FIELD: &str = "hooks";

/// Puts a line into the settings.
pub(super) fn put(settings: Option<&[u8]>, agent: &str, line: &str) -> Result<Vec<u8>, Invalid> {
    let rest = settings.map(|settings| take(settings, agent)).transpose()?.flatten();
    if let Some(settings) = settings.filter(|settings| holds(settings, agent, line)) {
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
    let kept = if kept.is_empty() { String::new() } else { format!("{KEPT} {}", kept.join(" ")) };
    let handler =
        json!({ "type": "command", "command": format!("{line}{kept}"), "timeout": SECONDS });
    let group = json!({ FIELD: [handler] }).to_string();
    for event in EVENTS {
        let groups = object(&text)?.get(FIELD).and_then(|hooks| hooks.get(event));
        if groups.is_some_and(|groups| alters(groups, agent, line)) {
            continue;
        }
        text = with_field(&text, object(&text)?, FIELD, Kind::Object)?;
        text = with_field(&text, hooks(&text)?, event, Kind::Array)?;
        let groups = hooks(&text)?.get(event).ok_or_else(strange)?;
        text = json::with_item(&text, groups, &group).ok_or_else(strange)?;
    }
    Ok(text)
}

/// Takes every line that was put in out of the settings; None if nothing is left of settings that were made for it.
pub(super) fn take(settings: &[u8], agent: &str) -> Result<Option<Vec<u8>>, Invalid> {
    if is_blank(settings) {
        return Ok(Some(settings.to_vec()));
    }
    let mut text = settings.to_vec();
    let mut kept: Vec<String> = Vec::new();
    while let Some(found) = find(object(&text)?, agent) {
        kept.extend(found.kept.iter().cloned());
        let is_kept = |name: &str| kept.iter().any(|kept| kept == name);
        let Found { hooks: (hooks_at, hooks), event: (event_at, event, groups), .. } = &found;
        let Found { group: (group_at, group, handlers), handler, .. } = &found;
        // The outermost container that holds nothing else goes as a whole.
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

/// Returns what in the settings switches all hooks off.
pub(super) fn hindrance(settings: &[u8]) -> Option<&'static str> {
    const OFF: &str = "disableAllHooks";
    let off = object(settings).ok().and_then(|all| all.get(OFF)?.bool());
    (off == Some(true)).then_some(OFF)
}

/// Returns whether there is a line that calls the program and to which somebody added something.
pub(super) fn is_altered(settings: &[u8], agent: &str) -> bool {
    let hooks = object(settings).ok().and_then(|all| all.get(FIELD));
    let mut events = hooks.into_iter().flat_map(Raw::fields);
    events.any(|(_, groups)| alters(groups, agent, ""))
}

/// Returns the programs that the lines call.
pub(super) fn programs(settings: &[u8], agent: &str) -> Vec<String> {
    let hooks = object(settings).ok().and_then(|all| all.get(FIELD));
    let lines =
        hooks.into_iter().flat_map(Raw::fields).flat_map(|(_, groups)| lines(groups, agent));
    lines.filter_map(|(line, _)| program(&line)).collect()
}

/// A line that was put in, and each container around it with its number in the next one.
struct Found<'a> {
    hooks: (usize, Raw<'a>),
    event: (usize, String, Raw<'a>),
    group: (usize, Raw<'a>, Raw<'a>),
    handler: usize,
    kept: Vec<String>,
}

/// Finds the first line that was put in.
fn find<'a>(settings: Raw<'a>, agent: &str) -> Option<Found<'a>> {
    let hooks = field(settings, FIELD)?;
    for (event_at, (event, groups)) in hooks.1.fields().enumerate() {
        for (group_at, group) in groups.items().enumerate() {
            let Some(handlers) = group.get(FIELD) else { continue };
            for (handler, said) in handlers.items().enumerate() {
                let line = said.get("command").and_then(Raw::text).unwrap_or_default();
                if let Some(kept) = kept(&line, agent) {
                    let event = (event_at, String::from_utf8_lossy(event).into_owned(), groups);
                    let group = (group_at, group, handlers);
                    return Some(Found { hooks, event, group, handler, kept });
                }
            }
        }
    }
    None
}

/// Returns which containers a line names that were there before, if nobody added anything to it.
fn kept(line: &str, agent: &str) -> Option<Vec<String>> {
    let end = behind_call(line, agent, "")?.strip_prefix(END)?;
    let words = if end.is_empty() { end } else { end.strip_prefix(KEPT)? };
    let is_name = |word: &str| [FILE, BLANK, FIELD].contains(&word) || EVENTS.contains(&word);
    let words = words.split_whitespace();
    words.map(|word| is_name(word).then(|| word.to_owned())).collect()
}

/// Returns the lines that call the program, each with whether it is as it was put in.
fn lines(groups: Raw<'_>, agent: &str) -> Vec<(String, bool)> {
    let handlers = groups.items().filter_map(|group| group.get(FIELD)).flat_map(Raw::items);
    let lines = handlers.filter_map(|said| said.get("command").and_then(Raw::text));
    let lines = lines.filter(|line| calls(line, agent));
    lines.map(|line| (line.clone().into_owned(), kept(&line, agent).is_some())).collect()
}

/// Returns whether a line that begins so is one to which somebody added something.
fn alters(groups: Raw<'_>, agent: &str, line: &str) -> bool {
    lines(groups, agent).iter().any(|(found, is_made)| !is_made && found.starts_with(line))
}

/// Returns whether the settings call the program by this line once at each event, and by no other that was put in.
fn holds(settings: &[u8], agent: &str, line: &str) -> bool {
    let Some(hooks) = object(settings).ok().and_then(|all| all.get(FIELD)) else { return false };
    let made = |groups: Raw<'_>, line: &str| {
        let lines = lines(groups, agent);
        lines.iter().filter(|(found, is_made)| *is_made && found.starts_with(line)).count()
    };
    let at = |event: &str| hooks.get(event).map(|groups| (made(groups, line), groups));
    let own: usize = EVENTS.iter().filter_map(|event| at(event)).map(|(own, _)| own).sum();
    let all: usize = hooks.fields().map(|(_, groups)| made(groups, "")).sum();
    let once = |(own, groups)| own + usize::from(alters(groups, agent, line)) == 1;
    all == own && EVENTS.iter().all(|event| at(event).is_some_and(once))
}

/// Returns a field of an object that counts, with its number.
fn field<'a>(object: Raw<'a>, name: &str) -> Option<(usize, Raw<'a>)> {
    let named = |(n, (key, value)): (usize, (&[u8], Raw<'a>))| {
        (key == name.as_bytes()).then_some((n, value))
    };
    object.fields().enumerate().filter_map(named).last()
}

/// Adds an empty field unless it is there, as what it must be.
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

/// Returns the settings as an object.
fn object(text: &[u8]) -> Result<Raw<'_>, Invalid> {
    Raw::object(text.trim_ascii()).ok_or_else(|| {
        let fails = serde_json::from_slice::<IgnoredAny>(text).err();
        let place =
            fails.map(|at| format!(": it fails at line {}, column {}", at.line(), at.column()));
        Invalid(format!("it is not a JSON object{}", place.unwrap_or_default()))
    })
}

/// Returns whether settings hold nothing, which represents an object without fields.
fn is_blank(settings: &[u8]) -> bool {
    settings.iter().all(|byte| b" \t\r\n".contains(byte))
}

fn hooks(text: &[u8]) -> Result<Raw<'_>, Invalid> {
    object(text)?.get(FIELD).ok_or_else(strange)
}

/// Returns the error of settings that do not hold what was put into them, such as a field whose name is spelt by escapes.
fn strange() -> Invalid {
    Invalid("its layout cannot be edited in place".to_owned())
}
