//! The first entry of a backup: what it is of, and every file with its size and digest.

use std::collections::BTreeSet;

use cohabit_types::ContentHash;
use serde::{Deserialize, Serialize};

use super::contents::{MOST_FILES, REQUIRED, is_saved, stays_inside};

/// The format of backups that this version writes. Every number from 1 to this one is read.
pub(super) const FORMAT: u32 = 1;

/// The name of the entry.
pub(super) const MANIFEST: &str = "manifest.json";

/// The most that a manifest may have.
pub(super) const LARGEST_MANIFEST: u64 = 512 << 20;

/// What a backup says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BackupManifest {
    /// The format of the backup.
    pub(super) format: u32,
    /// The release that made it.
    pub(super) release: String,
    /// The id of the cluster.
    pub(super) cluster: String,
    /// When it was made, RFC 3339 in UTC.
    pub(super) created_at: String,
    /// The format of the journal in it.
    pub(super) journal_format: u32,
    /// The highest number of a job.
    pub(super) last_job: u64,
    /// How many jobs and members of arrays the head had in memory.
    pub(super) jobs: u64,
    /// The entries that follow, in this order.
    pub(super) files: Vec<ManifestEntry>,
}

/// A file in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ManifestEntry {
    /// Relative to the state directory.
    pub(super) path: String,
    /// In bytes.
    pub(super) size: u64,
    pub(super) sha256: ContentHash,
}

/// The part of every format.
#[derive(Deserialize)]
pub(super) struct ManifestHeader {
    pub(super) format: u32,
    #[serde(default)]
    pub(super) release: String,
}

impl BackupManifest {
    /// The bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size))
    }

    /// Refuses a list of files that no backup of this program has. `archive` is the size of the whole backup.
    pub(super) fn check(&self, archive: u64) -> Result<(), String> {
        if self.files.len() > MOST_FILES {
            return Err(format!("it names {} files, and at most {MOST_FILES} are allowed", self.files.len()));
        }
        // People are shown both.
        if self.created_at.parse::<jiff::Timestamp>().is_err() || self.cluster.parse::<uuid::Uuid>().is_err()
        {
            return Err(format!("its {MANIFEST} has no time or no id of a cluster"));
        }
        let mut paths = BTreeSet::new();
        for ManifestEntry { path, .. } in &self.files {
            if !stays_inside(path) || !is_saved(path) {
                return Err(format!("it names the file {path:?}, which is no part of a head's state"));
            }
            if !paths.insert(path.as_str()) {
                return Err(format!("it names the file {path:?} twice"));
            }
        }
        if let Some(missing) = REQUIRED.iter().find(|path| !paths.contains(*path)) {
            return Err(format!("it lacks the file {missing:?}"));
        }
        match self.bytes() > archive {
            true => Err(format!(
                "its files have {} bytes, and it has only {archive}: it is cut off",
                self.bytes()
            )),
            false => Ok(()),
        }
    }
}
