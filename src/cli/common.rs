//! Helpers that several commands share: parsers of argument values, short ids, number formats, and reports of a change.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use anyhow::anyhow;
use undertext::context::cut::{KEPT, Limit};
use undertext::model::{self, Card, EntryId};
use undertext::report::{Changed, Done, Hint, Line, Report, UnreadPart, UnreadSession};
use undertext::store::Within;
use undertext::verbs::{self, Archive, Case, Damaged, Kin, Manner, Pattern, Session, Words};
use undertext::wire;

use super::env::Env;
use super::{CommandError, Context, Exit, Opened};
pub(crate) use crate::render::safe::path as shown;
use crate::render::table::Table;
use crate::render::units::{DIGITS, grouped};
use crate::render::{json, safe, wrap};

/// Maximum width of the line that names a session, even on a wider terminal.
const WIDEST: usize = 80;

/// Maximum length of a shortened id. Ids that share more digits are shown whole.
const MOST_DIGITS: usize = 13;

pub(crate) fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "it must be a whole number, 0 or more".to_owned())
}

/// Parses a literal search pattern.
pub(crate) fn pattern(words: &str) -> Result<Pattern, String> {
    Pattern::new(words, Words::Literal, Case::Smart).map_err(|unfit| unfit.to_string())
}

/// Parses the name of an agent or of its format.
pub(crate) fn format(text: &str) -> Result<String, String> {
    let plain = |name: &str| name.to_lowercase().replace([' ', '-', '_'], "");
    let wanted = plain(text);
    let is_meant = |format: &&&dyn wire::Format| {
        let traits = format.traits();
        let agents = traits.folders.iter().map(|folder| folder.agent);
        agents.chain([traits.name]).any(|name| plain(name) == wanted)
    };
    let found = wire::FORMATS.iter().find(is_meant).map(|format| format.traits().name.to_owned());
    let known = || wire::FORMATS.iter().map(|format| format.traits().name);
    found.ok_or_else(|| format!("use one of {}", known().collect::<Vec<_>>().join(", ")))
}

/// Parses a positive number of tokens, such as 200000 or 200k.
pub(crate) fn tokens(text: &str) -> Result<u64, String> {
    let scales = [('k', 1_000), ('K', 1_000), ('m', 1_000_000), ('M', 1_000_000)];
    let scaled = scales.iter().find_map(|(unit, scale)| Some((text.strip_suffix(*unit)?, scale)));
    match scaled {
        Some((number, scale)) => {
            let tokens = count::<u64>(number)?.checked_mul(*scale);
            tokens.ok_or_else(|| "the number is too large".to_owned())
        }
        None => count(text),
    }
}

/// Parses a positive number.
pub(crate) fn count<T: FromStr + Default + PartialEq>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number != T::default());
    let is_large =
        || text.bytes().all(|digit| digit.is_ascii_digit()) && text.contains(|c| c != '0');
    number.ok_or_else(|| {
        let why = if is_large() {
            "the number is too large"
        } else {
            "it must be a whole number, 1 or more"
        };
        why.to_owned()
    })
}

/// Checks the maximum length of a result, in characters.
pub(crate) fn limit(chars: usize) -> Result<Limit, CommandError> {
    if chars < KEPT {
        let chars = counted(chars as u64, "character", "characters");
        let why = anyhow!(
            "a limit of {chars} is too small: the minimum is {}; nothing was changed",
            grouped(KEPT as u64)
        );
        return Err(CommandError::user(why));
    }
    Ok(Limit::of_chars(chars))
}

/// How an agent's own file is written.
#[derive(Debug, clap::Args)]
pub(crate) struct Writing {
    /// Write even if an agent may have the session open
    #[arg(long)]
    force: bool,

    /// Write a new file even where appending would do
    #[arg(long)]
    rotate: bool,
}

impl Writing {
    /// Converts the options to the library's manner of writing.
    pub(crate) fn manner(&self, context: &Context) -> Manner {
        Manner { force: self.force, rotate: self.rotate, ..context.manner() }
    }
}

/// When a session is taken elsewhere.
#[derive(Debug, clap::Args)]
pub(crate) struct Delay {
    /// Save the change for your next undertext resume
    #[arg(long, conflicts_with_all = ["dry_run", "force"])]
    pub(crate) later: bool,
}

