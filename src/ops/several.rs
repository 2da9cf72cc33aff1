//! Several: pieces of work that threads share, each with a look of its own at the store.
//!
//! Invariant: the answers, and their order, do not depend on the number of threads.

use std::{
    collections::BTreeMap,
    num::NonZero,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use crate::store::Store;

/// How many threads work at most: each has a session's names, and some segments, at hand.
const THREADS: usize = 8;

/// Does pieces of work, which are numbered from 0, and hands over what each gave, in the order of their numbers.
pub(crate) fn in_order<T: Send>(
    store: &dyn Store,
    pieces: usize,
    work: &(dyn Fn(&dyn Store, usize) -> T + Sync),
    each: &mut dyn FnMut(T),
) {
    let cores = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS).min(pieces);
    let readers = (0..cores).map_while(|_| if cores > 1 { store.reader() } else { None });
    let readers: Vec<Box<dyn Store>> = readers.collect();
    let next = AtomicUsize::new(0);
    let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < pieces);
    let take = &take;
    thread::scope(|scope| {
        let (send, receive) = mpsc::channel();
        for reader in readers {
            let send = send.clone();
            let begin = move || {
                while let Some(n) = take() {
                    if send.send((n, work(reader.as_ref(), n))).is_err() {
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
            }
        };
        for (n, answer) in receive {
            take_in(n, answer);
        }
        // Without any other thread, this one does all of it.
        while let Some(n) = take() {
            take_in(n, work(store, n));
        }
    });
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
