//! The worker's state directory: the identity of this node, and everything that outlives the daemon.
//!
//! ```text
//! lock                             held by the one daemon that uses the directory
//! node.json                        the node's id, and the last number that is reserved for its links
//! credential.json                  the secret by which the head knows this node's worker
//! clock.json                       when the host booted, for all daemons and executors of this directory
//! ranks/<job>/<attempt>/<rank>/    see `cohabit_host::rank_directory`
//! removed-ranks                    whose directories were removed, and why
//! spare/                           directories for other ranks, see `spare_directories`
//! checkpoints/<job>/               shared by all attempts of a job on this node
//! code/<job>/<attempt>/            a copy of the code of an attempt; then what it wrote there
//! stored-code/                     files of snapshots of code, by hash
//! mps/                             directories of the MPS daemons of GPUs
//! private-users.json               user ids for users without an account on this host
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cohabit_gpu::process::boot;
use cohabit_host::clock;
use cohabit_host::files::{FileContext, FileError, WriteMode, allow_traversal, create_directory};
use cohabit_host::format::{read_versioned, write_versioned};
use cohabit_host::rank_directory::RankDirectory;
use cohabit_host::spare_directory::FileOwner;
use cohabit_host::state_lock::{StateLock, lock};
use cohabit_net::{Secret, new_credential};
use cohabit_types::{AttemptId, Incarnation, JobId, NodeId, RankId, WorkerKey};
use tokio::sync::watch;
use uuid::Uuid;

use crate::code::CodeDirectory;
use crate::error::WorkerError;
use crate::log_changes::LogChanges;
use crate::removed_ranks::RemovedRanks;
use crate::spare_directories::SpareDirectories;
use crate::state_files::{AgreedClock, NodeCredential, NodeIdentity};

/// How many numbers of links are reserved by one write. A daemon that starts passes over those that the last
/// one did not use.
const RESERVED_LINKS: u64 = 64;

/// The state directory of a running daemon; clones are the same directory.
#[derive(Debug, Clone)]
pub(crate) struct StateDirectory {
    root: PathBuf,
    links: Arc<Mutex<LinkNumbers>>,
    credential: Secret,
    /// Notified when a rank has ended.
    ends: watch::Sender<()>,
    /// Logs that are being followed.
    log_changes: LogChanges,
    /// Held while directories of jobs and attempts are created or removed.
    parents: Arc<Mutex<SpareDirectories>>,
}

/// The numbers of this node's links.
#[derive(Debug)]
struct LinkNumbers {
    /// As stored: the node, and the last number that is reserved.
    node: NodeIdentity,
    /// That of the last link.
    last: Incarnation,
}

impl StateDirectory {
    /// Locks the directory, and creates it if it does not exist. Blocks.
    pub(crate) fn open(root: &Path) -> Result<(StateDirectory, StateLock), WorkerError> {
        create_directory(root)?;
        let root = root.canonicalize().at("find", root)?;
        let lock = lock(&root)?;
        agree_on_clock(&root.join("clock.json"))?;
        create_directory(&root.join("ranks"))?;
        create_directory(&root.join("checkpoints"))?;
        create_directory(&root.join("code"))?;
        let node = read_versioned(&root.join("node.json"))?;
        let node =
            node.unwrap_or_else(|| NodeIdentity { id: NodeId(Uuid::now_v7()), incarnation: Incarnation(0) });
        let credential = credential(&root.join("credential.json"))?;
        let links = LinkNumbers { last: node.incarnation, node };
        let (links, ends) = (Arc::new(Mutex::new(links)), watch::Sender::default());
        let spare = root.join("spare");
        let parents = SpareDirectories::open(spare.clone(), root.join("ranks"), root.join("checkpoints"))
            .at("clear", &spare)?;
        let (log_changes, parents) = (LogChanges::default(), Arc::new(Mutex::new(parents)));
        Ok((StateDirectory { root, links, credential, ends, log_changes, parents }, lock))
    }

    /// Lets the users of ranks pass through to their own files.
    pub(crate) fn allow_traversal_of_state(&self) -> Result<(), FileError> {
        [self.root.clone(), self.ranks(), self.checkpoints(), self.code()]
            .iter()
            .try_for_each(|folder| allow_traversal(folder))
    }

