//! Checks a summary: what the messages and earlier summaries that it replaces name, and the summary does not.
//!
//! It checks what the next step depends on and what can be compared literally: paths, commands, numbers and identifiers from
//! the user or the model, and the user's own last requests. The output of tools is not required, because it can be printed
//! again. Losses are only reported, except that a summary which leaves out nearly everything the work depends on is poor and is
//! requested again. A summary that names nothing at all is rejected.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde::{Deserialize, Serialize};

use crate::{
    context::{extract, files::KEYS, plan::Piece, prompt, tokens::is_dense},
    json::Raw,
    model::{Block, Role},
};

/// How many lost things of a kind are listed, most important first.
const LISTED: usize = 20;

/// How many characters of each.
const LONGEST: usize = 160;

/// How many of the last requests count as open.
const REQUESTS: usize = 5;

/// How many paths a conversation is about: the most frequent ones.
const FOREMOST: usize = 10;

/// With fewer of them than this, a summary need not name any.
const FEW: usize = 4;

/// How much of a message is searched. A pasted file is not conversation.
const READ: usize = 64 * 1024;

/// A kind of thing that a summary can lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Files and folders.
    Paths,
    /// Commands run by a tool: the program and its first argument.
    Commands,
    /// Numbers of three or more digits, including versions.
    Numbers,
    /// The user's own last requests.
    Requests,
    /// Names of functions, types, variables and errors.
    Identifiers,
}

/// What a summary lost of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The kind of things.
    pub kind: Kind,
    /// How many things of this kind the messages name.
    pub of: usize,
    /// How many of these things the summary names too.
    pub kept: usize,
    /// Things that the summary lost, the most frequent first, at most 20.
    pub lost: Vec<String>,
}

impl Kind {
    /// All kinds, in display order.
    const ALL: [Self; 5] =
        [Self::Paths, Self::Commands, Self::Numbers, Self::Requests, Self::Identifiers];

    /// Returns the name used in all output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Paths => "paths",
            Self::Commands => "commands",
            Self::Numbers => "numbers",
            Self::Requests => "requests",
            Self::Identifiers => "identifiers",
        }
    }
}

/// A thing named in messages.
struct Thing {
    /// How often it is named; for a request, how late it was made.
    times: usize,
    what: String,
    /// True if the summary names it.
    is_kept: bool,
}

/// A summary, checked against the messages that it replaces.
pub struct Check(BTreeMap<Kind, Vec<Thing>>);

