//! Hits: texts found in sessions that share a history. Each text appears once, with every place that has it.
//!
//! ```text
//! found      A3 A3 A7 A9   C3 C9        A3 and C3 are the same text with the same time
//! texts      A9 C9, A7, A3 C3           newest session first, from its newest entry on
//! hits       some of them, with their places: finding the places costs most
//! ```

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use crate::{
    model::{EntryId, EntryNumber, EntrySet, Position, Timestamp},
    report::{FoundPlace, Hit, UnreadSession},
    search::Found,
    session::{
        Damages, Session, Stand, Stored, View, entry_ids,
        read::{
            status::Precision,
            tools::{self, CALL_WITHIN},
        },
    },
    store::Store,
    verbs::{
        OpsError,
        find::{
            members::{Member, or_named, places_of},
            query::Search,
        },
    },
};

/// A text with a match.
#[derive(Clone)]
pub(crate) struct Text {
    pub(crate) found: Found,
    /// The members of the group that have it, first one first, and the entries where they have it.
    pub(crate) at: Vec<(usize, EntryNumber)>,
}

/// The identity of a text: its hash and time, or its hash and entry if it has no time.
type Same = ([u8; 32], Option<Timestamp>, Option<(Alone, usize)>);

/// An entry, by id where sessions may share it, otherwise by session.
type Alone = Result<EntryId, (usize, EntryNumber)>;

/// Returns the texts found in a group, newest first.
pub(crate) fn texts(
    store: &dyn Store,
    search: &Search,
    members: &[Member],
    found: Vec<(usize, Found)>,
    damaged: &mut Vec<UnreadSession>,
) -> Result<Vec<Text>, OpsError> {
    let mut by_member: BTreeMap<usize, Vec<Found>> = BTreeMap::new();
    for (n, found) in found {
        by_member.entry(n).or_default().push(found);
    }
    let mut texts: Vec<Text> = Vec::new();
    let mut known: BTreeMap<Same, usize> = BTreeMap::new();
    for (n, found) in by_member {
        let Some(Member { session, .. }) = members.get(n) else { continue };
        let asked = of_tool(store, session, search.tool.as_deref(), found)
            .and_then(|found| on_branch(store, session, search.branch.as_deref(), found));
        let Some(mut found) = or_named(asked, session, damaged)? else { continue };
        found.sort_by_key(|found| (Reverse(found.entry), found.text));
        let undated = found.iter().filter(|found| members.len() > 1 && found.time.is_none());
        let ids = entry_ids(store, session, &undated.map(|found| found.entry).collect())?;
        for found in found {
            let alone = ids.get(&found.entry).copied().ok_or((n, found.entry));
            let alone = found.time.is_none().then_some((alone, found.text));
            let same = (found.sum, found.time, alone);
            if let Some(text) = known.get(&same).and_then(|at| texts.get_mut(*at)) {
                text.at.push((n, found.entry));
            } else {
                known.insert(same, texts.len());
                texts.push(Text { at: vec![(n, found.entry)], found });
            }
        }
    }
    // Texts with equal times are reported in their order in the session.
    texts.sort_by_key(|Text { found, at }| (Reverse(found.time), at.first().copied(), found.text));
    Ok(texts)
}

/// Returns a hit for each text, or `None` if it is no longer anywhere.
pub(crate) fn hits(
    store: &dyn Store,
    members: &[Member],
    mut texts: Vec<Text>,
    precision: Precision,
    damaged: &mut Vec<UnreadSession>,
) -> Result<Vec<Option<Hit>>, OpsError> {
    name_tools(store, members, &mut texts, damaged)?;
    let mut asked: BTreeMap<usize, BTreeSet<EntryNumber>> = BTreeMap::new();
    for (n, entry) in texts.iter().flat_map(|text| &text.at) {
        asked.entry(*n).or_default().insert(*entry);
    }
    let mut places: BTreeMap<(usize, EntryNumber), FoundPlace> = BTreeMap::new();
    for (n, entries) in asked {
        let Some(Member { session, listed, .. }) = members.get(n) else { continue };
        let entries: Vec<EntryNumber> = entries.into_iter().collect();
        let found = places_of(store, session, &listed.card, &entries, precision, damaged)?;
        places.extend(entries.into_iter().map(|entry| (n, entry)).zip(found));
    }
    let mut hits = Vec::with_capacity(texts.len());
    for Text { found, at } in texts {
        let mut places: Vec<FoundPlace> =
            at.iter().filter_map(|at| places.get(at).cloned()).collect();
        // If a session has it on its current path, show it there, in the newest such session.
        let newest = places.first().map(|place| place.session.clone());
        places.sort_by_key(|place| {
            let off_path = match place.stand {
                Stand::Current => 0,
                Stand::Compacted => 1,
                _ => 2,
            };
            (off_path, Some(&place.session) != newest.as_ref())
        });
        let Found { time, role, tool, lines, .. } = found;
        hits.push((!places.is_empty()).then_some(Hit { places, time, role, tool, lines }));
    }
    Ok(hits)
}

