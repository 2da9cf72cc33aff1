//! Verbs: one file each; a function, not an object.
//!
//! A changing verb looks at where its session is and says its change by a plan; `sync` asks for it under the lock
//! and carries it out. A reading verb looks through a [`View`] and writes nothing.
//!
//! Invariant: a verb holds no lock, no transaction and no half-made change.

mod advice;
mod append;
mod attach;
mod audit;
mod best;
mod boundaries;
mod branch;
mod bundle;
mod cached;
mod checkpoint;
mod compact;
mod compacting;
mod compactions;
mod compared;
mod context;
mod counts;
mod diff;
mod doctor;
mod drawing;
mod edges;
mod error;
mod excerpts;
mod gate;
mod glance;
mod graph;
mod handle;
mod hits;
mod hook;
mod index;
mod landing;
mod later;
mod layers;
mod list;
mod measure;
mod members;
mod mend;
mod new;
mod note;
mod origin;
mod pack;
mod parts;
mod pieces;
mod ranked;
mod read;
mod rebuild;
mod recover;
mod redact;
mod request;
mod restore;
mod revert;
mod search;
mod setup;
mod several;
mod shorten;
mod sight;
mod sought;
mod stats;
mod suspects;
mod target;
mod truncate;
mod turn;
mod undo;
mod verify;
mod wanted;

pub use crate::sync::Agents;
pub use advice::{shortened, spelling};
pub use append::{append, append_cut};
pub use attach::{attach, check_live, detach, take_up};
pub use audit::audit;
pub use boundaries::audit_boundaries;
pub use branch::{
    branch, branch_end, branches, hide_branch, is_branch_name, rename_branch, switch,
};
pub use bundle::{Bundling, bundle, check_bundle, import_bundle};
pub use cached::cached;
pub use checkpoint::checkpoint;
pub use compact::{compact, compact_if_due, plan_compaction, try_compaction};
pub use compacting::{Compacting, Hook, Rule};
pub use context::{context, explain, fullness, model, tokens, window};
pub use counts::{counts, keep_counts};
pub use diff::diff;
pub use doctor::{Place, doctor, forgetful, is_obstructed, let_in, place_of, remainders, treat};
pub use drawing::{Detail, Drawing, Outlined};
pub use error::OpsError;
pub use gate::{Gate, Snapshot, Ticket, Waited};
pub use graph::{drawing, files_used, graph, reverted_ends};
pub use handle::Handle;
pub use hook::named;
pub use index::index;
pub use later::{Later, later};
pub use layers::{layers, session_key};
pub use list::{Having, Order, glance_all, keep_glances, known_glance, list};
pub use mend::{Outcome as MendOutcome, finish_mending, mend};
pub use new::{Layers, hide, new};
pub use origin::{hidden, original};
pub use pack::pack;
pub use read::{
    elsewhere, export, export_container, export_whole, file_of, generation_of, is_behind, left_for,
    show, status, successor_of,
};
pub use rebuild::{rebuild, sum_up};
pub use recover::recover;
pub use redact::{Cause, follow_moved, redact, redaction};
pub use restore::{lost, lost_file, lost_with_sub_agents, restore, restore_lost};
pub use revert::{clear, revert};
pub use search::{count, near, search};
pub use setup::{Setup, calling, setup};
pub use sight::Asked;
pub use sought::Search;
pub use stats::{stats, stats_of};
pub use suspects::{Suspects, audit_secrets, masking, secret_rules};
pub use target::Back;
pub use truncate::{Bound, oversized, truncate};
pub use turn::{Answer, STEPS, Turning, turn};
pub use undo::{Operations, operations, operations_of_all, redo, undo, undoable};
pub use verify::{Verifying, verify};
pub use wanted::Wanted;

pub use crate::{
    report::{
        Ailment, Appended, AppendedEntry, Attached, Audit, Branched, Call, Compacted, Context,
        Created, Cure, Diff, Difference, Explained, Finding, Fullness, GraphNode, GraphView,
        Hidden, HiddenText, ListedBranch, ListedSession, OperationView, Oversized, Part, Parts,
        Planned, Recovered, Replaced, Reverted, SessionStats, Side, Stats, Status, Summary,
        Surroundings, Truncated, Turned, Undone, Verified,
    },
    search::{Case, Manner as Words, Part as Within, Pattern, Query, Sort, Sought, Unfit},
    secrets::{Allowed, Masked, Masking, Masks, Unallowed},
    session::{
        Bond, Conversation, Damaged, Elsewhere, Gap, Kin, Line, Log, Passage, Reader, RecentCall,
        Renewed, Session, SessionError, Shown, Spot, Stand, SubAgent, Target, View, checkpoints,
        conversation, each_checkpoint, entry_ids, entry_of, find_passage, find_place, find_session,
        is_passage, kin, log, log_all, log_of, messages, newest_checkpoints, short_name,
        split_place, standing_at, words,
    },
    sync::{
        AgentFolder, Ambient, Archive, Held, Here, Holder, Imported, Look, Looked, Machine, Manner,
        Misread, NoPlace, Notice, Oddity, Outcome, Queue, Quirk, Rebuilt, Rotated, RotatedState,
        Skipped, Source, Step, SyncError, Told, Vain, Waiting, Why, Work, Workspace, agent_folders,
        check_apart, file_of_session, follow, generations, import, import_changed, is_unsaid,
        leave_out_held, live_state, new_files, news, open_in, open_sessions, peek, resume,
        rotations, settle, sources, unread_folders, waiting, workspace,
    },
};
