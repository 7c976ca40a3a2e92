//! The loop of a channel: it reads the feed behind its cursor, delivers what is for it, and notes how far it
//! has come.
//!
//! It reads no further while a message waits for its next attempt: the head keeps the feed, and other
//! channels have loops of their own.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cohabit_client::Error;
use cohabit_client::types::{Feed, FeedEntry, FeedGap, Time};
use tokio::sync::{broadcast, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};

use super::pacer::Pacer;
use super::progress::ChannelProgress;
use super::retry::RetryPause;
use crate::clock::wall_clock;
use crate::config::ChannelConfig;
use crate::feed_source::FeedSource;
use crate::form::{DeliveryFailure, Sender};
use crate::message::{Message, MessageUrgency};
use crate::router::{Router, user};
use crate::state_file::{ChannelState, StateFile};

/// A message is given up when a channel has not taken it for this long.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(86_400);
/// The pause before the head is asked again, when it cannot answer.
const HEAD_PAUSE: Duration = Duration::from_secs(5);
/// How many names of channels that are not there are told in the log.
const MOST_UNKNOWN: usize = 1_000;

/// What a channel's loop starts with.
pub(crate) struct FollowerParts<S> {
    pub(crate) source: S,
    pub(crate) channel: ChannelConfig,
    pub(crate) router: Router,
    pub(crate) sender: Arc<Sender>,
    pub(crate) state: Arc<StateFile>,
    /// Problems of the head.
    pub(crate) problems: broadcast::Receiver<Message>,
    /// Becomes true when the program is to end.
    pub(crate) stop: watch::Receiver<bool>,
}

/// The loop of a channel.
pub(crate) struct Follower<S> {
    parts: FollowerParts<S>,
    pacer: Pacer,
    retry: RetryPause,
    /// When this program started: what happened before does not count as old.
    started: Time,
    told_unknown: BTreeSet<String>,
    /// The last problem with the head that the log told of.
    told_problem: Option<String>,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeliveryOutcome {
    Delivered,
    GivenUp,
    /// The program is to end before the next attempt.
    Stopped,
}

/// What woke the loop.
enum Wake {
    Stop,
    Problem(Message),
    Due,
    Page(Result<Feed, Error>),
}

impl<S: FeedSource> Follower<S> {
    pub(crate) fn new(parts: FollowerParts<S>) -> Follower<S> {
        Follower {
            pacer: Pacer::new(parts.channel.most_per_minute),
            parts,
            retry: RetryPause::default(),
            started: wall_clock(),
            told_unknown: BTreeSet::new(),
            told_problem: None,
        }
    }

    /// Runs until the program is to end.
    pub(crate) async fn run(mut self) {
        let Some(mut progress) = self.begin().await else { return };
        loop {
            if self.deliver_due(&mut progress).await == DeliveryOutcome::Stopped {
                return;
            }
            match self.wait(&progress).await {
                Wake::Stop => return,
                Wake::Due => {}
                Wake::Problem(message) => {
                    if self.tell_everybody(message).await == DeliveryOutcome::Stopped {
                        return;
                    }
                }
                Wake::Page(Err(error)) => self.head_failed(&error).await,
                Wake::Page(Ok(feed)) => {
                    self.told_problem = None;
                    if self.tell_page(feed, &mut progress).await == DeliveryOutcome::Stopped {
                        return;
                    }
                }
            }
        }
    }

    /// Where an earlier run ended, or else the end of the feed; none if the program is to end.
    async fn begin(&mut self) -> Option<ChannelProgress> {
        if let Some(state) = self.parts.state.channel(&self.parts.channel.name) {
            return Some(ChannelProgress::after(&state));
        }
        loop {
            let asked = tokio::select! {
                _ = self.parts.stop.wait_for(|stop| *stop) => return None,
                asked = self.parts.source.feed(None) => asked,
            };
            match asked {
                Ok(feed) => {
                    let progress = ChannelProgress::after(&ChannelState::new(feed.next, Vec::new()));
                    self.note(&progress).await;
                    return Some(progress);
                }
                Err(error) => self.head_failed(&error).await,
            }
        }
    }

