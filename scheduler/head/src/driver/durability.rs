//! Whether the journal can be written, and the commit that it is busy with.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_actor::{Address, AskError};
use cohabit_journal::is_journaled;
use cohabit_net::Backoff;
use cohabit_types::{Refusal, RefusalCode, Span};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::sync::oneshot;

use super::batch::PendingEvent;
use crate::journal::{Commit, JournalWrite, JournalWriteError};

/// Pauses between attempts: the first is shorter than a person takes to read the refusal, and the longest
/// still notices soon that the disk has room again.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The result of a commit; the outer error means that the journal has ended.
pub(super) type CommitOutcome = Result<Result<(), JournalWriteError>, AskError>;

/// A commit's result, which several may wait for.
pub(super) type PendingCommit = Shared<BoxFuture<'static, CommitOutcome>>;

/// The commit in progress, and the outage of the journal if there is one.
#[derive(Default)]
pub(super) struct Durability {
    in_progress: Option<CommitInProgress>,
    outage: Option<JournalOutage>,
    /// Workers that join; closed where their join became durable.
    joining: Vec<oneshot::Sender<()>>,
}

/// A commit that the journal is busy with.
pub(super) struct CommitInProgress {
    pub(super) events: Vec<PendingEvent>,
    pub(super) outcome: PendingCommit,
}

/// The last commit failed.
struct JournalOutage {
    error: JournalWriteError,
    since: Instant,
    backoff: Backoff,
    state: BackoffState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BackoffState {
    /// No commit is tried before the pause ends.
    Waiting,
    /// The next event tries a commit.
    Elapsed,
}

impl Durability {
    /// Passes the events to the journal as one commit, and this history with them.
    pub(super) fn commit(
        &mut self,
        journal: &Address<Commit>,
        history: Vec<JournalWrite>,
        events: Vec<PendingEvent>,
    ) -> PendingCommit {
        let journaled = events.iter().map(|it| &it.entry).filter(|it| is_journaled(&it.event));
        let writes = journaled.map(|entry| JournalWrite::Event(Arc::clone(entry))).collect();
        let journal = journal.clone();
        let commit = |durable| Commit { history, writes, durable: Some(durable) };
        let outcome = async move { journal.ask(commit).await };
        let outcome = outcome.boxed().shared();
        self.in_progress = Some(CommitInProgress { events, outcome: outcome.clone() });
        outcome
    }

    pub(super) fn take_in_progress(&mut self) -> Option<CommitInProgress> {
        self.in_progress.take()
    }

    /// The refusal of every request, while an outage lasts.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.waiting_outage().map(|outage| refusal(&outage.error))
    }

    /// Whether no commit is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.in_progress.is_none()
    }

    /// Whether a commit may begin now.
    pub(super) fn may_commit(&self) -> bool {
        self.is_idle() && self.waiting_outage().is_none()
    }

    /// The pause before the next attempt, if the last commit failed.
    pub(super) fn next_pause(&mut self) -> Option<Duration> {
        let outage = self.outage.as_mut().filter(|it| it.state == BackoffState::Waiting)?;
        Some(outage.backoff.next_delay())
    }

    /// The pause is over.
    pub(super) fn end_pause(&mut self) {
        if let Some(outage) = &mut self.outage {
            outage.state = BackoffState::Elapsed;
        }
    }

    /// Why the journal cannot be written, if the last commit failed.
    pub(super) fn error(&self) -> Option<&JournalWriteError> {
        self.outage.as_ref().map(|outage| &outage.error)
    }

    /// The same for people who did not ask for a change.
    pub(super) fn problem(&self) -> Option<String> {
        let outage = self.outage.as_ref()?;
        Some(format!(
            "the head has not been able to write its journal for {}: {}. It refuses changes, and running jobs continue",
            Span::from_secs(outage.since.elapsed().as_secs()),
            outage.error
        ))
    }

    fn waiting_outage(&self) -> Option<&JournalOutage> {
        self.outage.as_ref().filter(|outage| outage.state == BackoffState::Waiting)
    }

    /// Lets a joining worker in before its join is durable, if the journal cannot be written. That is safe:
    /// everything that follows from the join is in the journal behind it.
    pub(super) fn welcome_in_outage(&mut self, welcome: oneshot::Sender<()>) {
        self.joining.retain(|joining| !joining.is_closed());
        self.joining.push(welcome);
        if self.outage.is_some() {
            self.welcome_all();
        }
    }

    fn welcome_all(&mut self) {
        for welcome in self.joining.drain(..) {
            // Its link may have ended.
            let _ = welcome.send(());
        }
    }

    pub(super) fn note_success(&mut self) {
        if let Some(outage) = self.outage.take() {
            let after = outage.since.elapsed();
            tracing::info!(?after, "the journal can be written again");
        }
    }

    pub(super) fn note_failure(&mut self, error: JournalWriteError) {
        self.welcome_all();
        if self.error() != Some(&error) {
            tracing::warn!(%error, "the journal cannot be written: requests are refused, running jobs continue");
        }
        let outage = self.outage.take().unwrap_or_else(|| {
            let backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
            let state = BackoffState::Elapsed;
            JournalOutage { error: error.clone(), since: Instant::now(), backoff, state }
        });
        self.outage = Some(JournalOutage { error, state: BackoffState::Waiting, ..outage });
    }
}

pub(super) fn refusal(error: &JournalWriteError) -> Refusal {
    let message = format!(
        "the head cannot write the request to its journal: {error}. Nothing was changed, and running jobs continue: try \
         again when that is mended"
    );
    Refusal::new(RefusalCode::StorageFailed, message)
}
