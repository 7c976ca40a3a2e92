//! The version of the files of a rank; [`crate::format`] tells what it means.

use cohabit_types::FormatVersion;

/// The version of these files that this program writes, and the latest that it reads.
pub const VERSION: FormatVersion = FormatVersion::new(2);
