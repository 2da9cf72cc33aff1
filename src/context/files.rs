//! Finds the files that a conversation is about, and the excerpts of them for a summary's prompt.
//!
//! A file counts as named if its path is in one of a few arguments of a tool call, in a patch, or an absolute path in a message
//! of the user or model; never if it is in a tool's output, which may list thousands of files. Nothing here touches the file
//! system: a closure reads files, and also decides about symbolic links.
//!
//! Invariant: a path outside the given folders is never returned unless requested, however it is spelt.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    json,
    model::{Block, Message, Role},
};

/// How many files go into a prompt.
pub const MAX_FILES: usize = 5;

/// How many lines of each file.
pub const MAX_LINES: usize = 1_000;

/// How many characters of each file, because lines may be of any length.
pub const MAX_CHARS: usize = 50_000;

/// How many files are tried. Some are deleted or are folders.
const MAX_TRIED: usize = 50;

/// Arguments of a tool call whose value is a path.
const KEYS: [&str; 6] = ["file_path", "path", "target", "source", "destination", "notebook_path"];

/// Substrings in the names of tools that change files: Write, Edit and similar.
const CHANGING: [&str; 5] = ["write", "edit", "replace", "patch", "create_file"];

/// A file that was named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its absolute path, normalised.
    pub path: String,
    /// How many tool calls changed it.
    pub n_changes: u64,
    /// How often it was named.
    pub n_mentions: usize,
    /// The index of the last message that named it.
    pub latest: usize,
}

/// A file's excerpt in a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// Its path.
    pub path: String,
    /// Its first lines, with a mark that counts the missing ones.
    pub text: String,
}

/// Returns the files named in these folders, or anywhere, most important first: modified ones, then those
/// named most often, then most recently. Relative paths are resolved against the session's folder.
pub fn named<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    folder: Option<&str>,
    below: Option<&[&str]>,
) -> Vec<Named> {
    let folder = folder.and_then(|folder| absolute(folder, None));
    let mut found: BTreeMap<String, Named> = BTreeMap::new();
    for (nth, message) in messages.into_iter().enumerate() {
        each_path(message, &mut |path, is_modified| {
            let Some(path) = absolute(path, folder.as_deref()) else { return };
            if below.is_some_and(|below| !below.iter().any(|folder| is_below(&path, folder))) {
                return;
            }
            let named = found.entry(path).or_insert_with_key(|path| Named {
                path: path.clone(),
                n_changes: 0,
                n_mentions: 0,
                latest: nth,
            });
            named.n_changes += u64::from(is_modified);
            named.n_mentions += 1;
            named.latest = nth;
        });
    }
    let mut named: Vec<Named> = found.into_values().collect();
    let rank = |named: &Named| (named.n_changes > 0, named.n_mentions, named.latest);
    named.sort_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| a.path.cmp(&b.path)));
    named
}

/// Removes failed calls, which changed nothing, and returns their number.
pub fn drop_failed(messages: &mut [Message]) -> u64 {
    let blocks = messages.iter().flat_map(|message| &message.blocks);
    let failed = blocks.filter_map(|block| match block {
        Block::Result { id, error: true, .. } => Some(id.clone()),
        _ => None,
    });
    let failed: BTreeSet<String> = failed.collect();
    for message in messages {
        let has_failed = |block: &Block| match block {
            Block::Call { id, .. } => failed.contains(id.as_str()),
            _ => false,
        };
        message.blocks.retain(|block| !has_failed(block));
    }
    failed.len() as u64
}

/// Reads the first of these files that exist.
pub fn read(named: &[Named], read: &mut dyn FnMut(&str) -> Option<String>) -> Vec<Excerpt> {
    let excerpts = named.iter().take(MAX_TRIED).filter_map(|named| {
        let text = read(&named.path).filter(|text| !text.contains('\0'))?;
        Some(Excerpt { path: named.path.clone(), text: cut(&text) })
    });
    excerpts.take(MAX_FILES).collect()
}

/// Returns the first lines of a text, with a mark that counts the others.
fn cut(text: &str) -> String {
    let mut end = 0;
    let mut n_chars = 0;
    for (n_lines, line) in text.split_inclusive('\n').enumerate() {
        n_chars += line.chars().count();
        if n_lines == MAX_LINES || n_chars > MAX_CHARS {
            break;
        }
        end += line.len();
    }
    let (head, rest) = text.split_at(end);
    if rest.is_empty() {
        return head.to_owned();
    }
    let gap = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{gap}[{} more lines are not shown]", rest.lines().count())
}

