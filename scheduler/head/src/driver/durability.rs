//! Events become durable: one commit is under way at a time, and what comes meanwhile is the next one.
//!
//! Where the journal cannot be written, nothing of the batch happens. Requests in it are refused with the
//! reason; all else keeps its order and is tried again, with pauses, until it succeeds. Questions are
//! answered meanwhile by what was durable before, and what runs goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_actor::{ActorFailure, AskError, Context};
use cohabit_journal::is_journaled;
use cohabit_net::Backoff;
use cohabit_scheduler_core::Event;
use cohabit_types::{Refusal, RefusalCode, Reply};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};

use super::batch::{BatchEnd, PendingEvent};
use super::{Driver, Message};
use crate::journal::{Commit, JournalWrite, JournalWriteError};

/// Pauses between tries: the first is over before a person has read the refusal, and room is noticed soon.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What came of a commit.
type Committed = Result<Result<(), JournalWriteError>, AskError>;

/// Where the events are that were handed to the journal, and whether it can be written.
#[derive(Default)]
pub(super) struct Durability {
    under_way: Option<CommitInProgress>,
    outage: Option<JournalOutage>,
}

/// A commit that the journal is busy with.
struct CommitInProgress {
    events: Vec<PendingEvent>,
    done: Shared<BoxFuture<'static, Committed>>,
}

/// The journal could not be written the last time.
struct JournalOutage {
    why: JournalWriteError,
    since: Instant,
    backoff: Backoff,
    pause: BackoffState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BackoffState {
    /// It is not to be tried before the pause ends.
    Waiting,
    /// The next event tries.
    Elapsed,
}

impl Durability {
    /// Why requests are refused at once, while they are.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.active_outage().map(|outage| refusal(&outage.why))
    }

    /// Whether the journal has nothing of the driver's to write.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_none()
    }

    fn active_outage(&self) -> Option<&JournalOutage> {
        self.outage.as_ref().filter(|outage| outage.pause == BackoffState::Waiting)
    }

    fn succeeded(&mut self) {
        if let Some(outage) = self.outage.take() {
            let after = outage.since.elapsed();
            tracing::info!(?after, "the journal can be written again");
        }
    }

    fn failed(&mut self, why: JournalWriteError) {
        let outage = self.outage.take().unwrap_or_else(|| {
            tracing::warn!(%why, "the journal cannot be written: requests are refused, what runs goes on");
            let backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
            JournalOutage { why: why.clone(), since: Instant::now(), backoff, pause: BackoffState::Elapsed }
        });
        self.outage = Some(JournalOutage { why, pause: BackoffState::Waiting, ..outage });
    }
}

impl Driver {
    /// Begins the next commit if there is something to commit and nothing in its way.
    pub(super) async fn advance(
        &mut self,
        end: BatchEnd,
        context: &mut Context<Driver>,
    ) -> Result<(), ActorFailure> {
        let free = self.durability.is_idle() && self.durability.active_outage().is_none();
        if free && self.batch.is_complete(end, context.address()) {
            self.commit(context).await?;
        }
        Ok(())
    }

    async fn commit(&mut self, context: &mut Context<Driver>) -> Result<(), ActorFailure> {
        let events = self.batch.take();
        if !events.iter().any(|it| is_journaled(&it.entry.event)) {
            return self.apply_durable_events(events).await;
        }
        let done = self.send_to_journal(&events);
        let (driver, told) = (context.address().clone(), done.clone());
        context.spawn_task(async move {
            // What came of it, the driver looks up itself; one that has stopped does not.
            let _ = told.await;
            let _ = driver.tell(Message::Committed).await;
        });
        self.durability.under_way = Some(CommitInProgress { events, done });
        Ok(())
    }

    /// Hands the events to the journal; what comes back is to be waited for.
    fn send_to_journal(&self, events: &[PendingEvent]) -> Shared<BoxFuture<'static, Committed>> {
        let journaled = events.iter().map(|it| &it.entry).filter(|it| is_journaled(&it.event));
        let writes = journaled.map(|entry| JournalWrite::Event(Arc::clone(entry))).collect();
        let journal = self.parts.journal.clone();
        async move { journal.ask(|durable| Commit { writes, durable: Some(durable) }).await }.boxed().shared()
    }

    /// A commit has ended, one way or the other: what came meanwhile is next, now or after a pause.
    pub(super) async fn committed(&mut self, context: &mut Context<Driver>) -> Result<(), ActorFailure> {
        self.settle().await?;
        if let Some(outage) = self.durability.outage.as_mut().filter(|it| it.pause == BackoffState::Waiting) {
            context.send_after(outage.backoff.next_delay(), Message::Retry);
            return Ok(());
        }
        self.commit_next(context).await
    }

    /// The pause after a failed commit is over.
    pub(super) async fn retry(&mut self, context: &mut Context<Driver>) -> Result<(), ActorFailure> {
        if let Some(outage) = &mut self.durability.outage {
            outage.pause = BackoffState::Elapsed;
        }
        self.commit_next(context).await
    }

    async fn commit_next(&mut self, context: &mut Context<Driver>) -> Result<(), ActorFailure> {
        if self.batch.is_empty() || !self.durability.is_idle() {
            return Ok(());
        }
        self.commit(context).await
    }

    /// Makes everything durable that has come so far, and waits for it.
    pub(super) async fn finish(&mut self) -> Result<(), ActorFailure> {
        self.settle().await?;
        while !self.batch.is_empty() {
            let events = self.batch.take();
            let done = self.send_to_journal(&events);
            self.durability.under_way = Some(CommitInProgress { events, done });
            self.settle().await?;
            if let Some(outage) = &self.durability.outage {
                return Err(ActorFailure::from_message(outage.why.to_string()));
            }
        }
        self.flush_history().await
    }

    /// Waits for the commit under way: its events happen, or are kept for the next.
    async fn settle(&mut self) -> Result<(), ActorFailure> {
        let Some(CommitInProgress { events, done }) = self.durability.under_way.take() else { return Ok(()) };
        match done.await? {
            Ok(()) => {
                self.durability.succeeded();
                self.apply_durable_events(events).await
            }
            Err(why) => {
                self.batch.put_back(events);
                self.refuse_requests(&refusal(&why));
                self.durability.failed(why);
                Ok(())
            }
        }
    }

    /// Whoever asked can ask again; a worker's report or a link's end has to happen.
    fn refuse_requests(&mut self, refusal: &Refusal) {
        for entry in self.batch.take_out(|event| matches!(event, Event::Client(..))) {
            let Event::Client(client, ..) = &entry.event else { continue };
            if let Some(reply_to) = self.clients.remove(client) {
                reply_to.send(Reply::Refused(refusal.clone()));
            }
        }
    }
}

fn refusal(why: &JournalWriteError) -> Refusal {
    let message = format!(
        "the head cannot write down what is asked of it: {why}. Nothing was changed, and what runs goes on: make \
         room or look after the disk, and ask again"
    );
    Refusal::new(RefusalCode::StorageFailed, message)
}
