//! Truncation: replays the current branch with some of its tool results cut or cleared, and perhaps without the thinking of
//! older turns. The old branch is kept under another name.
//!
//! Invariant: no message of the context is added, removed or moved; only texts of results get shorter, and thinking goes.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    archive::{At, SyncError, Workspace},
    change::{
        self,
        goal::replay::{Cut, Replay},
    },
    context::cut::{self, Bound, Chosen, Limit, Rest},
    files::{at::Standing, live_file::LiveFile},
    model::{Block, Command, EntryNumber, EntrySet, Kind, Message, Position, Resized},
    report::{Oversized, Target, Truncated},
    session::{
        Damages, Stored, View,
        history::{ends::Sending, origins},
        plan::{Plan, Steps, branch_text},
        read::tools::{self, CALL_WITHIN},
    },
    store::whole_lines,
    verbs::{
        OpsError,
        window::{
            measure::material,
            request::measured,
            shorten,
            sight::{Asked, StandIns, items},
        },
    },
    wire::{Edit, Graph, cut::Shortened},
};

/// An entry whose results or thinking are or would be cut, with its cut version.
struct Found {
    oversized: Oversized,
    n: EntryNumber,
    shortened: Shortened,
    /// How many tokens that saves. The entry may have been cut before.
    saved: u64,
}

/// Returns the results and the thinking in the current context that would be cut, in order.
pub fn oversized(session: &At<'_>, bound: &Bound) -> Result<Truncated, OpsError> {
    let mut truncated = Truncated::default();
    let Some(position) = session.state.position() else { return Ok(truncated) };
    let view = session.view(position);
    let mut each = |found: Found, _: &[u8]| truncated.results.push(found.oversized);
    let found = find(session, &view, bound, &mut each)?;
    Ok(Truncated { results: truncated.results, ..found })
}

/// Returns what to cut to leave at most a number of tokens in the context, losing as little as possible: thinking before results,
/// and old turns before new ones. Returns None if no cut leaves so few.
pub fn reach(
    session: &At<'_>,
    asked: &Asked,
    tokens_of: impl FnOnce(u64) -> u64,
    tools: &[String],
) -> Result<(Target, Option<Bound>), OpsError> {
    const TURNS: [usize; 7] = [50, 20, 10, 5, 3, 2, 1];
    const RESULTS: [usize; 4] = [10, 5, 3, 1];
    let found = material(session, None, asked, usize::MAX, &Damages::default())?;
    let before = measured(session, asked, &found).tokens;
    let mut target = Target { tokens: tokens_of(found.window.tokens), before, left: before };
    let (none, only) = (Bound::default(), Bound { thinking: true, ..Bound::default() });
    let thinking = !oversized(session, &only)?.results.is_empty();
    let all = Bound { tools: tools.to_vec(), thinking, ..Bound::of(Limit::CLEARED) };
    let turns = TURNS.map(|older_than| Bound { older_than, ..all.clone() });
    let results = RESULTS.map(|keep_last| Bound { keep_last, ..all.clone() });
    let thoughts = [none, only].into_iter().filter(|bound| thinking || !bound.thinking);
    for bound in thoughts.chain(turns).chain(results) {
        let saved = oversized(session, &bound)?.tokens_saved;
        let saved = found.measure.scale.unwrap_or_default().part(saved);
        target.left = before.saturating_sub(saved);
        if target.left <= target.tokens {
            return Ok((target, Some(bound)));
        }
    }
    Ok((target, None))
}

/// Returns the tools that were called in a session, sorted.
pub fn called_tools(session: &At<'_>) -> Result<Vec<String>, OpsError> {
    let tools: BTreeSet<String> = tools::of_all(session)?.into_values().collect();
    Ok(tools.into_iter().collect())
}

/// Returns true if a message has a result that is chosen and exceeds a limit.
fn is_over(
    message: &Message,
    limit: Limit,
    rest: Rest<'_>,
    is_chosen: &dyn Fn(&str) -> bool,
) -> bool {
    let results = message.blocks.iter().filter_map(|block| match block {
        Block::Result { id, blocks, .. } if is_chosen(id) => Some(blocks),
        _ => None,
    });
    results.into_iter().any(|blocks| {
        let texts = blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.as_str()),
            _ => None,
        });
        let texts: Vec<&str> = texts.collect();
        cut::texts(&texts, limit, rest).iter().any(Option::is_some)
    })
}