/// Calls `each` with each path that a message names, and whether the file is changed.
fn each_path(message: &Message, each: &mut dyn FnMut(&str, bool)) {
    let is_said = matches!(message.role, Role::User | Role::Assistant) && !message.is_summary;
    for block in &message.blocks {
        match block {
            Block::Text(text) if is_said => in_prose(text).for_each(|path| each(path, false)),
            Block::Call { name, input, .. } => in_arguments(name, input.as_bytes(), each),
            _ => {}
        }
    }
}

/// Calls `each` with each path in the arguments of a call, and whether the call changes the file.
pub(super) fn in_arguments(name: &str, input: &[u8], each: &mut dyn FnMut(&str, bool)) {
    let Some(input) = json::Raw::value(input) else {
        let text = str::from_utf8(input).unwrap_or_default();
        return in_patch(text).for_each(|path| each(path, true));
    };
    let name = name.to_lowercase();
    let looks = input.get("command").and_then(json::Raw::text);
    let changes =
        CHANGING.iter().any(|part| name.contains(part)) && looks.as_deref() != Some("view");
    in_call(input, changes, each);
}

/// Calls `each` with the paths in the arguments of a call, at any depth.
fn in_call(input: json::Raw<'_>, changes: bool, each: &mut dyn FnMut(&str, bool)) {
    let mut key = None;
    for part in input.parts() {
        let value = match part {
            json::Part::Key(name) => {
                key = name.text();
                continue;
            }
            json::Part::Leaf(value) => value.text(),
            json::Part::Open(_) | json::Part::Close => None,
        };
        // The next value is an item of a list or has its own key.
        match (key.take(), value) {
            (Some(key), Some(text)) if KEYS.contains(&key.as_ref()) => each(&text, changes),
            (_, Some(text)) => in_patch(&text).for_each(|path| each(path, true)),
            (_, None) => {}
        }
    }
}

/// Returns the files that a patch changes.
fn in_patch(text: &str) -> impl Iterator<Item = &str> {
    let marks = ["*** Update File: ", "*** Add File: ", "*** Move to: "];
    text.lines().filter_map(move |line| marks.iter().find_map(|mark| line.strip_prefix(mark)))
}

/// Returns the absolute paths in prose.
fn in_prose(text: &str) -> impl Iterator<Item = &str> {
    let is_end =
        |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | '|' | '*');
    let opens = |c: char| matches!(c, '(' | '[' | '{' | '=' | '@' | ',');
    text.split(is_end).filter_map(move |word| {
        let word = word.trim_start_matches(opens);
        let word =
            word.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '/' && c != '_');
        // The part after a colon is a line number or not part of the path at all.
        let path = word.split([':', '(', ')', '[', ']', ',', ';']).next()?;
        let name = path.strip_prefix('/')?;
        // `/compact` is a command, `//` begins a comment, `/tmp/` is a folder.
        let is_file = name.contains(['/', '.']) && !name.starts_with('/') && !name.ends_with('/');
        is_file.then_some(path)
    })
}

