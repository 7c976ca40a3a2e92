//! Which worker may act as which node.
//!
//! A worker makes a secret for its node at its first start and sends it with every hello. The head keeps the
//! SHA-256 of the first one, and from then on refuses any other worker for this node, whatever its token: the
//! id of a node is no secret. A token that was made for a node serves one worker only, under that name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cohabit_types::{FormatVersion, NodeId, RefusedWorker, Time};
use cohabit_wire::HelloRefusalCode;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::peer::WorkerPeer;
use crate::{StateError, digest, private_file};

/// The format of the file that is written, and the latest that is read.
const SCHEMA: FormatVersion = FormatVersion::new(1);
const REMEDY: &str = "start the newer version again, or remove the file: then the first worker to come as a node is \
                      taken for it";

/// The most nodes that are remembered: a token that lets any machine in must not fill the disk.
const MOST_NODES: usize = 10_000;

/// The credentials of all nodes that ever joined; clones share them. Methods block on the disk.
#[derive(Debug, Clone)]
pub struct NodeCredentials(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    nodes: Mutex<BTreeMap<NodeId, Credential>>,
    /// Since this head started.
    refused: Mutex<BTreeMap<NodeId, RefusedWorker>>,
}

/// What a node is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Credential {
    /// Of the worker's own secret.
    #[serde(rename = "sha256", with = "digest")]
    digest: [u8; 32],
    /// Of the token with which it first joined.
    #[serde(rename = "token_sha256", with = "digest")]
    token: [u8; 32],
}

#[derive(Serialize, Deserialize)]
struct Stored {
    schema: FormatVersion,
    nodes: BTreeMap<NodeId, Credential>,
}

/// Why a worker may not act as a node.
#[derive(Debug, thiserror::Error)]
pub enum NodeClaimError {
    /// The token is for another node.
    #[error(
        "the token '{token}' is for the node '{node}', and this worker is named '{name}': start it with --name {node}, \
         or ask an admin for a token of its own"
    )]
    OtherName {
        /// The token's name.
        token: String,
        /// The node that it is for.
        node: String,
        /// The worker's name.
        name: String,
    },
    /// The token serves another worker already.
    #[error(
        "the token '{token}' already serves another worker (node {node}): if that one's state directory is lost, revoke \
         the token and create a new one"
    )]
    TokenInUse {
        /// The token's name.
        token: String,
        /// Whom it serves.
        node: NodeId,
    },
    /// The node has another credential.
    #[error(
        "node {0} belongs to a worker with another credential: if this worker is that node and its file credential.json \
         is lost, an admin allows it to join again with `cohabit worker unbind {0}`"
    )]
    OtherCredential(NodeId),
    /// The node has a credential, and this worker sends none.
    #[error(
        "node {0} has a credential, and this version of the worker sends none: upgrade it, or let an admin run \
         `cohabit worker unbind {0}` first"
    )]
    NoCredential(NodeId),
    /// No more nodes are remembered.
    #[error(
        "the head knows {MOST_NODES} nodes, which is the most: an admin makes room for a new one with `cohabit worker \
         unbind ID` for each node that is gone for good"
    )]
    TooManyNodes,
    /// The credential cannot be kept.
    #[error("the head cannot keep the credential of this node: {0}")]
    File(#[from] StateError),
}

impl NodeClaimError {
    /// For the answer to the worker.
    #[must_use]
    pub const fn code(&self) -> HelloRefusalCode {
        match self {
            NodeClaimError::OtherName { .. }
            | NodeClaimError::TokenInUse { .. }
            | NodeClaimError::OtherCredential(_)
            | NodeClaimError::NoCredential(_) => HelloRefusalCode::WrongRole,
            NodeClaimError::TooManyNodes | NodeClaimError::File(_) => HelloRefusalCode::Busy,
        }
    }
}

impl NodeCredentials {
    /// Opens the credentials of the nodes of this cluster, or begins with none.
    ///
    /// # Errors
    /// When the file cannot be read, is exposed, is corrupt, or was written by a later version. It stays
    /// untouched.
    pub fn open(path: &Path) -> Result<NodeCredentials, StateError> {
        let nodes =
            private_file::read(path)?.map_or(Ok(BTreeMap::new()), |bytes| read_nodes(path, &bytes))?;
        Ok(NodeCredentials(Arc::new(Shared {
            path: path.to_owned(),
            nodes: Mutex::new(nodes),
            refused: Mutex::default(),
        })))
    }

