//! Directories of ended ranks that left nothing, kept for other ranks: an array of short jobs makes and
//! removes no files then.
//!
//! Each lies in `spare/` under a number of its own, with the directories of its attempt and its rank in it,
//! and an empty directory for checkpoints beside it. A daemon that starts removes what an earlier one has
//! left there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cohabit_host::files::remove_directory;
use cohabit_host::rank_directory::RankDirectory;
use cohabit_host::spare_directory::FileOwner;
use cohabit_types::RankId;

/// The directories. A lock around it is held while directories of jobs and attempts are created or removed.
#[derive(Debug)]
pub(crate) struct SpareDirectories {
    /// The directory of all of them.
    root: PathBuf,
    ranks: PathBuf,
    checkpoints: PathBuf,
    next: u64,
    spare: Vec<SpareDirectory>,
}

/// A directory of a job.
#[derive(Debug)]
struct SpareDirectory {
    path: PathBuf,
    attempt: u32,
    rank: u32,
    owner: FileOwner,
    /// An empty directory for checkpoints, if it has one.
    checkpoints: Option<PathBuf>,
}

impl SpareDirectories {
    /// Removes what is there. Blocks.
    pub(crate) fn open(root: PathBuf, ranks: PathBuf, checkpoints: PathBuf) -> io::Result<SpareDirectories> {
        match remove_directory(&root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
        fs::create_dir(&root)?;
        Ok(SpareDirectories { root, ranks, checkpoints, next: 0, spare: Vec::new() })
    }

    pub(crate) fn len(&self) -> usize {
        self.spare.len()
    }

    /// Takes the directory of this rank, which the head knows to have ended, out of those of all ranks.
    /// False, if another rank of its job has one, or if it holds what may be read later. Blocks.
    ///
    /// # Errors
    /// When it cannot be read or moved.
    pub(crate) fn set_aside(&mut self, id: RankId) -> io::Result<bool> {
        if !is_the_only_one(&self.ranks, id)? {
            return Ok(false);
        }
        let Some(owner) = RankDirectory::for_rank(&self.ranks, id).recycle()? else { return Ok(false) };
        let RankId { attempt, rank } = id;
        self.next += 1;
        let path = self.root.join(self.next.to_string());
        fs::rename(self.ranks.join(attempt.job.to_string()), &path)?;
        let checkpoints = self.set_checkpoints_aside(&self.checkpoints.join(attempt.job.to_string()));
        self.spare.push(SpareDirectory { path, attempt: attempt.attempt, rank, owner, checkpoints });
        Ok(true)
    }

    /// `None` if the job has left checkpoints, or has none of the usual directory.
    fn set_checkpoints_aside(&self, folder: &Path) -> Option<PathBuf> {
        let is_empty = fs::symlink_metadata(folder).ok()?.is_dir() && is_empty(folder).ok()?;
        let aside = self.root.join(format!("{}-checkpoints", self.next));
        (is_empty && fs::rename(folder, &aside).is_ok()).then_some(aside)
    }

    /// Makes one of them the directory of this rank, whose files will have this owner, and whose job has no
    /// directory yet. False if that cannot be done. Blocks.
    pub(crate) fn take(&mut self, id: RankId, owner: FileOwner) -> bool {
        let job = self.ranks.join(id.attempt.job.to_string());
        let found = self.spare.iter().rposition(|spare| spare.owner == owner);
        let Some(position) = found.filter(|_| fs::symlink_metadata(&job).is_err()) else { return false };
        let spare = self.spare.swap_remove(position);
        let moved = spare.become_of(id).and_then(|()| fs::rename(&spare.path, &job));
        let checkpoints = self.checkpoints.join(id.attempt.job.to_string());
        if let Some(of_spare) = spare.checkpoints
            && (moved.is_err() || !move_if_empty(&of_spare, &checkpoints))
        {
            report(&of_spare, remove_directory(&of_spare));
        }
        if moved.is_err() {
            report(&spare.path, remove_directory(&spare.path));
        }
        moved.is_ok()
    }
}

impl SpareDirectory {
    /// Names the directories in it as those of this rank.
    fn become_of(&self, id: RankId) -> io::Result<()> {
        let attempt = self.path.join(id.attempt.attempt.to_string());
        if self.attempt != id.attempt.attempt {
            fs::rename(self.path.join(self.attempt.to_string()), &attempt)?;
        }
        if self.rank != id.rank {
            fs::rename(attempt.join(self.rank.to_string()), attempt.join(id.rank.to_string()))?;
        }
        Ok(())
    }
}

/// Whether this rank is the only one of its job that has a directory below `ranks`. Blocks.
///
/// # Errors
/// When a directory cannot be read.
pub(crate) fn is_the_only_one(ranks: &Path, id: RankId) -> io::Result<bool> {
    let job = ranks.join(id.attempt.job.to_string());
    let attempt = job.join(id.attempt.attempt.to_string());
    Ok(holds_only(&job, &attempt)? && holds_only(&attempt, RankDirectory::for_rank(ranks, id).path())?)
}

fn holds_only(folder: &Path, entry: &Path) -> io::Result<bool> {
    fs::read_dir(folder)?.try_fold(true, |only, found| Ok(only && found?.path() == entry))
}

fn is_empty(folder: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(folder)?.next().is_none())
}

