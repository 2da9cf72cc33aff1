//! Sifting: decides from bodies which lines may match. A segment is searched once and as a whole, however many sessions have
//! lines in it, and a line is decoded only if that does not decide.

use std::ops::Range;

use rusqlite::{Connection, params};

use crate::store::sqlite::{
    bytes::{
        body::Parts,
        lines::{Bytes, LOST},
        pack::Segment,
    },
    query::bounds,
};
use crate::{
    model::EntryNumber,
    store::{SessionKey, Sieve, StoreError, sieve::Verdict},
};

/// How many entries are sifted before the passing lines are read.
const TOGETHER: usize = 1024;

impl Bytes {
    /// Passes on the lines that pass a sieve, and the errors of damaged ones. A lost line never passes.
    pub(crate) fn sift(
        &self,
        db: &Connection,
        session: SessionKey,
        range: Range<EntryNumber>,
        sieve: &Sieve,
        each: &mut dyn FnMut(EntryNumber, Result<Vec<u8>, StoreError>),
    ) -> Result<(), StoreError> {
        let mut find = db.prepare_cached(
            "SELECT n, line FROM entry WHERE session = ? AND n >= ? AND n < ? ORDER BY n LIMIT ?",
        )?;
        let (mut from, to) = bounds(&range);
        loop {
            let (mut passed, mut seen) = (Vec::new(), 0);
            let mut rows = find.query(params![session.0, from, to, TOGETHER])?;
            while let Some(row) = rows.next()? {
                (seen, from) = (seen + 1, row.get::<_, i64>(0)? + 1);
                match self.passes(db, sieve, row.get(1)?) {
                    Ok(false) => {}
                    // A damaged line is read again to get its error.
                    Ok(true) | Err(StoreError::Corrupt { .. }) => passed.push(row.get(0)?),
                    Err(error) => return Err(error),
                }
            }
            self.lines(db, session, &passed, each)?;
            if seen < TOGETHER {
                return Ok(());
            }
        }
    }

    /// Returns true if a line passes a sieve.
    fn passes(&self, db: &Connection, sieve: &Sieve, line: i64) -> Result<bool, StoreError> {
        if line == LOST {
            return Ok(false);
        }
        match self.verdict(db, sieve, line)? {
            Verdict::Held => Ok(true),
            Verdict::Apart => Ok(sieve.passes(&self.line(db, line)?)),
            Verdict::Through(others) => {
                for &other in &others {
                    if self.verdict(db, sieve, other)? == Verdict::Held {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// Judges a line, together with all lines in its segment.
    fn verdict(&self, db: &Connection, sieve: &Sieve, line: i64) -> Result<Verdict, StoreError> {
        if line == LOST {
            return Ok(Verdict::Held);
        }
        if let Some(verdict) = sieve.verdict(line) {
            return Ok(verdict);
        }
        let body = self.body(db, line)?;
        if !body.is_packed() {
            return Ok(judge(body.bytes(), sieve.passes(body.bytes())));
        }
        let segment = self.segment(db, line)?;
        let verdicts = judge_all(&segment, sieve);
        let at = usize::try_from(line - segment.first).unwrap_or(usize::MAX);
        let verdict = verdicts.get(at).cloned().unwrap_or(Verdict::Held);
        sieve.keep(segment.first, verdicts);
        Ok(verdict)
    }
}

fn judge_all(segment: &Segment, sieve: &Sieve) -> Vec<Verdict> {
    let bodies: Vec<Range<usize>> = segment.lines.iter().map(|(body, _)| body.clone()).collect();
    let passed = sieve.each_passes(&segment.data, &bodies);
    let judged = bodies.into_iter().zip(passed);
    judged.map(|(body, passes)| judge(segment.data.get(body).unwrap_or_default(), passes)).collect()
}

/// Judges a line by its body, given whether the body itself passes.
fn judge(body: &[u8], passes: bool) -> Verdict {
    let Some(parts) = Parts::read(body).filter(|_| !passes) else { return Verdict::Held };
    let mut at = 0;
    let mut others = Vec::new();
    for (gap, place) in &parts.references {
        at += gap;
        let around = at.checked_sub(1).and_then(|from| parts.literal.get(from..=at));
        // Only if a reference fills a whole string can no match cross its edges.
        if around != Some(b"\"\"") {
            return Verdict::Apart;
        }
        others.extend((place.line != 0).then_some(place.line));
    }
    others.dedup();
    Verdict::Through(others.into())
}
