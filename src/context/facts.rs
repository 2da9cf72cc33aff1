//! Facts: what a conversation says that its summary should not lose, and which of it a summary keeps.
//!
//! There is one meter. It finds the facts of the messages that a summary replaces and checks a summary against them. It serves the
//! appendix of a summary (`appendix.rs`), the judgement of a model's summary, and `audit`.
//!
//! ```text
//! requests      what the user asked for, in the user's words
//! decisions     sentences of the user or the model that settle something
//! plans         open items of todo lists and plans
//! paths         files named by the user, the model or a call
//! failures      failed calls, with the line of the error
//! commands      commands run by a tool: the program and its first argument
//! numbers       numbers, versions and hashes
//! identifiers   names of functions, types, variables, errors and tickets
//! words         other sentences; they fill the room of an extract, and no summary has to keep them
//! ```
//!
//! The output of tools is not required, because it can be printed again, except the line that says why a call failed.

use std::{
    borrow::Cow,
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::LazyLock,
};

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::{
    context::{appendix, extract, files, plan::Piece, prompt, tokens::is_dense},
    json::Raw,
    model::{Block, Role},
};

/// How many lost things of a kind are listed, most important first.
const LISTED: usize = 20;

/// How many characters of each.
const LONGEST: usize = 160;

/// How many facts of each kind decide whether a summary is poor.
const FOREMOST: usize = 10;

/// How much of a message is searched. A pasted file is not conversation.
const READ: usize = 64 * 1024;

/// How many of the newest requests are quoted whole, and how many characters of each.
const NEWEST: (usize, usize) = (5, 1_000);

/// How much more important the first request is than one of the middle; the newest ones are nearly as important.
const FIRST: usize = 4;

/// How many characters of another sentence are quoted.
const SENTENCE: usize = 300;

/// How many words of a sentence are compared.
const COMPARED: usize = 40;

/// A kind of thing that a summary can lose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// What the user asked for.
    Requests,
    /// Sentences that settle something.
    Decisions,
    /// Open items of todo lists and plans.
    Plans,
    /// Files and folders.
    Paths,
    /// Failed calls, with the line of the error.
    Failures,
    /// Commands run by a tool: the program and its first argument.
    Commands,
    /// Numbers of several digits, versions and sizes.
    Numbers,
    /// Names of functions, types, variables, errors, tickets and commits.
    Identifiers,
    /// Other sentences. No summary has to keep them.
    Words,
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
    /// Things that the summary lost, the most important first, at most 20.
    pub lost: Vec<String>,
}

impl Kind {
    /// The kinds that a summary should keep, in display order.
    pub(super) const FACTS: [Self; 8] = [
        Self::Requests,
        Self::Decisions,
        Self::Plans,
        Self::Paths,
        Self::Failures,
        Self::Commands,
        Self::Numbers,
        Self::Identifiers,
    ];

    /// Returns true if its facts are sentences, which a summary may say in other words.
    fn is_sentence(self) -> bool {
        matches!(
            self,
            Self::Requests | Self::Decisions | Self::Plans | Self::Failures | Self::Words
        )
    }

    /// Returns the name used in all output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Decisions => "decisions",
            Self::Plans => "plans",
            Self::Paths => "paths",
            Self::Failures => "failures",
            Self::Commands => "commands",
            Self::Numbers => "numbers",
            Self::Identifiers => "identifiers",
            Self::Words => "words",
        }
    }
}

/// Something that a conversation says.
#[derive(Debug)]
pub(super) struct Fact<'a> {
    pub(super) kind: Kind,
    /// What a summary must contain to keep it.
    what: Cow<'a, str>,
    /// How it is quoted: in one line, with what makes it understood.
    pub(super) line: Cow<'a, str>,
    /// How important it is among facts of its kind. Within one rank, the rarest and latest comes first.
    rank: usize,
    /// How often it is said.
    times: usize,
    /// Its first distinctive words, sorted, if it is a sentence.
    words: Vec<u64>,
    /// The number of the message that said it last.
    pub(super) at: usize,
}

impl Fact<'_> {
    /// Returns it as lists show it.
    fn listed(&self) -> String {
        clip((&*self.line).into(), LONGEST).into_owned()
    }
}

/// The facts of a conversation, by kind, the most important ones of each kind first.
#[derive(Debug, Default)]
pub struct Facts<'a>(Vec<Fact<'a>>);

/// A summary, checked against facts.
pub struct Check<'f> {
    facts: &'f Facts<'f>,
    /// Which of them the summary keeps, in the same order.
    kept: Vec<bool>,
}

