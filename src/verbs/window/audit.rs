//! Audits: every entry that replaces another, the operation that cut it and how much, and earlier omissions by agents.
//!
//! The operation that cut an entry records the cut, covered by its hash. The file or command is read from the tool's call.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    archive::At,
    json::Raw,
    model::{Command, EntryNumber, OperationNumber, Resized, Timestamp},
    report::{Audit, Omitted, Replaced},
    session::{
        Damages, entry_ids,
        history::origins,
        ids::NEAR,
        read::{
            lines,
            tools::{self, CALL_WITHIN},
        },
    },
    verbs::{
        OpsError,
        find::members::turns_of,
        window::compactions::{of, own},
    },
};

/// How many records are read together.
const BATCH: usize = 4096;

/// Returns every replaced entry, and what the agent itself omitted.
pub fn audit(session: &At<'_>) -> Result<Audit, OpsError> {
    let all = session.store.origins(session.key, EntryNumber::ALL)?;
    let undone = session.state.undone();
    let cut = || all.iter().filter(|(_, origin)| origin.cut.is_some());
    let wanted: BTreeSet<OperationNumber> = cut().map(|(operation, _)| *operation).collect();
    let mut by = BTreeMap::new();
    for range in OperationNumber::ranges(wanted, NEAR) {
        for operation in session.store.operations(session.key, range)? {
            by.insert(operation.n, operation);
        }
    }
    let both = cut().flat_map(|(_, origin)| [origin.entry, origin.origin]);
    let mut firsts = BTreeMap::new();
    for (_, origin) in cut() {
        firsts.insert(origin.entry, origins::first(session, origin.origin)?);
    }
    let wholes: Vec<EntryNumber> = firsts.values().copied().collect();
    let turns = turns_of(session.store, session, &wholes)?;
    let ids = entry_ids(session.store, session, &both.chain(wholes).collect())?;
    let damages = Damages::gathered();
    let view = lines::view(session, None).map(|view| view.gathering(&damages));
    let mut replaced = Vec::with_capacity(all.len());
    for (n, origin) in &all {
        let (Some(cut), Some(operation)) = (&origin.cut, by.get(n)) else { continue };
        let Some(&first) = firsts.get(&origin.entry) else { continue };
        let above = first.minus(CALL_WITHIN as u64)..first;
        let above: Vec<EntryNumber> = EntryNumber::each(above).collect();
        let call = cut.texts.first().map(|cut| cut.call.as_str()).unwrap_or_default();
        // A damaged call must not hide the rest.
        let called =
            view.as_ref().and_then(|v| tools::call(v, session.format, &above, call).ok()?);
        let (entry, origin) = (ids.get(&origin.entry), ids.get(&origin.origin));
        let (Some(entry), Some(origin), Some(whole)) = (entry, origin, ids.get(&first)) else {
            continue;
        };
        let (limit, window) = match &operation.command {
            Command::Append { limit, .. } => (*limit, None),
            Command::Truncate { limit, window, .. } => (Some(*limit), *window),
            _ => (None, None),
        };
        let mut characters = Resized::default();
        for cut in &cut.texts {
            characters += Resized { before: cut.whole, after: cut.kept + cut.suffix };
        }
        replaced.push(Replaced {
            operation: *n,
            at: operation.at,
            undone: undone.contains(n),
            command: operation.command.as_str(),
            limit,
            window,
            entry: *entry,
            origin: *origin,
            whole: *whole,
            place: first,
            turn: turns.get(&first).copied(),
            tool: cut.tool.clone(),
            subject: called.and_then(|called| called.subject),
            characters,
            tokens: Resized { before: cut.tokens_before, after: cut.tokens_after },
            hidden: cut.texts.iter().map(|cut| cut.whole.saturating_sub(cut.kept)).sum(),
            cuts: cut.texts.clone(),
        });
    }
    let replaces = all.iter().map(|(_, origin)| (origin.entry, origin.origin)).collect();
    let earlier = earlier(session, &replaces, &damages)?;
    Ok(Audit { replaced, earlier, damaged: damages.met(session)? })
}

/// Returns the omissions that an agent's records report. Records that replace others report nothing new.
fn earlier(
    session: &At<'_>,
    replaces: &BTreeMap<EntryNumber, EntryNumber>,
    damages: &Damages,
) -> Result<Vec<Omitted>, OpsError> {
    let telling = session.format.traits().omissions;
    if telling.is_empty() {
        return Ok(Vec::new());
    }
    let all = EntryNumber::FIRST..session.state.next_entry();
    // Compactions by undertext are in its operations, and contexts that it repeated were reported before.
    let own = own(session)?;
    let mut found = Vec::new();
    for batch in EntryNumber::batches(all, BATCH) {
        let records = session.store.records(session.key, batch)?;
        let times: BTreeMap<EntryNumber, Option<Timestamp>> = records
            .into_iter()
            .filter(|record| telling.contains(&record.kind) && !replaces.contains_key(&record.n))
            .filter(|record| of(&own, record.n).is_none())
            .map(|record| (record.n, record.time))
            .collect();
        let entries: Vec<EntryNumber> = times.keys().copied().collect();
        damages.lines(session.store, session.key, &entries, &mut |n, line| {
            let told = Raw::object(&line).map(|record| session.format.earlier(record));
            let time = times.get(&n).copied().flatten();
            found.extend(told.into_iter().flatten().map(|one| (n, time, one)));
        })?;
    }
    let ids = entry_ids(session.store, session, &found.iter().map(|(n, ..)| *n).collect())?;
    let entries: Vec<EntryNumber> = ids.keys().copied().collect();
    let turns = turns_of(session.store, session, &entries)?;
    let omitted = |(n, at, earlier)| {
        Some(Omitted { entry: *ids.get(&n)?, turn: turns.get(&n).copied(), at, earlier })
    };
    Ok(found.into_iter().filter_map(omitted).collect())
}