    async fn wait(&mut self, progress: &ChannelProgress) -> Wake {
        let takes_problems = self.parts.router.takes_problems();
        let due = self.pacer.next_due();
        let due = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = self.parts.stop.wait_for(|stop| *stop) => Wake::Stop,
            Ok(message) = self.parts.problems.recv(), if takes_problems => Wake::Problem(message),
            () = due => Wake::Due,
            page = self.parts.source.feed(Some(progress.read())) => Wake::Page(page),
        }
    }

    /// The head cannot answer: it may restart, or the token may have been revoked.
    async fn head_failed(&mut self, error: &Error) {
        let why = error.to_string();
        if self.told_problem.as_ref() != Some(&why) {
            tracing::warn!(channel = self.parts.channel.name, %error, "cannot follow the feed: tries again");
            self.told_problem = Some(why);
        }
        tokio::select! {
            _ = self.parts.stop.wait_for(|stop| *stop) => {}
            () = sleep(HEAD_PAUSE) => {}
        }
    }

    /// Delivers the entries of a page that are for this channel.
    async fn tell_page(&mut self, feed: Feed, progress: &mut ChannelProgress) -> DeliveryOutcome {
        if self.tell_gap(&feed).await == DeliveryOutcome::Stopped {
            return DeliveryOutcome::Stopped;
        }
        for entry in feed.entries {
            // One at a time: what is due for another recipient does not wait for a whole page.
            let stopped = self.deliver_due(progress).await == DeliveryOutcome::Stopped
                || self.tell_entry(entry, progress).await == DeliveryOutcome::Stopped;
            if stopped {
                return DeliveryOutcome::Stopped;
            }
        }
        let before = progress.state();
        progress.read_up_to(feed.next);
        if progress.state() != before {
            self.note(progress).await;
        }
        DeliveryOutcome::Delivered
    }

    async fn tell_entry(&mut self, entry: FeedEntry, progress: &mut ChannelProgress) -> DeliveryOutcome {
        if progress.was_delivered(&entry) {
            return DeliveryOutcome::Delivered;
        }
        self.tell_unknown_channels(&entry);
        if !self.parts.router.takes(&entry.event) {
            progress.pass(&entry);
            return DeliveryOutcome::Delivered;
        }
        let Some(recipient) = self.parts.channel.recipient(user(&entry.event)) else {
            let channel = &self.parts.channel.name;
            tracing::warn!(
                channel,
                entry = entry.number,
                "no address: the user's name cannot be part of one"
            );
            progress.pass(&entry);
            return DeliveryOutcome::GivenUp;
        };
        if !self.pacer.admit(&recipient, &entry, Instant::now()) {
            progress.hold(&entry);
            return DeliveryOutcome::Delivered;
        }
        let outcome = self.deliver(Message::of(entry.clone()), &recipient).await;
        match outcome {
            DeliveryOutcome::Stopped => return outcome,
            DeliveryOutcome::Delivered => progress.deliver(&entry),
            DeliveryOutcome::GivenUp => progress.pass(&entry),
        }
        self.note(progress).await;
        outcome
    }

    /// Delivers what was held back and is due, as one message for each recipient.
    async fn deliver_due(&mut self, progress: &mut ChannelProgress) -> DeliveryOutcome {
        while let Some((recipient, entries)) = self.pacer.take_due(Instant::now()) {
            let message = match entries.as_slice() {
                [only] => Message::of(only.clone()),
                _ => Message::digest(entries.clone()),
            };
            if self.deliver(message, &recipient).await == DeliveryOutcome::Stopped {
                return DeliveryOutcome::Stopped;
            }
            progress.release(&entries);
            self.note(progress).await;
        }
        DeliveryOutcome::Delivered
    }