/// Moves an empty directory to where nothing is. Whether it is there now.
fn move_if_empty(from: &Path, to: &Path) -> bool {
    fs::symlink_metadata(to).is_err() && is_empty(from).unwrap_or(false) && fs::rename(from, to).is_ok()
}

fn report(folder: &Path, removed: io::Result<()>) {
    if let Err(error) = removed {
        tracing::warn!(folder = %folder.display(), %error, "could not be removed");
    }
}

#[cfg(test)]
mod tests {
    use cohabit_host::rank_directory::Flush;
    use cohabit_host::records::OutcomeRecord;
    use cohabit_types::{JobId, Outcome, Time};

    use super::*;

    struct Kit {
        folder: tempfile::TempDir,
        spare: SpareDirectories,
    }

    impl Kit {
        fn new() -> Kit {
            let folder = tempfile::tempdir().unwrap();
            let [spare, ranks, checkpoints] =
                ["spare", "ranks", "checkpoints"].map(|name| folder.path().join(name));
            fs::create_dir(&ranks).unwrap();
            fs::create_dir(&checkpoints).unwrap();
            let spare = SpareDirectories::open(spare, ranks, checkpoints).unwrap();
            Kit { folder, spare }
        }

        /// The directory of a rank that ended and left nothing.
        fn ended(&self, id: RankId) -> RankDirectory {
            let rank = self.directory_of(id);
            rank.create().unwrap();
            fs::write(rank.path().join("start.json"), "{}").unwrap();
            cohabit_host::progress::ProgressFile::create(rank.progress(), None).unwrap();
            let outcome = OutcomeRecord::without_start(Outcome::Exited(0), Time::EPOCH);
            rank.write_ended(&outcome, Flush::Later).unwrap();
            rank.acknowledge().unwrap();
            rank
        }

        fn directory_of(&self, id: RankId) -> RankDirectory {
            RankDirectory::for_rank(&self.folder.path().join("ranks"), id)
        }

        fn checkpoints(&self, id: RankId) -> PathBuf {
            self.folder.path().join("checkpoints").join(id.attempt.job.to_string())
        }

        /// How many entries there are in the directory of spare ones.
        fn kept(&self) -> usize {
            fs::read_dir(self.folder.path().join("spare")).unwrap().count()
        }
    }

    fn id(job: u64) -> RankId {
        JobId::new(job).attempt(1).rank(0)
    }

    fn own() -> FileOwner {
        FileOwner::of(None)
    }

