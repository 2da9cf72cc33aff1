//! `redact`: takes a secret, or what an entry says, out of the store and of the files of its sessions.

use std::ffi::OsString;

use anyhow::anyhow;
use undertext::ops::{self, Archive, Cause, Wanted};
use undertext::report::{Line, Redacted};
use undertext::store::StoreError;

use super::Context;
use super::archive::is_there;
use super::common::counted;
use super::env;
use super::error::{CommandError, Exit};
use super::words::{About, Noun};
use crate::render::style::Label;
use crate::render::table::{Align, Cell, Table};

/// How many sessions the question lists.
const LISTED: usize = 10;

/// Take a secret, or what an entry says, out of everything that the store keeps, for ever
///
/// Without ENTRY it reads a secret from stdin: a key, a password, any text of 4 bytes or more. It is found in every session, in
/// branches that were left and beneath truncations too, as it is, as JSON escapes it (also JSON within JSON), in base64 and in
/// addresses. With ENTRY, all that this entry says is taken out, and its longer texts wherever else they stand.
///
/// What is taken out is written over, with as many bytes as before, in the store and in the files of the sessions that undertext
/// follows; the database is written again, and the index of words is deleted. Every entry keeps its id, so the rest still verifies.
/// This cannot be undone. What is taken out is kept out: a salted hash of it stays, and lines that come later are covered as they are
/// taken in. Not looked through: what is encrypted, or compressed within a record; a secret that is split over several lines; copies that
/// undertext does not know (backups, the agent's own list of prompts, other machines). So change the key too.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext redact < leaked-key.txt
  printf %s \"$LEAKED\" | undertext redact --dry-run
  undertext redact 7c2a51de --reason 'a letter of a client'

Exit codes: 1 if nothing has it, or if nothing was changed because nobody agreed

JSON: one object
  {\"type\":\"redact\", \"planned\":whether nothing was changed yet BOOL, \"lines\":N that have it, \"notes\":N words of yours that have it,
   \"sessions\":[{\"session\":ID, \"format\":NAME, \"title\":TEXT or null, \"lines\":N}], \"covered\":[PATH] in which it was covered,
   \"left\":[PATH] that still hold it, \"files\":[PATH] kept whole, such as long answers of tools, that have it,
   \"deleted\":[PATH] of damaged stores that were set aside}")]
pub(crate) struct Args {
    /// The entry: HEAD, HEAD~2, @7 (the turn of checkpoint 7), or the beginning of an id
    #[arg(value_name = "ENTRY")]
    entry: Option<OsString>,

    #[command(flatten)]
    about: About,

    #[command(flatten)]
    consent: Consent,
}

/// How far to go, and why.
#[derive(Debug, clap::Args)]
pub(super) struct Consent {
    /// Only tell what would be taken out
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// Do not ask
    #[arg(short, long, conflicts_with = "dry_run")]
    yes: bool,

    /// Keep a reason with the operation
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let Some(entry) = args.entry.as_deref() else {
        let secret = secret(context)?;
        let path = context.root()?.join("store.db");
        if !is_there(&path)? {
            return Err(StoreError::Absent { path }.into());
        }
        let archive = context.open_reader()?;
        return carry_out(context, archive, &Wanted::Secret(&secret), &args.consent, None);
    };
    let words = context.words(Noun::Entry, (1, 1), &[Some(entry)], &args.about)?;
    let (archive, session) = context.look(words.session)?;
    let wanted = words.nouns.first().copied().unwrap_or_default();
    if archive.root().is_none() {
        let error = anyhow!("a session file that is not in the store cannot be redacted");
        return Err(CommandError::user(error).hinted(Line::new("import").to("take it in first")));
    }
    let target = ops::find_entry(archive.store(), &session, wanted)?;
    let line = Line::about("redact").with(wanted);
    carry_out(context, archive, &Wanted::Entry(&session, &target), &args.consent, Some(line))
}

/// Reads the secret: all of stdin but for the end of its last line.
fn secret(context: &mut Context) -> Result<String, CommandError> {
    if context.env.terminal.stdin {
        context.output.note("Type or paste the secret, then Enter. It is not kept.");
        return Ok(env::read_answer()?.trim_end_matches(['\r', '\n']).to_owned());
    }
    let bytes = env::read_stdin()?;
    let text = String::from_utf8(bytes)
        .map_err(|_| CommandError::user(anyhow!("the secret on stdin is not UTF-8")))?;
    let secret = text.trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        let error = anyhow!("there is no secret on stdin");
        let help = Line::new("redact").flag("help").to("how it is used");
        return Err(CommandError::user(error).hinted(help));
    }
    Ok(secret.to_owned())
}