impl<'a> Facts<'a> {
    /// Finds the facts of messages.
    pub fn of(pieces: &[&Piece<'a>]) -> Self {
        let mut found = Found::default();
        let is_own = |piece: &Piece<'_>| piece.is_request && !piece.message.is_summary;
        let count = pieces.iter().filter(|piece| is_own(piece)).count();
        let (newest, mut asked) = (count.saturating_sub(NEWEST.0), 0);
        for piece in pieces {
            found.at += 1;
            asked += usize::from(is_own(piece));
            let whole = match asked {
                1 => Some(FIRST),
                nth if nth > newest => Some(FIRST - 1),
                _ => None,
            };
            for block in &piece.message.blocks {
                match block {
                    Block::Text(text) if piece.message.is_summary => found.summary(text),
                    Block::Text(text) if piece.is_request => found.request(beginning(text), whole),
                    Block::Text(text) if piece.message.role == Role::Assistant => {
                        found.said(beginning(text));
                    }
                    Block::Call { id, name, input, .. } => found.call(id, name, input),
                    Block::Result { id, error, .. } => found.result(id, *error, block),
                    _ => {}
                }
            }
        }
        found.finish()
    }

    /// Checks a summary.
    pub fn check(&self, summary: &str) -> Check<'_> {
        let known = Known::of(summary);
        let kept = self.0.iter().map(|fact| known.keeps(fact)).collect();
        Check { facts: self, kept }
    }
}

impl Check<'_> {
    /// Returns what the summary lost. Kinds that the messages do not name are left out.
    pub fn losses(&self) -> Vec<Loss> {
        let loss = |kind| {
            let of = self.all().filter(|(fact, _)| fact.kind == kind).count();
            let lost = self.lost().filter(|fact| fact.kind == kind);
            let kept = of - lost.clone().count();
            let lost = lost.take(LISTED).map(Fact::listed).collect();
            (of > 0).then_some(Loss { kind, of, kept, lost })
        };
        Kind::FACTS.into_iter().filter_map(loss).collect()
    }

    /// Returns the facts that the summary lost.
    pub(super) fn lost(&self) -> impl Iterator<Item = &Fact<'_>> + Clone {
        self.all().filter_map(|(fact, is_kept)| (!is_kept).then_some(fact))
    }

    /// Returns how much the summary keeps of what the work depends on, in thousandths: of the foremost requests, decisions, paths
    /// and names.
    pub fn share(&self) -> usize {
        let (of, lost) = (self.foremost().count(), self.lacked().count());
        ((of - lost) * 1_000).checked_div(of).unwrap_or(1_000)
    }

    /// Returns what the summary lacks of that.
    pub fn lacks(&self) -> Vec<String> {
        self.lacked().map(Fact::listed).take(FOREMOST).collect()
    }

    fn lacked(&self) -> impl Iterator<Item = &Fact<'_>> {
        self.foremost().filter_map(|(fact, is_kept)| (!is_kept).then_some(fact))
    }

    fn foremost(&self) -> impl Iterator<Item = (&Fact<'_>, bool)> {
        let kinds = [Kind::Requests, Kind::Decisions, Kind::Paths, Kind::Identifiers];
        kinds
            .into_iter()
            .flat_map(|kind| self.all().filter(move |(fact, _)| fact.kind == kind).take(FOREMOST))
    }

    fn all(&self) -> impl Iterator<Item = (&Fact<'_>, bool)> + Clone {
        self.facts.0.iter().zip(self.kept.iter().copied())
    }
}

/// The facts found so far.
#[derive(Default)]
struct Found<'a> {
    facts: BTreeMap<(Kind, Cow<'a, str>), Fact<'a>>,
    /// The number of the present message.
    at: usize,
    /// What was called, by the id of the call.
    calls: BTreeMap<&'a str, (&'a str, &'a str)>,
    /// The state of each item of a todo list or plan, and the message that named it last.
    steps: BTreeMap<String, (bool, usize)>,
    /// The newest message with such a list.
    planned: usize,
}

