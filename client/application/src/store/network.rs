//! Connections between the stores of nodes.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use cohabit_application_core::NodeNumber;
use cohabit_net::ApplicationTls;
use cohabit_types::{ApplicationAccess, Rendezvous};
use futures::FutureExt;

use super::transfer::{ConnectionOpening, NodeConnector, OpenedConnection, OtherStore};
use crate::transport::{LinkFailure, NetworkAdmission, StoreHello, Stranger, dial_objects};

/// Where nodes are reached, for a store on another thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct NodeAddresses(Arc<Mutex<BTreeMap<NodeNumber, Rendezvous>>>);

impl NodeAddresses {
    /// A node is reached there from now on.
    pub(crate) fn know(&self, node: NodeNumber, at: Rendezvous) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(node, at);
    }

    /// Where a node is reached, if that is known.
    pub(crate) fn of(&self, node: NodeNumber) -> Option<Rendezvous> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&node).cloned()
    }
}

/// What dials the stores of other nodes; `address_of` says where they are.
pub(crate) fn connect_stores(
    access: &ApplicationAccess,
    tls: &ApplicationTls,
    address_of: impl Fn(NodeNumber) -> Option<Rendezvous> + Send + Sync + 'static,
) -> NodeConnector {
    // Any store of the application does: the coordinator has said which one is dialed.
    let hello = StoreHello {
        secret: access.credentials.secret,
        from: access.member,
        to: access.coordinator_process(),
    };
    let tls = tls.clone();
    Arc::new(move |node| {
        let (at, tls, hello) = (address_of(node), tls.clone(), hello.clone());
        async move {
            let unknown = || io::Error::new(io::ErrorKind::NotFound, "its address is not known");
            let stream = dial_objects(&at.ok_or_else(unknown)?, &tls, &hello).await;
            Ok(Box::new(stream.map_err(broken)?) as Box<dyn OtherStore>)
        }
        .boxed()
    })
}

/// Opens a connection that the store of another node has dialed.
pub(crate) fn admit_store(admission: &Arc<NetworkAdmission>, stranger: Stranger) -> ConnectionOpening {
    let admission = Arc::clone(admission);
    async move {
        let admitted = admission.admit::<StoreHello>(stranger).await;
        let refused = || io::Error::new(io::ErrorKind::PermissionDenied, "it was refused");
        let (stream, received, _hello) = admitted.ok_or_else(refused)?;
        Ok(OpenedConnection { stream: Box::new(stream), received })
    }
    .boxed()
}

fn broken(failure: LinkFailure) -> io::Error {
    match failure {
        LinkFailure::Broken(error) => error,
        LinkFailure::Closed | LinkFailure::Protocol(_) => io::Error::other(failure.to_string()),
    }
}