    #[test]
    fn a_rank_gets_the_directories_of_one_that_left_nothing() {
        let mut kit = Kit::new();
        let ended = kit.ended(id(1));
        fs::create_dir(kit.checkpoints(id(1))).unwrap();
        assert!(kit.spare.set_aside(id(1)).unwrap());
        assert!(!kit.folder.path().join("ranks/1").exists() && !kit.checkpoints(id(1)).exists());
        assert!(!ended.path().exists());
        let other = JobId::member(7, 3).attempt(2).rank(5);
        assert!(kit.spare.take(other, own()));
        let directory = kit.directory_of(other);
        assert!(!directory.is_over() && directory.start().unwrap().is_none());
        assert!(kit.checkpoints(other).is_dir());
        assert_eq!((kit.kept(), kit.spare.len()), (0, 0));
        assert!(!kit.spare.take(id(8), own()), "there is no other one");
    }

    #[test]
    fn only_the_one_rank_of_a_job_gives_its_directory() {
        let mut kit = Kit::new();
        let attempts = [id(1), JobId::new(1).attempt(2).rank(0)].map(|id| kit.ended(id));
        let ranks = [id(2), JobId::new(2).attempt(1).rank(1)].map(|id| kit.ended(id));
        assert!(!kit.spare.set_aside(id(1)).unwrap() && !kit.spare.set_aside(id(2)).unwrap());
        assert!(attempts.iter().chain(&ranks).all(RankDirectory::is_acknowledged));
        assert_eq!(kit.kept(), 0);
    }

    #[test]
    fn a_job_that_has_a_directory_and_another_owner_get_none() {
        let mut kit = Kit::new();
        kit.ended(id(1));
        assert!(kit.spare.set_aside(id(1)).unwrap());
        let first = kit.ended(id(2));
        assert!(!kit.spare.take(JobId::new(2).attempt(2).rank(0), own()));
        assert!(first.is_acknowledged());
        let account = cohabit_host::account::Account {
            name: "ada".into(),
            uid: 4_000_000,
            gid: 4_000_000,
            groups: Vec::new(),
            home: "/".into(),
            shell: "/bin/sh".into(),
        };
        assert!(!kit.spare.take(id(3), FileOwner::of(Some(&account))));
        assert!(kit.spare.take(id(3), own()));
    }

    #[test]
    fn checkpoints_stay_with_their_job() {
        let mut kit = Kit::new();
        kit.ended(id(1));
        fs::create_dir(kit.checkpoints(id(1))).unwrap();
        fs::write(kit.checkpoints(id(1)).join("weights"), "1").unwrap();
        assert!(kit.spare.set_aside(id(1)).unwrap());
        assert!(kit.checkpoints(id(1)).join("weights").exists());
        assert!(kit.spare.take(id(2), own()) && !kit.checkpoints(id(2)).exists());
    }

    #[test]
    fn checkpoints_that_are_there_are_not_replaced() {
        let mut kit = Kit::new();
        kit.ended(id(1));
        fs::create_dir(kit.checkpoints(id(1))).unwrap();
        assert!(kit.spare.set_aside(id(1)).unwrap());
        fs::create_dir(kit.checkpoints(id(2))).unwrap();
        fs::write(kit.checkpoints(id(2)).join("weights"), "1").unwrap();
        assert!(kit.spare.take(id(2), own()));
        assert!(kit.checkpoints(id(2)).join("weights").exists());
        assert_eq!(kit.kept(), 0);
    }

    #[test]
    fn a_daemon_that_starts_removes_what_an_earlier_one_kept() {
        let mut kit = Kit::new();
        kit.ended(id(1));
        assert!(kit.spare.set_aside(id(1)).unwrap());
        let folder = kit.folder.path();
        let [spare, ranks, checkpoints] = ["spare", "ranks", "checkpoints"].map(|name| folder.join(name));
        kit.spare = SpareDirectories::open(spare, ranks, checkpoints).unwrap();
        assert!(kit.kept() == 0 && !kit.spare.take(id(2), own()));
    }
}
