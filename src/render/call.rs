//! Tool calls as a person would write them: `$ make test`, an edit as a diff, a file by its name.
//!
//! A call is recognised by the shape of its arguments, because agents give the same tool many names: an old and a new text are an
//! edit, a text with a path is a written file, a `command` is run by a shell. Any other tool shows its name and short arguments.
//!
//! ```text
//! {"command":["bash","-lc","make"]}                   $ make
//! {"file_path":"a.rs","old_string":..,"new_string":..} Edit a.rs        and the diff
//! {"path":"a.txt","content":..}                       write a.txt, 12 lines
//! {"pattern":"fn main","path":"src"}                  Grep fn main in src
//! ```

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};
use undertext::model::shell_line;

use super::diff;
use super::fields::fields;
use super::style::Label;

/// Arguments that name a file or a folder.
const PATHS: [&str; 12] = [
    "file_path",
    "filePath",
    "path",
    "notebook_path",
    "absolute_path",
    "target_file",
    "filename",
    "file",
    "dir_path",
    "directory",
    "folder",
    "cwd",
];
/// Arguments with the whole text of a file.
const CONTENTS: [&str; 6] =
    ["content", "contents", "file_text", "new_source", "fileText", "code_edit"];
/// Arguments of an edit: the old and the new text.
const PAIRS: [(&str, &str); 6] = [
    ("old_string", "new_string"),
    ("oldString", "newString"),
    ("old_str", "new_str"),
    ("oldText", "newText"),
    ("old_text", "new_text"),
    ("old", "new"),
];
/// Arguments with several edits.
const EDITS: [&str; 3] = ["edits", "edit", "changes"];
/// Arguments that a shell runs.
const COMMANDS: [&str; 2] = ["command", "cmd"];
/// Arguments with a search pattern.
const PATTERNS: [&str; 4] = ["pattern", "regex", "query", "q"];
/// Arguments that describe any other call in a person's words, shortest first.
const WORDS: [&str; 13] = [
    "url",
    "urls",
    "description",
    "title",
    "subject",
    "skill",
    "name",
    "question",
    "questions",
    "message",
    "prompt",
    "plan",
    "thought",
];
/// Arguments with the first line, the number of lines, and the last line.
const FROM: [&str; 4] = ["offset", "line_offset", "start_line", "startLine"];
const MANY: [&str; 3] = ["limit", "n_lines", "line_count"];
const TO: [&str; 2] = ["end_line", "endLine"];
/// Keys for the text of a plan's step.
const STEPS: [&str; 5] = ["content", "step", "title", "text", "subject"];
/// Maximum length of an argument shown next to others, in characters.
const SHORT: usize = 40;
/// Number of context lines around a change.
const AROUND: usize = 1;
/// More lines than any text has.
const ALL: usize = 1 << 32;
/// Maximum length of a title that is searched for an argument, in bytes.
const TITLE: usize = 1 << 12;
/// The first line of a patch.
const PATCH: &str = "*** Begin Patch";

/// A formatted call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// What the call does. A command is shown whole, so the title may have several lines.
    pub(crate) title: String,
    /// The lines under the title: a diff, or the steps of a plan.
    pub(crate) body: Vec<(Label, String)>,
    /// How much of the answer is worth showing.
    pub(crate) answer: Worth,
}

/// How much of a tool's answer a reader wants to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Worth {
    /// Its beginning, and its end, where a command reports its outcome.
    Ends,
    /// Its beginning.
    #[default]
    Beginning,
    /// Only that it succeeded; the call shows the rest.
    Success,
}

/// How calls of a tool are said.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    /// The name of the tool.
    pub(crate) name: &'a str,
    /// The folder of the session: paths in it are shown from there.
    pub(crate) folder: Option<&'a str>,
    /// Whether every argument is shown.
    pub(crate) whole: bool,
}

impl Said {
    fn titled(title: String) -> Self {
        Self { title, ..Self::default() }
    }

    fn command(command: &str) -> Self {
        Self { answer: Worth::Ends, ..Self::titled(format!("$ {}", command.trim())) }
    }

    fn change(title: String, body: Vec<(Label, String)>) -> Self {
        Self { title, body, answer: Worth::Success }
    }

