//! The process as the rest of this crate sees it.

use std::cell::Cell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use cohabit_application_core::HeldId;
use cohabit_net::ApplicationTls;
use cohabit_types::ApplicationAccess;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::hold::Hold;
use super::member_state::{MemberState, Outlets};
use super::running_task::UnknownCalls;
use crate::error::{Error, Result};
use crate::store::StoreLink;
use crate::surroundings::Surroundings;
use crate::transport::SocketDirectory;

/// The one process of an application that this is.
static CURRENT: OnceLock<Arc<MemberProcess>> = OnceLock::new();

thread_local! {
    /// The one that this thread belongs to, where all of an application runs in one process.
    static OF_THREAD: Cell<Option<&'static Arc<MemberProcess>>> = const { Cell::new(None) };
}

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
    /// For its checkpoints; none without a worker.
    checkpoints: Option<PathBuf>,
    unknown_calls: UnknownCalls,
    /// It ends: the thread of its tasks, too.
    ends: Notify,
    /// The coordinator has let it in.
    admitted: Notify,
}

impl MemberProcess {
    /// Makes this process a member, or this thread if all of the application runs in one process.
    ///
    /// # Panics
    /// If the process is one already.
    pub(crate) fn start(
        access: ApplicationAccess,
        directory: Arc<SocketDirectory>,
        outlets: Outlets,
        store: StoreLink,
        surroundings: &Surroundings,
    ) -> Arc<MemberProcess> {
        let unknown_calls = UnknownCalls::default();
        let counted = Arc::clone(&unknown_calls);
        let state =
            Mutex::new(MemberState::new(access.coordinator_process(), access.member, outlets, counted));
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
            checkpoints: surroundings.checkpoints(),
            unknown_calls,
            ends: Notify::new(),
            admitted: Notify::new(),
        });
        match surroundings {
            Surroundings::Process => {
                let set = CURRENT.set(Arc::clone(&process));
                assert!(set.is_ok(), "a process is one member of one application");
            }
            // As long as the program, like the one above: calls and handles may be anywhere.
            Surroundings::Thread { .. } => OF_THREAD.set(Some(Box::leak(Box::new(Arc::clone(&process))))),
        }
        process
    }

    /// This process.
    ///
    /// # Errors
    /// If it is not part of an application.
    pub(crate) fn current() -> Result<&'static Arc<MemberProcess>> {
        OF_THREAD.get().or_else(|| CURRENT.get()).ok_or_else(|| {
            let text = "this thread runs in no application: use actors and tasks below a main with \
                        #[cohabit::main], or in a test with #[cohabit::test] on the thread of the test";
            Error::Refused(text.into())
        })
    }

    /// The thread that calls this runs code of the process, too.
    pub(crate) fn adopt(process: &'static Arc<MemberProcess>) {
        OF_THREAD.set(Some(process));
    }

    /// The thread that calls this belongs to no process any more.
    pub(crate) fn leave_thread() {
        OF_THREAD.set(None);
    }

    /// The directory for its checkpoints; none without a worker.
    pub(crate) fn checkpoints(&self) -> Option<&Path> {
        self.checkpoints.as_deref()
    }

    pub(crate) const fn unknown_calls(&self) -> &UnknownCalls {
        &self.unknown_calls
    }

    /// The coordinator has let it in.
    pub(super) fn note_admission(&self) {
        self.admitted.notify_one();
    }

    /// Waits until the coordinator has let it in, for the first time.
    pub(crate) async fn admission(&self) {
        self.admitted.notified().await;
    }

    /// Its tasks run no longer.
    pub(crate) fn end(&self) {
        self.ends.notify_one();
    }

    /// Waits until it ends.
    pub(crate) async fn ended(&self) {
        self.ends.notified().await;
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