    /// The key of the next link, which no earlier link of this node had. Blocks on the disk.
    ///
    /// # Errors
    /// When no number is reserved any more, and none can be: a link that breaks while the disk is full must
    /// not stay broken for that.
    pub(crate) fn next_key(&self) -> Result<WorkerKey, FileError> {
        let mut links = self.links();
        if links.node.incarnation.0 - links.last.0 <= RESERVED_LINKS / 2 {
            let reserved = Incarnation(links.node.incarnation.0.saturating_add(RESERVED_LINKS));
            let node = NodeIdentity { incarnation: reserved, ..links.node };
            match write_versioned(&self.root.join("node.json"), &node, WriteMode::Durable) {
                Ok(()) => links.node = node,
                Err(error) if links.last == links.node.incarnation => return Err(error),
                Err(error) => tracing::warn!(%error, "no numbers of further links can be reserved"),
            }
        }
        links.last = Incarnation(links.last.0.saturating_add(1));
        Ok(WorkerKey { node: links.node.id, incarnation: links.last })
    }

    fn links(&self) -> MutexGuard<'_, LinkNumbers> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What only the worker of this node knows.
    pub(crate) const fn credential(&self) -> Secret {
        self.credential
    }

    /// The id of this node.
    pub(crate) fn node(&self) -> NodeId {
        self.links().node.id
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn ranks(&self) -> PathBuf {
        self.root.join("ranks")
    }

    /// Makes the directory of a rank, before that of its checkpoints: from a spare one, where there is one.
    /// Blocks.
    pub(crate) fn create_rank_directory(
        &self,
        rank: RankId,
        owner: Option<FileOwner>,
    ) -> Result<(), FileError> {
        let mut spare = self.parents();
        match owner {
            Some(owner) if spare.take(rank, owner) => Ok(()),
            Some(_) | None => RankDirectory::for_rank(&self.ranks(), rank).create(),
        }
    }

    /// Makes directories of ended ranks spare ones, until there are so many. Returns the ranks of the others.
    /// Blocks.
    pub(crate) fn set_aside(&self, ranks: &[RankId], most: usize) -> Vec<RankId> {
        let mut left = Vec::new();
        for rank in ranks {
            let mut spare = self.parents();
            let is_spare = spare.len() < most
                && spare.set_aside(*rank).unwrap_or_else(|error| {
                    tracing::warn!(%rank, %error, "its directory cannot be kept for another rank");
                    false
                });
            if !is_spare {
                left.push(*rank);
            }
        }
        left
    }

    /// How many spare directories there are. Blocks.
    pub(crate) fn spare_directories(&self) -> usize {
        self.parents().len()
    }

    /// Removes the directories of the attempt, of its job and of the job's checkpoints, as far as they are
    /// empty. Blocks.
    pub(crate) fn remove_empty(&self, attempt: AttemptId) {
        let job = self.ranks().join(attempt.job.to_string());
        let _held = self.parents();
        // Each fails if it is not empty, as intended.
        let _ = fs::remove_dir(job.join(attempt.attempt.to_string()));
        if fs::remove_dir(&job).is_ok() {
            let _ = fs::remove_dir(self.checkpoints_of(attempt.job));
        }
    }

    /// Creates the empty directory for a copy of code. Blocks.
    pub(crate) fn create_code_directory(&self, directory: &CodeDirectory) -> Result<(), FileError> {
        directory.clear()?;
        let _held = self.parents();
        create_directory(directory.path())
    }

    /// Removes the directories of the copy of an attempt's code and of its job, as far as they are empty.
    /// Blocks.
    pub(crate) fn remove_empty_code(&self, attempt: AttemptId) {
        let _held = self.parents();
        let attempt = self.code_of(attempt);
        // Each fails if it is not empty, as intended.
        let _ = fs::remove_dir(attempt.path());
        let _ = attempt.path().parent().map(fs::remove_dir);
    }

    fn parents(&self) -> MutexGuard<'_, SpareDirectories> {
        self.parents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn removed_ranks(&self) -> RemovedRanks {
        RemovedRanks::new(self.root.join("removed-ranks"))
    }

    pub(crate) fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoints")
    }

    /// The copies of code.
    pub(crate) fn code(&self) -> PathBuf {
        self.root.join("code")
    }

    /// The copy of the code of an attempt.
    pub(crate) fn code_of(&self, attempt: AttemptId) -> CodeDirectory {
        CodeDirectory::new(self.code().join(attempt.job.to_string()).join(attempt.attempt.to_string()))
    }

    /// The files of snapshots.
    pub(crate) fn stored_code(&self) -> PathBuf {
        self.root.join("stored-code")
    }

    /// To be called when the outcome of a rank is in its directory.
    pub(crate) fn rank_has_ended(&self) {
        self.ends.send_replace(());
    }

    /// Notices what ranks print.
    pub(crate) const fn log_changes(&self) -> &LogChanges {
        &self.log_changes
    }

    /// Changes whenever a rank has ended.
    pub(crate) fn ends(&self) -> watch::Receiver<()> {
        self.ends.subscribe()
    }

