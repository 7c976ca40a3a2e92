//! The worker's state folder: who this node is, and where everything lies that outlives the daemon.
//!
//! ```text
//! lock                             held by the one daemon that may use the folder
//! node.json                        the node's id, and how often it has dialled
//! clock.json                       when the machine was started, for all who share this folder
//! ranks/<job>/<attempt>/<rank>/    see `rank_folder`
//! checkpoints/<job>/               shared by all attempts of a job on this node
//! mps/                             homes of the MPS daemons of GPUs
//! private-users.json               numbers of users who have no account here
//! ```

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cohabit_gpu::process::boot;
use cohabit_types::{Incarnation, JobId, NodeId, Time, WorkerKey};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use uuid::Uuid;

use super::WorkerError;
use crate::clock;
use crate::files::{
    FileContext, FileError, allow_traversal, create_directory, read_json, write_json,
    write_json_for_this_boot,
};

/// The folder of a running daemon; clones are the same folder.
#[derive(Debug, Clone)]
pub(crate) struct StateDirectory {
    root: PathBuf,
    node: Arc<Mutex<NodeIdentity>>,
    /// Rings when a rank has ended.
    ends: watch::Sender<()>,
}

/// The right to use the folder, until it is dropped. Executors do not inherit it.
#[derive(Debug)]
pub(crate) struct StateLock {
    _file: File,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct NodeIdentity {
    id: NodeId,
    incarnation: Incarnation,
}

/// When the machine was started.
#[derive(Debug, Serialize, Deserialize)]
struct BootId {
    /// Another one after each start.
    boot: Option<String>,
    at: Time,
}

impl StateDirectory {
    /// Takes the folder; makes it, if it is not there.
    pub(crate) fn open(root: &Path) -> Result<(StateDirectory, StateLock), WorkerError> {
        create_directory(root)?;
        let root = root.canonicalize().at("find", root)?;
        let lock = lock(&root)?;
        agree_on_clock(&root.join("clock.json"))?;
        create_directory(&root.join("ranks"))?;
        create_directory(&root.join("checkpoints"))?;
        let node = read_json(&root.join("node.json"))?;
        let node =
            node.unwrap_or_else(|| NodeIdentity { id: NodeId(Uuid::now_v7()), incarnation: Incarnation(0) });
        let (node, ends) = (Arc::new(Mutex::new(node)), watch::Sender::default());
        Ok((StateDirectory { root, node, ends }, lock))
    }

    /// Lets the users of ranks pass through, each to what is theirs.
    pub(crate) fn allow_traversal_of_state(&self) -> Result<(), FileError> {
        [self.root.clone(), self.ranks(), self.checkpoints()]
            .iter()
            .try_for_each(|folder| allow_traversal(folder))
    }

    /// The key of the next link, which no link of this node ever had.
    pub(crate) fn next_key(&self) -> Result<WorkerKey, FileError> {
        let mut node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
        let next = NodeIdentity { incarnation: Incarnation(node.incarnation.0 + 1), ..*node };
        write_json(&self.root.join("node.json"), &next)?;
        *node = next;
        Ok(WorkerKey { node: next.id, incarnation: next.incarnation })
    }

    /// Which node this is.
    pub(crate) fn node(&self) -> NodeId {
        self.node.lock().unwrap_or_else(PoisonError::into_inner).id
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn ranks(&self) -> PathBuf {
        self.root.join("ranks")
    }

    pub(crate) fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoints")
    }

    /// The outcome of a rank is in its folder now.
    pub(crate) fn rank_has_ended(&self) {
        self.ends.send_replace(());
    }

    /// Changes whenever a rank has ended.
    pub(crate) fn ends(&self) -> watch::Receiver<()> {
        self.ends.subscribe()
    }

    /// Where a job's checkpoints go, if it names no place of its own.
    pub(crate) fn checkpoints_of(&self, job: JobId) -> PathBuf {
        self.checkpoints().join(job.to_string())
    }
}

/// Goes by the clock of the first daemon since the machine was started, which may be this one.
fn agree_on_clock(path: &Path) -> Result<(), FileError> {
    let boot = boot();
    // What an earlier run of the machine has left, whole or not, means nothing.
    let known = read_json::<BootId>(path).ok().flatten().filter(|known| known.boot == boot);
    match known {
        Some(known) => clock::agree_on(known.at),
        None => write_json_for_this_boot(path, &BootId { boot, at: clock::booted_at() })?,
    }
    Ok(())
}

/// Takes the right to use the folder, which has to be there.
pub(crate) fn lock(root: &Path) -> Result<StateLock, WorkerError> {
    let path = root.join("lock");
    // The one that is there, if there is one: by it the daemons exclude each other.
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.at("create", &path)?;
    match file.try_lock() {
        Ok(()) => Ok(StateLock { _file: file }),
        Err(TryLockError::WouldBlock) => Err(WorkerError::StateInUse(root.to_owned())),
        Err(TryLockError::Error(error)) => Err(error).at("lock", &path).map_err(WorkerError::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_stays_itself_and_never_repeats_a_key() {
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
    fn two_daemons_never_share_a_folder() {
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
        std::fs::write(&path, "{").unwrap();
        let refusal = StateDirectory::open(folder.path()).unwrap_err().to_string();
        assert!(refusal.contains("node.json"), "{refusal}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{");
    }
}
