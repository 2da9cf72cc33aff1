//! `redact`: permanently removes a secret, or an entry's text, from the store and from the files of its sessions.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::anyhow;
use undertext::disk::Refusal;
use undertext::report::{Hint, Line, Redacted, Remaining};
use undertext::verbs::{self, Archive, Cause, SessionError, Suspects, Wanted};
use undertext::wire::discover;
use undertext::{live, model};

use super::common::{capitalise, counted, short_ids, titled};
use super::words::Noun;
use super::{
    About, CommandError, Context, Exit, Opened, archive, chosen, complete, env, pointed, secrets,
    settings, unseen,
};
use crate::render::table::{Cell, Label, Left, Right, Table};

/// Maximum number of sessions listed in the question.
const LISTED: usize = 10;
/// Explanations for files that still contain the text.
const IS_READ: &str = "still contains the text: another program is reading the store; the first change after it finishes redacts the file";
const STAYS: &str = "still contains the text: a process has the file open, undertext may not write to it or does not follow it, the text is where it cannot be redacted, or the store has lost the replacement line";
const IS_OTHER: &str = "is an agent's file that undertext does not manage: it was not redacted, and may still contain the text";
const IS_UNSEEN: &str = "could not be searched; it may still contain the text";

/// Overwrite a secret everywhere, permanently
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext redact < leaked-key.txt
  undertext redact --found --dry-run
  undertext redact @7.0 7c2a --reason 'a letter of a client'

Without ENTRY or --found, a secret is read from stdin and found in every
session, also in JSON escapes and base64. It is overwritten in the store and
in agents' files. Entries keep their ids. audit --secrets finds copies that
are written later. This can't be undone. Revoke the key as well.
docs/secrets.md says what is not covered.

Exit codes: 1 if nothing has the text, nobody agreed, or some text remains")]
pub(crate) struct Args {
    /// Redact everything that this turn or entry says
    #[arg(value_name = "ENTRY")]
    entry: Option<OsString>,

    /// Redact what audit --secrets finds
    #[arg(long)]
    found: bool,

    /// With --found, use only this rule; repeatable
    #[arg(long, value_name = "NAME", requires = "found", value_parser = secrets::rule, add = complete::rules())]
    rule: Vec<String>,

    #[command(flatten)]
    about: About,

    #[command(flatten)]
    consent: Consent,
}

/// How far to go, and why.
#[derive(Debug, clap::Args)]
pub(super) struct Consent {
    /// Show what would be redacted
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Don't ask
    #[arg(short, long, conflicts_with = "dry_run")]
    yes: bool,

