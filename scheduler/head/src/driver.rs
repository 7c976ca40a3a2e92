//! The driver: the one actor that owns the head's state machine.
//!
//! ```text
//! requests, reports, links, plans, alarms ──> batch ──> journal ──> Head::handle ──> effects
//! ```
//!
//! Events that arrive while one batch becomes durable form the next batch, so a busy head commits many
//! events at once and answers queries meanwhile. No request is answered, no order sent and no change
//! published before its cause is durable. The driver decides nothing about jobs.
//!
//! Start reading here: [`Driver::dispatch`] has a line for each message. `state.rs` holds the data,
//! `commit.rs` takes batches through the journal, `effects.rs` carries out what the head wants,
//! `planning.rs` and `training.rs` talk to the two threads.

mod alarm;
mod batch;
mod commit;
mod dry_run;
mod durability;
mod effects;
mod feed;
mod figures;
mod forecast_cache;
mod log_line;
mod message;
mod planning;
mod queued_usage;
mod snapshots;
mod state;
mod state_check;
mod training;
mod training_queue;

use std::time::{Duration, Instant};

use cohabit_actor::{Actor, ActorFailure, Context, ReplyTo};
use cohabit_scheduler_core::{Effect, Event, SnapshotPart};
use cohabit_types::{
    ClientRequestId, JobChange, JobId, JobSettings, JobSpec, Order, Principal, Refusal, RefusalCode, Reply,
    Report, Request, Role, Span, Submit, Time, UserLimits, WorkerKey,
};

use crate::journal::JournalWrite;
use crate::rates::BucketRate;
use crate::request_limits::{check_queued_jobs, too_many_in_a_minute};
use crate::sensitivity::check_range;

pub(crate) use message::{
    CopyMessage, Message, Query, SessionHandle, WorkerLookup, WorkerRoute, WorkerSessionMessage,
};
pub(crate) use snapshots::Snapshots;
pub(crate) use state::{Driver, DriverParts};

/// How many messages may wait for the driver.
pub(crate) const CAPACITY: usize = 1_024;
/// How often old rows of the history are deleted.
const PRUNE_INTERVAL: Duration = Duration::from_secs(3_600);
/// How long the feed keeps what it tells.
const FEED_RETENTION: Span = Span::from_secs(7 * 86_400);

impl Actor for Driver {
    type Message = Message;

    async fn started(&mut self, context: &mut Context<Driver>) -> Result<(), ActorFailure> {
        self.state_check.passes(&self.parts.head);
        self.queue(Event::HeadStarted(self.parts.config.clone()), None);
        if self.parts.uses_interference {
            self.queue(Event::InterferenceUpdated, None);
        }
        self.prune();
        self.finish().await?;
        self.allow_running_applications();
        self.request_plan(context);
        self.arm(context);
        context.send_every(PRUNE_INTERVAL, || Message::Prune);
        Ok(())
    }

    async fn handle(&mut self, message: Message, context: &mut Context<Driver>) -> Result<(), ActorFailure> {
        let end = batch::end_of(&message);
        self.dispatch(message, context).await?;
        self.advance(end, context).await?;
        self.request_plan(context);
        self.start_training(context);
        if self.batch.is_empty() && self.durability.is_idle() {
            self.arm(context);
        }
        self.schedule_history(context);
        Ok(())
    }

    /// Events that arrived before the stop are still applied.
    async fn stopped(&mut self) {
        if let Err(failure) = self.finish().await {
            tracing::error!(%failure, "the last events could not be written");
            return;
        }
        self.parts.snapshots.take_last(&self.parts.head, &mut self.state_check, &self.parts.journal).await;
    }
}

/// What an event is, in one line, without arguments and environments.
pub(crate) fn describe_event(event: &Event) -> String {
    log_line::LogLine(event).to_string()
}

