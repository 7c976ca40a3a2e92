//! What this process holds: handles of actors, and references.

use std::fmt;
use std::sync::Arc;

use cohabit_application_core::HeldId;

use super::member_process::MemberProcess;

/// A handle or a reference as the core counts it, shared by all its clones: given back when it is dropped.
pub(crate) struct Hold {
    process: Arc<MemberProcess>,
    held: HeldId,
}

impl Hold {
    /// One that the process holds already.
    pub(crate) fn held_already(process: &Arc<MemberProcess>, held: HeldId) -> Arc<Hold> {
        Arc::new(Hold { process: Arc::clone(process), held })
    }

    /// One more, as when a handle is decoded; none if the process holds none.
    pub(crate) fn one_more(process: &Arc<MemberProcess>, held: HeldId) -> Option<Arc<Hold>> {
        process.with(|state| state.hold(held)).then(|| Hold::held_already(process, held))
    }

    pub(crate) const fn held(&self) -> HeldId {
        self.held
    }

    pub(crate) const fn process(&self) -> &Arc<MemberProcess> {
        &self.process
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.process.with(|state| state.give_back(self.held));
    }
}

impl fmt::Debug for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.held {
            HeldId::Actor(actor) => write!(f, "actor {actor}"),
            HeldId::Object(object) => write!(f, "object {object}"),
        }
    }
}

/// What came with an encoded value: given back when it is dropped, for what was decoded counts for itself.
pub(crate) struct CarriedHandles {
    process: Arc<MemberProcess>,
    carries: Vec<HeldId>,
}

impl CarriedHandles {
    pub(crate) fn new(process: &Arc<MemberProcess>, carries: Vec<HeldId>) -> CarriedHandles {
        CarriedHandles { process: Arc::clone(process), carries }
    }
}

impl Drop for CarriedHandles {
    fn drop(&mut self) {
        self.process.release(std::mem::take(&mut self.carries));
    }
}

impl fmt::Debug for CarriedHandles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.carries.fmt(f)
    }
}
