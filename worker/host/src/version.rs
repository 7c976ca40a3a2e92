//! The version of the formats; [`crate::format`] tells what it means.

/// The version that this program writes, and the latest that it reads.
pub const VERSION: u32 = 2;

/// Files without a version have this one.
const FIRST_VERSION: u32 = 1;

/// The default of the version field.
pub(crate) const fn first_version() -> u32 {
    FIRST_VERSION
}

/// The file was written by a later version of Cohabit than this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "it has format version {0}, and this version of Cohabit reads {FIRST_VERSION} to {VERSION}: start the newer \
     version again, or let the jobs on this worker end before a downgrade"
)]
pub struct NewerVersion(pub u32);