impl Check {
    /// Checks a summary.
    pub fn of(summary: &str, pieces: &[&Piece<'_>]) -> Self {
        let mut named = Named::default();
        for piece in pieces {
            let is_said = piece.is_request || piece.message.role == Role::Assistant;
            for block in &piece.message.blocks {
                match block {
                    Block::Text(text) if piece.message.is_summary => {
                        let told = extract::told(prompt::unwrap(text));
                        tokens(beginning(told), &mut |token| named.add(token));
                    }
                    Block::Text(text) if is_said => {
                        tokens(beginning(text), &mut |token| named.add(token));
                    }
                    Block::Call { input, .. } => paths_of(input, &mut |path| named.add_path(path)),
                    _ => {}
                }
            }
        }
        let known = Known::of(summary);
        let mut things: BTreeMap<Kind, Vec<Thing>> = BTreeMap::new();
        let mut add = |kind, times, what: String, is_kept| {
            things.entry(kind).or_default().push(Thing { times, what, is_kept });
        };
        for (path, times) in counted(named.paths) {
            let is_kept = known.has_path(&path);
            add(Kind::Paths, times, path.into_owned(), is_kept);
        }
        for (number, times) in counted(named.numbers) {
            add(Kind::Numbers, times, number.to_owned(), known.has(number));
        }
        for (name, times) in counted(named.identifiers) {
            add(Kind::Identifiers, times, name.to_owned(), known.has(name));
        }
        for (command, times) in commands(pieces) {
            let is_kept = known.has_command(&command);
            add(Kind::Commands, times, command, is_kept);
        }
        let is_own = |piece: &&&Piece<'_>| piece.is_request && !piece.message.is_summary;
        let requests = pieces.iter().rev().filter(is_own);
        let mut said = BTreeSet::new();
        for (nth, piece) in requests.take(REQUESTS).enumerate() {
            let text = piece.message.text().trim().to_owned();
            // A user who was interrupted repeats a request.
            if said.insert(text.clone()) {
                let is_kept = known.has_request(&text);
                add(Kind::Requests, REQUESTS - nth, text, is_kept);
            }
        }
        for things in things.values_mut() {
            things.sort_by_key(|thing| std::cmp::Reverse(thing.times));
        }
        Self(things)
    }

    /// Returns what the summary lost. Kinds that the messages do not name are left out.
    pub fn losses(&self) -> Vec<Loss> {
        let loss = |kind| {
            let things = self.0.get(&kind)?;
            let lost = things.iter().filter(|thing| !thing.is_kept);
            let (of, kept) = (things.len(), things.len() - lost.clone().count());
            let lost = lost.take(LISTED).map(|thing| short(&thing.what)).collect();
            Some(Loss { kind, of, kept, lost })
        };
        Kind::ALL.into_iter().filter_map(loss).collect()
    }

    /// Returns what a poor summary left out of the things that the work depends on: the user's last request, if it is open,
    /// and the most frequent paths, if it names fewer than a quarter of them.
    ///
    /// A good summary leaves out a lot: summaries of long sessions by the agents' own models named all last requests, a third
    /// to all of these paths, and sometimes none of the commands. So commands are not decisive.
    pub fn lack(&self, is_open: bool) -> Vec<String> {
        let lost = |kind, of: usize| {
            let things = self.0.get(&kind).map(Vec::as_slice).unwrap_or_default();
            let first = things.get(..of.min(things.len())).unwrap_or_default();
            let lost: Vec<&Thing> = first.iter().filter(|thing| !thing.is_kept).collect();
            (lost, first.len())
        };
        let (mut lack, _) = lost(Kind::Requests, usize::from(is_open));
        let (paths, of) = lost(Kind::Paths, FOREMOST);
        if of >= FEW && (of - paths.len()) * 4 < of {
            lack.extend(paths);
        }
        lack.into_iter().map(|thing| short(&thing.what)).collect()
    }

    /// Returns true if the summary names nothing at all that the messages name, so that it cannot be a summary of them: a
    /// greeting, a promise to begin, a refusal in any language.
    ///
    /// A request may be worded differently in another language, but paths, commands, numbers and names are not. There must be
    /// some of those, or the summary must be far too short.
    pub fn is_strange(&self, is_short: bool) -> bool {
        // The words of a request, a number or the name of a program may match by chance; a path or a name does not.
        let (kept, of) = self.rare();
        if kept == 0 && of >= 2 * FEW {
            return true;
        }
        let n_names = self.things().filter(|(kind, _)| *kind != Kind::Requests).count();
        (is_short || n_names >= FEW) && !self.keeps_any()
    }

    /// Returns true if the summary names so few of the paths and names in the messages that it may not be a summary. If there are
    /// few of those, everything that the messages name counts.
    pub fn is_bare(&self) -> bool {
        let (kept, of) = self.rare();
        if of < FEW { !self.keeps_any() } else { kept < FEW && kept * 16 <= of }
    }

    /// Returns how many of the paths and names the summary names, and how many there are.
    fn rare(&self) -> (usize, usize) {
        let rare =
            self.things().filter(|(kind, _)| matches!(kind, Kind::Paths | Kind::Identifiers));
        rare.fold((0, 0), |(kept, of), (_, thing)| (kept + usize::from(thing.is_kept), of + 1))
    }

    fn keeps_any(&self) -> bool {
        // A request without distinctive words, such as "go on", does not count: every summary matches it.
        let counts = |kind: Kind, thing: &Thing| kind != Kind::Requests || is_told(&thing.what);
        self.things().any(|(kind, thing)| thing.is_kept && counts(kind, thing))
    }

    fn things(&self) -> impl Iterator<Item = (Kind, &Thing)> {
        self.0.iter().flat_map(|(kind, all)| all.iter().map(|thing| (*kind, thing)))
    }
}

/// Returns true if a text has distinctive words.
fn is_told(text: &str) -> bool {
    let mut is_told = false;
    telling(beginning(text), &mut |_| is_told = true);
    is_told
}

/// Returns the beginning of a thing, for a list.
fn short(what: &str) -> String {
    match what.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}..", what.get(..end).unwrap_or_default()),
        None => what.to_owned(),
    }
}

