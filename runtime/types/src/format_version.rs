//! The version of a stored file's format, and the refusal of a file of a later one.
//!
//! Each file says its version in a field of its own. Readers decode that field first, check it, and only then
//! decode the rest: a later version may hold anything else.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// The version of a stored file's format, from 1. A file that does not say its version has the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FormatVersion(NonZeroU32);

/// The file was written by a later version of Cohabit than this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has format version {found}, and this version of Cohabit reads 1 to {latest}: {remedy}")]
pub struct NewerVersion {
    found: NonZeroU32,
    latest: NonZeroU32,
    remedy: &'static str,
}

impl FormatVersion {
    /// The version of files that do not say it.
    pub const FIRST: FormatVersion = FormatVersion(NonZeroU32::MIN);

    /// The version with this number.
    ///
    /// # Panics
    /// If the number is 0.
    #[must_use]
    pub const fn new(number: u32) -> FormatVersion {
        FormatVersion(NonZeroU32::new(number).expect("versions count from 1"))
    }

    /// Refuses a version above the latest that this program reads; the remedy says what its user can do.
    ///
    /// # Errors
    /// When the version is later.
    pub fn check(self, latest: FormatVersion, remedy: &'static str) -> Result<(), NewerVersion> {
        if self > latest {
            return Err(NewerVersion { found: self.0, latest: latest.0, remedy });
        }
        Ok(())
    }
}

impl Default for FormatVersion {
    fn default() -> FormatVersion {
        FormatVersion::FIRST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_version_is_refused_with_both_versions_and_the_remedy() {
        let latest = FormatVersion::new(2);
        assert_eq!(latest.check(latest, "wait"), Ok(()));
        let refusal = FormatVersion::new(3).check(latest, "wait").unwrap_err().to_string();
        assert_eq!(refusal, "it has format version 3, and this version of Cohabit reads 1 to 2: wait");
    }

    #[test]
    fn versions_count_from_1() {
        assert_eq!(serde_json::from_str::<FormatVersion>("1").unwrap(), FormatVersion::default());
        let refusal = serde_json::from_str::<FormatVersion>("0").unwrap_err().to_string();
        assert!(refusal.contains('0') && refusal.contains("nonzero"), "{refusal}");
    }
}
