//! Commits batches of events, and applies events that are durable. One commit is in progress at a time;
//! what arrives meanwhile is the next batch.
//!
//! If the journal cannot be written, no event of the batch is applied. Its requests are refused with the
//! reason; all other events keep their order and are tried again, with pauses, until the journal accepts
//! them. Queries are answered meanwhile from the durable state.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_actor::{ActorFailure, Context, ReplyTo};
use cohabit_journal::is_journaled;
use cohabit_scheduler_core::Event;
use cohabit_types::{Refusal, Reply};

use super::batch::{BatchEnd, PendingEvent};
use super::durability::{CommitInProgress, refusal};
use super::feed::FeedPlace;
use super::log_line::LogLine;
use super::message::Message;
use super::state::Driver;
use crate::journal::{Commit, JournalEntry, JournalWrite, JournalWriteError};

/// How long history is collected before a commit of events takes it along: what is written together shares
/// pages of the file.
const HISTORY_SPAN: Duration = Duration::from_millis(20);

/// History that has waited for so long gets a commit, and a flush of the disk, of its own.
const HISTORY_LIMIT: Duration = Duration::from_millis(40);

/// So much history does not wait.
const MOST_HISTORY: usize = 4_096;

impl Driver {
    /// Begins the next commit if the batch is complete and the journal is free.
    pub(super) async fn advance(
        &mut self,
        end: BatchEnd,
        context: &mut Context<Driver>,
    ) -> Result<(), ActorFailure> {
        if self.durability.may_commit() && self.batch.is_complete(end, context.address()) {
            self.commit(context).await?;
        }
        Ok(())
    }

    async fn commit(&mut self, context: &mut Context<Driver>) -> Result<(), ActorFailure> {
        let events = self.batch.take();
        if !events.iter().any(|it| is_journaled(&it.entry.event)) {
            return self.apply_durable_events(events).await;
        }
        self.figures.begin_commit();
        let history = self.due_history();
        let outcome = self.durability.commit(&self.parts.journal, history, events);
        // The message says only that the commit has ended: the driver may have taken the outcome by then.
        context.pipe_to_self(outcome, |_| Message::Committed);
        Ok(())
    }

    /// A commit has ended. The next one begins now, or after a pause if it failed.
    pub(super) async fn committed(&mut self, context: &mut Context<Driver>) -> Result<(), ActorFailure> {
        self.settle().await?;
        if let Some(pause) = self.durability.next_pause() {
            context.send_after(pause, Message::Retry);
            return Ok(());
        }
        self.commit_next(context).await
    }

    /// The pause after a failed commit is over.
    pub(super) async fn retry(&mut self, context: &mut Context<Driver>) -> Result<(), ActorFailure> {
        self.durability.end_pause();
        // Only a commit tells that the journal can be written again, and nobody may ask for one for long.
        if self.batch.is_empty() && self.durability.is_idle() {
            self.queue(Event::Alarm, None);
        }
        self.commit_next(context).await
    }

    async fn commit_next(&mut self, context: &mut Context<Driver>) -> Result<(), ActorFailure> {
        if self.batch.is_empty() || !self.durability.is_idle() {
            return Ok(());
        }
        self.commit(context).await
    }

    /// Makes all queued events durable, and waits for that.
    pub(super) async fn finish(&mut self) -> Result<(), ActorFailure> {
        self.settle().await?;
        while !self.batch.is_empty() {
            let events = self.batch.take();
            // `settle` takes the outcome.
            let history = std::mem::take(&mut self.history);
            drop(self.durability.commit(&self.parts.journal, history, events));
            self.settle().await?;
            if let Some(error) = self.durability.error() {
                return Err(ActorFailure::from_message(error.to_string()));
            }
        }
        self.flush_history().await
    }

    /// Waits for the commit in progress; applies its events, or puts them back into the batch.
    async fn settle(&mut self) -> Result<(), ActorFailure> {
        let Some(CommitInProgress { events, outcome }) = self.durability.take_in_progress() else {
            return Ok(());
        };
        match outcome.await? {
            Ok(()) => {
                self.figures.end_commit();
                self.durability.note_success();
                self.apply_durable_events(events).await
            }
            Err(error) => {
                self.batch.put_back(events);
                self.refuse_requests(&refusal(&error));
                self.durability.note_failure(error);
                Ok(())
            }
        }
    }

