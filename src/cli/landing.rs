//! Reports where a change of place took a session: the turns that moved to another branch, how full the window is, the files
//! edited since, the prompt to send again, and how to resume and undo. Each line names its subject, in this order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use undertext::model::{Block, CheckpointNumber};
use undertext::report::{
    Cleared, Done, Kept, Landing, Line, Redone, Resume, Reverted, Switched, Tokens, TouchedFile,
    Turn, Undone, Waiting,
};
use undertext::verbs::{self, Notice, Session, Spot};
use undertext::wire;

use super::common::{capitalise, counted, free_name, say_rotated};
use super::env::Env;
use super::hint::quote;
use super::{CommandError, Context, Exit, Opened, models};
use crate::render::units::{self, DIGITS, rounded};
use crate::render::wrap::wrap;
use crate::render::{call, harness, safe};

/// Maximum width of a turn's text.
const WIDEST: usize = 80;
/// The indentation of a prompt.
const INDENT: &str = "  ";
/// This many consecutive turns or more are shown as a range.
const RANGE: usize = 4;

/// A change of place.
pub(crate) enum Moved<'a> {
    /// A revert to a place, as it was typed.
    Reverted(&'a str, Reverted),
    Cleared(Reverted),
    Switched(Switched),
    Undone(Undone),
    Redone(Undone),
}

impl Moved<'_> {
    /// Returns where the change led, and what it did.
    pub(crate) fn parts(&mut self) -> (&mut Landing, &mut Done) {
        match self {
            Self::Reverted(_, moved) | Self::Cleared(moved) => {
                (&mut moved.landing, &mut moved.done)
            }
            Self::Switched(moved) => (&mut moved.landing, &mut moved.done),
            Self::Undone(moved) | Self::Redone(moved) => (&mut moved.landing, &mut moved.done),
        }
    }
}

/// Reports a change of place that was made, or that a dry run shows.
pub(crate) fn tell(
    context: &mut Context,
    changed: &Opened,
    mut moved: Moved<'_>,
) -> Result<Exit, CommandError> {
    measure(context, changed, moved.parts().0);
    report(context, changed, moved)
}

/// Reports a change of place without how full the window is.
pub(crate) fn report(
    context: &mut Context,
    changed: &Opened,
    mut moved: Moved<'_>,
) -> Result<Exit, CommandError> {
    context.tell(&moved.parts().1.notices);
    if context.json {
        match &moved {
            Moved::Reverted(_, done) => context.answer_change(changed, done)?,
            Moved::Cleared(done) => context.answer_change(changed, &Cleared(done))?,
            Moved::Switched(done) => context.answer_change(changed, done)?,
            Moved::Undone(done) => context.answer_change(changed, done)?,
            Moved::Redone(done) => context.answer_change(changed, &Redone(done))?,
        };
        return Ok(Exit::Yes);
    }
    say(context, changed, &moved)?;
    let (landing, done) = moved.parts();
    if done.operation.is_some() && landing.dry_run {
        context.say("Nothing was changed: this was a dry run")?;
    }
    Ok(Exit::Yes)
}

/// Prints for a person what a change of place did.
pub(crate) fn say(
    context: &mut Context,
    changed: &Opened,
    moved: &Moved<'_>,
) -> Result<(), CommandError> {
    match moved {
        Moved::Reverted(wanted, done) => say_back(context, &place(done, wanted), changed, done),
        Moved::Cleared(done) => say_back(context, "at the start", changed, done),
        Moved::Switched(done) => say_switched(context, changed, done),
        Moved::Undone(done) | Moved::Redone(done) => say_undone(context, changed, done),
    }
}