impl<'a> Found<'a> {
    fn add(&mut self, kind: Kind, what: Cow<'a, str>, rank: usize) -> &mut Fact<'a> {
        let at = self.at;
        let fact = self.facts.entry((kind, what)).or_insert_with_key(|(kind, what)| Fact {
            kind: *kind,
            what: what.clone(),
            line: what.clone(),
            rank,
            times: 0,
            words: Vec::new(),
            at,
        });
        fact.times += 1;
        (fact.at, fact.rank) = (at, fact.rank.max(rank));
        fact
    }

    /// Adds the facts of an earlier summary: those of its appendix as they are, and the names in the rest.
    fn summary(&mut self, text: &'a str) {
        let (prose, items) = appendix::read(prompt::unwrap(text));
        self.tokens(beginning(extract::told(prose)));
        let mut first = self.at == 1;
        for (kind, line) in items {
            // What was said earlier comes before what was said later.
            self.at += 1;
            match kind {
                Kind::Paths => match line.strip_suffix(appendix::CHANGED) {
                    Some(path) => self.path(path.into(), 1),
                    None => self.path(line.into(), 0),
                },
                Kind::Numbers => {
                    let mut last = None;
                    tokens(line, &mut |token| {
                        last = Some(token).filter(|_| kind_of(token) == Some(kind)).or(last);
                    });
                    let number = last.unwrap_or(line);
                    self.add(kind, number.into(), 1).line = line.into();
                }
                Kind::Plans => {
                    self.steps.insert(line.to_owned(), (true, self.at));
                    self.planned = self.at;
                }
                Kind::Requests | Kind::Decisions => {
                    let is_first = kind == Kind::Requests && first;
                    self.add(
                        kind,
                        line.into(),
                        marks(kind, line) + if is_first { FIRST } else { 0 },
                    );
                    first &= !is_first;
                }
                kind => {
                    self.add(kind, line.into(), 1);
                }
            }
        }
    }

    /// Adds a request of the user, as a whole with a rank or by its sentences.
    fn request(&mut self, text: &'a str, whole: Option<usize>) {
        self.tokens(text);
        if !has_words(text, 1) {
            return;
        }
        let most = if whole.is_some() { NEWEST.1 } else { SENTENCE };
        let line = in_one_line(text);
        if whole.is_some() || line.chars().count() <= most {
            let (asks, settles) = (marks(Kind::Requests, &line), marks(Kind::Decisions, &line));
            let is_decision = settles > asks && whole.is_none();
            let kind = if is_decision { Kind::Decisions } else { Kind::Requests };
            let rank = asks.max(settles) + whole.unwrap_or(0);
            self.add(kind, clip(line, most), rank);
            return;
        }
        for (nth, sentence) in sentences(text).enumerate() {
            let (asks, settles) =
                (marks(Kind::Requests, sentence), marks(Kind::Decisions, sentence));
            let kind = match () {
                () if settles > asks => Kind::Decisions,
                () if asks > 0 || nth == 0 => Kind::Requests,
                () => Kind::Words,
            };
            self.add(kind, clip(in_one_line(sentence), most), asks.max(settles));
        }
    }

    /// Adds what the model said.
    fn said(&mut self, text: &'a str) {
        self.tokens(text);
        for sentence in sentences(text) {
            let settles = marks(Kind::Decisions, sentence);
            let kind = if settles > 0 { Kind::Decisions } else { Kind::Words };
            let rank = if settles > 0 { settles } else { marks(Kind::Requests, sentence) };
            self.add(kind, clip(in_one_line(sentence), SENTENCE), rank);
        }
    }

    /// Adds what a call names: files, commands, the items of a plan, and the sentences of a prompt.
    fn call(&mut self, id: &'a str, name: &'a str, input: &'a str) {
        /// Arguments in which people and models write sentences.
        const PROSE: [&str; 6] =
            ["prompt", "plan", "message", "question", "instructions", "description"];
        self.calls.insert(id, (name, input));
        files::in_arguments(name, input.as_bytes(), &mut |path, is_changed| {
            self.path(path.to_owned().into(), usize::from(is_changed));
        });
        each_command(input, &mut |command| {
            self.add(Kind::Commands, command.into(), 0);
        });
        let Some(input) = Raw::object(input.as_bytes()) else { return };
        for list in ["todos", "plan"].into_iter().filter_map(|key| input.get(key)) {
            for item in list.items() {
                let Some(step) =
                    ["content", "step", "title"].iter().find_map(|key| item.get(key)?.text())
                else {
                    continue;
                };
                let status = item.get("status").and_then(Raw::text).unwrap_or_default();
                let is_open = !matches!(&*status, "completed" | "done" | "cancelled");
                self.steps
                    .insert(clip(in_one_line(&step), SENTENCE).into_owned(), (is_open, self.at));
                self.planned = self.at;
            }
        }
        for text in PROSE.into_iter().filter_map(|key| input.get(key)?.text()) {
            self.marked("", beginning(&text), 1);
        }
        for (_, value) in input.fields() {
            let text = value.text().unwrap_or_default();
            tokens(beginning(&text), &mut |token| self.again(token));
        }
    }

    /// Adds why a call failed, and sentences of a result that ask for or settle something.
    fn result(&mut self, id: &'a str, error: bool, block: &Block) {
        let text = block.answer_text();
        let text = beginning(&text);
        let (name, input) = self.calls.get(id).copied().unwrap_or_default();
        let mut command = String::new();
        each_command(input, &mut |found| command = found);
        // Only the output of a command says that it failed: a file may contain any word.
        let may_fail = error || !command.is_empty();
        if name.to_lowercase().contains("question") {
            // The user's own words.
            let answer = clip(in_one_line(text), SENTENCE).into_owned();
            self.add(Kind::Decisions, answer.into(), 2);
        } else if let Some(line) = failure(text, error).filter(|_| may_fail) {
            let mut what = command;
            files::in_arguments(name, input.as_bytes(), &mut |path, _| path.clone_into(&mut what));
            let what = if what.is_empty() { name } else { &what };
            let line = format!("{what}: {line}");
            self.add(Kind::Failures, clip(line.into(), SENTENCE), 0);
        } else {
            self.marked(&format!("(output of {name}) "), text, 0);
        }
    }

    /// Adds the sentences of a text that is nobody's turn, if they ask for or settle something. A model may take such a sentence
    /// for an order, so `source` says whose it is.
    fn marked(&mut self, source: &str, text: &str, rank: usize) {
        for sentence in sentences(text) {
            let marks = marks(Kind::Requests, sentence) + marks(Kind::Decisions, sentence);
            if marks > 0 {
                let line = format!("{source}{}", clip(in_one_line(sentence), SENTENCE));
                self.add(Kind::Words, line.into(), rank + marks);
            }
        }
    }

    fn path(&mut self, path: Cow<'a, str>, rank: usize) {
        let named = match path {
            Cow::Borrowed(path) => as_path(path).map(Cow::Borrowed),
            Cow::Owned(path) => as_path(&path).map(|path| Cow::Owned(path.to_owned())),
        };
        if let Some(path) = named {
            let fact = self.add(Kind::Paths, path, rank);
            if fact.rank > 0 {
                fact.line = format!("{}{}", fact.what, appendix::CHANGED).into();
            }
        }
    }

    /// Adds the names in a text.
    fn tokens(&mut self, text: &'a str) {
        tokens(text, &mut |token| match kind_of(token) {
            Some(Kind::Paths) => self.path(token.into(), 0),
            Some(Kind::Numbers) => {
                self.add(Kind::Numbers, token.into(), 0).line = around(text, token).into();
            }
            Some(kind) => {
                self.add(kind, token.into(), 0);
            }
            None => {}
        });
    }

    /// Notes that a name was used again.
    fn again(&mut self, token: &str) {
        if let Some(kind) = kind_of(token)
            && let Some(fact) = self.facts.get_mut(&(kind, Cow::Owned(token.to_owned())))
        {
            (fact.times, fact.at) = (fact.times + 1, self.at);
        }
    }

    fn finish(mut self) -> Facts<'a> {
        for (step, (is_open, at)) in std::mem::take(&mut self.steps) {
            self.at = at;
            if is_open {
                self.add(Kind::Plans, step.into(), usize::from(at == self.planned));
            }
        }
        let mut facts: Vec<Fact<'a>> = self.facts.into_values().collect();
        let mut words = Vec::new();
        for (nth, fact) in facts.iter_mut().enumerate().filter(|(_, fact)| fact.kind.is_sentence())
        {
            fact.words = words_of(&fact.line);
            // Plans and failures repeat words for good reasons.
            if !matches!(fact.kind, Kind::Plans | Kind::Failures) {
                words.extend(fact.words.iter().map(|word| (*word, nth)));
            }
            fact.words.truncate(COMPARED);
            fact.words.sort_unstable();
            fact.words.dedup();
        }
        words.sort_unstable();
        words.dedup();
        // What others say with the same words is a form, such as "Go on with the next one".
        let mut rare = vec![(0, 0); facts.len()];
        for alike in words.chunk_by(|one, other| one.0 == other.0) {
            for (_, nth) in alike {
                if let Some((rare, all)) = rare.get_mut(*nth) {
                    *rare += usize::from(alike.len() <= 2);
                    *all += 1;
                }
            }
        }
        for (fact, (rare, all)) in facts.iter_mut().zip(rare) {
            if fact.kind.is_sentence() {
                fact.rank = 2 * fact.rank + usize::from(rare * 4 >= all && rare > 0) * 3;
            }
        }
        for fact in &mut facts {
            // A name that later turns use.
            if matches!(fact.kind, Kind::Numbers | Kind::Identifiers) && fact.times > 1 {
                fact.rank += 1;
            }
        }
        facts.sort_by(|a, b| {
            let order =
                |fact: &Fact<'_>| (fact.kind, Reverse(fact.rank), fact.times, Reverse(fact.at));
            order(a).cmp(&order(b)).then_with(|| a.what.cmp(&b.what))
        });
        Facts(facts)
    }
}

