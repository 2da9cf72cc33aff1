//! `sessions`: lists sessions, and leaves some out of lists.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use undertext::model::Timestamp;
use undertext::ops::{self, Kin};
use undertext::report::{Line, ListedSession, Listing};
use undertext::store::SessionFilter;

use super::error::{CommandError, Exit};
use super::{Context, common, env};
use crate::render::style::Label;
use crate::render::table::{Align, Cell, Table};

/// The shortest beginning of an id that is shown.
const DIGITS: usize = 8;

/// List the sessions, the newest first: id, agent, last activity, turns, folder, title
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext sessions
  undertext sessions --here --since 7d
  undertext sessions --all                 with sub-agents, each below its session
  undertext sessions --agent native --json
  undertext sessions --hide 8f14e45f

JSON: one object a session
  {\"type\":\"session\", \"session\":ID, \"agent\":NAME, \"title\":TEXT or null, \"folder\":PATH or null, \"started\":TIME,
   \"active\":TIME, \"turns\":N that began in its own files, \"hidden\":BOOL, \"kin\":null or the session that it was made of
   {\"bond\":fork, sub-agent or continuation, \"session\":ID, \"held\":whether the store has it BOOL,
    \"continues\":whether nothing was copied and its history begins there BOOL, \"shown\":whether that history is shown BOOL,
    \"here\":ID of the last entry that was taken over or null, \"there\":ID of that entry in the other or null},
   \"gone\":whether the agent's file was deleted BOOL}
and one of each session that cannot be read
  {\"type\":\"damaged\", \"session\":ID, \"agent\":NAME, \"problem\":TEXT}
and with --hide or --show
  {\"type\":\"hide\", \"session\":ID, \"title\":TEXT or null, \"format\":NAME, \"hidden\":BOOL, \"operation\":N}")]
pub(crate) struct Args {
    /// List only the sessions of this agent, by the name of its format
    #[arg(long, value_name = "FORMAT")]
    agent: Option<String>,

    /// List only the sessions that work in this folder
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// List only the sessions that work in the current folder
    #[arg(long, conflicts_with = "folder")]
    here: bool,

    /// List only the sessions that were active in this time: 30m, 12h, 7d, 2w
    #[arg(long, value_name = "AGE", value_parser = age)]
    since: Option<i64>,

    /// List hidden sessions too
    #[arg(long)]
    hidden: bool,

    /// List sub-agents too, each below its session
    #[arg(short, long)]
    all: bool,

    /// List at most N sessions
    #[arg(short, long = "number", value_name = "N", default_value_t = 50, value_parser = common::number::<usize>, allow_negative_numbers = true)]
    number: usize,

    /// Leave a session out of lists from now on
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["agent", "folder", "here", "since", "hidden", "all", "number"])]
    hide: Option<OsString>,

    /// Show a hidden session in lists again
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["agent", "folder", "here", "since", "hidden", "all", "number", "hide"])]
    show: Option<OsString>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    match (&args.hide, &args.show) {
        (Some(session), _) => hide(context, session, true),
        (None, Some(session)) => hide(context, session, false),
        (None, None) => list(context, args),
    }
}

fn hide(context: &mut Context, wanted: &OsStr, hidden: bool) -> Result<Exit, CommandError> {
    let (mut archive, session) = context.change(Some(wanted))?;
    let concealed = ops::hide(&mut archive, &session, hidden)?;
    context.tell(&concealed.notices);
    if context.answer_change((&archive, &session), &concealed)? {
        return Ok(Exit::Yes);
    }
    if hidden {
        context.say("Lists leave it out from now on")?;
        let name = context.short_name(&archive, &session)?;
        context.output.hint(Line::new("sessions").option("show", name).to("to show it again"));
    } else {
        context.say("Lists show it again")?;
    }
    Ok(Exit::Yes)
}

