//! Removes what ended ranks leave on this host: all of a rank that printed nothing, a little later; output
//! that is too old, or too much together, the oldest first; and old checkpoints, and results in copies of
//! code, of jobs without ranks here.
//!
//! Directories of ranks that left nothing are kept for other ranks, as many as an array of short jobs needs.
//! What else short jobs leave is removed a minute later, not between the starts of others: some file systems
//! make files slowly where many were removed shortly before.
//!
//! Only directories with our names are touched. Symbolic links are removed, never followed.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, Metadata};
use std::io;
use std::mem::take;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use cohabit_host::ended_rank::Remains;
use cohabit_host::files::remove_directory;
use cohabit_host::rank_directory::{RankDirectory, directories_in, ranks_in};
use cohabit_types::{Bytes, JobId, RankId};
use nix::sys::statvfs::statvfs;

use crate::checkpoints::CheckpointEntry;
use crate::options::RetentionOptions;
use crate::removed_ranks::RemovalReason;
use crate::retained_output::{RetainedOutput, RetentionLimits};
use crate::spare_directories::is_the_only_one;
use crate::state_directory::StateDirectory;

/// The most directories that are kept for other ranks: twice as many as there are between the start of a rank
/// and the examination of its directory, where a thousand ranks end in a second.
const MAX_SPARE: usize = 512;

/// The most ended ranks whose directories wait to be cleaned up.
const MAX_WAITING: usize = 20_000;

/// What such a directory takes on the disk, with those of its job.
const SIZE_OF_EMPTY: u64 = 28 << 10;

/// The most that all output takes by default, if the file system is large enough.
const DEFAULT_BYTES: Bytes = Bytes(10 << 30);
/// The most ended ranks whose output is kept by default, if it can hold enough files.
const DEFAULT_RANKS: usize = 100_000;

/// Files and directories that a rank with output takes, with those of its job.
const FILES_OF_A_RANK: u64 = 8;

/// The chosen limits, or else a part of what the file system has; the most that one rank may print has room.
pub(crate) fn limits(options: &RetentionOptions, of_one_rank: Bytes, folder: &Path) -> RetentionLimits {
    let (size, files) = statvfs(folder)
        .map_or((u64::MAX, u64::MAX), |it| (it.blocks().saturating_mul(it.fragment_size()), it.files()));
    // Some file systems have files without limit, and say that they have none.
    let files = if files == 0 { u64::MAX } else { files };
    RetentionLimits {
        age: options.age.into(),
        bytes: options.bytes.unwrap_or(DEFAULT_BYTES.min(Bytes(size / 10)).max(of_one_rank)),
        ranks: options.ranks.unwrap_or(DEFAULT_RANKS.min((files / FILES_OF_A_RANK / 10) as usize)),
    }
}

/// What ended ranks have left.
pub(crate) struct Retention {
    state: StateDirectory,
    limits: RetentionLimits,
    output: RetainedOutput,
    /// How long the directory of an ended rank stays as it is.
    delay: Duration,
    /// Ended ranks, and since when they wait: the directories of those that printed nothing to be removed,
    /// those of others to lose what is not kept.
    waiting: VecDeque<(Instant, RankId)>,
    /// The same of ranks whose executors have taken no other rank yet: looked at again with the next ranks.
    held: VecDeque<(Instant, RankId)>,
    /// How many directories may be kept for other ranks.
    most_spare: usize,
}

impl Retention {
    pub(crate) fn new(state: StateDirectory, limits: RetentionLimits, delay: Duration) -> Retention {
        let (output, waiting, held) = (RetainedOutput::default(), VecDeque::new(), VecDeque::new());
        Retention { state, limits, output, delay, waiting, held, most_spare: MAX_SPARE }
    }

    /// Examines all that is on the disk, and removes at once what is empty.
    pub(crate) fn examine_all(&mut self) {
        self.output = RetainedOutput::default();
        self.waiting.clear();
        self.held.clear();
        self.settle(ranks_in(&self.state.ranks()));
        for job in directories_in::<JobId>(&self.state.ranks()) {
            for attempt in directories_in::<u32>(&self.state.ranks().join(job.to_string())) {
                self.state.remove_empty(job.attempt(attempt));
            }
        }
        let Some(before) = self.limits.oldest_kept() else { return };
        let (checkpoints, code) = (self.state.checkpoints(), self.state.code());
        let entries = directories_in::<CheckpointEntry>(&checkpoints).into_iter();
        let of_checkpoints = entries.map(|entry| (entry.job, entry.path(&checkpoints)));
        let copies = directories_in::<JobId>(&code).into_iter();
        let of_code = copies.map(|job| (job, code.join(job.to_string())));
        for (job, folder) in of_checkpoints.chain(of_code) {
            if !self.state.ranks().join(job.to_string()).exists()
                && newest_in(&folder).is_some_and(|at| at < before)
            {
                report(&folder, remove_directory(&folder));
            }
        }
    }

