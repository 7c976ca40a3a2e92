//! The right to call an actor, shared by all clones of a handle.

use std::fmt;
use std::sync::Arc;

use cohabit_application_core::ActorId;

use super::member_process::MemberProcess;

/// A handle as the core counts it: given back when it is dropped.
pub(crate) struct ActorHold {
    process: Arc<MemberProcess>,
    actor: ActorId,
}

impl ActorHold {
    /// One that the process holds already.
    pub(crate) fn held(process: &Arc<MemberProcess>, actor: ActorId) -> Arc<ActorHold> {
        Arc::new(ActorHold { process: Arc::clone(process), actor })
    }

    /// One more, as when a handle is decoded; none if the process holds none.
    pub(crate) fn one_more(process: &Arc<MemberProcess>, actor: ActorId) -> Option<Arc<ActorHold>> {
        process.with(|state| state.hold(actor)).then(|| ActorHold::held(process, actor))
    }

    pub(crate) const fn actor(&self) -> ActorId {
        self.actor
    }

    pub(crate) const fn process(&self) -> &Arc<MemberProcess> {
        &self.process
    }
}

impl Drop for ActorHold {
    fn drop(&mut self) {
        self.process.with(|state| state.release([self.actor]));
    }
}

impl fmt::Debug for ActorHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "actor {}", self.actor)
    }
}
