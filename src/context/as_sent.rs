//! The messages of an agent that sends results in the order of the file, with its own text for a missing result.
//!
//! ```text
//! session                 call a   call b   result b   "wait"   result a   result x
//! sent, by turn           call a   call b   result b   text for a   "wait"   result a   result x
//! sent, if found anywhere call a   call b   result b   "wait"   result a
//! sent, unchanged         call a   call b   result b   "wait"   result a   result x
//! ```
//!
//! Nothing is repaired: a provider may well refuse what an agent sends.

use std::collections::BTreeSet;

use super::{
    Act, Change, Item, Step, history,
    item::put_in,
    pairing::Repaired,
    prepare::{Plan, Prepared, count},
    results::{self, Cutting},
    sanitize::split,
};
use crate::model::{Block, Message, Role};

/// What an agent sends as the result of an unanswered call.
#[derive(Clone, Copy, Debug)]
pub struct Missing {
    /// Its text.
    pub words: &'static str,
    /// True if it is marked as a failure of the tool.
    pub is_error: bool,
    /// True if only results before the next message of the user or the model count.
    pub is_by_turn: bool,
}

/// Makes the request that an agent sends of these messages. Without `missing`, a missing result is not replaced.
pub fn as_sent(
    items: Vec<Item>,
    missing: Option<Missing>,
    plan: &Plan,
    cutting: Option<&Cutting<'_>>,
) -> Prepared {
    let mut changes = Vec::new();
    let mut items = split(items);
    items.retain(Item::has_blocks);
    if let Some(cutting) = cutting {
        results::cut(&mut items, cutting, &mut changes);
    }
    count(&mut items, plan.counting);
    let (items, limited) = history::limit(items, plan, &mut changes);
    let mut repaired = Repaired::default();
    let mut items = match missing {
        None => items,
        Some(missing) if missing.is_by_turn => by_turn(items, missing, &mut repaired),
        Some(missing) => anywhere(items, missing, &mut repaired, &mut changes),
    };
    if let Some(cutting) = cutting {
        results::fit(&mut items, cutting, &mut changes);
    }
    count(&mut items, plan.counting);
    Prepared { items, changes, limited, repaired }
}

fn answer(id: String, missing: Missing) -> Item {
    let answer = if missing.is_error { Block::failure } else { Block::answer };
    let block = answer(id, missing.words.to_owned());
    Item::synthetic(Message::new(Role::Tool, vec![block]))
}

/// Inserts the made-up results after the results of a tool turn, which ends at the next message of the user or the model, or at
/// the end of the messages.
fn by_turn(items: Vec<Item>, missing: Missing, repaired: &mut Repaired) -> Vec<Item> {
    let mut added = Vec::new();
    let mut pending: Vec<String> = Vec::new();
    let mut answered = BTreeSet::new();
    let mut behind = 0;
    for (at, item) in items.iter().enumerate() {
        match item.role() {
            Role::Assistant | Role::User => {
                pending.retain(|id| !answered.contains(id));
                added.extend(pending.drain(..).map(|id| (behind, answer(id, missing))));
                (pending, answered) = (item.calls().collect(), BTreeSet::new());
            }
            Role::Tool => answered.extend(item.results().next()),
            // It may be among the results.
            Role::System => continue,
        }
        behind = at + 1;
    }
    pending.retain(|id| !answered.contains(id));
    added.extend(pending.into_iter().map(|id| (behind, answer(id, missing))));
    repaired.added = added.len() as u64;
    put_in(items, added)
}

/// Inserts a made-up result after each call that has none anywhere, and drops results without a call.
fn anywhere(
    mut items: Vec<Item>,
    missing: Missing,
    repaired: &mut Repaired,
    changes: &mut Vec<Change>,
) -> Vec<Item> {
    let called: BTreeSet<String> = items.iter().flat_map(Item::calls).collect();
    let has_result: BTreeSet<String> =
        items.iter().filter_map(|item| item.results().next()).collect();
    items.retain(|item| {
        let is_orphan = item.results().next().is_some_and(|id| !called.contains(&id));
        if is_orphan {
            let why = "its call is not in the context".into();
            let entries = item.entries.clone();
            changes.push(Change { step: Step::Pairs, act: Act::Dropped, entries, why });
            repaired.orphans += 1;
        }
        !is_orphan
    });
    let mut added = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let unanswered = item.calls().filter(|id| !has_result.contains(id));
        added.extend(unanswered.map(|id| (at + 1, answer(id, missing))));
    }
    repaired.added = added.len() as u64;
    put_in(items, added)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        context::{Shape, history::Limits, measure::Measure, sanitize::Hygiene, tokens::Counting},
        model::EntryNumber,
    };

    /// Makes messages of words: `+a` is a call, `=a` a result, `s` the system's, anything else the user's.
    fn sent(said: &str, is_by_turn: impl Into<Option<bool>>) -> String {
        let item = |(n, word): (EntryNumber, &str)| {
            let (role, block) = match word.split_at(1) {
                ("+", id) => {
                    let (id, name, input) =
                        (id.to_owned(), "Read".to_owned(), "no JSON".to_owned());
                    (Role::Assistant, Block::Call { id, name, input, signature: None })
                }
                ("=", id) => (Role::Tool, Block::answer(id.to_owned(), "out".to_owned())),
                ("s", _) => (Role::System, Block::Text(word.to_owned())),
                _ => (Role::User, Block::Text(word.to_owned())),
            };
            Item::said(Message::new(role, vec![block]), n)
        };
        let items = EntryNumber::FIRST.onwards().zip(said.split(' ')).map(item).collect();
        let missing = |is_by_turn| Missing { words: "none", is_error: true, is_by_turn };
        let missing = is_by_turn.into().map(missing);
        let hygiene = Hygiene { shape: Shape::Agent, images: true, maker: None };
        let (limits, counting) = (Limits::default(), Counting::Estimate);
        let plan = Plan { hygiene, limits, counting, measure: Measure::default(), in_place: None };
        let made = as_sent(items, missing, &plan, None);
        let shown = |item: &Item| match item.message().blocks.as_slice() {
            [Block::Call { id, .. }] => format!("+{id}"),
            [Block::Result { id, error: false, .. }] => format!("={id}"),
            [Block::Result { id, .. }] => format!("-{id}"),
            _ => item.message().text(),
        };
        made.items.iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_agent_answers_for_the_tools_where_it_finds_nothing() {
        assert_eq!(sent("+a +b =b q =a =x", true), "+a -a +b =b q =a =x");
        assert_eq!(sent("+a +b =b q =a =x", false), "+a +b =b q =a");
        assert_eq!(sent("+a q +b", true), "+a -a q +b -b");
        assert_eq!(sent("+a +b =b s s q s +c s =c", true), "+a -a +b =b s s q s +c s =c");
        assert_eq!(sent("+a s q +b s", true), "+a -a s q +b -b s");
        assert_eq!(sent("+a q +b", false), "+a -a q +b -b");
        assert_eq!(sent("q +a =a r", true), "q +a =a r");
        assert_eq!(sent("+a +b =b q =a =x", None), "+a +b =b q =a =x");
    }
}
