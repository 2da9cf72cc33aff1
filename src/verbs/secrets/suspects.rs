//! Suspects: what looks like a secret in any session. Each is listed once, with all its places.
//!
//! ```text
//! sieve    the store passes only lines in which a rule matches; a text that many lines share is searched once
//! lines    each line that passed is read in full and searched by the rules
//! rest     stored files, unfinished lines and user texts of each session
//! places   resolved in one pass over each session
//! ```
//!
//! Invariant: no secret leaves this file except to be redacted. Reports contain only its mask, which shows two characters at each
//! end of a long secret, and never a title, name or path that contains part of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    archive::{Archive, At},
    cover::SHORTEST,
    model::{EntryId, EntryNumber, FileNumber, Kind, OperationNumber},
    report::{FoundPlace, Secret, SecretPlace, Secrets, UnreadSession},
    secrets::{Allowed, Found, Masking, Masks, Rules},
    session::{Session, Stand, Stored, read::status::Precision},
    store::{SessionFilter, Sieve, Store, StoreError},
    verbs::{
        OpsError,
        find::{
            members::{Member, members, or_named, places_of},
            threads::{Readers, in_order},
        },
        secrets::parts::{Part, parts},
    },
};

/// How many entries are searched together.
const PIECE: usize = 2048;
/// A part of a secret this long reveals something about it.
const TELLING: usize = 6;
/// A match at the end of an unfinished line must be this long; a shorter one may be the beginning of something else.
const WHOLE: usize = 20;
/// The minimum number of characters for a mask to show the first two, and for it to show the last two as well.
const MASKABLE: [usize; 2] = [10, 16];
/// How many bytes before a secret are shown.
const LEAD: usize = 32;
/// Reported instead of a name that contains part of a secret.
const MASKED: &str = "[masked]";

/// Which secrets to look for, and where.
#[derive(Clone, Debug, Default)]
pub struct Suspects {
    /// Only in this session; by default in all, including hidden ones and sub-agents.
    pub session: Option<Session>,
    /// Only in this entry of it.
    pub entry: Option<EntryId>,
    /// Only what these rules match; all rules if empty.
    pub rules: Vec<String>,
    /// Matches that are not secrets.
    pub allowed: Allowed,
}

/// A secret, and the rule that found it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Suspect {
    pub(crate) rule: &'static str,
    pub(crate) secret: String,
}

/// Where in a session something was found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Entry(EntryNumber),
    Kept(FileNumber),
    Unfinished(OperationNumber),
    Given(OperationNumber),
}

/// The matches in a piece of a session.
#[derive(Default)]
struct Answer {
    found: Vec<Find>,
    /// How many entries are damaged.
    damaged: u64,
}

/// A match at a place.
struct Find {
    at: Place,
    found: Found,
    /// The text before it.
    lead: String,
}

impl Find {
    /// Returns the matches in a text at a place.
    fn all(text: &[u8], at: Place) -> impl Iterator<Item = Self> {
        let found = Rules::get().find(text).into_iter();
        found.map(move |found| Self { at, lead: lead(text, &found.secret), found })
    }
}

/// Returns the text before a secret, from the same line of a text that may be escaped.
fn lead(text: &[u8], secret: &str) -> String {
    let at = memchr::memmem::find(text, secret.as_bytes()).unwrap_or_default();
    let before = text.get(at.saturating_sub(LEAD)..at).unwrap_or_default();
    let is_end = |byte: &u8| byte.is_ascii_control() || b"\"\\{}<>".contains(byte);
    let cut = before.iter().rposition(is_end);
    // An escape is a backslash and a letter; both are cut.
    let from = cut.map_or(0, |at| at + if before.get(at) == Some(&b'\\') { 2 } else { 1 });
    let words = String::from_utf8_lossy(before.get(from..).unwrap_or_default());
    let is_cut = cut.is_none() && at > LEAD;
    let whole = words.split_once(' ').filter(|_| is_cut).map(|(_, whole)| whole);
    whole.unwrap_or(&words).replace('\u{fffd}', "")
}

/// Returns a secret with most of its characters masked.
fn mask(secret: &str) -> String {
    let n = secret.chars().count();
    let [first, both] = MASKABLE.map(|least| if n >= least { 2 } else { 0 });
    let head: String = secret.chars().take(first).collect();
    let tail: String = secret.chars().skip(n - both).collect();
    format!("{head}••••••{tail}")
}

/// All matches.
#[derive(Default)]
struct Findings {
    members: Vec<Member>,
    secrets: BTreeMap<String, Known>,
    /// The allowed ones: neither they nor parts of them are reported.
    allowed: BTreeSet<String>,
    told: Secrets,
}

