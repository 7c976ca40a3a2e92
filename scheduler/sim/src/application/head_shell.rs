//! What happens between the coordinator, the head and the nodes: submissions, attempts and their ends.

use cohabit_application_core::{ActorId, Coordinator, RunnerState, TaskRunnerNumber};
use cohabit_types::{JobId, RankId, Share};

use super::event::{ApplicationEvent, HeadEvent, Pair};
use super::head::{NextStep, RunnerPurpose, RunnerRequest};
use super::node_index::NodeIndex;
use super::process::{Process, ProcessCode};
use super::simulated_store::StoreCall;
use super::world::{ApplicationWorld, HEAD_DELAY, ProgramPhase, SOON, STEP_DELAY};

impl ApplicationWorld {
    pub(super) fn handle_by_head(&mut self, event: HeadEvent) {
        match event {
            HeadEvent::Submit { first, request } => self.submit_gang(first, request),
            HeadEvent::Submitted { first, job } => {
                let result = job.ok_or_else(|| "no node has so many GPUs".to_owned());
                self.drive_coordinator(|it, effects| it.submitted(first, result, effects));
            }
            HeadEvent::SubmitTaskRunner { runner, request } => {
                self.submit_task_runner(runner, request);
            }
            HeadEvent::TaskRunnerSubmitted { runner, job } => {
                let result = job.ok_or_else(|| "no node has so many GPUs".to_owned());
                self.drive_coordinator(|it, effects| it.task_runner_submitted(runner, result, effects));
            }
            HeadEvent::SurplusOver(class) => {
                self.drive_coordinator(|it, effects| it.surplus_over(&class, effects));
            }
            HeadEvent::StoreOverdue { node, restarts } => {
                self.drive_coordinator(|it, effects| it.store_overdue(node, restarts, effects));
            }
            HeadEvent::YieldDue => self.drive_coordinator(Coordinator::yield_due),
            HeadEvent::ClosingOver(closing) => {
                self.drive_coordinator(|it, effects| it.closing_over(closing, effects));
            }
            HeadEvent::PatienceOver(job) => {
                self.drive_coordinator(|it, effects| it.patience_over(job, effects));
            }
            HeadEvent::Cancel(job) => {
                for member in self.head.cancel(job) {
                    self.head_soon(HeadEvent::EndOrder(member));
                }
                self.head_soon(HeadEvent::Report(job));
            }
            HeadEvent::StartAttempt(job) => self.start_attempt(job),
            HeadEvent::Kill(member) => self.kill(member, 137),
            HeadEvent::RankEnded(member) => self.rank_ended(member),
            HeadEvent::Report(job) => self.report(job),
            HeadEvent::StartMain => _ = self.start_main(),
            HeadEvent::EndOrder(member) => self.end_by_order(member),
            HeadEvent::SubmitStore { node, request } => {
                let job = self.submit(request);
                self.head_soon(HeadEvent::StoreSubmitted { node, job });
            }
            HeadEvent::StoreSubmitted { node, job } => {
                self.drive_coordinator(|it, effects| it.store_submitted(node, Ok(job), effects));
            }
        }
    }

    /// The head does something, or is asked for it, in its own time.
    pub(super) fn head_soon(&mut self, event: HeadEvent) {
        self.after(HEAD_DELAY, ApplicationEvent::Head(event));
    }

    /// A user starts a main.
    pub(super) fn start_main(&mut self) -> JobId {
        let purpose = RunnerPurpose::Main;
        let job = self.head.submit(RunnerRequest { purpose, restarts: 0, ranks: 1, gpus: Share(0) });
        self.drive_coordinator(|it, effects| it.main(job, effects));
        self.head_soon(HeadEvent::StartAttempt(job));
        job
    }

    fn submit_gang(&mut self, first: ActorId, request: RunnerRequest) {
        let is_too_large = self.capacity.is_some_and(|capacity| request.gpus > capacity);
        if self.random.chance(0.02) || is_too_large {
            self.ledger.refused.insert(first);
            self.head_soon(HeadEvent::Submitted { first, job: None });
            return;
        }
        self.counters.gangs += u64::from(request.ranks > 1);
        let job = self.submit(request);
        self.jobs.insert(first, job);
        self.head_soon(HeadEvent::Submitted { first, job: Some(job) });
    }

    fn submit_task_runner(&mut self, runner: TaskRunnerNumber, request: RunnerRequest) {
        let others = self.head.jobs.values().filter(|it| it.ended.is_none());
        let others = others.filter(|it| it.request.purpose == request.purpose).count();
        let is_too_large = self.capacity.is_some_and(|capacity| request.gpus > capacity);
        if self.random.chance(0.02) || others >= self.most_runners || is_too_large {
            if let RunnerPurpose::Tasks(class) = request.purpose {
                self.task_ledger.refused(class);
            }
            self.head_soon(HeadEvent::TaskRunnerSubmitted { runner, job: None });
            return;
        }
        self.counters.task_runners += 1;
        let job = self.submit(request);
        self.head_soon(HeadEvent::TaskRunnerSubmitted { runner, job: Some(job) });
    }