    /// Returns what the formatted call omits: its tool's name, and the arguments with a missing line.
    pub(crate) fn unsaid(&self, name: &str, input: &str) -> Vec<String> {
        let mut said: BTreeSet<&str> = BTreeSet::new();
        for line in self.title.lines() {
            said.extend([line.trim(), line.strip_prefix("$ ").unwrap_or(line).trim()]);
        }
        for (_, line) in &self.body {
            said.insert(line.trim());
            // Also without a diff's sign, and without an argument's name.
            let behind = line.get(1..).into_iter().chain(line.split_once(": ").map(|(_, at)| at));
            said.extend(behind.map(str::trim));
        }
        let is_in_title =
            |text: &str| self.title.len() <= TITLE && self.title.contains(text.trim());
        let is_said = |text: &str| {
            // The markers of a patch have no content.
            let is_frame = |line: &str| line.is_empty() || line == "@@" || line.starts_with("*** ");
            let mut lines = text.lines().map(str::trim).filter(|line| !is_frame(line));
            is_in_title(text) || lines.all(|line| said.contains(line))
        };
        let name = (!is_in_title(name)).then(|| format!("tool: {name}"));
        let rest = fields(input).into_iter().filter(|field| !is_said(&field.text));
        name.into_iter().chain(rest.map(|field| field.to_string())).collect()
    }
}