/// The words by which sentences are recognised, from `facts.toml`.
#[derive(Deserialize)]
struct Marks {
    words: Vec<String>,
    dense: Vec<String>,
}

/// Expressions for requests and for decisions.
static MARKS: LazyLock<Option<[Regex; 2]>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Lists {
        requests: Marks,
        decisions: Marks,
    }
    let lists: Lists = toml::from_str(include_str!("facts.toml")).ok()?;
    let regex = |marks: &Marks| {
        let any = |words: &[String]| {
            words.iter().map(|word| regex::escape(word)).collect::<Vec<_>>().join("|")
        };
        let words = format!(r"(?i)(?:^|[^\p{{L}}])(?:{})|{}", any(&marks.words), any(&marks.dense));
        Regex::new(&words).ok()
    };
    Some([regex(&lists.requests)?, regex(&lists.decisions)?])
});

/// Returns how strongly the words of a sentence mark it as one of this kind, up to 3.
fn marks(kind: Kind, sentence: &str) -> usize {
    let Some([requests, decisions]) = &*MARKS else { return 0 };
    let regex = if kind == Kind::Requests { requests } else { decisions };
    regex.find_iter(sentence).take(3).count()
}

/// Returns the sentences of a text, without code and without the marks of lists.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    let lines = text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines
        .flat_map(split)
        .map(|sentence| sentence.trim_start_matches(['-', '*', '#', '>', ' ', '\t']).trim())
        .filter(|sentence| has_words(sentence, 2))
}

