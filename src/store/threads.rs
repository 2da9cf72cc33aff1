//! Threads: how many share work.

use std::{num::NonZero, thread};

use rustix::process::{Resource, getrlimit};

/// With less memory than this, further readers would leave too little for the work.
const ROOM: u64 = 512 << 20;

/// Returns how many threads may share work: one for each core, or a single one if memory is tightly limited.
pub(crate) fn cores() -> usize {
    let is_narrow = getrlimit(Resource::As).current.is_some_and(|limit| limit < ROOM);
    if is_narrow { 1 } else { thread::available_parallelism().map_or(1, NonZero::get) }
}
