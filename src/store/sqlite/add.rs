//! Adding: how facts and derived rows become rows.
//!
//! A statement that fires a trigger costs a place to go back to, with copies of the pages that it touches: so many rows of
//! such a table are added by few statements.

use rusqlite::{CachedStatement, Connection, ToSql, params};

use crate::{
    model::{Card, Facts, NameTag, Operation, Parent, Record, SessionName, Tie},
    store::{SessionKey, StoreError},
};

/// How many rows a statement adds, of a table with triggers, where there are many.
pub(super) const MANY: usize = 32;

/// A row whose columns are set in their order.
pub(super) struct Row<'a, 's> {
    statement: &'a mut CachedStatement<'s>,
    column: usize,
}

impl Row<'_, '_> {
    /// Sets the next column.
    pub(super) fn set(&mut self, value: impl ToSql) -> rusqlite::Result<&mut Self> {
        self.column += 1;
        self.statement.raw_bind_parameter(self.column, value)?;
        Ok(self)
    }
}

/// Adds rows to a table of so many columns that has triggers.
pub(super) fn add_all<T>(
    db: &Connection,
    table: &str,
    columns: usize,
    rows: impl ExactSizeIterator<Item = T>,
    set: impl Fn(&mut Row<'_, '_>, T) -> rusqlite::Result<()>,
) -> Result<(), StoreError> {
    let mut left = rows.len();
    let mut rows = rows.peekable();
    while left > 0 {
        let count = if left >= MANY { MANY } else { 1 };
        let values = format!("({})", vec!["?"; columns].join(","));
        let sql = format!("INSERT INTO {table} VALUES {}", vec![values; count].join(","));
        let mut statement = db.prepare_cached(&sql)?;
        while left >= count && rows.peek().is_some() {
            let mut row = Row { statement: &mut statement, column: 0 };
            for values in rows.by_ref().take(count) {
                set(&mut row, values)?;
            }
            statement.raw_execute()?;
            left -= count;
        }
    }
    Ok(())
}

pub(super) fn add_session(db: &Connection, name: &SessionName) -> Result<SessionKey, StoreError> {
    db.prepare_cached("INSERT INTO session (format, id) VALUES (?, ?)")?
        .execute([&name.format, &name.id])?;
    Ok(SessionKey(db.last_insert_rowid()))
}

/// Adds the facts of an operation; `lines` are the keys of the lines of its entries.
#[expect(clippy::too_many_lines, reason = "one statement a table, each with its columns")]
pub(super) fn add_facts(
    db: &Connection,
    session: SessionKey,
    operation: &Operation,
    facts: &Facts,
    lines: &[i64],
) -> Result<(), StoreError> {
    let (key, n) = (session.0, operation.n);
    db.prepare_cached("INSERT INTO operation VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?.execute(
        params![
            key,
            n,
            operation.at.0,
            operation.command,
            operation.detail,
            operation.undoes,
            operation.first,
            operation.count,
            operation.hash.as_bytes()
        ],
    )?;
    add_all(db, "entry", 5, facts.entries.iter().zip(lines), |row, (entry, line)| {
        row.set(key)?.set(entry.n)?.set(entry.id.as_bytes())?.set(entry.link)?.set(line)?;
        Ok(())
    })?;
    for file in &facts.files {
        db.prepare_cached("INSERT INTO file VALUES (?, ?, ?, ?)")?
            .execute(params![key, file.n, n, file.path])?;
    }
    for generation in &facts.generations {
        db.prepare_cached("INSERT INTO generation VALUES (?, ?, ?, ?)")?.execute(params![
            key,
            generation.n,
            n,
            generation.file
        ])?;
    }
    for run in &facts.runs {
        db.prepare_cached("INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?.execute(
            params![
                key,
                run.generation,
                run.start,
                n,
                run.first,
                run.count,
                run.gaps.encode(),
                run.bytes,
                run.running.as_bytes(),
                run.tail
            ],
        )?;
    }
    for step in &facts.moves {
        let (from, to) = (step.from, step.to);
        db.prepare_cached("INSERT INTO move VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?.execute(
            params![
                key,
                step.branch,
                n,
                from.map(|at| at.generation),
                from.and_then(|at| at.head),
                from.map(|at| at.horizon),
                to.map(|at| at.generation),
                to.and_then(|at| at.head),
                to.map(|at| at.horizon)
            ],
        )?;
    }
    for mark in &facts.marks {
        db.prepare_cached("INSERT INTO mark VALUES (?, ?, ?, ?, ?)")?
            .execute(params![key, mark.name, n, mark.from, mark.to])?;
    }
    for checkpoint in &facts.checkpoints {
        let place = checkpoint.place;
        db.prepare_cached("INSERT INTO checkpoint VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")?.execute(
            params![
                key,
                checkpoint.n,
                n,
                place.generation,
                place.head,
                place.horizon,
                checkpoint.before,
                checkpoint.own,
                checkpoint.note
            ],
        )?;
    }
    for origin in &facts.origins {
        db.prepare_cached("INSERT INTO origin VALUES (?, ?, ?, ?)")?.execute(params![
            key,
            origin.entry,
            n,
            origin.origin
        ])?;
    }
    for rotation in &facts.rotations {
        db.prepare_cached("INSERT INTO rotation VALUES (?, ?, ?, ?, ?, ?, ?, ?)")?.execute(
            params![
                key,
                n,
                rotation.file,
                rotation.aside,
                rotation.old,
                rotation.new,
                rotation.inode.cast_signed(),
                rotation.length
            ],
        )?;
    }
    Ok(())
}

pub(super) fn add_derived(
    db: &Connection,
    session: SessionKey,
    records: &[Record],
    twins: &[NameTag],
    ties: &[(u64, Vec<Tie>)],
    card: Option<&Card>,
) -> Result<(), StoreError> {
    let key = session.0;
    let mut add = db.prepare_cached("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?)")?;
    for record in records {
        let parent = match record.parent {
            Parent::Root => None,
            Parent::Missing => Some(0),
            Parent::Entry(n) => Some(n),
        };
        let (name, time) = (record.name.map(NameTag::get), record.time.map(|time| time.0));
        let hint = Some(&record.hint).filter(|hint| !hint.is_empty());
        add.execute(params![key, record.n, record.kind.code(), name, parent, time, hint])?;
    }
    for twin in twins {
        db.prepare_cached("INSERT OR IGNORE INTO twin VALUES (?, ?)")?
            .execute(params![key, twin.get()])?;
    }
    for (generation, ties) in ties {
        db.prepare_cached("DELETE FROM tie WHERE session = ? AND generation = ?")?
            .execute(params![key, generation])?;
        for Tie { kind, other } in ties {
            db.prepare_cached("INSERT OR IGNORE INTO tie VALUES (?, ?, ?, ?)")?
                .execute(params![key, generation, kind.code(), other])?;
        }
    }
    if let Some(card) = card {
        db.prepare_cached(
            "INSERT OR REPLACE INTO card SELECT key, format, id, ?2, ?3, ?4, ?5, ?6, ?7
             FROM session WHERE key = ?1",
        )?
        .execute(params![
            key,
            card.title,
            card.folder,
            card.started.0,
            card.active.0,
            card.turns,
            card.hidden
        ])?;
    }
    Ok(())
}
