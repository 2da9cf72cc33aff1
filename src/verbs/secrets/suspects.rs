//! Suspects: what looks like a secret in any session, each once with all the places at which it is.
//!
//! ```text
//! sieve    the store lets those lines through in which a rule finds something; a text that many lines share is looked at once
//! lines    as they are meant: of each, what the rules find
//! rest     of each session the files that are kept whole, lines that were read unfinished, and the words of persons
//! places   one look at a session for all of its finds
//! ```
//!
//! Invariant: a secret leaves this file only for what takes it out. Reports have its mask, with two characters at each end if it
//! is long, and no title, name or path that has a part of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    archive::Archive,
    cover::SHORTEST,
    model::{EntryId, EntryNumber, FileNumber, Kind, OperationNumber},
    report::{FoundPlace, Secret, SecretPlace, Secrets, Spot, UnreadSession},
    secrets::{Allowed, Found, Masking, Masks, Rules},
    session::{Session, Stand},
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

/// How many entries are looked through together.
const PIECE: usize = 2048;
/// How long a part of a secret is that tells something of it.
const TELLING: usize = 6;
/// How long a find must be that an unfinished line ends with: a shorter one may be the beginning of another.
const WHOLE: usize = 20;
/// How many characters a secret has whose mask shows its first two, and its last two as well.
const MASKABLE: [usize; 2] = [10, 16];
/// How many bytes in front of a secret are shown.
const LEAD: usize = 32;
/// What is told in place of a name that has a part of a secret.
const MASKED: &str = "[masked]";

