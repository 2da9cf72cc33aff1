//! `import`: imports the session files of agents.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use undertext::disk::{self, Links};
use undertext::model::SessionName;
use undertext::report::{Brought, Fate, FoundFile, Hint, Line, QuirkKind, Report as _};
use undertext::settings::Exclusion;
use undertext::store;
use undertext::verbs::{self, Imported, Notice, Session, Skipped, Step, Summary, Why};

use super::common::{counted, shown};
use super::error::{Kind, in_words};
use super::output::{Output, Progress};
use super::pointed::{agent_folders, homes, user};
use super::{CommandError, Context, Exit, archive, models, pointed, watch};
use crate::render::table::{Cell, Label, Left, Right, Table};
use crate::render::units;

/// Import sessions of coding agents
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  undertext import
  undertext import --dry-run
  undertext import ~/old-sessions session.jsonl.zst
  undertext import ~/undertext-monday.bundle

Reads sessions of Claude Code, Codex, pi, OpenClaw, Kimi CLI and clawdcode.
Importing writes no session file, and reads only what is new. Later changes are
written to the agents' own folders; files elsewhere are only read until you
attach them. [exclude] in your settings leaves sessions out.

Exit codes: 0 even if files were skipped; 3 if nothing could be read, or if a
bundle has a session that differs from the store's")]
pub(crate) struct Args {
    /// Files and folders [default: the folders of all agents]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Never write to these sessions' files later
    #[arg(long)]
    detached: bool,

    /// List the files that would be imported
    #[arg(short = 'n', long)]
    dry_run: bool,

    /// List every oddity, and files without a session
    #[arg(short, long)]
    verbose: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Exit, CommandError> {
    let mut paths: Vec<PathBuf> =
        args.paths.iter().map(|path| context.env.current_dir.join(path)).collect();
    let (bundles, others): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.iter().cloned().partition(|path| is_bundle(path));
    if !bundles.is_empty() {
        if let Some(other) = others.first() {
            let error = anyhow!("{} is not a bundle; import bundles by themselves", shown(other));
            return Err(CommandError::user(error));
        }
        return import_bundles(context, args, &bundles);
    }
    let folders = agent_folders(&context.env);
    let is_missing = |path: &PathBuf| {
        fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    };
    let mut attach = if args.detached { Vec::new() } else { pointed::paths(&folders) };
    if paths.is_empty() {
        // Files in a folder that no longer exists are deleted with it.
        if !args.detached && !args.dry_run {
            let homes = homes(&context.env).into_iter().map(|home| home.path);
            paths.extend(homes.filter(is_missing));
            attach.extend(paths.iter().cloned());
        }
        let mut unread = verbs::unread_folders(&user(&context.env));
        unread.retain(|found| found.1 > 0 || folders.is_empty());
        for (home, files) in &unread {
            let files = counted(*files, "session file", "session files");
            let path = context.env.homely(&home.path);
            let what = format!("{}: {path}, {files} that undertext does not read yet", home.agent);
            context.output.note(&what);
        }
        if folders.is_empty() {
            let homes = homes(&context.env);
            context.output.note(match (homes.as_slice(), unread.as_slice()) {
                ([], _) => "HOME is not set, so the agents' folders are unknown",
                (_, []) => "No agent keeps sessions on this machine. None of these folders exists:",
                _ => "Undertext reads the sessions of these agents, but found none:",
            });
            for home in homes.iter().filter(|home| is_missing(&home.path)) {
                let path = context.env.homely(&home.path);
                context.output.note(&format!("  {}: {path}", home.agent));
            }
            context.output.note("To import sessions from elsewhere, name their folder");
            match context.open_reader() {
                Ok(_) if !paths.is_empty() => {}
                Err(error) if !error.is_absence() => return Err(error),
                _ => return Ok(Exit::Yes),
            }
        }
        for folder in &folders {
            watch::tell_folder(context, folder);
        }
        paths.extend(pointed::paths(&folders));
    }
    if let Some(first) = args.paths.first().filter(|_| paths.iter().all(is_missing)) {
        let error = CommandError::absent(anyhow!("there is no file or folder {}", shown(first)));
        let all = Line::new("import").to("without a path, `import` imports every agent's sessions");
        return Err(error.hinted(all));
    }
    let left_out = LeftOut { verbose: args.verbose, ..LeftOut::default() };
    if args.dry_run {
        return list(context, &paths, &attach, left_out);
    }
    let (left_out, files) = take_in(context, &paths, &attach, left_out)?;
    left_out.conclude(&mut context.output, files)
}

/// Returns true if a file is a bundle, by its first bytes or its name.
fn is_bundle(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = disk::open(path, Links::Follow)
        .and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning));
    read.is_ok()
        && (store::is_bundle(&beginning) || path.extension().is_some_and(|end| end == "bundle"))
}