/// Returns the beginning of a text.
fn beginning(text: &str) -> &str {
    let mut end = text.len().min(READ);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// The things that were named, repeated for each time.
#[derive(Default)]
struct Named<'a> {
    paths: Vec<Cow<'a, str>>,
    numbers: Vec<&'a str>,
    identifiers: Vec<&'a str>,
}

impl<'a> Named<'a> {
    fn add(&mut self, token: &'a str) {
        match kind_of(token) {
            Some(Kind::Paths) => self.paths.extend(path(token).map(Cow::Borrowed)),
            Some(Kind::Numbers) => self.numbers.push(token),
            Some(Kind::Identifiers) => self.identifiers.push(token),
            _ => {}
        }
    }

    fn add_path(&mut self, named: &str) {
        self.paths.extend(path(named).map(|path| Cow::Owned(path.to_owned())));
    }
}

/// Returns a path in the form in which it is compared; None if it is not a path.
fn path(named: &str) -> Option<&str> {
    // A line number after a path is not part of it.
    let path = named.split(':').next().unwrap_or(named).trim_start_matches("./");
    (path.len() > 2 && !path.contains(['\n', '*'])).then(|| path.trim_end_matches('/'))
}

/// Returns each thing and how often it was named, sorted by name.
fn counted<T: Ord>(mut all: Vec<T>) -> Vec<(T, usize)> {
    all.sort_unstable();
    let mut counted: Vec<(T, usize)> = Vec::new();
    for one in all {
        match counted.last_mut() {
            Some((last, times)) if *last == one => *times += 1,
            _ => counted.push((one, 1)),
        }
    }
    counted
}

/// What a byte says about the token that contains it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// It is a separator: white space, a quote or a bracket.
    Gap,
    /// The token may be a path, a number or a name. A token without such a byte is none of these.
    Telling,
    /// Nothing.
    Plain,
}

/// The class of each byte.
const CLASSES: [Class; 256] = {
    const GAPS: &[u8] = b"\"'`()[]{}<>,;|=*!?";
    let mut classes = [Class::Plain; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        classes[byte as usize] = match byte {
            0..=b' ' => Class::Gap,
            b'0'..=b'9' | b'A'..=b'Z' | b'/' | b'_' | b':' => Class::Telling,
            _ => Class::Plain,
        };
        byte += 1;
    }
    let mut at = 0;
    while at < GAPS.len() {
        classes[GAPS[at] as usize] = Class::Gap;
        at += 1;
    }
    classes
};

/// Calls `each` with the tokens of a text that may be paths, numbers or names. Most words are neither and cost only one look at
/// each byte.
fn tokens<'a>(text: &'a str, each: &mut dyn FnMut(&'a str)) {
    let is = |class| move |byte: &u8| CLASSES[usize::from(*byte)] == class;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..)
        && let Some(telling) = rest.iter().position(is(Class::Telling))
    {
        let (before, behind) = rest.split_at(telling);
        let start = before.iter().rposition(is(Class::Gap)).map_or(at, |gap| at + gap + 1);
        let end = behind.iter().position(is(Class::Gap)).unwrap_or(behind.len());
        at += telling + end;
        // Both ends are next to ASCII, so they are character boundaries.
        each(trimmed(text.get(start..at).unwrap_or_default()));
    }
}

/// Returns a token without the punctuation around it. A path may begin with a hidden folder.
fn trimmed(token: &str) -> &str {
    let is_mark = |c: char| matches!(c, ':' | '-' | '#' | '@' | '$' | '&');
    let token = token.trim_start_matches(is_mark).trim_end_matches(|c| c == '.' || is_mark(c));
    if token.contains('/') { token } else { token.trim_start_matches('.') }
}