/// Which secrets are looked for, and where.
#[derive(Clone, Debug, Default)]
pub struct Suspects {
    /// Only in this session; without one, in all of them, hidden ones and sub-agents included.
    pub session: Option<Session>,
    /// In this entry of it only.
    pub entry: Option<EntryId>,
    /// What these rules find only; what any rule finds, if it is empty.
    pub rules: Vec<String>,
    /// What is no secret although a rule finds it.
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
enum At {
    Entry(EntryNumber),
    Kept(FileNumber),
    Unfinished(OperationNumber),
    Given(OperationNumber),
}

/// What was found in a piece of a session.
#[derive(Default)]
struct Answer {
    found: Vec<Find>,
    /// How many entries are damaged.
    damaged: u64,
}

/// What was found at a place.
struct Find {
    at: At,
    found: Found,
    /// The words in front of it.
    lead: String,
}

impl Find {
    /// Returns what was found in a text at a place.
    fn all(text: &[u8], at: At) -> impl Iterator<Item = Self> {
        let found = Rules::get().find(text).into_iter();
        found.map(move |found| Self { at, lead: lead(text, &found.secret), found })
    }
}

/// Returns the words in front of a secret, on the same line of a text that may be escaped.
fn lead(text: &[u8], secret: &str) -> String {
    let at = memchr::memmem::find(text, secret.as_bytes()).unwrap_or_default();
    let before = text.get(at.saturating_sub(LEAD)..at).unwrap_or_default();
    let is_end = |byte: &u8| byte.is_ascii_control() || b"\"\\{}<>".contains(byte);
    let cut = before.iter().rposition(is_end);
    // An escape is a backslash with a letter.
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

/// All that was found.
#[derive(Default)]
struct Findings {
    members: Vec<Member>,
    secrets: BTreeMap<String, Known>,
    /// Those that are allowed: they are not told, and neither is any part of them.
    allowed: BTreeSet<String>,
    told: Secrets,
}

/// What is known of a secret.
struct Known {
    /// The strongest rule.
    rule: usize,
    /// Where it is: the member, and the place in it.
    places: Vec<(usize, At)>,
    /// The words in front of it, where it was found first.
    lead: String,
}

/// Looks for secrets, and tells where they stand; `step` is told of each part of the work, and of all parts, when it is done.
pub fn audit_secrets(
    archive: &Archive,
    suspects: &Suspects,
    step: &mut dyn FnMut(u64, u64),
) -> Result<Secrets, OpsError> {
    let findings = find(archive, suspects, step)?;
    Ok(tell(archive, suspects, findings)?.0)
}

/// Returns the secrets themselves, for what takes them out.
pub(crate) fn suspects(archive: &Archive, suspects: &Suspects) -> Result<Vec<Suspect>, OpsError> {
    let findings = find(archive, suspects, &mut |_, _| ())?;
    Ok(tell(archive, suspects, findings)?.1)
}

/// Returns masks for a document of a session: what is found anywhere in the session is masked wherever it is.
pub fn masking(archive: &Archive, session: &Session, masks: Masks) -> Result<Masking, OpsError> {
    let found = match &masks.secrets {
        Some(allowed) => {
            let (session, allowed) = (Some(session.clone()), allowed.clone());
            suspects(archive, &Suspects { session, allowed, ..Suspects::default() })?
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

/// Looks through all sessions, in pieces: some entries of one, or with no range, what is kept next to them.
fn find(
    archive: &Archive,
    suspects: &Suspects,
    step: &mut dyn FnMut(u64, u64),
) -> Result<Findings, OpsError> {
    let mut findings = Findings::default();
    // Threads read what the store holds, and what live files hold beyond it is laid over it and looked through here.
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
        piece.map(|(_, member, range)| look(store, &member.session, range.as_ref(), &sieve))
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
        let end = archive.store().state(member.session.key)?.next_entry();
        let grown = member.held..end;
        findings.take(suspects, n, look(archive.store(), &member.session, Some(&grown), &sieve)?);
    }
    findings.told.sessions = members.len() as u64;
    findings.members = members;
    Ok(findings)
}

/// Looks through entries of a session, or through its other parts.
fn look(
    store: &dyn Store,
    session: &Session,
    entries: Option<&Range<EntryNumber>>,
    sieve: &Sieve,
) -> Result<Answer, OpsError> {
    let mut answer = Answer::default();
    if let Some(range) = entries {
        if !range.is_empty() {
            store.sift(session.key, range.clone(), sieve, &mut |entry, line| match line {
                Ok(line) => answer.found.extend(Find::all(&line, At::Entry(entry))),
                Err(_) => answer.damaged += 1,
            })?;
        }
        return Ok(answer);
    }
    let state = store.state(session.key)?;
    for (file, (operation, at, _)) in &state.sidecars {
        let bytes = store.kept(session.key, *operation, *at)?;
        answer.found.extend(Find::all(&bytes, At::Kept(*file)));
    }
    for part in parts(store, session, &state)? {
        match part {
            // Of a file, what it holds now is looked at.
            Part::Kept(_) => {}
            Part::Read(operation, run) => {
                let Some(line) = run.unfinished() else { continue };
                let is_cut =
                    |secret: &str| secret.len() < WHOLE && line.ends_with(secret.as_bytes());
                let found = Find::all(line, At::Unfinished(operation));
                answer.found.extend(found.filter(|one| !is_cut(&one.found.secret)));
            }
            Part::Given(operation, words) => {
                answer.found.extend(Find::all(words.text.as_bytes(), At::Given(operation)));
            }
        }
    }
    Ok(answer)
}

impl Findings {
    /// Takes what was found in a part of a session.
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
            // Rules are in the order of their strength.
            known.rule = found.rule.min(known.rule);
            if known.places.last() != Some(&(member, at)) {
                known.places.push((member, at));
            }
        }
    }
}

/// Where the entries of a session stand in which something was found, and which of them are summaries.
type Standing = BTreeMap<EntryNumber, (FoundPlace, bool)>;

/// Tells where the secrets stand, and returns them next to it.
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
        if let At::Entry(entry) = at {
            entries.entry(*member).or_default().push(*entry);
        }
    }
    let standing = stand(archive, &members, &entries, &mut told)?;
    let mut found: Vec<((usize, At), Secret, Suspect)> = Vec::new();
    for (secret, Known { rule, places: at, lead }) in secrets() {
        let mut at = at.clone();
        let rank = |(member, at): &(usize, At)| {
            let place = match at {
                At::Entry(entry) => standing.get(member).and_then(|all| all.get(entry)),
                _ => None,
            };
            (*member, !place.is_some_and(|(place, _)| place.stand == Stand::Current), *at)
        };
        at.sort_by_key(rank);
        let place = |(member, at): &(usize, At)| {
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

/// Returns where entries stand, of each session with one look at it.
fn stand(
    archive: &Archive,
    members: &[Member],
    entries: &BTreeMap<usize, Vec<EntryNumber>>,
    told: &mut Secrets,
) -> Result<BTreeMap<usize, Standing>, OpsError> {
    let asked: Vec<(usize, &Member, &Vec<EntryNumber>)> =
        entries.iter().filter_map(|(n, all)| Some((*n, members.get(*n)?, all))).collect();
    // A thread does not see what a live file holds beyond the store.
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
    let places = places_of(store, session, &listed.card, entries, false, &mut damaged)?;
    let mut standing = Standing::new();
    for (entry, place) in entries.iter().zip(places) {
        let records = store.records(session.key, entry.alone()).map_err(OpsError::from);
        let record = or_named(records, session, &mut damaged)?.and_then(|mut found| found.pop());
        let is_summary = record.is_some_and(|record| record.kind == Kind::Summary);
        standing.insert(*entry, (place, is_summary));
    }
    Ok((standing, damaged))
}

/// Returns a place as it is told; nothing if it is allowed, or not asked for.
fn place(
    archive: &Archive,
    Member { session, listed, .. }: &Member,
    standing: Option<&Standing>,
    at: At,
    suspects: &Suspects,
    telling: &Telling<'_>,
) -> Result<Option<SecretPlace>, OpsError> {
    let harmless = |text: String| if telling.is_in(&text) { MASKED.to_owned() } else { text };
    let spot = match at {
        At::Entry(entry) => {
            let damage = || StoreError::corrupt(entry.to_string(), "it is not on any path");
            let place = standing.and_then(|all| all.get(&entry)).cloned();
            let (mut found, is_summary) = place.ok_or_else(damage)?;
            let is_other = suspects.entry.is_some() && suspects.entry != found.entry;
            if is_other || found.entry.is_some_and(|id| suspects.allowed.has_entry(id)) {
                return Ok(None);
            }
            found.title = found.title.filter(|title| !telling.is_in(title));
            found.folder = found.folder.filter(|folder| !telling.is_in(folder));
            if let Stand::Branch(name) = found.stand {
                found.stand = Stand::Branch(harmless(name));
            }
            Spot::Entry { found, is_summary }
        }
        _ if suspects.entry.is_some() => return Ok(None),
        At::Kept(file) => {
            let state = archive.store().state(session.key)?;
            let damage = || StoreError::corrupt("a session's state", "it does not name a file");
            let place = state.file(file).ok_or_else(damage)?;
            let path = archive.path_of(place).map(|path| path.display().to_string());
            let path = path.unwrap_or_else(|| String::from_utf8_lossy(place.path()).into_owned());
            Spot::Kept { path: harmless(path) }
        }
        At::Unfinished(operation) => Spot::Unfinished { operation },
        At::Given(operation) => Spot::Given { operation },
    };
    let title = listed.card.title.clone().filter(|title| !telling.is_in(title));
    Ok(Some(SecretPlace { session: session.name.clone(), title, spot }))
}

/// Parts of secrets that tell something of them.
struct Telling<'s>(BTreeSet<&'s [u8]>);

impl<'s> Telling<'s> {
    fn of(secrets: impl Iterator<Item = &'s String>) -> Self {
        let short = |secret: &'s String| {
            let bytes = secret.as_bytes();
            bytes.windows(TELLING.min(bytes.len()))
        };
        Self(secrets.flat_map(short).collect())
    }

    /// Returns whether a text has a part of a secret.
    fn is_in(&self, text: &str) -> bool {
        let mut parts = (SHORTEST..=TELLING).flat_map(|length| text.as_bytes().windows(length));
        parts.any(|part| self.0.contains(part))
    }
}
