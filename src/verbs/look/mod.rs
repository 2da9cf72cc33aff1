//! Read-only verbs: the list, a log, an entry, the graph, a comparison, sizes, spending.

pub(crate) mod course;
pub(crate) mod diff;
pub(crate) mod drawing;
pub(crate) mod edges;
pub(crate) mod glance;
pub(crate) mod graph;
pub(crate) mod layers;
pub(crate) mod list;
pub(crate) mod note;
pub(crate) mod prices;
pub(crate) mod read;
pub(crate) mod sizes;
pub(crate) mod spending;
