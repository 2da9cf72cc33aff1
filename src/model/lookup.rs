//! Hash maps whose iteration order is never observable.

#![expect(
    clippy::disallowed_types,
    reason = "the map is only iterated to be sorted, so its order cannot show"
)]

use std::{collections::HashMap, hash::Hash};

/// A map that is only accessed by key, or sorted as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Lookup<K, V>(HashMap<K, V>);

impl<K, V> Default for Lookup<K, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash, V> Lookup<K, V> {
    /// Returns the value of a key.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.0.get(key)
    }

    /// Returns a mutable reference to the value of a key.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.get_mut(key)
    }

    /// Sets the value of a key, and returns the previous one.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }

    /// Returns the number of values.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns all pairs, sorted by key.
    pub(crate) fn sorted(self) -> Vec<(K, V)>
    where
        K: Ord,
    {
        let mut all: Vec<(K, V)> = self.0.into_iter().collect();
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// Removes all values.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
