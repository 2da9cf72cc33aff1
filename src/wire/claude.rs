//! Claude Code's session files: `projects/<slug>/<session id>.jsonl`, one record a line.
//!
//! ```text
//! of the chain:  user, assistant, system, attachment, progress {uuid, parentUuid|null, logicalParentUuid?, isSidechain,
//!                timestamp, sessionId, cwd, version, userType, gitBranch?, message?, isMeta?, isCompactSummary?, ..}
//! without one:   last-prompt {leafUuid|null, explicit?}, summary {summary, leafUuid}, ai-title, custom-title,
//!                file-history-snapshot, queue-operation, ..
//! ```
//!
//! One message of the model is several records that share `message.id`, most with one block; a `user` record with a
//! `tool_result` answers one call. The rules of a resume were tried on the program itself, versions 2.1.329 and
//! 2.1.330:
//!
//! - The last `last-prompt` names the head. It gives way to the file's last record when that descends from it, no parent
//!   mended, or from the rest of its batch of calls, unless it is explicit and nothing was written since. Others on the
//!   same leaf make it explicit; one that ever was gives way to no batch. A boundary wipes it. An explicit null is no head
//!   at all, until something is written.
//! - Without one, and where the last record is older than those before it, the head is the newest record that descends
//!   from it. Where no message is above it, it is the newest message with which a branch ends.
//! - A boundary that keeps messages chains them under its summary; a later record that hangs on the summary, or on a
//!   record that the boundary dropped, hangs on the last of them. A dropped record can be no head.
//!   Words of the program that hang on a dropped record miss it, and kept messages stand also where the summary is missing.
//! - A parent that is missing, or was passed already, is mended by the record of the newest moment in the 5 s before: of
//!   several by the first one of the file, which may come after.
//! - Blocks of a message on the chain that hang elsewhere are put among its blocks on the chain, behind the first one, and
//!   their results among the results there, in the order of the file. So are words of the program (attachments, `system`,
//!   `isMeta`) that follow a block or a result of a message with calls in single file to the end, or to blocks of that
//!   message; others that hang there are not. What is between blocks in the user's place parts their message.
//! - An object behind another on one physical line is not read.
//! - An error of the interface (`isApiErrorMessage`) that no model gave, a command's words (`isDisplayOnly`) and a message
//!   that is only shown (`isVirtual`) are not sent. The rest is, as [`sent`] and [`Traits::takes_results_in_place`] say.
//!
//! A path also crosses boundaries: to the record that the boundary names, else to the record before it in the file. A
//! context begins behind the last boundary.
//!
//! Invariant: paths, heads and leaves are found without any line: [`read`] puts the needed values into the hint.

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
    model::{EntryNumber, Kind, Message, Record, Tie},
    wire::{
        Annex, Answers, Back, Call, Callers, Claim, ClaimPlace, Cleanup, Draft, Earlier, Edited,
        Envelope, Failure, Files, Folder, Graph, Hooks, Identify, Interface, Invalid, Layout,
        Named, Nearby, Path, Paths, Read, Sent, Setting, Telling, Titled, Told, Traits, Walk,
        Write,
        compaction::{Compaction, Lines},
        fields::{self, text},
        layout::resuming,
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
    ..Traits::named("claude")
};

impl Identify for Claude {
    fn traits(&self) -> &'static Traits {
        &TRAITS
    }

    fn knows(&self, record: &Fields<'_>) -> bool {
        read::is_known(record)
    }

    fn resembles(&self, record: &Fields<'_>) -> bool {
        read::is_alike(record)
    }

    fn session(&self, record: Raw<'_>) -> Option<String> {
        text(record, "sessionId").filter(|id| !id.is_empty())
    }

    /// The stem of the file if it occurs as a session's id, else the first id; of a sub-agent's file the agent's id too.
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

    /// The program writes these for itself: descriptions of sub-agents, and long answers of tools.
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

impl Layout for Claude {
    fn annexes(&self, file: &std::path::Path, session: &str) -> Vec<Annex> {
        annex::annexes(file, session)
    }

