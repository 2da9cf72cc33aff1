//! The history of a session: its parents, its files, its sub-agents, its ends.

pub(crate) mod departures;
pub(crate) mod ends;
pub(crate) mod kin;
pub(crate) mod lineage;
pub(crate) mod oddities;
pub(crate) mod origins;
pub(crate) mod stretches;
pub(crate) mod sub_agent;
