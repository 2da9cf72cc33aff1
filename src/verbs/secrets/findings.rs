//! What to redact, and where it is: in lines, user texts, files stored whole and unfinished lines.
//!
//! Invariant: the replacement of bytes that are redacted as a whole depends on nothing but these bytes, so all copies stay equal.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::Path,
};

use crate::{
    archive::Archive,
    cover::{SHORTEST, Secret, Secrets, cover_all, cover_texts, said},
    files,
    json::Raw,
    model::{
        Block, EntryNumber, GenerationNumber, Kind, LineId, Message, OperationNumber, Run, State,
        line,
    },
    redaction::{Kept, Redaction, Unfinished},
    session::{Session, SessionError, Stored, Target, history::origins, read::lines},
    store::{SessionKey, Sieve, Store, StoreError, TakenOut, whole_lines},
    verbs::{
        OpsError,
        find::{members::family, threads::in_order},
        secrets::{
            parts::{KeptWhole, Part, parts},
            suspects::{Suspect, Suspects, suspects},
        },
    },
    wire::{self, Envelope},
};

/// The texts of a redacted entry that have at least this many bytes are redacted wherever they occur.
const LONG: usize = line::TEXT_MIN;
/// How many lines are read together.
const BATCH: usize = 1024;
/// Reported instead of an id that contains the secret.
const MASKED: &str = "[masked]";