/// Tells what would be taken out, asks, and takes it out.
pub(super) fn carry_out(
    context: &mut Context,
    archive: Archive,
    wanted: &Wanted<'_>,
    consent: &Consent,
    line: Option<Line>,
) -> Result<Exit, CommandError> {
    let plan = ops::redaction(&archive, wanted)?;
    drop(archive);
    if plan.is_nowhere() {
        if !context.answer(&plan)? {
            context.output.note("Nothing in the store has it");
        }
        return Ok(Exit::No);
    }
    if consent.dry_run {
        if !context.answer(&plan)? {
            list(context, &plan)?;
            context.output.note("Nothing is changed");
        }
        return Ok(Exit::Yes);
    }
    if !consent.yes {
        if !context.json {
            list(context, &plan)?;
        }
        let is_asked = context.env.terminal.stdin && context.env.terminal.stderr && !context.json;
        if !(is_asked && context.output.ask("Take it out for ever?")?) {
            context.answer(&plan)?;
            context.output.note("Nothing is changed");
            if !is_asked {
                let line = line.unwrap_or_else(|| Line::new("redact"));
                context.output.hint(line.flag("yes").to("to take it out"));
            }
            return Ok(Exit::No);
        }
    }
    let mut archive = context.open_writer()?;
    let user = context.env.user.clone();
    let cause = Cause { rule: None, by: user.as_deref(), reason: consent.reason.as_deref() };
    let redacted = ops::redact(&mut archive, wanted, cause)?;
    context.tell(&redacted.notices);
    if context.answer(&redacted)? {
        return Ok(Exit::Yes);
    }
    tell(context, &redacted)
}

fn list(context: &mut Context, plan: &Redacted) -> Result<(), CommandError> {
    let mut table = Table::new([Align::Left, Align::Right, Align::Left]);
    let sessions: Vec<_> = plan.sessions.iter().filter(|one| one.lines > 0).collect();
    for one in sessions.iter().take(LISTED) {
        let id: String = one.session.chars().take(8).collect();
        table.row([
            Cell::new(Label::Id, &id),
            Cell::new(Label::Plain, &counted(one.lines, "line", "lines")),
            Cell::new(Label::Dim, &one.format),
        ]);
    }
    context.show(&table)?;
    let more = sessions.len().saturating_sub(LISTED);
    if more > 0 {
        context.say(&format!("and {}", counted(more as u64, "more session", "more sessions")))?;
    }
    for path in &plan.files {
        let path = context.env.homely(path);
        context.say(&format!("{path} has it too"))?;
    }
    for path in plan.deleted.iter().filter(|_| !plan.is_nowhere()) {
        let path = context.env.homely(path);
        context.say(&format!("{path}, a damaged store that was set aside, is deleted with it"))?;
    }
    if plan.notes > 0 {
        let notes =
            counted(plan.notes, "note or name of yours has", "notes and names of yours have");
        context.say(&format!("{notes} it too"))?;
    }
    Ok(())
}

fn tell(context: &mut Context, redacted: &Redacted) -> Result<Exit, CommandError> {
    let changed = redacted.sessions.iter().filter(|one| one.lines > 0).count() as u64;
    let lines = counted(redacted.lines, "line", "lines");
    let sessions = counted(changed, "session", "sessions");
    context.say(&format!("Taken out of {lines} of {sessions}; every entry keeps its id"))?;
    for path in &redacted.covered {
        let path = context.env.homely(path);
        context.say(&format!("covered in {path}"))?;
    }
    for path in &redacted.deleted {
        let path = context.env.homely(path);
        context.say(&format!("deleted {path}, a damaged store that was set aside"))?;
    }
    for path in &redacted.left {
        let path = context.env.homely(path);
        context.output.warn(&format!(
            "{path} still holds it: a process has it open, or undertext may not write there"
        ));
    }
    let hints = undertext::report::Report::hints(redacted);
    context.output.hints(hints);
    Ok(Exit::Yes)
}
