//! Rows: what is read of facts and derived rows; `sqlite/add.rs` adds them. Nobody else knows the names of their columns.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::{hash, operation_id};
use crate::{
    model::{
        Card, Checkpoint, Entry, EntryId, Facts, File, Gaps, Generation, Kind, LineId, Mark, Move,
        NameTag, Operation, OperationId, Origin, Parent, Position, Record, Rotation, Run, Running,
        Tie, TieKind, Timestamp, put_varint, take_varint,
    },
    store::{FactKind, Find, Newest, SessionKey, StoreError, Tip},
};

/// Collects the rows of a cached query.
fn collect<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, StoreError> {
    Ok(db.prepare_cached(sql)?.query_map(params, read)?.collect::<Result<_, _>>()?)
}

/// Returns the first row of a cached query.
fn first<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Option<T>, StoreError> {
    Ok(db.prepare_cached(sql)?.query_row(params, read).optional()?)
}

pub(super) fn newest(db: &Connection, session: SessionKey) -> Result<Option<Newest>, StoreError> {
    first(
        db,
        "SELECT n, hash, at, first + count - 1 FROM operation WHERE session = ?
         ORDER BY n DESC LIMIT 1",
        [session.0],
        |row| {
            Ok(Newest {
                n: row.get(0)?,
                hash: operation_id(row, 1)?,
                at: Timestamp(row.get(2)?),
                entries: row.get(3)?,
            })
        },
    )
}

pub(super) fn tip(db: &Connection, session: SessionKey) -> Result<Tip, StoreError> {
    let key = session.0;
    let last = |sql| Ok::<u64, StoreError>(first(db, sql, [key], |row| row.get(0))?.unwrap_or(0));
    let mut tip = Tip {
        newest: newest(db, session)?,
        files: last("SELECT n FROM file WHERE session = ? ORDER BY n DESC LIMIT 1")?,
        generations: last("SELECT n FROM generation WHERE session = ? ORDER BY n DESC LIMIT 1")?,
        marks: marks(db, session)?,
        ..Tip::default()
    };
    let checkpoint = first(
        db,
        "SELECT n + 1, operation, generation, head, horizon FROM checkpoint WHERE session = ? ORDER BY n DESC LIMIT 1",
        [key],
        |row| Ok((row.get(0)?, row.get(1)?, position(row, 2)?)),
    )?;
    if let Some((checkpoints, operation, place)) = checkpoint {
        tip.checkpoints = checkpoints;
        tip.checkpoint = place.map(|place| (operation, place));
    }
    tip.position = head(db, session, tip.current())?;
    if let Some(position) = tip.position {
        tip.growth = first(
            db,
            "SELECT generation, start, first, count, gaps, bytes, running, tail FROM run
             WHERE session = ? AND generation = ? ORDER BY start DESC, operation DESC LIMIT 1",
            params![key, position.generation],
            |row| run(row, 0),
        )?;
    }
    Ok(tip)
}

const BRANCHES: &str =
    "SELECT branch FROM move WHERE session = ? AND branch > ? ORDER BY branch LIMIT 1";
const MARKS: &str = "SELECT name FROM mark WHERE session = ? AND name > ? ORDER BY name LIMIT 1";

/// Steps from name to name of an index, so that the cost follows the names and not the history.
fn names(db: &Connection, session: SessionKey, sql: &str) -> Result<Vec<String>, StoreError> {
    let mut names: Vec<String> = Vec::new();
    while let Some(next) =
        first(db, sql, params![session.0, names.last().map_or("", String::as_str)], |row| {
            row.get(0)
        })?
    {
        names.push(next);
    }
    Ok(names)
}

fn marks(db: &Connection, session: SessionKey) -> Result<Vec<(String, String)>, StoreError> {
    let mut marks = Vec::new();
    for name in names(db, session, MARKS)? {
        let value: Option<Option<String>> = first(
            db,
            "SELECT to_value FROM mark WHERE session = ? AND name = ? ORDER BY operation DESC LIMIT 1",
            params![session.0, name],
            |row| row.get(0),
        )?;
        marks.extend(value.flatten().map(|value| (name, value)));
    }
    Ok(marks)
}

fn head(
    db: &Connection,
    session: SessionKey,
    branch: &str,
) -> Result<Option<Position>, StoreError> {
    let found = first(
        db,
        "SELECT to_generation, to_head, to_horizon FROM move WHERE session = ? AND branch = ?
         ORDER BY operation DESC LIMIT 1",
        params![session.0, branch],
        |row| position(row, 0),
    )?;
    Ok(found.flatten())
}