    /// Counts the output of these ranks; what is not kept of their directories waits to be removed. The
    /// directories of those without output are kept for other ranks, or wait, too.
    pub(crate) fn examine(&mut self, ranks: &[RankId]) {
        let has_output = |rank: &RankId| self.directory_of(*rank).log().exists();
        let (printed, silent): (Vec<RankId>, Vec<RankId>) = ranks.iter().partition(|rank| has_output(rank));
        let (counted, others): (Vec<RankId>, Vec<RankId>) =
            printed.into_iter().partition(|rank| self.count(*rank));
        self.settle(others);
        let now = Instant::now();
        self.waiting.extend(counted.into_iter().map(|rank| (now, rank)));
        let silent = silent.into_iter().map(|rank| (now, rank));
        let silent: Vec<(Instant, RankId)> = take(&mut self.held).into_iter().chain(silent).collect();
        let left: BTreeSet<RankId> =
            self.set_aside(silent.iter().map(|(_, rank)| *rank)).into_iter().collect();
        for (since, rank) in silent.into_iter().filter(|(_, rank)| left.contains(rank)) {
            let is_held = self.directory_of(rank).remains().is_ok_and(|it| it == Remains::Executor);
            let queue = if is_held { &mut self.held } else { &mut self.waiting };
            queue.push_back((since, rank));
        }
    }

    /// Keeps directories for other ranks, after it is written down what became of them. Returns the ranks
    /// of the others.
    fn set_aside(&self, silent: impl Iterator<Item = RankId>) -> Vec<RankId> {
        let most = self.most_spare.min(self.most_waiting());
        let room = most.saturating_sub(self.state.spare_directories());
        let left_nothing = |rank: &RankId| {
            let left = self.directory_of(*rank).owner_of_nothing();
            left.is_ok_and(|owner| owner.is_some())
                && is_the_only_one(&self.state.ranks(), *rank).is_ok_and(|only| only)
        };
        let (mut spare, mut left): (Vec<RankId>, Vec<RankId>) = silent.partition(left_nothing);
        left.extend(spare.split_off(room.min(spare.len())));
        if spare.is_empty() {
            return left;
        }
        match self.state.removed_ranks().add(&spare, RemovalReason::Empty) {
            Ok(()) => left.extend(self.state.set_aside(&spare, most)),
            Err(error) => {
                tracing::warn!(%error, "it cannot be stored why directories of ended ranks are moved");
                left.extend(spare);
            }
        }
        left
    }

    /// How many directories may wait to be cleaned up, or be kept for other ranks.
    fn most_waiting(&self) -> usize {
        MAX_WAITING.min(self.limits.ranks).min((self.limits.bytes.0 / SIZE_OF_EMPTY) as usize)
    }

    /// Cleans up the directories that have waited for long enough, or are too many.
    pub(crate) fn clean_waiting(&mut self) {
        let too_many = self.waiting.len().saturating_sub(self.most_waiting());
        let is_due = |(since, _): &&(Instant, RankId)| since.elapsed() >= self.delay;
        let due = self.waiting.iter().take_while(is_due).count().max(too_many);
        let of_held = self.held.iter().take_while(is_due).count();
        let due = self.held.drain(..of_held).chain(self.waiting.drain(..due));
        let ranks = due.map(|(_, rank)| rank).collect();
        self.settle(ranks);
    }

    /// When the first directory that waits is to be cleaned up.
    pub(crate) fn next_due_in(&self) -> Option<Duration> {
        let fronts = self.waiting.front().into_iter().chain(self.held.front());
        fronts.map(|(since, _)| self.delay.saturating_sub(since.elapsed())).min()
    }