impl Caller<'_> {
    /// Says a call.
    pub(crate) fn say(self, input: &str) -> Said {
        match serde_json::from_str(input) {
            Ok(Value::Object(given)) => self.object(&given),
            Ok(Value::String(text)) => match serde_json::from_str(&text) {
                Ok(Value::Object(given)) => self.object(&given),
                _ => self.text(&text),
            },
            Ok(Value::Null) => Said::titled(self.name.to_owned()),
            Ok(other) => Said::titled(format!("{} {other}", self.name)),
            Err(_) => self.text(input),
        }
    }

    fn object(self, given: &Map<String, Value>) -> Said {
        let path = first(given, &PATHS);
        if let Some((_, path)) = &path {
            let edits = edits(given);
            if !edits.is_empty() {
                let title = format!("{} {}", self.name, self.homely(path));
                return Said::change(title, differences(&edits, self.whole));
            }
            if let Some(text) = CONTENTS.iter().find_map(|key| given.get(*key)?.as_str()) {
                return self.file(path, text);
            }
            if let Some(diff) = ["diff", "patch"].iter().find_map(|key| given.get(*key)?.as_str()) {
                let title = format!("{} {}", self.name, self.homely(path));
                return Said::change(title, marked(diff));
            }
        }
        if let Some(patch) = given.values().flat_map(strings).find_map(patch_in) {
            return self.patch(patch);
        }
        if let Some(steps) = given.values().find_map(steps) {
            return Said::change(self.name.to_owned(), steps);
        }
        let command = COMMANDS.iter().find_map(|key| command(given.get(*key)?));
        if let Some(command) =
            command.filter(|_| path.as_ref().is_none_or(|(key, _)| is_where(key)))
        {
            let ends = if given.get("run_in_background").and_then(Value::as_bool) == Some(true) {
                " &"
            } else {
                ""
            };
            return Said::command(&format!("{}{ends}", command.trim()));
        }
        self.other(given, path.as_ref())
    }

    /// Formats a call whose arguments are a text.
    fn text(self, text: &str) -> Said {
        if let Some(patch) = patch_in(text) {
            return self.patch(patch);
        }
        let steps = scripted(text);
        if !steps.is_empty() {
            return Said { answer: Worth::Ends, ..Said::titled(steps.join("\n")) };
        }
        let title = format!("{} {}", self.name, text.trim());
        Said::titled(title.trim_end().to_owned())
    }

    fn file(self, path: &str, text: &str) -> Said {
        let lines = text.lines().count();
        let plural = if lines == 1 { "" } else { "s" };
        let title = format!("{} {}, {lines} line{plural}", self.name, self.homely(path));
        let whole = text.lines().filter(|_| self.whole);
        let body = whole.map(|line| (Label::Added, format!("+{line}"))).collect();
        Said::change(title, body)
    }

    /// Formats a patch by its files, with the changed lines.
    fn patch(self, patch: &str) -> Said {
        let patch = patch.lines().skip(1).take_while(|line| !line.starts_with("*** End Patch"));
        let mut files: Vec<String> = Vec::new();
        let mut body: Vec<(Label, String)> = Vec::new();
        let mut added = None;
        for line in patch {
            if let Some((what, file)) = line.strip_prefix("*** ").and_then(|at| at.split_once(": "))
            {
                let verb = what.split(' ').next().unwrap_or_default().to_lowercase();
                let file = format!("{verb} {}", self.homely(file.trim()));
                added = (verb == "add" && !self.whole).then(|| (file.clone(), 0_usize));
                body.push((Label::Hint, file.clone()));
                files.push(file);
            } else if let (Some((name, lines)), Some(file)) = (&mut added, files.last_mut()) {
                // For a new file, only the length is shown.
                *lines += 1;
                *file = format!("{name}, {lines} line{}", if *lines == 1 { "" } else { "s" });
                body.pop();
                body.push((Label::Hint, file.clone()));
            } else if !line.starts_with("***") && line != "@@" {
                body.push((diff::mark(line), line.to_owned()));
            }
        }
        // The title already names a single file.
        if files.len() == 1 {
            body.remove(0);
        }
        let name = if self.name.contains("patch") { self.name } else { "apply_patch" };
        let title = format!("{name} {}", files.join(", "));
        Said::change(title.trim_end().to_owned(), body)
    }

    /// Formats any other call: its name, its subject and its short arguments.
    fn other(self, given: &Map<String, Value>, path: Option<&(&str, String)>) -> Said {
        let pattern = first(given, &PATTERNS);
        let words = || first(given, &WORDS);
        let (used, subject) = match (&pattern, path) {
            (Some((key, pattern)), None) => (vec![*key], pattern.clone()),
            (Some((key, pattern)), Some((at, path))) => {
                (vec![*key, *at], format!("{pattern} in {}", self.homely(path)))
            }
            (None, Some((at, path))) => {
                (vec![*at], format!("{}{}", self.homely(path), range(given).unwrap_or_default()))
            }
            (None, None) => match words() {
                Some((key, words)) => (vec![key], words),
                None => (Vec::new(), String::new()),
            },
        };
        let is_range = |key: &str| {
            path.is_some()
                && ([&FROM[..], &MANY, &TO].concat().contains(&key) || key == "view_range")
        };
        let rest = given.iter().filter(|(key, _)| !used.contains(&key.as_str()));
        let rest = rest.filter(|(key, value)| !is_range(key) && !value.is_null());
        if self.whole {
            let lines = |(key, value): (&String, &Value)| match value {
                Value::String(text) if text.contains('\n') => format!("{key}:\n{text}"),
                Value::String(text) => format!("{key}: {text}"),
                other => format!("{key}: {other}"),
            };
            // A subject with several lines moves to the body.
            let (subject, text) = if subject.contains('\n') {
                (String::new(), Some(subject))
            } else {
                (subject, None)
            };
            let body: Vec<String> = text.into_iter().chain(rest.map(lines)).collect();
            let body = body.iter().flat_map(|text| text.lines());
            let body = body.map(|line| (Label::Plain, line.to_owned())).collect();
            let title = format!("{} {subject}", self.name).trim_end().to_owned();
            return Said { title, body, answer: Worth::Beginning };
        }
        let mut title = format!("{} {}", self.name, line(&subject)).trim_end().to_owned();
        for (key, value) in rest {
            write!(title, "  {key}={}", short(value)).expect("a string takes all that is written");
        }
        Said::titled(title)
    }

    /// Returns a path relative to the session's folder.
    fn homely(self, path: &str) -> &str {
        let below = self.folder.and_then(|folder| path.strip_prefix(folder)?.strip_prefix('/'));
        below.filter(|below| !below.is_empty()).unwrap_or(path)
    }
}