/// Names the tools of texts whose records do not name them.
fn name_tools(
    store: &dyn Store,
    members: &[Member],
    texts: &mut [Text],
    damaged: &mut Vec<UnreadSession>,
) -> Result<(), OpsError> {
    let mut by_member: BTreeMap<usize, Vec<&mut Found>> = BTreeMap::new();
    for Text { found, at } in texts {
        // A text is reported as its first member has it.
        if let Some((n, _)) = at.first() {
            by_member.entry(*n).or_default().push(found);
        }
    }
    for (n, found) in by_member {
        let Some(Member { session, .. }) = members.get(n) else { continue };
        let opened = Stored::of(store, session)?;
        let mut tools = Tools::of(&opened);
        let named = found.into_iter().try_for_each(|found| tools.name(found));
        or_named(named, session, damaged)?;
    }
    Ok(())
}

/// The tools of a session's calls.
struct Tools<'s> {
    session: &'s Stored<'s>,
    view: View<'s>,
    /// All of them, loaded on first use.
    all: Option<BTreeMap<String, String>>,
}

impl<'s> Tools<'s> {
    fn of(session: &'s Stored<'s>) -> Self {
        let view = session.view(Position::default()).gathering(&Damages::gathered());
        Self { session, view, all: None }
    }

    /// Names the tool of a text whose record does not. A result may name only its call, which is usually shortly before it.
    fn name(&mut self, found: &mut Found) -> Result<(), OpsError> {
        let (None, Some(call)) = (&found.tool, &found.call) else { return Ok(()) };
        let near = found.entry.minus(CALL_WITHIN as u64)..found.entry;
        let near: Vec<EntryNumber> = EntryNumber::each(near).collect();
        found.tool =
            tools::call(&self.view, self.session.format, &near, call)?.map(|found| found.tool);
        if found.tool.is_none() {
            let all = self.all.take();
            let all = all.map_or_else(|| tools::of_all(self.session), Ok)?;
            found.tool = self.all.insert(all).get(call).cloned();
        }
        Ok(())
    }
}

/// Keeps only the calls and results of a tool.
fn of_tool(
    store: &dyn Store,
    session: &Session,
    tool: Option<&str>,
    found: Vec<Found>,
) -> Result<Vec<Found>, OpsError> {
    let Some(tool) = tool else { return Ok(found) };
    let opened = Stored::of(store, session)?;
    let mut tools = Tools::of(&opened);
    let mut left = Vec::with_capacity(found.len());
    for mut found in found {
        tools.name(&mut found)?;
        if found.tool.as_deref().is_some_and(|found| found.eq_ignore_ascii_case(tool)) {
            left.push(found);
        }
    }
    Ok(left)
}

/// Keeps only the entries on a branch.
fn on_branch(
    store: &dyn Store,
    session: &Session,
    branch: Option<&str>,
    found: Vec<Found>,
) -> Result<Vec<Found>, OpsError> {
    let Some(branch) = branch else { return Ok(found) };
    let session = Stored::of(store, session)?;
    let Some(position) = session.state.branches.get(branch) else { return Ok(Vec::new()) };
    let path = session.view(*position).path(usize::MAX)?.entries;
    let on: EntrySet = path.into_iter().collect();
    Ok(found.into_iter().filter(|found| on.contains(found.entry)).collect())
}
