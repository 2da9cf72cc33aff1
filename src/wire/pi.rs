//! pi's format: a header, then entries that name their parents. `OpenClaw`'s sessions of 2026.2 have it too.
//!
//! ```text
//! header  type:session, version?, id, timestamp, cwd, parentSession?
//! entry   type, id, parentId|null, timestamp, and by type: message | summary, firstKeptEntryId | customType, content | ..
//! v1      no version; entries without id and parentId, a chain in file order; firstKeptEntryIndex counts parsed lines
//! ```
//!
//! The agent continues from the last line that is not a header, whatever its type. After a compaction it sends the summary,
//! then the path from the first kept entry up to the compaction, then the rest. If the first kept entry is not on the
//! path, nothing is kept. Since 0.87 the system prompt is in messages, with sections that later messages change; a compaction
//! contains the whole prompt and keeps no such message. An edit replaces the content of an earlier entry, or removes the entry.

#![deny(clippy::indexing_slicing)]

mod hooks;
mod read;
mod walk;
mod write;

use serde_json::{Value, json};

use read::{HEADER, MODEL, header, hint, link, linked};
use write::{CUSTOM_TYPE, System, entry};

use crate::{
    json::{Fields, Raw},
    model::{Kind, LineId, Record, Tie, TieKind},
    wire::{
        Back, Claim, ClaimPlace, Draft, EventField, Failure, Files, Folder, Graph, Identify,
        Invalid, Layout, Nearby, PhysicalLine, Setting, Traits, Unanswered, Write,
        compaction::{Compaction, Lines},
        fields::{self, line, text},
    },
};

/// The format of pi and `OpenClaw`.
#[derive(Clone, Copy, Debug)]
pub struct Pi;

/// The texts of entries without messages: type and key.
const REMARKS: [(&str, &str); 3] =
    [("context_edit", "replacement"), ("label", "label"), ("session_info", "name")];

/// The traits of the format.
const TRAITS: Traits = Traits {
    folders: &[
        Folder {
            agent: "pi",
            variable: Some("PI_CODING_AGENT_DIR"),
            usual: Some(".pi/agent"),
            sessions: "sessions",
            each: None,
            annexes: &[],
        },
        // Since 0.87 an environment variable may name the folder of sessions alone.
        Folder {
            agent: "pi",
            variable: Some("PI_CODING_AGENT_SESSION_DIR"),
            usual: None,
            sessions: "",
            each: None,
            annexes: &[],
        },
        Folder {
            agent: "OpenClaw",
            variable: None,
            usual: Some(".openclaw"),
            sessions: "agents",
            each: Some("sessions"),
            annexes: &[],
        },
    ],
    programs: &["pi", "openclaw"],
    line: PhysicalLine::OneRecordOrMarked,
    // OpenClaw's list.
    key_list: Some("sessions.json"),
    claim: Some(Claim { place: ClaimPlace::Beside(".lock"), process: "pid", started: "starttime" }),
    // Edits do not have a kind of their own.
    omissions: &[Kind::Result, Kind::Boundary, Kind::Note, Kind::Meta],
    joins_calls: true,
    around_summary: Some(read::COMPACTED),
    retells_system: true,
    remarks: |record| fields::remarks(record, &REMARKS),
    worded: &["bashExecution", "branchSummary", "branch_summary", "sections"],
    unanswered: Some(Unanswered::Answer {
        words: "No result provided",
        is_error: true,
        is_by_turn: true,
    }),
    nearby: Nearby::Model,
    takes_records: false,
    hooks: Some(&hooks::PiHooks),
    event: Some(EventField::File("transcript_path")),
    ..Traits::named("pi")
};

impl Identify for Pi {
    fn traits(&self) -> &'static Traits {
        &TRAITS
    }

    fn knows(&self, record: &Fields<'_>) -> bool {
        let has = |key| record.get(key).is_some();
        match record.text("type").as_deref() {
            Some("session") => has("id") && has("timestamp") && has("cwd"),
            Some(_) if has("uuid") || has("payload") => false,
            Some("message") => has("message") && has("timestamp") && has("id") == has("parentId"),
            Some(_) => has("id") && has("parentId") && has("timestamp"),
            None => false,
        }
    }

    fn session(&self, record: Raw<'_>) -> Option<String> {
        header(record).then(|| text(record, "id"))?
    }

    fn folder(&self, record: Raw<'_>) -> Option<String> {
        header(record).then(|| text(record, "cwd"))?
    }

    /// A header may name the file that its session was created from. A copied entry keeps its line.
    fn ties(&self, _session: &str, graph: &dyn Graph) -> Result<Vec<Tie>, Failure> {
        let mut ties = Vec::new();
        for place in graph.end().earlier() {
            let Some(entry) = graph.at(place)? else { continue };
            let line = graph.line(entry)?;
            let Some(record) = Raw::object(&line) else { continue };
            if !header(record) {
                let other = LineId::of(&line).to_string();
                ties.push(Tie { kind: TieKind::Beginning, other });
                break;
            }
            let source = text(record, "parentSession").or_else(|| text(record, "branchedFrom"));
            if let Some(other) = source.as_deref().and_then(session_in).filter(|_| place == 0) {
                ties.push(Tie { kind: TieKind::Fork, other: other.to_owned() });
            }
        }
        Ok(ties)
    }
}

