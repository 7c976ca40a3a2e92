//! The names of what is kept of checkpoints.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cohabit_types::JobId;

/// One directory among the checkpoints of this worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckpointEntry {
    pub(crate) job: JobId,
    /// The number of this node in the attempts that wrote it.
    node_rank: u32,
    kind: EntryKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    /// What the next attempt goes on from.
    Latest,
    /// What was here before checkpoints were carried over that lack it.
    Earlier,
    /// An empty directory: the latest ones lack what an earlier attempt had saved.
    Incomplete,
}

const NODE: &str = "-node";
const EARLIER: &str = "-earlier";
const INCOMPLETE: &str = "-incomplete";

impl CheckpointEntry {
    /// What the next attempt of this job goes on from.
    pub(crate) const fn latest(job: JobId, node_rank: u32) -> CheckpointEntry {
        CheckpointEntry { job, node_rank, kind: EntryKind::Latest }
    }

    /// What was here before checkpoints were carried over that lack it.
    pub(crate) const fn earlier(self) -> CheckpointEntry {
        CheckpointEntry { kind: EntryKind::Earlier, ..self }
    }

    /// What says that the latest checkpoints lack what an earlier attempt had saved.
    pub(crate) const fn incomplete(self) -> CheckpointEntry {
        CheckpointEntry { kind: EntryKind::Incomplete, ..self }
    }

    /// Where it is, among all checkpoints in this directory.
    pub(crate) fn path(self, checkpoints: &Path) -> PathBuf {
        checkpoints.join(self.to_string())
    }
}

impl fmt::Display for CheckpointEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.job)?;
        if self.node_rank > 0 {
            write!(f, "{NODE}{}", self.node_rank)?;
        }
        f.write_str(match self.kind {
            EntryKind::Latest => "",
            EntryKind::Earlier => EARLIER,
            EntryKind::Incomplete => INCOMPLETE,
        })
    }
}

impl FromStr for CheckpointEntry {
    type Err = ();

    fn from_str(name: &str) -> Result<CheckpointEntry, ()> {
        let kinds = [(EARLIER, EntryKind::Earlier), (INCOMPLETE, EntryKind::Incomplete)];
        let marked = kinds.into_iter().find_map(|(end, kind)| Some((name.strip_suffix(end)?, kind)));
        let (name, kind) = marked.unwrap_or((name, EntryKind::Latest));
        let (job, node_rank) = name.split_once(NODE).unwrap_or((name, "0"));
        let job = job.parse().map_err(|_| ())?;
        Ok(CheckpointEntry { job, node_rank: node_rank.parse().map_err(|_| ())?, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for (job, node_rank) in [(JobId::new(12), 0), (JobId::member(12, 5), 3)] {
            let latest = CheckpointEntry::latest(job, node_rank);
            for entry in [latest, latest.earlier(), latest.incomplete()] {
                assert_eq!(entry.to_string().parse(), Ok(entry));
            }
        }
        assert_eq!(
            CheckpointEntry::latest(JobId::member(12, 5), 1).earlier().to_string(),
            "12.5-node1-earlier"
        );
        for name in ["", "x", "12-node", "12-later", "-earlier", ".carried-12"] {
            assert_eq!(name.parse::<CheckpointEntry>(), Err(()), "{name}");
        }
    }
}