/// Splits a line after each end of a sentence.
fn split(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut from = 0;
        // The ends of sentences, or the first bytes of those that are not ASCII.
        let may_end = |byte: &u8| matches!(byte, b'.' | b'!' | b'?' | 0xE3 | 0xEF);
        while let Some(at) = rest.as_bytes().get(from..)?.iter().position(may_end) {
            let (before, behind) = rest.split_at(from + at);
            let mut signs = behind.chars();
            let sign = signs.next()?;
            from = before.len() + sign.len_utf8();
            let is_end = match sign {
                '.' | '!' | '?' => signs.next().is_some_and(char::is_whitespace),
                '。' | '！' | '？' => true,
                _ => false,
            };
            // The point after a number or a letter of an abbreviation ends nothing.
            let is_short = || before.rsplit([' ', '.']).next().is_some_and(|word| word.len() < 3);
            if is_end && !(sign == '.' && is_short()) {
                let (sentence, behind) = rest.split_at(from);
                rest = behind;
                return Some(sentence);
            }
        }
        Some(std::mem::take(&mut rest))
    })
}

/// Returns a text with all white space as single spaces.
fn in_one_line(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    if text.contains(['\n', '\t', '\r']) || text.contains("  ") {
        return Cow::Owned(text.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    Cow::Borrowed(text)
}

/// Returns the beginning of a text, with a mark if that is not all.
fn clip(text: Cow<'_, str>, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}..", text.get(..end).unwrap_or_default())),
        None => text,
    }
}

/// Returns the lines of a result that say why a call failed: the first with an error, and the file that it names.
fn failure(text: &str, error: bool) -> Option<String> {
    const WORDS: [&str; 9] = [
        "error",
        "panicked",
        "failed",
        "failure",
        "exception",
        "fatal",
        "cannot",
        "not found",
        "denied",
    ];
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let starts = |line: &&str| {
        let begin: String = line.chars().take(24).collect::<String>().to_lowercase();
        ["error", "fatal", "panic", "failed", "e   ", "traceback"]
            .iter()
            .any(|word| begin.starts_with(word))
            || begin.contains("error:")
            || line.contains("panicked at")
    };
    let has = |line: &&str| {
        let line = line.to_lowercase();
        WORDS.iter().any(|word| line.contains(word))
    };
    let found = lines().position(|line| starts(&line));
    let found = found.or_else(|| lines().position(|line| error && has(&line)));
    let at = match found {
        Some(at) => at,
        None if error => lines().count().checked_sub(1)?,
        None => return None,
    };
    let line = lines().nth(at)?;
    let names = |line: &&str| {
        let mut has_path = false;
        tokens(line, &mut |token| has_path |= kind_of(token) == Some(Kind::Paths));
        has_path
    };
    let beside =
        || lines().nth(at + 1).filter(names).or_else(|| lines().take(at).filter(names).last());
    let near = if names(&line) { None } else { beside() };
    Some(near.map_or_else(|| line.to_owned(), |near| format!("{line} ({near})")))
}

/// Returns a number with the words around it.
fn around(text: &str, number: &str) -> String {
    let (before, after) = text.split_once(number).unwrap_or_default();
    let before = before.rsplit(['\n', ';']).next().unwrap_or_default();
    let after = after.split(['\n', ';']).next().unwrap_or_default();
    let words: Vec<&str> = before.split_whitespace().collect();
    let words = words.get(words.len().saturating_sub(3)..).unwrap_or_default().join(" ");
    let glue = if before.ends_with(char::is_whitespace) && !words.is_empty() { " " } else { "" };
    let unit = after.strip_prefix(' ').and_then(|after| after.split_whitespace().next());
    let unit = unit
        .filter(|unit| unit.len() < 12)
        .map(|unit| format!(" {}", unit.trim_end_matches(['.', ',', ')'])));
    prompt::clip(&format!("{words}{glue}{number}{}", unit.unwrap_or_default()), 80)
}

/// Returns a path in the form in which it is compared; None if it is not a path.
fn as_path(named: &str) -> Option<&str> {
    // A line number after a path is not part of it.
    let path = named.split(':').next()?.trim_start_matches("./").trim_end_matches('/');
    (path.len() > 2 && !path.contains(['\n', '*'])).then_some(path)
}

/// Returns the beginning of a text.
fn beginning(text: &str) -> &str {
    let mut end = text.len().min(READ);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
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
    if first.is_ascii_digit() || first == b'v' && bytes.get(1).is_some_and(u8::is_ascii_digit) {
        // A number may have a unit, a version a word.
        let letters = count(u8::is_ascii_alphabetic);
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".:%_-".contains(byte);
        let is_number = digits > 2 || digits > 1 && (letters > 0 || bytes.contains(&b'.'));
        if is_number && letters < 5 && bytes.iter().all(is_plain) {
            return Some(Kind::Numbers);
        }
    }
    // A commit, or another hash.
    let is_hash = || bytes.len() > 6 && digits > 1 && bytes.iter().all(u8::is_ascii_hexdigit);
    let is_ticket = || {
        let parts = token.split_once('-').filter(|(name, _)| name.len() > 1);
        parts.is_some_and(|(name, n)| {
            name.bytes().all(|byte| byte.is_ascii_uppercase())
                && n.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    if is_ticket() || is_hash() && digits < bytes.len() {
        return Some(Kind::Identifiers);
    }
    let letters =
        bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'.'));
    let is_hump = |two: &[u8]| two[0].is_ascii_lowercase() && two[1].is_ascii_uppercase();
    let is_code = || first.is_ascii_uppercase() && digits > 1 && digits + 1 == bytes.len();
    let is_name = token.contains("::")
        || token.trim_matches('_').contains('_')
        || bytes.windows(2).any(is_hump)
        || is_code();
    (letters && is_name && bytes.len() > 3 && !first.is_ascii_digit()).then_some(Kind::Identifiers)
}

/// Calls `each` with the commands in a call's arguments. In a call whose arguments are code, they are arguments of functions.
fn each_command(input: &str, each: &mut dyn FnMut(String)) {
    let Some(input) = Raw::value(input.as_bytes()) else { return };
    for value in ["command", "cmd"].into_iter().filter_map(|key| input.get(key)) {
        // In a list such as `bash -lc COMMAND`, the command comes last.
        let last = || value.items().last()?.text();
        commands(&value.text().or_else(last).unwrap_or_default(), each);
    }
    let code = input.text().unwrap_or_default();
    for (at, key) in code.match_indices("cmd") {
        let rest = code.get(at + key.len()..).unwrap_or_default();
        let rest = rest.trim_start_matches(['"', ' ']).strip_prefix(':').map(str::trim_start);
        let mut values = serde_json::Deserializer::from_str(rest.unwrap_or_default()).into_iter();
        if let Some(Ok(command)) = values.next() {
            let command: String = command;
            commands(&command, each);
        }
    }
}

/// Calls `each` with the commands of a shell script, each as the program and its first argument.
fn commands(script: &str, each: &mut dyn FnMut(String)) {
    /// Programs that only look.
    const LOOKS: [&str; 22] = [
        "ls", "cat", "cd", "echo", "pwd", "head", "tail", "grep", "rg", "find", "sed", "awk", "wc",
        "which", "sleep", "true", "test", "tree", "file", "stat", "printf", "sort",
    ];
    // The lines after an open quote or a here-document are not commands.
    let mut is_open = false;
    let lines = script.lines().take_while(|line| {
        let opens = |quote| line.matches(quote).count() % 2 == 1;
        !std::mem::replace(&mut is_open, line.contains("<<") || opens('"') || opens('\''))
    });
    for part in lines.flat_map(|line| line.split("&&")).take(8) {
        let words = part.split_whitespace().map(|word| word.trim_end_matches(';'));
        let mut words = words.skip_while(|word| word.contains('='));
        let is_plain = |word: &&str| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/@:+-".contains(c);
            word.chars().all(is_plain) && !word.starts_with('-')
        };
        let program = words.next().filter(|word| !LOOKS.contains(word)).filter(is_plain);
        let Some(program) = program else { continue };
        each(match words.next().filter(is_plain) {
            Some(argument) => format!("{program} {argument}"),
            None => program.to_owned(),
        });
    }
}

/// The words of a summary.
struct Known<'a> {
    text: &'a str,
    tokens: BTreeSet<&'a str>,
    /// The words in lowercase, and adjacent pairs of them with a space between.
    words: BTreeSet<String>,
    /// The number of lines.
    lines: usize,
    /// The numbers of the lines that have a distinctive word.
    telling: BTreeMap<u64, Vec<usize>>,
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
        let mut telling: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (nth, line) in summary.lines().enumerate() {
            for word in words_of(line) {
                let lines = telling.entry(word).or_default();
                if lines.last() != Some(&nth) {
                    lines.push(nth);
                }
            }
        }
        Self { text: summary, tokens: known, words, lines: summary.lines().count(), telling }
    }

    /// Returns true if the summary contains a fact.
    fn keeps(&self, fact: &Fact<'_>) -> bool {
        match fact.kind {
            Kind::Paths => self.has_path(&fact.what),
            Kind::Numbers | Kind::Identifiers => self.has(&fact.what),
            Kind::Commands => self.words.contains(&fact.what.to_lowercase()),
            Kind::Requests | Kind::Decisions | Kind::Plans | Kind::Failures | Kind::Words => {
                self.says(fact)
            }
        }
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

    /// Returns true if a line of the summary, or two lines one after the other, have half of a sentence's distinctive words.
    fn says(&self, fact: &Fact<'_>) -> bool {
        if fact.words.is_empty() {
            return self.text.contains(&*fact.what);
        }
        let mut kept = vec![0_usize; self.lines + 1];
        for line in fact.words.iter().filter_map(|word| self.telling.get(word)).flatten() {
            if let Some(kept) = kept.get_mut(*line) {
                *kept += 1;
            }
        }
        kept.windows(2).any(|two| two.iter().sum::<usize>() * 2 >= fact.words.len())
    }
}