    /// Removes those of these ranks that left nothing, and counts the output of the others.
    fn settle(&mut self, ranks: Vec<RankId>) {
        let mut empty = Vec::new();
        for rank in ranks {
            let directory = self.directory_of(rank);
            // The rank may run: another one of this id, before the head was reset, had ended.
            if !directory.is_acknowledged() {
                continue;
            }
            match directory.remains() {
                Ok(Remains::Nothing) => empty.push(rank),
                Ok(Remains::Executor) => self.waiting.push_back((Instant::now(), rank)),
                Ok(Remains::Output) => self.keep(rank, &directory),
                Err(error) => report(directory.path(), Err(error)),
            }
        }
        self.remove(&empty, RemovalReason::Empty);
    }

    /// Counts the output of a rank whose directory holds little else. Returns whether it does.
    fn count(&mut self, rank: RankId) -> bool {
        let directory = self.directory_of(rank);
        let (Ok(Some(size)), Ok(ended_at)) = (directory.size_if_nearly_reduced(), ended_at(&directory))
        else {
            return false;
        };
        self.output.add(ended_at, rank, size);
        true
    }

    fn keep(&mut self, rank: RankId, directory: &RankDirectory) {
        let ended_at = ended_at(directory);
        match directory.reduce().and_then(|size| Ok((ended_at?, size))) {
            Ok((ended_at, size)) => self.output.add(ended_at, rank, size),
            Err(error) => report(directory.path(), Err(error)),
        }
    }

    pub(crate) fn enforce_limits(&mut self) {
        for rank in self.output.take_old(self.limits.oldest_kept()) {
            self.remove_one(rank);
        }
        let too_much = self.output.take_excess(&self.limits);
        for reason in [RemovalReason::Space, RemovalReason::Count] {
            let of_reason = too_much.iter().filter(|(_, why)| *why == reason);
            let ranks: Vec<RankId> = of_reason.map(|(rank, _)| *rank).collect();
            if !ranks.is_empty() {
                tracing::info!(ranks = ranks.len(), %reason, "removing the oldest output of ended ranks");
            }
            self.remove(&ranks, reason);
        }
    }

    /// Writes down why they are removed, and then removes them. On a full disk empty directories stay until
    /// that can be written; output goes.
    fn remove(&self, ranks: &[RankId], reason: RemovalReason) {
        if let Err(error) = self.state.removed_ranks().add(ranks, reason) {
            tracing::warn!(%error, "it cannot be stored why directories of ended ranks are removed");
            if reason == RemovalReason::Empty {
                return;
            }
        }
        ranks.iter().for_each(|rank| self.remove_one(*rank));
    }

    fn remove_one(&self, rank: RankId) {
        let directory = self.directory_of(rank);
        if directory.is_acknowledged() {
            report(directory.path(), directory.remove());
            self.state.remove_empty(rank.attempt);
        }
    }

    fn directory_of(&self, rank: RankId) -> RankDirectory {
        RankDirectory::for_rank(&self.state.ranks(), rank)
    }
}

/// When an ended rank ended whose end the head knows.
fn ended_at(directory: &RankDirectory) -> io::Result<SystemTime> {
    fs::symlink_metadata(directory.acknowledged_file())?.modified()
}

fn report(folder: &Path, done: io::Result<()>) {
    match done {
        Ok(()) => tracing::debug!(folder = %folder.display(), "removed"),
        Err(error) => tracing::warn!(folder = %folder.display(), %error, "could not be removed"),
    }
}

/// When anything in the directory was last changed: by the clock of the kernel, because a job may give its
/// files any time of modification.
fn newest_in(folder: &Path) -> Option<SystemTime> {
    let own = fs::symlink_metadata(folder).ok().and_then(|file| changed_at(&file));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let inner = entries.filter_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => newest_in(&entry.path()),
        Ok(_) | Err(_) => entry.metadata().ok().and_then(|file| changed_at(&file)),
    });
    inner.chain(own).max()
}