    /// The default channel tells that entries were missed.
    async fn tell_gap(&mut self, feed: &Feed) -> DeliveryOutcome {
        let count = match feed.gap {
            FeedGap::None => return DeliveryOutcome::Delivered,
            FeedGap::Entries(count) => format!("{count} events were missed"),
            FeedGap::Unknown => "Events may have been missed".to_owned(),
        };
        tracing::warn!(channel = self.parts.channel.name, "{count}");
        if !self.parts.router.is_default() {
            return DeliveryOutcome::Delivered;
        }
        let text = "the head keeps what there is to tell for 7 days, and this program did not ask for longer, or it now \
                    follows another cluster: see `cohabit list`";
        let key = format!("gap-{}-{}", feed.next.number, feed.next.at.as_micros());
        self.tell_everybody(Message::plain(key, "gap", MessageUrgency::Normal, wall_clock(), &count, text))
            .await
    }

    /// Delivers a message that is about no user.
    async fn tell_everybody(&mut self, message: Message) -> DeliveryOutcome {
        match self.parts.channel.recipient(None) {
            Some(recipient) => self.deliver(message, &recipient).await,
            None => DeliveryOutcome::Delivered,
        }
    }

    fn tell_unknown_channels(&mut self, entry: &FeedEntry) {
        if !self.parts.router.is_default() || self.told_unknown.len() >= MOST_UNKNOWN {
            return;
        }
        for name in self.parts.router.unknown_channels(&entry.event) {
            if self.told_unknown.insert(name.to_owned()) {
                let job = entry.event.job.as_ref().map(|job| job.id.to_string());
                tracing::warn!(
                    channel = name,
                    job,
                    "a job asks for a channel that is not there: the default one is used"
                );
            }
        }
    }

    /// Tries until the message is delivered, given up, or the program is to end.
    async fn deliver(&mut self, message: Message, recipient: &str) -> DeliveryOutcome {
        let (message, channel) = (Arc::new(message), self.parts.channel.name.clone());
        let age = wall_clock().since(message.at.max(self.started));
        let give_up = Instant::now() + GIVEN_UP_AFTER.saturating_sub(age.into());
        loop {
            let (sender, sent, to) =
                (Arc::clone(&self.parts.sender), Arc::clone(&message), recipient.to_owned());
            // An attempt that has begun is waited for even if the program is to end: it takes a bounded time.
            let attempt = spawn_blocking(move || sender.deliver(&sent, &to)).await;
            let failed = |error| Err(DeliveryFailure::Never(format!("an attempt failed: {error}")));
            match attempt.unwrap_or_else(failed) {
                Ok(()) => {
                    self.retry.reset();
                    self.pacer.sent(recipient, Instant::now());
                    tracing::debug!(channel, key = message.key, "delivered");
                    return DeliveryOutcome::Delivered;
                }
                Err(DeliveryFailure::Never(why)) => {
                    // It answered, so it is there.
                    self.retry.reset();
                    tracing::error!(channel, key = message.key, why, "the message is refused, and given up");
                    return DeliveryOutcome::GivenUp;
                }
                Err(DeliveryFailure::Later { why, after }) => {
                    if Instant::now() >= give_up {
                        tracing::error!(
                            channel,
                            key = message.key,
                            why,
                            "the message is given up after a day"
                        );
                        return DeliveryOutcome::GivenUp;
                    }
                    let pause = self.retry.after_failure(after);
                    tracing::warn!(channel, key = message.key, why, ?pause, "not delivered: tries again");
                    tokio::select! {
                        _ = self.parts.stop.wait_for(|stop| *stop) => return DeliveryOutcome::Stopped,
                        () = sleep(pause) => {}
                    }
                }
            }
        }
    }

    /// Writes down how far the channel has come. If that fails, a restart repeats what it does not know.
    async fn note(&self, progress: &ChannelProgress) {
        let (state, file) = (progress.state(), Arc::clone(&self.parts.state));
        let name = self.parts.channel.name.clone();
        let noted = spawn_blocking(move || file.note(&name, state)).await;
        match noted {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "a restart may repeat messages"),
            Err(error) => tracing::error!(%error, "a restart may repeat messages"),
        }
    }
}