    fn submit(&mut self, request: RunnerRequest) -> JobId {
        let job = self.head.submit(request);
        let used = Share(self.head.gpus_in_use());
        if self.ceiling.is_some_and(|ceiling| used > ceiling) {
            self.ledger.violated(format!("the jobs of the application claim {used} GPUs"));
        }
        self.head_soon(HeadEvent::Report(job));
        self.head_soon(HeadEvent::StartAttempt(job));
        job
    }

    pub(super) fn start_attempt(&mut self, job: JobId) {
        if !self.has_gpus_for(job) {
            self.without_room.push(job);
            return;
        }
        let Some(nodes) = self.places_for(job) else { return };
        for (member, node) in self.head.start_attempt(job).into_iter().zip(nodes) {
            self.nodes.place(member, node);
            self.start_process(member);
        }
        self.head_soon(HeadEvent::Report(job));
    }

    fn start_process(&mut self, member: RankId) {
        let RunnerRequest { purpose, ranks, .. } = self.head.jobs[&member.job()].request;
        let (code, steps) = match purpose {
            RunnerPurpose::Main if self.phase == ProgramPhase::Work => {
                (ProcessCode::Main, self.random.between(5, 60))
            }
            RunnerPurpose::Main => (ProcessCode::Main, 0),
            RunnerPurpose::Gang(_) => (ProcessCode::Actor, self.random.between(0, 10) / u64::from(ranks)),
            RunnerPurpose::Tasks(_) => (ProcessCode::Tasks, 0),
            RunnerPurpose::Store(_) => (ProcessCode::Store, 0),
        };
        self.processes.insert(member, Process::new(member, self.own, code, steps as u32));
        self.counters.processes += 1;
        self.make_session(Pair { dialer: member, acceptor: self.own });
        if code == ProcessCode::Store {
            self.start_store(member);
        }
        if code == ProcessCode::Main && steps > 0 {
            self.after(STEP_DELAY, ApplicationEvent::Step(member));
        }
        if code == ProcessCode::Tasks && self.now < self.quiet_at && self.random.chance(self.early_death) {
            self.after(SOON, ApplicationEvent::Head(HeadEvent::Kill(member)));
        }
    }

    /// Where the next processes of a job run, if they can be started now.
    fn places_for(&mut self, job: JobId) -> Option<Vec<NodeIndex>> {
        let request = self.head.jobs.get(&job)?.request;
        (0..request.ranks).map(|_| self.place_for(job, request.purpose)).collect()
    }

    fn place_for(&mut self, job: JobId, purpose: RunnerPurpose) -> Option<NodeIndex> {
        let node = match purpose {
            RunnerPurpose::Main => NodeIndex::FIRST,
            RunnerPurpose::Gang(_) | RunnerPurpose::Tasks(_) => self.nodes.draw(),
            RunnerPurpose::Store(node) => node,
        };
        if !self.nodes.is_reached(node) {
            self.nodes.postpone(node, HeadEvent::StartAttempt(job));
            return None;
        }
        let is_store = matches!(purpose, RunnerPurpose::Store(_));
        if is_store && self.nodes.store(node).is_some() {
            self.head_soon(HeadEvent::StartAttempt(job));
            return None;
        }
        Some(node)
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
    pub(super) fn place_again(&mut self) {
        for job in std::mem::take(&mut self.without_room) {
            self.after(SOON, ApplicationEvent::Head(HeadEvent::StartAttempt(job)));
        }
    }

    /// Ends a process.
    pub(super) fn kill(&mut self, member: RankId, code: i32) {
        if let Some(process) = self.processes.remove(&member) {
            if code != 0 || self.head.has_several_attempts(member.job()) {
                self.task_ledger.process_died(member);
            }
            if let RunnerPurpose::Tasks(class) = self.head.jobs[&member.job()].request.purpose
                && !process.serves
            {
                self.task_ledger.died_early(class);
            }
            if process.code == ProcessCode::Tasks {
                self.disturbed_at = self.now;
            }
            self.codes.insert(member, code);
            self.close_all_sessions(member);
            if process.code == ProcessCode::Store {
                self.end_store(member);
            }
            self.ask_store(member, StoreCall::Ended);
            self.head_soon(HeadEvent::RankEnded(member));
        }
    }

    /// The head ends a process, as soon as it reaches its node.
    fn end_by_order(&mut self, member: RankId) {
        let node = self.nodes.of(member);
        if self.nodes.is_reached(node) {
            self.kill(member, 137);
        } else {
            self.nodes.postpone(node, HeadEvent::EndOrder(member));
        }
    }

    fn rank_ended(&mut self, member: RankId) {
        let node = self.nodes.of(member);
        if !self.nodes.is_known(node) {
            return self.nodes.postpone(node, HeadEvent::RankEnded(member));
        }
        let code = self.codes.remove(&member).unwrap_or(1);
        match self.head.rank_ended(member, code) {
            NextStep::Retry => self.head_soon(HeadEvent::StartAttempt(member.job())),
            NextStep::EndOthers(others) => {
                others.into_iter().for_each(|other| self.head_soon(HeadEvent::EndOrder(other)));
            }
            NextStep::Nothing => {}
        }
        self.head_soon(HeadEvent::Report(member.job()));
        self.place_again();
    }
}
