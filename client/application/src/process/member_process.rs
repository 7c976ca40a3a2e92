//! The process as the rest of this crate sees it.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use cohabit_application_core::HeldId;
use cohabit_net::ApplicationTls;
use cohabit_types::ApplicationAccess;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::hold::Hold;
use super::member_state::{MemberState, Outlets};
use crate::error::{Error, Result};
use crate::store::StoreLink;
use crate::transport::SocketDirectory;

/// The one process of an application that this is.
static CURRENT: OnceLock<Arc<MemberProcess>> = OnceLock::new();

/// A process that runs the user's code.
pub(crate) struct MemberProcess {
    pub(super) access: ApplicationAccess,
    pub(super) directory: Arc<SocketDirectory>,
    /// For connections with other nodes.
    pub(super) tls: ApplicationTls,
    state: Mutex<MemberState<Hold>>,
    /// Something was acknowledged.
    pub(super) settled: Notify,
    /// The host has something to do.
    work: Notify,
    /// A task has ended.
    pub(crate) task_ended: Notify,
    /// A call has to end before all others that are limited.
    pub(super) new_deadline: Notify,
    store: StoreLink,
}

impl MemberProcess {
    /// Makes this process a member.
    ///
    /// # Panics
    /// If it is one already.
    pub(crate) fn start(
        access: ApplicationAccess,
        directory: Arc<SocketDirectory>,
        outlets: Outlets,
        store: StoreLink,
    ) -> Arc<MemberProcess> {
        let state = Mutex::new(MemberState::new(access.application, access.member, outlets));
        let tls = ApplicationTls::new(&access.credentials.secret);
        let process = Arc::new(MemberProcess {
            access,
            directory,
            tls,
            state,
            settled: Notify::new(),
            work: Notify::new(),
            task_ended: Notify::new(),
            new_deadline: Notify::new(),
            store,
        });
        let set = CURRENT.set(Arc::clone(&process));
        assert!(set.is_ok(), "a process is one member of one application");
        process
    }

    /// This process.
    ///
    /// # Errors
    /// If it is not part of an application.
    pub(crate) fn current() -> Result<&'static Arc<MemberProcess>> {
        CURRENT.get().ok_or_else(|| {
            let text =
                "this process runs in no application: use actors and tasks below a main with #[cohabit::main]";
            Error::Refused(text.into())
        })
    }

    /// The store of the node.
    pub(super) const fn store(&self) -> &StoreLink {
        &self.store
    }

    pub(crate) const fn access(&self) -> &ApplicationAccess {
        &self.access
    }

    /// Changes the state, and carries out what follows from it.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut MemberState<Hold>) -> R) -> R {
        let (result, unneeded, has_work, has_new_deadline) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let result = change(&mut state);
            state.carry_out();
            (result, state.take_unneeded(), state.take_new_work(), state.take_new_deadline())
        };
        if has_work {
            self.work.notify_one();
        }
        if has_new_deadline {
            self.new_deadline.notify_one();
        }
        // Dropping them changes the state again.
        drop(unneeded);
        result
    }

    /// Waits until there may be work for a host on a thread of its own.
    pub(crate) async fn new_work(&self) {
        self.work.notified().await;
    }

    /// The handles that were given to this process count no longer.
    pub(crate) fn release(&self, all: Vec<HeldId>) {
        if !all.is_empty() {
            self.with(|state| state.release(all));
        }
    }

    /// Waits until all that was sent has arrived, but no longer than this. Returns whether it has.
    pub(crate) async fn settle(&self, limit: Duration) -> bool {
        let settled = async {
            while !self.with(|state| state.is_settled()) {
                self.settled.notified().await;
            }
        };
        let is_settled = timeout(limit, settled).await.is_ok();
        if !is_settled {
            tracing::warn!("the process ends before everything that it sent has arrived");
        }
        is_settled
    }
}

impl fmt::Debug for MemberProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} of application {}", self.access.member, self.access.application)
    }
}
