//! The bare program's overview: what the store has, the newest sessions of this folder and elsewhere, and what to do next.
//!
//! ```text
//!  undertext  203 sessions: claude 188, codex 12, pi 3
//!  4 weeks  ▁▁▂▁▃▅▂▁▁▄▆▃▂▁▅▇▄▂▁▃█▅▂▄   61 sessions · 1,204 turns · 38 reverts · 17 compactions
//!
//!  ~/code/api  52 sessions
//!  ..  five of them
//!  Elsewhere
//!  ..  two
//! ```
//!
//! Invariant: the overview never exceeds 24 lines.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use undertext::disk;
use undertext::model::{DayTurns, Glance, Timestamp};
use undertext::report::{Line, ListedSession, Listing, UnreadSession};
use undertext::settings::Hints;
use undertext::store::{SessionFilter, SessionKey};
use undertext::verbs::{self, Archive, Having, Order};

use super::common::{self, counted};
use super::env::Env;
use super::pointed::{agent_folders, forgetful_agents, homes};
use super::sessions::{Rows, read_list, show_sessions};
use super::{CommandError, Context, Exit, NAME, archive, current, setup};
use crate::render::style::Label;
use crate::render::wrap::{fit, wrap};
use crate::render::{safe, units};

/// Number of sessions shown for this folder.
const HERE: usize = 5;
/// Number of sessions shown from elsewhere.
const ELSEWHERE: usize = 2;
/// Number of sessions shown from elsewhere if this folder has none.
const ALONE: usize = 8;
/// Number of newest sessions searched at first for some from other folders.
const NEWEST: usize = 32;
/// Maximum number of warnings.
const MOST_WARNINGS: usize = 3;
/// A deletion by an agent within this many days is urgent.
const SOON: u64 = 7;
/// Maximum width of the first line.
const WIDEST: usize = 100;
/// Next steps are shown until a person has used this many different commands.
const FAMILIAR: usize = 3;
/// Minimum length of a prompt's word that is suggested as a search.
const TELLING: usize = 4;
/// Number of days in the bar chart.
const DAYS: usize = 28;
/// Milliseconds per day.
const DAY: i64 = 86_400_000;

pub(super) fn run(context: &mut Context) -> Result<Exit, CommandError> {
    let archive = match context.open_reader() {
        Err(error) if error.is_absence() => return welcome(context),
        opened => opened?,
    };
    let (filter, folder) = archive::nearest_sessions(&context.env, &archive)?;
    if context.json {
        let listing = read_list(context, &archive, &filter, &Having::default(), Order::Newest)?;
        archive::leave(archive);
        keep_glances(context, &listing.glances);
        context.answer_all(&listing.sessions)?;
        return context.tell_unread_sessions(&listing.damaged);
    }
    let all: u64 = archive.store().tally(&SessionFilter::default())?.values().sum();
    if all == 0 {
        return welcome(context);
    }
    let mut overview = Overview { context, archive, glances: Vec::new(), damaged: Vec::new() };
    overview.show(&filter, folder.as_deref())
}

/// The overview being printed.
struct Overview<'c> {
    context: &'c mut Context,
    archive: Archive,
    /// The glances computed for it.
    glances: Vec<(SessionKey, Glance)>,
    damaged: Vec<UnreadSession>,
}