    fn keeper(&self, file: &std::path::Path) -> Option<std::path::PathBuf> {
        annex::keeper(file)
    }
}

impl Hooks for Claude {
    fn named(&self, event: Raw<'_>) -> Option<Named> {
        text(event, "transcript_path").map(|file| Named::File(file.into()))
    }

    fn sub_agents(&self, file: &std::path::Path) -> Option<std::path::PathBuf> {
        Some(file.with_extension("").join(annex::SUB_AGENTS))
    }

    fn hook_file(&self) -> Option<&'static str> {
        Some("settings.json")
    }

    fn hooked(&self, settings: Option<&[u8]>, call: &Call) -> Result<Vec<u8>, Invalid> {
        let line = format!("{}{}", call.script(TRAITS.name, ""), hooks::END);
        hooks::put(settings, TRAITS.name, &line)
    }

    fn hindrance(&self, settings: &[u8]) -> Option<&'static str> {
        hooks::hindrance(settings)
    }

    fn is_altered(&self, settings: &[u8]) -> bool {
        hooks::is_altered(settings, TRAITS.name)
    }

    fn programs(&self, settings: &[u8]) -> Vec<String> {
        hooks::programs(settings, TRAITS.name)
    }

    fn unhooked(&self, settings: &[u8]) -> Result<Option<Vec<u8>>, Invalid> {
        hooks::take(settings, TRAITS.name)
    }
}

impl Read for Claude {
    fn envelope(&self, record: Raw<'_>) -> Envelope {
        read::envelope(record)
    }

    fn messages(&self, record: Raw<'_>) -> Vec<Message> {
        read::message(record).into_iter().collect()
    }

    fn sent(&self, record: Raw<'_>, edits: &[Edited<'_>]) -> Vec<Message> {
        sent::message(record, edits).into_iter().collect()
    }

    fn titles(&self, record: &Record) -> Option<Titled> {
        read::titles(record)
    }

    fn title(&self, record: Raw<'_>) -> Option<String> {
        read::title(record)
    }

    fn answers<'a>(&self, record: Raw<'a>) -> Answers<'a> {
        read::answers(record)
    }

    fn tells(&self, record: &Record) -> Option<Telling> {
        read::is_of_itself(record).then_some(Telling::Setup)
    }

    fn told(&self, record: Raw<'_>) -> Told {
        Told { scene: fields::scene(record, self.traits()), ..read::told(record) }
    }

    fn earlier(&self, record: Raw<'_>) -> Vec<Earlier> {
        read::earlier(record)
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

impl Write for Claude {
    fn own_words(&self, text: &str) -> [usize; 2] {
        marks::own_words(text)
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
        if let Some(to) = back.to
            && (back.note.is_some() || read::is_message(graph.record(to)?.kind))
            && !head::is_in_reach(graph, to)?
        {
            return Ok(None);
        }
        // A resume is sent to messages only; behind a boundary there is none yet.
        let mut leaf = None;
        for &entry in back.path.iter().rev() {
            let kind = graph.record(entry)?.kind;
            if kind == Kind::Boundary {
                break;
            }
            if read::is_message(kind) {
                if !head::is_in_reach(graph, entry)? {
                    return Ok(None);
                }
                let line = graph.line(entry)?;
                leaf = Raw::object(&line).and_then(|record| text(record, "uuid"));
                break;
            }
        }
        Ok(Some(write::branch(back.note, leaf.as_deref(), setting)?))
    }

    fn compaction(
        &self,
        graph: &dyn Graph,
        compaction: &Compaction<'_>,
        settings: &[Setting; 2],
    ) -> Result<Option<Lines>, Failure> {
        let mut kept = Vec::new();
        for said in compaction.system.iter().chain(compaction.kept) {
            let line = graph.line(said.entry)?;
            let Some(name) = Raw::object(&line).and_then(|record| text(record, "uuid")) else {
                return Ok(None);
            };
            kept.push(name);
        }
        let (summary, metadata) = (compaction.summary, compaction.metadata);
        Ok(Some(Lines::More(write::compaction(summary, metadata, &kept, settings))))
    }
}
