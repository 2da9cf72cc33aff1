//! Verbs: one file each, in folders by purpose. A verb is a function, not an object.
//!
//! A verb that changes something reads the state of its session and returns a plan; `change` calls it under the lock and executes
//! the plan. A verb that reads uses a [`View`] and writes nothing.
//!
//! Invariant: a verb never holds a lock, a transaction or a half-made change.

pub(crate) mod agent;
pub(crate) mod back;
mod error;
pub(crate) mod find;
pub(crate) mod look;
pub(crate) mod secrets;
pub(crate) mod upkeep;
pub(crate) mod window;

pub use crate::mend::Agents;
pub use crate::session::error::{shortened, spelling};
pub use crate::verbs::agent::append::{append, append_cut};
pub use crate::verbs::agent::gate::{Gate, Snapshot, Ticket, Waited};
pub use crate::verbs::agent::handle::Handle;
pub use crate::verbs::agent::handoff::hand_off;
pub use crate::verbs::agent::new::{Layers, check_id, hide, new, new_with_id};
pub use crate::verbs::agent::turn::{Answer, STEPS, Turning, turn};
pub use crate::verbs::back::branch::{
    branch, branch_end, branches, hide_branch, is_branch_name, rename_branch, switch,
};
pub use crate::verbs::back::checkpoint::{checkpoint, tell_checkpoint};
pub use crate::verbs::back::later::{Later, later};
pub use crate::verbs::back::revert::{clear, revert};
pub use crate::verbs::back::target::Back;
pub use crate::verbs::back::undo::{
    Operations, operations, operations_of_all, redo, undo, undoable,
};
pub use crate::verbs::error::OpsError;
pub use crate::verbs::find::index::index;
pub use crate::verbs::find::query::Search;
pub use crate::verbs::find::search::{count, near, search};
pub use crate::verbs::look::course::{Course, Fork, course};
pub use crate::verbs::look::diff::diff;
pub use crate::verbs::look::drawing::{Detail, Drawing, Outlined};
pub use crate::verbs::look::graph::{drawing, files_used, graph, recent_drawing, reverted_ends};
pub use crate::verbs::look::layers::{layers, session_key};
pub use crate::verbs::look::list::{Having, Order, glance_all, keep_glances, known_glance, list};
pub use crate::verbs::look::prices::Prices;
pub use crate::verbs::look::read::{
    elsewhere, export, export_container, export_whole, file_of, generation_of, is_behind, left_for,
    show, status, successor_of,
};
pub use crate::verbs::look::sizes::{sizes, sizes_of};
pub use crate::verbs::look::spending::{By, Period, Row, effort, grouped, spending, sum};
pub use crate::verbs::secrets::findings::Wanted;
pub use crate::verbs::secrets::redact::{Cause, follow_moved, redact, redaction};
pub use crate::verbs::secrets::suspects::{Suspects, audit_secrets, masking, secret_rules};
pub use crate::verbs::upkeep::attach::{attach, check_live, detach, take_up};
pub use crate::verbs::upkeep::bundle::{Bundling, bundle, check_bundle, import_bundle};
pub use crate::verbs::upkeep::doctor::{
    Place, doctor, forgetful, is_obstructed, let_in, place_of, remainders, treat,
};
pub use crate::verbs::upkeep::mend::{Outcome as MendOutcome, finish_mending, mend};
pub use crate::verbs::upkeep::pack::pack;
pub use crate::verbs::upkeep::rebuild::{rebuild, sum_up};
pub use crate::verbs::upkeep::restore::{
    lost, lost_file, lost_with_sub_agents, restore, restore_lost,
};
pub use crate::verbs::upkeep::setup::{Setup, calling, setup};
pub use crate::verbs::upkeep::verify::{Verifying, verify};
pub use crate::verbs::window::audit::audit;
pub use crate::verbs::window::boundaries::audit_boundaries;
pub use crate::verbs::window::cache::cached;
pub use crate::verbs::window::compact::{compact, compact_if_due, plan_compaction, try_compaction};
pub use crate::verbs::window::compaction::{Compacting, Hook, Rule};
pub use crate::verbs::window::context::{context, explain, fullness, model, tokens, window};
pub use crate::verbs::window::counts::{counts, keep_counts};
pub use crate::verbs::window::origin::{hidden, original};
pub use crate::verbs::window::recover::recover;
pub use crate::verbs::window::sight::Asked;
pub use crate::verbs::window::truncate::{called_tools, oversized, reach, truncate};

pub use crate::{
    archive::{
        Ambient, Archive, At, Here, Holder, Machine, Manner, Misread, NoPlace, Skipped, SyncError,
        Told, Vain, Waiting, Why, Workspace, dependencies, workspace,
    },
    change::{
        is_unsaid,
        reconcile::{follow, live_state},
        resume, settle, waiting,
    },
    context::cut::Bound,
    files::{Source, file_of_session, generations, open_in, rotations, sources},
    intake::{
        AgentFolder, Look, Looked, Queue, Step, Work, agent_folders, import, import_changed,
        leave_out_held, new_files, news, open_sessions, peek, unread_folders,
    },
    purge::check_apart,
    report::{
        AgentSizes, Ailment, Appended, AppendedEntry, Attached, Audit, Branched, Call, Compacted,
        Context, Created, Cure, Diff, Difference, Explained, Finding, Fullness, GraphNode,
        GraphView, Held, Hidden, HiddenText, Imported, ListedBranch, ListedSession, Notice, Oddity,
        OperationView, Outcome, Oversized, Part, Parts, Planned, Quirk, Rebuilt, Recovered,
        Replaced, Reverted, Rotated, RotatedState, SessionSizes, Side, Status, Summary,
        Surroundings, Truncated, Turned, Undone, Verified,
    },
    search::{Case, Manner as Words, Part as Within, Pattern, Query, Sort, Sought, Unfit},
    secrets::{Allowed, Masked, Masking, Masks, Unallowed},
    session::{
        Bond, Damaged, Elsewhere, Gap, Kin, Line, Log, Passage, Reader, RecentCall, Renewed,
        Session, SessionError, Shown, Spot, Stand, Stored, SubAgent, Target, View, checkpoints,
        each_checkpoint, entry_ids, entry_of, find_passage, find_place, find_session, is_passage,
        kin, log, log_all, log_all_of, log_of, messages, newest_checkpoints, short_name,
        split_place, standing_at, steps, words,
    },
};
