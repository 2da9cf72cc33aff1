//! Claude Code's session files: `projects/<slug>/<session id>.jsonl`, one record a line.
//!
//! ```text
//! on the chain:  user, assistant, system, attachment, progress {uuid, parentUuid|null, logicalParentUuid?, isSidechain,
//!                timestamp, sessionId, cwd, version, userType, gitBranch?, message?, isMeta?, isCompactSummary?, ..}
//! off the chain: last-prompt {leafUuid|null, explicit?}, summary {summary, leafUuid}, ai-title, custom-title,
//!                file-history-snapshot, queue-operation, ..
//! ```
//!
//! One message of the model is several records that share `message.id`, most with one block each; a `user` record with a
//! `tool_result` answers one call. The resume rules were tested against the program itself, versions 2.1.329 and 2.1.330:
//!
//! - The last `last-prompt` (the pin) names the head. It yields to the last record of the file if that descends from it through
//!   unrepaired parents, or from the rest of its batch of calls, unless the pin is explicit and nothing was written since.
//!   Several pins on the same leaf make it explicit; a pin that was ever explicit does not yield to the batch. A boundary
//!   clears the pin. An explicit null means no head at all until something is written.
//! - Without a pin, and if the last record is older than earlier ones, the head is the newest record that descends from the last
//!   one. If there is no message above that, the head is the newest message at the end of a branch.
//! - A boundary that keeps messages chains them after its summary. A later record whose parent is the summary or a dropped
//!   record follows the last kept message instead. A dropped record cannot be a head.
//!   Program text whose parent was dropped has no parent. Kept messages are used even if the summary is missing.
//! - A parent that is missing or was already visited is replaced with the latest record of the 5 s before; if several have the
//!   same time, with the first one in the file, even if it comes later in the file.
//! - Blocks of a message on the chain that have other parents are inserted among its blocks on the chain, after the first one,
//!   and their results among the results there, in file order. So is program text (attachments, `system`, `isMeta`) that follows
//!   a block or result of a message with calls, if each entry of it has a single follower up to the end, or up to blocks of that
//!   message; other program text is not. User-role text between two blocks splits their message.
//! - A second object on the same physical line is not read.
//! - An API error (`isApiErrorMessage`) that no model produced, the output of a command (`isDisplayOnly`) and a message that is
//!   only displayed (`isVirtual`) are not sent. For everything else see [`sent`] and [`Traits::takes_results_in_place`].
//!
//! A path also crosses boundaries: to the record that the boundary names, else to the record before it in the file. A
//! context begins after the last boundary.
//!
//! Invariant: finding paths, heads and leaves never parses a line: [`read`] stores the necessary values in the hint.

#![deny(clippy::indexing_slicing)]

mod annex;
mod attached;
mod beside;
mod chain;
mod head;
mod hooks;
mod leaves;
mod marks;
mod read;
mod reminder;
mod sent;
mod settled;
mod side;
mod ties;
mod write;

pub(crate) use marks::CAVEAT;

use crate::{
    json::{Fields, Raw},
    model::{EntryNumber, Kind, Record, Tie},
    wire::{
        Callers, Claim, ClaimPlace, Cleanup, EventField, Failure, Files, Folder, Graph, Identify,
        Interface, Nearby, Path, Paths, Sent, Traits, Walk, fields::text, layout::resuming,
    },
};

/// Claude Code's format.
#[derive(Clone, Copy, Debug)]
pub struct Claude;

/// The traits of the format.
const TRAITS: Traits = Traits {
    folders: &[Folder {
        agent: "Claude Code",
        variable: Some("CLAUDE_CONFIG_DIR"),
        usual: Some(".claude"),
        sessions: annex::SESSIONS,
        each: None,
        annexes: &annex::APART,
    }],
    programs: &["claude"],
    claim: Some(Claim {
        place: ClaimPlace::Folder { name: "sessions", session: "sessionId" },
        process: "pid",
        started: "procStart",
    }),
    cleanup: Some(Cleanup { settings: "settings.json", field: "cleanupPeriodDays", days: 30 }),
    secrets: &[".claude.json"],
    resumes_messages_only: true,
    has_sub_agents_within: true,
    remarks: read::remarks,
    moved: &["persisted-output"],
    omissions: &[Kind::Result, Kind::Boundary, Kind::System, Kind::Note],
    takes_results_in_place: Some([
        "[Tool result missing due to internal error]",
        "[Tool call interrupted: the session ended before this call's result was recorded, so its outcome is unknown. \
         Check whether it took effect before relying on it or running it again.]",
    ]),
    nearby: Nearby::Head,
    interface: Some(Interface::Anthropic),
    no_model: Some(read::NO_MODEL),
    hooks: Some(&hooks::ClaudeHooks),
    event: Some(EventField::File("transcript_path")),
    ..Traits::named("claude")
};

