//! Generates plain sessions in the formats of agents: any number of messages of about 560 bytes.
//!
//! Costs per entry show best with small, uniform entries. [`crate::generator`] generates sessions with realistic content.
//!
//! Invariant: the output depends on nothing but the agent, the seed and the count.

use std::{
    fs,
    io::{BufWriter, Write as _},
    path::Path,
};

use serde_json::{Value, json};

use crate::{generator::Chance, text};

/// An agent that writes sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agent {
    Claude,
    Codex,
    /// Codex as it writes now: records are counted, and going back continues in another file.
    Counted,
    Pi,
}

impl Agent {
    pub(crate) const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Pi];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Counted => "counted",
            Self::Pi => "pi",
        }
    }

    /// Returns `count` records of a session. The last one is an answer or reports the tokens used.
    pub(crate) fn records(self, seed: u64, count: usize) -> (String, Vec<Value>) {
        let mut records = Vec::with_capacity(count);
        let session = self.each(seed, count, None, |record| records.push(record));
        (session, records)
    }

    /// Passes `count` records of a session to `each`, the last `behind` of them after a compaction. Returns the session's id.
    fn each(
        self,
        seed: u64,
        count: usize,
        behind: Option<usize>,
        mut each: impl FnMut(Value),
    ) -> String {
        let mut chance = Chance::new(seed);
        let session = chance.uuid();
        let mut ordinal = 0;
        let mut each = |mut record: Value| {
            if self == Self::Counted {
                record["ordinal"] = json!(ordinal);
                ordinal += 1;
            }
            each(record);
        };
        let heading = usize::from(self != Self::Claude);
        if heading > 0 {
            each(self.heading(&session));
        }
        let mut last: Option<String> = None;
        for n in heading..count {
            let mut name = chance.uuid();
            if behind == Some(count - n) {
                for record in self.compaction(&session, n, last.as_deref().unwrap(), &name) {
                    each(record);
                }
                last = Some(std::mem::replace(&mut name, chance.uuid()));
            }
            each(self.message(&session, n, last.as_deref(), &name));
            last = Some(name);
        }
        session
    }

    /// Returns the records of a compaction. The last one has this name.
    fn compaction(self, session: &str, n: usize, parent: &str, name: &str) -> Vec<Value> {
        let words = text(n, 400);
        match self {
            Self::Claude => {
                let boundary = format!("{}-boundary", &name[..8]);
                let common = json!({
                    "isSidechain": false, "userType": "external", "cwd": "/srv/project", "sessionId": session,
                    "version": "2.1.20", "gitBranch": "main", "timestamp": time(n),
                });
                let with = |fields: Value| {
                    let mut record = common.clone();
                    record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
                    record
                };
                vec![
                    with(json!({
                        "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
                        "parentUuid": null, "logicalParentUuid": parent, "uuid": boundary,
                        "compactMetadata": { "trigger": "manual", "preTokens": 20_000 },
                    })),
                    with(json!({
                        "type": "user", "isCompactSummary": true, "parentUuid": boundary, "uuid": name,
                        "message": { "role": "user", "content": words },
                    })),
                ]
            }
            Self::Codex | Self::Counted => {
                vec![json!({ "timestamp": time(n), "type": "compacted", "payload": {
                        "message": "", "replacement_history": [said("user", "input_text", &words)],
                    } })]
            }
            Self::Pi => vec![json!({
                "type": "compaction", "id": name, "parentId": parent, "timestamp": time(n), "summary": words,
                "firstKeptEntryId": parent, "tokensBefore": 20_000,
            })],
        }
    }

    fn heading(self, session: &str) -> Value {
        let time = time(0);
        match self {
            Self::Codex => json!({
                "timestamp": time, "type": "session_meta",
                "payload": {
                    "id": session, "timestamp": time, "cwd": "/srv/project", "originator": "codex_cli_rs",
                    "cli_version": "0.100.0", "instructions": null,
                },
            }),
            Self::Counted => json!({
                "timestamp": time, "type": "session_meta",
                "payload": {
                    "id": session, "session_id": session, "timestamp": time, "cwd": "/srv/project",
                    "originator": "codex_cli_rs", "cli_version": "0.169.0", "history_mode": "paginated",
                },
            }),
            _ => json!({
                "type": "session", "version": 3, "id": session, "timestamp": time, "cwd": "/srv/project",
            }),
        }
    }

    fn message(self, session: &str, n: usize, parent: Option<&str>, name: &str) -> Value {
        let is_answer = n % 2 == 1;
        let read = 20_000 + n % 1000;
        let words = text(n, 120);
        match self {
            Self::Claude => {
                let message = if is_answer {
                    json!({
                        "model": "claude-opus-4-5-20251101", "id": format!("msg_{n}"), "type": "message",
                        "role": "assistant", "content": [{ "type": "text", "text": words }],
                        "stop_reason": null, "stop_sequence": null,
                        "usage": { "input_tokens": 3, "cache_read_input_tokens": read, "output_tokens": 40 },
                    })
                } else {
                    json!({ "role": "user", "content": words })
                };
                json!({
                    "parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/srv/project",
                    "sessionId": session, "version": "2.1.20", "gitBranch": "main",
                    "type": if is_answer { "assistant" } else { "user" }, "message": message,
                    "uuid": name, "timestamp": time(n),
                })
            }
            Self::Codex | Self::Counted => {
                let turn = format!("turn-{}", n / 5);
                let (kind, payload) = match n % 5 {
                    1 => ("event_msg", json!({ "type": "task_started", "turn_id": turn })),
                    2 => ("turn_context", json!({ "cwd": "/srv/project", "model": "gpt-5-codex" })),
                    3 => ("response_item", said("user", "input_text", &text(n, 400))),
                    4 => ("response_item", said("assistant", "output_text", &text(n, 400))),
                    _ => ("event_msg", token_count(read)),
                };
                json!({ "timestamp": time(n), "type": kind, "payload": payload })
            }
            Self::Pi => {
                let content = json!([{ "type": "text", "text": words }]);
                let message = if is_answer {
                    json!({ "role": "user", "content": content, "timestamp": n })
                } else {
                    json!({
                        "role": "assistant", "content": content, "api": "anthropic-messages",
                        "provider": "anthropic", "model": "claude-sonnet-4-5", "stopReason": "stop",
                        "usage": { "input": 3, "output": 40, "cacheRead": read, "cacheWrite": 0 }, "timestamp": n,
                    })
                };
                json!({ "type": "message", "id": name, "parentId": parent, "timestamp": time(n), "message": message })
            }
        }
    }

    /// Writes records into a file in a folder, named as the agent names it.
    pub(crate) fn write(self, folder: &Path, session: &str, records: &[Value]) {
        let mut file = self.file(folder, session);
        for record in records {
            writeln!(file, "{record}").unwrap();
        }
        file.flush().unwrap();
    }

    /// Writes a session of `count` records, the last `behind` of them after a compaction, without holding them in memory.
    pub(crate) fn write_long(self, folder: &Path, seed: u64, count: usize, behind: usize) {
        let (session, _) = self.records(seed, 0);
        let mut file = self.file(folder, &session);
        self.each(seed, count, Some(behind), |record| writeln!(file, "{record}").unwrap());
        file.flush().unwrap();
    }

    fn file(self, folder: &Path, session: &str) -> BufWriter<fs::File> {
        fs::create_dir_all(folder).unwrap();
        let name = match self {
            Self::Claude => format!("{session}.jsonl"),
            Self::Codex | Self::Counted => format!("rollout-2025-06-15T15-06-40-{session}.jsonl"),
            Self::Pi => format!("2025-06-15T15-06-40-000Z_{session}.jsonl"),
        };
        BufWriter::new(fs::File::create(folder.join(name)).unwrap())
    }

    /// Returns the folder below a home folder in which the agent stores these sessions.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Claude => ".claude/projects/-srv-project",
            Self::Codex | Self::Counted => ".codex/sessions/2025/06/15",
            Self::Pi => ".pi/agent/sessions/--srv-project--",
        }
    }

    /// Returns the names of a record's id and parent fields.
    pub(crate) fn names(self) -> [&'static str; 2] {
        match self {
            Self::Claude => ["uuid", "parentUuid"],
            Self::Codex | Self::Counted | Self::Pi => ["id", "parentId"],
        }
    }
}

fn said(role: &str, class: &str, words: &str) -> Value {
    json!({ "type": "message", "role": role, "content": [{ "type": class, "text": words }] })
}

fn token_count(input: usize) -> Value {
    let used = json!({
        "input_tokens": input, "cached_input_tokens": input, "output_tokens": 40,
        "reasoning_output_tokens": 0, "total_tokens": input + 40,
    });
    let info = json!({
        "total_token_usage": used, "last_token_usage": used, "model_context_window": 258_400,
    });
    json!({ "type": "token_count", "info": info })
}

/// Returns the time of record `n`, three seconds after the previous one.
fn time(n: usize) -> String {
    let second = n * 3;
    let (day, second) = (second / 86_400, second % 86_400);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let (month, day) = (1 + day / 28, 1 + day % 28);
    format!("2025-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.000Z", second % 60)
}