/// What a call is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject<'a> {
    /// A file, by its path.
    File(&'a str),
    /// A command line.
    Command(&'a str),
}

/// Returns true if this is the name of an argument with a path.
pub(crate) fn is_path(key: &str) -> bool {
    PATHS.contains(&key)
}

/// Returns true if this is the name of an argument that a shell runs.
pub(crate) fn is_command(key: &str) -> bool {
    COMMANDS.contains(&key)
}

/// Returns true if a call is about something that `is_it` accepts.
pub(crate) fn is_about(input: &str, is_it: &dyn Fn(Subject<'_>) -> bool) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(input) else {
        return files_of_patch(input).any(|path| is_it(Subject::File(path)));
    };
    let Value::Object(given) = &value else {
        let texts = strings(&value);
        return texts.into_iter().flat_map(files_of_patch).any(|path| is_it(Subject::File(path)));
    };
    given.iter().any(|(key, value)| {
        let line = if is_command(key) { command(value) } else { None };
        let is_file = |path: &str| is_path(key) && is_it(Subject::File(path));
        line.is_some_and(|line| is_it(Subject::Command(&line)))
            || strings(value).into_iter().any(|text| {
                is_file(text) || files_of_patch(text).any(|path| is_it(Subject::File(path)))
            })
    })
}

/// Returns the files that a call changes, with the numbers of added and removed lines.
pub(crate) fn changes(name: &str, input: &str) -> Vec<(String, [usize; 2])> {
    let mut files: Vec<_> = changed_files(input).into_iter().map(|path| (path, [0, 0])).collect();
    // The lines of several files are below their names.
    let mut at = if files.len() > 1 { None } else { Some(0) };
    for (label, line) in (Caller { name, folder: None, whole: true }).say(input).body {
        let side = match label {
            Label::Added => 0,
            Label::Removed => 1,
            Label::Hint if files.len() > 1 && !line.starts_with('@') => {
                at = Some(at.map_or(0, |at| at + 1));
                continue;
            }
            _ => continue,
        };
        if let Some((_, lines)) = at.and_then(|at| files.get_mut(at)) {
            lines[side] += 1;
        }
    }
    files
}

/// Returns the files that a call changes.
fn changed_files(input: &str) -> Vec<String> {
    let mut files = Vec::new();
    let value = serde_json::from_str(input).unwrap_or_else(|_| Value::String(input.to_owned()));
    match &value {
        Value::Object(given) => {
            files.extend(first(given, &PATHS).map(|(_, path)| path));
            if files.is_empty() {
                let texts = given.values().flat_map(strings);
                files.extend(texts.flat_map(files_of_patch).map(str::to_owned));
            }
        }
        Value::String(text) => files.extend(files_of_patch(text).map(str::to_owned)),
        _ => {}
    }
    files
}

/// Returns the files that a patch names, if a text has one.
fn files_of_patch(text: &str) -> impl Iterator<Item = &str> {
    patch_in(text).into_iter().flat_map(str::lines).filter_map(|line| {
        let (what, file) = line.strip_prefix("*** ")?.split_once(": ")?;
        what.ends_with("File").then(|| file.trim())
    })
}

/// Returns true if an argument says where a command runs, rather than which file it works on.
fn is_where(key: &str) -> bool {
    matches!(key, "dir_path" | "directory" | "folder" | "cwd")
}

/// Returns the first of these arguments with any text, and its name.
fn first(given: &Map<String, Value>, keys: &[&'static str]) -> Option<(&'static str, String)> {
    keys.iter().find_map(|key| {
        let text = given.get(*key).and_then(telling)?;
        (!text.trim().is_empty()).then_some((*key, text))
    })
}

/// Returns an argument's text, or the first text in a list or an object.
fn telling(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => items.first().and_then(telling),
        Value::Object(fields) => first(fields, &WORDS).map(|(_, text)| text),
        _ => None,
    }
}

/// Returns the patch in a text: the whole text, or the input of a command that applies patches.
fn patch_in(text: &str) -> Option<&str> {
    let (before, patch) = text.split_at(text.find(PATCH)?);
    let is_given = before.contains("apply_patch") && patch.lines().next() == Some(PATCH);
    (before.trim().is_empty() || is_given).then_some(patch)
}

/// Returns the texts of an argument, one by one if it is a list.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Returns a command line; for a shell call, the line that the shell runs.
fn command(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(_) => shell_line(&strings(value)),
        _ => None,
    }
}

/// Returns the old and new texts of all edits.
fn edits(given: &Map<String, Value>) -> Vec<(&str, &str)> {
    let several = EDITS.iter().find_map(|key| given.get(*key)).map(|edits| match edits {
        Value::Array(edits) => edits.iter().filter_map(Value::as_object).collect(),
        other => other.as_object().into_iter().collect(),
    });
    several.unwrap_or_else(|| vec![given]).into_iter().filter_map(pair).collect()
}