/// What is known of a secret.
struct Known {
    /// The strongest rule that matches.
    rule: usize,
    /// Its places: the member, and the place in it.
    places: Vec<(usize, Place)>,
    /// The text before it at its first place.
    lead: String,
}

/// Looks for secrets and reports their places. `step` gets the number of finished pieces and of all pieces.
pub fn audit_secrets(
    archive: &Archive,
    suspects: &Suspects,
    step: &mut dyn FnMut(u64, u64),
) -> Result<Secrets, OpsError> {
    let findings = find(archive, suspects, step)?;
    Ok(tell(archive, suspects, findings)?.0)
}

/// Returns the secrets themselves, for redacting them.
pub(crate) fn suspects(archive: &Archive, suspects: &Suspects) -> Result<Vec<Suspect>, OpsError> {
    let findings = find(archive, suspects, &mut |_, _| ())?;
    Ok(tell(archive, suspects, findings)?.1)
}

/// Returns masks for a document of a session: a secret found anywhere in the session is masked everywhere.
pub fn masking(session: &At<'_>, masks: Masks) -> Result<Masking, OpsError> {
    let found = match &masks.secrets {
        Some(allowed) => {
            let (only, allowed) = (Some(session.session.clone()), allowed.clone());
            let asked = Suspects { session: only, allowed, ..Suspects::default() };
            suspects(session.archive, &asked)?
        }
        None => Vec::new(),
    };
    let known = found.into_iter().map(|Suspect { rule, secret }| (secret, rule)).collect();
    Ok(Masking::new(masks, known))
}

/// Returns the names of all rules.
pub fn secret_rules() -> Vec<&'static str> {
    Rules::get().names().collect()
}

/// Searches all sessions in pieces: a range of entries, or `None` for everything stored apart from the entries.
fn find(
    archive: &Archive,
    suspects: &Suspects,
    step: &mut dyn FnMut(u64, u64),
) -> Result<Findings, OpsError> {
    let mut findings = Findings::default();
    // Threads read the store only; entries in live files ahead of it are overlaid and searched on this thread.
    let mut held = Readers::of(archive.store());
    let all = SessionFilter { hidden: true, ..SessionFilter::default() };
    let only = suspects.session.as_ref().map(std::slice::from_ref);
    let members = members(archive, &all, only, None, &mut findings.told.unread)?;
    let mut pieces: Vec<(usize, &Member, Option<Range<EntryNumber>>)> = Vec::new();
    for (n, member) in members.iter().enumerate() {
        let ranges = EntryNumber::batches(EntryNumber::FIRST..member.held, PIECE);
        pieces.extend(ranges.map(Some).chain([None]).map(|range| (n, member, range)));
    }
    let sieve = Sieve::new([|bytes: &[u8]| Rules::get().first(bytes)]);
    let work = |store: &dyn Store, n: usize| {
        let piece = pieces.get(n);
        piece.map(|(_, member, range)| {
            look(&Stored::of(store, &member.session)?, range.as_ref(), &sieve)
        })
    };
    let (mut ahead, mut failed) = (pieces.iter(), None);
    held.in_order(pieces.len(), &work, &mut |answer| {
        let Some(((n, member, _), answer)) = ahead.next().zip(answer) else { return };
        let mut damaged = Vec::new();
        match or_named(answer, &member.session, &mut damaged) {
            Ok(Some(answer)) => findings.take(suspects, *n, answer),
            Ok(None) => UnreadSession::add(damaged, &mut findings.told.unread),
            Err(error) => failed = failed.take().or(Some(error)),
        }
        step((pieces.len() - ahead.len()) as u64, pieces.len() as u64);
    });
    if let Some(error) = failed {
        return Err(error);
    }
    for (n, member) in members.iter().enumerate().filter(|(_, member)| member.is_grown) {
        let session = archive.at(&member.session)?;
        let grown = member.held..session.state.next_entry();
        findings.take(suspects, n, look(&session, Some(&grown), &sieve)?);
    }
    findings.told.sessions = members.len() as u64;
    findings.members = members;
    Ok(findings)
}