impl Files for Pi {
    fn resume(&self, _session: &str, file: &std::path::Path) -> Option<Vec<String>> {
        // `OpenClaw` opens its sessions itself.
        let is_its_own = file.components().any(|part| part.as_os_str() == ".openclaw");
        let file = file.to_str().filter(|_| !is_its_own)?;
        Some(["pi", "--session", file].map(str::to_owned).to_vec())
    }
}

impl Layout for Pi {
    fn opens_file(&self, record: &Record) -> bool {
        hint(record).0 & HEADER != 0
    }

    fn unresumed(&self, first: Option<&Record>) -> Option<&'static str> {
        let is_begun = first.is_some_and(|first| self.opens_file(first));
        (!is_begun).then_some("pi does not resume a file that does not begin with a header")
    }
}

impl Write for Pi {
    fn is_nameless(&self, graph: &dyn Graph) -> Result<bool, Failure> {
        walk::is_chain(graph)
    }

    fn names_model(&self, record: &Record) -> bool {
        hint(record).0 & MODEL != 0
    }

    fn write(&self, draft: &Draft, setting: &Setting) -> Result<Vec<u8>, Invalid> {
        write::record(draft, setting)
    }

    fn branch(
        &self,
        graph: &dyn Graph,
        back: &Back<'_>,
        setting: &Setting,
    ) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        if walk::is_chain(graph)? {
            // pi chains all entries in file order, whatever their parents.
            return Ok(None);
        }
        Ok(Some(vec![match back.note {
            Some(note) => self.write(&Draft::Note(note.to_owned()), setting)?,
            None => line(&entry("custom", json!({ "customType": CUSTOM_TYPE }), setting)),
        }]))
    }

    fn compaction(
        &self,
        graph: &dyn Graph,
        compaction: &Compaction<'_>,
        [setting, _]: &[Setting; 2],
    ) -> Result<Option<Lines>, Failure> {
        let Compaction { sent, kept, summary, metadata, .. } = compaction;
        let (key, first) = if walk::is_chain(graph)? {
            // pi numbers the entries when it opens the file. An index after the last one keeps nothing.
            let first = match kept.first() {
                Some(said) => walk::index_of(graph, said.entry)?,
                None => Some(u64::from(u32::MAX)),
            };
            ("firstKeptEntryIndex", first.map(Value::from))
        } else {
            // An id that is not an earlier entry keeps nothing.
            let mut first = Some(setting.uuid.clone());
            if let Some(said) = kept.first() {
                let line = graph.line(said.entry)?;
                first = Raw::object(&line).and_then(|record| link(record.get("id")?));
            }
            ("firstKeptEntryId", first.as_deref().map(linked))
        };
        let Some(first) = first else { return Ok(None) };
        let mut system = System::default();
        for &entry in *sent {
            if matches!(graph.record(entry)?.kind, Kind::System | Kind::Boundary) {
                system.see(&graph.line(entry)?);
            }
        }
        let mut fields = json!({
            "summary": summary,
            (key): first,
            "tokensBefore": metadata.pre_tokens,
            "details": { CUSTOM_TYPE: metadata.fields() },
            // The details are not in pi's own shape.
            "fromHook": true,
        });
        if let (Value::Object(fields), Some(message)) =
            (&mut fields, system.message(setting.time.0.into()))
        {
            fields.insert("systemMessage".to_owned(), message);
        }
        Ok(Some(Lines::More(vec![line(&entry("compaction", fields, setting))])))
    }
}

/// Returns the id of the session in a file, from the file's path: the part of the name after the time.
fn session_in(path: &str) -> Option<&str> {
    let name = path.rsplit(['/', '\\']).next()?;
    let stem = name.strip_suffix(".jsonl").unwrap_or(name);
    let id = stem.rsplit_once('_').map_or(stem, |(_, id)| id);
    (!id.is_empty()).then_some(id)
}
