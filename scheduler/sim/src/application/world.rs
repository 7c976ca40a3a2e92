//! The processes of an application, event by event.

use std::collections::BTreeMap;

use cohabit_application_core::{
    ActorId, Coordinator, FromCoordinator, HeldId, RunnerState, TaskClass, TaskRunnerNumber, ToCaller,
};
use cohabit_types::{AttemptId, JobId, Share, Span, Time};

use super::counters::ApplicationCounters;
use super::event::{AnyFrame, ApplicationEvent, End, Pair};
use super::head::{HeadModel, NextStep, RunnerPurpose, RunnerRequest};
use super::ledger::{ActorHistory, Ledger};
use super::network::SessionNetwork;
use super::object_ledger::ObjectLedger;
use super::planted_bug::ApplicationBug;
use super::process::{Process, ProcessCode};
use super::simulated_store::{SimulatedStore, StoreCall};
use super::task_ledger::TaskLedger;
use crate::digest::Digest;
use crate::event_queue::EventQueue;
use crate::random::Random;
use crate::recorder::Recorder;

/// How long the head takes for anything.
const HEAD_DELAY: (Span, Span) = (Span::from_millis(1), Span::from_secs(2));
const STEP_DELAY: (Span, Span) = (Span::from_micros(1), Span::from_millis(100));
const SOON: (Span, Span) = (Span::from_micros(1), Span::from_millis(5));
const LONG: (Span, Span) = (Span::from_millis(5), Span::from_secs(3));

/// Everything.
#[derive(Debug)]
pub(super) struct ApplicationWorld {
    pub(super) now: Time,
    pub(super) queue: EventQueue<ApplicationEvent>,
    pub(super) random: Random,
    pub(super) own: AttemptId,
    pub(super) coordinator: Coordinator,
    pub(super) processes: BTreeMap<AttemptId, Process>,
    pub(super) network: SessionNetwork,
    pub(super) head: HeadModel,
    pub(super) ceiling: Option<Share>,
    /// The GPUs of the node.
    pub(super) capacity: Option<Share>,
    pub(super) actors_have_gpus: bool,
    /// Jobs for whose next attempt there are too few GPUs.
    pub(super) without_room: Vec<JobId>,
    pub(super) ledger: Ledger,
    pub(super) task_ledger: TaskLedger,
    pub(super) objects: ObjectLedger,
    pub(super) store: SimulatedStore,
    /// The classes of runners of tasks, by their number.
    pub(super) task_classes: Vec<TaskClass>,
    /// Chance that a runner of tasks ends before it connects.
    pub(super) early_death: f64,
    /// The head refuses more runners of a class.
    pub(super) most_runners: usize,
    pub(super) phase: ProgramPhase,
    /// Faults happen before this time only.
    pub(super) quiet_at: Time,
    /// Chance that a process dies before an effect.
    pub(super) death: f64,
    pub(super) plant: Option<ApplicationBug>,
    /// By holder, lender and what is held: for `UnsignedCounters`.
    pub(super) unsigned: BTreeMap<(AttemptId, AttemptId, HeldId), u64>,
    /// How processes ended, until the head learns of it.
    pub(super) codes: BTreeMap<AttemptId, i32>,
    /// Jobs of actors.
    pub(super) jobs: BTreeMap<ActorId, JobId>,
    pub(super) last_tag: u64,
    pub(super) exit: Option<i32>,
    pub(super) counters: ApplicationCounters,
    pub(super) digest: Digest,
    pub(super) recorder: Recorder,
}

/// What users' code does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramPhase {
    /// Programs run.
    Work,
    /// Programs give everything back.
    WindDown,
}

impl ApplicationWorld {
    pub(super) fn after(&mut self, delay: (Span, Span), event: ApplicationEvent) {
        let at = self.now + self.random.span(delay);
        self.queue.put(at, event);
    }

    /// Handles events until there are none, or until something is violated.
    pub(super) fn drain(&mut self, most: u64) -> Drained {
        while let Some((at, event)) = self.queue.next() {
            self.now = at;
            self.counters.events += 1;
            self.digest.record_event(at, &event);
            self.recorder.add(at, || format!("{event:?}"));
            self.handle(event);
            if self.ledger.violation.is_some() || self.exit.is_some() {
                return Drained::Stopped;
            }
            if self.counters.events > most {
                return Drained::Endless;
            }
        }
        Drained::AtRest
    }