/// Cuts the results in the current context that exceed a limit, and drops thinking. The original records are kept as their origins.
pub fn truncate(session: &At<'_>, bound: &Bound) -> Result<Truncated, OpsError> {
    let (mut truncated, made) = change::execute(session, |before| plan(before, bound))?;
    truncated.saved =
        made.reached.map_or(truncated.saved, |now| truncated.saved.saturating_sub(now));
    Ok(Truncated { done: made.done, ..truncated })
}

/// Plans a truncation. Returns the results found, with the length of the file as `saved`, and the plan.
fn plan(
    before: &Standing<'_>,
    bound: &Bound,
) -> Result<(Truncated, Option<Plan<Replay>>), OpsError> {
    let branch = before.state.current();
    let mut truncated = Truncated::default();
    let Some(from) = before.position() else { return Ok((truncated, None)) };
    let session = before.opened()?;
    let mut cuts = BTreeMap::new();
    if let Some(view) = before.view(from) {
        let mut cut = |Found { oversized, n, shortened, .. }: Found, whole: &[u8]| {
            let tool = oversized.tool.clone();
            let tokens = Resized { before: oversized.tokens, after: oversized.tokens_left };
            let cutting = shorten::cutting(tool, &shortened.cuts, tokens);
            cuts.insert(n, Cut::new(shortened.line, whole, cutting));
            truncated.results.push(oversized);
        };
        let found = find(&session, &view, bound, &mut cut)?;
        truncated = Truncated { results: truncated.results, ..found };
    }
    if cuts.is_empty() {
        return Ok((truncated, None));
    }
    truncated.saved = before.growth(from.generation)?.length();
    let restated = match before.attached() {
        Some(live) if !before.format.traits().is_rotatable => {
            Some(restate(before, &live, from, &cuts)?)
        }
        _ => None,
    };
    let mut steps = Steps::default();
    let left = steps.leave(&before.state, branch, from);
    let command = Command::Truncate {
        branch: branch_text(branch),
        left: Some(branch_text(&left)),
        window: bound.window,
        limit: bound.limit.map_or(0, |limit| limit.chars() as u64),
    };
    (truncated.branch, truncated.left) = (Some(branch.to_owned()), Some(left));
    let plan = Plan { command, steps, goal: Replay { from, cuts, restated } };
    Ok((truncated, Some(plan)))
}

/// Returns records that repeat the whole context with the cut lines.
fn restate(
    before: &Standing<'_>,
    live: &LiveFile,
    from: Position,
    cuts: &BTreeMap<EntryNumber, Cut>,
) -> Result<Vec<Vec<u8>>, OpsError> {
    let mut lines = Vec::new();
    if let Some(view) = before.view(from) {
        let Sending { sent, edits, .. } = view.sending()?;
        let edits: BTreeMap<EntryNumber, Edit> = edits.into_iter().collect();
        for entry in sent {
            let line = match cuts.get(&entry) {
                Some(cut) => cut.line().to_owned(),
                None => view.line(entry)?,
            };
            lines.push((line, edits.get(&entry).copied()));
        }
    }
    let setting = before.setting(&Workspace::default(), None)?;
    let lines = before.format.whole_context(&lines, None, &setting);
    let lines = lines.map_err(|error| SyncError::Invalid { line: None, why: error.0 })?;
    let why = "its agent has no record that replaces a whole context".to_owned();
    Ok(lines.ok_or_else(|| SyncError::OutOfReach { path: live.path.clone(), why })?)
}