impl Driver {
    async fn dispatch(
        &mut self,
        message: Message,
        context: &mut Context<Driver>,
    ) -> Result<(), ActorFailure> {
        match message {
            Message::Request { by, request, restored, reply_to } => {
                self.request(by, request, restored, reply_to);
            }
            Message::Query(query) => self.query(query, context),
            Message::DryRun { by, spec, reply_to } => self.dry_run(&by, *spec, reply_to, context),
            Message::Find(lookup, reply_to) => reply_to.send(self.find_worker(&lookup)),
            Message::Joined { key, inventory, session, welcome, handled } => {
                self.sessions.insert(key, session);
                self.durability.welcome_in_outage(welcome);
                self.queue(Event::Joined(key, inventory), Some(handled));
            }
            Message::Lost(key, reason) => {
                self.sessions.remove(&key);
                self.queue(Event::Lost(key, reason), None);
            }
            Message::Reports(key, reports, handled) => self.reports(key, reports, handled),
            Message::Planned(planned) => self.planned(planned),
            Message::Alarm(set_for) => self.alarm_fired(set_for),
            Message::Forecast(forecasts) => self.forecasts_arrived(forecasts),
            Message::FinishedDryRun(finished) => self.finish_dry_run(*finished),
            Message::Models { by, choice, reply_to } => self.models(&by, choice, reply_to, context),
            Message::TrainingUpdate(update) => self.training_update(update, context),
            Message::MisfitsLearned(update) => self.misfits_learned(update, context),
            Message::TrainingPauseEnded => self.training_queue.end_pause(),
            Message::Prune => self.prune(),
            Message::Flush => {}
            Message::FlushHistory => self.flush_late_history().await?,
            // While the journal cannot be written, readers get no answer here, and what is there.
            Message::SettleHistory(_) if self.durability.error().is_some() => {}
            Message::SettleHistory(settled) => self.pass_history(Some(settled)).await?,
            Message::Committed => self.committed(context).await?,
            Message::Retry => self.retry(context).await?,
        }
        Ok(())
    }

    fn request(
        &mut self,
        by: Principal,
        mut request: Request,
        restored: Vec<SnapshotPart>,
        reply_to: ReplyTo<Reply>,
    ) {
        if let Some(refusal) = self.durability.refusal().or_else(|| self.state_check.refusal()) {
            return reply_to.send(Reply::Refused(refusal));
        }
        if let Some(reply) = self.reply_at_once(&by, &request, Instant::now()) {
            return reply_to.send(reply);
        }
        if let Request::Submit(submit) = &mut request {
            self.fill_estimates(&by.user, submit);
        }
        restored.into_iter().for_each(|part| self.queue(Event::Restored(part), None));
        self.last_client += 1;
        let client = ClientRequestId(self.last_client);
        self.clients.insert(client, reply_to);
        self.queue(Event::Client(client, by, request), None);
    }

    /// The reply to a request that changes nothing, or goes beyond the limits of its user: it is not written
    /// down.
    fn reply_at_once(&mut self, by: &Principal, request: &Request, now: Instant) -> Option<Reply> {
        let is_limited = by.role != Role::Admin;
        // Even a look at an array takes a step for each member.
        if let Request::Change(_, jobs) | Request::Update(_, jobs) = request
            && is_limited
            && let Err(refusal) = self.check_change_rate(&by.user, jobs, now)
        {
            return Some(Reply::Refused(refusal));
        }
        if let Some(reply) = self.parts.head.reply_without_change(by, request) {
            return Some(reply);
        }
        if let Request::Submit(submit) = request
            && let Err(refusal) = self.check_new(&submit.spec)
        {
            return Some(Reply::Refused(refusal));
        }
        let refused = match request {
            Request::Submit(submit) if is_limited => self.check_submission(&by.user, submit, now),
            Request::Change(change, _) if is_limited => self.check_change(&by.user, *change),
            Request::Update(JobSettings { priority: Some(priority), .. }, _) if is_limited => {
                self.parts.limits.check_priority(*priority)
            }
            Request::Submit(_)
            | Request::Change(..)
            | Request::Update(..)
            | Request::Drain(_)
            | Request::Resume(_)
            | Request::ApplyShares(_)
            | Request::Reserve(_)
            | Request::CancelReservation(_) => Ok(()),
        };
        refused.err().map(Reply::Refused)
    }