impl Overview<'_> {
    fn show(
        &mut self,
        filter: &SessionFilter,
        folder: Option<&Path>,
    ) -> Result<Exit, CommandError> {
        let now = self.context.env.ambient().now();
        let here = match folder {
            Some(_) => self.list(&SessionFilter { limit: Some(HERE), ..filter.clone() })?,
            None => Listing::default(),
        };
        let most = if here.sessions.is_empty() { ALONE } else { ELSEWHERE };
        let (elsewhere, more) = self.elsewhere(filter, folder.is_some(), most)?;
        let rows =
            |sessions| Rows { sessions, now, spent: None, has_folders: false, has_heads: false };
        self.head()?;
        self.weeks(now)?;
        self.context.say("")?;
        if let Some(folder) = folder {
            let shown = self.context.env.homely(folder);
            let count = here.sessions.len() as u64 + here.more as u64;
            let title = format!("{shown}  {}", counted(count, "session", "sessions"));
            self.title(&title)?;
            show_sessions(self.context, rows(&here.sessions))?;
            if here.more > 0 {
                let line = Line::new("sessions");
                let line = if folder == self.context.env.current_dir {
                    line.flag("here")
                } else {
                    line.option("folder", folder)
                };
                self.more(here.more, &line)?;
            }
        }
        if !elsewhere.is_empty() {
            if folder.is_some() {
                self.context.say("")?;
                self.title("Elsewhere")?;
            } else {
                let shown = self.context.env.homely(&self.context.env.current_dir);
                self.title(&format!("No sessions in {shown}. Elsewhere"))?;
            }
            show_sessions(self.context, Rows { has_folders: true, ..rows(&elsewhere) })?;
            if more > 0 {
                self.more(more, &Line::new("sessions"))?;
            }
        }
        self.context.say("")?;
        self.warnings(now)?;
        let shown: Vec<&ListedSession> = here.sessions.iter().chain(&elsewhere).collect();
        legend(self.context, &shown)?;
        self.steps(&shown)?;
        let glances = std::mem::take(&mut self.glances);
        keep_glances(self.context, &glances);
        let damaged = std::mem::take(&mut self.damaged);
        self.context.tell_unread_sessions(&damaged)
    }

    fn list(&mut self, filter: &SessionFilter) -> Result<Listing, CommandError> {
        let having = Having::default();
        let mut listing = read_list(self.context, &self.archive, filter, &having, Order::Newest)?;
        self.glances.append(&mut listing.glances);
        self.damaged.append(&mut listing.damaged);
        Ok(listing)
    }

    /// Returns the newest sessions that do not pass the filter, and how many more there are.
    fn elsewhere(
        &mut self,
        here: &SessionFilter,
        is_here: bool,
        most: usize,
    ) -> Result<(Vec<ListedSession>, usize), CommandError> {
        let store = self.archive.store();
        let sum = |filter: &SessionFilter| -> Result<u64, CommandError> {
            Ok(store.tally(filter)?.values().sum())
        };
        let everywhere = SessionFilter::default();
        let mut others = sum(&everywhere)?;
        let mut among = BTreeSet::new();
        if is_here {
            others = others.saturating_sub(sum(here)?);
            among = store.sessions(here)?.into_iter().map(|listed| listed.key).collect();
        }
        let mut limit = Some(NEWEST);
        let keys = loop {
            let newest = store.sessions(&SessionFilter { limit, ..everywhere.clone() })?;
            let is_all = limit.is_none_or(|limit| newest.len() < limit);
            let keys = newest.iter().map(|listed| listed.key);
            let keys: BTreeSet<_> = keys.filter(|key| !among.contains(key)).take(most).collect();
            if is_all || keys.len() == most {
                break keys;
            }
            limit = None;
        };
        let shown = self.list(&SessionFilter { only: Some(keys), ..everywhere })?.sessions;
        let more = usize::try_from(others).unwrap_or(usize::MAX).saturating_sub(shown.len());
        Ok((shown, more))
    }

    /// Prints the number of sessions per agent.
    fn head(&mut self) -> Result<(), CommandError> {
        let tally = self.archive.store().tally(&SessionFilter::default())?;
        let mut agents: Vec<(&String, &u64)> = tally.iter().collect();
        agents.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let agents: Vec<String> = agents
            .iter()
            .map(|(name, count)| format!("{name} {}", units::grouped(**count)))
            .collect();
        let sessions = counted(tally.values().sum(), "session", "sessions");
        let line = format!("{NAME}  {sessions}: {}", agents.join(", "));
        let imported = self.context.imported.take().unwrap_or_default();
        let columns = self.context.output.columns().min(WIDEST);
        let gap = columns.checked_sub(safe::width(&line) + safe::width(&imported) + 2);
        if gap.is_none() && !imported.is_empty() {
            self.context.output.note(&imported);
        }
        let styles = self.context.output.styles();
        let line = line.replacen(NAME, &styles.paint(Label::Heading, NAME), 1);
        let gap = gap.filter(|_| !imported.is_empty()).map(|gap| " ".repeat(gap + 2));
        let right = gap.map(|gap| gap + &styles.paint(Label::Dim, &imported));
        write(self.context, &(line + &right.unwrap_or_default()))
    }

    /// Prints the bar chart of the last four weeks.
    fn weeks(&mut self, now: Timestamp) -> Result<(), CommandError> {
        let since = Timestamp(now.0.saturating_sub(i64::try_from(DAYS).unwrap_or(0) * DAY));
        let filter = SessionFilter { since: Some(since), ..SessionFilter::default() };
        let store = self.archive.store();
        let recent = store.sessions(&filter)?;
        let keys: Vec<_> = recent.iter().map(|listed| listed.key).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let first = u64::try_from(since.0.div_euclid(DAY)).unwrap_or(0) + 1;
        let mut days = [0_u64; DAYS];
        let [mut turns, mut reverts, mut compactions] = [0; 3];
        let mut glances: BTreeMap<_, _> = store.glances(&keys)?.into_iter().collect();
        glances.extend(self.glances.iter().filter(|(key, _)| keys.contains(key)).cloned());
        for glance in glances.into_values() {
            let Glance { reverted, compactions: compacted, days: began, .. } = glance;
            reverts += reverted;
            compactions += compacted;
            for DayTurns { day, turns: n } in began {
                let at = day.checked_sub(first).and_then(|at| usize::try_from(at).ok());
                if let Some(on) = at.and_then(|at| days.get_mut(at)) {
                    *on += n;
                    turns += n;
                }
            }
        }
        let most = days.iter().copied().max().unwrap_or(0).max(1);
        let bars: String = days.iter().map(|on| units::bar(*on, most)).collect();
        let mut facts = vec![
            counted(keys.len() as u64, "session", "sessions"),
            counted(turns, "turn", "turns"),
            counted(reverts, "revert", "reverts"),
            counted(compactions, "compaction", "compactions"),
        ];
        let columns = self.context.output.width().unwrap_or(usize::MAX);
        let width = |facts: &[String]| safe::width(&facts.join(" · ")) + DAYS + "4 weeks    ".len();
        while width(&facts) > columns && facts.pop().is_some() {}
        let styles = self.context.output.styles();
        let bars = styles.paint(Label::Dim, &bars);
        write(self.context, format!("4 weeks  {bars}  {}", facts.join(" · ")).trim_end())
    }

    fn title(&mut self, title: &str) -> Result<(), CommandError> {
        let styles = self.context.output.styles();
        let title = styles.paint(Label::Heading, &safe::line(title));
        write(self.context, &title)
    }

    fn more(&mut self, more: usize, line: &Line) -> Result<(), CommandError> {
        let line = self.context.output.spell(line);
        let more = units::grouped(more as u64);
        let styles = self.context.output.styles();
        let told = styles.paint(Label::Dim, &format!("… {more} more: {line}"));
        write(self.context, &told)
    }

    /// Prints warnings of possible losses, the most urgent first.
    fn warnings(&mut self, now: Timestamp) -> Result<(), CommandError> {
        let mut warnings = Vec::new();
        let agents = agent_folders(&self.context.env);
        for forgetful in forgetful_agents(&self.context.env) {
            let of = agents.iter().find(|folder| folder.agent == forgetful.agent);
            let Some(format) = of.map(|folder| folder.format.to_owned()) else { continue };
            let used = |days: u64| -> Result<u64, CommandError> {
                let ago = i64::try_from(days).unwrap_or(0).saturating_mul(DAY);
                let since = Some(Timestamp(now.0.saturating_sub(ago)));
                let format = Some(format.clone());
                let filter = SessionFilter { since, format, ..SessionFilter::default() };
                Ok(self.archive.store().tally(&filter)?.values().sum())
            };
            let n =
                used(forgetful.days)?.saturating_sub(used(forgetful.days.saturating_sub(SOON))?);
            if n > 0 {
                let sessions = counted(n, "session", "sessions");
                let are = if n == 1 { "It is" } else { "They are" };
                warnings.push(format!(
                    "{} will delete {sessions} within {SOON} days. {are} saved here.",
                    forgetful.agent
                ));
            }
        }
        let callings = setup::callings(self.context);
        if !callings.is_empty() && !callings.iter().any(|calling| calling.installed) {
            let setup = self.context.output.spell(&Line::new("setup"));
            warnings.push(format!(
                "Turns are only saved when you run undertext. To save them as they happen: {setup}"
            ));
        }
        let styles = self.context.output.styles();
        for warning in warnings.iter().take(MOST_WARNINGS) {
            let sign = styles.paint(Label::Warning, "!");
            let warning = fit(&safe::line(warning), 2, self.context.output.width());
            write(self.context, &format!("{sign} {warning}"))?;
        }
        Ok(())
    }

    /// Suggests next steps with the newest session.
    fn steps(&mut self, shown: &[&ListedSession]) -> Result<(), CommandError> {
        let settings = self.context.read_settings().map(|read| read.settings.hints);
        let is_familiar = || used(&self.context.env).len() >= FAMILIAR;
        if settings.unwrap_or_default() == Hints::First && is_familiar() {
            return Ok(());
        }
        let mut word = None;
        let newest = shown.first().map(|listed| &listed.name);
        if let Some(newest) = newest.map(|name| self.archive.session(name)).transpose()?.flatten() {
            let opened = self.archive.at(&newest).ok();
            let turns = opened.and_then(|opened| verbs::newest_checkpoints(&opened, 1).ok());
            let prompt = turns.and_then(|mut turns| turns.pop()?.words);
            word =
                prompt.and_then(|prompt| telling(common::first_line(&prompt)).map(str::to_owned));
            // Without a session, a command uses the newest of this folder or of a parent folder.
            let taken = archive::lookup(&self.context.env, &self.archive, None).ok();
            if taken.is_none_or(|taken| taken.key != newest.key) {
                let name = self.context.short_name(&self.archive, &newest)?;
                self.context.output.naming().session = Some(name.into());
            }
        }
        let steps = [
            (Line::about("graph"), "see turns and branches"),
            (
                Line::new("search").with(word.unwrap_or_else(|| "WORDS".to_owned())),
                "find what was said",
            ),
            (Line::new("help"), "list all commands"),
        ];
        show_steps(self.context, &steps)
    }
}