/// Prints for a person what going back did.
fn say_back(
    context: &mut Context,
    to: &str,
    changed: &Opened,
    reverted: &Reverted,
) -> Result<(), CommandError> {
    let landing = &reverted.landing;
    let name = name_of(context, changed)?;
    if reverted.done.operation.is_none() {
        return context.say(&format!("{name} is already {to}; nothing was changed"));
    }
    let turn = landing.before.as_ref().filter(|_| reverted.checkpoint.is_some());
    say_turn(context, &format!("{name} {} {to}", is_now(landing)), turn)?;
    if let Some(note) = reverted.note.filter(|_| !landing.dry_run) {
        context.say(&format!("Left the model a note (entry {note:.DIGITS$})"))?;
    }
    if let (None, Some(left), 1..) = (&landing.kept, &reverted.left, reverted.dropped) {
        let entries = counted(reverted.dropped, "entry", "entries");
        let is = be(reverted.dropped == 1, landing.dry_run);
        context.say(&format!("{entries} {is} kept on branch {left}. Nothing is deleted."))?;
    }
    let done = &reverted.done;
    say_gone(context, changed, landing, done, &Line::about("undo"))?;
    if done.rotated.is_none() && done.written.is_none() {
        context.output.note("The agent's own file is not changed");
        let file = free_name(context, changed)?;
        let export = Line::about("export").option("out", file);
        context.output.hint(export.to("to write this state to a file"));
    }
    Ok(())
}

/// Prints for a person what an undo or a redo did.
fn say_undone(
    context: &mut Context,
    changed: &Opened,
    undone: &Undone,
) -> Result<(), CommandError> {
    if undone.done.notices.iter().any(|notice| matches!(notice, Notice::Detached { .. })) {
        let attach =
            Line::about("attach").to("to make the session follow the file and write changes to it");
        context.output.hint(attach);
    }
    let landing = &undone.landing;
    let name = name_of(context, changed)?;
    let original =
        changed.archive.store().operations(changed.session.key, undone.original.alone())?.pop();
    let original = original.unwrap_or_default();
    let is_redo = undone.original != undone.undoes;
    let back = if is_redo {
        Line::about("undo").option("op", undone.original.to_string())
    } else {
        Line::about("redo")
    };
    if let Some(request) = original.facts.request {
        let waits = match (is_redo, landing.dry_run) {
            (false, false) => "no longer has this change waiting",
            (false, true) => "would no longer have this change waiting",
            (true, false) => "has this change waiting again",
            (true, true) => "would have this change waiting again",
        };
        let waiting = Waiting { request, ..Waiting::default() };
        context.say(&format!("{name} {waits}: {waiting}"))?;
        if landing.dry_run {
            return Ok(());
        }
        return context.say(&spell_back(context, &back));
    }
    say_place(context, &format!("{name} {}", is_now(landing)), landing)?;
    let verb = match (is_redo, landing.dry_run) {
        (false, false) => "Undid",
        (false, true) => "Would undo",
        (true, false) => "Redid",
        (true, true) => "Would redo",
    };
    let command = original.command.as_str();
    context.say(&format!("{verb} operation {} ({command})", undone.original))?;
    if let Some(is_hidden) = undone.hidden {
        let lists = if landing.dry_run { "Lists would" } else { "Lists now" };
        let words = if is_hidden { "hide the session" } else { "show the session again" };
        context.say(&format!("{lists} {words}"))?;
    }
    if undone.hidden == Some(true) && !landing.dry_run {
        let show = Line::new("sessions").option("show", name);
        context.output.hint(show.to("to show the session in lists"));
    }
    if landing.kept.is_none() && !undone.left.is_empty() {
        context.say(&format!("Later entries are kept on branch {}", undone.left.join(", ")))?;
    }
    say_gone(context, changed, landing, &undone.done, &back)
}

/// Prints for a person what a switch did.
fn say_switched(
    context: &mut Context,
    changed: &Opened,
    switched: &Switched,
) -> Result<(), CommandError> {
    let (landing, branch) = (&switched.landing, &switched.branch);
    let name = name_of(context, changed)?;
    if switched.done.operation.is_none() {
        return context.say(&format!("{name} is already on {branch}; nothing was changed"));
    }
    say_place(context, &format!("{name} {} on {branch},", is_now(landing)), landing)?;
    say_gone(context, changed, landing, &switched.done, &Line::about("undo"))
}