    /// Record a reason
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Consent {
    /// Returns the hint to repeat a command with consent.
    fn hint(&self, line: Line, words: &str) -> Hint {
        let reason = self.reason.as_deref();
        let line = reason.into_iter().fold(line, |line, reason| line.option("reason", reason));
        line.flag("yes").to(words)
    }
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let place = match args.entry.as_deref() {
        Some(entry) => {
            let words = context.words(Noun::Place, 1..=1, &[Some(entry)], &args.about)?;
            Some((words.session, words.nouns.first().copied()))
        }
        None => args.about.wanted()?.map(|session| (Some(session), None)),
    };
    let entry = place.and_then(|(_, entry)| entry);
    let line = if place.is_some() { Line::about("redact") } else { Line::new("redact") };
    let line = if args.found { line.flag("found") } else { line };
    let line = entry.into_iter().fold(line, Line::with);
    let line = args.rule.iter().fold(line, |line, rule| line.option("rule", rule));
    let mut suspects = Suspects { rules: args.rule.clone(), ..Suspects::default() };
    if args.found {
        suspects.allowed = settings::allowed(context)?;
    }
    let Some((session, _)) = place else {
        if args.found {
            let (archive, wanted) = (context.open_reader()?, Wanted::Found(&suspects));
            return carry_out(context, archive, &wanted, &args.consent, Some(line));
        }
        let secret = secret(context)?;
        let archive = context.open_reader()?;
        return carry_out(context, archive, &Wanted::Secret(&secret), &args.consent, None);
    };
    if entry.is_none() && !args.found {
        let error =
            anyhow!("a secret on stdin is redacted in every session; -s cannot limit it to one");
        let help = Line::new("redact").flag("help").to("see the help");
        return Err(CommandError::user(error).hinted(help));
    }
    let Opened { archive, session } = context.look(session)?;
    let opened = archive.at(&session)?;
    if archive.root().is_none() {
        let error = anyhow!("a session file that is not in the store cannot be redacted");
        let import = Line::new("import").to("import it first");
        return Err(CommandError::user(error).hinted(import));
    }
    let target = entry.map(|entry| verbs::find_place(&opened, entry)).transpose();
    let target = target.map_err(|error| {
        let is_text = !args.found && matches!(error, SessionError::NoEntry(_));
        let error = CommandError::from(error);
        if !is_text {
            return error;
        }
        let typed =
            Line::new("redact").to("to redact some text, type it when asked, or pipe it in");
        error.hinted(typed).hinted("what you typed is in your shell's history now")
    })?;
    let wanted = match &target {
        Some(target) if !args.found => Wanted::Entry(&session, target),
        target => {
            if let Some(target) = target {
                let shown = verbs::show(&opened, target)?;
                let unnamed = || CommandError::user(anyhow!("the entry's id cannot be read"));
                let id = shown.map(|(line, _)| line.id.ok_or_else(unnamed));
                suspects.entry = id.transpose()?;
            }
            suspects.session = Some(session.clone());
            Wanted::Found(&suspects)
        }
    };
    carry_out(context, archive, &wanted, &args.consent, Some(line))
}

/// Warns of files that still contain the text.
fn warn(context: &mut Context, redacted: &Redacted) {
    let left = redacted.left.iter().map(|path| {
        let is_database = redacted.is_in_log && path.file_name().is_some_and(model::is_part);
        (path, if is_database { IS_READ } else { STAYS })
    });
    let beside = redacted.beside.iter().map(|path| (path, IS_OTHER));
    let unseen = redacted.unseen.iter().map(|path| (path, IS_UNSEEN));
    for (path, what) in left.chain(beside).chain(unseen) {
        let path = context.env.homely(path);
        context.output.warn(&format!("{path} {what}"));
    }
}

/// Reads the secret: a typed line, or all of stdin without its last line ending.
fn secret(context: &mut Context) -> Result<String, CommandError> {
    let bytes = if context.env.terminal.stdin {
        let ask = "Type or paste the secret, then Enter. It is not shown or saved.";
        let typed = unseen::read_line(|| context.output.note(ask));
        typed.map_err(|error| match Refusal::of(&error) {
            Some(Refusal::TooLong(most)) => {
                let error = anyhow!(
                    "a terminal takes at most {most} bytes of a line, so the secret may have been cut off"
                );
                CommandError::user(error).hinted("pipe the secret in and add --yes")
            }
            _ => error.into(),
        })?
    } else {
        env::read_stdin()?
    };
    let text = String::from_utf8(bytes)
        .map_err(|_| CommandError::user(anyhow!("the secret on stdin is not UTF-8")))?;
    // Some programs mark a text as UTF-8.
    let secret = text.trim_start_matches('\u{feff}').trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        let error = anyhow!("there is no secret on stdin");
        let help = Line::new("redact").flag("help").to("see the help");
        return Err(CommandError::user(error).hinted(help));
    }
    Ok(secret.to_owned())
}

