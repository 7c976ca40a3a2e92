//! Limits that are checked where something enters an application.

/// Largest name of an actor, in bytes.
pub const MAX_NAME: usize = 128;

/// Largest encoded arguments of one call or constructor, in bytes.
pub const MAX_ARGUMENTS: usize = 16 << 20;

/// Most calls of one process to one actor that have not ended.
pub const MAX_CALLS: usize = 1_000;

/// Most actors of one application that have not ended.
pub const MAX_ACTORS: usize = 1_000;