    fn handle(&mut self, event: ApplicationEvent) {
        match event {
            ApplicationEvent::Dial(pair) => self.dial(pair),
            ApplicationEvent::Deliver { pair, link, at, content } => self.deliver(pair, link, at, content),
            ApplicationEvent::Notice { pair, link, at } => self.notice(pair, link, at),
            ApplicationEvent::Acknowledge { pair, at } => self.acknowledge(pair, at),
            ApplicationEvent::Step(member) => self.step(member),
            ApplicationEvent::MethodEnd { member, ticket } => self.end_method(member, ticket),
            ApplicationEvent::TaskStep { member, ticket } => self.step_task(member, ticket),
            ApplicationEvent::Read { member, call } => self.read_stream(member, call),
            ApplicationEvent::Rested { member, rest } => {
                self.drive(member, |it, effects| it.core.rested(rest, effects));
            }
            ApplicationEvent::Abandon { member, ticket } => self.abandon(member, ticket),
            ApplicationEvent::Settle { member, code } => self.settle(member, code),
            ApplicationEvent::AskStore { member, request } => self.store_receives(member, request),
            ApplicationEvent::StoreReplies { member, reply } => self.store_reply_arrives(member, reply),
            ApplicationEvent::Store(work) => self.store_works(work),
            ApplicationEvent::Filled { member, object } => {
                if self.processes.contains_key(&member) {
                    self.ask_store(member, StoreCall::Filled(object));
                }
            }
            ApplicationEvent::Unmap { member, object } => {
                if self.processes.contains_key(&member) {
                    self.ask_store(member, StoreCall::Unmapped(object));
                }
            }
            ApplicationEvent::ConstructorEnd { member, incarnation } => {
                self.end_constructor(member, incarnation);
            }
            ApplicationEvent::Submit { actor, request } => self.submit_runner(actor, request),
            ApplicationEvent::Submitted { actor, job } => {
                let result = job.ok_or_else(|| "no node has so many GPUs".to_owned());
                self.drive_coordinator(|it, effects| it.submitted(actor, result, effects));
            }
            ApplicationEvent::SubmitTaskRunner { runner, request } => {
                self.submit_task_runner(runner, request);
            }
            ApplicationEvent::TaskRunnerSubmitted { runner, job } => {
                let result = job.ok_or_else(|| "no node has so many GPUs".to_owned());
                self.drive_coordinator(|it, effects| it.task_runner_submitted(runner, result, effects));
            }
            ApplicationEvent::SurplusOver(class) => {
                self.drive_coordinator(|it, effects| it.surplus_over(&class, effects));
            }
            ApplicationEvent::PatienceOver(job) => {
                self.drive_coordinator(|it, effects| it.patience_over(job, effects));
            }
            ApplicationEvent::Cancel(job) => {
                for member in self.head.cancel(job) {
                    self.after(HEAD_DELAY, ApplicationEvent::Kill(member));
                }
                self.after(HEAD_DELAY, ApplicationEvent::Report(job));
            }
            ApplicationEvent::StartAttempt(job) => self.start_attempt(job),
            ApplicationEvent::Kill(member) => self.kill(member, 137),
            ApplicationEvent::AttemptEnded(member) => self.attempt_ended(member),
            ApplicationEvent::Report(job) => self.report(job),
            ApplicationEvent::StartMain => _ = self.start_main(),
            ApplicationEvent::Fault(fault) => self.inject(fault),
        }
    }

