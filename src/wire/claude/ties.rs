//! Ties: which other sessions the first records of a file refer to.
//!
//! ```text
//! --fork-session   the same uuids, the new sessionId; nothing points back
//! fork             new uuids, forkedFrom {sessionId, messageUuid} in each copy
//! --continue       (old) copies with their old sessionId, then records with the new one
//! sub-agent        isSidechain, agentId; its session id starts with its parent's
//! ```

use crate::{
    json::Raw,
    model::{PlaceNumber, Tie, TieKind},
    wire::{Failure, Graph, fields::text, identify::tie_of_sub_agent},
};

/// Returns the ties of a file whose session has this id.
pub(super) fn ties(session: &str, graph: &dyn Graph) -> Result<Vec<Tie>, Failure> {
    if let Some(tie) = tie_of_sub_agent(session) {
        return Ok(vec![tie]);
    }
    let tie = |kind, other| Tie { kind, other };
    let mut ties = Vec::new();
    let mut first = None;
    for place in graph.end().earlier() {
        if let Some(link) = Link::at(graph, place)? {
            first = Some((place, link));
            break;
        }
    }
    let Some((begin, first)) = first else { return Ok(ties) };
    ties.push(tie(TieKind::Beginning, first.uuid));
    if let Some(other) = first.forked.or(Some(first.session.clone()).filter(|id| id != session)) {
        ties.push(tie(TieKind::Fork, other));
        return Ok(ties);
    }
    for place in PlaceNumber::each(begin.next()..graph.end()).rev() {
        if let Some(last) = Link::at(graph, place)? {
            if last.session != first.session {
                ties.push(tie(TieKind::Continuation, last.session));
            }
            break;
        }
    }
    Ok(ties)
}

/// Returns the name of a copied record in the session it was copied from.
pub(super) fn copied(record: Raw<'_>, other: &str) -> Option<String> {
    let forked = record.get("forkedFrom").filter(|forked| !forked.is_null());
    let (from, name) = forked.map_or(((record, "sessionId"), (record, "uuid")), |from| {
        ((from, "sessionId"), (from, "messageUuid"))
    });
    (text(from.0, from.1)? == other).then(|| text(name.0, name.1))?
}

/// A link of the chain, with the fields that reveal its session.
struct Link {
    uuid: String,
    session: String,
    forked: Option<String>,
}

impl Link {
    fn at(graph: &dyn Graph, place: PlaceNumber) -> Result<Option<Self>, Failure> {
        let Some(entry) = graph.at(place)? else { return Ok(None) };
        let line = graph.line(entry)?;
        Ok(Raw::object(&line).and_then(Self::of))
    }

    fn of(record: Raw<'_>) -> Option<Self> {
        record.get("parentUuid")?;
        let forked = record.get("forkedFrom").and_then(|forked| text(forked, "sessionId"));
        let session = text(record, "sessionId").filter(|id| !id.is_empty())?;
        Some(Self { uuid: text(record, "uuid")?, session, forked })
    }
}
