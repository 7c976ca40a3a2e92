//! Removes what ended ranks leave on this host: all of a rank that printed nothing, a little later; output
//! that is too old, or too much together, the oldest first; and old checkpoints, and results in copies of
//! code, of jobs without ranks here.
//!
//! Ranks come here when the head knows how they ended, a moment later. Everything on the disk is examined
//! when the daemon starts, and then every hour.
//!
//! Directories of ranks that left nothing are kept for other ranks, as many as an array of short jobs needs.
//! Others are not removed while such an array makes more: some file systems make files slowly where many were
//! removed shortly before.
//!
//! Only directories with our names are touched. Symbolic links are removed, never followed.

use std::collections::{BTreeSet, VecDeque};
use std::fs::{self, Metadata};
use std::io;
use std::mem::take;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use cohabit_actor::{Actor, ActorFailure, Address, Context, blocking};
use cohabit_host::ended_rank::Remains;
use cohabit_host::files::remove_directory;
use cohabit_host::rank_directory::{RankDirectory, directories_in, ranks_in};
use cohabit_types::{Bytes, JobId, RankId};
use nix::sys::statvfs::statvfs;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::checkpoints::CheckpointEntry;
use crate::options::RetentionOptions;
use crate::removed_ranks::RemovalReason;
use crate::retained_output::{RetainedOutput, RetentionLimits};
use crate::spare_directories::is_the_only_one;
use crate::state_directory::StateDirectory;

const CLEAN_INTERVAL: Duration = Duration::from_secs(3600);

/// How long ended ranks are collected before they are examined.
const COLLECT_SPAN: Duration = Duration::from_millis(100);

/// The most directories that are kept for other ranks: twice as many as there are between the start of a rank
/// and the examination of its directory, where a thousand ranks end in a second.
const MAX_SPARE: usize = 512;

/// The most ranks that printed nothing whose directories wait to be removed.
const MAX_EMPTY: usize = 20_000;

/// What such a directory takes on the disk, with those of its job.
const SIZE_OF_EMPTY: u64 = 28 << 10;

/// Ended ranks that are examined at once.
const BATCH: usize = 10_000;

/// The most that all output takes by default, if the file system is large enough.
const DEFAULT_BYTES: Bytes = Bytes(10 << 30);
/// The most ended ranks whose output is kept by default, if it can hold enough files.
const DEFAULT_RANKS: usize = 100_000;

/// Files and directories that a rank with output takes, with those of its job.
const FILES_OF_A_RANK: u64 = 8;

/// Messages to the actor that cleans up.
pub(crate) enum CleanerMessage {
    /// Examine everything.
    Clean,
    /// The head knows how these ranks ended.
    Ended(Vec<RankId>),
    /// Remove the directories that have waited for long enough.
    RemoveEmpty,
}

/// The actor that cleans up.
pub(crate) struct Cleaner {
    /// `None` while it is at work.
    retention: Option<Retention>,
    /// Ranks of whose end the head knows; `None` once they are being received.
    ended: Option<mpsc::UnboundedReceiver<RankId>>,
    /// Whether [`CleanerMessage::RemoveEmpty`] is to come.
    is_called: bool,
}

impl Cleaner {
    /// Blocks.
    pub(crate) fn new(
        state: StateDirectory,
        options: &RetentionOptions,
        of_one_rank: Bytes,
        ended: mpsc::UnboundedReceiver<RankId>,
    ) -> Cleaner {
        let limits = limits(options, of_one_rank, state.root());
        Cleaner {
            retention: Some(Retention::new(state, limits, options.empty.into())),
            ended: Some(ended),
            is_called: false,
        }
    }

    /// Hands what is left to a thread for blocking work, with this message.
    async fn work(&mut self, message: CleanerMessage) {
        let Some(mut retention) = self.retention.take() else { return };
        let work = move || {
            match message {
                CleanerMessage::Clean => retention.examine_all(),
                CleanerMessage::Ended(ranks) => retention.examine(&ranks),
                CleanerMessage::RemoveEmpty => {}
            }
            retention.remove_empty();
            retention.enforce_limits();
            retention
        };
        self.retention = Some(blocking(work).await);
    }

    fn call_again(&mut self, context: &mut Context<Self>) {
        let due_in = self.retention.as_ref().and_then(Retention::next_removal_in);
        if let Some(due_in) = due_in.filter(|_| !self.is_called) {
            self.is_called = true;
            context.send_after(due_in.max(COLLECT_SPAN), CleanerMessage::RemoveEmpty);
        }
    }
}

impl Actor for Cleaner {
    type Message = CleanerMessage;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        context.send_every(CLEAN_INTERVAL, || CleanerMessage::Clean);
        if let Some(ended) = self.ended.take() {
            context.spawn_task(collect(ended, context.address().clone()));
        }
        self.handle(CleanerMessage::Clean, context).await
    }

    async fn handle(
        &mut self,
        message: CleanerMessage,
        context: &mut Context<Self>,
    ) -> Result<(), ActorFailure> {
        self.is_called &= !matches!(message, CleanerMessage::RemoveEmpty);
        self.work(message).await;
        self.call_again(context);
        Ok(())
    }
}