    /// A client can repeat its request. Reports of workers and ends of links cannot be refused, so they stay.
    fn refuse_requests(&mut self, refusal: &Refusal) {
        for entry in self.batch.take_out(|event| matches!(event, Event::Client(..))) {
            self.queued_usage.remove(&entry.event);
            let Event::Client(client, ..) = &entry.event else { continue };
            if let Some(reply_to) = self.clients.remove(client) {
                reply_to.send(Reply::Refused(refusal.clone()));
            }
        }
    }

    async fn apply_durable_events(&mut self, events: Vec<PendingEvent>) -> Result<(), ActorFailure> {
        let mut sequence = self.parts.snapshots.sequence();
        let journaled = events.iter().filter(|it| is_journaled(&it.entry.event));
        if let Some(last) = events.last() {
            self.parts.snapshots.count(journaled.count() as u64, last.entry.at);
        }
        for PendingEvent { entry, handled } in events {
            sequence += u64::from(is_journaled(&entry.event));
            self.feed_place = FeedPlace::of(sequence);
            self.apply(Arc::unwrap_or_clone(entry));
            if let Some(handled) = handled {
                handled.send(());
            }
        }
        let is_snapshot_due = self.parts.snapshots.is_due(&self.parts.head);
        // The start after a snapshot repeats no history of earlier events, so that has to be there before.
        if is_snapshot_due || self.history.len() >= MOST_HISTORY {
            self.flush_history().await?;
        }
        if is_snapshot_due {
            // Events that wait for the next commit are not in the head yet: the snapshot is complete.
            self.parts.snapshots.take(&self.parts.head, &mut self.state_check, &self.parts.journal);
        }
        Ok(())
    }

    fn apply(&mut self, entry: JournalEntry) {
        self.queued_usage.remove(&entry.event);
        self.figures.count_event();
        let mut effects = Vec::new();
        let head = &mut self.parts.head;
        let changed = self.state_check.guard(|| head.handle(entry.at, entry.event, &mut effects));
        let changed = changed.unwrap_or_default();
        self.forecast_cache.forget(&changed.jobs);
        self.view_tracker.note(changed);
        for effect in effects {
            tracing::debug!("effect: {}", LogLine(&effect));
            self.perform(effect);
        }
    }

    /// The history that was collected for long enough.
    fn due_history(&mut self) -> Vec<JournalWrite> {
        let is_due = self.history_since.is_some_and(|since| since.elapsed() >= HISTORY_SPAN);
        self.history_since.take_if(|_| is_due).map(|_| std::mem::take(&mut self.history)).unwrap_or_default()
    }

    /// History that goes with no commit of events in time gets one of its own.
    pub(super) fn schedule_history(&mut self, context: &mut Context<Driver>) {
        if self.history.is_empty() {
            return;
        }
        self.history_since.get_or_insert_with(Instant::now);
        if !std::mem::replace(&mut self.is_history_scheduled, true) {
            context.send_after(HISTORY_LIMIT, Message::FlushHistory);
        }
    }

    /// Passes the history on that no commit has taken along; what is fresh waits for another moment.
    pub(super) async fn flush_late_history(&mut self) -> Result<(), ActorFailure> {
        self.is_history_scheduled = false;
        let is_late = self.history_since.is_some_and(|since| since.elapsed() >= HISTORY_SPAN);
        if is_late { self.flush_history().await } else { Ok(()) }
    }

    async fn flush_history(&mut self) -> Result<(), ActorFailure> {
        if self.history.is_empty() { Ok(()) } else { self.pass_history(None).await }
    }

    /// Passes the history's writes to the journal without waiting: the next start repeats what a crash
    /// loses of them.
    pub(super) async fn pass_history(
        &mut self,
        durable: Option<ReplyTo<Result<(), JournalWriteError>>>,
    ) -> Result<(), ActorFailure> {
        let history = std::mem::take(&mut self.history);
        self.history_since = None;
        self.parts.journal.tell(Commit { history, writes: Vec::new(), durable }).await?;
        Ok(())
    }
}
