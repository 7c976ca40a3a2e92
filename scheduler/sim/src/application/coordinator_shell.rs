//! The shell of the simulated coordinator: it carries out effects, and plants bugs around the core.

use cohabit_application_core::{Coordinator, CoordinatorEffect, FromCoordinator, ToCoordinator, ToDirectory};
use cohabit_types::{JobId, RankId, Span};

use super::event::{AnyFrame, ApplicationEvent, End, HeadEvent, Pair};
use super::head::{RunnerPurpose, RunnerRequest};
use super::planted_bug::ApplicationBug;
use super::process::Process;
use super::world::ApplicationWorld;

const REQUEST_DELAY: (Span, Span) = (Span::from_millis(1), Span::from_millis(500));
/// How long a process that was told to end has time for it.
const PATIENCE: (Span, Span) = (Span::from_secs(10), Span::from_secs(15));

/// Pause between runners of tasks that make room.
const YIELD_PAUSE: (Span, Span) = (Span::from_millis(100), Span::from_secs(2));

impl ApplicationWorld {
    pub(super) fn drive_coordinator(
        &mut self,
        act: impl FnOnce(&mut Coordinator, &mut Vec<CoordinatorEffect>),
    ) {
        let mut effects = Vec::new();
        act(&mut self.coordinator, &mut effects);
        if effects.iter().any(|effect| matches!(effect, CoordinatorEffect::AwaitClosing { .. })) {
            self.ledger.over();
        }
        for effect in effects {
            self.digest.record_event(self.now, &effect);
            self.recorder.add(self.now, || format!("coordinator: {effect:?}"));
            match effect {
                CoordinatorEffect::Send { to, frame } => {
                    if frame == FromCoordinator::End {
                        self.tell_to_end(to);
                    }
                    if let FromCoordinator::Created { request, result } = &frame {
                        self.ledger.answered(to, *request, result.as_ref().ok());
                    }
                    self.check_word_of_nodes(to, &frame);
                    if self.passes_to_runner(to, &frame) {
                        let pair = Pair { dialer: to, acceptor: self.own };
                        self.send(pair, End::Acceptor, AnyFrame::FromCoordinator(frame));
                    }
                }
                CoordinatorEffect::Submit { first, gang } => {
                    let (purpose, ranks) = (RunnerPurpose::Gang(first), gang.actors.len() as u32);
                    let (restarts, gpus) = (gang.restarts, gang.total_gpus());
                    let request = RunnerRequest { purpose, restarts, ranks, gpus };
                    self.later(REQUEST_DELAY, HeadEvent::Submit { first, request });
                }
                CoordinatorEffect::SubmitTaskRunner { runner, class } => {
                    let gpus = class.gpus;
                    let class = self.task_classes.iter().position(|it| *it == class).unwrap_or_default();
                    let restarts = self.random.between(0, 1) as u32;
                    let purpose = RunnerPurpose::Tasks(class);
                    let request = RunnerRequest { purpose, restarts, ranks: 1, gpus };
                    self.later(REQUEST_DELAY, HeadEvent::SubmitTaskRunner { runner, request });
                }
                CoordinatorEffect::AwaitEnd { job } => {
                    self.later(PATIENCE, HeadEvent::PatienceOver(job));
                }
                CoordinatorEffect::AwaitSurplus { class } => {
                    self.later(PATIENCE, HeadEvent::SurplusOver(class));
                }
                CoordinatorEffect::AwaitStore { node, restarts } => {
                    self.later(PATIENCE, HeadEvent::StoreOverdue { node, restarts });
                }
                CoordinatorEffect::AwaitYield => self.later(YIELD_PAUSE, HeadEvent::YieldDue),
                CoordinatorEffect::AwaitClosing { closing } => {
                    self.later(PATIENCE, HeadEvent::ClosingOver(closing));
                }
                CoordinatorEffect::CancelRunner { job } => self.cancel_runner(job),
                CoordinatorEffect::SubmitStore { node, name } => self.want_store(node, &name),
                CoordinatorEffect::OwnStore(frame) => {
                    self.check_order_to_store(self.own, &frame);
                    self.tell_own_store(frame);
                }
                CoordinatorEffect::Close { member } => {
                    self.written_off(member);
                    self.close_sessions(self.own, member);
                }
                CoordinatorEffect::Exit { code } => self.exit(code),
                // Nobody looks at the application.
                CoordinatorEffect::Described { .. } | CoordinatorEffect::StoreTold { .. } => {}
            }
        }
    }

    fn later(&mut self, pause: (Span, Span), event: HeadEvent) {
        self.after(pause, ApplicationEvent::Head(event));
    }

    /// A member has opened a connection.
    pub(super) fn connected(&mut self, pair: Pair) {
        if pair.acceptor == self.own {
            let node = self.nodes.of(pair.dialer).name();
            self.drive_coordinator(|it, effects| it.connected(pair.dialer, &node, effects));
            let restarts_early =
                matches!(self.plant, Some(ApplicationBug::EarlyRestart | ApplicationBug::EarlyActorRestart));
            if restarts_early && pair.dialer.attempt.attempt > 1 {
                self.report(pair.dialer.job());
            }
        }
    }

    pub(super) fn coordinator_receives(&mut self, from: RankId, frame: ToCoordinator) {
        let frame = if self.plant == Some(ApplicationBug::UnsignedCounters) {
            self.cut_off(from, frame)
        } else {
            frame
        };
        if self.plant == Some(ApplicationBug::StaleBlocks)
            && matches!(&frame, ToCoordinator::Blocked { needs } if needs.is_empty())
        {
            return;
        }
        self.note_for_places(from, &frame);
        if let ToCoordinator::Create { request, gang, .. } = &frame {
            self.ledger.asked(from, *request, gang.actors.len() as u32);
        }
        if self.plant == Some(ApplicationBug::ForgottenLineage)
            && matches!(frame, ToCoordinator::Object(ToDirectory::Made { .. }))
        {
            return;
        }
        let frame = if let ToCoordinator::Store(frame) = frame {
            ToCoordinator::Store(self.lose_place(frame))
        } else {
            frame
        };
        self.drive_coordinator(|it, effects| it.received(from, frame, effects));
    }