pub(super) fn branches(
    db: &Connection,
    session: SessionKey,
) -> Result<Vec<(String, Position)>, StoreError> {
    let mut branches = Vec::new();
    for name in names(db, session, BRANCHES)? {
        branches.extend(head(db, session, &name)?.map(|at| (name, at)));
    }
    Ok(branches)
}

pub(super) fn first_operation(db: &Connection) -> Result<Option<OperationId>, StoreError> {
    let first = "SELECT hash FROM operation ORDER BY session, n LIMIT 1";
    Ok(collect(db, first, [], |row| operation_id(row, 0))?.pop())
}

pub(super) fn operations(
    db: &Connection,
    session: SessionKey,
    (from, to): (i64, i64),
) -> Result<Vec<Operation>, StoreError> {
    collect(
        db,
        "SELECT n, at, command, detail, undoes, first, count, hash FROM operation
         WHERE session = ? AND n >= ? AND n < ? ORDER BY n",
        params![session.0, from, to],
        |row| {
            Ok(Operation {
                n: row.get(0)?,
                at: Timestamp(row.get(1)?),
                command: row.get(2)?,
                detail: row.get(3)?,
                undoes: row.get(4)?,
                first: row.get(5)?,
                count: row.get(6)?,
                hash: operation_id(row, 7)?,
            })
        },
    )
}