    /// Lets a worker act as the node that it claims to be. The first worker of a node is known from then on.
    ///
    /// # Errors
    /// When it is another worker's node, or its token is for another; who claimed a known node is noted.
    pub fn admit(&self, worker: &WorkerPeer, now: Time) -> Result<(), NodeClaimError> {
        let node = worker.key().node;
        let admitted = self.try_admit(worker);
        let is_claim =
            matches!(admitted, Err(NodeClaimError::OtherCredential(_) | NodeClaimError::NoCredential(_)));
        // Of an unknown node, whose id anybody may make up, nothing is noted.
        if is_claim && locked(&self.0.nodes).contains_key(&node) {
            let address = worker.address().ip().to_string();
            let mut refused = locked(&self.0.refused);
            let times = refused.get(&node).map_or(0, |earlier| earlier.times) + 1;
            refused.insert(node, RefusedWorker { node, address, at: now, times });
        }
        admitted
    }

    fn try_admit(&self, worker: &WorkerPeer) -> Result<(), NodeClaimError> {
        let (node, grant) = (worker.key().node, worker.grant());
        let mut nodes = locked(&self.0.nodes);
        if let Some(bound_to) = &grant.node {
            let token = grant.by.user.clone();
            if worker.inventory().name != *bound_to {
                let name = worker.inventory().name.clone();
                return Err(NodeClaimError::OtherName { token, node: bound_to.clone(), name });
            }
            let other = nodes.iter().find(|(id, known)| **id != node && known.token == grant.digest());
            if let Some((other, _)) = other {
                return Err(NodeClaimError::TokenInUse { token, node: *other });
            }
        }
        match (nodes.get(&node), worker.credential()) {
            (Some(known), Some(credential)) => {
                let is_same: bool = known.digest.ct_eq(&credential.digest()).into();
                is_same.then_some(()).ok_or(NodeClaimError::OtherCredential(node))
            }
            (Some(_), None) => Err(NodeClaimError::NoCredential(node)),
            (None, None) if grant.node.is_some() => Err(NodeClaimError::NoCredential(node)),
            (None, None) => Ok(()),
            (None, Some(_)) if nodes.len() >= MOST_NODES => Err(NodeClaimError::TooManyNodes),
            (None, Some(credential)) => {
                let known = Credential { digest: credential.digest(), token: grant.digest() };
                let mut more = nodes.clone();
                more.insert(node, known);
                self.write(&more)?;
                *nodes = more;
                Ok(())
            }
        }
    }

    /// Forgets the credential of a node: the next worker to come as this node is taken for it.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing has changed.
    pub fn forget(&self, node: NodeId) -> Result<(), StateError> {
        let mut nodes = locked(&self.0.nodes);
        let mut others = nodes.clone();
        if others.remove(&node).is_none() {
            return Ok(());
        }
        self.write(&others)?;
        *nodes = others;
        locked(&self.0.refused).remove(&node);
        Ok(())
    }

    /// Who was refused for which node since this head started.
    #[must_use]
    pub fn refused_workers(&self) -> Vec<RefusedWorker> {
        locked(&self.0.refused).values().cloned().collect()
    }

    fn write(&self, nodes: &BTreeMap<NodeId, Credential>) -> Result<(), StateError> {
        let stored = Stored { schema: SCHEMA, nodes: nodes.clone() };
        let text = serde_json::to_vec_pretty(&stored).expect("ids and digits have a JSON form");
        private_file::replace(&self.0.path, &text)
    }
}

fn read_nodes(path: &Path, bytes: &[u8]) -> Result<BTreeMap<NodeId, Credential>, StateError> {
    #[derive(Deserialize)]
    struct Schema {
        schema: FormatVersion,
    }
    let invalid = |error| {
        let advice =
            "restore it from a backup, or remove it: then the first worker to come as a node is taken for it";
        StateError::invalid(path, format!("{error}; {advice}"))
    };
    let Schema { schema } = serde_json::from_slice(bytes).map_err(invalid)?;
    schema.check(SCHEMA, REMEDY).map_err(|newer| StateError::invalid(path, newer))?;
    serde_json::from_slice(bytes).map(|stored: Stored| stored.nodes).map_err(invalid)
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
