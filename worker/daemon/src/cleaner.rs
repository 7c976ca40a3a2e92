//! The actor that cleans up what ended ranks leave on this host.
//!
//! Ranks come here when the head knows how they ended, a moment later. Everything on the disk is examined
//! when the daemon starts, and then every hour.

use std::mem::take;
use std::time::Duration;

use cohabit_actor::{Actor, ActorFailure, Address, Context, blocking};
use cohabit_types::{Bytes, RankId};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::options::RetentionOptions;
use crate::retention::{Retention, limits};
use crate::state_directory::StateDirectory;

const CLEAN_INTERVAL: Duration = Duration::from_secs(3600);

/// How long ended ranks are collected before they are examined.
const COLLECT_SPAN: Duration = Duration::from_millis(100);

/// Ended ranks that are examined at once.
const BATCH: usize = 10_000;

/// Messages to the actor that cleans up.
pub(crate) enum CleanerMessage {
    /// Examine everything.
    Clean,
    /// The head knows how these ranks ended.
    Ended(Vec<RankId>),
    /// Clean up the directories that have waited for long enough.
    CleanWaiting,
}

/// The actor that cleans up.
pub(crate) struct Cleaner {
    /// `None` while it is at work.
    retention: Option<Retention>,
    /// Ranks of whose end the head knows; `None` once they are being received.
    ended: Option<mpsc::UnboundedReceiver<RankId>>,
    /// Whether [`CleanerMessage::CleanWaiting`] is to come.
    is_called: bool,
}

impl Cleaner {
    /// Blocks.
    pub(crate) fn new(
        state: StateDirectory,
        options: &RetentionOptions,
        of_one_rank: Bytes,
        ended: mpsc::UnboundedReceiver<RankId>,
    ) -> Cleaner {
        let limits = limits(options, of_one_rank, state.root());
        Cleaner {
            retention: Some(Retention::new(state, limits, options.delay.into())),
            ended: Some(ended),
            is_called: false,
        }
    }

    /// Hands what is left to a thread for blocking work, with this message.
    async fn work(&mut self, message: CleanerMessage) {
        let Some(mut retention) = self.retention.take() else { return };
        let work = move || {
            match message {
                CleanerMessage::Clean => retention.examine_all(),
                CleanerMessage::Ended(ranks) => retention.examine(&ranks),
                CleanerMessage::CleanWaiting => {}
            }
            retention.clean_waiting();
            retention.enforce_limits();
            retention
        };
        self.retention = Some(blocking(work).await);
    }

    fn call_again(&mut self, context: &mut Context<Self>) {
        let due_in = self.retention.as_ref().and_then(Retention::next_due_in);
        if let Some(due_in) = due_in.filter(|_| !self.is_called) {
            self.is_called = true;
            context.send_after(due_in.max(COLLECT_SPAN), CleanerMessage::CleanWaiting);
        }
    }
}

impl Actor for Cleaner {
    type Message = CleanerMessage;

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), ActorFailure> {
        context.send_every(CLEAN_INTERVAL, || CleanerMessage::Clean);
        if let Some(ended) = self.ended.take() {
            context.spawn_task(collect(ended, context.address().clone()));
        }
        self.handle(CleanerMessage::Clean, context).await
    }

    async fn handle(
        &mut self,
        message: CleanerMessage,
        context: &mut Context<Self>,
    ) -> Result<(), ActorFailure> {
        self.is_called &= !matches!(message, CleanerMessage::CleanWaiting);
        self.work(message).await;
        self.call_again(context);
        Ok(())
    }
}

async fn collect(mut ended: mpsc::UnboundedReceiver<RankId>, cleaner: Address<CleanerMessage>) {
    let mut ranks = Vec::new();
    while ended.recv_many(&mut ranks, BATCH).await > 0 {
        sleep(COLLECT_SPAN).await;
        while ranks.len() < BATCH
            && let Ok(rank) = ended.try_recv()
        {
            ranks.push(rank);
        }
        if cleaner.tell(CleanerMessage::Ended(take(&mut ranks))).await.is_err() {
            return;
        }
    }
}