fn import_bundles(
    context: &mut Context,
    args: &Args,
    bundles: &[PathBuf],
) -> Result<Exit, CommandError> {
    let archive =
        if args.dry_run { archive::open_preview(context)? } else { context.open_writer()? };
    let (mut all, mut refused) = (Vec::new(), 0);
    for path in bundles {
        let output = &mut context.output;
        let mut brought = Vec::new();
        let read = verbs::import_bundle(&archive, path, &mut |session| {
            let (label, done) = ("importing session", brought.len() as u64);
            output.progress(Progress { label, done, total: None, bytes: 0, of: None });
            brought.push(session);
        });
        for one in brought {
            refused += u64::from(one.state == Fate::Refused);
            if !context.answer(&one)? {
                tell_bundled(context, &one, args)?;
            }
            all.push(one);
        }
        read?;
    }
    let count = |fate| all.iter().filter(|one| one.state == fate).count() as u64;
    let (new, grown, same) = (count(Fate::New), count(Fate::Grown), count(Fate::Same));
    if !args.dry_run {
        context.say(&format!(
            "Imported {} ({new} new): {}{}",
            counted(new + grown, "session", "sessions"),
            counted(all.iter().map(|one| one.entries).sum(), "new entry", "new entries"),
            match same {
                0 => String::new(),
                n => format!("; {} unchanged", counted(n, "session is", "sessions are")),
            },
        ))?;
    }
    if refused == 0 {
        return Ok(Exit::Yes);
    }
    let are = counted(refused, "session was", "sessions were");
    let error = CommandError::new(Kind::Failed, anyhow!("{are} not imported"));
    let elsewhere = bundles
        .iter()
        .fold(Line::new("import"), Line::with)
        .to("import them into another store; add --store DIR");
    Err(error.hinted(elsewhere))
}

fn tell_bundled(context: &mut Context, one: &Brought, args: &Args) -> Result<(), CommandError> {
    let SessionName { format, id } = &one.session;
    let is_refused = one.state == Fate::Refused;
    if !is_refused && (args.dry_run || args.verbose) {
        let entries = counted(one.entries, "new entry", "new entries");
        context.say(&format!("{}  {format}:{id}  {entries}", one.state.as_str()))?;
    }
    if let Some(why) = &one.why {
        let (what, is) = if is_refused { ("", "imported") } else { ("the file of ", "written") };
        context.output.warn(&format!("{what}session {format}:{id} is not {is}: {why}"));
    }
    Ok(())
}