/// Describes a place that was named by a checkpoint or an entry.
fn place(reverted: &Reverted, wanted: &str) -> String {
    match (reverted.checkpoint, reverted.landing.spot) {
        (Some(_), Some(spot)) => spot.to_string(),
        (Some(n), None) => format!("at @{n}"),
        // The branch ends at the note, which follows the place.
        (None, _) if reverted.note.is_some() => format!("at {wanted}, with the note after it"),
        (None, _) => {
            let entry = reverted
                .entry
                .map_or_else(|| "the start".to_owned(), |id| format!("{id:.DIGITS$}"));
            if entry.starts_with(wanted) || wanted.starts_with(&entry) {
                format!("at {entry}")
            } else {
                format!("at {wanted} ({entry})")
            }
        }
    }
}

/// Returns the verb for a session at its new place.
fn is_now(landing: &Landing) -> &'static str {
    if landing.dry_run { "would be" } else { "is now" }
}

/// Returns the verb for one or several things at their place.
fn be(is_one: bool, dry_run: bool) -> &'static str {
    match (dry_run, is_one) {
        (true, _) => "would be",
        (false, true) => "is",
        (false, false) => "are",
    }
}

/// Adds how full the window was and is, which depends on the settings.
pub(crate) fn measure(context: &mut Context, opened: &Opened, landing: &mut Landing) {
    // The change is made: settings that cannot be read only hide this.
    let settings = context.read_settings().ok().map(|read| models::usual(&read.settings));
    let session = opened.at().ok();
    let both = session.zip(settings);
    landing.tokens = both.and_then(|(session, asked)| verbs::tokens(&session, landing, &asked));
}

/// Returns the short name of a session, for the beginning of a sentence.
pub(crate) fn name_of(context: &Context, opened: &Opened) -> Result<String, CommandError> {
    Ok(safe::line(&context.short_name(&opened.archive, &opened.session)?).into_owned())
}

/// Prints where a session is. `head` begins the sentence.
fn say_place(context: &mut Context, head: &str, landing: &Landing) -> Result<(), CommandError> {
    let Some(spot) = landing.spot else {
        return context.say(&format!("{head} before its first turn"));
    };
    let turn = match spot {
        Spot::Before(_) => landing.before.as_ref(),
        Spot::In(_) => landing.at.as_ref(),
        Spot::At(_) => None,
    };
    say_turn(context, &format!("{head} {spot}"), turn)
}

/// Prints a place with the text of a turn, on one line.
fn say_turn(context: &mut Context, head: &str, turn: Option<&Turn>) -> Result<(), CommandError> {
    let Some(words) = turn.and_then(|turn| turn.words.as_deref()) else {
        return context.say(head);
    };
    let room = context.output.columns().min(WIDEST).saturating_sub(safe::width(head) + 3);
    let words = safe::line(words);
    context.say(&format!("{head} \"{}\"", safe::clip(&words, room)))
}

/// Names the command that undoes a change, as you can type it.
fn spell_back(context: &Context, back: &Line) -> String {
    format!("{}  {}", capitalise(&back.verb), context.output.spell(back))
}

/// Prints what a change of place reverted, and how to continue. `back` is the command that undoes the change.
fn say_gone(
    context: &mut Context,
    opened: &Opened,
    landing: &Landing,
    done: &Done,
    back: &Line,
) -> Result<(), CommandError> {
    let session = &opened.at()?;
    let Done { written, rotated, .. } = done;
    let columns = context.output.columns();
    if let Some(kept) = &landing.kept {
        context.say(&moved(kept, &landing.turns, landing.dry_run, columns))?;
    }
    if let Some(line) = window(context, landing) {
        context.say(&line)?;
    }
    if let n @ 1.. = landing.files.len() {
        let folder = session.archive.store().card(session.key)?.folder;
        let lines = changed_lines(&landing.calls, folder.as_ref().map(Path::new));
        let path = |TouchedFile { path, .. }: &TouchedFile| {
            let whole = Path::new(path);
            let below = folder.as_ref().and_then(|folder| whole.strip_prefix(folder).ok());
            let shown = below.map_or_else(|| context.env.homely(whole), safe::path);
            let lines = lines.get(whole).map(|[added, removed]| [("+", added), ("−", removed)]);
            let lines = lines.into_iter().flatten().filter(|(_, n)| **n > 0);
            let lines: Vec<String> = lines.map(|(sign, n)| format!(" {sign}{n}")).collect();
            (shown + &lines.concat(), 1)
        };
        let paths: Vec<_> = landing.files.iter().map(path).collect();
        let were = if n == 1 { "was" } else { "were" };
        let head = format!("Files are not restored. {n} {were} edited since: ");
        let paths = some_of(&paths, columns.saturating_sub(head.len()));
        context.say(&format!("{head}{paths}"))?;
    }
    say_prompt(context, landing)?;
    if written.is_some() && !landing.dry_run {
        say_rotated(context, rotated.as_deref())?;
    }
    if landing.dry_run {
        return Ok(());
    }
    let mut next = vec![spell_back(context, back)];
    if landing.resume.is_some() && written.is_some() {
        next.insert(0, format!("Resume  {}", context.output.spell(&Line::about("resume"))));
        if let Some(ended) = ended(session) {
            context.output.warn(ended);
        }
    } else if written.is_some() && verbs::is_unsaid(session)? {
        context.say("The agent cannot resume this session: its file has no messages now; start a new session, or undo")?;
    }
    let line = next.join("        ");
    let lines = if safe::width(&line) <= columns { vec![line] } else { next };
    lines.iter().try_for_each(|line| context.say(line))
}

