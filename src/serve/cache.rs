//! The cache of pages: bounded in size and time. What was used least recently goes first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Asked;

/// A page's address, and what changes when the page does.
type Key = (Asked, String);

/// Pages that were made already.
#[derive(Debug)]
pub(crate) struct Cache {
    /// Maximum number of bytes.
    room: usize,
    /// How long a page is kept.
    lives: Duration,
    taken: usize,
    /// The number of uses so far.
    uses: u64,
    pages: BTreeMap<Key, Kept>,
}

#[derive(Debug)]
struct Kept {
    page: Arc<str>,
    since: Instant,
    /// The number of its last use.
    used: u64,
}

impl Cache {
    pub(crate) fn new(room: usize, lives: Duration) -> Self {
        Self { room, lives, taken: 0, uses: 0, pages: BTreeMap::new() }
    }

    pub(super) fn get(&mut self, key: &Key, now: Instant) -> Option<Arc<str>> {
        self.expire(now);
        self.uses += 1;
        let kept = self.pages.get_mut(key)?;
        kept.used = self.uses;
        Some(Arc::clone(&kept.page))
    }

    pub(super) fn put(&mut self, key: Key, page: Arc<str>, now: Instant) {
        self.expire(now);
        // An older state of the same page is of no use any more.
        self.forget(|(asked, _), _| *asked == key.0);
        if page.len() > self.room {
            return;
        }
        while self.taken + page.len() > self.room {
            let oldest = self.pages.values().map(|kept| kept.used).min();
            self.forget(|_, kept| Some(kept.used) == oldest);
        }
        self.uses += 1;
        self.taken += page.len();
        self.pages.insert(key, Kept { page, since: now, used: self.uses });
    }

    fn expire(&mut self, now: Instant) {
        let lives = self.lives;
        self.forget(|_, kept| now.saturating_duration_since(kept.since) >= lives);
    }

    fn forget(&mut self, is_it: impl Fn(&Key, &Kept) -> bool) {
        let taken = &mut self.taken;
        self.pages.retain(|key, kept| {
            let goes = is_it(key, kept);
            *taken -= if goes { kept.page.len() } else { 0 };
            !goes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_page_goes_first_and_none_outlives_its_time() {
        let begin = Instant::now();
        let at = |s| begin + Duration::from_secs(s);
        let mut cache = Cache::new(10, Duration::from_secs(60));
        let key = |name: &str, mark: &str| {
            (Asked { path: vec![name.to_owned()], ..Asked::default() }, mark.to_owned())
        };
        let put = |cache: &mut Cache, name: &str, mark: &str, s| {
            cache.put(key(name, mark), "12345".into(), at(s));
        };
        put(&mut cache, "a", "1", 0);
        put(&mut cache, "b", "1", 1);
        assert!(cache.get(&key("a", "1"), at(2)).is_some());
        put(&mut cache, "c", "1", 3);
        let has = |cache: &mut Cache, name: &str, s| cache.get(&key(name, "1"), at(s)).is_some();
        assert_eq!(
            [has(&mut cache, "a", 4), has(&mut cache, "b", 4), has(&mut cache, "c", 4)],
            [true, false, true]
        );
        assert_eq!([has(&mut cache, "a", 60), has(&mut cache, "c", 60)], [false, true]);
        put(&mut cache, "c", "2", 61);
        assert_eq!((has(&mut cache, "c", 61), cache.taken), (false, 5));
        cache.put(key("d", "1"), "12345678901".into(), at(61));
        assert_eq!((has(&mut cache, "d", 61), cache.taken), (false, 5));
    }
}