/// Imports the session files at and below `paths`; those below `attach` become live files. Reports the result, and returns what
/// was left out and the number of session files.
pub(super) fn take_in(
    context: &mut Context,
    paths: &[PathBuf],
    attach: &[PathBuf],
    mut left_out: LeftOut,
) -> Result<(LeftOut, u64), CommandError> {
    let mut archive = context.open_writer()?;
    let mut sessions = Vec::new();
    let output = &mut context.output;
    let summary = verbs::import(&mut archive, paths, attach, &mut |step| match step {
        Step::Reading { done, total, bytes, of, .. } => {
            let (total, of) = (Some(total), Some(of));
            output.progress(Progress { label: "importing", done, total, bytes, of });
        }
        Step::Skipped(skipped) => left_out.tell(output, &skipped),
        Step::Imported(imported) => sessions.push(imported),
        Step::Gone { .. } => {}
    })?;
    let asked = models::usual_request(context);
    let new: Vec<Session> = sessions.iter().map(|imported| imported.session.clone()).collect();
    verbs::glance_all(&archive, &new, &asked)?;
    let changed = sessions.len() as u64 + summary.gone;
    if changed > 0 {
        let changed = counted(changed, "session is", "sessions are");
        context.done = Some(format!("{changed} up to date in the store"));
    }
    for imported in &sessions {
        // Omit notices about new records, which are the purpose of an import, and about rewritten files, which are reported as oddities.
        let is_told = |notice: &&Notice| {
            !matches!(notice, Notice::Appended { .. } | Notice::Followed { left: None, .. })
        };
        let notices: Vec<Notice> = imported.notices.iter().filter(is_told).cloned().collect();
        context.tell(&notices);
        if !context.answer(imported)? {
            tell(context, imported, left_out.verbose)?;
        }
    }
    if summary.files == 0 && summary.gone == 0 && !context.json {
        let is_there = paths.iter().any(|path| path.exists());
        let is_told =
            left_out.failed > 0 || left_out.is_emptied || left_out.excluded != Default::default();
        if is_there && !is_told {
            context.say("Found no sessions")?;
        }
        context.output.hints(summary.hints());
    } else {
        conclude(context, &summary, sessions.iter().filter(|imported| imported.new).count())?;
    }
    Ok((left_out, summary.files))
}

fn list(
    context: &mut Context,
    paths: &[PathBuf],
    attach: &[PathBuf],
    mut left_out: LeftOut,
) -> Result<Exit, CommandError> {
    let archive = archive::open_preview(context)?;
    context.settings()?;
    let output = &mut context.output;
    let (sources, unchanged) =
        verbs::news(archive, paths, attach, &mut |skipped| left_out.tell(output, &skipped))?;
    let mut table = Table::new([Left, Left, Right, Left]).yielding(&[1]);
    for source in &sources {
        let (session, path, bytes) = (&source.session, source.path.as_path(), source.bytes);
        context.answer(&FoundFile { session, path, bytes })?;
        table.row([
            Cell::new(Label::Plain, &source.session.format),
            Cell::new(Label::Id, &source.session.id),
            Cell::new(Label::Plain, &units::size(source.bytes)),
            Cell::new(Label::Plain, &context.env.homely(&source.path)),
        ]);
    }
    context.show(&table)?;
    if unchanged > 0 {
        let files = counted(unchanged, "file is", "files are");
        context.output.note(&format!("{files} already in the store, unchanged"));
    }
    left_out.conclude(&mut context.output, sources.len() as u64 + unchanged)
}

fn tell(context: &mut Context, imported: &Imported, verbose: bool) -> Result<(), CommandError> {
    let name = &imported.session.name;
    if let Some(left) = &imported.left {
        context.say(&format!(
            "Session {}: main follows the session's file again; main's old position is kept as branch {left}",
            name.id
        ))?;
    }
    // A rewritten file is always reported.
    let is_told = |kind| verbose || kind == QuirkKind::Rewritten;
    for oddity in imported.oddities.iter().filter(|oddity| is_told(oddity.kind)) {
        let line = match (oddity.line, oddity.lines) {
            (None, _) => String::new(),
            (Some(line), 1) => format!(":{line}"),
            (Some(line), lines) => format!(":{line}-{}", line + lines - 1),
        };
        context.say(&format!("{}{line}: {}", shown(&oddity.path), oddity.what))?;
    }
    Ok(())
}