    /// Checks what the coordinator tells a runner. Whether the runner gets it.
    fn passes_to_runner(&mut self, to: RankId, frame: &FromCoordinator) -> bool {
        if matches!(frame, FromCoordinator::Probe { .. }) {
            self.asked_at = self.now;
        } else if matches!(frame, FromCoordinator::NoRunner { .. }) {
            self.disturbed_at = self.now;
        }
        match frame {
            FromCoordinator::Deadlock { .. } => {
                self.counters.deadlocks += 1;
                if let Some(violation) = self.find_progress(to) {
                    self.ledger.violated(violation);
                }
                true
            }
            FromCoordinator::Probe { probe }
                if self.plant == Some(ApplicationBug::StaleBlocks) && self.processes.contains_key(&to) =>
            {
                let frame = AnyFrame::ToCoordinator(ToCoordinator::StillBlocked { probe: *probe });
                let pair = Pair { dialer: to, acceptor: self.own };
                self.send(pair, End::Dialer, frame);
                false
            }
            FromCoordinator::Probe { .. }
            | FromCoordinator::Created { .. }
            | FromCoordinator::Found { .. }
            | FromCoordinator::Stopped { .. }
            | FromCoordinator::State { .. }
            | FromCoordinator::MemberEnded { .. }
            | FromCoordinator::RunnerJoined { .. }
            | FromCoordinator::RunnerLeaves { .. }
            | FromCoordinator::RunnerEnded { .. }
            | FromCoordinator::NoRunner { .. }
            | FromCoordinator::ServeTasks { .. }
            | FromCoordinator::Object(_)
            | FromCoordinator::Store(_)
            | FromCoordinator::Welcome { .. }
            | FromCoordinator::NodeAt { .. }
            | FromCoordinator::MemberAt { .. }
            | FromCoordinator::Describe { .. }
            | FromCoordinator::End
            | FromCoordinator::Construct(_) => true,
        }
    }

    /// The head's record of a job reaches the coordinator.
    pub(super) fn report(&mut self, job: JobId) {
        let Some(mut report) = self.head.report(job) else { return };
        if self.plant == Some(ApplicationBug::EarlyRestart) || self.restarts_early(job) {
            let members = self.processes.range(job.attempt(0).rank(0)..=job.attempt(u32::MAX).rank(u32::MAX));
            let latest = members.last().map_or(0, |(member, _)| member.attempt.attempt);
            report.ended_attempts = report.ended_attempts.max(latest.saturating_sub(1));
        }
        self.drive_coordinator(|it, effects| it.report(job, report, effects));
    }

    /// A process is told to end: nobody holds its actor any more, or the application is over.
    fn tell_to_end(&mut self, member: RankId) {
        self.counters.orderly_ends += 1;
        self.actor_ends(member.job());
    }

    fn actor_ends(&mut self, job: JobId) {
        let RunnerRequest { purpose, ranks, .. } = self.head.jobs[&job].request;
        if let RunnerPurpose::Gang(first) = purpose {
            let holds = |(member, it): &(&RankId, &Process)| {
                (0..ranks).any(|rank| it.holds(first.of_rank(rank))) && !self.was_written_off(**member)
            };
            let holder = self.processes.iter().find(holds).map(|(member, _)| *member);
            self.ledger.ended(first, holder);
        }
    }

    fn cancel_runner(&mut self, job: JobId) {
        self.actor_ends(job);
        self.after(REQUEST_DELAY, ApplicationEvent::Head(HeadEvent::Cancel(job)));
    }

    fn exit(&mut self, code: i32) {
        let mains = self.head.jobs.values().filter(|it| it.request.purpose == RunnerPurpose::Main);
        let codes: Vec<Option<i32>> = mains.map(|it| it.ended).collect();
        if codes.contains(&None) || codes.first() != Some(&Some(code)) {
            self.ledger.violated(format!("the application exits with {code}; its mains have {codes:?}"));
        }
        self.exit = Some(code);
    }

    /// Cuts releases off at what was lent so far.
    fn cut_off(&mut self, from: RankId, frame: ToCoordinator) -> ToCoordinator {
        match frame {
            ToCoordinator::Lend { held, to } => {
                *self.unsigned.entry((to, from, held)).or_insert(0) += 1;
                ToCoordinator::Lend { held, to }
            }
            ToCoordinator::Release { held, mut settled } => {
                for (lender, count) in &mut settled {
                    if *lender != self.own {
                        let lent = self.unsigned.entry((from, *lender, held)).or_insert(0);
                        *count = (*count).min(*lent);
                        *lent -= *count;
                    }
                }
                ToCoordinator::Release { held, settled }
            }
            other @ (ToCoordinator::Create { .. }
            | ToCoordinator::Find { .. }
            | ToCoordinator::Description { .. }
            | ToCoordinator::Stop { .. }
            | ToCoordinator::Watch { .. }
            | ToCoordinator::Closed { .. }
            | ToCoordinator::WantRunners { .. }
            | ToCoordinator::Idle
            | ToCoordinator::Blocked { .. }
            | ToCoordinator::StillBlocked { .. }
            | ToCoordinator::Object(_)
            | ToCoordinator::Store(_)
            | ToCoordinator::Constructed { .. }
            | ToCoordinator::ConstructorFailed { .. }) => other,
        }
    }
}
