//! Prepares a request: runs all steps, one after another.

use std::{borrow::Cow, collections::BTreeMap};

use crate::{
    context::{
        change::Change,
        history::{self, Limited, Limits},
        in_place,
        item::Item,
        measure::Measure,
        pairing::{self, Repaired},
        results::{self, Cutting},
        sanitize::{self, Hygiene},
        shape::Shape,
        tokens::{self, Counting},
        turns,
    },
    model::{EntryNumber, Message, Role},
};

/// The requirements for a request.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The provider's API, and what may be sent to it.
    pub hygiene: Hygiene,
    /// The limits of the history.
    pub limits: Limits,
    /// How tokens are counted.
    pub counting: Counting,
    /// How counts are converted to the model's tokens.
    pub measure: Measure,
    /// Set if the agent accepts results only where they are: its text for a missing result, and for one that is missing
    /// at the end.
    pub in_place: Option<[&'static str; 2]>,
}

/// A request, and the changes that led to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Prepared {
    /// The messages, in order, each with its number of tokens.
    #[serde(skip)]
    pub items: Vec<Item>,
    /// The changes, in order.
    #[serde(skip)]
    pub changes: Vec<Change>,
    /// The result of limiting the history.
    #[serde(flatten)]
    pub limited: Limited,
    /// The result of pair repair.
    #[serde(flatten)]
    pub repaired: Repaired,
}

impl Plan {
    /// Returns the interface that the messages are for, as they are said to be sent.
    pub(super) fn shape(&self) -> Shape {
        if self.hygiene.shape == Shape::Agent { Shape::Messages } else { self.hygiene.shape }
    }
}

impl Prepared {
    /// Returns the number of tokens in the request; 0 without messages, because then there is no request.
    pub fn tokens(&self) -> u64 {
        if self.items.is_empty() {
            return 0;
        }
        self.items.iter().filter_map(|item| item.tokens).sum::<u64>() + tokens::END
    }
}

/// Prepares a request from messages.
pub fn prepare(items: Vec<Item>, plan: &Plan, cutting: Option<&Cutting<'_>>) -> Prepared {
    let Plan { hygiene, counting, in_place, .. } = *plan;
    let is_agents = hygiene.shape == Shape::Agent;
    let mut changes = Vec::new();
    let (items, left) = match in_place {
        Some(_) if is_agents => in_place::keep(items, &mut changes),
        // A provider gets every real result: pair repair moves those that the agent drops.
        Some(_) => (in_place::joined(items, &mut changes), Repaired::default()),
        None => (items, Repaired::default()),
    };
    let mut items = sanitize::sanitise(items, hygiene, &mut changes);
    if let Some(cutting) = cutting {
        results::cut(&mut items, cutting, &mut changes);
    }
    count(&mut items, counting);
    let (items, limited) = history::limit(items, plan, &mut changes);
    let order = is_agents.then(|| {
        let results = items.iter().enumerate().filter(|(_, item)| item.role() == Role::Tool);
        results.filter_map(|(at, item)| Some((item.entry()?, at))).collect()
    });
    let (mut items, mut repaired) = pairing::repair(items, &mut changes);
    if let Some(order) = order {
        put_back(&mut items, &order);
    }
    if let Some(words) = in_place.filter(|_| is_agents) {
        in_place::answer(&mut items, words);
    }
    repaired.duplicates += left.duplicates;
    repaired.orphans += left.orphans;
    if let Some(cutting) = cutting {
        results::fit(&mut items, cutting, &mut changes);
    }
    let mut items = turns::validate(items, plan.shape(), &mut changes);
    // Pair repair can take out the answer between two requests.
    history::unite(&mut items);
    count(&mut items, counting);
    Prepared { items, changes, limited, repaired }
}

/// Puts adjacent results back into the order of the session; pair repair sorts them like their calls.
fn put_back(items: &mut [Item], order: &BTreeMap<EntryNumber, usize>) {
    let is_result = |item: &Item| item.role() == Role::Tool;
    for run in items.chunk_by_mut(|one, other| is_result(one) && is_result(other)) {
        run.sort_by_key(|item| item.entry().and_then(|entry| order.get(&entry)).copied());
    }
}

/// Counts the items that are not yet counted.
pub fn count(items: &mut [Item], counting: Counting) {
    /// How many messages are in memory at a time.
    const BATCH: usize = 4096;
    let mut uncounted: Vec<&mut Item> =
        items.iter_mut().filter(|item| item.tokens.is_none()).collect();
    for items in uncounted.chunks_mut(BATCH) {
        let messages: Vec<Cow<'_, Message>> = items.iter().map(|item| item.message()).collect();
        let counts =
            counting.messages(&messages.iter().map(|message| &**message).collect::<Vec<_>>());
        drop(messages);
        for (item, tokens) in items.iter_mut().zip(counts) {
            item.tokens = Some(tokens);
        }
    }
}