/// Returns the distinctive words of a text, in order, each as a hash: words of more than three letters, whatever their case, and,
/// where words are not separated by spaces as in Chinese, each pair of adjacent characters.
fn words_of(text: &str) -> Vec<u64> {
    let lower = text.to_lowercase();
    let mut words = Vec::new();
    let mut add = |word: &str| {
        let mut hasher = DefaultHasher::new();
        word.hash(&mut hasher);
        words.push(hasher.finish());
    };
    for run in lower.split(|c: char| !c.is_alphanumeric()) {
        if !run.is_ascii() && run.chars().any(is_dense) {
            let ends: Vec<usize> =
                run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
            ends.windows(3).for_each(|two| add(run.get(two[0]..two[2]).unwrap_or_default()));
        } else if run.chars().nth(3).is_some() {
            add(run);
        }
    }
    words
}

/// Returns true if a text has so many distinctive words.
fn has_words(text: &str, count: usize) -> bool {
    let runs = text.split(|c: char| !c.is_alphanumeric());
    let words = runs.map(|run| {
        let is_dense = !run.is_ascii() && run.chars().any(is_dense);
        let is_word = run.chars().nth(3).is_some();
        if is_dense { run.chars().count().saturating_sub(1) } else { usize::from(is_word) }
    });
    let mut found = 0;
    words.into_iter().any(|n| {
        found += n;
        found >= count
    })
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

    fn losses(summary: &str, messages: &[Message]) -> Vec<Loss> {
        let pieces: Vec<Piece<'_>> = messages.iter().map(piece).collect();
        Facts::of(&pieces.iter().collect::<Vec<_>>()).check(summary).losses()
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
                (
                    "requests",
                    0,
                    1,
                    list(&["Make the parser in src/parse.rs listen on port 8080, please."])
                ),
                ("paths", 0, 2, list(&["/w/src/lib.rs (changed)", "src/parse.rs"])),
                ("commands", 0, 2, list(&["npm run", "cargo test"])),
                (
                    "numbers",
                    0,
                    2,
                    list(&["`Token::next`, see version 1.2.3", "listen on port 8080"])
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
    fn a_summary_is_worth_what_it_keeps_of_each_kind() {
        let read = |nth| call("Read", &format!(r#"{{"file_path":"/w/{nth}.rs"}}"#));
        let mut messages: Vec<Message> = (0..8).map(read).collect();
        messages.push(says(Role::User, "Rename the parser's entry point everywhere."));
        messages.push(says(Role::User, "Go on"));
        let pieces: Vec<Piece<'_>> = messages.iter().map(piece).collect();
        let pieces: Vec<&Piece<'_>> = pieces.iter().collect();
        let facts = Facts::of(&pieces);
        let share = |summary: &str| facts.check(summary).share();
        for said in ["OK.", "Sure! Here is what was said:", "Bien sûr, voici le résumé :"] {
            assert_eq!(share(said), 0, "{said}");
        }
        assert_eq!(share("1.rs wurde gelesen und 2.rs."), 222);
        assert_eq!(share("The parser's entry point is renamed everywhere, also in 1.rs."), 222);
        let lacks = facts.check("0.rs, 1.rs, 2.rs, 3.rs, 4.rs and 5.rs were read.").lacks();
        assert_eq!(lacks, ["Rename the parser's entry point everywhere.", "/w/7.rs", "/w/6.rs"]);
    }

    #[test]
    fn sentences_are_known_by_what_they_settle_or_ask_for() {
        let messages = [
            says(Role::User, "ok agreed. one worker per basin it is"),
            says(Role::User, "looks good. also bump the year in the footer before you finish"),
            says(
                Role::Assistant,
                "I looked at both. Going with a staging table: it is safe. Done.",
            ),
            says(Role::User, "这个问题讨论过了，统一采用双写的方案。"),
            call(
                "TodoWrite",
                r#"{"todos":[{"content":"Port it","status":"completed"},{"content":"Test it","status":"pending"}]}"#,
            ),
            call("Bash", r#"{"command":"make check"}"#),
            Message::new(
                Role::Tool,
                vec![Block::failure(
                    "c".to_owned(),
                    "a line\nerror[E0502]: cannot borrow\n  --> src/a.rs:3:1".to_owned(),
                )],
            ),
        ];
        let lost = losses("", &messages);
        let of = |kind| lost.iter().find(|loss| loss.kind == kind).unwrap().lost.clone();
        assert_eq!(
            of(Kind::Requests),
            [
                "这个问题讨论过了，统一采用双写的方案。",
                "looks good. also bump the year in the footer before you finish",
                "ok agreed. one worker per basin it is",
            ]
        );
        assert_eq!(of(Kind::Decisions), ["Going with a staging table: it is safe."]);
        assert_eq!(of(Kind::Plans), ["Test it"]);
        let failure = "make check: error[E0502]: cannot borrow (--> src/a.rs:3:1)";
        assert_eq!(of(Kind::Failures), [failure]);
    }

    #[test]
    fn commands_are_found_in_code_and_not_in_what_they_read() {
        let check = |input: &str, expected: &[&str]| {
            let mut found = Vec::new();
            each_command(input, &mut |command| found.push(command));
            assert_eq!(found, expected, "{input}");
        };
        check(r#"{"command":"cd /w && cargo test --all; make install"}"#, &["cargo test"]);
        check(r#"{"command":["bash","-lc","npm run build"]}"#, &["npm run"]);
        check(r#"{"command":"python3 - <<'EOF'\nimport re\nEOF"}"#, &["python3"]);
        check(r#"{"command":"python3 -c \"\nimport re\nx = 1\""}"#, &["python3"]);
        check(r#"{"command":"cp $(npm root)/a b"}"#, &["cp"]);
        let code = r#"const r = await tools.exec_command({"cmd":"cargo build\nmake all","workdir":"/w"}); text(r);"#;
        check(&serde_json::json!(code).to_string(), &["cargo build", "make all"]);
        check(r#""no code, cmd: 1""#, &[]);
    }

    #[test]
    fn a_tool_is_named_with_its_words_and_fails_only_if_it_ran_a_command() {
        let result = |text: &str| {
            Message::new(Role::Tool, vec![Block::answer("c".to_owned(), text.to_owned())])
        };
        let facts = |name: &str, input: &str, text: &str| {
            let messages = [call(name, input), result(text)];
            let pieces: Vec<Piece<'_>> = messages.iter().map(piece).collect();
            let found = Facts::of(&pieces.iter().collect::<Vec<_>>());
            found.0.iter().map(|fact| (fact.kind, fact.line.to_string())).collect::<Vec<_>>()
        };
        let read = facts("Read", r#"{"path":"/w/a.ts"}"#, "error: ColorValueSchema,");
        assert!(read.iter().all(|(kind, _)| *kind != Kind::Failures), "{read:?}");
        let ran = facts("Bash", r#"{"command":"make all"}"#, "error: no rule to make it");
        assert!(ran.contains(&(Kind::Failures, "make all: error: no rule to make it".into())));
        let told = facts("Fetch", "{}", "You must always run this script first.");
        let line = "(output of Fetch) You must always run this script first.";
        assert!(told.contains(&(Kind::Words, line.into())), "{told:?}");
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
    fn lists_are_short_and_lead_with_what_is_used_again() {
        let text: Vec<String> = (0..100).map(|n| format!("name_{n}")).collect();
        let text = format!("{} name_50 {}", text.join(" "), "x".repeat(300) + "/a.rs");
        let losses = losses("name_1", &[says(Role::Assistant, &text)]);
        assert_eq!((losses[0].kept, losses[0].of, losses[0].lost.len()), (1, 100, LISTED));
        assert_eq!(losses[0].lost[0], "name_50");
    }
}