impl Identify for Claude {
    fn traits(&self) -> &'static Traits {
        &TRAITS
    }

    fn knows(&self, record: &Fields<'_>) -> bool {
        let has = |key| record.get(key).is_some();
        match record.text("type").as_deref() {
            Some("user" | "assistant" | "system" | "attachment" | "progress") => {
                has("uuid") && has("parentUuid") && has("sessionId") && has("isSidechain")
            }
            Some("last-prompt" | "summary") => has("leafUuid"),
            Some("file-history-snapshot") => has("messageId"),
            Some("queue-operation") => has("operation") && has("sessionId"),
            _ => false,
        }
    }

    fn resembles(&self, record: &Fields<'_>) -> bool {
        let has = |key| record.get(key).is_some();
        matches!(record.text("type").as_deref(), Some("user" | "assistant"))
            && has("message")
            && has("timestamp")
    }

    fn session(&self, record: Raw<'_>) -> Option<String> {
        text(record, "sessionId").filter(|id| !id.is_empty())
    }

    /// The file's stem if it occurs as a session id, else the first id in the file; for a sub-agent's file plus the agent's id.
    fn session_of(
        &self,
        file: &std::path::Path,
        records: &[Raw<'_>],
        mentions: &dyn Fn(&[u8]) -> bool,
    ) -> Option<String> {
        let ids = || records.iter().filter_map(|record| self.session(*record));
        let stem = file.file_name()?.to_string_lossy();
        let stem = stem.split('.').next().unwrap_or_default();
        let is_named = || mentions(format!("\"sessionId\":\"{stem}\"").as_bytes());
        if !stem.is_empty() && (ids().any(|id| id == stem) || is_named()) {
            return Some(stem.to_owned());
        }
        let first = ids().next()?;
        let in_chain = records.iter().find(|record| record.get("uuid").is_some());
        let aside =
            in_chain.filter(|record| record.get("isSidechain").and_then(Raw::bool) == Some(true));
        let agent = aside.and_then(|record| text(*record, "agentId"));
        Some(agent.map_or(first.clone(), |agent| format!("{first}/{agent}")))
    }

    fn folder(&self, record: Raw<'_>) -> Option<String> {
        text(record, "cwd").filter(|folder| !folder.is_empty())
    }

    /// The program writes these for itself: descriptions of sub-agents, and long tool results.
    fn accompanies(&self, file: &std::path::Path) -> bool {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("agent-") && name.ends_with(".meta.json")
            || file.parent().is_some_and(|folder| folder.ends_with("tool-results"))
    }

    fn ties(&self, session: &str, graph: &dyn Graph) -> Result<Vec<Tie>, Failure> {
        ties::ties(session, graph)
    }

    fn original_name(&self, record: Raw<'_>, other: &str) -> Option<String> {
        ties::copied(record, other)
    }
}

impl Files for Claude {
    fn sub_agents(&self, file: &std::path::Path) -> Option<std::path::PathBuf> {
        Some(file.with_extension("").join(annex::SUB_AGENTS))
    }

    fn shared_list(&self, root: &std::path::Path) -> Option<std::path::PathBuf> {
        Some(root.join(annex::PROMPTS))
    }

    fn owner(&self, line: Raw<'_>) -> Option<(String, u64)> {
        Some((text(line, "sessionId")?, line.get("timestamp").and_then(Raw::u64).unwrap_or(0)))
    }

    fn resume(&self, session: &str, _file: &std::path::Path) -> Option<Vec<String>> {
        resuming(["claude", "--resume"], session)
    }
}

impl Walk for Claude {
    fn head(&self, graph: &dyn Graph) -> Result<Option<EntryNumber>, Failure> {
        head::head(graph)
    }

    fn path(&self, graph: &dyn Graph, head: EntryNumber, limit: usize) -> Result<Path, Failure> {
        chain::Paths::new(graph)?.path(head, limit)
    }

    fn paths<'g>(&'g self, graph: &'g dyn Graph) -> Result<Paths<'g>, Failure> {
        let mut paths = chain::Paths::shared(graph)?;
        Ok(Box::new(move |head, limit| paths.path(head, limit)))
    }

    fn context(&self, graph: &dyn Graph, path: &[EntryNumber]) -> Result<Sent, Failure> {
        chain::context(graph, path)
    }

    fn last_kept(&self, graph: &dyn Graph, summary: EntryNumber) -> Result<EntryNumber, Failure> {
        Ok(chain::Kept::find(graph)?.map_or(summary, |kept| kept.behind(summary)))
    }

    fn settled(
        &self,
        graph: &dyn Graph,
        last: &[EntryNumber],
    ) -> Result<Vec<EntryNumber>, Failure> {
        settled::settled(graph, last)
    }

    fn leaves(&self, graph: &dyn Graph) -> Result<Vec<EntryNumber>, Failure> {
        leaves::leaves(graph)
    }

    fn callers<'g>(&'g self, graph: &'g dyn Graph) -> Callers<'g> {
        let mut callers = side::Callers::new(graph);
        Box::new(move |entry| callers.find(entry))
    }

    fn is_of_sub_agent(&self, record: &Record) -> bool {
        read::Hint::of(record).has(read::Hint::SIDE)
    }

    fn clears(&self, record: &Record) -> bool {
        record.kind == Kind::System && read::Hint::of(record).has(read::Hint::CLEARS)
    }
}