/// Searches entries of a session, or its other parts.
fn look(
    session: &Stored<'_>,
    entries: Option<&Range<EntryNumber>>,
    sieve: &Sieve,
) -> Result<Answer, OpsError> {
    let mut answer = Answer::default();
    if let Some(range) = entries {
        if !range.is_empty() {
            session.store.sift(
                session.key,
                range.clone(),
                sieve,
                &mut |entry, line| match line {
                    Ok(line) => answer.found.extend(Find::all(&line, Place::Entry(entry))),
                    Err(_) => answer.damaged += 1,
                },
            )?;
        }
        return Ok(answer);
    }
    for (file, (operation, at, _)) in &session.state.sidecars {
        let bytes = session.store.kept(session.key, *operation, *at)?;
        answer.found.extend(Find::all(&bytes, Place::Kept(*file)));
    }
    for part in parts(session)? {
        match part {
            // Only the current content of files is searched, above.
            Part::Kept(_) => {}
            Part::Read(operation, run) => {
                let Some(line) = run.unfinished() else { continue };
                let is_cut =
                    |secret: &str| secret.len() < WHOLE && line.ends_with(secret.as_bytes());
                let found = Find::all(line, Place::Unfinished(operation));
                answer.found.extend(found.filter(|one| !is_cut(&one.found.secret)));
            }
            Part::Given(operation, words) => {
                answer.found.extend(Find::all(words.text.as_bytes(), Place::Given(operation)));
            }
        }
    }
    Ok(answer)
}

impl Findings {
    /// Adds the matches in a part of a session.
    fn take(&mut self, suspects: &Suspects, member: usize, answer: Answer) {
        let rules = Rules::get();
        self.told.damaged += answer.damaged;
        for Find { at, found, lead } in answer.found {
            if suspects.allowed.has(rules, &found) {
                self.told.allowed += 1;
                self.allowed.insert(found.secret);
                continue;
            }
            let new = Known { rule: found.rule, places: Vec::new(), lead };
            let known = self.secrets.entry(found.secret).or_insert(new);
            // Rules are sorted by strength, strongest first.
            known.rule = found.rule.min(known.rule);
            if known.places.last() != Some(&(member, at)) {
                known.places.push((member, at));
            }
        }
    }
}

/// The places of the entries with matches in a session, and whether each is a summary.
type Standing = BTreeMap<EntryNumber, (FoundPlace, bool)>;

/// Reports the places of the secrets, and returns the secrets next to the report.
fn tell(
    archive: &Archive,
    suspects: &Suspects,
    findings: Findings,
) -> Result<(Secrets, Vec<Suspect>), OpsError> {
    let Findings { members, secrets: all, allowed, mut told } = findings;
    let rules = Rules::get();
    let telling = Telling::of(all.keys().chain(&allowed));
    let is_asked = |rule: usize| {
        suspects.rules.is_empty() || suspects.rules.iter().any(|name| name == rules.name(rule))
    };
    let secrets = || all.iter().filter(|(_, known)| is_asked(known.rule));
    let mut entries: BTreeMap<usize, Vec<EntryNumber>> = BTreeMap::new();
    for (member, at) in secrets().flat_map(|(_, known)| &known.places) {
        if let Place::Entry(entry) = at {
            entries.entry(*member).or_default().push(*entry);
        }
    }
    let standing = stand(archive, &members, &entries, &mut told)?;
    let mut found: Vec<((usize, Place), Secret, Suspect)> = Vec::new();
    for (secret, Known { rule, places: at, lead }) in secrets() {
        let mut at = at.clone();
        let rank = |(member, at): &(usize, Place)| {
            let place = match at {
                Place::Entry(entry) => standing.get(member).and_then(|all| all.get(entry)),
                _ => None,
            };
            (*member, !place.is_some_and(|(place, _)| place.stand == Stand::Current), *at)
        };
        at.sort_by_key(rank);
        let place = |(member, at): &(usize, Place)| {
            let (standing, member) = (standing.get(member), members.get(*member)?);
            place(archive, member, standing, *at, suspects, &telling).transpose()
        };
        let places: Vec<SecretPlace> = at.iter().filter_map(place).collect::<Result<_, _>>()?;
        told.allowed += (at.len() - places.len()) as u64 * u64::from(suspects.entry.is_none());
        if let Some(first) = at.first().filter(|_| !places.is_empty()) {
            let rule = rules.name(*rule);
            let characters = secret.chars().count();
            let lead = if telling.is_in(lead) { "" } else { lead };
            let masked = format!("{lead}{}", mask(secret));
            let told = Secret { rule: rule.to_owned(), masked, characters, places };
            found.push((*first, told, Suspect { rule, secret: secret.clone() }));
        }
    }
    found.sort_by_key(|(first, ..)| *first);
    let suspects = found.iter().map(|(.., suspect)| suspect.clone()).collect();
    told.found = found.into_iter().map(|(_, told, _)| told).collect();
    Ok((told, suspects))
}