/// Finds what to shorten in the context of a view's head, and passes it on with the whole line. Returns what that saves, and what
/// cannot be shortened.
fn find(
    session: &Stored<'_>,
    view: &View<'_>,
    bound: &Bound,
    each: &mut dyn FnMut(Found, &[u8]),
) -> Result<Truncated, OpsError> {
    let Sending { path, sent, edits, .. } = view.sending()?;
    let chosen = if bound.is_choosing() {
        bound.choose(&items(session, view, &sent, &edits, &StandIns::default(), None)?)
    } else {
        Chosen::default()
    };
    let edited: EntrySet = edits.iter().map(|(entry, _)| *entry).collect();
    // A character has at least one byte.
    let least = bound.limit.map_or(u64::MAX, |limit| limit.chars() as u64);
    let mut truncated = Truncated { thinking_needed: chosen.needed, ..Truncated::default() };
    for range in EntryNumber::ranges(sent, 1) {
        let lengths = session.store.lengths(session.key, range.clone())?;
        for (n, length) in EntryNumber::each(range).zip(lengths) {
            let thinks = chosen.thinking.contains(&n);
            let is_wanted =
                thinks || length > least && chosen.has_any(n) && may_answer(view.record(n)?.kind);
            if !is_wanted || edited.contains(n) {
                continue;
            }
            match look(session, view, &path, n, bound, &chosen)? {
                Some((found, whole)) => {
                    truncated.tokens_saved += found.saved;
                    each(found, &whole);
                }
                None => truncated.thinking_needed += u64::from(thinks),
            }
        }
    }
    let Some(limit) = bound.limit else { return Ok(truncated) };
    for alike in edits.chunk_by(|(one, _), (other, _)| one == other) {
        let Some(&(n, _)) = alike.first() else { continue };
        if chosen.has_any(n) && may_answer(view.record(n)?.kind) {
            let said = items(session, view, &[n], alike, &StandIns::default(), None)?;
            let entry = session.id_of(n)?.to_string();
            let rest = Rest { session: &session.name.id, entry: &entry };
            let is_chosen = |call: &str| chosen.has(n, call);
            let is_over = said.iter().any(|item| is_over(&item.message(), limit, rest, &is_chosen));
            truncated.edited += u64::from(is_over);
        }
    }
    Ok(truncated)
}

/// Returns true if a record of this kind can contain a tool result.
fn may_answer(kind: Kind) -> bool {
    matches!(kind, Kind::Result | Kind::Note | Kind::User | Kind::Boundary)
}

/// Returns an entry that is shortened, with the whole line.
fn look(
    session: &Stored<'_>,
    view: &View<'_>,
    path: &[EntryNumber],
    n: EntryNumber,
    bound: &Bound,
    chosen: &Chosen,
) -> Result<Option<(Found, Vec<u8>)>, OpsError> {
    let thinking = chosen.thinking.contains(&n);
    let first = origins::first(session, n)?;
    let origin = session.id_of(first)?;
    let (id, format) = (&session.name.id, session.format);
    let shorten = |line: &[u8]| match bound.limit {
        _ if thinking => shorten::without_thinking(format, line),
        limit => shorten::shorten(id, format, line, origin, limit?, &|call| chosen.has(n, call)),
    };
    let mut whole = Vec::new();
    whole_lines(session.store, session.key, &[n], &mut |_, line| whole = line)?;
    let Some(mut found) = shorten(&whole) else { return Ok(None) };
    let before = found.1.tokens.before;
    // Cut a result that was cut before from its original again, so that each cut text is a prefix of the original. If not all that
    // were cut in this entry are chosen, leave them alone.
    if first != n {
        let cuts = session.store.origins(session.key, n.alone())?.into_iter();
        let mut calls = cuts.filter_map(|(_, origin)| origin.cut).flat_map(|cut| cut.texts);
        let is_chosen = calls.all(|text| thinking || chosen.has(n, &text.call));
        let own = std::mem::take(&mut whole);
        whole_lines(session.store, session.key, &[first], &mut |_, line| whole = line)?;
        let again = shorten(&whole).filter(|(cut, _)| is_chosen && cut.line.len() < own.len());
        let Some(again) = again else { return Ok(None) };
        found = again;
    }
    let (shortened, sizes) = found;
    let call = shortened.cuts.first().map(|cut| cut.call.as_str()).unwrap_or_default();
    let place = path.iter().rposition(|entry| *entry == n).unwrap_or(path.len());
    let above = path.get(place.saturating_sub(CALL_WITHIN)..place).unwrap_or_default();
    let called = tools::call(view, session.format, above, call)?;
    let (tool, subject) = called.map_or((None, None), |called| (Some(called.tool), called.subject));
    let tool = if thinking { Some("thinking".to_owned()) } else { tool };
    let oversized = Oversized {
        entry: session.id_of(n)?,
        origin,
        tool,
        subject,
        thinking,
        characters: sizes.chars.before,
        left: sizes.chars.after,
        tokens: sizes.tokens.before,
        tokens_left: sizes.tokens.after,
    };
    let saved = before.saturating_sub(sizes.tokens.after);
    Ok(Some((Found { oversized, n, shortened, saved }, whole)))
}
