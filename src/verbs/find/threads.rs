//! Several: pieces of work that threads share, each with a look of its own at the store.
//!
//! Invariant: the answers, and their order, do not depend on the number of threads.

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

/// How many threads work at most: each has a session's names, and some segments, in memory.
const THREADS: usize = 8;
/// How many pieces may be begun, or done, and not be taken in yet: threads that are faster than who takes them in, or than one
/// of them, do not fill the memory.
const BEGUN: usize = 32;

/// Looks at what a store holds, one for each thread that shares work. What is laid over the store later, they do not show.
pub(crate) struct Readers<'s> {
    store: &'s dyn Store,
    looks: Vec<Box<dyn Store>>,
    /// How many looks there may be.
    most: usize,
}

impl<'s> Readers<'s> {
    /// Makes a look, if the store can be looked at once more; others are made of it as work is shared.
    pub(crate) fn of(store: &'s dyn Store) -> Self {
        Self { store, looks: store.reader().into_iter().collect(), most: cores() }
    }

    fn made(
        store: &'s dyn Store,
        reader: &dyn Fn() -> Option<Box<dyn Store>>,
        most: usize,
    ) -> Self {
        let looks: Vec<_> = (0..most).map_while(|_| reader()).collect();
        Self { store, most: looks.len(), looks }
    }

    /// Returns the store itself, with what was laid over it since.
    pub(crate) fn laid(&self) -> &'s dyn Store {
        self.store
    }

    /// Does pieces of work, which are numbered from 0, and hands over what each gave, in the order of their numbers.
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
            // One thread has nothing to wait for.
            let store = looks.first().map_or(*store, |look| &**look);
            (0..pieces).for_each(|n| each(work(store, n)));
            return;
        }
        let (allow, allowed) = mpsc::channel();
        let allowed = Mutex::new(allowed);
        let may_begin = || allowed.lock().unwrap_or_else(PoisonError::into_inner).recv().is_ok();
        let may_begin = &may_begin;
        thread::scope(|scope| {
            // Left with this scope, it lets no thread wait for more.
            let allow = allow;
            let allow_one = || {
                // Where all are done, nobody waits for it.
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
                // Where no more threads are to be had, the others do the work.
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
            // Without any other thread, this one does all of it.
            while let Some(n) = take() {
                take_in(n, work(*store, n));
            }
        });
    }
}

/// Does pieces of work as [`Readers::in_order`] does, with looks at a store that are made for them.
pub(crate) fn in_order<T: Send>(
    store: &dyn Store,
    pieces: usize,
    work: &(dyn Fn(&dyn Store, usize) -> T + Sync),
    each: &mut dyn FnMut(T),
) {
    in_order_by(&|| store.reader(), store, pieces, work, each);
}

/// Does the same with these looks at the store.
pub(crate) fn in_order_by<T: Send>(
    reader: &dyn Fn() -> Option<Box<dyn Store>>,
    store: &dyn Store,
    pieces: usize,
    work: &(dyn Fn(&dyn Store, usize) -> T + Sync),
    each: &mut dyn FnMut(T),
) {
    let threads = cores().min(pieces);
    // One thread alone needs no look of its own.
    let threads = if threads > 1 { threads } else { 0 };
    Readers::made(store, reader, threads).in_order(pieces, work, each);
}

/// Returns how many threads share work.
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