async fn collect(mut ended: mpsc::UnboundedReceiver<RankId>, cleaner: Address<CleanerMessage>) {
    let mut ranks = Vec::new();
    while ended.recv_many(&mut ranks, BATCH).await > 0 {
        sleep(COLLECT_SPAN).await;
        while ranks.len() < BATCH
            && let Ok(rank) = ended.try_recv()
        {
            ranks.push(rank);
        }
        if cleaner.tell(CleanerMessage::Ended(take(&mut ranks))).await.is_err() {
            return;
        }
    }
}

/// The chosen limits, or else a part of what the file system has; the most that one rank may print has room.
fn limits(options: &RetentionOptions, of_one_rank: Bytes, folder: &Path) -> RetentionLimits {
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
struct Retention {
    state: StateDirectory,
    limits: RetentionLimits,
    output: RetainedOutput,
    /// How long the directory of a rank that printed nothing stays.
    empty_delay: Duration,
    /// Ranks that printed nothing, and since when they wait to be removed.
    empty: VecDeque<(Instant, RankId)>,
    /// The same of ranks whose executors have taken no other rank yet: looked at again with the next ranks.
    held: VecDeque<(Instant, RankId)>,
    /// How many directories may be kept for other ranks.
    most_spare: usize,
}

impl Retention {
    fn new(state: StateDirectory, limits: RetentionLimits, empty_delay: Duration) -> Retention {
        let (output, empty, held) = (RetainedOutput::default(), VecDeque::new(), VecDeque::new());
        Retention { state, limits, output, empty_delay, empty, held, most_spare: MAX_SPARE }
    }

    /// Examines all that is on the disk, and removes at once what is empty.
    fn examine_all(&mut self) {
        self.output = RetainedOutput::default();
        self.empty.clear();
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

    /// Counts the output of these ranks. The directories of those without are kept for other ranks, or wait
    /// to be removed.
    fn examine(&mut self, ranks: &[RankId]) {
        let has_output = |rank: &RankId| self.directory_of(*rank).log().exists();
        let (printed, silent): (Vec<RankId>, Vec<RankId>) = ranks.iter().partition(|rank| has_output(rank));
        self.settle(printed);
        let now = Instant::now();
        let silent = silent.into_iter().map(|rank| (now, rank));
        let waiting: Vec<(Instant, RankId)> = take(&mut self.held).into_iter().chain(silent).collect();
        let left: BTreeSet<RankId> =
            self.set_aside(waiting.iter().map(|(_, rank)| *rank)).into_iter().collect();
        for (since, rank) in waiting.into_iter().filter(|(_, rank)| left.contains(rank)) {
            let is_held = self.directory_of(rank).remains().is_ok_and(|it| it == Remains::Executor);
            let queue = if is_held { &mut self.held } else { &mut self.empty };
            queue.push_back((since, rank));
        }
    }

    /// Keeps directories for other ranks, after it is written down what became of them. Returns the ranks
    /// of the others.
    fn set_aside(&self, silent: impl Iterator<Item = RankId>) -> Vec<RankId> {
        let most = self.most_spare.min(self.most_empty());
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

    /// How many directories of ranks that printed nothing there may be.
    fn most_empty(&self) -> usize {
        MAX_EMPTY.min(self.limits.ranks).min((self.limits.bytes.0 / SIZE_OF_EMPTY) as usize)
    }

    /// Removes the directories that have waited for long enough, or are too many.
    fn remove_empty(&mut self) {
        let too_many = self.empty.len().saturating_sub(self.most_empty());
        let is_due = |(since, _): &&(Instant, RankId)| since.elapsed() >= self.empty_delay;
        let due = self.empty.iter().take_while(is_due).count().max(too_many);
        let of_held = self.held.iter().take_while(is_due).count();
        let due = self.held.drain(..of_held).chain(self.empty.drain(..due));
        let ranks = due.map(|(_, rank)| rank).collect();
        self.settle(ranks);
    }

    /// When the first directory that waits is to be removed.
    fn next_removal_in(&self) -> Option<Duration> {
        let fronts = self.empty.front().into_iter().chain(self.held.front());
        fronts.map(|(since, _)| self.empty_delay.saturating_sub(since.elapsed())).min()
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
                Ok(Remains::Executor) => self.empty.push_back((Instant::now(), rank)),
                Ok(Remains::Output) => self.keep(rank, &directory),
                Err(error) => report(directory.path(), Err(error)),
            }
        }
        self.remove(&empty, RemovalReason::Empty);
    }

    fn keep(&mut self, rank: RankId, directory: &RankDirectory) {
        let ended_at = fs::symlink_metadata(directory.acknowledged_file()).and_then(|file| file.modified());
        match directory.reduce().and_then(|size| Ok((ended_at?, size))) {
            Ok((ended_at, size)) => self.output.add(ended_at, rank, size),
            Err(error) => report(directory.path(), Err(error)),
        }
    }

    fn enforce_limits(&mut self) {
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
            self.retention.remove_empty();
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
        (kit.retention.empty_delay, kit.retention.most_spare) = (HOUR, 0);
        kit.retention.limits.ranks = 2;
        let ranks = [1, 2, 3].map(|job| kit.rank(job, "acknowledged.json"));
        kit.ended(&[1, 2, 3]);
        assert_eq!(ranks.each_ref().map(|rank| rank.path().exists()), [false, true, true]);
        kit.retention.empty_delay = Duration::ZERO;
        kit.ended(&[]);
        assert!(ranks.iter().all(|rank| !rank.path().exists()));
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
