//! Preparing: all the steps, one after the other.

use crate::{
    context::{
        change::Change,
        history::{self, Limited, Limits},
        in_place,
        item::Item,
        pairing::{self, Repaired},
        results::{self, Cutting},
        sanitize::{self, Hygiene},
        tokens::{self, Counting},
        turns,
    },
    model::Message,
};

/// The demands on a request.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The interface, and what may be sent to it.
    pub hygiene: Hygiene,
    /// How much of the history.
    pub limits: Limits,
    /// How tokens are counted.
    pub counting: Counting,
    /// Whether the agent takes results only where they stand.
    pub in_place: bool,
}

/// A request, and the changes that made it one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The messages, in order, each with its tokens.
    pub items: Vec<Item>,
    /// The changes, in order.
    pub changes: Vec<Change>,
    /// The result of the limit.
    pub limited: Limited,
    /// The result of pair repair.
    pub repaired: Repaired,
}

impl Prepared {
    /// Returns how many tokens the request takes.
    pub fn tokens(&self) -> u64 {
        self.items.iter().filter_map(|item| item.tokens).sum::<u64>() + tokens::END
    }
}

/// Makes a request of messages.
pub fn prepare(items: Vec<Item>, plan: &Plan, cutting: Option<&Cutting<'_>>) -> Prepared {
    let Plan { hygiene, limits, counting, in_place } = *plan;
    let shape = hygiene.shape;
    let mut changes = Vec::new();
    let (items, left) =
        if in_place { in_place::keep(items, &mut changes) } else { (items, Repaired::default()) };
    let mut items = sanitize::sanitise(items, hygiene, &mut changes);
    if let Some(cutting) = cutting {
        results::cut(&mut items, cutting, &mut changes);
    }
    count(&mut items, counting);
    let missing = counting.message(&pairing::missing());
    let (items, limited) = history::limit(items, &limits, shape, missing, &mut changes);
    let (mut items, mut repaired) = pairing::repair(items, &mut changes);
    repaired.duplicates += left.duplicates;
    repaired.orphans += left.orphans;
    if let Some(cutting) = cutting {
        results::fit(&mut items, cutting, &mut changes);
    }
    let mut items = turns::validate(items, shape, &mut changes);
    count(&mut items, counting);
    Prepared { items, changes, limited, repaired }
}

/// Counts the items that are not counted yet.
pub fn count(items: &mut [Item], counting: Counting) {
    let uncounted: Vec<&Message> =
        items.iter().filter(|item| item.tokens.is_none()).map(|item| &item.message).collect();
    let mut counts = counting.messages(&uncounted).into_iter();
    for item in items.iter_mut().filter(|item| item.tokens.is_none()) {
        item.tokens = counts.next();
    }
}