fn list(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let archive = match context.open_reader() {
        Err(error) if error.is_absence() => {
            context.output.note("There is no store yet");
            context.output.hints(error.into_hints());
            return Ok(Exit::Yes);
        }
        other => other?,
    };
    let here = args.here.then_some(Path::new("."));
    let folder = here.or(args.folder.as_deref()).map(|folder| {
        let folder = context.env.current_dir.join(folder);
        fs::canonicalize(&folder).unwrap_or(folder).to_string_lossy().into_owned()
    });
    let now = context.env.ambient().now();
    let filter = SessionFilter {
        format: args.agent.clone(),
        folder,
        since: args.since.map(|age| Timestamp(now.0.saturating_sub(age))),
        hidden: args.hidden,
        sub_agents: args.all,
        limit: Some(args.number),
        ..SessionFilter::default()
    };
    let Listing { sessions, damaged } = ops::list(&archive, &filter)?;
    if context.answer_all(&sessions)? {
        return context.tell_damaged_sessions(&damaged);
    }
    context.output.page()?;
    let digits = digits(&sessions);
    let [left, right] = [Align::Left, Align::Right];
    let mut table = Table::new([left, left, left, right, left, left]);
    for ListedSession { name, card, kin, gone } in &sessions {
        let title = card.title.as_deref().unwrap_or_default();
        let kin = kin.as_ref().map(|kin| (kin, short(&kin.session)));
        let title = match kin {
            None => title.to_owned(),
            Some((kin, session)) => {
                let kin = common::kin_words(&Kin { session, ..kin.clone() });
                format!("{kin}: {title}").trim_end_matches([':', ' ']).to_owned()
            }
        };
        let title = if *gone { format!("(file gone) {title}") } else { title };
        let folder = card.folder.as_deref().map(|folder| context.env.homely(Path::new(folder)));
        let label = if card.hidden { Label::Dim } else { Label::Plain };
        table.row([
            Cell::new(Label::Id, &shown(&name.id, digits)),
            Cell::new(label, &name.format),
            Cell::new(Label::Time, &env::local(card.active)),
            Cell::new(label, &card.turns.to_string()),
            Cell::new(label, &folder.unwrap_or_default()),
            Cell::new(label, &title),
        ]);
    }
    context.show(&table)?;
    if sessions.iter().any(|listed| listed.gone) {
        let restore = Line::new("restore").flag("all").flag("dry-run");
        context.output.hint(restore.to("to see which files are gone, and how they come back"));
    }
    context.tell_damaged_sessions(&damaged)
}

/// Returns the id of a session as a list shows it next to others.
fn short(id: &str) -> String {
    shown(id, DIGITS)
}

/// Returns how many characters tell the ids of a list apart.
fn digits(sessions: &[ListedSession]) -> usize {
    let ids = || sessions.iter().map(|listed| &listed.name.id).filter(|id| !id.contains('/'));
    let longest = ids().map(|id| id.chars().count()).max().unwrap_or(0);
    let distinct = |digits: &usize| {
        let mut ids: Vec<String> = ids().map(|id| beginning(id, *digits)).collect();
        ids.sort();
        ids.windows(2).all(|pair| pair.first() != pair.last())
    };
    (DIGITS..longest).find(distinct).unwrap_or(longest.max(DIGITS))
}

/// Returns the beginning of an id; a sub-agent's stands behind that of its session's.
fn shown(id: &str, digits: usize) -> String {
    match id.rsplit_once('/') {
        Some((session, agent)) => {
            format!("{}/{}", beginning(session, digits), beginning(agent, DIGITS))
        }
        None => beginning(id, digits),
    }
}

fn beginning(id: &str, digits: usize) -> String {
    id.chars().take(digits).collect()
}

/// Reads an age as milliseconds.
pub(crate) fn age(text: &str) -> Result<i64, String> {
    const MINUTE: i64 = 60_000;
    let scale = match text.chars().last() {
        Some('m') => MINUTE,
        Some('h') => 60 * MINUTE,
        Some('d') => 24 * 60 * MINUTE,
        Some('w') => 7 * 24 * 60 * MINUTE,
        _ => 0,
    };
    let number = text.get(..text.len().saturating_sub(1)).unwrap_or_default();
    let number = number.parse::<u32>().ok().filter(|_| scale > 0);
    let age = number.and_then(|number| i64::from(number).checked_mul(scale));
    age.ok_or_else(|| "it is a number and m, h, d or w, such as 7d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_number_and_a_unit() {
        let check = |text, expected: Option<i64>| assert_eq!(age(text).ok(), expected, "{text}");
        check("30m", Some(1_800_000));
        check("7d", Some(604_800_000));
        check("4294967295w", Some(4_294_967_295 * 604_800_000));
        for wrong in ["", "d", "7", "-1d", "7y", "7é", "1.5h"] {
            check(wrong, None);
        }
    }
}
