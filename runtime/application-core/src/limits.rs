//! Limits that are checked where something enters an application.

/// Largest name of an actor, in bytes.
pub const MAX_NAME: usize = 128;

/// Largest encoded arguments of one call or constructor, in bytes.
pub const MAX_ARGUMENTS: usize = 16 << 20;

/// Most calls of one process to one actor that have not ended.
pub const MAX_CALLS: usize = 1_000;

/// A larger value goes into the store of a node, in bytes.
pub const MAX_INLINE: usize = 64 << 10;

/// Most bytes of the values and errors that travel with the references in one frame. What is beyond it, the
/// coordinator passes on.
pub const MAX_ATTACHED: usize = 1 << 20;

/// Most references that the coordinator passes on at a time.
pub(crate) const MAX_SHARED: usize = 1_000_000;

/// Most bytes of the values that the coordinator passes on at a time.
pub(crate) const MAX_SHARED_BYTES: usize = 256 << 20;

/// Most tasks of one caller (a running task, or the rest of a process) that have not ended.
pub const MAX_TASKS: usize = 10_000;

/// Most bytes of arguments of the tasks of one caller that have not ended.
pub const MAX_TASK_BYTES: usize = 64 << 20;

/// As long as so many items of a stream are unread, its maker makes no more.
pub const MAX_UNREAD_ITEMS: u64 = 8;

/// As long as so many bytes of a stream are unread, its maker makes no more.
pub const MAX_UNREAD_BYTES: u64 = 64 << 20;

/// Most runners of tasks of one application.
pub const MAX_TASK_RUNNERS: usize = 1_000;

/// Most tasks in one description.
pub const MAX_DESCRIBED_TASKS: usize = 10_000;

/// Of so many ended tasks that it has called, a process remembers how they ended.
pub const MAX_REMEMBERED_TASKS: usize = 1_000;

/// Longest text of an error in a description, in bytes.
pub const MAX_DESCRIBED_TEXT: usize = 200;

/// So many stores fetch objects from one node at the same time; those that have fetched one then serve
/// others.
pub(crate) const MAX_FETCHES_FROM: usize = 2;

/// A store that could not fetch an object so often gives it up. It tries once in a second, so that a node
/// that cannot be reached is known to be silent before.
pub(crate) const MAX_FETCH_FAILURES: u32 = 20;

/// Most bytes of what the coordinator remembers to make lost objects again.
pub(crate) const MAX_LINEAGE_BYTES: usize = 256 << 20;

/// How many bytes go from node to node in a microsecond, as tasks are placed.
pub(crate) const TRANSFER_RATE: u64 = 1_000;

/// Most actors of one application that have not ended.
pub const MAX_ACTORS: usize = 1_000;

/// Longest frame between a process and the store of its node, in bytes.
pub const MAX_STORE_FRAME: usize = 1 << 10;

/// Most objects of one process that wait for the store of its node at the same time.
pub const MAX_STORE_WAITS: usize = 1_000;