    /// Refuses what a journal may hold, and no new job may be.
    fn check_new(&self, spec: &JobSpec) -> Result<(), Refusal> {
        spec.check_name().map_err(|why| Refusal::new(RefusalCode::Invalid, why))?;
        check_range(&self.parts.sensitivity, spec)
    }

    fn check_change_rate(&mut self, user: &str, jobs: &[JobId], now: Instant) -> Result<(), Refusal> {
        let limits = &self.parts.limits;
        let members = self.parts.head.members_of(jobs);
        let rate = BucketRate::per_second(limits.changes_per_second);
        match self.change_rates.take(user.to_owned(), members, rate, now) {
            true => Ok(()),
            false => Err(limits.changes_too_fast(user)),
        }
    }

    fn check_submission(&mut self, user: &str, submit: &Submit, now: Instant) -> Result<(), Refusal> {
        let limits = &self.parts.limits;
        let rate = BucketRate::per_second(limits.submits_per_second);
        if !self.submit_rates.take(user.to_owned(), 1, rate, now) {
            return Err(limits.submits_too_fast(user));
        }
        let usage = self.queued_usage.with(user, self.parts.head.usage(user));
        limits.check_submission(user, usage, submit)?;
        let UserLimits { queued_jobs, submits_per_minute, .. } = self.parts.head.share_table().user;
        check_queued_jobs(user, usage, submit, queued_jobs)?;
        match submits_per_minute {
            Some(most) if !self.minute_rates.take(user.to_owned(), 1, BucketRate::per_minute(most), now) => {
                Err(too_many_in_a_minute(user, most))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn check_change(&self, user: &str, change: JobChange) -> Result<(), Refusal> {
        self.parts.limits.check_change(user, self.parts.head.usage(user), change)
    }

    /// Answers from memory. A question that a broken state cannot answer gets no reply, which its session
    /// reports.
    fn answer(&mut self, query: Query) {
        let now = self.parts.clock.now();
        self.state_check.guard(|| self.read(now, query));
    }

    fn read(&self, now: Time, query: Query) {
        let head = &self.parts.head;
        let reader = head.at(now).with_forecasts(self.forecast_cache.forecasts());
        let reader = reader.with_past_runs(self.parts.estimates.past_runs());
        match query {
            Query::Resolve(by, references, reply_to) => reply_to.send(head.resolve(&by, &references)),
            Query::List(filter, reply_to) => reply_to.send(reader.list(&filter)),
            Query::Show(jobs, reply_to) => reply_to.send(reader.show(&jobs)),
            Query::Explain(job, reply_to) => reply_to.send(reader.explain(job)),
            Query::Problems(reply_to) => reply_to.send(self.problems()),
            Query::Nodes(reply_to) => reply_to.send(head.node_records()),
            Query::Figures(reply_to) => {
                reply_to.send(self.figures.complete(head.figures(now), self.problems()));
            }
            Query::CheckShares(by, table, reply_to) => {
                let refused = head.reply_without_change(&by, &Request::ApplyShares(table));
                reply_to.send(match refused {
                    Some(Reply::Refused(refusal)) => Err(refusal),
                    Some(_) | None => Ok(()),
                });
            }
            Query::Shares(reply_to) => reply_to.send(head.share_report(now)),
            Query::Reservations(reply_to) => reply_to.send(head.reservations().cloned().collect()),
            Query::LiveAccounts(reply_to) => reply_to.send(head.live_accounts()),
            Query::LiveUsage(jobs, reply_to) => reply_to.send(head.live_usage(&jobs, now)),
            Query::ChangedSince(known, reply_to) => reply_to.send(reader.changed_since(&known)),
            Query::Brief(jobs, reply_to) => reply_to.send(reader.brief_records(&jobs)),
            Query::Archived(by, jobs, reply_to) => reply_to.send(head.archived_among(&by, &jobs)),
            Query::NoChild(application, jobs, reply_to) => {
                reply_to.send(jobs.into_iter().find(|job| !head.is_child(*job, application)));
            }
            Query::Applications(Some(user), reply_to) => reply_to.send(head.applications(&user)),
            Query::Applications(None, reply_to) => reply_to.send(head.all_applications()),
            Query::Application(root, reply_to) => reply_to.send(head.application(root)),
            Query::CodeInUse(user, reply_to) => reply_to.send(head.code_in_use(&user)),
            Query::CodeOn(node, job, reply_to) => {
                let found = head.code_on(node, job);
                reply_to.send(found.map(|(user, code)| (user.to_owned(), code.clone())));
            }
            Query::CheckpointsFor(node, attempt, node_rank, reply_to) => {
                let found = head.checkpoints_for(node, attempt, node_rank);
                reply_to.send(found.map(|(source, keeper)| {
                    let route = self.route_to(source.node.clone(), head.link_of(keeper));
                    (source, route)
                }));
            }
            Query::Known(jobs, reply_to) => {
                reply_to.send(jobs.into_iter().filter(|job| head.revision(*job).is_some()).collect());
            }
        }
    }

    fn problems(&self) -> Vec<String> {
        let broken = self.state_check.refusal().map(|refusal| refusal.message);
        self.durability.problem().into_iter().chain(broken).collect()
    }

    fn find_worker(&self, lookup: &WorkerLookup) -> Option<WorkerRoute> {
        let head = &self.parts.head;
        let (node, link) = match lookup {
            WorkerLookup::Rank(rank) => head.worker_of(*rank)?,
            WorkerLookup::Node(name) => (name.clone(), head.link_of(head.node_named(name)?)),
        };
        Some(self.route_to(node, link))
    }

    fn route_to(&self, node: String, link: Option<WorkerKey>) -> WorkerRoute {
        let session = link.and_then(|key| self.sessions.get(&key)).map(|session| session.orders.clone());
        WorkerRoute { node, session }
    }

    /// Queues a worker's reports, as far as they tell something new; `handled` is completed after the last
    /// one.
    fn reports(&mut self, key: WorkerKey, reports: Vec<Report>, handled: ReplyTo<()>) {
        let mut events = Vec::with_capacity(reports.len());
        for report in reports {
            // The head itself does not use samples; they go to the trainer and the history.
            if let Report::ColocationSamples(samples) = report {
                self.record_samples(&samples);
                self.history.push(JournalWrite::Samples(samples));
                continue;
            }
            if let Report::Telemetry(telemetry) = &report {
                self.observe_telemetry(key.node, telemetry);
            }
            if self.parts.head.changes_nothing(key, &report) {
                self.acknowledge_known_end(key, &report);
                continue;
            }
            events.push(Event::Report(key, report));
        }
        let Some(last) = events.pop() else { return handled.send(()) };
        events.into_iter().for_each(|event| self.queue(event, None));
        self.queue(last, Some(handled));
    }

    /// A worker repeats the end of a rank until it hears that the head knows it.
    fn acknowledge_known_end(&mut self, key: WorkerKey, report: &Report) {
        let is_linked = self.parts.head.link_of(key.node) == Some(key);
        if let Report::Ended { rank, .. } = report
            && is_linked
        {
            self.perform(Effect::SendOrder(key, Order::Acknowledge(*rank)));
        }
    }

    /// Deletes old rows with the next batch: a head without events has nothing new to delete.
    fn prune(&mut self) {
        let (now, retention) = (self.parts.clock.now(), self.parts.config.retention);
        let history = now - self.parts.history_retention;
        // The head forgets archived jobs in steps of a sixtieth of the retention.
        let archive = now - (retention + Span::from_micros(retention.as_micros() / 30));
        let feed = now - FEED_RETENTION;
        self.history.push(JournalWrite::Prune { history, archive, feed });
        self.history.push(JournalWrite::PruneReports(now - self.parts.report_retention));
    }
}