/// Returns the kind of a token that a summary should keep; None for any other token.
fn kind_of(token: &str) -> Option<Kind> {
    let bytes = token.as_bytes();
    let count = |is: fn(&u8) -> bool| bytes.iter().filter(|byte| is(byte)).count();
    let (first, digits) = (*bytes.first()?, count(u8::is_ascii_digit));
    if !(3..=200).contains(&bytes.len()) || !token.is_ascii() {
        return None;
    }
    if bytes.contains(&b'/') {
        let is_path = !token.contains("://")
            && !token.contains("//")
            && token
                .rsplit('/')
                .next()
                .is_some_and(|name| name.contains('.') || first == b'/' && name.len() > 1)
            && count(u8::is_ascii_alphabetic) > 1;
        // A single name below the root is a command such as `/compact`.
        return (is_path && (first != b'/' || token.matches('/').count() > 1))
            .then_some(Kind::Paths);
    }
    if first.is_ascii_digit() {
        let is_number = digits > 2 || (digits > 1 && bytes.contains(&b'.'));
        return (is_number
            && bytes
                .iter()
                .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':' | b'%' | b'_')))
        .then_some(Kind::Numbers);
    }
    let letters =
        bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'.'));
    let is_hump = |two: &[u8]| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase();
    let is_code = || first.is_ascii_uppercase() && digits > 1 && digits + 1 == bytes.len();
    let is_name = token.contains("::")
        || token.trim_matches('_').contains('_')
        || bytes.windows(2).any(is_hump)
        || is_code();
    (letters && is_name && bytes.len() > 3).then_some(Kind::Identifiers)
}

/// Calls `each` with the paths under the usual keys of a call's arguments.
fn paths_of(input: &str, each: &mut dyn FnMut(&str)) {
    let Some(input) = Raw::object(input.as_bytes()) else { return };
    for path in input.pick(KEYS).into_iter().flatten().filter_map(Raw::text) {
        each(&path);
    }
}

/// Returns the commands run by tools and how often, as the program and its first argument.
fn commands(pieces: &[&Piece<'_>]) -> Vec<(String, usize)> {
    /// Programs that only look.
    const LOOKS: [&str; 22] = [
        "ls", "cat", "cd", "echo", "pwd", "head", "tail", "grep", "rg", "find", "sed", "awk", "wc",
        "which", "sleep", "true", "test", "tree", "file", "stat", "printf", "sort",
    ];
    let mut all = Vec::new();
    for block in pieces.iter().flat_map(|piece| &piece.message.blocks) {
        let Block::Call { input, .. } = block else { continue };
        let Some(input) = Raw::object(input.as_bytes()) else { continue };
        for key in [b"command".as_slice(), b"cmd"] {
            let Some(value) = input.fields().find(|(name, _)| *name == key).map(|(_, value)| value)
            else {
                continue;
            };
            // In a list such as `bash -lc COMMAND`, the command comes last.
            let text = value.text().or_else(|| value.items().last()?.text());
            let Some(text) = text else { continue };
            for part in text.lines().flat_map(|line| line.split("&&")).take(8) {
                let mut words = part.split_whitespace().skip_while(|word| word.contains('='));
                let Some(program) = words.next().filter(|program| !LOOKS.contains(program)) else {
                    continue;
                };
                if !program
                    .starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '/'))
                {
                    continue;
                }
                let argument = words
                    .next()
                    .filter(|word| !word.starts_with(['-', '|', '<', '>', '"', '\'', '2']));
                all.push(argument.map_or_else(
                    || program.to_owned(),
                    |argument| format!("{program} {argument}"),
                ));
            }
        }
    }
    counted(all)
}

/// The words of a summary.
struct Known<'a> {
    tokens: BTreeSet<&'a str>,
    /// The words in lowercase, and adjacent pairs of them with a space between.
    words: BTreeSet<String>,
    /// The distinctive words that requests are recognised by.
    telling: BTreeSet<String>,
}

impl<'a> Known<'a> {
    fn of(summary: &'a str) -> Self {
        let mut known = BTreeSet::new();
        let is_gap =
            |c: char| u8::try_from(c).is_ok_and(|byte| CLASSES[usize::from(byte)] == Class::Gap);
        for token in summary.split(is_gap).map(trimmed) {
            // A path is recognised by each of its suffixes, a name by each of its parts.
            for (at, _) in token.match_indices('/') {
                known.extend(token.get(at + 1..));
            }
            known.extend(token.split([':', '/']));
            known.insert(token);
        }
        let lower = summary.to_lowercase();
        let list: Vec<&str> = lower
            .split(|c: char| c.is_whitespace() || "\"'`(),;:".contains(c))
            .map(|word| word.trim_end_matches('.'))
            .filter(|word| !word.is_empty())
            .collect();
        let two = list.windows(2).map(|two| two.join(" "));
        let words = list.iter().map(|word| (*word).to_owned()).chain(two).collect();
        let mut all = Vec::new();
        telling(summary, &mut |word| all.push(word));
        Self { tokens: known, words, telling: all.into_iter().collect() }
    }