/// How a session is taken elsewhere.
#[derive(Debug, clap::Args)]
pub(crate) struct Moving {
    #[command(flatten)]
    pub(crate) writing: Writing,

    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Moving {
    /// Opens the session that is about to move; with `--dry-run`, without changing anything.
    pub(crate) fn begin(
        &self,
        context: &mut Context,
        wanted: Option<&OsStr>,
    ) -> Result<Opened, CommandError> {
        let mut opened =
            if self.dry_run { context.try_change(wanted)? } else { context.change(wanted)? };
        opened.archive.set_manner(self.writing.manner(context));
        Ok(opened)
    }
}

/// Formats an entry's id for people; `start` for none.
pub(crate) fn short(id: Option<EntryId>) -> String {
    id.map_or_else(|| "start".to_owned(), |id| format!("{id:.DIGITS$}"))
}

/// Shortens each id of a list as far as it stays unambiguous within the list.
pub(crate) fn short_ids(ids: &[&str]) -> Vec<String> {
    let mut heads: Vec<&str> = ids.iter().map(|id| id.split('/').next().unwrap_or(id)).collect();
    heads.sort_unstable();
    heads.dedup();
    let shared = |one: &str, other: &str| {
        one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count()
    };
    // The longest shared prefix is with a neighbour in sort order.
    let most = |head: &str| {
        let at = heads.partition_point(|other| *other < head);
        let next = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        next.filter_map(|at| heads.get(at)).map(|other| shared(head, other)).max().unwrap_or(0)
    };
    let short = |id: &&str| {
        let (head, agent) = id.split_once('/').unwrap_or((id, ""));
        let head = match most(head) + 1 {
            digits @ ..=MOST_DIGITS => beginning(head, digits.max(DIGITS)),
            _ => head.to_owned(),
        };
        if agent.is_empty() { head } else { format!("{head}/{}", beginning(agent, DIGITS)) }
    };
    ids.iter().map(short).collect()
}

/// Returns the first digits of an id.
pub(crate) fn beginning(id: &str, digits: usize) -> String {
    id.chars().take(digits).collect()
}

/// Describes which session another one derives from, and where they part.
pub(crate) fn kin_words(kin: &Kin) -> String {
    let at = kin.there.or(kin.here).map(|at| format!(", at {at:.8}")).unwrap_or_default();
    let gone = if kin.is_held { "" } else { " (not in the store)" };
    let continues =
        if kin.continues { "; its earlier history is there and is not shown" } else { "" };
    format!("{} {}{gone}{at}{continues}", kin.bond.words(), kin.session)
}

/// Returns a number with its noun.
pub(crate) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

pub(crate) fn capitalise(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Formats a title for lists. A title of maximum length was almost certainly cut, so it gets an ellipsis.
pub(crate) fn titled(title: Option<&str>) -> String {
    let title = title.unwrap_or("(no title)");
    let end = if title.chars().count() == Card::TITLE { "…" } else { "" };
    format!("{title}{end}")
}

/// Returns the first line with text.
pub(crate) fn first_line(text: &str) -> &str {
    model::first_line(text).unwrap_or_default()
}

impl Context {
    /// Returns true if a person can answer a question.
    pub(crate) fn can_ask(&self) -> bool {
        self.env.terminal.stdin && self.env.terminal.stderr && !self.json
    }

    /// Returns how files are written, from the folder of this command.
    pub(crate) fn manner(&self) -> Manner {
        let folder = self.env.current_dir.to_str().map(str::to_owned);
        Manner { folder, ..Manner::default() }
    }

    /// Tells people which session was changed, before any other output about the change.
    pub(crate) fn say_session(
        &mut self,
        archive: &Archive,
        session: &Session,
    ) -> Result<(), CommandError> {
        if self.output.is_quiet() || self.json {
            return Ok(());
        }
        let title = archive.store().card(session.key)?.title.unwrap_or_default();
        let title = safe::line(first_line(&title)).into_owned();
        let name = safe::line(&self.short_name(archive, session)?).into_owned();
        let (head, tail) = (format!("Session {name}"), format!("({})", session.name.format));
        let taken = safe::width(&head) + safe::width(&tail) + "    ".len();
        let room = self.output.columns().min(WIDEST).saturating_sub(taken);
        let title = safe::clip(&title, room);
        let parts = [head.as_str(), &title, &tail].into_iter().filter(|part| !part.is_empty());
        self.say(&parts.collect::<Vec<_>>().join("  "))
    }

    /// In JSON mode, writes the report. Returns true if it did.
    pub(crate) fn answer(&mut self, report: &impl Report) -> Result<bool, CommandError> {
        if self.json {
            json::line(&mut self.output, report)?;
        }
        Ok(self.json)
    }

    /// In JSON mode, writes the reports. Returns true if it did.
    pub(crate) fn answer_all<'a, T: Report + 'a>(
        &mut self,
        reports: impl IntoIterator<Item = &'a T>,
    ) -> Result<bool, CommandError> {
        for report in reports {
            self.answer(report)?;
        }
        Ok(self.json)
    }

    /// In JSON mode, writes the change with its session and returns true. Otherwise names the changed session.
    pub(crate) fn answer_change(
        &mut self,
        opened: &Opened,
        done: &impl Report,
    ) -> Result<bool, CommandError> {
        if !self.json {
            self.say_session(&opened.archive, &opened.session)?;
            return Ok(false);
        }
        let title = opened.archive.store().card(opened.session.key)?.title;
        self.answer(&Changed::of(&opened.session, title, done))
    }

    /// Prints a table for people. Programs get none.
    pub(crate) fn show<const N: usize>(&mut self, table: &Table<N>) -> Result<(), CommandError> {
        if self.json {
            return Ok(());
        }
        let (styles, width) = (self.output.styles(), self.output.width());
        Ok(table.write(&mut self.output, styles, width)?)
    }

    /// Prints a text for people, wrapped at words to the terminal's width. Programs get none.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), CommandError> {
        if self.json {
            return Ok(());
        }
        let text = wrap::fit(&safe::text(text), 0, self.output.width());
        Ok(writeln!(self.output, "{text}")?)
    }

    /// Reports damaged entries, and returns the exit code of a command that continued after them.
    pub(crate) fn tell_damaged(&mut self, damaged: &[Damaged]) -> Result<Exit, CommandError> {
        if !self.answer_all(damaged)? {
            for Damaged { entry, problem } in damaged {
                let id = entry.map(|id| format!("entry {id:.DIGITS$}"));
                let entry = id.as_deref().unwrap_or("an entry without an id");
                self.output.warn(&format!("{entry} is damaged: {problem}"));
            }
        }
        Ok(exit_of(self, damaged.is_empty()))
    }

    /// Reports sessions that could not be read in full, and returns the exit code of a command that continued after them.
    pub(crate) fn tell_unread_sessions(
        &mut self,
        unread: &[UnreadSession],
    ) -> Result<Exit, CommandError> {
        if !self.answer_all(unread)? {
            for UnreadSession { name, part, problem } in unread {
                let (id, format) = (&name.id, &name.format);
                let what = match part {
                    UnreadPart::Stored => "is damaged",
                    UnreadPart::LiveFile => "is shown as stored: its file cannot be read",
                };
                self.output.warn(&format!("session {id} ({format}) {what}: {problem}"));
            }
        }
        let damaged = unread.iter().any(|session| session.part == UnreadPart::Stored);
        let whole = exit_of(self, !damaged);
        Ok(if unread.is_empty() { whole } else { Exit::No })
    }
}

/// Returns the filter for sessions that work in a folder or below it. An agent may have written the folder as it is typed or
/// with its links resolved, and it may no longer exist.
pub(crate) fn within(env: &Env, folder: &Path) -> Within {
    let typed = plain(&env.shells_dir().join(folder));
    let lies = env.current_dir.join(folder);
    let real = fs::canonicalize(&lies).ok().or_else(|| resolve(&plain(&lies)));
    let mut names: Vec<PathBuf> = [typed].into_iter().chain(real).collect();
    names.dedup();
    let names = names.into_iter().map(|name| name.to_string_lossy().into_owned());
    Within::Below(names.collect())
}

/// Returns the name of a file that is not there yet, for a session.
pub(crate) fn free_name(context: &Context, opened: &Opened) -> Result<String, CommandError> {
    let stem = verbs::short_name(opened.archive.store(), &opened.session)?.replace(['/', ':'], "-");
    let names = (1..).map(|n| if n == 1 { String::new() } else { format!("-{n}") });
    let mut names = names.map(|n| format!("{stem}{n}.jsonl"));
    let is_free = |name: &String| !context.env.current_dir.join(name).exists();
    Ok(names.find(is_free).unwrap_or_default())
}

/// Tells people which agent's file was written, and where the old version of a live file is.
pub(crate) fn say_written(context: &mut Context, done: &Done) -> Result<(), CommandError> {
    if let Some(path) = &done.written {
        let path = context.env.homely(path);
        context.say(&format!("The agent resumes from {path}"))?;
    }
    say_rotated(context, done.rotated.as_deref())
}

/// Tells people where the old version of a live file is.
pub(crate) fn say_rotated(
    context: &mut Context,
    rotated: Option<&Path>,
) -> Result<(), CommandError> {
    let Some(path) = rotated else { return Ok(()) };
    let path = context.env.homely(path);
    context.say(&format!("The previous file is kept as {path}"))
}

/// Returns the end of a path: as many parts as fit, or a part of the last one.
pub(crate) fn end_of(path: &str, width: usize) -> String {
    if safe::width(path) <= width {
        return path.to_owned();
    }
    let cuts = path.match_indices(['/', '\\']).map(|(at, _)| at);
    let ends = cuts.map(|at| format!("…{}", path.get(at..).unwrap_or_default()));
    let mut ends = ends.filter(|end| safe::width(end) <= width && end.chars().count() > 2);
    let last = || path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or(path);
    ends.next().unwrap_or_else(|| safe::clip(last(), width).into_owned())
}

/// Resolves the links in the existing part of a path.
pub(crate) fn resolve(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find_map(|above| {
        let real = fs::canonicalize(above).ok()?;
        let below = folder.strip_prefix(above).ok()?;
        Some(real.components().chain(below.components()).collect())
    })
}

/// Resolves `.` and `..` in a path without looking at the disk.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

/// Returns the typed command with `-n 0`, to show everything. Drops the store, which every command line names, and the display
/// options. `taking` lists the letters of the options that take a value.
pub(crate) fn all_of(command: &'static str, args: &[OsString], taking: &[char]) -> Line {
    let mut line = Line::new(command);
    let mut is_begun = false;
    let mut words = args.iter().skip(1);
    while let Some(word) = words.next() {
        match word.to_str().unwrap_or_default() {
            "-n" | "--number" | "--store" | "--color" => drop(words.next()),
            "--no-pager" => {}
            "--" => return words.fold(line.option("number", "0").with("--"), Line::with),
            word if word == command && !is_begun => is_begun = true,
            long if ["--number=", "--store=", "--color="].iter().any(|it| long.starts_with(it)) => {
            }
            short if short.starts_with('-') && !short.starts_with("--") => {
                // In a group of short options, letters without a value may come before the one with a value, and its value
                // follows.
                let letters = short.split_inclusive(taking).next().unwrap_or(short);
                let Some(others) = letters.strip_suffix('n') else {
                    line = line.with(word);
                    continue;
                };
                if letters.len() == short.len() {
                    words.next();
                }
                if others.len() > 1 {
                    line = line.with(others);
                }
            }
            _ => line = line.with(word),
        }
    }
    line.option("number", "0")
}

/// Returns the exit code: failure, with a hint, if the command skipped damage.
pub(super) fn exit_of(context: &mut Context, is_whole: bool) -> Exit {
    if is_whole {
        return Exit::Yes;
    }
    context.output.hint(Hint::mend());
    Exit::No
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_short_as_they_can_be_typed() {
        let check = |ids: &[&str], short: &[&str]| assert_eq!(short_ids(ids), short);
        check(&["0123456789", "abcdefghij", "ab"], &["01234567", "abcdefgh", "ab"]);
        check(&["0123456789ab", "0123456789cd"], &["0123456789a", "0123456789c"]);
        check(&["0123456789abcdef", "0123456789abcdeg"], &["0123456789abcdef", "0123456789abcdeg"]);
        check(&["0123456789/agent-12", "0123456789"], &["01234567/agent-12", "01234567"]);
    }

    #[test]
    fn a_path_keeps_the_end_that_fits() {
        let check = |path, width, to: &str| assert_eq!(end_of(path, width), to, "{path}");
        check("~/code/app", 12, "~/code/app");
        check("~/code/house/app", 12, "…/house/app");
        check("~/code/a-long-name-of-it", 12, "a-long-name…");
        check("C:\\Users\\ann\\repos\\app", 12, "…\\repos\\app");
    }
}
