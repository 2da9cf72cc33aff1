//! Lists: which sessions there are, by their cards and by their ties to others.
//!
//! Invariant: a session is found by the beginning of its id, and by its ties, without a look at all the others.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    model::{Card, SessionName, Tie, TieKind, Timestamp},
    store::{Listed, SessionFilter, SessionKey, StoreError, Within},
};

const CARDS: &str =
    "SELECT session, format, id, title, folder, started, active, turns, hidden FROM card";
const WANTED: &str = "hidden <= ?1 AND (?2 IS NULL OR format = ?2)
     AND (?3 IS NULL OR folder = ?3 OR substr(folder, 1, length(?9)) = ?9)
     AND (?4 IS NULL OR substr(title, 1, length(?4)) = ?4)
     AND active >= ?5 AND (?6 OR NOT EXISTS (
       SELECT 1 FROM tie JOIN session AS parent ON parent.format = card.format AND parent.id = other
       WHERE tie.session = card.session AND kind = ?7))";

/// Returns the sessions that lists show, the newest first.
pub(super) fn sessions(db: &Connection, filter: &SessionFilter) -> Result<Vec<Listed>, StoreError> {
    let limit = filter.limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
    let (folder, below) = match &filter.folder {
        None => (None, None),
        Some(Within::At(folder)) => (Some(folder.as_str()), None),
        Some(Within::Below(folder)) => {
            (Some(folder.as_str()), Some(format!("{}/", folder.trim_end_matches('/'))))
        }
    };
    let cards = |which: &str, number: i64| -> Result<Vec<Listed>, StoreError> {
        let mut query = db.prepare_cached(&format!("{CARDS} WHERE {WANTED} {which}"))?;
        let found = query.query_map(
            params![
                filter.hidden,
                filter.format,
                folder,
                filter.title,
                filter.since.unwrap_or(Timestamp(i64::MIN)).0,
                filter.sub_agents,
                TieKind::SubAgent.code(),
                number,
                below
            ],
            listed,
        )?;
        Ok(found.collect::<Result<_, _>>()?)
    };
    let Some(prefix) = &filter.prefix else {
        return cards("ORDER BY active DESC, session DESC LIMIT ?8", limit);
    };
    let mut found = Vec::new();
    for key in beginning(db, prefix)? {
        found.extend(cards("AND session = ?8", key)?);
    }
    found.sort_by_key(|listed| std::cmp::Reverse((listed.card.active, listed.key)));
    found.truncate(filter.limit.unwrap_or(usize::MAX));
    Ok(found)
}

fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
    Ok(Listed {
        key: SessionKey(row.get(0)?),
        name: SessionName { format: row.get(1)?, id: row.get(2)? },
        card: card(row, 3)?,
    })
}

/// Reads the card of a session, from a column on.
pub(super) fn card(row: &Row<'_>, at: usize) -> rusqlite::Result<Card> {
    Ok(Card {
        title: row.get(at)?,
        folder: row.get(at + 1)?,
        started: Timestamp(row.get(at + 2)?),
        active: Timestamp(row.get(at + 3)?),
        turns: row.get(at + 4)?,
        hidden: row.get(at + 5)?,
    })
}

/// Returns the sessions whose id begins with a prefix, of each format.
///
/// These ids follow one another. Where they end is seen here, because no text stands right behind them all.
fn beginning(db: &Connection, prefix: &str) -> Result<Vec<i64>, StoreError> {
    let mut step =
        db.prepare_cached("SELECT format FROM session WHERE format > ? ORDER BY format LIMIT 1")?;
    let mut range =
        db.prepare_cached("SELECT key, id FROM session WHERE format = ? AND id >= ? ORDER BY id")?;
    let mut keys = Vec::new();
    let mut format = String::new();
    while let Some(next) = step.query_row([&format], |row| row.get(0)).optional()? {
        format = next;
        let mut rows = range.query([format.as_str(), prefix])?;
        while let Some(row) = rows.next()? {
            if !row.get::<_, String>(1)?.starts_with(prefix) {
                break;
            }
            keys.push(row.get(0)?);
        }
    }
    Ok(keys)
}

/// Returns the sessions of a format that have a tie, in the order of their names.
///
/// The sign keeps the planner from walking all sessions of the format: it is to start at the tie.
pub(super) fn tied(
    db: &Connection,
    format: &str,
    tie: &Tie,
) -> Result<Vec<(SessionKey, SessionName)>, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT DISTINCT key, format, id FROM tie JOIN session ON key = session
         WHERE other = ? AND kind = ? AND +format = ? ORDER BY format, id",
    )?;
    let found = query.query_map(params![tie.other, tie.kind.code(), format], |row| {
        let name = SessionName { format: row.get(1)?, id: row.get(2)? };
        Ok((SessionKey(row.get(0)?), name))
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}