/// Returns the old and the new text of an edit.
fn pair(edit: &Map<String, Value>) -> Option<(&str, &str)> {
    PAIRS.iter().find_map(|(old, new)| {
        let text = |key: &str| edit.get(key).and_then(Value::as_str);
        Some((text(old)?, text(new).unwrap_or_default()))
    })
}

/// Returns the lines that edits change with their context, or all lines.
fn differences(edits: &[(&str, &str)], whole: bool) -> Vec<(Label, String)> {
    let around = if whole { ALL } else { AROUND };
    let mut body = Vec::new();
    for (old, new) in edits {
        if !body.is_empty() {
            body.push((Label::Dim, "⋮".to_owned()));
        }
        body.extend(marked(&diff::unified(old, new, around)));
    }
    body
}

/// Labels the lines of a diff. A mark replaces the header of each hunk after the first.
fn marked(diff: &str) -> Vec<(Label, String)> {
    let mut body = Vec::new();
    for line in diff.lines() {
        if line.starts_with("@@") {
            if !body.is_empty() {
                body.push((Label::Dim, "⋮".to_owned()));
            }
        } else {
            body.push((diff::mark(line), line.to_owned()));
        }
    }
    body
}

/// Returns the steps of a plan with their states, if a list is a plan.
fn steps(value: &Value) -> Option<Vec<(Label, String)>> {
    let steps = value.as_array().filter(|steps| !steps.is_empty())?;
    let step = |step: &Value| {
        let text = STEPS.iter().find_map(|key| step.get(key)?.as_str())?;
        let (label, mark) = match step.get("status")?.as_str()? {
            "completed" | "done" | "cancelled" => (Label::Dim, "[x]"),
            "in_progress" | "in-progress" | "active" => (Label::Plain, "[>]"),
            _ => (Label::Plain, "[ ]"),
        };
        Some((label, format!("{mark} {}", line(text))))
    };
    steps.iter().map(step).collect()
}

/// Returns the commands that a Codex script runs, and the other tools that it uses.
fn scripted(script: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for part in script.split("tools.").skip(1) {
        let Some((tool, rest)) = part.split_once('(') else { continue };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if tool.is_empty() || !tool.chars().all(is_name) {
            continue;
        }
        let argument = COMMANDS.iter().find_map(|key| {
            let at = [format!("\"{key}\":"), format!("{key}:")];
            let (_, value) = at.iter().find_map(|at| rest.split_once(at.as_str()))?;
            let mut values = serde_json::Deserializer::from_str(value.trim_start()).into_iter();
            values.next()?.ok()
        });
        commands.push(if let Some(Value::String(command)) = argument {
            format!("$ {}", command.trim())
        } else {
            let rest = rest.rsplit_once(')').map_or(rest, |(rest, _)| rest);
            format!("{tool} {}", clip(&line(rest)))
        });
    }
    commands
}

/// Returns the range of lines to read, such as `:20-59`.
fn range(given: &Map<String, Value>) -> Option<String> {
    let number = |keys: &[&str]| keys.iter().find_map(|key| given.get(*key)?.as_u64());
    if let Some([from, to]) = given.get("view_range").and_then(Value::as_array).map(Vec::as_slice) {
        return Some(format!(":{from}-{to}"));
    }
    let to = |from: u64| {
        let many = number(&MANY).map(|many| from.max(1).saturating_add(many).saturating_sub(1));
        number(&TO).or(many)
    };
    match number(&FROM) {
        Some(from) => Some(to(from).map_or(format!(":{from}-"), |to| format!(":{from}-{to}"))),
        None => to(1).map(|to| format!(":1-{to}")),
    }
}

/// Returns an argument on one line, cut if it is long.
fn short(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() && !text.contains(' ') => clip(&line(text)),
        other => clip(&line(&other.to_string())),
    }
}