/// Resolves the places of entries, in one pass over each session.
fn stand(
    archive: &Archive,
    members: &[Member],
    entries: &BTreeMap<usize, Vec<EntryNumber>>,
    told: &mut Secrets,
) -> Result<BTreeMap<usize, Standing>, OpsError> {
    let asked: Vec<(usize, &Member, &Vec<EntryNumber>)> =
        entries.iter().filter_map(|(n, all)| Some((*n, members.get(*n)?, all))).collect();
    // A thread does not see the overlay of a live file that is ahead of the store.
    let work = |store: &dyn Store, n: usize| {
        let (_, member, all) = asked.get(n).filter(|(_, member, _)| !member.is_grown)?;
        Some(standing(store, member, all))
    };
    let (mut answers, mut found) = (Vec::new(), BTreeMap::new());
    in_order(archive.store(), asked.len(), &work, &mut |answer| answers.push(answer));
    for ((n, member, all), answer) in asked.into_iter().zip(answers) {
        let answer = answer.unwrap_or_else(|| standing(archive.store(), member, all));
        let (standing, damaged) = answer?;
        UnreadSession::add(damaged, &mut told.unread);
        found.insert(n, standing);
    }
    Ok(found)
}

fn standing(
    store: &dyn Store,
    Member { session, listed, .. }: &Member,
    entries: &[EntryNumber],
) -> Result<(Standing, Vec<UnreadSession>), OpsError> {
    let mut damaged = Vec::new();
    let places = places_of(store, session, &listed.card, entries, Precision::Turn, &mut damaged)?;
    let mut standing = Standing::new();
    for (entry, place) in entries.iter().zip(places) {
        let records = store.records(session.key, entry.alone()).map_err(OpsError::from);
        let record = or_named(records, session, &mut damaged)?.and_then(|mut found| found.pop());
        let is_summary = record.is_some_and(|record| record.kind == Kind::Summary);
        standing.insert(*entry, (place, is_summary));
    }
    Ok((standing, damaged))
}

/// Returns a place for the report, or nothing if it is allowed or was not asked for.
fn place(
    archive: &Archive,
    Member { session, listed, .. }: &Member,
    standing: Option<&Standing>,
    at: Place,
    suspects: &Suspects,
    telling: &Telling<'_>,
) -> Result<Option<SecretPlace>, OpsError> {
    let harmless = |text: String| if telling.is_in(&text) { MASKED.to_owned() } else { text };
    let title = listed.card.title.clone().filter(|title| !telling.is_in(title));
    let name = session.name.clone();
    let mut place = SecretPlace { session: name, title, ..SecretPlace::default() };
    match at {
        Place::Entry(entry) => {
            let damage = || StoreError::corrupt(entry.to_string(), "it is not on any path");
            let found = standing.and_then(|all| all.get(&entry)).cloned();
            let (mut found, is_summary) = found.ok_or_else(damage)?;
            let is_other = suspects.entry.is_some() && suspects.entry != found.entry;
            if is_other || found.entry.is_some_and(|id| suspects.allowed.has_entry(id)) {
                return Ok(None);
            }
            found.title = found.title.filter(|title| !telling.is_in(title));
            found.folder = found.folder.filter(|folder| !telling.is_in(folder));
            if let Stand::Branch(name) = found.stand {
                found.stand = Stand::Branch(harmless(name));
            }
            (place.found, place.is_summary) = (Some(found), is_summary);
        }
        _ if suspects.entry.is_some() => return Ok(None),
        Place::Kept(file) => {
            let session = archive.at(session)?;
            let damage = || StoreError::corrupt("a session's state", "it does not name a file");
            let file = session.state.file(file).ok_or_else(damage)?;
            let path = archive.path_of(file).map(|path| path.display().to_string());
            let path = path.unwrap_or_else(|| String::from_utf8_lossy(file.path()).into_owned());
            place.file = Some(harmless(path));
        }
        Place::Unfinished(operation) => {
            (place.operation, place.is_unfinished) = (Some(operation), true);
        }
        Place::Given(operation) => place.operation = Some(operation),
    }
    Ok(Some(place))
}

/// All parts of secrets that reveal something about them.
struct Telling<'s>(BTreeSet<&'s [u8]>);

impl<'s> Telling<'s> {
    fn of(secrets: impl Iterator<Item = &'s String>) -> Self {
        let short = |secret: &'s String| {
            let bytes = secret.as_bytes();
            bytes.windows(TELLING.min(bytes.len()))
        };
        Self(secrets.flat_map(short).collect())
    }

    /// Returns true if a text contains a part of a secret.
    fn is_in(&self, text: &str) -> bool {
        let mut parts = (SHORTEST..=TELLING).flat_map(|length| text.as_bytes().windows(length));
        parts.any(|part| self.0.contains(part))
    }
}