    pub(super) fn receive_frame(&mut self, pair: Pair, at: End, frame: AnyFrame) {
        match (frame, at) {
            (AnyFrame::ToCoordinator(frame), End::Acceptor) => self.coordinator_receives(pair.dialer, frame),
            (AnyFrame::FromCoordinator(frame), End::Dialer) => {
                self.forget_handovers(pair.dialer, &frame);
                if self.plant == Some(ApplicationBug::LostReturn)
                    && matches!(frame, FromCoordinator::RunnerEnded { .. })
                {
                    return;
                }
                if frame == FromCoordinator::End {
                    self.process(pair.dialer).was_told_to_end = true;
                }
                if matches!(frame, FromCoordinator::ServeTasks { .. }) {
                    self.process(pair.dialer).serves = true;
                }
                self.drive(pair.dialer, |it, effects| it.core.receive(frame, effects));
            }
            (AnyFrame::ToCallee(frame), End::Acceptor) => self.drive(pair.acceptor, |it, effects| {
                it.core.receive_from_caller(pair.dialer, frame, effects);
            }),
            (AnyFrame::ToCaller(frame), End::Dialer) => self.drive(pair.dialer, |it, effects| {
                it.core.receive_from_callee(pair.acceptor, frame, effects);
            }),
            (AnyFrame::ToCoordinator(_) | AnyFrame::ToCallee(_), End::Dialer)
            | (AnyFrame::FromCoordinator(_) | AnyFrame::ToCaller(_), End::Acceptor) => {
                self.ledger.violated("a frame went the wrong way".to_owned());
            }
        }
    }

    /// Whether the accepting process of a new connection lives and lets the other one in.
    pub(super) fn admits(&self, pair: Pair) -> bool {
        if pair.acceptor == self.own {
            self.coordinator.admits(pair.dialer)
        } else {
            self.processes.get(&pair.acceptor).is_some_and(|it| it.core.admits(pair.dialer))
        }
    }

    /// A user starts a main.
    pub(super) fn start_main(&mut self) -> JobId {
        let purpose = RunnerPurpose::Main;
        let job = self.head.submit(RunnerRequest { purpose, restarts: 0, gpus: Share(0) });
        self.drive_coordinator(|it, effects| it.main(job, effects));
        self.after(HEAD_DELAY, ApplicationEvent::StartAttempt(job));
        job
    }

    fn submit_runner(&mut self, actor: ActorId, request: RunnerRequest) {
        if self.random.chance(0.02) {
            self.ledger.refused.insert(actor);
            self.after(HEAD_DELAY, ApplicationEvent::Submitted { actor, job: None });
            return;
        }
        let job = self.submit(request);
        self.jobs.insert(actor, job);
        self.after(HEAD_DELAY, ApplicationEvent::Submitted { actor, job: Some(job) });
    }

    fn submit_task_runner(&mut self, runner: TaskRunnerNumber, request: RunnerRequest) {
        let others = self.head.jobs.values().filter(|it| it.ended.is_none());
        let others = others.filter(|it| it.request.purpose == request.purpose).count();
        let is_too_large = self.capacity.is_some_and(|capacity| request.gpus > capacity);
        if self.random.chance(0.02) || others >= self.most_runners || is_too_large {
            if let RunnerPurpose::Tasks(class) = request.purpose {
                self.task_ledger.refused(class);
            }
            self.after(HEAD_DELAY, ApplicationEvent::TaskRunnerSubmitted { runner, job: None });
            return;
        }
        self.counters.task_runners += 1;
        let job = self.submit(request);
        self.after(HEAD_DELAY, ApplicationEvent::TaskRunnerSubmitted { runner, job: Some(job) });
    }

    fn submit(&mut self, request: RunnerRequest) -> JobId {
        let job = self.head.submit(request);
        let used = Share(self.head.gpus_in_use());
        if self.ceiling.is_some_and(|ceiling| used > ceiling) {
            self.ledger.violated(format!("the jobs of the application claim {used} GPUs"));
        }
        self.after(HEAD_DELAY, ApplicationEvent::Report(job));
        self.after(HEAD_DELAY, ApplicationEvent::StartAttempt(job));
        job
    }

