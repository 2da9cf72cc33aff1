//! Redacting: a secret, an entry or a session is taken out wherever it is kept, and the chain of operations still verifies.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
};

use aho_corasick::AhoCorasick;

use crate::{
    cover::{Secret, cover_all},
    json::Raw,
    model::{Command, EntryNumber, LineId, OperationNumber, Run, State, line},
    ops::{
        OpsError,
        given::each_given,
        several::in_order,
        suspects::{Suspect, Suspects, suspects},
    },
    report::{Redacted, RedactedSession},
    session::{Session, SessionError, Target, lines, origins, plan::given},
    store::{SessionKey, Sieve, Store, StoreError, TakenOut, whole_lines},
    sync::{self, Archive, Found, Kept, Redaction, SyncError},
    wire::{self, Envelope},
};

/// How long a text of an entry is that goes with it wherever it stands.
const LONG: usize = line::TEXT_MIN;
/// How many lines are read together.
const BATCH: usize = 1024;

/// What is taken out.
pub enum Wanted<'w> {
    /// These characters, wherever they stand.
    Secret(&'w str),
    /// What an entry says, wherever else it is said at length.
    Entry(&'w Session, &'w Target),
    /// What a session says.
    Session(&'w Session),
    /// What looks like a secret, wherever it stands.
    Found(&'w Suspects),
}

/// Who takes something out, and why.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cause<'c> {
    /// The rule by which it was found.
    pub rule: Option<&'c str>,
    /// The user.
    pub by: Option<&'c str>,
    /// The reason.
    pub reason: Option<&'c str>,
    /// Whether the sessions get other ids, which are not made of it.
    pub rekey: bool,
}

/// Returns what would be taken out; `rekey` if the sessions are to get other ids.
pub fn redaction(
    archive: &Archive,
    wanted: &Wanted<'_>,
    rekey: bool,
) -> Result<Redacted, OpsError> {
    let search = Search::new(archive, wanted, rekey)?;
    let mut redacted = report(archive, &search.all(archive)?, true)?;
    redacted.rules = search.rules();
    redacted.kept_out = search.is_kept_out();
    Ok(redacted)
}

/// Takes something out of every session that has it, and leaves no trace of it in the store or in the sessions' own files.
pub fn redact(
    archive: &mut Archive,
    wanted: &Wanted<'_>,
    cause: Cause<'_>,
) -> Result<Redacted, OpsError> {
    let whole = matches!(wanted, Wanted::Session(_));
    let rules: OnceCell<Vec<String>> = OnceCell::new();
    let mut is_kept_out = false;
    let all_rules = || rules.get().map(|rules| rules.join(", ")).filter(|rules| !rules.is_empty());
    let command = |lines| Command::Redact {
        lines,
        rule: cause.rule.map(str::to_owned).or_else(all_rules),
        whole,
        by: cause.by.map(given),
        reason: cause.reason.map(given),
    };
    let archive = &*archive;
    let (found, done) = sync::redact(archive, &command, cause.rule, || {
        let search = Search::new(archive, wanted, cause.rekey)?;
        rules.get_or_init(|| search.rules());
        is_kept_out = search.is_kept_out();
        let redactions = search.all(archive)?;
        // Whoever has the store could try guesses at what is known of it.
        let kept_out =
            if cause.rekey { Vec::new() } else { search.rows(archive.salt(), cause.rule) };
        let rekey = (cause.rekey, cause.by.map(given));
        Ok::<_, OpsError>(Found { redactions, kept_out, rekey })
    })?;
    let mut redacted = report(archive, &found, false)?;
    redacted.rules = rules.into_inner().unwrap_or_default();
    redacted.kept_out = is_kept_out;
    redacted.covered = done.covered;
    redacted.left = paths(done.left);
    redacted.deleted = done.deleted;
    redacted.is_in_log = done.is_in_log;
    redacted.rekeyed = done.rekeyed;
    redacted.notices = done.notices;
    Ok(redacted)
}

/// Covers the files of sessions that hold again what was taken out of them before, as an older copy brings it back.
pub fn cover_again(archive: &mut Archive) -> Result<Redacted, OpsError> {
    let sync::Purged { covered, left, .. } = sync::cover_again(archive)?;
    Ok(Redacted { covered, left: paths(left), ..Redacted::default() })
}

/// Gives a session of which something was taken out before ids that are not made of it, and those that refer to its entries.
pub fn rekey(
    archive: &mut Archive,
    session: &Session,
    by: Option<&str>,
) -> Result<Redacted, OpsError> {
    let done = sync::rekey(archive, session, by.map(given).as_ref())?;
    let sync::Purged { covered, left, deleted, is_in_log, rekeyed, notices } = done;
    let left = paths(left);
    Ok(Redacted { covered, left, deleted, is_in_log, rekeyed, notices, ..Redacted::default() })
}

fn paths(left: Vec<(SessionKey, PathBuf)>) -> Vec<PathBuf> {
    left.into_iter().map(|(_, path)| path).collect()
}

fn report(archive: &Archive, found: &[Redaction], planned: bool) -> Result<Redacted, OpsError> {
    let mut redacted = Redacted { planned, ..Redacted::default() };
    if planned && let Some(root) = archive.root() {
        redacted.deleted = sync::set_aside(root);
    }
    for Redaction { session, lines, rules, words, kept, fixed } in found {
        if let Some(place) = fixed {
            let id = &session.name.id;
            let why = format!("it stands in {place} of session {id}, which cannot be taken out");
            return Err(SyncError::Unsupported(why).into());
        }
        let card = archive.store().card(session.key)?;
        let count = lines.len() as u64;
        redacted.lines += count;
        let state = archive.store().state(session.key)?;
        let files: BTreeSet<_> = kept.iter().filter_map(|kept| kept.file).collect();
        let places = files.into_iter().filter_map(|n| state.file(n));
        redacted.files.extend(places.map(|place| match archive.path_of(place) {
            Some(path) => path,
            None => OsStr::from_bytes(place.path()).into(),
        }));
        redacted.notes += words.len() as u64;
        redacted.sessions.push(RedactedSession {
            session: session.name.id.clone(),
            format: session.name.format.clone(),
            // Who has rules look for secrets has not seen them yet.
            title: card.title.filter(|_| !planned || rules.is_empty()),
            lines: count,
        });
    }
    Ok(redacted)
}

/// What is looked for in lines.
struct Search {
    secrets: Vec<Secret>,
    /// The rules that found them, in the same order; none if no rule did.
    rules: Vec<&'static str>,
    /// The lines that are covered whole.
    lines: BTreeSet<LineId>,
    /// The session of which all words of persons go.
    whole: Option<Session>,
    /// Whether the sessions get other ids.
    rekey: bool,
    sieve: Sieve,
}

impl Search {
    fn new(archive: &Archive, wanted: &Wanted<'_>, rekey: bool) -> Result<Self, OpsError> {
        let (mut secrets, mut whole_of, mut whole) = (Vec::new(), BTreeSet::new(), None);
        let (store, mut rules) = (archive.store(), Vec::new());
        match wanted {
            Wanted::Found(found) => {
                for Suspect { rule, secret } in suspects(archive, found)? {
                    let secret = Secret::new(&secret, wire::says_nothing);
                    rules.extend(secret.is_some().then_some(rule));
                    secrets.extend(secret);
                }
            }
            Wanted::Secret(secret) => {
                let secret = Secret::new(secret, wire::says_nothing);
                secrets.push(secret.ok_or(OpsError::TooShort { least: crate::cover::SHORTEST })?);
            }
            Wanted::Entry(session, target) => {
                let entry = lines::entry_of(store, session, target)?;
                let none = || SessionError::NoEntry("before the first".to_owned());
                for entry in versions(store, session, entry.ok_or_else(none)?)? {
                    whole_lines(store, session.key, &[entry], &mut |_, line| {
                        whole_of.insert(LineId::of(&line));
                        secrets.extend(long_texts(&line));
                    })?;
                }
            }
            Wanted::Session(session) => {
                let all = EntryNumber::FIRST..store.state(session.key)?.next_entry();
                for batch in EntryNumber::batches(all, BATCH) {
                    let entries: Vec<_> = EntryNumber::each(batch).collect();
                    whole_lines(store, session.key, &entries, &mut |_, line| {
                        whole_of.insert(LineId::of(&line));
                    })?;
                }
                whole = Some((*session).clone());
            }
        }
        // Of a line that goes as a whole nothing is known by which it is found.
        let needles: Option<Vec<_>> = secrets.iter().map(Secret::needles).collect();
        let needles = needles.filter(|_| whole_of.is_empty()).map(|needles| needles.concat());
        let needles = needles.and_then(|needles| AhoCorasick::new(needles).ok());
        let sieve = match needles {
            Some(needles) => {
                Sieve::new([move |bytes: &[u8]| needles.find(bytes).map(|found| found.range())])
            }
            None => Sieve::new([|bytes: &[u8]| Some(0..bytes.len())]),
        };
        Ok(Self { secrets, rules, lines: whole_of, whole, rekey, sieve })
    }

    /// Returns the rows by which the store knows these secrets again in what comes later, and covers them there too. A line
    /// that goes as a whole has none: its id tells.
    fn rows(&self, salt: [u8; 16], rule: Option<&str>) -> Vec<Vec<u8>> {
        let secrets = self.secrets.iter().enumerate();
        let rows =
            secrets.map(|(n, secret)| secret.rows(salt, self.rules.get(n).copied().or(rule)));
        rows.flatten().collect()
    }

    /// Returns whether all of it is kept out of what comes later: by other ids nothing is, and what is too short is not.
    fn is_kept_out(&self) -> bool {
        !self.rekey && self.secrets.iter().all(Secret::can_be_kept_out)
    }

    /// Returns the names of the rules that found what is looked for.
    fn rules(&self) -> Vec<String> {
        let names: BTreeSet<&str> = self.rules.iter().copied().collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Looks through all sessions.
    fn all(&self, archive: &Archive) -> Result<Vec<Redaction>, OpsError> {
        let sessions = archive.every()?;
        let work = |store: &dyn Store, n: usize| match sessions.get(n) {
            Some(session) => self.look(store, session).map(Some),
            None => Ok(None),
        };
        let (mut found, mut failed) = (Vec::new(), None);
        in_order(archive.store(), sessions.len(), &work, &mut |looked| match looked {
            Ok(redaction) => found.extend(redaction),
            Err(error) => failed = failed.take().or(Some(error)),
        });
        found.retain(|one: &Redaction| !one.is_nothing() || one.fixed.is_some());
        failed.map_or(Ok(found), |error: OpsError| Err(error))
    }

    /// Looks through a session.
    fn look(&self, store: &dyn Store, session: &Session) -> Result<Redaction, OpsError> {
        let state = store.state(session.key)?;
        let (mut lines, mut damaged) = (Vec::new(), None);
        let mut fixed = self.fixed(session, &state).or(self.unfinished(store, session, &state)?);
        let mut rules = BTreeMap::new();
        let all = EntryNumber::FIRST..state.next_entry();
        store.sift(session.key, all, &self.sieve, &mut |entry, line| match line {
            Ok(line) => {
                let (covered, found) = self.cover(session, &line);
                if let Some(covered) = covered.filter(|covered| *covered != line) {
                    let is_whole = self.lines.contains(&LineId::of(&line));
                    if name_of(&line) != name_of(&covered)
                        || !is_whole && !is_framed_alike(session, &line, &covered)
                    {
                        let place = || format!("what makes entry {entry} a record");
                        fixed = fixed.take().or_else(|| Some(place()));
                    }
                    rules.extend(found.map(|found| (entry, found)));
                    lines.push((entry, covered));
                }
            }
            Err(error) => damaged = damaged.take().or(Some(error)),
        })?;
        if let Some(error) = damaged {
            // What cannot be read might have it.
            return Err(error.into());
        }
        let words = self.words(store, session, &state)?;
        let kept = self.kept(store, session, &state)?;
        Ok(Redaction { session: session.clone(), lines, rules, words, kept, fixed })
    }

    /// Returns the files of a session that are kept whole and have it.
    fn kept(
        &self,
        store: &dyn Store,
        session: &Session,
        state: &State,
    ) -> Result<Vec<Kept>, OpsError> {
        let is_whole = self.whole.as_ref().is_some_and(|whole| whole.key == session.key);
        let mut kept = Vec::new();
        let all = OperationNumber::FIRST..state.next_operation();
        for operation in store.operations(session.key, all)? {
            let facts = &operation.facts;
            let packed = facts.containers.iter().map(|one| (true, state.file_of(one.generation)));
            let plain = facts.sidecars.iter().map(|one| (false, Some(one.file)));
            for (at, (is_packed, file)) in (0..).zip(packed.chain(plain)) {
                let bytes = store.kept(session.key, operation.n, at)?;
                let covered = if is_packed {
                    sync::cover_packed(&bytes, &mut |line| self.cover(session, line).0).map_err(
                        |error| StoreError::corrupt(session.name.id.clone(), error.to_string()),
                    )?
                } else if is_whole {
                    Some(cover_all(&bytes, &wire::says_nothing, &|_| [0, 0]))
                } else {
                    self.cover_secrets(&bytes).0
                };
                if let Some(bytes) = covered.filter(|covered| *covered != bytes) {
                    kept.push(Kept { file, at: (operation.n, at), bytes });
                }
            }
        }
        Ok(kept)
    }

    /// Returns whether it stands in an unfinished line, as it was read once: other ids leave nothing of those that were finished.
    fn unfinished(
        &self,
        store: &dyn Store,
        session: &Session,
        state: &State,
    ) -> Result<Option<String>, StoreError> {
        let has = |tail: &[u8]| self.secrets.iter().any(|secret| secret.is_in(tail));
        let is_last = |run: &Run| state.ends.get(&run.generation) == Some(run);
        let runs = store.growths(session.key, OperationNumber::ALL)?;
        let mut runs = runs.iter().filter(|(_, run)| has(&run.tail));
        let found = runs.find(|(_, run)| !self.rekey || is_last(run));
        Ok(found.map(|(by, run)| {
            let unless = if is_last(run) { "" } else { " (without --rekey)" };
            format!("an unfinished line that operation {by} read{unless}")
        }))
    }

    /// Returns what of a session's names holds something that is looked for: names stay, so that no redaction covers it.
    fn fixed(&self, session: &Session, state: &State) -> Option<String> {
        // An entry's long texts, and what a session says, are no names.
        if !self.lines.is_empty() {
            return None;
        }
        let has = |bytes: &[u8]| self.secrets.iter().any(|secret| secret.is_in(bytes));
        if has(session.name.id.as_bytes()) {
            return Some("the id".to_owned());
        }
        state.files.iter().any(|place| has(place.path())).then(|| "the path of a file".to_owned())
    }

    /// Returns what is to stand in the place of a line of a session, if it has anything of what is looked for, and the rules that found it.
    fn cover(&self, session: &Session, line: &[u8]) -> (Option<Vec<u8>>, Option<String>) {
        if self.lines.contains(&LineId::of(line)) {
            let own = |text: &str| session.format.own_words(text);
            return (Some(cover_all(line, &wire::says_nothing, &own)), None);
        }
        self.cover_secrets(line)
    }

    /// Returns bytes with all secrets covered that are looked for, if they have any, and the rules that found these.
    fn cover_secrets(&self, line: &[u8]) -> (Option<Vec<u8>>, Option<String>) {
        let mut covered: Option<Vec<u8>> = None;
        let mut rules = BTreeSet::new();
        for (n, secret) in self.secrets.iter().enumerate() {
            if let Some(next) = secret.cover(covered.as_deref().unwrap_or(line)) {
                rules.extend(self.rules.get(n).copied());
                covered = Some(next);
            }
        }
        let rules = rules.into_iter().collect::<Vec<_>>().join(", ");
        (covered, Some(rules).filter(|rules| !rules.is_empty()))
    }

    /// Returns the words of persons in a session's operations that have it.
    fn words(
        &self,
        store: &dyn Store,
        session: &Session,
        state: &State,
    ) -> Result<Vec<TakenOut>, StoreError> {
        let is_whole = self.whole.as_ref().is_some_and(|whole| whole.key == session.key);
        let has = |text: &str| self.secrets.iter().any(|secret| secret.is_in(text.as_bytes()));
        let mut found = Vec::new();
        each_given(store, session, state, &mut |operation, words| {
            if is_whole || has(&words.text) {
                found.push(TakenOut { session: session.key, operation, digest: words.digest() });
            }
        })?;
        Ok(found)
    }
}

/// Returns an entry, those that it stands for, and those that stand for it.
fn versions(
    store: &dyn Store,
    session: &Session,
    entry: EntryNumber,
) -> Result<BTreeSet<EntryNumber>, OpsError> {
    let first = origins::first(store, session, entry)?;
    let mut versions = BTreeSet::from([first, entry]);
    for (_, origin) in store.origins(session.key, EntryNumber::ALL)? {
        if versions.contains(&origin.origin) || versions.contains(&origin.entry) {
            versions.extend([origin.entry, origin.origin]);
        }
    }
    Ok(versions)
}

/// Returns the long texts that a line says.
fn long_texts(line: &[u8]) -> Vec<Secret> {
    let Some(record) = Raw::object(line) else { return Vec::new() };
    let texts = record.strings(&wire::says_nothing).filter_map(Raw::text);
    texts
        .filter(|text| text.len() >= LONG)
        .filter_map(|text| Secret::new(&text, wire::says_nothing))
        .collect()
}

/// Returns whether two lines are the same as records, apart from what they say.
fn is_framed_alike(session: &Session, line: &[u8], other: &[u8]) -> bool {
    let envelope = |line| {
        let record = Raw::object(line);
        record.map_or_else(Envelope::opaque, |record| session.format.envelope(record))
    };
    envelope(line).frame() == envelope(other).frame()
}

/// Returns the name that a record has, as its bytes.
fn name_of(bytes: &[u8]) -> Option<&[u8]> {
    let found = line::split(bytes, false, false).next()?;
    found.bytes.get(found.shape?.name?)
}