/// Returns the longest word of a prompt, if it is long enough to search for.
fn telling(prompt: &str) -> Option<&str> {
    let words = prompt.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| word.chars().count() >= TELLING);
    words.max_by_key(|word| word.chars().count())
}

/// Introduces undertext when there are no sessions yet.
fn welcome(context: &mut Context) -> Result<Exit, CommandError> {
    let about = super::command().get_about().map(ToString::to_string).unwrap_or_default();
    let looked = looked_in(&context.env);
    let words =
        safe::text(&format!("{about}\n\nNo sessions yet. Looked in {looked}.\n")).into_owned();
    write(context, &fit(&words, 0, context.output.width()))?;
    show_steps(
        context,
        &[
            (Line::new("import").with("PATH"), "import sessions from elsewhere"),
            (Line::new("help"), "list all commands"),
        ],
    )?;
    Ok(Exit::Yes)
}

/// Lists the usual folders of agents.
pub(crate) fn looked_in(env: &Env) -> String {
    let homes = homes(env).into_iter().filter(|home| home.is_usual);
    let mut looked: Vec<String> = homes.map(|home| env.homely(&home.path)).collect();
    looked.dedup();
    looked.join(", ")
}

/// Returns the file that lists the commands a person has used, while they are few.
fn used_file(env: &Env) -> Option<PathBuf> {
    env.state.as_ref().map(|state| state.join("used"))
}