    pub(super) fn start_attempt(&mut self, job: JobId) {
        if !self.has_gpus_for(job) {
            self.without_room.push(job);
            return;
        }
        let Some(member) = self.head.start_attempt(job) else { return };
        let purpose = self.head.jobs[&job].request.purpose;
        let (code, steps) = match purpose {
            RunnerPurpose::Main if self.phase == ProgramPhase::Work => {
                (ProcessCode::Main, self.random.between(5, 60))
            }
            RunnerPurpose::Main => (ProcessCode::Main, 0),
            RunnerPurpose::Actor(_) => (ProcessCode::Actor, self.random.between(0, 10)),
            RunnerPurpose::Tasks(_) => (ProcessCode::Tasks, 0),
        };
        self.processes.insert(member, Process::new(member, self.own, code, steps as u32));
        self.counters.processes += 1;
        self.make_session(Pair { dialer: member, acceptor: self.own });
        if code == ProcessCode::Main && steps > 0 {
            self.after(STEP_DELAY, ApplicationEvent::Step(member));
        }
        if code == ProcessCode::Tasks && self.now < self.quiet_at && self.random.chance(self.early_death) {
            self.after(SOON, ApplicationEvent::Kill(member));
        }
        self.after(HEAD_DELAY, ApplicationEvent::Report(job));
    }

    /// Most GPUs that the jobs of the application can have at the same time.
    pub(super) fn gpu_limit(&self) -> Option<Share> {
        self.ceiling.into_iter().chain(self.capacity).min()
    }

    fn has_gpus_for(&self, job: JobId) -> bool {
        let needed = self.head.jobs.get(&job).map_or(0, |it| it.request.gpus.0);
        let is_first = self.head.report(job).is_none_or(|it| it.state != RunnerState::Live);
        let room = |Share(most)| self.head.gpus_of_processes() + needed <= most;
        needed == 0 || !is_first || self.capacity.is_none_or(room)
    }

    /// Jobs that have waited for GPUs may have room now.
    fn place_again(&mut self) {
        for job in std::mem::take(&mut self.without_room) {
            self.after(SOON, ApplicationEvent::StartAttempt(job));
        }
    }

    /// Ends a process.
    pub(super) fn kill(&mut self, member: AttemptId, code: i32) {
        if let Some(process) = self.processes.remove(&member) {
            if code != 0 {
                self.task_ledger.process_died(member);
            }
            if let RunnerPurpose::Tasks(class) = self.head.jobs[&member.job].request.purpose
                && !process.serves
            {
                self.task_ledger.died_early(class);
            }
            self.codes.insert(member, code);
            self.close_all_sessions(member);
            self.ask_store(member, StoreCall::Ended);
            self.after(HEAD_DELAY, ApplicationEvent::AttemptEnded(member));
        }
    }

    fn attempt_ended(&mut self, member: AttemptId) {
        let code = self.codes.remove(&member).unwrap_or(1);
        if self.head.attempt_ended(member, code) == NextStep::Retry {
            self.after(HEAD_DELAY, ApplicationEvent::StartAttempt(member.job));
        }
        self.after(HEAD_DELAY, ApplicationEvent::Report(member.job));
        self.place_again();
    }

    /// For `ForgottenHandover`: as if a runner that has ended had given back all tasks.
    fn forget_handovers(&mut self, member: AttemptId, frame: &FromCoordinator) {
        if let FromCoordinator::MemberEnded { member: runner } = *frame
            && self.plant == Some(ApplicationBug::ForgottenHandover)
        {
            let process = self.processes.get(&member);
            let calls: Vec<_> = process.into_iter().flat_map(|it| it.task_calls.keys().copied()).collect();
            for call in calls {
                self.drive(member, |it, effects| {
                    it.core.receive_from_callee(runner, ToCaller::Returned { call }, effects);
                });
            }
        }
    }

    /// Whether the job of an actor has ended, and how its processes fared.
    pub(super) fn history(&self, actor: ActorId) -> ActorHistory {
        let job = self.jobs.get(&actor);
        let record = job.and_then(|job| self.head.jobs.get(job));
        let has_died = |job: &JobId| self.head.report(*job).is_some_and(|it| it.ended_attempts > 0);
        ActorHistory {
            died: job.is_some_and(has_died),
            given_up: record.is_some_and(|it| it.ended.is_some() && !it.cancelled),
        }
    }

    /// The process of a main or actor does its next step soon.
    pub(super) fn step_soon(&mut self, member: AttemptId) {
        self.after(STEP_DELAY, ApplicationEvent::Step(member));
    }

    pub(super) fn method_ends_soon(&mut self, event: ApplicationEvent) {
        let delay = if self.random.chance(0.8) { SOON } else { LONG };
        self.after(delay, event);
    }
}

/// Why the events ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drained {
    AtRest,
    Stopped,
    Endless,
}
