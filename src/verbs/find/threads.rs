//! Runs numbered pieces of work in several threads, each with its own reader of the store.
//!
//! Invariant: results and their order never depend on the number of threads.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use crate::store::{self, Store};

/// The maximum number of threads: each keeps a session's names and some segments in memory.
const THREADS: usize = 8;
/// How many pieces may be started or finished but not consumed yet. Bounds memory when threads are faster than the consumer,
/// or than the slowest thread.
const BEGUN: usize = 32;

/// Readers of a store, one for each thread. They do not see what is overlaid on the store later.
pub(crate) struct Readers<'s> {
    store: &'s dyn Store,
    looks: Vec<Box<dyn Store>>,
    /// The maximum number of readers.
    most: usize,
}

impl<'s> Readers<'s> {
    /// Opens one reader if the store allows it; more are opened from it when work is shared out.
    pub(crate) fn of(store: &'s dyn Store) -> Self {
        Self { store, looks: store.reader().into_iter().collect(), most: cores() }
    }

    /// Returns the store itself, including anything overlaid since.
    pub(crate) fn laid(&self) -> &'s dyn Store {
        self.store
    }

    /// Runs pieces of work, numbered from 0, and passes each result to `each` in the order of the numbers.
    pub(crate) fn in_order<T: Send>(
        &mut self,
        pieces: usize,
        work: &(dyn Fn(&dyn Store, usize) -> T + Sync),
        each: &mut dyn FnMut(T),
    ) {
        let Self { store, looks, most } = self;
        while looks.len() < pieces.min(*most)
            && let Some(look) = looks.first().and_then(|look| look.reader())
        {
            looks.push(look);
        }
        let next = AtomicUsize::new(0);
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < pieces);
        let take = &take;
        if looks.len().min(pieces) < 2 {
            // A single thread needs no channels.
            let store = looks.first().map_or(*store, |look| &**look);
            (0..pieces).for_each(|n| each(work(store, n)));
            return;
        }
        let (allow, allowed) = mpsc::channel();
        let allowed = Mutex::new(allowed);
        let may_begin = || allowed.lock().unwrap_or_else(PoisonError::into_inner).recv().is_ok();
        let may_begin = &may_begin;
        thread::scope(|scope| {
            // Moved into this scope: dropping it wakes all threads that wait for permission.
            let allow = allow;
            let allow_one = || {
                // Fails only when all threads are done.
                let _ = allow.send(());
            };
            (0..BEGUN).for_each(|_| allow_one());
            let (send, receive) = mpsc::channel();
            for look in looks.iter_mut().take(pieces) {
                let send = send.clone();
                let begin = move || {
                    while may_begin()
                        && let Some(n) = take()
                    {
                        if send.send((n, work(look.as_ref(), n))).is_err() {
                            return;
                        }
                    }
                };
                // If no thread can be started, the existing ones do the work.
                if thread::Builder::new().spawn_scoped(scope, begin).is_err() {
                    break;
                }
            }
            drop(send);
            let (mut done, mut due) = (BTreeMap::new(), 0);
            let mut take_in = |n: usize, answer: T| {
                done.insert(n, answer);
                while let Some(answer) = done.remove(&due) {
                    each(answer);
                    due += 1;
                    allow_one();
                }
            };
            for (n, answer) in receive {
                take_in(n, answer);
            }
            // If no thread could be started, this one does all of the work.
            while let Some(n) = take() {
                take_in(n, work(*store, n));
            }
        });
    }
}

/// Like [`Readers::in_order`], with readers opened for this call.
pub(crate) fn in_order<T: Send>(
    store: &dyn Store,
    pieces: usize,
    work: &(dyn Fn(&dyn Store, usize) -> T + Sync),
    each: &mut dyn FnMut(T),
) {
    in_order_by(&|| store.reader(), store, pieces, work, each);
}

/// Like [`in_order`], with these readers of the store.
pub(crate) fn in_order_by<T: Send>(
    reader: &dyn Fn() -> Option<Box<dyn Store>>,
    store: &dyn Store,
    pieces: usize,
    work: &(dyn Fn(&dyn Store, usize) -> T + Sync),
    each: &mut dyn FnMut(T),
) {
    let threads = cores().min(pieces);
    // A single thread needs no reader of its own.
    let threads = if threads > 1 { threads } else { 0 };
    let looks: Vec<_> = (0..threads).map_while(|_| reader()).collect();
    Readers { store, most: looks.len(), looks }.in_order(pieces, work, each);
}

fn cores() -> usize {
    store::cores().min(THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Access, FactStore, SqliteStore};

    #[test]
    fn what_several_threads_found_is_told_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("store.db"), Access::Write).unwrap();
        let id = store.id().unwrap();
        for pieces in [0, 1, 2, 100] {
            let mut told = Vec::new();
            in_order(&store, pieces, &|store, n| (n, store.id().unwrap()), &mut |(n, found)| {
                assert_eq!(found, id);
                told.push(n);
            });
            assert_eq!(told, (0..pieces).collect::<Vec<_>>());
        }
    }
}