/// Shows what would be redacted, asks, and redacts it. `line` is the command to repeat; `None` if the secret came from stdin.
pub(super) fn carry_out(
    context: &mut Context,
    archive: Archive,
    wanted: &Wanted<'_>,
    consent: &Consent,
    line: Option<Line>,
) -> Result<Exit, CommandError> {
    let user = context.env.user.clone();
    let cause = Cause { by: user.as_deref(), reason: consent.reason.as_deref() };
    let plan = verbs::redaction(&archive, wanted, cause)?;
    drop(archive);
    if consent.dry_run && !plan.is_nowhere() {
        if !context.answer(&plan)? {
            list(context, &plan)?;
            context.output.note("Nothing was changed");
        }
        return Ok(Exit::Yes);
    }
    if !consent.yes && !plan.is_nowhere() {
        if !context.json {
            list(context, &plan)?;
        }
        let is_asked = context.can_ask();
        if !(is_asked && context.output.ask(&question(&plan))?) {
            context.answer(&plan)?;
            context.output.note("Nothing was changed");
            if !is_asked {
                context.output.hint(match line {
                    Some(line) => consent.hint(line, "to redact it"),
                    // A secret from stdin must not appear in a command.
                    None => "to redact the text, pipe it in again and add --yes".into(),
                });
            }
            return Ok(Exit::No);
        }
    }
    let mut redacted = if plan.is_nowhere() && !consent.yes {
        plan
    } else {
        take_out(context, wanted, cause, &plan)?
    };
    let is_done = !redacted.is_nowhere() || !redacted.covered.is_empty();
    redacted.stores = warn_of_others(context, wanted);
    if !context.answer(&redacted)? {
        if redacted.is_nowhere() {
            tell_nothing(context, &redacted, wanted);
        } else {
            tell(context, &redacted, wanted)?;
        }
    }
    Ok(if is_done && !redacted.remains() { Exit::Yes } else { Exit::No })
}

/// Redacts the text. If the store does not contain it, files may still contain text redacted earlier, brought back by an older
/// copy; that is overwritten.
fn take_out(
    context: &mut Context,
    wanted: &Wanted<'_>,
    cause: Cause<'_>,
    plan: &Redacted,
) -> Result<Redacted, CommandError> {
    let mut archive = context.open_writer()?;
    let left = archive::clear_leftovers(context);
    let folders = pointed::paths(&pointed::agent_folders(&context.env));
    let roots = discover::roots(&pointed::user(&context.env));
    let unseen = verbs::follow_moved(&mut archive, plan, &folders)?;
    let mut redacted = verbs::redact(&mut archive, wanted, cause, &roots)?;
    redacted.unseen.extend(unseen);
    redacted.left.extend(left);
    redacted.deleted.extend(context.deleted.iter().cloned());
    for (name, notice) in redacted.notices.iter().filter(|(_, notice)| archive::is_told(notice)) {
        context.output.warn(&format!("session {}: {notice}", name.id));
    }
    if !redacted.is_nowhere() {
        context.done = Some(taken_out(&redacted));
        return Ok(redacted);
    }
    for path in &redacted.covered {
        let path = context.env.homely(path);
        context
            .output
            .note(&format!("{path} contained redacted text again; that text was overwritten"));
    }
    warn(context, &redacted);
    Ok(redacted)
}

/// Warns of this user's other stores that contain the secret too, and returns them.
fn warn_of_others(context: &mut Context, wanted: &Wanted<'_>) -> Vec<PathBuf> {
    let mut stores = Vec::new();
    if !matches!(wanted, Wanted::Secret(_)) {
        return stores;
    }
    for root in chosen::other_stores(context) {
        let plan = context
            .reader(&root)
            .and_then(|archive| Ok(verbs::redaction(&archive, wanted, Cause::default())?));
        let name = context.env.homely(&root);
        match plan {
            Ok(plan) if plan.is_nowhere() => continue,
            Ok(_) => {
                let mut naming = context.output.naming().clone();
                naming.store = Some(root.clone());
                let line = naming.spell(&Line::new("redact"));
                context.output.warn(&format!(
                    "another of your stores, {name}, also contains the text: pipe it into `{line}` as well"
                ));
            }
            Err(error) => {
                let why = error.in_one_line();
                context.output.warn(&format!(
                    "another of your stores, {name}, could not be searched and may still contain the text: {why}"
                ));
            }
        }
        stores.push(root);
    }
    stores
}

fn tell_nothing(context: &mut Context, redacted: &Redacted, wanted: &Wanted<'_>) {
    warn_of_fixed(context, redacted);
    context.output.note(if !redacted.fixed.is_empty() {
        "Nothing can be redacted"
    } else if matches!(wanted, Wanted::Found(_)) {
        "Found nothing there that looks like a secret"
    } else {
        "Found nothing to redact in the store"
    });
}

