//! The shell of the simulated coordinator: it carries out effects, and plants bugs around the core.

use cohabit_application_core::{Coordinator, CoordinatorEffect, FromCoordinator, ToCoordinator};
use cohabit_types::{AttemptId, JobId, Span};

use super::event::{AnyFrame, ApplicationEvent, End, Pair};
use super::head::{RunnerPurpose, RunnerRequest};
use super::planted_bug::ApplicationBug;
use super::world::ApplicationWorld;

const REQUEST_DELAY: (Span, Span) = (Span::from_millis(1), Span::from_millis(500));
/// How long a process that was told to end has time for it.
const PATIENCE: (Span, Span) = (Span::from_secs(10), Span::from_secs(15));

impl ApplicationWorld {
    pub(super) fn drive_coordinator(
        &mut self,
        act: impl FnOnce(&mut Coordinator, &mut Vec<CoordinatorEffect>),
    ) {
        let mut effects = Vec::new();
        act(&mut self.coordinator, &mut effects);
        for effect in effects {
            self.digest.record_event(self.now, &effect);
            self.recorder.add(self.now, || format!("coordinator: {effect:?}"));
            match effect {
                CoordinatorEffect::Send { to, frame } => {
                    if frame == FromCoordinator::End {
                        self.tell_to_end(to);
                    }
                    if self.passes_to_runner(to, &frame) {
                        let pair = Pair { dialer: to, acceptor: self.own };
                        self.send(pair, End::Acceptor, AnyFrame::FromCoordinator(frame));
                    }
                }
                CoordinatorEffect::Submit { actor, restarts, gpus, .. } => {
                    let request = RunnerRequest { purpose: RunnerPurpose::Actor(actor), restarts, gpus };
                    self.after(REQUEST_DELAY, ApplicationEvent::Submit { actor, request });
                }
                CoordinatorEffect::SubmitTaskRunner { runner, class } => {
                    let gpus = class.gpus;
                    let class = self.task_classes.iter().position(|it| *it == class).unwrap_or_default();
                    let restarts = self.random.between(0, 1) as u32;
                    let request = RunnerRequest { purpose: RunnerPurpose::Tasks(class), restarts, gpus };
                    self.after(REQUEST_DELAY, ApplicationEvent::SubmitTaskRunner { runner, request });
                }
                CoordinatorEffect::AwaitEnd { job } => {
                    self.after(PATIENCE, ApplicationEvent::PatienceOver(job));
                }
                CoordinatorEffect::AwaitSurplus { class } => {
                    self.after(PATIENCE, ApplicationEvent::SurplusOver(class));
                }
                CoordinatorEffect::CancelRunner { job } => self.cancel_runner(job),
                CoordinatorEffect::FreeObject { object } => self.drive_store(|it, all| it.free(object, all)),
                CoordinatorEffect::ForgetMaker { maker, keep } => self.forget_maker(maker, keep),
                CoordinatorEffect::Close { member } => self.close_sessions(self.own, member),
                CoordinatorEffect::Exit { code } => self.exit(code),
                // Nobody looks at the application.
                CoordinatorEffect::Described { .. } => {}
            }
        }
    }

    /// A member has opened a connection.
    pub(super) fn connected(&mut self, pair: Pair) {
        if pair.acceptor == self.own {
            self.drive_coordinator(|it, effects| it.connected(pair.dialer, effects));
            if self.plant == Some(ApplicationBug::EarlyRestart) && pair.dialer.attempt > 1 {
                self.report(pair.dialer.job);
            }
        }
    }

    pub(super) fn coordinator_receives(&mut self, from: AttemptId, frame: ToCoordinator) {
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
        self.drive_coordinator(|it, effects| it.received(from, frame, effects));
    }

    /// Checks what the coordinator tells a runner. Whether the runner gets it.
    fn passes_to_runner(&mut self, to: AttemptId, frame: &FromCoordinator) -> bool {
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
            | FromCoordinator::Describe { .. }
            | FromCoordinator::End
            | FromCoordinator::Construct(_) => true,
        }
    }

    /// The head's record of a job reaches the coordinator.
    pub(super) fn report(&mut self, job: JobId) {
        let Some(mut report) = self.head.report(job) else { return };
        if self.plant == Some(ApplicationBug::EarlyRestart) {
            let members = self.processes.range(job.attempt(0)..=job.attempt(u32::MAX));
            let latest = members.last().map_or(0, |(member, _)| member.attempt);
            report.ended_attempts = report.ended_attempts.max(latest.saturating_sub(1));
        }
        self.drive_coordinator(|it, effects| it.report(job, report, effects));
    }

    /// A process is told to end: that of an actor, since nobody holds the actor any more.
    fn tell_to_end(&mut self, member: AttemptId) {
        self.counters.orderly_ends += 1;
        self.actor_ends(member.job);
    }

    fn actor_ends(&mut self, job: JobId) {
        if let RunnerPurpose::Actor(actor) = self.head.jobs[&job].request.purpose {
            let holder = self.processes.iter().find(|(_, it)| it.holds(actor)).map(|(member, _)| *member);
            self.ledger.ended(actor, holder);
        }
    }

    fn cancel_runner(&mut self, job: JobId) {
        self.actor_ends(job);
        self.after(REQUEST_DELAY, ApplicationEvent::Cancel(job));
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
    fn cut_off(&mut self, from: AttemptId, frame: ToCoordinator) -> ToCoordinator {
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
            | ToCoordinator::Constructed { .. }
            | ToCoordinator::ConstructorFailed { .. }) => other,
        }
    }
}