fn used(env: &Env) -> BTreeSet<String> {
    let text = used_file(env).map(|file| disk::read_text(&file, disk::TEXT));
    let text = text.and_then(Result::ok).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Records that a person has used this command.
pub(super) fn note_use(context: &Context) {
    let is_person = context.env.terminal.stdout && current::is_current(&context.verb);
    let used = if is_person { used(&context.env) } else { BTreeSet::new() };
    let is_new = is_person && !used.contains(&context.verb) && used.len() < FAMILIAR;
    let Some(file) = used_file(&context.env).filter(|_| is_new && !context.verb.is_empty()) else {
        return;
    };
    // If the file cannot be written, the next steps are shown again.
    let _ = file.parent().map(disk::make_folders);
    if let Ok(mut file) = disk::open_or_make(&file) {
        let _ = file.seek(SeekFrom::End(0));
        let _ = writeln!(file, "{}", context.verb);
    }
}

/// Saves the glances that a list computed, if the store is the user's own and nobody is writing to it.
pub(crate) fn keep_glances(context: &mut Context, glances: &[(SessionKey, Glance)]) {
    if glances.is_empty() || !current::is_own_store(context) {
        return;
    }
    let wait = std::mem::replace(&mut context.wait, Duration::ZERO);
    if let Ok(archive) = context.open_writer() {
        // Glances are a cache; the next list recomputes what is missing.
        let _ = verbs::keep_glances(&archive, glances);
    }
    context.wait = wait;
}

/// Explains the symbols in a list of sessions.
pub(crate) fn legend(context: &mut Context, shown: &[&ListedSession]) -> Result<(), CommandError> {
    explain_signs(
        context,
        &[
            (shown.iter().any(|it| it.open), "● open in its agent"),
            (shown.iter().any(|it| it.reverted > 0), "↶ reverted branches"),
            (shown.iter().any(|it| it.compactions > 0), "◆ compactions"),
            (shown.iter().any(|it| it.tokens.is_some()), "%: of the window"),
        ],
    )
}

/// Explains those symbols that are shown.
pub(crate) fn explain_signs(
    context: &mut Context,
    signs: &[(bool, &str)],
) -> Result<(), CommandError> {
    let signs = signs.iter().filter(|(is_shown, _)| *is_shown).map(|(_, words)| *words);
    let signs = signs.collect::<Vec<_>>().join("   ");
    let styles = context.output.styles();
    for row in wrap(&signs, context.output.width()).iter().filter(|row| !row.is_empty()) {
        write(context, &styles.paint(Label::Dim, row))?;
    }
    Ok(())
}

/// Prints a line that is already escaped and may be styled.
fn write(context: &mut Context, line: &str) -> Result<(), CommandError> {
    Ok(writeln!(context.output, "{line}")?)
}

fn show_steps(context: &mut Context, steps: &[(Line, &str)]) -> Result<(), CommandError> {
    let lines: Vec<String> = steps.iter().map(|(line, _)| context.output.spell(line)).collect();
    let column = lines.iter().map(|line| safe::width(line)).max().unwrap_or(0) + 2;
    for (line, (_, words)) in lines.iter().zip(steps) {
        let room = " ".repeat(column.saturating_sub(safe::width(line)));
        write(context, &format!("{line}{room}{words}"))?;
    }
    Ok(())
}