/// Counts the lines that calls added to each file, and removed.
fn changed_lines(calls: &[Block], folder: Option<&Path>) -> BTreeMap<PathBuf, [usize; 2]> {
    let mut files: BTreeMap<PathBuf, [usize; 2]> = BTreeMap::new();
    for call in calls {
        let Block::Call { name, input, .. } = call else { continue };
        for (path, [added, removed]) in call::changes(name, input) {
            let lines = files.entry(folder.unwrap_or("".as_ref()).join(path)).or_default();
            lines[0] += added;
            lines[1] += removed;
        }
    }
    files
}

/// Describes how full the window was and is, and why it may be fuller than before.
fn window(context: &Context, landing: &Landing) -> Option<String> {
    let undone = match landing.compactions.as_slice() {
        [] => None,
        [Some(time)] => {
            let time = context.env.zone.short(context.env.ambient().now(), *time);
            Some(format!("the compaction at {time} is undone too"))
        }
        [None] => Some("a compaction is undone too".to_owned()),
        several => Some(format!("{} compactions are undone too", several.len())),
    };
    let tokens = landing.tokens.map(|Tokens { before, after, window, is_reported }| {
        let about = if is_reported { "" } else { "about " };
        let share = units::share(after, window);
        format!("Context {about}{} → {} tokens ({share})", rounded(before), rounded(after))
    });
    match (tokens, undone) {
        (Some(tokens), Some(undone)) => Some(format!("{tokens}: {undone}.")),
        (tokens, undone) => tokens.or(undone.map(|undone| capitalise(&undone) + ".")),
    }
}

/// Shows the reverted prompt, and copies it if the terminal can.
fn say_prompt(context: &mut Context, landing: &Landing) -> Result<(), CommandError> {
    let (Some(prompt), Some(Turn { checkpoint, .. })) = (&landing.prompt, &landing.before) else {
        return Ok(());
    };
    let prompt = harness::unwrap(prompt);
    let prompt = safe::text(prompt.trim());
    let is_copied = !landing.dry_run && !context.env.is_dumb && context.output.copy(&prompt)?;
    let copied = if is_copied { " (copied, if your terminal allows it)" } else { "" };
    context.say(&format!("Your prompt @{checkpoint}, to send again or change{copied}:"))?;
    let width = context.output.width().map(|width| width.saturating_sub(INDENT.len()));
    for row in prompt.lines().flat_map(|line| wrap(line, width)) {
        context.say(format!("{INDENT}{row}").trim_end())?;
    }
    Ok(())
}

/// Returns the shell command that starts an agent in a session.
pub(crate) fn spell_resume(env: &Env, resume: &Resume) -> String {
    let command: Vec<String> = resume.command.iter().map(|word| quote(word.as_ref())).collect();
    let command = command.join(" ");
    match resume.folder.as_deref().filter(|folder| *folder != env.current_dir) {
        Some(folder) => {
            // `cd` would read a folder that begins with a dash as an option.
            let is_like_one = folder.as_os_str().as_encoded_bytes().starts_with(b"-");
            let to = if is_like_one { "cd --" } else { "cd" };
            format!("{to} {} && {command}", homely_word(env, folder))
        }
        None => command,
    }
}