fn changed_at(file: &Metadata) -> Option<SystemTime> {
    let since_epoch = Duration::new(file.ctime().try_into().ok()?, file.ctime_nsec().try_into().ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since_epoch)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kit {
        _folder: tempfile::TempDir,
        retention: Retention,
    }

    impl Kit {
        fn new() -> Kit {
            let folder = tempfile::tempdir().unwrap();
            let (state, _) = StateDirectory::open(&folder.path().join("state")).unwrap();
            let limits = RetentionLimits { age: HOUR, bytes: Bytes(1 << 30), ranks: 1_000 };
            Kit { _folder: folder, retention: Retention::new(state, limits, Duration::ZERO) }
        }

        fn state(&self) -> &StateDirectory {
            &self.retention.state
        }

        /// The directory of a rank with this file beside its `start.json`.
        fn rank(&self, job: u64, file: &str) -> RankDirectory {
            let folder = self.retention.directory_of(id(job));
            self.state().create_rank_directory(id(job), None).unwrap();
            for name in ["start.json", file] {
                fs::write(folder.path().join(name), "{}").unwrap();
            }
            folder
        }

        /// The same of a rank that printed so much, and ended so many seconds ago.
        fn printed(&self, job: u64, bytes: usize, ago: u64) -> RankDirectory {
            let folder = self.rank(job, "acknowledged.json");
            fs::create_dir(folder.log()).unwrap();
            fs::write(folder.log().join("00000000000000000000"), vec![1; bytes]).unwrap();
            let at = SystemTime::now() - Duration::from_secs(ago);
            fs::File::open(folder.acknowledged_file()).unwrap().set_modified(at).unwrap();
            folder
        }

        fn checkpoint(&self, job: u64) -> std::path::PathBuf {
            let folder = self.state().checkpoints_of(JobId::new(job));
            fs::create_dir_all(folder.join("deep")).unwrap();
            fs::write(folder.join("deep/weights"), "1").unwrap();
            folder
        }

        fn why(&self, job: u64) -> Option<RemovalReason> {
            self.state().removed_ranks().find(id(job)).unwrap()
        }

        fn clean_with(&mut self, limits: RetentionLimits) {
            self.retention.limits = limits;
            self.retention.examine_all();
            self.retention.enforce_limits();
        }

        fn ended(&mut self, jobs: &[u64]) {
            self.retention.examine(&jobs.iter().copied().map(id).collect::<Vec<_>>());
            self.retention.clean_waiting();
            self.retention.enforce_limits();
        }
    }

    const HOUR: Duration = Duration::from_secs(3600);

    const NOTHING: RetentionLimits = RetentionLimits { age: Duration::ZERO, bytes: Bytes(0), ranks: 0 };

    fn id(job: u64) -> RankId {
        JobId::new(job).attempt(1).rank(0)
    }

    #[test]
    fn only_what_was_acknowledged_long_ago_is_removed() {
        let mut kit = Kit::new();
        let gone = kit.printed(1, 10, 0);
        let unknown = kit.rank(2, "outcome.json");
        let running = kit.rank(3, "progress");
        let (old, kept) = (kit.checkpoint(1), kit.checkpoint(3));
        kit.retention.examine_all();
        assert!(gone.path().exists() && old.exists());
        kit.clean_with(RetentionLimits { age: Duration::ZERO, ..kit.retention.limits });
        assert!(!gone.path().exists() && !kit.state().ranks().join("1").exists());
        kit.retention.examine_all();
        assert!(!old.exists());
        assert!(unknown.path().exists() && running.path().exists() && kept.exists());
        assert_eq!(kit.why(1), None);
    }

    #[test]
    fn a_rank_that_printed_nothing_leaves_one_line_and_no_file() {
        let mut kit = Kit::new();
        kit.rank(1, "acknowledged.json");
        let running = kit.rank(2, "progress");
        let [own, of_two] = [1, 2].map(|job| kit.state().checkpoints_of(JobId::new(job)));
        [&own, &of_two].iter().for_each(|folder| fs::create_dir(folder).unwrap());
        kit.ended(&[1, 2, 3]);
        assert!(!kit.state().ranks().join("1").exists() && !own.exists());
        assert!(running.path().join("start.json").exists() && of_two.exists());
        assert_eq!([1, 2, 3].map(|job| kit.why(job)), [Some(RemovalReason::Empty), None, None]);
        assert_eq!(fs::read_to_string(kit.state().root().join("removed-ranks")).unwrap(), "\n1/1/0 empty");
    }

    #[test]
    fn the_oldest_output_goes_first_where_there_is_too_much() {
        let mut kit = Kit::new();
        let ranks = [(1, 300), (2, 100), (3, 200), (4, 0)].map(|(job, ago)| kit.printed(job, 1 << 20, ago));
        let running = kit.rank(5, "progress");
        kit.clean_with(RetentionLimits { bytes: Bytes(5 << 19), ..kit.retention.limits });
        assert_eq!(ranks.each_ref().map(|rank| rank.path().exists()), [false, true, false, true]);
        assert_eq!(
            [kit.why(1), kit.why(3), kit.why(2)],
            [Some(RemovalReason::Space), Some(RemovalReason::Space), None]
        );
        kit.retention.limits.ranks = 2;
        let last = kit.printed(6, 10, 0);
        kit.ended(&[6]);
        assert_eq!((ranks[1].path().exists(), last.path().exists()), (false, true));
        assert_eq!(kit.why(2), Some(RemovalReason::Count));
        kit.clean_with(NOTHING);
        assert!(!ranks[3].path().exists() && !last.path().exists() && running.path().exists());
    }

    #[test]
    fn directories_of_ranks_that_printed_nothing_wait_unless_they_are_too_many() {
        let mut kit = Kit::new();
        (kit.retention.delay, kit.retention.most_spare) = (HOUR, 0);
        kit.retention.limits.ranks = 2;
        let ranks = [1, 2, 3].map(|job| kit.rank(job, "acknowledged.json"));
        kit.ended(&[1, 2, 3]);
        assert_eq!(ranks.each_ref().map(|rank| rank.path().exists()), [false, true, true]);
        kit.retention.delay = Duration::ZERO;
        kit.ended(&[]);
        assert!(ranks.iter().all(|rank| !rank.path().exists()));
    }

    #[test]
    fn the_directory_of_a_rank_that_printed_is_counted_at_once_and_reduced_later() {
        let mut kit = Kit::new();
        kit.retention.delay = HOUR;
        let usual = kit.printed(1, 1 << 20, 0);
        let other = kit.printed(2, 1 << 20, 0);
        fs::write(other.path().join("unknown"), "1").unwrap();
        kit.ended(&[1, 2]);
        assert!(usual.path().join("start.json").exists() && !other.path().join("start.json").exists());
        kit.retention.limits.ranks = 1;
        kit.ended(&[]);
        assert!(!usual.path().exists() && other.log().exists(), "the oldest output goes");
        kit.retention.limits.ranks = 2;
        let reduced = kit.printed(3, 1 << 20, 0);
        kit.ended(&[3]);
        kit.retention.delay = Duration::ZERO;
        kit.ended(&[]);
        assert!(!usual.path().exists() && !reduced.path().join("start.json").exists());
        assert!(reduced.is_acknowledged() && reduced.log().exists() && other.log().exists());
    }

    /// The head was reset, and a rank with the same id runs now.
    #[test]
    fn a_rank_that_runs_under_the_id_of_an_ended_one_is_left_alone() {
        let mut kit = Kit::new();
        let rank = kit.printed(1, 1 << 20, 0);
        kit.ended(&[1]);
        fs::remove_file(rank.acknowledged_file()).unwrap();
        kit.retention.limits = NOTHING;
        kit.ended(&[]);
        assert!(rank.log().exists());
    }

    #[test]
    fn a_file_with_a_time_in_the_future_keeps_no_directory() {
        let mut kit = Kit::new();
        let old = kit.checkpoint(1);
        let far = SystemTime::now() + Duration::from_secs(1_000_000);
        fs::File::open(old.join("deep/weights")).unwrap().set_modified(far).unwrap();
        kit.clean_with(NOTHING);
        assert!(!old.exists());
    }

    #[test]
    fn links_are_removed_and_never_followed() {
        let mut kit = Kit::new();
        let precious = kit._folder.path().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("thesis"), "1").unwrap();
        let gone = kit.rank(1, "acknowledged.json");
        std::os::unix::fs::symlink(&precious, gone.path().join("workdir")).unwrap();
        std::os::unix::fs::symlink(&precious, gone.log()).unwrap();
        std::os::unix::fs::symlink(&precious, kit.state().checkpoints_of(JobId::new(9))).unwrap();
        kit.clean_with(NOTHING);
        assert!(!gone.path().exists());
        assert!(precious.join("thesis").exists());
    }

    #[test]
    fn the_usual_limits_are_a_part_of_the_file_system() {
        let folder = tempfile::tempdir().unwrap();
        let usual = limits(&RetentionOptions::default(), Bytes(1), folder.path());
        assert!((1..=DEFAULT_BYTES.0).contains(&usual.bytes.0) && (1..=DEFAULT_RANKS).contains(&usual.ranks));
        let chosen =
            RetentionOptions { bytes: Some(Bytes(7)), ranks: Some(8), ..RetentionOptions::default() };
        let chosen = limits(&chosen, DEFAULT_BYTES, folder.path());
        assert_eq!((chosen.bytes, chosen.ranks), (Bytes(7), 8));
    }
}
