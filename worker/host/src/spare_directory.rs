//! The directory of an ended rank that left nothing becomes the directory of another rank: to rename files
//! is much quicker than to remove and to make them, above all where many were removed shortly before.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use nix::unistd::{getegid, geteuid};

use crate::account::Account;
use crate::files::is_owned_alone;
use crate::rank_directory::RankDirectory;

/// To whom the files of a rank belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileOwner {
    uid: u32,
    gid: u32,
}

impl FileOwner {
    /// This account, or this process.
    #[must_use]
    pub fn of(account: Option<&Account>) -> FileOwner {
        match account {
            Some(account) => FileOwner { uid: account.uid, gid: account.gid },
            None => FileOwner { uid: geteuid().as_raw(), gid: getegid().as_raw() },
        }
    }
}

impl RankDirectory {
    /// To whom the files of an ended rank belong that has left nothing, not even the files of its executor.
    /// `None` if its directory holds anything else.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn owner_of_nothing(&self) -> io::Result<Option<FileOwner>> {
        let progress = self.progress();
        let known = [self.start_file(), self.acknowledged_file(), progress.clone()];
        let mut found = 0;
        for entry in fs::read_dir(self.path())? {
            if !known.contains(&entry?.path()) {
                return Ok(None);
            }
            found += 1;
        }
        if found != known.len() {
            return Ok(None);
        }
        let reported = fs::symlink_metadata(progress)?;
        let owner = FileOwner { uid: reported.uid(), gid: reported.gid() };
        let is_unused = reported.len() == 0 && is_owned_alone(&reported, owner.uid, owner.gid);
        Ok(is_unused.then_some(owner))
    }

    /// Makes the directory of an ended rank one of a rank that was never started, with the files that it will
    /// write over. Returns their owner; `None`, and nothing is changed, if the rank has left anything.
    ///
    /// # Errors
    /// When the directory cannot be read, or a file not renamed; it may be changed then.
    pub fn recycle(&self) -> io::Result<Option<FileOwner>> {
        let Some(owner) = self.owner_of_nothing()? else { return Ok(None) };
        // First: a directory without it is never taken for that of a rank that was lost.
        fs::rename(self.start_file(), self.start_file().with_extension("new"))?;
        fs::rename(self.acknowledged_file(), self.outcome_file().with_extension("new"))?;
        Ok(Some(owner))
    }
}

#[cfg(test)]
mod tests {
    use cohabit_types::{JobId, Outcome, Time};

    use super::*;
    use crate::progress::ProgressFile;
    use crate::rank_directory::Flush;
    use crate::records::OutcomeRecord;

    /// The directory of a rank that ended, and printed nothing.
    fn ended(ranks: &tempfile::TempDir) -> RankDirectory {
        let rank = RankDirectory::for_rank(ranks.path(), JobId::new(1).attempt(1).rank(0));
        rank.create().unwrap();
        fs::write(rank.start_file(), "{}").unwrap();
        ProgressFile::create(rank.progress(), None).unwrap();
        rank.write_ended(&outcome(), Flush::Later).unwrap();
        rank.acknowledge().unwrap();
        rank
    }

    fn outcome() -> OutcomeRecord {
        OutcomeRecord::without_start(Outcome::Exited(3), Time::EPOCH)
    }

    #[test]
    fn another_rank_writes_over_the_files_of_one_that_left_nothing() {
        let ranks = tempfile::tempdir().unwrap();
        let rank = ended(&ranks);
        let inodes = |names: [&str; 2]| names.map(|name| fs::metadata(rank.path().join(name)).unwrap().ino());
        let before = inodes(["acknowledged.json", "progress"]);
        assert_eq!(rank.recycle().unwrap(), Some(FileOwner::of(None)));
        assert!(!rank.is_over() && rank.start().unwrap().is_none() && rank.ended().unwrap().is_none());
        ProgressFile::create(rank.progress(), None).unwrap();
        rank.write_ended(&outcome(), Flush::Later).unwrap();
        assert_eq!(rank.ended().unwrap().unwrap().ending, outcome().ending);
        rank.acknowledge().unwrap();
        assert_eq!(inodes(["acknowledged.json", "progress"]), before);
    }

    #[test]
    fn a_directory_that_holds_anything_else_is_left_alone() {
        for name in ["log", "series", "script", "socket", "unknown"] {
            let ranks = tempfile::tempdir().unwrap();
            let rank = ended(&ranks);
            fs::write(rank.path().join(name), "").unwrap();
            assert_eq!(rank.recycle().unwrap(), None, "{name}");
            assert!(rank.is_acknowledged() && rank.start_file().exists());
        }
        let ranks = tempfile::tempdir().unwrap();
        let rank = ended(&ranks);
        fs::hard_link(rank.progress(), ranks.path().join("thesis")).unwrap();
        assert_eq!(rank.recycle().unwrap(), None);
        fs::remove_file(ranks.path().join("thesis")).unwrap();
        fs::write(rank.progress(), "1").unwrap();
        assert_eq!(rank.recycle().unwrap(), None);
        assert!(rank.is_acknowledged());
    }

    /// The name of the file had been changed on disk before its content was.
    #[test]
    fn the_outcome_of_the_rank_before_is_not_that_of_the_next_one() {
        let ranks = tempfile::tempdir().unwrap();
        let rank = ended(&ranks);
        rank.recycle().unwrap();
        fs::rename(rank.outcome_file().with_extension("new"), rank.outcome_file()).unwrap();
        assert!(rank.ended().unwrap().is_some());
        fs::rename(ranks.path().join("1"), ranks.path().join("2")).unwrap();
        let next = RankDirectory::for_rank(ranks.path(), JobId::new(2).attempt(1).rank(0));
        assert_eq!(next.ended().unwrap(), None);
    }

    #[test]
    fn a_longer_file_is_shortened_and_one_of_others_is_replaced() {
        let ranks = tempfile::tempdir().unwrap();
        let rank = ended(&ranks);
        rank.recycle().unwrap();
        let fresh = rank.outcome_file().with_extension("new");
        fs::write(&fresh, vec![b'x'; 10_000]).unwrap();
        rank.write_ended(&outcome(), Flush::Later).unwrap();
        assert_eq!(rank.ended().unwrap().unwrap().ending, outcome().ending);
        let precious = ranks.path().join("thesis");
        fs::write(&precious, "thesis").unwrap();
        fs::hard_link(&precious, &fresh).unwrap();
        rank.write_ended(&outcome(), Flush::Later).unwrap();
        assert_eq!(fs::read_to_string(precious).unwrap(), "thesis");
    }
}