/// Prints the totals.
fn conclude(context: &mut Context, summary: &Summary, new: usize) -> Result<(), CommandError> {
    if context.answer(summary)? {
        return Ok(());
    }
    context.say(&format!(
        "Imported {} ({new} new): {}, {}{}",
        counted(summary.sessions, "session", "sessions"),
        counted(summary.entries, "new entry", "new entries"),
        units::size(summary.bytes),
        match summary.unchanged {
            0 => String::new(),
            n => format!("; {} unchanged", counted(n, "file is", "files are")),
        },
    ))?;
    if summary.sidecars > 0 {
        let files = counted(summary.sidecars, "file", "files");
        context.say(&format!(
            "Also imported {files} stored alongside sessions, such as long tool results"
        ))?;
    }
    if summary.gone > 0 {
        let files = counted(summary.gone, "session's file was", "sessions' files were");
        context.say(&format!(
            "{files} deleted since the last import; the store still has all the content"
        ))?;
    }
    if !summary.oddities.is_empty() {
        let is_repaired = |kind: &QuirkKind| matches!(kind, QuirkKind::Glued | QuirkKind::Mended);
        let (repaired, noted): (Vec<_>, Vec<_>) =
            summary.oddities.iter().partition(|(kind, _)| is_repaired(kind));
        let words = |of: Vec<(&QuirkKind, &u64)>| {
            of.into_iter().map(|(kind, n)| odd(*kind, *n)).collect::<Vec<_>>().join(", ")
        };
        if !repaired.is_empty() {
            let told = words(repaired);
            context.say(&format!(
                "Worked around damage in agents' files, which were not changed: {told}"
            ))?;
        }
        if !noted.is_empty() {
            context.say(&format!("Noted: {}", words(noted)))?;
        }
    }
    context.output.hints(summary.hints());
    Ok(())
}

/// Describes a number of oddities of one kind.
fn odd(kind: QuirkKind, n: u64) -> String {
    let (one, more) = match kind {
        QuirkKind::Opaque => ("line that is not a JSON object", "lines that are not JSON objects"),
        QuirkKind::Glued => ("joined line", "joined lines"),
        QuirkKind::Torn => {
            ("file that ends in the middle of a record", "files that end in the middle of a record")
        }
        QuirkKind::Rewritten => ("file that was rewritten", "files that were rewritten"),
        QuirkKind::Repeated => ("repeated record", "repeated records"),
        QuirkKind::Unkept => {
            ("file kept without its compressed form", "files kept without their compressed form")
        }
        QuirkKind::TooLong => {
            ("file with a line that is too long", "files with a line that is too long")
        }
        QuirkKind::Unreadable => {
            ("file that cannot be read to its end", "files that cannot be read to their end")
        }
        QuirkKind::LeftOut => {
            ("file next to its session left out", "files next to their sessions left out")
        }
        QuirkKind::Mended => ("broken parent link", "broken parent links"),
    };
    counted(n, one, more)
}

/// Number of leading bytes that identify a bundle.
const BEGINNING: u64 = 32;

/// Maximum number of skipped files and folders named for a folder; the rest are counted.
const NAMED: usize = 3;

/// The files and folders that were not imported.
#[derive(Default)]
pub(super) struct LeftOut {
    verbose: bool,
    /// Files of a folder that are not sessions, as most are.
    unrelated: u64,
    /// Files of a folder that belong to unsupported agents, by agent.
    unread: BTreeMap<&'static str, u64>,
    /// Other files skipped in a folder, by reason.
    counted: BTreeMap<&'static str, u64>,
    /// The first of the messages about them.
    first: Vec<String>,
    /// Sessions that the settings exclude, with the setting, and the number of named files among them.
    excluded: (BTreeMap<SessionName, Exclusion>, u64),
    /// True if a file no longer contains a session.
    is_emptied: bool,
    /// True if a session could not be changed because the store is damaged.
    is_damaged: bool,
    failed: u64,
}

