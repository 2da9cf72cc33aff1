//! Finds paths by following parents, with edits and across compactions.
//!
//! Invariant: no walk loops, whatever the parents are; if names form a cycle, each name means an entry before the one that uses
//! it.

use std::collections::BTreeMap;

use super::Pi;
use super::read::{CHAINED, EDIT, HEADER, INDEX, REMOVES, SENT, V1, hint};
use crate::{
    dag,
    model::{EntryNumber, EntrySet, Kind, NameTag, Parent, PlaceNumber, Record},
    wire::{Edit, Failure, Graph, Path, Repair, Sent, Walk, first_record},
};

impl Walk for Pi {
    /// Returns the entry at which pi would continue: the last one that is not a header.
    fn head(&self, graph: &dyn Graph) -> Result<Option<EntryNumber>, Failure> {
        before(graph, graph.end())
    }

    fn path(&self, graph: &dyn Graph, head: EntryNumber, limit: usize) -> Result<Path, Failure> {
        let chaining = chaining(graph)?;
        let parent = |entry| parent(graph, entry, chaining);
        let mut chain = dag::ancestors(head, limit, parent)?;
        let mut repairs = Vec::new();
        if let (Some(back), Some(&entry)) = (chain.cycle, chain.nodes.last()) {
            let what =
                if back == entry { "it is its own parent" } else { "its parents form a cycle" };
            if chain.nodes.len() < limit {
                repairs.push(Repair { entry, what });
            }
            // Edges that only point to smaller numbers cannot form a cycle.
            chain = dag::ancestors(head, limit, |entry| {
                Ok::<_, Failure>(match graph.record(entry)?.parent {
                    Parent::Entry(earlier) => Some(earlier),
                    Parent::Root | Parent::Missing => None,
                })
            })?;
        } else if let Some(&first) = chain.nodes.last()
            && graph.record(first)?.parent == Parent::Missing
            && parent(first)?.is_none()
        {
            repairs.push(Repair { entry: first, what: "its parent is not in the file" });
        }
        let mut entries = chain.nodes;
        entries.reverse();
        Ok(Path { entries, repairs })
    }

    fn context(&self, graph: &dyn Graph, path: &[EntryNumber]) -> Result<Sent, Failure> {
        let mut edits = BTreeMap::new();
        let mut boundary = None;
        for (at, &entry) in path.iter().enumerate() {
            let record = graph.record(entry)?;
            if record.kind == Kind::Boundary {
                boundary = Some(at);
            }
            if let (flags, Some(target)) = hint(&record)
                && flags & EDIT != 0
            {
                edits.insert(NameTag::new(target), (entry, flags & REMOVES != 0));
            }
        }
        let edit = |record: &Record| record.name.and_then(|name| edits.get(&name)).copied();
        let is_removed = |record: &Record| edit(record).is_some_and(|(_, removes)| removes);
        let is_sent = |record: &Record| {
            record.kind != Kind::Meta && hint(record).0 & SENT != 0 && !is_removed(record)
        };
        let (before, after) = path.split_at(boundary.unwrap_or(0));
        let mut sent = Sent::default();
        let mut first = None;
        // The entry with the system prompt.
        let mut prompt = None;
        if let Some(&boundary) = after.first().filter(|_| boundary.is_some()) {
            let record = graph.record(boundary)?;
            prompt = (!is_removed(&record)).then_some(boundary);
            sent.entries.extend(prompt);
            let kept = first.insert(first_kept(graph, &record)?);
            sent.is_whole = matches!(kept, FirstKept::Nothing);
            let mut is_kept = false;
            for &entry in before {
                let record = graph.record(entry)?;
                is_kept |= kept.is(&record);
                let is_sent = is_kept && record.kind != Kind::System && is_sent(&record);
                sent.entries.extend(is_sent.then_some(entry));
            }
            sent.is_whole |= is_kept;
        }
        for &entry in after {
            let record = graph.record(entry)?;
            // A compaction keeps nothing that comes after it.
            sent.is_whole |= first.as_ref().is_some_and(|first| first.is(&record));
            if !is_sent(&record) {
                continue;
            }
            match prompt.filter(|_| record.kind == Kind::System) {
                // A few models get a change where it was made. For all others, and so here, pi rebuilds the prompt.
                Some(prompt) => {
                    sent.edits.extend([(prompt, Edit::Content(entry)), (entry, Edit::Later)]);
                }
                None if record.kind == Kind::System => {
                    prompt = Some(entry);
                    sent.entries.insert(0, entry);
                    continue;
                }
                None => {}
            }
            sent.entries.push(entry);
        }
        if !edits.is_empty() {
            for &entry in &sent.entries {
                let record = graph.record(entry)?;
                let is_editable = !matches!(record.kind, Kind::System | Kind::Boundary);
                let edit = edit(&record).filter(|_| is_editable);
                sent.edits.extend(edit.map(|(edit, _)| (entry, Edit::Content(edit))));
            }
        }
        Ok(sent)
    }

    /// Returns the last entries of a path from which on no edit and no compaction reaches before them.
    fn settled(
        &self,
        graph: &dyn Graph,
        last: &[EntryNumber],
    ) -> Result<Vec<EntryNumber>, Failure> {
        let mut settled = Vec::new();
        let mut is_compacted = false;
        // How far back the records from here on reach, as an index into the last entries.
        let mut reached = last.len();
        for (at, &entry) in last.iter().enumerate().rev() {
            let record = graph.record(entry)?;
            let target = match hint(&record) {
                (flags, Some(target)) if flags & EDIT != 0 => graph.named(NameTag::new(target))?,
                _ if record.kind == Kind::Boundary && !is_compacted => {
                    is_compacted = true;
                    match first_kept(graph, &record)? {
                        FirstKept::Named(name) => graph.named(name)?,
                        FirstKept::Entry(entry) => Some(entry),
                        FirstKept::Nothing => None,
                    }
                }
                _ => None,
            };
            if let Some(target) = target {
                let Some(found) = last.iter().position(|entry| *entry == target) else { break };
                reached = reached.min(found);
            }
            if at <= reached {
                settled.push(entry);
            }
        }
        settled.reverse();
        Ok(settled)
    }