/// Quotes a path for a shell, with `~` for the home folder if possible.
fn homely_word(env: &Env, path: &Path) -> String {
    let (short, whole) = (env.homely(path), quote(path.as_os_str()));
    match short.strip_prefix("~/") {
        Some(below) if quote(below.as_ref()) == below => short,
        _ => whole,
    }
}

/// Returns a warning to read before starting the session's agent, if its newest version can no longer resume.
pub(super) fn ended(session: &Session) -> Option<&'static str> {
    wire::by_name(&session.name.format)?.traits().ended
}

/// Describes which turns left the context, and which branch has them.
fn moved(kept: &Kept, turns: &[CheckpointNumber], is_dry: bool, columns: usize) -> String {
    let Kept { branch, first, last, .. } = kept;
    // All of an agent's own numbers may be inside a turn that stays.
    let (mut ranges, tail) = match turns.len() as u64 {
        0 => (vec![(format!("@{first}"), 1)], String::new()),
        n => (ranges(turns), format!(" ({})", counted(n, "turn", "turns"))),
    };
    if turns.is_empty() && first != last {
        ranges = vec![(format!("@{first} to @{last}"), 2)];
    }
    let is_one = turns.len() == 1 || turns.is_empty() && first == last;
    let is = be(is_one, is_dry);
    let tail = match branch {
        Some(branch) => format!("{tail} {is} kept on branch {branch}. Nothing is deleted."),
        None => format!("{tail} {is} no longer in the context. Nothing is deleted."),
    };
    let room = columns.saturating_sub(safe::width(&tail));
    format!("{}{tail}", some_of(&ranges, room))
}

/// Groups consecutive numbers into ranges, each with its count.
fn ranges(numbers: &[CheckpointNumber]) -> Vec<(String, usize)> {
    let follows = |one: &CheckpointNumber, next: &CheckpointNumber| one.next() == *next;
    let rows = numbers.chunk_by(follows).flat_map(|row| match row {
        [first, .., last] if row.len() >= RANGE => {
            vec![(format!("@{first} to @{last}"), row.len())]
        }
        few => few.iter().map(|n| (format!("@{n}"), 1)).collect(),
    });
    rows.collect()
}

/// Returns as many of the names as fit, and the count of the rest. Each name counts for a number of things.
fn some_of(names: &[(String, usize)], room: usize) -> String {
    let join = |names: &[(String, usize)]| {
        names.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let all = join(names);
    if safe::width(&all) <= room {
        return all;
    }
    let shown = |n: usize| {
        let (first, others) = names.split_at(n);
        let more: usize = others.iter().map(|(_, n)| n).sum();
        format!("{}, {more} more", join(first))
    };
    let fits = |n: &usize| safe::width(&shown(*n)) <= room;
    match (1..names.len()).rev().find(fits) {
        Some(n) => shown(n),
        None if names.len() > 1 => shown(1),
        None => all,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit_are_counted() {
        let names = ["a.rs", "b.rs", "c.rs"].map(|name| (name.to_owned(), 1));
        let check = |n: usize, room, to: &str| assert_eq!(some_of(&names[..n], room), to);
        check(3, 16, "a.rs, b.rs, c.rs");
        check(3, 15, "a.rs, 2 more");
        check(3, 1, "a.rs, 2 more");
        check(1, 1, "a.rs");
    }

    #[test]
    fn the_numbers_of_turns_add_up() {
        let check = |numbers: &[u64], room, to: &str| {
            let numbers: Vec<_> = numbers.iter().copied().map(CheckpointNumber::new).collect();
            assert_eq!(some_of(&ranges(&numbers), room), to);
        };
        check(&[14, 17, 18, 19], 80, "@14, @17, @18, @19");
        check(&[4, 5, 6, 7, 8], 80, "@4 to @8");
        check(&[2, 4, 5, 6, 7, 9, 11], 80, "@2, @4 to @7, @9, @11");
        check(&[2, 4, 5, 6, 7, 9, 11], 20, "@2, @4 to @7, 2 more");
        check(&[2, 4, 5, 6, 7, 9, 11], 19, "@2, 6 more");
        check(&[], 80, "");
    }
}
