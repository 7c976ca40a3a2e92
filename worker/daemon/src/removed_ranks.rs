//! The file `removed-ranks`: whose directories were removed and why, so that a request for the output of such
//! a rank gets the right answer.
//!
//! A line for each rank, such as `12/1/0 empty`: job, attempt and rank. A full file is renamed and replaces
//! the one before, so the last few hundred thousand ranks are known. After a crash lines may be missing, and
//! one may be incomplete; it is ignored.

use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::path::PathBuf;

use cohabit_host::files::{FileContext, FileError, append_to, read};
use cohabit_types::RankId;

/// A file of this size is full.
const FULL: u64 = 8 << 20;

/// Ranks that one write adds, so that a file is never much larger.
const AT_ONCE: usize = 10_000;

/// Why the directory of an ended rank was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemovalReason {
    /// The rank had printed nothing.
    Empty,
    /// The output of all ended ranks took too much space.
    Space,
    /// Output of too many ended ranks was kept.
    Count,
}

impl RemovalReason {
    const ALL: [RemovalReason; 3] = [RemovalReason::Empty, RemovalReason::Space, RemovalReason::Count];

    const fn as_str(self) -> &'static str {
        match self {
            RemovalReason::Empty => "empty",
            RemovalReason::Space => "space",
            RemovalReason::Count => "count",
        }
    }
}

impl fmt::Display for RemovalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The file.
#[derive(Debug, Clone)]
pub(crate) struct RemovedRanks {
    path: PathBuf,
}

impl RemovedRanks {
    pub(crate) fn new(path: PathBuf) -> RemovedRanks {
        RemovedRanks { path }
    }

    /// Adds these ranks. Blocks.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn add(&self, ranks: &[RankId], reason: RemovalReason) -> Result<(), FileError> {
        ranks.chunks(AT_ONCE).try_for_each(|some| self.add_some(some, reason))
    }

    fn add_some(&self, ranks: &[RankId], reason: RemovalReason) -> Result<(), FileError> {
        let mut text = String::new();
        for rank in ranks {
            // Ends an incomplete line. Writing to a string cannot fail.
            let _ = write!(text, "\n{}{}", key(*rank), reason.as_str());
        }
        let mut file = append_to(&self.path)?;
        file.write_all(text.as_bytes()).at("write", &self.path)?;
        if file.metadata().at("inspect", &self.path)?.len() >= FULL {
            std::fs::rename(&self.path, self.earlier()).at("rename", &self.path)?;
        }
        Ok(())
    }

    /// Why the directory of this rank was removed last, if that is known. Blocks.
    ///
    /// # Errors
    /// When a file exists and cannot be read.
    pub(crate) fn find(&self, rank: RankId) -> io::Result<Option<RemovalReason>> {
        let key = key(rank);
        for path in [&self.path, &self.earlier()] {
            let text = match read(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                text => text?,
            };
            let of_rank = |line: &[u8]| {
                let reason = line.strip_prefix(key.as_bytes())?;
                RemovalReason::ALL.into_iter().find(|it| it.as_str().as_bytes() == reason)
            };
            if let Some(reason) = text.rsplit(|byte| *byte == b'\n').find_map(of_rank) {
                return Ok(Some(reason));
            }
        }
        Ok(None)
    }

    fn earlier(&self) -> PathBuf {
        self.path.with_extension("old")
    }
}

/// How a line on this rank begins.
fn key(rank: RankId) -> String {
    format!("{}/{}/{} ", rank.attempt.job, rank.attempt.attempt, rank.rank)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cohabit_types::JobId;

    use super::*;

    fn rank(job: u64) -> RankId {
        JobId::new(job).attempt(1).rank(0)
    }

    fn file() -> (tempfile::TempDir, RemovedRanks) {
        let folder = tempfile::tempdir().unwrap();
        let removed = RemovedRanks::new(folder.path().join("removed-ranks"));
        (folder, removed)
    }

    #[test]
    fn the_latest_reason_of_a_rank_is_found_and_no_other_rank_s() {
        let (_folder, removed) = file();
        assert_eq!(removed.find(rank(1)).unwrap(), None);
        removed.add(&[rank(1), rank(11)], RemovalReason::Empty).unwrap();
        removed.add(&[rank(2)], RemovalReason::Count).unwrap();
        removed.add(&[rank(11)], RemovalReason::Space).unwrap();
        let found = |job| removed.find(rank(job)).unwrap();
        assert_eq!((found(1), found(2)), (Some(RemovalReason::Empty), Some(RemovalReason::Count)));
        assert_eq!((found(11), found(111)), (Some(RemovalReason::Space), None));
        assert_eq!(removed.find(JobId::member(1, 1).attempt(1).rank(0)).unwrap(), None);
    }

    #[test]
    fn an_incomplete_line_spoils_no_other() {
        let (_folder, removed) = file();
        removed.add(&[rank(1)], RemovalReason::Empty).unwrap();
        let text = fs::read(&removed.path).unwrap();
        fs::write(&removed.path, &text[..text.len() - 2]).unwrap();
        removed.add(&[rank(2)], RemovalReason::Empty).unwrap();
        assert_eq!(removed.find(rank(1)).unwrap(), None);
        assert_eq!(removed.find(rank(2)).unwrap(), Some(RemovalReason::Empty));
    }

    #[test]
    fn the_files_stay_small_and_the_latest_ranks_are_known() {
        let (folder, removed) = file();
        let ranks = |from: u64| (from..from + 100_000).map(rank).collect::<Vec<_>>();
        for from in (0..3_000_000).step_by(100_000) {
            removed.add(&ranks(from), RemovalReason::Empty).unwrap();
        }
        let sizes = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
        assert!(sizes.sum::<u64>() < 3 * FULL);
        assert_eq!(removed.find(rank(2_999_999)).unwrap(), Some(RemovalReason::Empty));
        assert_eq!(removed.find(rank(2_700_000)).unwrap(), Some(RemovalReason::Empty));
        assert_eq!(removed.find(rank(1)).unwrap(), None);
    }
}
