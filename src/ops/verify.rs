//! Verifying: everything that a hash vouches for is computed again; nothing stops at the first fault.

use std::collections::BTreeMap;

use super::{
    catch_up,
    follow::LiveFile,
    oddities, rebuild,
    rotations::{self, RotatedState},
};
use crate::{
    disk::{self, Links, Refusal},
    live,
    model::{Entry, EntryId, LineId, OperationId, Running},
    ops::{Archive, OpsError, Session},
    store::FactKind,
};

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something is not what it was.
    Damage,
    /// Something that a person may want to know.
    Note,
}

/// Something that a verification found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// The session, if one is concerned.
    pub session: Option<String>,
    /// What is concerned.
    pub item: String,
    /// What is wrong.
    pub problem: String,
}

/// What was verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many sessions.
    pub sessions: u64,
    /// How many operations.
    pub operations: u64,
    /// How many entries.
    pub entries: u64,
    /// How many findings are damage.
    pub damaged: u64,
    /// How many are notes.
    pub notes: u64,
    /// How many sessions need their derived rows rebuilt.
    pub outdated: u64,
}

/// How many entries a note names.
const NAMED: usize = 8;

/// How many entries are looked at together.
const BATCH: u64 = 1 << 16;

/// Verifies one session or all, and the store's bytes.
pub fn verify(
    archive: &Archive,
    only: Option<&Session>,
    report: &mut dyn FnMut(&Finding),
) -> Result<Verified, OpsError> {
    let mut verified = Verified::default();
    let mut tell = |finding: Finding, verified: &mut Verified| {
        match finding.severity {
            Severity::Damage => verified.damaged += 1,
            Severity::Note => verified.notes += 1,
        }
        report(&finding);
    };
    let mut faults = Vec::new();
    let checked = archive.store.check(&mut |fault| faults.push((fault.item, fault.problem)));
    faults.extend(checked.err().map(|error| ("store.db".to_owned(), chain(&error))));
    for (item, problem) in faults {
        tell(Finding { severity: Severity::Damage, session: None, item, problem }, &mut verified);
    }
    let sessions = if let Some(session) = only {
        vec![session.clone()]
    } else {
        match archive.every() {
            Ok(sessions) => sessions,
            Err(error) => {
                let (item, problem) = ("the list of sessions".to_owned(), chain(&error));
                let finding = Finding { severity: Severity::Damage, session: None, item, problem };
                tell(finding, &mut verified);
                Vec::new()
            }
        }
    };
    for session in sessions {
        verified.sessions += 1;
        let mut check =
            Check { archive, session: &session, findings: Vec::new(), verified: &mut verified };
        if let Err(error) = check.run() {
            check.damage("session", &chain(&error));
        }
        let findings = check.findings;
        for finding in findings {
            tell(finding, &mut verified);
        }
    }
    Ok(verified)
}

/// Returns whether the ids and the running hashes of a session are right; the bytes of its lines are not read.
pub fn verify_ids(archive: &Archive, session: &Session) -> Result<bool, OpsError> {
    let mut verified = Verified::default();
    let mut check = Check { archive, session, findings: Vec::new(), verified: &mut verified };
    let ids = check.entries()?;
    check.generations(&ids)?;
    Ok(check.findings.is_empty())
}

/// Returns an error with its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}

struct Check<'a> {
    archive: &'a Archive,
    session: &'a Session,
    findings: Vec<Finding>,
    verified: &'a mut Verified,
}