impl LeftOut {
    fn tell(&mut self, output: &mut Output, skipped: &Skipped) {
        let why = &skipped.why;
        self.is_damaged |= why.is_damage();
        let is_unrelated = !skipped.asked && matches!(why, Why::NoFormat | Why::Beside(_));
        // The store already has their content.
        if matches!(why, Why::Aside) && !self.verbose {
            return;
        }
        if skipped.asked || matches!(why, Why::Unreadable(_) | Why::Lines(_)) {
            self.failed += 1;
        }
        let why_told = match why {
            Why::Unreadable(error) => format!("cannot read it: {}", in_words(error)),
            why => why.to_string(),
        };
        let told = format!("skipped {}: {why_told}", skipped.path.display());
        if let Why::Emptied(session) = why {
            self.is_emptied = true;
            output.warn(&told);
            let branches = Line::new("branch").option("session", session.id.clone());
            output.hint(branches.to("find the branch with the conversation, and `switch` to it"));
        } else if self.verbose || skipped.asked || matches!(why, Why::TooMany) {
            self.excluded.1 += u64::from(matches!(why, Why::Excluded { .. }));
            output.warn(&told);
        } else if let Why::Excluded { session, by } = why {
            self.excluded.0.insert(session.clone(), by.clone());
        } else if let Why::Unread(agent) = why {
            *self.unread.entry(agent).or_default() += 1;
        } else if is_unrelated {
            self.unrelated += 1;
        } else {
            *self.counted.entry(reason(why)).or_default() += 1;
            if self.first.len() < NAMED {
                self.first.push(told);
            }
        }
    }

    /// Prints the counts of the unnamed ones.
    pub(super) fn count(&self, output: &mut Output) {
        if self.unrelated > 0 {
            output.note(&format!(
                "{} skipped: not sessions (-v lists them)",
                counted(self.unrelated, "file", "files")
            ));
        }
        let (excluded, _) = &self.excluded;
        if !excluded.is_empty() {
            let rules: BTreeSet<String> = excluded.values().map(ToString::to_string).collect();
            output.note(&format!(
                "{} excluded by your settings (-v lists them): {}",
                counted(excluded.len() as u64, "session", "sessions"),
                rules.into_iter().collect::<Vec<_>>().join("; "),
            ));
        }
        for (agent, n) in &self.unread {
            let files = counted(*n, "file", "files");
            output.note(&format!("skipped {files}: undertext does not read {agent} files yet"));
        }
        let n: u64 = self.counted.values().sum();
        if n > self.first.len() as u64 {
            let reasons: Vec<String> =
                self.counted.iter().map(|(reason, n)| format!("{reason}: {n}")).collect();
            output.warn(&format!("skipped {n} (-v lists them): {}", reasons.join("; ")));
        } else {
            self.first.iter().for_each(|told| output.warn(told));
        }
    }

    /// Prints the counts of the unnamed ones, and returns the exit code.
    fn conclude(&self, output: &mut Output, taken: u64) -> Result<Exit, CommandError> {
        self.count(output);
        let (_, named) = &self.excluded;
        if taken == 0 && self.failed > 0 && self.failed == *named {
            let error = anyhow!("your settings exclude everything that you named");
            return Err(CommandError::new(Kind::Failed, error).hinted(Hint::settings("")));
        }
        if taken == 0 && self.failed > 0 {
            let error = CommandError::new(Kind::Failed, anyhow!("nothing could be imported"));
            let help = Line::new("import").flag("help");
            let help = help.to("see which agents' sessions undertext reads");
            return Err(error.hinted(if self.is_damaged { Hint::mend() } else { help }));
        }
        if self.is_damaged {
            output.hint(Hint::mend());
        }
        Ok(Exit::Yes)
    }
}

/// Returns the category under which a skipped file or folder is counted.
fn reason(why: &Why) -> &'static str {
    match why {
        Why::Link => "links",
        Why::Twice => "already read",
        Why::Special => "pipes, sockets and devices",
        Why::Unheld => "set aside and not in this store",
        Why::Unreadable(_) | Why::Lines(_) => "unreadable",
        _ => "left alone",
    }
}