    /// The directory for a job's checkpoints, if the job does not name one.
    pub(crate) fn checkpoints_of(&self, job: JobId) -> PathBuf {
        self.checkpoints().join(job.to_string())
    }
}

/// The credential of this node, made at the first start. It is on disk before a head hears of it.
fn credential(path: &Path) -> Result<Secret, FileError> {
    if let Some(NodeCredential(secret)) = read_versioned(path)? {
        return Ok(secret);
    }
    let secret = new_credential().at("make the credential in", path)?;
    write_versioned(path, &NodeCredential(secret), WriteMode::Durable)?;
    Ok(secret)
}

/// Uses the clock of the first daemon since boot, which may be this one.
fn agree_on_clock(path: &Path) -> Result<(), FileError> {
    let boot = boot();
    // A file of an earlier boot is ignored, complete or not. Executors of a newer version may use its clock.
    let known = match read_versioned::<AgreedClock>(path) {
        Err(error) if error.is_of_newer_version() => return Err(error),
        read => read.ok().flatten(),
    };
    match known.filter(|known| known.boot == boot) {
        Some(known) => clock::agree_on(known.at),
        None => {
            let clock = AgreedClock { boot, at: clock::booted_at() };
            write_versioned(path, &clock, WriteMode::ForThisBoot)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_its_id_and_never_repeats_a_key() {
        let folder = tempfile::tempdir().unwrap();
        let keys = || {
            let (state, _lock) = StateDirectory::open(folder.path()).unwrap();
            [state.next_key().unwrap(), state.next_key().unwrap()]
        };
        let keys = [keys(), keys()].concat();
        assert!(keys.iter().all(|key| key.node == keys[0].node));
        assert!(keys.windows(2).all(|pair| pair[0].incarnation < pair[1].incarnation));
    }

    #[test]
    fn a_link_needs_no_write_as_long_as_numbers_are_reserved() {
        let folder = tempfile::tempdir().unwrap();
        let (state, _lock) = StateDirectory::open(folder.path()).unwrap();
        let first = state.next_key().unwrap();
        // A directory in its place cannot be replaced by a file.
        fs::remove_file(folder.path().join("node.json")).unwrap();
        fs::create_dir_all(folder.path().join("node.json/full")).unwrap();
        let keys: Vec<WorkerKey> = std::iter::from_fn(|| state.next_key().ok()).collect();
        assert_eq!(keys.len() as u64, RESERVED_LINKS - 1);
        let all = [vec![first], keys].concat();
        assert!(all.windows(2).all(|pair| pair[0].incarnation < pair[1].incarnation));
        fs::remove_dir_all(folder.path().join("node.json")).unwrap();
        assert!(state.next_key().unwrap().incarnation > all[all.len() - 1].incarnation);
    }

    #[test]
    fn a_node_keeps_its_credential_and_nobody_else_reads_it() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let credential = |folder: &Path| StateDirectory::open(folder).unwrap().0.credential().expose_hex();
        assert_eq!(credential(folder.path()), credential(folder.path()));
        assert_ne!(credential(folder.path()), credential(other.path()));
        let file = fs::metadata(folder.path().join("credential.json")).unwrap();
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&file) & 0o777, 0o600);
    }

    #[test]
    fn two_daemons_never_use_the_same_directory() {
        let folder = tempfile::tempdir().unwrap();
        let first = StateDirectory::open(folder.path()).unwrap();
        let refusal = StateDirectory::open(folder.path()).unwrap_err();
        assert!(matches!(refusal, WorkerError::StateInUse(_)));
        assert!(refusal.to_string().contains("--state"), "{refusal}");
        drop(first);
        StateDirectory::open(folder.path()).unwrap();
    }

    #[test]
    fn a_damaged_node_file_is_named_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.json");
        fs::write(&path, "{").unwrap();
        let refusal = StateDirectory::open(folder.path()).unwrap_err().to_string();
        assert!(refusal.contains("node.json"), "{refusal}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "{");
    }

    #[test]
    fn files_of_a_newer_version_are_named_and_left_alone() {
        for name in ["node.json", "credential.json", "clock.json"] {
            let folder = tempfile::tempdir().unwrap();
            let (path, newer) = (folder.path().join(name), r#"{"version":2,"nodes":[]}"#);
            fs::write(&path, newer).unwrap();
            let refusal = StateDirectory::open(folder.path()).unwrap_err().to_string();
            for part in [name, "version 2", "reads 1 to 1"] {
                assert!(refusal.contains(part), "{refusal}");
            }
            assert_eq!(fs::read_to_string(&path).unwrap(), newer);
        }
    }
}