fn clip(text: &str) -> String {
    match text.char_indices().nth(SHORT) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// Joins the words of a text into one line.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a call as it is said, its body indented by its labels' marks.
    fn said(name: &str, input: &str) -> String {
        let said = Caller { name, folder: Some("/w"), whole: false }.say(input);
        let body = said.body.iter().map(|(_, line)| format!("\n  {line}"));
        said.title + &body.collect::<String>()
    }

    #[test]
    fn a_command_is_what_a_shell_runs() {
        let check =
            |name: &str, input: &str, expected: &str| assert_eq!(said(name, input), expected);
        check("Bash", r#"{"command":"make test","description":"Run"}"#, "$ make test");
        check("Bash", r#"{"command":"make","run_in_background":true}"#, "$ make &");
        check("shell", r#"{"command":["bash","-lc","make && ls"]}"#, "$ make && ls");
        check("shell", r#"{"command":["rg","-n","x y"],"workdir":"/w"}"#, "$ rg -n x y");
        check("shell", r#""{\"command\":[\"ls\"]}""#, "$ ls");
        check("exec_command", r#"{"cmd":"seq 9","yield_time_ms":1000}"#, "$ seq 9");
        check("run_shell_command", r#"{"command":"ls","directory":"src"}"#, "$ ls");
        let script =
            r#"const r = await tools.exec_command({cmd:"rg -n \"a\"", workdir:"/w"}); text(r)"#;
        check("exec", script, r#"$ rg -n "a""#);
        check("exec", "await tools.wait({cell_id:7})", "wait {cell_id:7}");
    }

    #[test]
    fn an_edit_is_a_difference_whatever_its_tool_is_called() {
        let expected = |name: &str| format!("{name} a.rs\n   one\n  -two\n  +2\n   three");
        let pairs =
            |old: &str, new: &str| format!(r#""{old}":"one\ntwo\nthree","{new}":"one\n2\nthree""#);
        for (name, path, old, new) in [
            ("Edit", "file_path", "old_string", "new_string"),
            ("edit", "path", "oldText", "newText"),
            ("edit", "filePath", "oldString", "newString"),
            ("str_replace", "path", "old_str", "new_str"),
        ] {
            let input = format!(r#"{{"{path}":"/w/a.rs",{}}}"#, pairs(old, new));
            assert_eq!(said(name, &input), expected(name));
        }
        let edit = format!(r#"{{"path":"a.rs","edit":{{{}}}}}"#, pairs("old", "new"));
        assert_eq!(said("StrReplaceFile", &edit), expected("StrReplaceFile"));
        let two = r#"{"file_path":"a.rs","edits":[{"old_string":"a","new_string":"b"},{"old_string":"c","new_string":""}]}"#;
        assert_eq!(said("MultiEdit", two), "MultiEdit a.rs\n  -a\n  +b\n  ⋮\n  -c");
    }

    #[test]
    fn a_patch_names_its_files_and_a_new_file_its_lines() {
        let patch = "*** Begin Patch\n*** Update File: /w/a.rs\n@@ fn x\n-old\n+new\n*** End Patch";
        assert_eq!(
            said("apply_patch", patch),
            "apply_patch update a.rs\n  @@ fn x\n  -old\n  +new"
        );
        let call = serde_json::json!({ "command": ["apply_patch", patch] }).to_string();
        assert_eq!(said("shell", &call), "apply_patch update a.rs\n  @@ fn x\n  -old\n  +new");
        let given = serde_json::json!({ "command": format!("apply_patch <<'E'\n{patch}\nE") });
        assert_eq!(
            said("shell", &given.to_string()),
            "apply_patch update a.rs\n  @@ fn x\n  -old\n  +new"
        );
        let looks = r#"{"command":"grep -rn '*** Begin Patch' apply_patch"}"#;
        assert_eq!(said("shell", looks), "$ grep -rn '*** Begin Patch' apply_patch");
        let name = "*** Begin Patch\n*** Add File: notes, old.txt\n+1\n+2\n*** End Patch";
        assert_eq!(said("apply_patch", name), "apply_patch add notes, old.txt, 2 lines");
        let two = "*** Begin Patch\n*** Add File: b\n+1\n+2\n*** Delete File: c\n*** End Patch";
        let expected = "apply_patch add b, 2 lines, delete c\n  add b, 2 lines\n  delete c";
        assert_eq!(said("apply_patch", two), expected);
    }

    #[test]
    fn changed_lines_are_counted_by_file() {
        let check = |input: &str, expected: &[(&str, [usize; 2])]| {
            let expected: Vec<_> =
                expected.iter().map(|(path, n)| ((*path).to_owned(), *n)).collect();
            assert_eq!(changes("edit", input), expected, "{input}");
        };
        check(
            r#"{"file_path":"/w/a.rs","old_string":"a\nb","new_string":"a\nc\nd"}"#,
            &[("/w/a.rs", [2, 1])],
        );
        check(r#"{"path":"a","content":"1\n2\n"}"#, &[("a", [2, 0])]);
        check(r#"{"command":"ls"}"#, &[]);
        let patch = "*** Begin Patch\n*** Update File: a\n@@ x\n-1\n+2\n+3\n*** Add File: b\n+1\n*** Delete File: c\n*** End Patch";
        check(patch, &[("a", [2, 1]), ("b", [1, 0]), ("c", [0, 0])]);
    }

    #[test]
    fn every_argument_is_there_where_the_whole_call_is_asked_for() {
        let input = r#"{"plan":"one\ntwo","n":3,"path":"a","more":"x\ny"}"#;
        let caller = Caller { name: "Plan", folder: None, whole: true };
        let said = caller.say(input);
        let body: Vec<&str> = said.body.iter().map(|(_, line)| line.as_str()).collect();
        assert_eq!(said.title, "Plan a");
        assert_eq!(body, ["plan:", "one", "two", "n: 3", "more:", "x", "y"]);
        let said = caller.say(r#"{"plan":"one\ntwo"}"#);
        assert_eq!((said.title.as_str(), said.body.len()), ("Plan", 2));
    }

    #[test]
    fn what_a_call_does_not_say_can_be_listed() {
        let check = |name: &str, input: &str, expected: &[&str]| {
            let said = Caller { name, folder: Some("/w"), whole: true }.say(input);
            assert_eq!(said.unsaid(name, input), expected, "{input}");
        };
        let command = r#"{"command":"make \"a b\"\nls","description":"Run it","timeout":9}"#;
        check("Bash", command, &["tool: Bash", "description: Run it", "timeout: 9"]);
        let edit =
            r#"{"file_path":"/w/a.rs","old_string":"1\n2\n3\n4\n5","new_string":"1\n2\n3\n4\n6"}"#;
        check("Edit", edit, &["file_path: /w/a.rs"]);
        check("Task", r#"{"prompt":"long words","description":"Look"}"#, &[]);
        check("ping", "{}", &[]);
        check(
            "exec",
            "await tools.wait({cell_id:7})",
            &["tool: exec", "await tools.wait({cell_id:7})"],
        );
    }

    #[test]
    fn other_calls_say_their_subject_and_short_arguments() {
        let check =
            |name: &str, input: &str, expected: &str| assert_eq!(said(name, input), expected);
        check("Write", r#"{"file_path":"/w/a.md","content":"1\n2\n"}"#, "Write a.md, 2 lines");
        check("create", r#"{"path":"a","file_text":"1"}"#, "create a, 1 line");
        check("Read", r#"{"file_path":"/w/a.rs","offset":20,"limit":40}"#, "Read a.rs:20-59");
        check("read", r#"{"path":"/else/a.rs"}"#, "read /else/a.rs");
        check("view", r#"{"path":"a","view_range":[1,9]}"#, "view a:1-9");
        check(
            "Grep",
            r#"{"pattern":"fn x","path":"/w/src","-n":true}"#,
            "Grep fn x in src  -n=true",
        );
        check("Glob", r#"{"pattern":"**/*.rs"}"#, "Glob **/*.rs");
        check(
            "WebFetch",
            r#"{"prompt":"what","url":"http://a"}"#,
            "WebFetch http://a  prompt=what",
        );
        check(
            "Task",
            r#"{"prompt":"long words","description":"Look"}"#,
            "Task Look  prompt=\"long words\"",
        );
        check(
            "str_replace_editor",
            r#"{"command":"view","path":"a"}"#,
            "str_replace_editor a  command=view",
        );
        let todos = r#"{"todos":[{"content":"one","status":"completed"},{"content":"two","status":"pending"}]}"#;
        check("TodoWrite", todos, "TodoWrite\n  [x] one\n  [ ] two");
        let questions = r#"{"questions":[{"question":"Which?","options":[]}]}"#;
        check("AskUserQuestion", questions, "AskUserQuestion Which?");
        check("mcp__x__y", r#"{"n":3,"deep":{"a":1}}"#, r#"mcp__x__y  n=3  deep={"a":1}"#);
        check("ping", "{}", "ping");
        check("ping", "null", "ping");
        check("ping", "not json", "ping not json");
    }
}
