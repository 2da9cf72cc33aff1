//! Compaction: a summary replaces the conversation, some messages are kept, and nothing is lost.
//!
//! ```text
//! look     catch up, read the context, plan; no lock is held while a model writes
//! write    lock, include new records, write boundary and summary in the agent's own format
//! check    simulate a resume: it must read the summary, the kept messages, and nothing else
//! commit   one operation
//! ```
//!
//! Invariant: no file is written that an agent would not resume as intended.
//! Invariant: a compaction that fails or times out changes nothing.

use std::{
    borrow::Cow,
    cell::{LazyCell, RefCell},
    time::Duration,
};

use serde_json::json;

use crate::{
    archive::{At, Misread, SyncError, Vain, Workspace},
    change::{
        self,
        goal::{
            Stay,
            compaction::{Compaction, Place},
        },
    },
    context::{
        Item, Origin,
        compact::{self, CompactError, Task, Writer},
        cut,
        event::{Cause, Event},
        measure::{Measured, Scale},
        model::Tool,
        plan::{self, Keep, Nearness, Nothing, Piece, Wish},
        prompt,
        stages::SummaryError,
    },
    files::at::Standing,
    json::Raw,
    model::{
        Block, Checkpoint, CheckpointNumber, Command, EntryNumber, Kind, Message, Role, Timestamp,
    },
    report::{Compacted, Done, Notice, Part, Parts, Planned},
    secrets::Masking,
    session::{
        Damages, Session,
        plan::{Plan, Steps, branch_text, given},
        read::checkpoints,
    },
    verbs::{
        OpsError,
        window::{
            compaction::Compacting,
            excerpts::excerpts,
            measure::{guard, material},
            request::{measured, size},
            sight::{Material, front},
        },
    },
    wire::{
        Format, Graph,
        compaction::{self, Lines, Metadata, Said},
    },
};

/// The messages of a context in the order of a plan, with the session's own system prompt first.
struct Found {
    material: Material,
    /// The messages, by place.
    heard: Vec<Heard>,
    /// Their places, in the order of the pieces.
    order: Vec<usize>,
    /// The origin of each message, by place.
    said: Vec<Said>,
    /// The size of the context.
    measured: Measured,
    /// The scale from counted to reported tokens.
    scale: Scale,
    /// Whether nothing was added since the newest compaction.
    is_fresh: bool,
}

/// A message of a context, with what a plan needs to know of it.
struct Heard {
    message: Message,
    tokens: u64,
    is_kept: bool,
    begins_turn: bool,
}

impl Heard {
    /// Removes the agent's own text before a summary, and does not count its own text in the user's place as a turn.
    fn without_own_words(mut self, format: &dyn Format) -> Self {
        if let Some(Block::Text(text)) = self.message.blocks.first_mut() {
            let [start, _] = format.own_words(text);
            self.begins_turn &= start == 0;
            if self.message.is_summary {
                text.drain(..start);
            }
        }
        self
    }
}

impl Found {
    fn of(session: &At<'_>, wanted: &Compacting<'_>) -> Result<Self, OpsError> {
        let mut material = material(session, None, wanted.asked, usize::MAX, &Damages::default())?;
        let mut order: Vec<usize> = (0..material.items.len()).collect();
        if let Some(front) = order.get_mut(..front(&material.items)) {
            front.sort_by_key(|at| material.items.get(*at).is_some_and(Item::is_summary));
        }
        let mut said = Vec::with_capacity(material.items.len());
        for item in &material.items {
            let entry = item.entry().unwrap_or_default();
            let nth = said.iter().rev().take_while(|said: &&Said| said.entry == entry).count();
            said.push(Said { entry, nth });
        }
        let is_fresh = is_fresh(session)?;
        let measured = measured(session, wanted.asked, &material);
        let scale = material.measure.scale.unwrap_or_default();
        let items = std::mem::take(&mut material.items).into_iter();
        let heard = items.map(|item| Heard {
            tokens: item.tokens.unwrap_or(0),
            is_kept: item.origin == Origin::Kept,
            begins_turn: item.begins_turn,
            message: item.into_message(),
        });
        let heard = heard.map(|heard| heard.without_own_words(session.format));
        Ok(Self { heard: heard.collect(), material, order, said, measured, scale, is_fresh })
    }

