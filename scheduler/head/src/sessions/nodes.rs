//! Which worker a node belongs to, for admins. The credentials wait for the disk, so they are asked on a
//! blocking thread.

use cohabit_actor::blocking;
use cohabit_types::{NodeRecord, Principal, Refusal, RefusalCode, RefusedWorker, Role};

use super::client::ClientSession;
use crate::driver::Query;

impl ClientSession {
    /// Forgets the credential of a node, so that its next worker is taken for it. Returns the node's name.
    pub(super) async fn unbind(&self, name: String) -> Result<String, Refusal> {
        check_admin(&self.by)?;
        let nodes = self.ask(Query::Nodes).await?;
        let is_meant = |node: &NodeRecord| node.name == name || node.id.to_string() == name;
        let Some(node) = nodes.into_iter().find(is_meant) else {
            let message = format!("there is no node '{name}': `cohabit nodes` shows all");
            return Err(Refusal::new(RefusalCode::NotFound, message));
        };
        let (credentials, id) = (self.session_context.credentials.clone(), node.id);
        let forgotten = blocking(move || credentials.forget(id)).await;
        forgotten.map_err(|error| Refusal::new(RefusalCode::Internal, error.to_string()))?;
        tracing::info!(admin = self.by.user, node = node.name, "worker unbind");
        Ok(node.name)
    }

    /// Who was refused as a node since this head started.
    pub(super) fn refused_workers(&self) -> Result<Vec<RefusedWorker>, Refusal> {
        check_admin(&self.by)?;
        Ok(self.session_context.credentials.refused_workers())
    }
}

fn check_admin(by: &Principal) -> Result<(), Refusal> {
    if by.role == Role::Admin {
        return Ok(());
    }
    let message = format!(
        "only an admin token can manage which worker a node belongs to, and the token of {} has the role {}",
        by.user, by.role
    );
    Err(Refusal::new(RefusalCode::NotAllowed, message))
}