    /// Returns the last entries of the conversation that have no followers and are on no path.
    fn leaves(&self, graph: &dyn Graph) -> Result<Vec<EntryNumber>, Failure> {
        let chaining = chaining(graph)?;
        let mut leaves = EntrySet::default();
        let mut continued = EntrySet::default();
        let mut passed: BTreeMap<EntryNumber, Option<EntryNumber>> = BTreeMap::new();
        for place in graph.end().earlier() {
            let Some(entry) = graph.at(place)? else { continue };
            if !graph.record(entry)?.kind.is_conversation() {
                continue;
            }
            leaves.insert(entry);
            // There may be other records between entries of the conversation. Each is visited once.
            let mut between = Vec::new();
            let mut next = parent(graph, entry, chaining)?;
            while let Some(above) = next {
                if graph.record(above)?.kind.is_conversation() {
                    break;
                }
                if let Some(&known) = passed.get(&above) {
                    next = known;
                    break;
                }
                passed.insert(above, None);
                between.push(above);
                next = parent(graph, above, chaining)?;
            }
            for above in between {
                passed.insert(above, next);
            }
            continued.extend(next.filter(|&above| above != entry));
        }
        if let Some(head) = self.head(graph)? {
            for entry in self.path(graph, head, usize::MAX)?.entries {
                leaves.remove(entry);
            }
        }
        Ok(leaves.iter().filter(|entry| !continued.contains(*entry)).collect())
    }
}

/// The first of the entries that a compaction keeps.
enum FirstKept {
    Named(NameTag),
    Entry(EntryNumber),
    Nothing,
}

impl FirstKept {
    fn is(&self, record: &Record) -> bool {
        match *self {
            Self::Named(name) => record.name == Some(name),
            Self::Entry(entry) => record.n == entry,
            Self::Nothing => false,
        }
    }
}

fn first_kept(graph: &dyn Graph, boundary: &Record) -> Result<FirstKept, Failure> {
    let (flags, Some(number)) = hint(boundary) else { return Ok(FirstKept::Nothing) };
    if flags & INDEX == 0 {
        let name = NameTag::new(number);
        let is_there = graph.named(name)?.is_some();
        return Ok(if is_there { FirstKept::Named(name) } else { FirstKept::Nothing });
    }
    let mut left = number;
    for place in graph.end().earlier() {
        let Some(entry) = graph.at(place)? else { continue };
        match graph.record(entry)?.kind {
            Kind::Opaque => {}
            _ if left == 0 => return Ok(FirstKept::Entry(entry)),
            _ => left -= 1,
        }
    }
    Ok(FirstKept::Nothing)
}

/// Returns the first record of a file, as pi parses it, if it is a header. Without a header, pi does not resume the file.
pub(super) fn header(graph: &dyn Graph) -> Result<Option<Record>, Failure> {
    Ok(first_record(graph)?.filter(|record| hint(record).0 & HEADER != 0))
}

/// Returns true if a file is v1, so that the parent of every entry is the one before it.
pub(super) fn is_chain(graph: &dyn Graph) -> Result<bool, Failure> {
    Ok(chaining(graph)? == Some(true))
}

/// Returns true if the parent of every entry is the one before it, false if parents are named; None without a header.
fn chaining(graph: &dyn Graph) -> Result<Option<bool>, Failure> {
    Ok(header(graph)?.map(|header| hint(&header).0 & V1 != 0))
}

/// Returns the index of an entry among the records of a file, as v1 counts them.
pub(super) fn index_of(graph: &dyn Graph, wanted: EntryNumber) -> Result<Option<u64>, Failure> {
    let mut index = 0;
    for place in graph.end().earlier() {
        let Some(entry) = graph.at(place)? else { continue };
        if entry == wanted {
            return Ok(Some(index));
        }
        index += u64::from(graph.record(entry)?.kind != Kind::Opaque);
    }
    Ok(None)
}

/// Returns the parent of an entry; in a chain, the nearest earlier entry that is not a header.
fn parent(
    graph: &dyn Graph,
    entry: EntryNumber,
    chaining: Option<bool>,
) -> Result<Option<EntryNumber>, Failure> {
    let has_no_id = hint(&graph.record(entry)?).0 & CHAINED != 0;
    if chaining.unwrap_or(has_no_id) {
        return graph.place(entry)?.map_or(Ok(None), |place| before(graph, place));
    }
    // In a file of a later version, an entry without an id has no parent, nor does one whose parent pi cannot read.
    let parent = if has_no_id { None } else { graph.parent(entry)? };
    let is_read = |parent| Ok::<_, Failure>(graph.record(parent)?.kind != Kind::Opaque);
    Ok(if parent.map(is_read).transpose()? == Some(true) { parent } else { None })
}

/// Returns the nearest entry before a place that is not a header.
fn before(graph: &dyn Graph, place: PlaceNumber) -> Result<Option<EntryNumber>, Failure> {
    for place in place.earlier().rev() {
        if let Some(entry) = graph.at(place)? {
            let record = graph.record(entry)?;
            if record.kind != Kind::Opaque && hint(&record).0 & HEADER == 0 {
                return Ok(Some(entry));
            }
        }
    }
    Ok(None)
}