/// What to redact.
pub enum Wanted<'w> {
    /// These characters, wherever they occur.
    Secret(&'w str),
    /// The messages of an entry, and wherever its long texts occur.
    Entry(&'w Session, &'w Target),
    /// The messages of a session and of its sub-agents.
    Session(&'w Session),
    /// Everything that looks like a secret, wherever it is.
    Found(&'w Suspects),
}

/// How to cover something that is redacted as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As a record: everything but the fields of its frame.
    Record,
    /// All of it.
    Other,
    /// A record outside of the conversation: only the texts that the entry has too.
    Echo,
}

/// What to look for in lines.
pub(crate) struct Search {
    pub(crate) secrets: Secrets,
    /// The rules that found the secrets, in the same order; empty if no rule did.
    pub(crate) rules: Vec<&'static str>,
    /// The lines and stored files that are covered as a whole.
    whole: BTreeMap<LineId, Form>,
    /// The texts of an entry, for finding its echoes.
    texts: BTreeSet<String>,
    /// The unfinished lines that were beginnings of these lines when they were read.
    begun: BTreeSet<Vec<u8>>,
    /// The sessions that lose all user texts.
    sessions: BTreeSet<SessionKey>,
    sieve: Sieve,
}

impl Search {
    pub(crate) fn new(archive: &Archive, wanted: &Wanted<'_>) -> Result<Self, OpsError> {
        let (mut secrets, mut whole, mut sessions) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        let (store, mut rules) = (archive.store(), Vec::new());
        let unfinished = match wanted {
            Wanted::Entry(..) | Wanted::Session(_) => unfinished_lines(archive)?,
            Wanted::Secret(_) | Wanted::Found(_) => BTreeSet::new(),
        };
        let (mut begun, mut texts) = (BTreeSet::new(), BTreeSet::new());
        let mut goes_whole = |line: &[u8]| {
            whole.insert(LineId::of(line), Form::Record);
            begun.extend(unfinished.iter().filter(|begun| line.starts_with(begun)).cloned());
        };
        match wanted {
            Wanted::Found(found) => {
                for Suspect { rule, secret } in suspects(archive, found)? {
                    let secret = Secret::new(&secret, &wire::FRAME);
                    rules.extend(secret.is_some().then_some(rule));
                    secrets.extend(secret);
                }
            }
            Wanted::Secret(secret) => {
                let secret = Secret::new(secret, &wire::FRAME);
                secrets.push(secret.ok_or(OpsError::TooShort { least: crate::cover::SHORTEST })?);
            }
            Wanted::Entry(session, target) => {
                let entry = lines::entry_of(&Stored::of(store, session)?, target)?;
                let entry = entry.ok_or(SessionError::Start)?;
                for entry in versions(&Stored::of(store, session)?, entry)? {
                    whole_lines(store, session.key, &[entry], &mut |_, line| {
                        goes_whole(&line);
                        secrets.extend(long_texts(&line));
                        texts.extend(message_texts(session, &line));
                    })?;
                }
                each_line(&Stored::of(store, session)?, &mut |line| {
                    if is_echo(session, line, &texts) {
                        whole.entry(LineId::of(line)).or_insert(Form::Echo);
                    }
                })?;
            }
            Wanted::Session(session) => {
                // A session includes its sub-agents.
                for session in family(store, session)? {
                    each_line(&Stored::of(store, &session)?, &mut goes_whole)?;
                    sessions.insert(session.key);
                }
                for session in family(store, session)? {
                    let session = Stored::of(store, &session)?;
                    for part in parts(&session)? {
                        let Part::Kept(KeptWhole { file, at, is_packed: false }) = part else {
                            continue;
                        };
                        let bytes = store.kept(session.key, at.0, at.1)?;
                        let place = file.and_then(|n| session.state.file(n));
                        let path = place.map(|place| Path::new(OsStr::from_bytes(place.path())));
                        let is_state = path.is_some_and(|path| session.format.is_state(path));
                        // A file with a record name may be a record of a session.
                        let is_record = is_state || name_of(&bytes).is_some();
                        let form = if is_record { Form::Record } else { Form::Other };
                        whole.entry(LineId::of(&bytes)).or_insert(form);
                    }
                }
            }
        }
        let secrets = Secrets::new(secrets);
        let sieve = sieve(&secrets, !whole.is_empty());
        Ok(Self { secrets, rules, whole, texts, begun, sessions, sieve })
    }

    /// Returns the id of a session for reports, masked if it contains a secret.
    pub(crate) fn told_id(&self, session: &Session) -> String {
        let id = &session.name.id;
        if self.secrets.is_in(id.as_bytes()) { MASKED.to_owned() } else { id.clone() }
    }

    /// Returns the names of the rules that found the secrets.
    pub(crate) fn rules(&self) -> Vec<String> {
        let names: BTreeSet<&str> = self.rules.iter().copied().collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Returns true if a title may contain what is redacted.
    pub(crate) fn may_be_in(&self, title: &str) -> bool {
        let (secrets, title) = (&self.secrets, title.as_bytes());
        self.has_whole() || secrets.is_in(title) || secrets.are_cut_by(title)
    }

    /// Returns true if anything is redacted as a whole.
    pub(crate) fn has_whole(&self) -> bool {
        !self.whole.is_empty()
    }

    /// Searches all sessions.
    pub(crate) fn all(&self, archive: &Archive) -> Result<Vec<Redaction>, OpsError> {
        let sessions = archive.every()?;
        let has_it = |session: &Session| self.secrets.is_in(session.name.id.as_bytes());
        let names_session = self.whole.is_empty() && sessions.iter().any(has_it);
        let work = |store: &dyn Store, n: usize| {
            let session = sessions.get(n)?;
            let session = Stored::of(store, session).map_err(OpsError::from);
            Some(session.and_then(|session| self.look(&session, names_session)))
        };
        let mut looked = Vec::new();
        in_order(archive.store(), sessions.len(), &work, &mut |found| looked.extend(found));
        let mut found = looked.into_iter().collect::<Result<Vec<Redaction>, OpsError>>()?;
        found.retain(|one| !one.is_nothing() || !one.fixed.is_empty());
        Ok(found)
    }

    /// Searches a session. A secret may be part of a session id, which records of any session may contain.
    fn look(&self, session: &Stored<'_>, names_session: bool) -> Result<Redaction, OpsError> {
        let (mut lines, mut damaged) = (Vec::new(), None);
        let mut fixed = self.fixed(session, &session.state);
        let is_named = names_session || !fixed.is_empty();
        let mut keys = Vec::new();
        let mut rules = BTreeMap::new();
        let all = EntryNumber::FIRST..session.state.next_entry();
        session.store.sift(session.key, all, &self.sieve, &mut |entry, line| match line {
            Ok(line) => {
                let (covered, found) = self.cover(session, &line);
                let Some(mut covered) = covered.filter(|covered| *covered != line) else { return };
                // Records contain the id and the folder of their session.
                if is_named || !self.stays_itself(session, &line, &covered) {
                    let rest = self.secrets.cover_said(&line, &wire::FRAME);
                    let rest = rest.filter(|rest| self.stays_itself(session, &line, rest));
                    if rest.as_ref() != Some(&covered) {
                        keys.push(entry);
                    }
                    let Some(rest) = rest else { return };
                    covered = rest;
                }
                rules.extend(found.map(|found| (entry, found)));
                lines.push((entry, covered));
            }
            Err(error) => damaged = damaged.take().or(Some(error)),
        })?;
        if let Some(error) = damaged {
            // A line that cannot be read might contain the secret.
            return Err(error.into());
        }
        fixed.extend(match &keys[..] {
            [] => None,
            [entry] => Some(format!("the key fields of entry {entry}")),
            all => Some(format!("the key fields of {} entries", all.len())),
        });
        let (mut words, mut kept, mut unfinished) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts(session)? {
            match part {
                Part::Kept(one) => kept.extend(self.kept(session, &one)?),
                Part::Read(operation, run) => {
                    self.read(session, &session.state, operation, run, &mut unfinished);
                }
                Part::Given(operation, given) => {
                    let is_whole = self.sessions.contains(&session.key);
                    if is_whole || self.secrets.is_in(given.text.as_bytes()) {
                        let digest = given.digest();
                        words.push(TakenOut { session: session.key, operation, digest });
                    }
                }
            }
        }
        unfinished.retain(|one: &Unfinished| !one.lines.is_empty());
        Ok(Redaction {
            session: session.session.clone(),
            lines,
            rules,
            words,
            kept,
            unfinished,
            fixed,
        })
    }

    /// Returns the replacement of a stored file, if it contains the secret.
    fn kept(
        &self,
        session: &Stored<'_>,
        &KeptWhole { file, at, is_packed }: &KeptWhole,
    ) -> Result<Option<Kept>, OpsError> {
        let bytes = session.store.kept(session.key, at.0, at.1)?;
        let covered = if is_packed {
            let mut cover = |line: &[u8]| {
                let is_line = Raw::object(line).is_some();
                let goes = !is_line && self.takes_unfinished(session, line.trim_ascii());
                let blank = goes.then(|| vec![b' '; line.len()]);
                blank.or_else(|| self.cover(session, line).0)
            };
            files::cover_packed(&bytes, &mut cover)
                .map_err(|error| StoreError::corrupt(session.name.id.clone(), error.to_string()))?
        } else {
            self.cover(session, &bytes).0
        };
        let covered = covered.filter(|covered| *covered != bytes);
        Ok(covered.map(|bytes| Kept { file, at, bytes }))
    }

    /// Adds a run to those of its operation. Drops its unfinished line if that contains the secret or begins a redacted line.
    fn read(
        &self,
        session: &Session,
        state: &State,
        operation: OperationNumber,
        mut run: Run,
        all: &mut Vec<Unfinished>,
    ) {
        let goes = |line: &&[u8]| {
            let is_begun = !is_current(state, &run) && self.begun.contains(*line);
            is_begun || self.takes_unfinished(session, line)
        };
        let line = run.unfinished().filter(goes).map(LineId::of);
        if line.is_some() {
            run.tail.clear();
        }
        if all.last().is_none_or(|last| last.operation != operation) {
            all.push(Unfinished { operation, runs: Vec::new(), lines: Vec::new() });
        }
        if let Some(last) = all.last_mut() {
            last.runs.push(run);
            last.lines.extend(line);
        }
    }

    /// Returns true if an unfinished line must be dropped: its session is redacted, or it contains a secret or the start of one.
    fn takes_unfinished(&self, session: &Session, line: &[u8]) -> bool {
        self.sessions.contains(&session.key)
            || self.secrets.is_in(line)
            || self.secrets.are_cut_by(line)
    }

    /// Returns the names of a session that contain a secret. Names are permanent, so no redaction can cover it there.
    fn fixed(&self, session: &Session, state: &State) -> Vec<String> {
        // Long texts of an entry, and messages of a session, are not names.
        if !self.whole.is_empty() {
            return Vec::new();
        }
        let paths = state.files.iter().map(|place| ("the path of a file", place.path()));
        let names = [("the id", session.name.id.as_bytes())].into_iter().chain(paths);
        let names: BTreeSet<&str> =
            names.filter(|(_, name)| self.secrets.is_in(name)).map(|(place, _)| place).collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Returns true if a line is still the same record after parts of it are covered.
    fn stays_itself(&self, session: &Session, line: &[u8], covered: &[u8]) -> bool {
        let is_whole = self.whole.contains_key(&LineId::of(line));
        name_of(line) == name_of(covered) && (is_whole || is_framed_alike(session, line, covered))
    }

    /// Returns the replacement of a line or stored file if it contains anything to redact, and the rules that found it.
    fn cover(&self, session: &Session, line: &[u8]) -> (Option<Vec<u8>>, Option<String>) {
        match self.whole.get(&LineId::of(line)) {
            Some(Form::Record) => {
                let own = |text: &str| session.format.own_words(text);
                (Some(cover_all(line, Some(&wire::FRAME), &own)), None)
            }
            Some(Form::Other) => (Some(cover_all(line, None, &|_| [0, 0])), None),
            Some(Form::Echo) => {
                let covered = cover_texts(line, &wire::FRAME, &self.texts);
                let (more, rules) = self.cover_secrets(&covered);
                (Some(more.unwrap_or(covered)), rules)
            }
            None => self.cover_secrets(line),
        }
    }

    /// Returns bytes with all secrets covered, if they have any, and the rules that found them.
    fn cover_secrets(&self, line: &[u8]) -> (Option<Vec<u8>>, Option<String>) {
        let (covered, found) = self.secrets.cover(line);
        let rules: BTreeSet<&str> =
            found.into_iter().filter_map(|n| self.rules.get(n).copied()).collect();
        let rules = rules.into_iter().collect::<Vec<_>>().join(", ");
        (covered, Some(rules).filter(|rules| !rules.is_empty()))
    }
}

/// Returns the unfinished lines that were read in any session.
fn unfinished_lines(archive: &Archive) -> Result<BTreeSet<Vec<u8>>, OpsError> {
    let mut lines = BTreeSet::new();
    for session in archive.every()? {
        for (_, run) in archive.store().growths(session.key, OperationNumber::ALL)? {
            lines.extend(run.unfinished().map(<[u8]>::to_vec));
        }
    }
    Ok(lines)
}

/// Returns true if a run is the current end of its file: its unfinished line is not the beginning of a finished one.
fn is_current(state: &State, run: &Run) -> bool {
    let is_later = |generation: GenerationNumber| {
        let file = state.file_of(run.generation);
        generation > run.generation && file.is_some() && state.file_of(generation) == file
    };
    state.ends.get(&run.generation) == Some(run) && !state.next_generation().earlier().any(is_later)
}

/// Returns a sieve that passes the lines that may contain these secrets. Lines redacted as a whole have no needle to search for,
/// so then it passes all.
fn sieve(secrets: &Secrets, has_whole: bool) -> Sieve {
    match secrets.needles().filter(|_| !has_whole).cloned() {
        Some(needles) => {
            Sieve::new([move |bytes: &[u8]| needles.find(bytes).map(|found| found.range())])
        }
        None => Sieve::open(),
    }
}

/// Returns an entry with all its versions: those it replaces and those that replace it.
fn versions(session: &Stored<'_>, entry: EntryNumber) -> Result<BTreeSet<EntryNumber>, OpsError> {
    let first = origins::first(session, entry)?;
    let mut versions = BTreeSet::from([first, entry]);
    for (_, origin) in session.store.origins(session.key, EntryNumber::ALL)? {
        if versions.contains(&origin.origin) || versions.contains(&origin.entry) {
            versions.extend([origin.entry, origin.origin]);
        }
    }
    Ok(versions)
}

/// Passes all lines of a session to `see`.
fn each_line(session: &Stored<'_>, see: &mut dyn FnMut(&[u8])) -> Result<(), OpsError> {
    let all = EntryNumber::FIRST..session.state.next_entry();
    for batch in EntryNumber::batches(all, BATCH) {
        let entries: Vec<_> = EntryNumber::each(batch).collect();
        whole_lines(session.store, session.key, &entries, &mut |_, line| see(&line))?;
    }
    Ok(())
}

/// Returns the texts of the messages in a line, trimmed.
fn message_texts(session: &Session, line: &[u8]) -> BTreeSet<String> {
    let messages = Raw::object(line).map(|record| session.format.messages(record));
    let texts =
        messages.iter().flatten().flat_map(Message::parts).filter_map(|block| match block {
            Block::Text(text) => Some(text.trim()),
            Block::Thinking(thinking) => Some(thinking.text.trim()),
            _ => None,
        });
    texts.filter(|text| text.len() >= SHORTEST).map(str::to_owned).collect()
}

/// Returns true if a line is outside of the conversation and contains one of these texts completely: agents write many texts a
/// second time for their own use.
fn is_echo(session: &Session, line: &[u8], texts: &BTreeSet<String>) -> bool {
    let Some(record) = Raw::object(line) else { return false };
    session.format.envelope(record).kind == Kind::Meta
        && cover_texts(line, &wire::FRAME, texts) != line
}

fn long_texts(line: &[u8]) -> Vec<Secret> {
    let Some(record) = Raw::object(line) else { return Vec::new() };
    let texts = said(record, Some(&wire::FRAME)).filter_map(Raw::text);
    texts
        .filter(|text| text.len() >= LONG)
        .filter_map(|text| Secret::new(&text, &wire::FRAME))
        .collect()
}

/// Returns true if two lines are the same record apart from their messages.
fn is_framed_alike(session: &Session, line: &[u8], other: &[u8]) -> bool {
    let envelope = |line| {
        let record = Raw::object(line);
        record.map_or_else(Envelope::opaque, |record| session.format.envelope(record))
    };
    envelope(line).frame() == envelope(other).frame()
}

/// Returns the name of a record, as bytes.
fn name_of(bytes: &[u8]) -> Option<&[u8]> {
    let found = line::split_unfinished(bytes).next()?;
    found.bytes.get(found.shape?.name?)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    /// Makes records of an agent, with a value wherever one says what a tool was asked for or answered.
    type Records = fn(&Value) -> Vec<Value>;

    fn claude(said: &Value) -> Vec<Value> {
        let record = |class: &str, more: Value| {
            let mut record = json!({"parentUuid": "p", "isSidechain": false, "cwd": "/w", "sessionId": "s", "version": "2.1.300",
                "gitBranch": "main", "userType": "external", "type": class, "uuid": "u", "timestamp": "2026-01-01T00:00:00Z"});
            let Value::Object(more) = more else { unreachable!() };
            record.as_object_mut().unwrap().extend(more);
            record
        };
        let usage = json!({"input_tokens": 5, "output_tokens": 6, "service_tier": "standard"});
        let blocks = json!([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "t"},
            {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": said, "caller": {"type": "direct"}}]);
        let result = |content: Value| json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": content, "is_error": true}]);
        vec![
            record("user", json!({"message": {"role": "user", "content": "words"}})),
            record(
                "assistant",
                json!({"requestId": "r", "message": {"role": "assistant", "id": "m", "model": "claude", "content": blocks,
                "usage": usage, "stop_reason": "tool_use"}}),
            ),
            record(
                "user",
                json!({"message": {"role": "user", "content": result(said.clone())}, "toolUseResult": said}),
            ),
            record(
                "user",
                json!({"message": {"role": "user", "content": result(json!(said.to_string()))}, "toolUseResult": [said]}),
            ),
            record(
                "user",
                json!({"message": {"role": "user", "content": result(json!([{"type": "text", "text": said.to_string()},
                {"type": "resource_link", "uri": said, "_meta": said, "annotations": said}, said]))}}),
            ),
            record(
                "system",
                json!({"subtype": "compact_boundary", "content": "cut", "compactMetadata": {"trigger": "auto", "preTokens": 9,
                "preservedMessages": {"anchorUuid": "a", "uuids": ["b"], "allUuids": ["c"]}}}),
            ),
            record(
                "attachment",
                json!({"attachment": {"type": "structured_output", "data": said, "toolUseID": "t"}}),
            ),
            record("progress", json!({"data": said, "toolUseID": "t"})),
            record(
                "user",
                json!({"mcpMeta": {"structuredContent": said}, "message": {"role": "user", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "x"}}]}}),
            ),
            json!({"type": "file-history-snapshot", "messageId": "m", "snapshot": {"messageId": "m", "timestamp": "2026-01-01T00:00:00Z",
                "trackedFileBackups": {"f": {"backupFileName": "b", "version": 1, "backupTime": "2026"}}}}),
        ]
    }

    fn codex(said: &Value) -> Vec<Value> {
        let record = |class: &str, payload: Value| json!({"timestamp": "2026-01-01T00:00:00Z", "type": class, "payload": payload});
        let item = |payload: Value| record("response_item", payload);
        let event = |payload: Value| record("event_msg", payload);
        let parts = json!([{"type": "input_text", "text": said.to_string()}, said]);
        vec![
            record(
                "session_meta",
                json!({"id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w", "originator": "cli", "cli_version": "1",
                "source": {"subagent": {"thread_spawn": {"parent_thread_id": "p", "depth": 1, "agent_nickname": "n", "agent_role": "r"}}},
                "model_provider": "openai", "base_instructions": {"text": "b"}, "git": {"commit_hash": "c", "branch": "b"}}),
            ),
            record(
                "turn_context",
                json!({"cwd": "/w", "approval_policy": "never", "sandbox_policy": {"type": "read-only"}, "model": "m",
                "collaboration_mode": {"mode": "plan", "settings": {"model": "m", "developer_instructions": "d"}}}),
            ),
            item(
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "words"}]}),
            ),
            item(
                json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}], "encrypted_content": "e"}),
            ),
            item(
                json!({"type": "function_call", "name": "f", "call_id": "c", "arguments": said.to_string()}),
            ),
            item(
                json!({"type": "function_call_output", "call_id": "c", "output": said.to_string()}),
            ),
            item(json!({"type": "function_call_output", "call_id": "c", "output": parts})),
            item(json!({"type": "function_call_output", "call_id": "c", "output": said})),
            item(
                json!({"type": "custom_tool_call", "call_id": "c", "name": "f", "input": said.to_string(), "status": "completed"}),
            ),
            item(
                json!({"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": said}),
            ),
            item(json!({"type": "local_shell_call", "call_id": "c", "status": "completed",
                "action": {"type": "exec", "command": ["ls"], "env": {"e": said}, "timeout_ms": 5}})),
            event(
                json!({"type": "mcp_tool_call_end", "call_id": "c", "invocation": {"server": "s", "tool": "t", "arguments": said},
                "result": {"Ok": {"content": parts, "structuredContent": said, "_meta": said, "isError": false}}}),
            ),
            event(json!({"type": "mcp_tool_call_end", "call_id": "c", "result": said})),
            event(
                json!({"type": "collab_waiting_end", "call_id": "c", "status": {"completed": "done"}, "statuses": {"t": {"completed": "done"}}}),
            ),
            event(
                json!({"type": "token_count", "info": {"total_token_usage": {"input_tokens": 5}, "model_context_window": 6}}),
            ),
            record(
                "compacted",
                json!({"message": "m", "replacement_history": [{"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": "words"}]}, {"type": "function_call_output", "call_id": "c", "output": parts}],
                "replacement_history_metadata": [{"history_sequence": 3, "retained_source": {"id": {"message_id": "m", "role": "user"},
                "revision": "r"}, "mcp_attribution": {"status": "none"}, "model_search_state": "unused"}],
                "retained_context": {"user_messages": [{"message_id": "m", "revision": "r", "text": said.to_string()}],
                "verified_answers": [said], "next_order": 5},
                "resume_metadata": {"multi_agent_version": "v1", "previous_turn_settings": {"model": "m"}}}),
            ),
            json!({"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "metadata": {"model_search_state": "unused", "new_state": "on"},
                "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": said.to_string()}],
                "internal_chat_message_metadata_passthrough": {"content_item_kinds": ["user.text"]}}}),
        ]
    }

    fn kimi(said: &Value) -> Vec<Value> {
        let call = json!([{"type": "function", "id": "c", "function": {"name": "f", "arguments": said.to_string()}}]);
        vec![
            json!({"role": "_system_prompt", "content": "p"}),
            json!({"role": "_checkpoint", "id": 0}),
            json!({"role": "user", "content": [{"type": "text", "text": "words"}, {"type": "image_url", "image_url": {"url": "u", "id": "i"}}]}),
            json!({"role": "assistant", "content": [{"type": "think", "think": "t", "encrypted": "e"}], "tool_calls": call}),
            json!({"role": "tool", "tool_call_id": "c", "content": said.to_string()}),
            json!({"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": said.to_string()}]}),
            json!({"role": "_usage", "token_count": 5}),
        ]
    }

    fn pi(said: &Value) -> Vec<Value> {
        let message = |message: Value| json!({"type": "message", "id": "i", "parentId": "p", "timestamp": "2026-01-01T00:00:00Z", "message": message});
        let tool =
            json!({"name": "bash", "description": "words", "parameters": {"type": "object"}});
        vec![
            json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}),
            message(
                json!({"role": "user", "content": [{"type": "text", "text": "words"}], "timestamp": 5}),
            ),
            message(
                json!({"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "bash", "arguments": said}], "api": "a",
                "provider": "p", "model": "m", "usage": {"input": 5, "output": 6, "cost": {"total": 7}}, "stopReason": "toolUse"}),
            ),
            message(
                json!({"role": "toolResult", "toolCallId": "c", "toolName": "bash", "content": [{"type": "text", "text": said.to_string()}],
                "details": said, "isError": false}),
            ),
            json!({"type": "custom", "customType": "c", "data": said, "id": "i", "parentId": "p"}),
            json!({"type": "custom_message", "customType": "c", "content": "words", "details": said, "id": "i", "parentId": "p"}),
            json!({"type": "compaction", "id": "i", "parentId": "p", "summary": "words", "firstKeptEntryId": "k", "tokensBefore": 5, "details": said,
                "systemMessage": {"role": "system", "content": "words", "sections": {"s": said.to_string()}, "toolsAdded": [tool], "timestamp": 5}}),
            message(
                json!({"role": "system", "content": "words", "sections": {"s": said.to_string()}, "toolsAdded": [tool],
                "toolsRemoved": [{"name": "read"}], "timestamp": 5}),
            ),
            json!({"type": "context_edit", "id": "i", "parentId": "p", "targetId": "t",
                "replacement": {"content": [{"type": "text", "text": said.to_string()}]}}),
        ]
    }

    fn native(said: &Value) -> Vec<Value> {
        let record = |class: &str, key: &str, value: Value| {
            json!({"uuid": "u", "parentUuid": "p", "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z", "type": class, "cwd": "/w",
                "gitBranch": "b", "version": "1", "message": {"role": "user", "content": "words"}, key: value})
        };
        vec![
            record("tool_use", "tool", json!({"id": "c", "name": "f", "input": said})),
            record("tool_result", "toolResult", json!({"id": "c", "output": said})),
            record(
                "tool_result",
                "toolResult",
                json!({"id": "c", "output": [said], "error": said.to_string()}),
            ),
            record(
                "system",
                "compactMetadata",
                json!({"trigger": "auto", "preTokens": 5, "kept": ["u"]}),
            ),
        ]
    }

    const AGENTS: [(&str, Records); 5] =
        [("claude", claude), ("codex", codex), ("kimi", kimi), ("pi", pi), ("native", native)];

    /// Makes any value whose strings have the word and whose numbers have the digits; its keys have the word too, or are such as a
    /// format has itself.
    fn said() -> impl Strategy<Value = Value> {
        let key = prop_oneof![
            "[a-z ]{0,9}theft[a-z ]{0,3}",
            "name|status|reason|id|uuid|type|source|detail|content|text|data|kind|model|cwd|role|tool|Ok|input|output",
        ];
        let leaf = prop_oneof![
            "[a-z ]{0,9}theft".prop_map(Value::from),
            Just(json!(4711)),
            Just(json!(-47.11)),
            Just(json!(true))
        ];
        leaf.prop_recursive(4, 24, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key.clone(), inner, 0..5)
                    .prop_map(|fields| Value::from(fields.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    fn forgotten(format: &str, record: &Value) -> String {
        let format = wire::by_name(format).unwrap();
        let own = |text: &str| format.own_words(text);
        let line = record.to_string();
        let covered = cover_all(line.as_bytes(), Some(&wire::FRAME), &own);
        assert_eq!(covered.len(), line.len());
        String::from_utf8(covered).unwrap()
    }

    proptest! {
        #[test]
        fn nothing_is_left_of_what_a_tool_was_asked_for_and_answered(said in said()) {
            for (format, records) in AGENTS {
                for record in records(&said) {
                    let covered = forgotten(format, &record);
                    prop_assert!(!covered.contains("theft"), "{record}\n{covered}");
                    prop_assert!(!covered.contains("4711") && !covered.contains("47.11"), "{record}\n{covered}");
                    let now: Value = serde_json::from_str(&covered).unwrap();
                    prop_assert_eq!(now["type"].clone(), record["type"].clone());
                }
            }
        }
    }

    /// Puts a word behind each string of a value.
    fn marked(value: Value) -> Value {
        match value {
            Value::String(text) => format!("{text}-theft").into(),
            Value::Array(items) => items.into_iter().map(marked).collect(),
            Value::Object(fields) => {
                Value::Object(fields.into_iter().map(|(key, value)| (key, marked(value))).collect())
            }
            other => other,
        }
    }

    /// Adds the places of all strings of a value that have the word.
    fn places(value: &Value, place: &str, found: &mut BTreeSet<String>) {
        match value {
            Value::String(text) if text.contains("theft") => drop(found.insert(place.to_owned())),
            Value::Array(items) => {
                for item in items {
                    places(item, &format!("{place}[]"), found);
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    places(value, &format!("{place} {key}"), found);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn what_is_left_of_a_record_is_what_it_is_and_where_it_belongs() {
        let left = AGENTS.map(|(format, records)| {
            let mut found = BTreeSet::new();
            for record in records(&json!({})) {
                let record = marked(record);
                places(&serde_json::from_str(&forgotten(format, &record)).unwrap(), "", &mut found);
            }
            format!("{format}:{}\n", found.into_iter().collect::<Vec<_>>().join(","))
        });
        assert_snapshot!(left.concat());
    }
}
