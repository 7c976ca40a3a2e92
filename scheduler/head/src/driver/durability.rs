//! Events become durable: one commit is under way at a time, and what comes meanwhile is the next one.
//!
//! Where the journal cannot be written, nothing of the batch happens. Requests in it are refused with the
//! reason; all else keeps its order and is tried again, with pauses, until it succeeds. Questions are
//! answered meanwhile by what was durable before, and what runs goes on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_actor::{AskError, Context, Failure};
use cohabit_net::Backoff;
use cohabit_scheduler_core::Event;
use cohabit_types::{Refusal, RefusalCode, Reply, Report};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};

use super::batch::{End, Pending};
use super::{Driver, Message};
use crate::journal::{Commit, Unwritten, Write};

/// Pauses between tries: the first is over before a person has read the refusal, and room is noticed soon.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What came of a commit.
type Committed = Result<Result<(), Unwritten>, AskError>;

/// Where the events are that were handed to the journal, and whether it can be written.
#[derive(Default)]
pub(super) struct Durability {
    under_way: Option<UnderWay>,
    trouble: Option<Trouble>,
}

/// A commit that the journal is busy with.
struct UnderWay {
    events: Vec<Pending>,
    done: Shared<BoxFuture<'static, Committed>>,
}

/// The journal could not be written the last time.
struct Trouble {
    why: Unwritten,
    since: Instant,
    backoff: Backoff,
    pause: Pause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// It is not to be tried before the pause ends.
    Lasts,
    /// The next event tries.
    Over,
}

impl Durability {
    /// Why requests are refused at once, while they are.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.resting().map(|trouble| refusal(&trouble.why))
    }

    /// Whether the journal has nothing of the driver's to write.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_none()
    }

    fn resting(&self) -> Option<&Trouble> {
        self.trouble.as_ref().filter(|trouble| trouble.pause == Pause::Lasts)
    }

    fn succeeded(&mut self) {
        if let Some(trouble) = self.trouble.take() {
            let after = trouble.since.elapsed();
            tracing::info!(?after, "the journal can be written again");
        }
    }

    fn failed(&mut self, why: Unwritten) {
        let trouble = self.trouble.take().unwrap_or_else(|| {
            tracing::warn!(%why, "the journal cannot be written: requests are refused, what runs goes on");
            let backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
            Trouble { why: why.clone(), since: Instant::now(), backoff, pause: Pause::Over }
        });
        self.trouble = Some(Trouble { why, pause: Pause::Lasts, ..trouble });
    }
}

impl Driver {
    /// Begins the next commit if there is something to commit and nothing in its way.
    pub(super) async fn advance(&mut self, end: End, context: &mut Context<Driver>) -> Result<(), Failure> {
        let free = self.durability.is_idle() && self.durability.resting().is_none();
        if free && self.batch.is_complete(end, context.address()) {
            self.commit(context).await?;
        }
        Ok(())
    }

    async fn commit(&mut self, context: &mut Context<Driver>) -> Result<(), Failure> {
        let events = self.batch.take();
        if !events.iter().any(|it| is_journaled(&it.entry.event)) {
            return self.happen(events).await;
        }
        let done = self.hand_over(&events);
        let (driver, told) = (context.address().clone(), done.clone());
        context.alongside(async move {
            // What came of it, the driver looks up itself; one that has stopped does not.
            let _ = told.await;
            let _ = driver.tell(Message::Committed).await;
        });
        self.durability.under_way = Some(UnderWay { events, done });
        Ok(())
    }

    /// Hands the events to the journal; what comes back is to be waited for.
    fn hand_over(&self, events: &[Pending]) -> Shared<BoxFuture<'static, Committed>> {
        let journaled = events.iter().map(|it| &it.entry).filter(|it| is_journaled(&it.event));
        let writes = journaled.map(|entry| Write::Event(Arc::clone(entry))).collect();
        let journal = self.parts.journal.clone();
        async move { journal.ask(|durable| Commit { writes, durable: Some(durable) }).await }.boxed().shared()
    }

    /// A commit has ended, one way or the other: what came meanwhile is next, now or after a pause.
    pub(super) async fn committed(&mut self, context: &mut Context<Driver>) -> Result<(), Failure> {
        self.settle().await?;
        if let Some(trouble) = self.durability.trouble.as_mut().filter(|it| it.pause == Pause::Lasts) {
            context.send_after(trouble.backoff.next_delay(), Message::Retry);
            return Ok(());
        }
        self.go_on(context).await
    }

    /// The pause after a failed commit is over.
    pub(super) async fn retry(&mut self, context: &mut Context<Driver>) -> Result<(), Failure> {
        if let Some(trouble) = &mut self.durability.trouble {
            trouble.pause = Pause::Over;
        }
        self.go_on(context).await
    }

    async fn go_on(&mut self, context: &mut Context<Driver>) -> Result<(), Failure> {
        if self.batch.is_empty() || !self.durability.is_idle() {
            return Ok(());
        }
        self.commit(context).await
    }

    /// Makes everything durable that has come so far, and waits for it.
    pub(super) async fn finish(&mut self) -> Result<(), Failure> {
        self.settle().await?;
        while !self.batch.is_empty() {
            let events = self.batch.take();
            let done = self.hand_over(&events);
            self.durability.under_way = Some(UnderWay { events, done });
            self.settle().await?;
            if let Some(trouble) = &self.durability.trouble {
                return Err(Failure::because(trouble.why.to_string()));
            }
        }
        self.keep_history().await
    }

    /// Waits for the commit under way: its events happen, or are kept for the next.
    async fn settle(&mut self) -> Result<(), Failure> {
        let Some(UnderWay { events, done }) = self.durability.under_way.take() else { return Ok(()) };
        match done.await? {
            Ok(()) => {
                self.durability.succeeded();
                self.happen(events).await
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

/// Progress and telemetry are worth nothing after a restart: the next report brings them again.
pub(super) fn is_journaled(event: &Event) -> bool {
    !matches!(event, Event::Report(_, Report::Progress(_) | Report::Telemetry(_)))
}

fn refusal(why: &Unwritten) -> Refusal {
    let message = format!(
        "the head cannot write down what is asked of it: {why}. Nothing was changed, and what runs goes on: make \
         room or look after the disk, and ask again"
    );
    Refusal::new(RefusalCode::StorageFailed, message)
}