/// Returns a normalised absolute path. A relative path is resolved against the folder.
fn absolute(path: &str, folder: Option<&str>) -> Option<String> {
    if path.is_empty() || path.contains(['\0', '\n']) {
        return None;
    }
    let base = if path.starts_with('/') { "" } else { folder? };
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(format!("/{}", parts.join("/")))
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| folder == "/" || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, input: &str) -> Message {
        let (id, input) = ("c".to_owned(), input.to_owned());
        let block = Block::Call { id, name: name.to_owned(), input, signature: None };
        Message::new(Role::Assistant, vec![block])
    }

    fn says(role: Role, text: &str) -> Message {
        Message::new(role, vec![Block::Text(text.to_owned())])
    }

    fn paths(messages: &[Message], outside: bool) -> Vec<String> {
        let below = (!outside).then_some(&["/srv/app"][..]);
        named(messages, Some("/srv/app/"), below).into_iter().map(|named| named.path).collect()
    }

    #[test]
    fn modified_files_come_first_then_the_most_named_then_the_latest() {
        let messages = [
            says(
                Role::User,
                "Look at /srv/app/often.rs, (/srv/app/often.rs:12) and `/srv/app/old.rs`.",
            ),
            call("Read", r#"{"file_path":"/srv/app/late.rs"}"#),
            call("Edit", r#"{"file_path":"/srv/app/edited.rs","old_string":"/srv/app/no.rs"}"#),
        ];
        let expected =
            ["/srv/app/edited.rs", "/srv/app/often.rs", "/srv/app/late.rs", "/srv/app/old.rs"];
        assert_eq!(paths(&messages, false), expected);
    }

    #[test]
    fn paths_are_found_where_tools_keep_them() {
        let check = |name: &str, input: &str, expected: &[&str], modified: bool| {
            let named = named(&[call(name, input)], Some("/srv/app"), Some(&["/srv/app"]));
            let paths: Vec<&str> = named.iter().map(|named| named.path.as_str()).collect();
            assert_eq!(paths, expected, "{input}");
            assert!(named.iter().all(|named| (named.n_changes > 0) == modified), "{input}");
        };
        check("write_file", r#"{"path":"src/a.rs"}"#, &["/srv/app/src/a.rs"], true);
        check("str_replace_editor", r#"{"command":"view","path":"./a"}"#, &["/srv/app/a"], false);
        check(
            "move",
            r#"{"source":"a","destination":"b/../c"}"#,
            &["/srv/app/a", "/srv/app/c"],
            false,
        );
        check("MultiEdit", r#"{"edits":[{"target":"deep"}]}"#, &["/srv/app/deep"], true);
        check(
            "shell",
            r#"{"input":"*** Begin Patch\n*** Update File: x.rs\n"}"#,
            &["/srv/app/x.rs"],
            true,
        );
        check("apply_patch", "*** Begin Patch\n*** Add File: y.rs\n", &["/srv/app/y.rs"], true);
        check("Bash", r#"{"command":"cat src/a.rs"}"#, &[], false);
        check("Read", "no json", &[], false);
    }

    #[test]
    fn nothing_outside_of_the_folder_is_taken_unless_asked_for() {
        let messages = [
            says(Role::User, "See /etc/passwd.d/x and /srv/app2/a.rs"),
            call("Read", r#"{"path":"../secret"}"#),
            call("Read", r#"{"path":"/srv/app/../secret2"}"#),
            says(Role::Tool, "/srv/app/printed.rs"),
        ];
        assert_eq!(paths(&messages, false), [""; 0]);
        assert_eq!(paths(&messages, true).len(), 4);
        assert_eq!(named(&messages, None, Some(&[])), []);
    }

    #[test]
    fn prose_has_things_that_are_no_paths() {
        let text = "/compact // a comment https://example.org/a/b and /srv/app/ or a/b, //x/y";
        assert_eq!(in_prose(text).collect::<Vec<_>>(), [""; 0]);
        assert_eq!(in_prose("(/a/b.rs), =/c.d:3:4").collect::<Vec<_>>(), ["/a/b.rs", "/c.d"]);
    }

    #[test]
    fn a_long_file_is_cut_with_a_mark() {
        let text = "line\n".repeat(MAX_LINES + 2);
        let cut_text = cut(&text);
        assert_eq!(cut_text.lines().count(), MAX_LINES + 1);
        assert!(cut_text.ends_with("\n[2 more lines are not shown]"));
        assert_eq!(cut("a\nb"), "a\nb");
        assert_eq!(cut(&"x".repeat(MAX_CHARS + 1)), "[1 more lines are not shown]");
    }

    #[test]
    fn five_files_are_read_of_those_that_are_there() {
        let messages: Vec<Message> =
            (0..20).map(|n| call("Read", &format!(r#"{{"path":"f{n:02}"}}"#))).collect();
        let named = named(&messages, Some("/w"), Some(&["/w"]));
        let texts = read(&named, &mut |path| {
            let n: u32 = path.rsplit('f').next()?.parse().ok()?;
            n.is_multiple_of(2)
                .then(|| if n == 18 { "\0binary".to_owned() } else { path.to_owned() })
        });
        let paths: Vec<&str> = texts.iter().map(|text| text.path.as_str()).collect();
        assert_eq!(paths, ["/w/f16", "/w/f14", "/w/f12", "/w/f10", "/w/f08"]);
    }
}