#[expect(clippy::too_many_lines, reason = "one arm a table, each with its columns")]
pub(super) fn facts(
    db: &Connection,
    session: SessionKey,
    (from, to): (i64, i64),
    kinds: &[FactKind],
) -> Result<Vec<(u64, Facts)>, StoreError> {
    let mut all: BTreeMap<u64, Facts> = BTreeMap::new();
    macro_rules! gather {
        ($field:ident, $table:literal, $columns:literal, $read:expr) => {
            gather!($field, $table, $columns, "?4 IS NULL AND session = ?3", None::<&str>, $read)
        };
        ($field:ident, $table:literal, $columns:literal, $of:literal, $name:expr, $read:expr) => {
            let sql = concat!(
                "SELECT operation, ",
                $columns,
                " FROM ",
                $table,
                " WHERE operation >= ?1 AND operation < ?2 AND ",
                $of
            );
            let read: fn(&Row<'_>) -> rusqlite::Result<_> = $read;
            for (n, fact) in collect(db, sql, params![from, to, session.0, $name], |row| {
                Ok((row.get(0)?, read(row)?))
            })? {
                all.entry(n).or_default().$field.push(fact);
            }
        };
    }
    for kind in kinds {
        match kind {
            FactKind::Entries => {
                for operation in operations(db, session, (from, to))? {
                    if operation.count > 0 {
                        let bounds = super::SqliteStore::bounds(
                            &(operation.first..operation.first + operation.count),
                        );
                        all.entry(operation.n).or_default().entries = entries(db, session, bounds)?;
                    }
                }
            }
            FactKind::Files => {
                gather!(files, "file", "n, path", |row| Ok(File {
                    n: row.get(1)?,
                    path: row.get(2)?
                }));
            }
            FactKind::Generations => {
                gather!(generations, "generation", "n, file", |row| {
                    Ok(Generation { n: row.get(1)?, file: row.get(2)? })
                });
            }
            FactKind::Runs => {
                gather!(
                    runs,
                    "run",
                    "generation, start, first, count, gaps, bytes, running, tail",
                    |row| run(row, 1)
                );
            }
            FactKind::Moves => {
                for branch in names(db, session, BRANCHES)? {
                    gather!(
                        moves,
                        "move",
                        "branch, from_generation, from_head, from_horizon, to_generation, to_head, to_horizon",
                        "session = ?3 AND branch = ?4",
                        branch,
                        |row| Ok(Move {
                            branch: row.get(1)?,
                            from: position(row, 2)?,
                            to: position(row, 5)?
                        })
                    );
                }
            }
            FactKind::Marks => {
                for name in names(db, session, MARKS)? {
                    gather!(
                        marks,
                        "mark",
                        "name, from_value, to_value",
                        "session = ?3 AND name = ?4",
                        name,
                        |row| Ok(Mark { name: row.get(1)?, from: row.get(2)?, to: row.get(3)? })
                    );
                }
            }
            FactKind::Checkpoints => {
                gather!(
                    checkpoints,
                    "checkpoint",
                    "n, generation, head, horizon, before, own, note",
                    checkpoint
                );
            }
            FactKind::Origins => {
                gather!(origins, "origin", "entry, origin", |row| {
                    Ok(Origin { entry: row.get(1)?, origin: row.get(2)? })
                });
            }
            FactKind::Rotations => {
                gather!(rotations, "rotation", "file, aside, old, new, inode, length", |row| {
                    Ok(Rotation {
                        file: row.get(1)?,
                        aside: row.get(2)?,
                        old: row.get(3)?,
                        new: row.get(4)?,
                        inode: row.get::<_, i64>(5)?.cast_unsigned(),
                        length: row.get(6)?,
                    })
                });
            }
        }
    }
    Ok(all.into_iter().collect())
}

pub(super) fn checkpoints(
    db: &Connection,
    session: SessionKey,
    (from, to): (i64, i64),
) -> Result<Vec<(u64, Checkpoint)>, StoreError> {
    collect(
        db,
        "SELECT operation, n, generation, head, horizon, before, own, note FROM checkpoint
         WHERE session = ? AND n >= ? AND n < ? ORDER BY n",
        params![session.0, from, to],
        |row| Ok((row.get(0)?, checkpoint(row)?)),
    )
}

pub(super) fn origins(
    db: &Connection,
    session: SessionKey,
    (from, to): (i64, i64),
) -> Result<Vec<(u64, Origin)>, StoreError> {
    collect(
        db,
        "SELECT operation, entry, origin FROM origin
         WHERE session = ? AND entry >= ? AND entry < ? ORDER BY entry",
        params![session.0, from, to],
        |row| Ok((row.get(0)?, Origin { entry: row.get(1)?, origin: row.get(2)? })),
    )
}

/// Reads the columns of a checkpoint that follow its operation.
fn checkpoint(row: &Row<'_>) -> rusqlite::Result<Checkpoint> {
    Ok(Checkpoint {
        n: row.get(1)?,
        place: Position { generation: row.get(2)?, head: row.get(3)?, horizon: row.get(4)? },
        before: row.get(5)?,
        own: row.get(6)?,
        note: row.get(7)?,
    })
}

pub(super) fn runs(
    db: &Connection,
    session: SessionKey,
    generation: u64,
    from: u64,
) -> Result<Vec<Run>, StoreError> {
    let mut runs = collect(
        db,
        "SELECT generation, start, first, count, gaps, bytes, running, tail FROM run
         WHERE session = ?1 AND generation = ?2 AND start >= ifnull(
           (SELECT start FROM run WHERE session = ?1 AND generation = ?2 AND start <= ?3 ORDER BY start DESC LIMIT 1), 0)
         ORDER BY start, operation",
        params![session.0, generation, from],
        |row| run(row, 0),
    )?;
    runs.retain(|run| from == 0 || run.end() > from);
    Ok(runs)
}

pub(super) fn entries(
    db: &Connection,
    session: SessionKey,
    (from, to): (i64, i64),
) -> Result<Vec<Entry>, StoreError> {
    collect(
        db,
        "SELECT n, id, link FROM entry WHERE session = ? AND n >= ? AND n < ? ORDER BY n",
        params![session.0, from, to],
        |row| Ok(Entry { n: row.get(0)?, id: EntryId::new(hash(row, 1)?), link: row.get(2)? }),
    )
}

pub(super) fn line_ids(
    db: &Connection,
    session: SessionKey,
    (from, to): (i64, i64),
) -> Result<Vec<(LineId, u64)>, StoreError> {
    collect(
        db,
        "SELECT l.hash, l.size FROM entry e JOIN line l ON l.key = e.line
         WHERE e.session = ? AND e.n >= ? AND e.n < ? ORDER BY e.n",
        params![session.0, from, to],
        |row| Ok((LineId::new(hash(row, 0)?), row.get(1)?)),
    )
}

pub(super) fn counts(
    db: &Connection,
    session: SessionKey,
    (from, to): (i64, i64),
    rule: u64,
) -> Result<Vec<(u64, Vec<u64>)>, StoreError> {
    collect(
        db,
        "SELECT e.n, c.tokens FROM entry e JOIN count c ON c.line = e.line AND c.rule = ?
         WHERE e.session = ? AND e.n >= ? AND e.n < ? ORDER BY e.n",
        params![rule, session.0, from, to],
        |row| {
            let packed: Vec<u8> = row.get(1)?;
            let mut rest = packed.as_slice();
            Ok((row.get(0)?, std::iter::from_fn(|| take_varint(&mut rest)).collect()))
        },
    )
}

pub(super) fn keep_counts(
    db: &Connection,
    session: SessionKey,
    rule: u64,
    counts: &[(u64, Vec<u64>)],
) -> Result<(), StoreError> {
    let mut keep = db.prepare_cached(
        "INSERT OR REPLACE INTO count (line, rule, tokens)
         SELECT line, ?, ? FROM entry WHERE session = ? AND n = ?",
    )?;
    for (n, tokens) in counts {
        let mut packed = Vec::new();
        for &tokens in tokens {
            put_varint(&mut packed, tokens);
        }
        keep.execute(params![rule, packed, session.0, n])?;
    }
    Ok(())
}

/// The order is made here: asked for in SQL, it leads the planner to walk the whole session.
pub(super) fn find(
    db: &Connection,
    session: SessionKey,
    find: &Find,
) -> Result<Vec<u64>, StoreError> {
    let within = |low: &EntryId, high: &EntryId| {
        collect(
            db,
            "SELECT n FROM entry WHERE session = ?1 AND id BETWEEN ?2 AND ?3
               AND substr(id, 1, 6) BETWEEN substr(?2, 1, 6) AND substr(?3, 1, 6)",
            params![session.0, low.as_bytes(), high.as_bytes()],
            |row| row.get(0),
        )
    };
    let mut found = match find {
        Find::Id(id) => within(id, id)?,
        Find::Prefix(prefix) => {
            let (low, high) = prefix.bounds();
            within(&low, &high)?
        }
        Find::Name(low, high) => collect(
            db,
            "SELECT n FROM record WHERE session = ? AND name BETWEEN ? AND ?",
            params![session.0, low.get(), high.get()],
            |row| row.get(0),
        )?,
    };
    found.sort_unstable();
    Ok(found)
}

pub(super) fn records(
    db: &Connection,
    session: SessionKey,
    (from, to): (i64, i64),
) -> Result<Vec<Record>, StoreError> {
    collect(
        db,
        "SELECT n, kind, name, parent, time, hint FROM record WHERE session = ? AND n >= ? AND n < ? ORDER BY n",
        params![session.0, from, to],
        |row| {
            let code: u8 = row.get(1)?;
            let unknown = || {
                let problem = format!("an entry is of the unknown kind {code}");
                rusqlite::Error::FromSqlConversionFailure(
                    1,
                    rusqlite::types::Type::Integer,
                    problem.into(),
                )
            };
            Ok(Record {
                n: row.get(0)?,
                kind: Kind::from_code(code).ok_or_else(unknown)?,
                name: row.get::<_, Option<u64>>(2)?.map(NameTag::new),
                parent: match row.get(3)? {
                    None => Parent::Root,
                    Some(0) => Parent::Missing,
                    Some(n) => Parent::Entry(n),
                },
                time: row.get::<_, Option<i64>>(4)?.map(Timestamp),
                hint: row.get::<_, Option<Vec<u8>>>(5)?.unwrap_or_default(),
            })
        },
    )
}

/// The kind stands in the query as it does in the index, which only then is taken.
pub(super) fn boundary(
    db: &Connection,
    session: SessionKey,
    (from, to): (i64, i64),
) -> Result<Option<u64>, StoreError> {
    let kind = Kind::Boundary.code();
    let sql = format!(
        "SELECT n FROM record WHERE session = ? AND n >= ? AND n < ? AND kind = {kind} ORDER BY n DESC LIMIT 1"
    );
    first(db, &sql, params![session.0, from, to], |row| row.get(0))
}

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

fn run(row: &Row<'_>, at: usize) -> rusqlite::Result<Run> {
    let gaps: Vec<u8> = row.get(at + 4)?;
    let torn = || {
        let problem = "the separators of a run are damaged".into();
        rusqlite::Error::FromSqlConversionFailure(at + 4, rusqlite::types::Type::Blob, problem)
    };
    Ok(Run {
        generation: row.get(at)?,
        start: row.get(at + 1)?,
        first: row.get(at + 2)?,
        count: row.get(at + 3)?,
        gaps: Gaps::decode(&gaps).ok_or_else(torn)?,
        bytes: row.get(at + 5)?,
        running: Running::new(hash(row, at + 6)?),
        tail: row.get(at + 7)?,
    })
}

fn position(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Position>> {
    let generation: Option<u64> = row.get(at)?;
    generation
        .map(|generation| {
            Ok(Position { generation, head: row.get(at + 1)?, horizon: row.get(at + 2)? })
        })
        .transpose()
}

pub(super) fn ties(
    db: &Connection,
    session: SessionKey,
) -> Result<Vec<(u64, Vec<Tie>)>, StoreError> {
    let mut query = db.prepare_cached(
        "SELECT generation, kind, other FROM tie WHERE session = ? ORDER BY generation, kind, other",
    )?;
    let mut rows = query.query([session.0])?;
    let mut found: Vec<(u64, Vec<Tie>)> = Vec::new();
    while let Some(row) = rows.next()? {
        let generation = row.get(0)?;
        let Some(kind) = TieKind::from_code(row.get(1)?) else { continue };
        let tie = Tie { kind, other: row.get(2)? };
        match found.last_mut() {
            Some((last, ties)) if *last == generation => ties.push(tie),
            _ => found.push((generation, vec![tie])),
        }
    }
    Ok(found)
}
