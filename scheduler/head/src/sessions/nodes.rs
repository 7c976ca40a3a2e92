//! Which worker a node belongs to, for admins. The credentials wait for the disk, so they are asked on a
//! blocking thread.

use cohabit_actor::blocking;
use cohabit_types::{NodeId, NodeRecord, Refusal, RefusalCode, RefusedWorker};

use super::client::ClientSession;
use super::permission::check_admin;
use crate::driver::Query;

/// What is asked of an admin here.
const MANAGE: &str = "manage which worker a node belongs to";

impl ClientSession {
    /// Forgets the credential of a node, so that its next worker is taken for it. Returns the node's name, or
    /// its id where the head no longer knows the node.
    pub(super) async fn unbind(&self, name: String) -> Result<String, Refusal> {
        check_admin(&self.by, MANAGE)?;
        let nodes = self.ask(Query::Nodes).await?;
        let is_meant = |node: &NodeRecord| node.name == name || node.id.to_string() == name;
        let meant = nodes.into_iter().find(is_meant).map(|node| (node.id, node.name));
        let forgotten = || Some((NodeId(uuid::Uuid::parse_str(&name).ok()?), name.clone()));
        let Some((id, name)) = meant.or_else(forgotten) else {
            let message = format!("there is no node '{name}': `cohabit nodes` shows all");
            return Err(Refusal::new(RefusalCode::NotFound, message));
        };
        let credentials = self.session_context.credentials.clone();
        let forgotten = blocking(move || credentials.forget(id)).await;
        forgotten.map_err(|error| Refusal::new(RefusalCode::Internal, error.to_string()))?;
        tracing::info!(admin = self.by.user, node = name, "worker unbind");
        Ok(name)
    }

    /// Who was refused as a node since this head started.
    pub(super) fn refused_workers(&self) -> Result<Vec<RefusedWorker>, Refusal> {
        check_admin(&self.by, MANAGE)?;
        Ok(self.session_context.credentials.refused_workers())
    }
}
