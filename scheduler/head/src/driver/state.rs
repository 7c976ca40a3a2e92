//! What the driver holds, and how an event enters the next batch.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cohabit_actor::{Address, ReplyTo, TaskHandle};
use cohabit_net::ApplicationTokens;
use cohabit_policy::SensitivityProfiles;
use cohabit_policy::interference::GpuKind;
use cohabit_scheduler_core::{Config, Event, Head, ViewTracker};
use cohabit_types::{ClientRequestId, PlanRequestId, Reply, Span, Submit, Time, WorkerKey};

use super::batch::{Batch, PendingEvent};
use super::durability::Durability;
use super::feed::FeedPlace;
use super::figures::DriverFigures;
use super::forecast_cache::ForecastCache;
use super::log_line::LogLine;
use super::message::SessionHandle;
use super::queued_usage::QueuedUsage;
use super::snapshots::Snapshots;
use super::state_check::StateCheck;
use super::training_queue::TrainingQueue;
use crate::RequestLimits;
use crate::clock::Clock;
use crate::estimates::Estimates;
use crate::gpu_memory::GpuMemoryTracker;
use crate::interference::TrainerHandle;
use crate::journal::{Commit, JournalEntry, JournalWrite};
use crate::planner::Planner;
use crate::rates::Rates;
use crate::update_log::UpdateLog;
use crate::watchers::Watchers;

/// What the driver starts with.
pub(crate) struct DriverParts {
    pub(crate) head: Head,
    pub(crate) clock: Clock,
    pub(crate) config: Config,
    pub(crate) journal: Address<Commit>,
    pub(crate) planner: Planner,
    /// Whether plans depend on what the trainer learns.
    pub(crate) uses_interference: bool,
    /// The tables that shares are tuned by.
    pub(crate) sensitivity: Arc<SensitivityProfiles>,
    pub(crate) trainer: TrainerHandle,
    /// The pause after each training.
    pub(crate) learn_every: Duration,
    pub(crate) estimates: Estimates,
    pub(crate) memory_tracker: GpuMemoryTracker,
    pub(crate) watchers: Watchers,
    pub(crate) updates: UpdateLog,
    pub(crate) snapshots: Snapshots,
    /// How long the history keeps jobs.
    pub(crate) history_retention: Span,
    /// How long it keeps the sums of each day.
    pub(crate) report_retention: Span,
    /// The limits of users.
    pub(crate) limits: RequestLimits,
    /// Gives applications their secrets.
    pub(crate) applications: ApplicationTokens,
}

/// The actor that owns the head.
pub(crate) struct Driver {
    pub(super) parts: DriverParts,
    /// The sessions of the connected workers.
    pub(super) sessions: BTreeMap<WorkerKey, SessionHandle>,
    /// Requests that wait for their reply.
    pub(super) clients: BTreeMap<ClientRequestId, ReplyTo<Reply>>,
    pub(super) last_client: u64,
    pub(super) batch: Batch,
    /// What is in the batch and in the commit in progress, by user.
    pub(super) queued_usage: QueuedUsage,
    pub(super) submit_rates: Rates<String>,
    /// The same by the minute, for the limit in the table of shares.
    pub(super) minute_rates: Rates<String>,
    /// How many jobs each user changes, members of arrays one by one.
    pub(super) change_rates: Rates<String>,
    pub(super) durability: Durability,
    pub(super) state_check: StateCheck,
    /// The head's latest request for a plan, not yet passed to the planner.
    pub(super) plan_request: Option<PlanRequestId>,
    /// What the planner has not seen yet.
    pub(super) view_tracker: ViewTracker,
    pub(super) forecast_cache: ForecastCache,
    pub(super) training_queue: TrainingQueue,
    /// The number of the update from which the policy has its knowledge of interference.
    pub(super) knowledge_number: u64,
    /// Where the feed stands within the event that is handled.
    pub(super) feed_place: FeedPlace,
    /// What is counted for metrics.
    pub(super) figures: DriverFigures,
    /// Writes for the history, not yet passed to the journal.
    pub(super) history: Vec<JournalWrite>,
    /// Since when there are some.
    pub(super) history_since: Option<Instant>,
    /// Whether a message comes that passes them.
    pub(super) is_history_scheduled: bool,
    /// The head's next deadline, and the timer for it.
    pub(super) alarm: Option<(Time, TaskHandle)>,
}

impl Driver {
    pub(crate) fn new(parts: DriverParts) -> Driver {
        Driver {
            parts,
            sessions: BTreeMap::new(),
            clients: BTreeMap::new(),
            last_client: 0,
            batch: Batch::default(),
            queued_usage: QueuedUsage::default(),
            submit_rates: Rates::default(),
            minute_rates: Rates::default(),
            change_rates: Rates::default(),
            durability: Durability::default(),
            state_check: StateCheck::default(),
            plan_request: None,
            view_tracker: ViewTracker::default(),
            forecast_cache: ForecastCache::default(),
            training_queue: TrainingQueue::default(),
            knowledge_number: 0,
            feed_place: FeedPlace::default(),
            figures: DriverFigures::default(),
            history: Vec::new(),
            history_since: None,
            is_history_scheduled: false,
            alarm: None,
        }
    }

    /// Adds an event to the batch; `handled` is completed when the head has handled it. If the clock was
    /// set forward, an event that says so comes first.
    pub(super) fn queue(&mut self, event: Event, handled: Option<ReplyTo<()>>) {
        let at = self.parts.clock.now();
        if let Some(forward) = self.parts.clock.take_leap() {
            tracing::info!(%forward, "this time does not count towards deadlines: the head was down, or its clock was set forward");
            self.disarm();
            self.push(JournalEntry { at, event: Event::ClockSet(forward) }, None);
        }
        self.push(JournalEntry { at, event }, handled);
    }

    fn push(&mut self, entry: JournalEntry, handled: Option<ReplyTo<()>>) {
        tracing::debug!(at = entry.at.as_micros(), "event: {}", LogLine(&entry.event));
        self.queued_usage.add(&entry.event);
        self.batch.push(PendingEvent { entry: Arc::new(entry), handled });
    }

    /// Fills in the estimates of a submission, as far as there are any.
    pub(super) fn fill_estimates(&mut self, user: &str, submit: &mut Submit) {
        self.parts.estimates.fill(user, submit, self.parts.clock.now());
        let gpus: Vec<GpuKind> = self.parts.head.gpu_models().into_iter().map(GpuKind::named).collect();
        self.parts.memory_tracker.fill(user, submit, &gpus);
    }

    /// Cancels the alarm, so that the next one is set even for the same deadline.
    pub(super) fn disarm(&mut self) {
        if let Some((_, timer)) = self.alarm.take() {
            timer.cancel();
        }
    }
}