    fn has(&self, token: &str) -> bool {
        self.tokens.contains(token)
    }

    /// Returns true if the summary names a path, or a suffix of it that begins with one of its folders. A bare file name is
    /// enough, too.
    fn has_path(&self, path: &str) -> bool {
        self.has(path)
            || path
                .match_indices('/')
                .any(|(at, _)| path.get(at + 1..).is_some_and(|end| self.has(end)))
    }

    fn has_command(&self, command: &str) -> bool {
        self.words.contains(&command.to_lowercase())
    }

    /// Returns true if the summary contains half of a request's distinctive words.
    fn has_request(&self, request: &str) -> bool {
        let mut words = Vec::new();
        telling(beginning(request), &mut |word| words.push(word));
        words.truncate(40);
        let words: BTreeSet<String> = words.into_iter().collect();
        let kept = words.iter().filter(|word| self.telling.contains(*word)).count();
        kept * 2 >= words.len()
    }
}

/// Calls `told` with the distinctive words of a text, in lowercase: words of more than three letters, and, where words are not
/// separated by spaces as in Chinese, each pair of adjacent characters.
fn telling(text: &str, told: &mut dyn FnMut(String)) {
    let lower = text.to_lowercase();
    for run in lower.split(|c: char| !c.is_alphanumeric()) {
        let signs: Vec<char> = run.chars().collect();
        if signs.iter().copied().any(is_dense) {
            signs.windows(2).for_each(|two| told(two.iter().collect()));
        } else if signs.len() > 3 {
            told(run.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Message;

    fn says(role: Role, text: &str) -> Message {
        Message::new(role, vec![Block::Text(text.to_owned())])
    }

    fn call(name: &str, input: &str) -> Message {
        let (id, name, input) = ("c".to_owned(), name.to_owned(), input.to_owned());
        Message::new(Role::Assistant, vec![Block::Call { id, name, input, signature: None }])
    }

    fn piece(message: &Message) -> Piece<'_> {
        let is_request = message.role == Role::User;
        Piece { message, tokens: 0, is_kept: false, is_request }
    }

    fn checked(summary: &str, messages: &[Message]) -> Check {
        let pieces: Vec<Piece<'_>> = messages.iter().map(piece).collect();
        Check::of(summary, &pieces.iter().collect::<Vec<_>>())
    }

    fn losses(summary: &str, messages: &[Message]) -> Vec<Loss> {
        checked(summary, messages).losses()
    }

    #[test]
    fn what_a_summary_no_longer_names_is_told_by_its_kind() {
        let messages = [
            says(Role::User, "Make the parser in src/parse.rs listen on port 8080, please."),
            call("Edit", r#"{"file_path":"/w/src/lib.rs","new_string":"x"}"#),
            call("Bash", r#"{"command":"cd /w && RUST_LOG=1 cargo test --lib && ls -l"}"#),
            call("shell", r#"{"command":["bash","-lc","npm run build"]}"#),
            says(
                Role::Assistant,
                "`parse_line` panics with E0308 in `Token::next`, see version 1.2.3.",
            ),
            Message::new(
                Role::Tool,
                vec![Block::answer("c".to_owned(), "/etc/x.conf 99999".to_owned())],
            ),
        ];
        let lost = |summary: &str| -> Vec<(&'static str, usize, usize, Vec<String>)> {
            let told = |loss: Loss| (loss.kind.as_str(), loss.kept, loss.of, loss.lost);
            losses(summary, &messages).into_iter().map(told).collect()
        };
        let list = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            lost("Nothing."),
            [
                ("paths", 0, 2, list(&["/w/src/lib.rs", "src/parse.rs"])),
                ("commands", 0, 2, list(&["cargo test", "npm run"])),
                ("numbers", 0, 2, list(&["1.2.3", "8080"])),
                (
                    "requests",
                    0,
                    1,
                    list(&["Make the parser in src/parse.rs listen on port 8080, please."])
                ),
                ("identifiers", 0, 3, list(&["E0308", "Token::next", "parse_line"])),
            ]
        );
        let whole = "The parser (src/parse.rs, lib.rs) must listen on port 8080; please run `cargo test` and \
                     `npm run build`. Token::next and parse_line() fail with E0308 in 1.2.3.";
        assert!(lost(whole).iter().all(|(_, kept, of, _)| kept == of), "{:?}", lost(whole));
    }

    #[test]
    fn a_request_is_known_again_in_any_script_and_counts_once() {
        let asked = "解决这个问题，我要了解一下当前的实现情况。";
        let messages = [
            says(Role::User, asked),
            says(Role::User, asked),
            says(Role::User, "Re-check the type-level parser."),
        ];
        let kept = |summary: &str| {
            let found = losses(summary, &messages);
            let of = found.iter().find(|loss| loss.kind == Kind::Requests).unwrap();
            (of.kept, of.of)
        };
        assert_eq!(kept(&format!("- {asked}\n- re-check: the type-level parser")), (2, 2));
        assert_eq!(kept("要解决这个问题，了解当前的实现情况"), (1, 2));
        assert_eq!(kept("制定方案"), (0, 2));
    }

    #[test]
    fn a_summary_is_poor_without_the_open_request_or_most_paths() {
        let read = |nth| call("Read", &format!(r#"{{"file_path":"/w/{nth}.rs"}}"#));
        let mut messages: Vec<Message> = (0..8).map(read).collect();
        messages.push(says(Role::User, "Rename the parser's entry point everywhere."));
        let check = |summary: &str, is_open| checked(summary, &messages).lack(is_open);
        let rename = "The parser's entry point is to be renamed everywhere";
        assert_eq!(check(&format!("{rename}, in 1.rs and 2.rs."), true), [""; 0]);
        assert_eq!(check(&format!("{rename}, in 1.rs."), true).len(), 7);
        assert_eq!(check("1.rs and 2.rs were read.", false), [""; 0]);
        let lack = check("1.rs and 2.rs were read.", true);
        assert_eq!(lack, ["Rename the parser's entry point everywhere."]);
        // Three paths are too few to judge by.
        assert_eq!(checked("It was read.", &messages[..3]).lack(true), [""; 0]);
    }

    #[test]
    fn a_summary_that_names_nothing_is_none_in_any_language() {
        let read = |nth| call("Read", &format!(r#"{{"file_path":"/w/{nth}.rs"}}"#));
        let mut messages: Vec<Message> = (0..4).map(read).collect();
        messages.push(says(Role::User, "Rename the parser's entry point everywhere."));
        messages.push(says(Role::User, "Go on"));
        let strange = |said: &str, is_short| checked(said, &messages).is_strange(is_short);
        for said in ["OK.", "Sure! Here is what was said:", "Bien sûr, voici le résumé :"] {
            assert!(strange(said, false), "{said}");
        }
        for said in ["1.rs wurde gelesen.", "The parser's entry point is renamed everywhere."] {
            assert!(!strange(said, true), "{said}");
        }
        // Where there are but words, another language has others.
        let talk = &messages[4..];
        assert!(!checked("Der Name des Zerteilers soll sich ändern.", talk).is_strange(false));
        assert!(checked("OK.", talk).is_strange(true));
    }

    #[test]
    fn hidden_folders_are_part_of_a_path() {
        let messages =
            [says(Role::Assistant, "See .github/ci.yml, ./src/lib.rs and ../notes/a.md.")];
        let found = losses("ci.yml", &messages);
        assert_eq!((found[0].kept, found[0].of), (1, 3));
        assert_eq!(found[0].lost, ["../notes/a.md", "src/lib.rs"]);
        assert_eq!(losses(".github/ci.yml, src/lib.rs, notes/a.md", &messages)[0].kept, 3);
    }

    #[test]
    fn a_conversation_without_any_of_it_loses_nothing() {
        assert_eq!(losses("Done.", &[says(Role::Assistant, "It is done, on 1 of 2 ways.")]), []);
        assert_eq!(losses("", &[]), []);
        let odd =
            says(Role::Assistant, "\u{e9}/\u{e9}.rs //x https://a.b/c.d /compact a/b 1,2 __ :: ..");
        assert_eq!(losses("", &[odd]), []);
    }

    #[test]
    fn lists_are_short_and_lead_with_what_was_named_most_often() {
        let text: Vec<String> = (0..100).map(|n| format!("name_{n}")).collect();
        let text = format!("{} name_50 {}", text.join(" "), "x".repeat(300) + "/a.rs");
        let losses = losses("name_1", &[says(Role::Assistant, &text)]);
        assert_eq!((losses[0].kept, losses[0].of, losses[0].lost.len()), (1, 100, LISTED));
        assert_eq!(losses[0].lost[0], "name_50");
    }
}