impl Check<'_> {
    fn find(&mut self, severity: Severity, item: &str, problem: &str) {
        self.findings.push(Finding {
            severity,
            session: Some(self.session.name.id.clone()),
            item: item.to_owned(),
            problem: problem.to_owned(),
        });
    }

    fn damage(&mut self, item: &str, problem: &str) {
        self.find(Severity::Damage, item, problem);
    }

    fn run(&mut self) -> Result<(), OpsError> {
        let ids = self.entries()?;
        self.operations()?;
        self.generations(&ids)?;
        self.derived()?;
        self.oddities(&ids)?;
        self.files()
    }

    /// Notes what is odd, once for each kind.
    fn oddities(&mut self, ids: &[EntryId]) -> Result<(), OpsError> {
        for (what, entries) in oddities::oddities(self.archive, self.session)? {
            let id = |n: &u64| ids.get(usize::try_from(n.checked_sub(1)?).ok()?);
            let named = entries.iter().filter_map(id).take(NAMED).map(|id| format!("{id:.12}"));
            let named: Vec<String> = named.collect();
            let more = match entries.len().saturating_sub(named.len()) {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            let noun = if entries.len() == 1 { "entry" } else { "entries" };
            self.find(Severity::Note, &format!("{noun} {}{more}", named.join(", ")), what);
        }
        Ok(())
    }

    /// Recomputes every entry's id and returns them.
    fn entries(&mut self) -> Result<Vec<EntryId>, OpsError> {
        let (store, key) = (self.archive.store(), self.session.key);
        let total = store.tip(key)?.entries();
        let mut ids: Vec<EntryId> = Vec::with_capacity(usize::try_from(total).unwrap_or(0));
        let mut from = 1;
        while from <= total {
            let range = from..(from + BATCH).min(total + 1);
            let entries = store.entries(key, range.clone())?;
            let lines = store.line_ids(key, range.clone())?;
            if entries.len() as u64 != range.end - range.start || lines.len() != entries.len() {
                self.damage(
                    &format!("entries {} to {}", range.start, range.end - 1),
                    "some have no row or no line",
                );
                return Ok(ids);
            }
            for (entry, (line, _)) in entries.iter().zip(&lines) {
                if !is_right(entry, *line, &ids) {
                    self.damage(
                        &format!("entry {}", entry.n),
                        "its id is not that of its link and line",
                    );
                }
                ids.push(entry.id);
            }
            from = range.end;
        }
        self.verified.entries += total;
        Ok(ids)
    }

    /// Recomputes the chain of operations.
    fn operations(&mut self) -> Result<(), OpsError> {
        let (store, key) = (self.archive.store(), self.session.key);
        let kinds: Vec<FactKind> =
            FactKind::ALL.into_iter().filter(|kind| *kind != FactKind::Entries).collect();
        let mut facts: BTreeMap<u64, _> =
            store.facts(key, 0..u64::MAX, &kinds)?.into_iter().collect();
        let mut before: Option<OperationId> = None;
        let mut next = 1;
        let mut first = 1;
        for operation in store.operations(key, 0..u64::MAX)? {
            let item = format!("operation {}", operation.n);
            if operation.n != next || operation.first != first {
                self.damage(&item, "it does not follow the one before it");
            }
            let mut facts = facts.remove(&operation.n).unwrap_or_default();
            facts.entries = store
                .entries(key, operation.first..operation.first.saturating_add(operation.count))?;
            if operation.seal(before, &self.session.name, &facts) != operation.hash {
                self.damage(&item, "its facts are not those that its hash covers");
            }
            before = Some(operation.hash);
            (next, first) = (operation.n + 1, operation.first.saturating_add(operation.count));
            self.verified.operations += 1;
        }
        for n in facts.into_keys() {
            self.damage(&format!("operation {n}"), "there are facts of it, but it is not there");
        }
        Ok(())
    }

    /// Recomputes the running hash of every generation.
    fn generations(&mut self, ids: &[EntryId]) -> Result<(), OpsError> {
        let (store, key) = (self.archive.store(), self.session.key);
        for generation in 1..=store.tip(key)?.generations {
            let item = format!("generation {generation}");
            let (mut running, mut place) = (Running::EMPTY, 0);
            for run in store.runs(key, generation, 0)? {
                if run.start != place {
                    self.damage(&item, "a run does not follow the one before it");
                }
                let from = usize::try_from(run.first.saturating_sub(1)).unwrap_or(usize::MAX);
                let entries = ids.get(from..).unwrap_or_default();
                let separators = run.gaps.iter(run.start, run.count);
                let mut placed = 0;
                for (id, separator) in entries.iter().zip(separators) {
                    running = running.then(separator, *id);
                    placed += 1;
                }
                place = run.end();
                if placed != run.count || running != run.running {
                    self.damage(
                        &item,
                        &format!("its running hash is not the recorded one at entry {place}"),
                    );
                    running = run.running;
                }
            }
        }
        Ok(())
    }

    fn derived(&mut self) -> Result<(), OpsError> {
        let wanted = rebuild::digest(&rebuild::derived(self.archive, self.session)?);
        if rebuild::digest(&rebuild::kept(self.archive, self.session)?) != wanted {
            self.verified.outdated += 1;
            self.damage("derived rows", "they are not those of the facts");
        }
        Ok(())
    }

    /// Compares the live file and those that were set aside.
    fn files(&mut self) -> Result<(), OpsError> {
        for rotated in rotations::rotations(self.archive, self.session)? {
            let item = rotated.path.display().to_string();
            match rotated.state {
                RotatedState::Whole => {}
                RotatedState::Changed => {
                    self.damage(
                        &item,
                        "it was set aside and has been changed since; the store holds what it was",
                    );
                }
                RotatedState::Deleted => {
                    self.find(Severity::Note, &item, "it was set aside and has been deleted since");
                }
                RotatedState::Grown => {
                    self.find(
                        Severity::Note,
                        &item,
                        "it was set aside and has grown since; the next change takes that in",
                    );
                }
                RotatedState::Pending => {
                    self.find(
                        Severity::Note,
                        &item,
                        "it is still to be set aside; the next change does it",
                    );
                }
            }
        }
        let tip = self.archive.store.tip(self.session.key)?;
        let live = catch_up::live_file(self.archive, self.session, &tip)?;
        let Some(LiveFile { path, attached, .. }) = live else { return Ok(()) };
        let item = path.display().to_string();
        let io = |source| OpsError::Io { path: path.clone(), source };
        if live::look(&path).map_err(io)?.is_none() {
            let what = if attached {
                "the agent's file is gone; the next change goes on without it"
            } else {
                "the live file is missing; the next change writes it anew"
            };
            self.find(Severity::Note, &item, what);
            return Ok(());
        }
        let (running, tail) = tip
            .growth
            .as_ref()
            .map_or((Running::EMPTY, Vec::new()), |run| (run.running, run.tail.clone()));
        let file = match disk::open(&path, Links::Refuse) {
            Err(error) if Refusal::of(&error).is_some() => {
                self.find(Severity::Note, &item, &error.to_string());
                return Ok(());
            }
            opened => opened.map_err(io)?,
        };
        if rotations::running_hash(file)? != (running, tail) {
            let behind = catch_up::is_behind(self.archive, self.session, &tip)?;
            if behind || attached {
                self.find(
                    Severity::Note,
                    &item,
                    "another program changed the live file; the next change takes it in",
                );
            } else {
                self.damage(
                    &item,
                    "the live file is not what was left there, though its length and time are",
                );
            }
        }
        Ok(())
    }
}

fn is_right(entry: &Entry, line: LineId, ids: &[EntryId]) -> bool {
    let link = match entry.link {
        None => None,
        Some(n) => match usize::try_from(n).ok().and_then(|n| ids.get(n.checked_sub(1)?)) {
            Some(id) => Some(*id),
            None => return false,
        },
    };
    EntryId::of(link, line) == entry.id
}