fn list(context: &mut Context, plan: &Redacted) -> Result<(), CommandError> {
    if !plan.rules.is_empty() {
        context.say(&format!("found by {}", plan.rules.join(", ")))?;
    }
    let mut table = Table::new([Left, Right, Left, Left]);
    let sessions: Vec<_> = plan.sessions.iter().filter(|one| one.lines > 0).collect();
    let ids: Vec<&str> = sessions.iter().map(|one| one.session.as_str()).collect();
    for (one, id) in sessions.iter().zip(short_ids(&ids)).take(LISTED) {
        let title = one.title.as_deref().map(|it| titled(Some(it))).unwrap_or_default();
        table.row([
            Cell::new(Label::Id, &id),
            Cell::new(Label::Plain, &counted(one.lines, "line", "lines")),
            Cell::new(Label::Dim, &one.format),
            Cell::new(Label::Plain, &title),
        ]);
    }
    context.show(&table)?;
    let more = sessions.len().saturating_sub(LISTED);
    if more > 0 {
        context.say(&format!("and {}", counted(more as u64, "more session", "more sessions")))?;
    }
    let files = plan.files.iter().map(|path| (path, " also contains the text"));
    let aside = ", a damaged store that was set aside, will also be deleted";
    for (path, what) in files.chain(plan.deleted.iter().map(|path| (path, aside))) {
        let path = context.env.homely(path);
        context.say(&format!("{path}{what}"))?;
    }
    let one = "of your notes or names also contains";
    let notes = counted(plan.notes, one, "of your notes and names also contain");
    let one = "unfinished line also contains";
    let unfinished = counted(plan.unfinished, one, "unfinished lines also contain");
    for (n, what) in [(plan.notes, notes), (plan.unfinished, unfinished)] {
        if n > 0 {
            context.say(&format!("{what} the text"))?;
        }
    }
    warn_of_fixed(context, plan);
    Ok(())
}

/// Warns of places where the text cannot be redacted.
fn warn_of_fixed(context: &mut Context, redacted: &Redacted) {
    for Remaining { session, place } in &redacted.fixed {
        context.output.warn(&format!(
            "the text remains in {place} of session {session}, where it cannot be redacted: revoke the key and use a new one"
        ));
    }
}

/// Returns the question asked before a redaction.
fn question(plan: &Redacted) -> String {
    if plan.lines == 0 {
        return "Redact it permanently?".to_owned();
    }
    let [lines, sessions] = extent(plan);
    format!("Permanently redact {lines} in {sessions}?")
}

/// Describes how much was redacted.
fn taken_out(redacted: &Redacted) -> String {
    let [lines, sessions] = extent(redacted);
    let more = match redacted.unfinished {
        0 => String::new(),
        n => format!(" and of {}", counted(n, "unfinished line", "unfinished lines")),
    };
    format!("redacted in {lines} of {sessions}{more}")
}

/// Describes how many lines, and of how many sessions, contain the text.
fn extent(redacted: &Redacted) -> [String; 2] {
    let changed = redacted.sessions.iter().filter(|one| one.lines > 0).count() as u64;
    [counted(redacted.lines, "line", "lines"), counted(changed, "session", "sessions")]
}

fn tell(
    context: &mut Context,
    redacted: &Redacted,
    wanted: &Wanted<'_>,
) -> Result<(), CommandError> {
    context.say(&capitalise(&format!("{}; every entry keeps its id", taken_out(redacted))))?;
    for path in &redacted.covered {
        let path = context.env.homely(path);
        context.say(&format!("overwritten in {path}"))?;
    }
    for path in &redacted.deleted {
        if context.deleted.contains(path) {
            continue;
        }
        let what = if path.file_name().is_some_and(live::is_fresh) {
            "left over from an interrupted change"
        } else {
            "a damaged store that was set aside"
        };
        let path = context.env.homely(path);
        context.say(&format!("deleted {path}, {what}"))?;
    }
    warn(context, redacted);
    warn_of_fixed(context, redacted);
    context.output.hints(undertext::report::Report::hints(redacted));
    if !matches!(wanted, Wanted::Session(_)) {
        let audit = Line::new("audit").flag("secrets");
        context.output.hint(audit.to("find copies that are written elsewhere later"));
    }
    Ok(())
}
