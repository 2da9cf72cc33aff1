//! Lookup tables: values that are found by their keys, and have no order that could show anywhere.

#![expect(
    clippy::disallowed_types,
    reason = "the map is only iterated to be sorted, so its order cannot show"
)]

use std::{collections::HashMap, hash::Hash};

/// Values that are found by their keys alone.
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

    /// Returns the value of a key, to be changed.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0.get_mut(key)
    }

    /// Gives a key a value, and returns the one that it had.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns all of them, in the order of their keys.
    pub(crate) fn sorted(self) -> Vec<(K, V)>
    where
        K: Ord,
    {
        let mut all: Vec<(K, V)> = self.0.into_iter().collect();
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        all
    }

    /// Removes all of them.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