    fn pieces(&self) -> Vec<Piece<'_>> {
        let heard = self.order.iter().filter_map(|at| self.heard.get(*at));
        let pieces = heard.map(|heard| Piece {
            message: &heard.message,
            tokens: self.scale.part(heard.tokens),
            is_kept: heard.is_kept,
            is_request: heard.begins_turn,
        });
        pieces.collect()
    }

    /// Returns the origins of these pieces.
    fn said(&self, places: &[usize]) -> Vec<Said> {
        let items = places.iter().filter_map(|at| self.order.get(*at));
        items.filter_map(|at| self.said.get(*at).copied()).collect()
    }

    fn count(&self, text: &str) -> u64 {
        self.scale.part(self.material.counting.text(text))
    }

    fn window(&self, wanted: &Compacting<'_>) -> u64 {
        wanted.named.unwrap_or(self.material.window.tokens)
    }

    fn wish(&self, wanted: &Compacting<'_>) -> Wish {
        let usual = Wish::of(self.window(wanted));
        Wish { keep: wanted.keep, again: wanted.again, ..usual }
    }

    /// Returns the task without settings for a model, which is all that a dry run needs.
    fn task<'a>(
        &self,
        session: &'a Session,
        folder: Option<&'a str>,
        pieces: &'a [Piece<'a>],
        wanted: &Compacting<'_>,
    ) -> Task<'a> {
        let around = session.format.traits().around_summary;
        Task {
            run: 0,
            session: &session.name.id,
            folder,
            trigger: wanted.cause,
            pieces,
            tokens: wanted.all(self.measured),
            around: around.map_or(0, |around| self.count(&around.concat())),
            window: self.window(wanted),
            wish: self.wish(wanted),
            next: "",
            focus: None,
            files: &[],
            strict: false,
            back: None,
            appendix: wanted.appendix,
            most: None,
            mask: &str::to_owned,
        }
    }

    /// Returns the command that shows the turns that a summary replaces.
    fn back(&self, session: &At<'_>, plan: &plan::Plan) -> Result<Option<String>, OpsError> {
        let last = plan.summarised.last().copied().into_iter().collect::<Vec<_>>();
        let Some(last) = self.said(&last).pop() else { return Ok(None) };
        let near = checkpoints::since(session, last.entry)?;
        let mut turns =
            near.iter().rev().filter(|turn| turn.before.is_some_and(|at| at <= last.entry));
        // What earlier summaries stand for is before that, too.
        let show =
            |turn: &Checkpoint| cut::turns(&session.name.id, CheckpointNumber::FIRST, turn.n);
        Ok(turns.next().map(show))
    }

    /// Returns a mask for the secrets in the messages.
    fn masking(&self, wanted: &Compacting<'_>) -> Masking {
        let blocks = self.heard.iter().flat_map(|heard| &heard.message.blocks);
        let text = |block: &'_ Block| match block {
            Block::Text(text) | Block::Call { input: text, .. } => text.clone(),
            block => block.answer_text().into_owned(),
        };
        let texts: Vec<String> = blocks.map(text).collect();
        let allowed = wanted.allowed.cloned().unwrap_or_default();
        Masking::of(texts.iter().map(String::as_str), &allowed)
    }

    /// Describes the next request to a summariser: its system prompt, tools and skills, in a twentieth of the window.
    fn next(&self, pieces: &[Piece<'_>], plan: &plan::Plan, wanted: &Compacting<'_>) -> String {
        let told = &self.material.told;
        let own = plan.system.iter().filter_map(|at| pieces.get(*at));
        let own: Vec<String> = own.map(|piece| piece.message.text()).collect();
        let system =
            if own.is_empty() { told.system.clone().unwrap_or_default() } else { own.join("\n") };
        let mut tools = wanted.tools.to_vec();
        if let Some(all) = told.tools.as_ref().filter(|_| tools.is_empty())
            && let Some(all) = Raw::value(all.as_bytes())
        {
            tools.extend(all.items().filter_map(|tool| {
                let tool = tool.get("function").unwrap_or(tool);
                let text = |key| tool.get(key).and_then(Raw::text).map(Cow::into_owned);
                let description = text("description").unwrap_or_default();
                Some(Tool { name: text("name")?, description, ..Tool::default() })
            }));
        }
        let count = |text: &str| self.count(text);
        prompt::next(&system, &tools, wanted.skills, self.window(wanted) / 20, &count)
    }

    /// Returns a compaction if it makes the context smaller in the form in which the session's agent sends it.
    fn gaining(
        &self,
        made: Result<compact::Compaction, CompactError>,
        session: &Session,
        by_extract: bool,
    ) -> Result<compact::Compaction, CompactError> {
        let no_gain = || Err(CompactError::Nothing(Nothing::NoGain));
        match made {
            Err(CompactError::Summary(SummaryError::Flawed { .. })) if by_extract => no_gain(),
            Ok(made) => {
                // The agent's own text around a summary may be longer than a short conversation.
                let opening = self.count(session.format.traits().summary_opening);
                let is_less = made.post_tokens.saturating_add(opening) < made.pre_tokens;
                if is_less { Ok(made) } else { no_gain() }
            }
            made => made,
        }
    }

    fn plan(&self, pieces: &[Piece<'_>], wanted: &Compacting<'_>) -> Result<plan::Plan, Nothing> {
        if self.is_fresh && !wanted.again {
            return Err(Nothing::NothingNew);
        }
        plan::plan(pieces, &self.wish(wanted))
    }
}

/// Returns true if the newest operation is a compaction, ignoring truncations since, which add no messages.
fn is_fresh(session: &At<'_>) -> Result<bool, OpsError> {
    for n in session.state.next_operation().earlier().rev() {
        match session.store.operations(session.key, n.alone())?.pop().map(|by| by.command) {
            Some(Command::Truncate { .. }) => {}
            newest => return Ok(matches!(newest, Some(Command::Compact { .. }))),
        }
    }
    Ok(false)
}

fn parts(pieces: &[Piece<'_>], plan: &plan::Plan) -> Parts {
    let part = |places: &[usize]| {
        let tokens = places.iter().filter_map(|at| pieces.get(*at)).map(|piece| piece.tokens);
        Part { messages: places.len(), tokens: tokens.sum() }
    };
    Parts {
        summarised: part(&plan.summarised),
        kept: part(&plan.kept),
        carried: part(&plan.carried),
        system: part(&plan.system),
    }
}

/// Returns how near a session is to its compaction.
fn nearness(
    session: &At<'_>,
    found: &Found,
    wanted: &Compacting<'_>,
) -> Result<Nearness, OpsError> {
    let size = |measured| Measured { tokens: wanted.all(measured), ..measured };
    let (window, mut measured) = (found.window(wanted), size(found.measured));
    if let Some(exact) = wanted.rule.exactly(wanted.asked, window, measured) {
        measured = size(self::size(session, &exact)?);
    }
    Ok(wanted.rule.near(window, measured))
}

/// Returns the effect of a compaction by the extract. Writes nothing and asks no model. A window that is too small is refused, as
/// in a real compaction.
pub fn plan_compaction(session: &At<'_>, wanted: &Compacting<'_>) -> Result<Planned, OpsError> {
    let found = Found::of(session, wanted)?;
    guard(&found.material.window)?;
    let pieces = found.pieces();
    let (mut nothing, mut parts) = match found.plan(&pieces, wanted) {
        Ok(plan) => (None, parts(&pieces, &plan)),
        Err(why) => (Some(why), Parts::default()),
    };
    let folder = session.store.card(session.key)?.folder;
    let task = found.task(session, folder.as_deref(), &pieces, wanted);
    let count = |text: &str| found.count(text);
    let mut losses = Vec::new();
    if nothing.is_none() {
        let made = compact::compact(&task, Writer::Extract, &count, &|| Duration::MAX, &mut |_| ());
        match found.gaining(made, session, true) {
            Ok(made) => losses = made.losses,
            // A model may write a shorter summary.
            Err(CompactError::Nothing(why)) if matches!(wanted.by, Writer::Extract) => {
                (nothing, parts) = (Some(why), Parts::default());
            }
            Err(_) => {}
        }
    }
    let near = nearness(session, &found, wanted)?;
    Ok(Planned { near, nothing, parts, losses })
}

/// In a preview, refuses whatever a compaction would refuse. It tries the extract, because the reasons do not depend on the
/// summary.
pub fn try_compaction(
    session: &At<'_>,
    workspace: &Workspace,
    wanted: &Compacting<'_>,
) -> Result<(), OpsError> {
    let tried = Compacting { by: Writer::Extract, before: None, after: None, log: None, ..*wanted };
    compact(session, workspace, &tried, &mut |_| ()).map(drop)
}

/// Catches up. Refuses a session whose conversation a summary cannot replace, or whose file may not be written, before a model is
/// asked.
fn prepare(session: &At<'_>) -> Result<Vec<Notice>, OpsError> {
    let ((), done) = change::execute(session, |before| {
        before.refuse_without_past()?;
        if let Some(live) = before.attached() {
            before.refuse_to_write(&live.path)?;
            let target = before.writable_file(&live)?;
            // Only the format decides later whether the file is appended to or gets a successor.
            let either =
                target.may_append().or_else(|error| target.may_have_successor().map_err(|_| error));
            either.map_err(SyncError::at(target.path()))?;
        }
        Ok::<_, OpsError>(((), None::<Plan<Stay>>))
    })?;
    Ok(done.done.notices)
}

/// Compacts a session if its context is due; otherwise changes nothing.
pub fn compact_if_due(
    session: &At<'_>,
    workspace: &Workspace,
    wanted: &Compacting<'_>,
    emit: &mut dyn FnMut(&Event),
) -> Result<Compacted, OpsError> {
    // Records in the live file that are not in the store yet count too.
    let mut notices = change::settle(session)?;
    let session = &session.again()?;
    let near = nearness(session, &Found::of(session, wanted)?, wanted)?;
    let Nearness { tokens, window, is_due, .. } = near;
    if is_due {
        let done = compact(session, workspace, wanted, emit)?;
        Notice::add(done.done.notices, &mut notices);
        return Ok(Compacted { done: Done { notices, ..done.done }, ..done });
    }
    Ok(Compacted {
        nothing: Some(Nothing::NotDue),
        branch: session.state.current().to_owned(),
        pre_tokens: tokens,
        post_tokens: tokens,
        window,
        done: Done { notices, ..Done::default() },
        ..Compacted::default()
    })
}

/// Compacts a session: a summary replaces its context except the kept messages.
pub fn compact(
    session: &At<'_>,
    workspace: &Workspace,
    wanted: &Compacting<'_>,
    emit: &mut dyn FnMut(&Event),
) -> Result<Compacted, OpsError> {
    let notices = prepare(session)?;
    let session = &session.again()?;
    let _busy = session.mark_busy();
    let begun = (wanted.clock)();
    let found = Found::of(session, wanted)?;
    guard(&found.material.window)?;
    let pieces = found.pieces();
    let tokens = wanted.all(found.measured);
    let window = found.window(wanted);
    let branch = session.state.current().to_owned();
    let nothing = |nothing| Compacted {
        nothing: Some(nothing),
        branch: branch.clone(),
        pre_tokens: tokens,
        post_tokens: tokens,
        window,
        done: Done { notices: notices.clone(), ..Done::default() },
        ..Compacted::default()
    };
    let plan = match found.plan(&pieces, wanted) {
        Ok(plan) => plan,
        Err(why) => return Ok(nothing(why)),
    };
    wanted.tell_before(session, tokens, window, [plan.summarised.len(), plan.kept.len()])?;
    let mut events = wanted.log.map(RefCell::take).unwrap_or_default();
    let mut end = None;
    let mut told = |event: &Event| {
        events.push(event.clone());
        match event {
            // The final size is known only after the write.
            Event::CompactionEnd { .. } => end = Some(event.clone()),
            _ => emit(event),
        }
    };
    let run = session.state.next_operation().get();
    let made = summary(session, &found, &plan, None, wanted, begun, &mut told)?;
    let made = match found.gaining(made, session, matches!(wanted.by, Writer::Extract)) {
        Ok(made) => made,
        Err(CompactError::Nothing(why)) => return Ok(nothing(why)),
        Err(CompactError::Summary(error)) => {
            if let SummaryError::TimedOut { .. } = error {
                let limit_ms = u64::try_from(wanted.limit.as_millis()).unwrap_or(u64::MAX);
                told(&Event::CompactionTimeout { run, limit_ms, before: true });
            }
            return Err(OpsError::Summary { error, strict: wanted.strict });
        }
    };
    let (system, kept) = (found.said(&made.plan.system), found.said(&made.plan.kept));
    let done = Done { notices, ..Done::default() };
    let mut compacted =
        Compacted { window, duration_ms: wanted.elapsed(begun), done, ..reported(branch, made) };
    let writing = Writing {
        workspace,
        found: &found,
        system,
        kept,
        cause: wanted.cause,
        hash: session.state.hash(),
    };
    if let Err(error) = writing.write(session, &events, &mut compacted) {
        let (session, why) = (session.name.id.clone(), error.to_string());
        emit(&Event::CompactionFailed { run, session, why });
        return Err(error);
    }
    compacted.post_tokens = wanted.all(size(&session.again()?, wanted.asked)?);
    if let Some(Event::CompactionEnd { post_tokens, .. }) = &mut end {
        *post_tokens = compacted.post_tokens;
    }
    end.iter().for_each(emit);
    compacted.after = wanted.tell_after(session, &compacted).err();
    Ok(compacted)
}

/// Makes the summary of a plan, in what is left of the time limit since `begun`.
fn summary(
    session: &At<'_>,
    found: &Found,
    plan: &plan::Plan,
    most: Option<u64>,
    wanted: &Compacting<'_>,
    begun: Timestamp,
    told: &mut dyn FnMut(&Event),
) -> Result<Result<compact::Compaction, CompactError>, OpsError> {
    let pieces = found.pieces();
    let folder = session.store.card(session.key)?.folder;
    let excerpts = match wanted.by {
        Writer::Model(_) => excerpts(&pieces, folder.as_deref(), wanted.visible),
        Writer::Extract | Writer::Caller(_) => Vec::new(),
    };
    let back = found.back(session, plan)?;
    let masking = LazyCell::new(|| found.masking(wanted));
    let next = match wanted.by {
        Writer::Model(_) => found.next(&pieces, plan, wanted),
        Writer::Extract | Writer::Caller(_) => String::new(),
    };
    let task = Task {
        run: session.state.next_operation().get(),
        next: &next,
        focus: wanted.focus,
        files: &excerpts,
        strict: wanted.strict,
        back: back.as_deref(),
        most,
        mask: &|text| masking.mask(text).text.into_owned(),
        ..found.task(session, folder.as_deref(), &pieces, wanted)
    };
    let count = |text: &str| found.count(text);
    let left = || wanted.limit.saturating_sub(Duration::from_millis(wanted.elapsed(begun)));
    Ok(compact::compact(&task, wanted.by, &count, &left, told))
}

/// Makes a summary of the whole context for a goal, without writing it, and returns it with its size in tokens.
pub(crate) fn summary_for(
    session: &At<'_>,
    goal: &str,
    wanted: &Compacting<'_>,
    emit: &mut dyn FnMut(&Event),
) -> Result<(compact::Compaction, u64), OpsError> {
    let focus = format!("{goal} (the work goes on in a new conversation, for this alone)");
    let wanted = &Compacting { keep: Keep::Last(0), again: true, focus: Some(&focus), ..*wanted };
    let found = Found::of(session, wanted)?;
    guard(&found.material.window)?;
    let nothing = |_| OpsError::from(SyncError::Nothing(Vain::Compact));
    let plan = found.plan(&found.pieces(), wanted).map_err(nothing)?;
    let most = Some(found.window(wanted));
    let made = summary(session, &found, &plan, most, wanted, (wanted.clock)(), emit)?;
    let made = made.map_err(|error| match error {
        CompactError::Summary(error) => OpsError::Summary { error, strict: wanted.strict },
        CompactError::Nothing(why) => nothing(why),
    })?;
    let tokens = found.count(&made.summary);
    Ok((made, tokens))
}

/// Returns the report of a compaction before it is written.
fn reported(branch: String, made: compact::Compaction) -> Compacted {
    Compacted {
        branch,
        text: made.summary,
        summarised: made.plan.summarised.len(),
        kept: made.plan.kept.len(),
        carried: made.plan.carried.len(),
        pre_tokens: made.pre_tokens,
        post_tokens: made.post_tokens,
        files: made.files,
        model: Some(made.model),
        usage: made.usage,
        fallback: made.fallback,
        losses: made.losses,
        ..Compacted::default()
    }
}

/// A compaction with its summary, ready to be written.
struct Writing<'a> {
    workspace: &'a Workspace,
    found: &'a Found,
    system: Vec<Said>,
    kept: Vec<Said>,
    cause: Cause,
    /// The newest operation when the context was read.
    hash: Option<crate::model::OperationId>,
}

impl Writing<'_> {
    /// Writes the compaction and completes its report.
    fn write(
        mut self,
        session: &At<'_>,
        events: &[Event],
        compacted: &mut Compacted,
    ) -> Result<(), OpsError> {
        let (left, made) = change::execute(session, |before| self.plan(before, events, compacted))?;
        (compacted.left, compacted.summary) = (left, made.reached);
        // Notices that were already reported are not repeated.
        let mut notices = std::mem::take(&mut compacted.done.notices);
        Notice::add(made.done.notices, &mut notices);
        compacted.done = Done { notices, ..made.done };
        Ok(())
    }

    /// Plans a compaction, and names the branch that keeps the old state if it begins a new file.
    fn plan(
        &mut self,
        before: &Standing<'_>,
        events: &[Event],
        compacted: &Compacted,
    ) -> Result<(Option<String>, Option<Plan<Compaction>>), OpsError> {
        let nowhere = || SyncError::Nothing(Vain::Compact);
        let from = before.position().ok_or_else(nowhere)?;
        let (head, view) = from.head.zip(before.view(from)).ok_or_else(nowhere)?;
        let sent = view.sending()?.sent;
        if before.state.hash() != self.hash {
            self.take_in(before, &view, &sent)?;
        }
        let metadata = Metadata {
            trigger: self.cause.as_str(),
            pre_tokens: compacted.pre_tokens,
            post_tokens: compacted.post_tokens,
            files: compacted.files.clone(),
            model: compacted.model.clone().unwrap_or_default(),
            duration_ms: compacted.duration_ms,
            error: compacted.fallback.clone(),
        };
        let wanted = compaction::Compaction {
            from: head,
            sent: &sent,
            system: &self.system,
            kept: &self.kept,
            summary: &compacted.text,
            metadata: &metadata,
        };
        let parent = before.record_name(head)?;
        let setting = || before.setting_in_folder(self.workspace, parent.clone());
        let lines = before.format.compaction(&view, &wanted, &[setting()?, setting()?])?;
        let lines = lines.ok_or(SyncError::Misread(Misread::NoRecord))?;
        let sets_aside = before.format.traits().is_rotatable
            && before.archive.manner.rotate
            && before.live_file().is_some();
        let (lines, place) = match lines {
            Lines::More(lines) if sets_aside => {
                (lines, Place::Successor { held: Some(from), again: Vec::new() })
            }
            Lines::More(lines) => (lines, Place::Behind),
            Lines::Anew { lines, again } => (lines, Place::Successor { held: None, again }),
        };
        let mut steps = Steps::default();
        let branch = before.state.current();
        let left = matches!(place, Place::Successor { .. })
            .then(|| steps.leave(&before.state, branch, from));
        let command = Command::Compact {
            branch: branch_text(branch),
            trigger: Some(self.cause.as_str().to_owned()),
            pre_tokens: compacted.pre_tokens,
            post_tokens: Some(compacted.post_tokens),
            window: compacted.window,
            summarised: compacted.summarised as u64,
            kept: compacted.kept as u64,
            model: compacted.model.clone(),
            duration_ms: Some(compacted.duration_ms),
            fallback: compacted.fallback.as_deref().map(given),
            left: left.as_deref().map(branch_text),
            events: Some(given(&json!(events).to_string())),
            files: Some(given(&json!(compacted.files).to_string())),
            losses: (!compacted.losses.is_empty())
                .then(|| given(&json!(compacted.losses).to_string())),
        };
        let goal = Compaction {
            from,
            lines: joined(&lines),
            place,
            system: self.system.len(),
            stays: self.stays(&view, before.format)?,
            summary: compacted.text.clone(),
        };
        Ok((left, Some(Plan { command, steps, goal })))
    }

    /// Keeps the entries that were added while the summary was written. Refuses a result whose call was summarised: it would have
    /// no call, and the summary says that the call was not answered.
    fn take_in(
        &mut self,
        before: &Standing<'_>,
        view: &dyn Graph,
        sent: &[EntryNumber],
    ) -> Result<(), OpsError> {
        let known = &self.found.material.sent;
        let Some(more) = sent.strip_prefix(known.as_slice()) else {
            return Err(OpsError::Overtaken);
        };
        let mut came = Vec::new();
        let mut blocks = Vec::new();
        for &entry in more {
            let messages = messages(before.format, view, entry)?;
            came.extend((0..messages.len()).map(|nth| Said { entry, nth }));
            blocks.extend(messages.into_iter().flat_map(|message| message.blocks));
        }
        if self.answers_what_goes(&blocks) {
            return Err(OpsError::Overtaken);
        }
        self.kept.extend(came);
        Ok(())
    }

    /// Returns true if new blocks answer a summarised call. Some models give several calls one id.
    fn answers_what_goes(&self, came: &[Block]) -> bool {
        let calls = |blocks: &[Block], answered: &str| {
            blocks.iter().any(|block| matches!(block, Block::Call { id, .. } if id == answered))
        };
        came.iter().any(|block| {
            let Block::Result { id, .. } = block else { return false };
            let mut heard = self.found.heard.iter().zip(&self.found.said).rev();
            let call = heard.find(|(heard, _)| calls(&heard.message.blocks, id));
            call.is_some_and(|(_, said)| !self.kept.contains(said)) && !calls(came, id)
        })
    }

    /// Returns the messages that a resume must read next to the summary, without system messages if the summary's record repeats
    /// them.
    fn stays(
        &self,
        view: &dyn Graph,
        format: &dyn Format,
    ) -> Result<Vec<(Role, Vec<Block>)>, OpsError> {
        let is_told = format.traits().retells_system;
        let mut expected = Vec::with_capacity(self.system.len() + self.kept.len());
        let mut last: Option<(EntryNumber, Vec<Message>)> = None;
        for said in self.system.iter().filter(|_| !is_told).chain(&self.kept) {
            if is_told && view.record(said.entry)?.kind == Kind::System {
                continue;
            }
            if last.as_ref().is_none_or(|(entry, _)| *entry != said.entry) {
                last = Some((said.entry, messages(format, view, said.entry)?));
            }
            let message = last.as_ref().and_then(|(_, messages)| messages.get(said.nth));
            expected.extend(message.map(|message| (message.role, message.blocks.clone())));
        }
        Ok(expected)
    }
}

fn joined(lines: &[Vec<u8>]) -> Vec<u8> {
    lines.iter().flat_map(|line| line.iter().copied().chain([b'\n'])).collect()
}

fn messages(
    format: &dyn Format,
    view: &dyn Graph,
    entry: EntryNumber,
) -> Result<Vec<Message>, OpsError> {
    let line = view.line(entry)?;
    Ok(Raw::object(&line).map(|record| format.messages(record)).unwrap_or_default())
}
