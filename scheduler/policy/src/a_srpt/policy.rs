//! A-SRPT: who starts when is guided by a single virtual machine, and who would suffer from a bad place may
//! hold out for a better one.
//!
//! Jobs whose virtual turn has come are tried in the order of the queue, the shortest first unless told
//! otherwise. One that has no room is passed, or blocks the others; a barrier may keep room for one that was
//! passed for too long. A plan looks at the jobs that start, at one job of each class that has no room, and
//! at those that hold out or are refused: never at all that wait.

use cohabit_types::{ReasonCode, Time};

use super::books::{Entry, QueueState};
use super::round::{JobDecision, Round, Rules};
use super::virtual_machine::VirtualJob;
use super::{ASrptOptions, why};
use crate::interference::InterferenceContext;
use crate::place::consider;
use crate::prospects::prospect;
use crate::{PendingJob, PendingReason, Placer, Plan, Policy, Proposal, Shortage, View, ViewChange};

/// The policy. It chooses devices by `P`, whose proposals say how much slower a place is than the best.
#[derive(Debug, Clone)]
pub struct ASrpt<P> {
    place: P,
    rules: Rules,
    books: QueueState,
}

impl<P: Placer> ASrpt<P> {
    /// A policy with these switches that has seen nothing yet.
    #[must_use]
    pub fn new(options: &ASrptOptions, place: P) -> ASrpt<P> {
        ASrpt { place, rules: Rules::new(options), books: QueueState::new(options) }
    }

    /// When its virtual turn came (`q_i`), for a job that is pending or runs and has had it.
    #[must_use]
    pub fn turn_at(&self, job: cohabit_types::JobId) -> Option<Time> {
        self.books.get(job)?.turn_at
    }

    /// The jobs in the queue, in its order.
    fn prospects_in_queue(&mut self, view: &View) -> Vec<PendingReason> {
        let ASrpt { place, rules, books } = self;
        let (usual_wait, ends) = (books.waits.median(), &mut books.ends.clone());
        let mut round = Round::new(rules, place, view, ends, usual_wait, books.capacity.free());
        let mut prospects = Vec::new();
        for (ahead, turn) in books.queue.walk().enumerate() {
            let (job, entry) = (&view.pending[&turn.job], &books[turn.job]);
            let offer = round.offer(turn.class, job, entry).clone();
            let waits_for = match offer {
                Err(shortage) => {
                    round.pass(job, 1);
                    prospect(job.id, Some(&shortage), ahead)
                }
                Ok(proposal) => match round.holds_out(entry, &proposal) {
                    None => prospect(job.id, None, ahead),
                    Some((until, what)) => PendingReason {
                        code: ReasonCode::WaitingForDevices,
                        why: why::holds_out(view.now, until, what, &proposal),
                        not_before: Some(until),
                        ..prospect(job.id, None, ahead)
                    },
                },
            };
            prospects.push(PendingReason { runtime: entry.profile.expected_at(1.0), ..waits_for });
        }
        prospects
    }

    /// The pending jobs whose virtual turn has not come, in the order in which it does if nobody arrives.
    fn prospects_on_machine(&self, view: &View) -> Vec<PendingReason> {
        let waits = |task: &VirtualJob| {
            view.pending.contains_key(&task.job) && self.books.queue.key(task.job).is_none()
        };
        let on_machine = self.books.machine.list_completions().enumerate();
        let prospect = |(ahead, (task, turn_at)): (usize, (VirtualJob, Option<Time>))| PendingReason {
            job: task.job,
            code: ReasonCode::WaitingForVirtualTurn,
            why: why::awaits_turn(view.now, &task, turn_at, ahead),
            not_before: turn_at,
            runtime: self.books[task.job].profile.expected_at(1.0),
        };
        on_machine.filter(|(_, (task, _))| waits(task)).map(prospect).collect()
    }
}

impl<P: Placer> Policy for ASrpt<P> {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.books.learn(view, changes, &mut self.place);
    }

    fn plan(&mut self, view: &View) -> Plan {
        let ASrpt { place, rules, books } = self;
        books.advance(view, view.now);
        let mut plan = Plan { wake: books.machine.next_completion(), ..Plan::default() };
        let mut ends = std::mem::take(&mut books.ends);
        let (usual_wait, spare) = (books.waits.median(), books.capacity.free());
        let mut round = Round::new(rules, place, view, &mut ends, usual_wait, spare);
        let mut walk = books.queue.walk();
        let mut blocked = false;
        while let Some(turn) = walk.next() {
            let (job, entry): (_, &Entry) = (&view.pending[&turn.job], &books[turn.job]);
            match round.judge(turn.class, job, entry, &books.hold_outs) {
                JobDecision::Start(proposal) => {
                    let why = why::started(view.now, entry, &proposal);
                    plan.actions.push(Proposal { why, ..proposal }.start(job.id, &entry.profile));
                }
                JobDecision::Delay(until) => wake_by(&mut plan, until),
                JobDecision::DelayClass(until) => {
                    wake_by(&mut plan, until);
                    walk.close();
                }
                JobDecision::ConflictsWithReservation => {}
                JobDecision::Pass => {
                    round.pass(job, books.queue.count_class(turn.class));
                    walk.close();
                }
                JobDecision::Block => {
                    blocked = true;
                    break;
                }
            }
        }
        let looks = round.looks;
        books.ends = ends;
        // Whom nobody looked at may be the first to lose patience.
        if !blocked {
            books.hold_outs.record_scans(looks);
        }
        plan
    }

    fn explain_pending(&mut self, view: &View) -> Vec<PendingReason> {
        self.books.advance(view, view.now);
        let mut prospects = self.prospects_in_queue(view);
        prospects.extend(self.prospects_on_machine(view));
        prospects
    }

    fn consider(&mut self, view: &View, job: &PendingJob) -> Result<Proposal, Shortage> {
        consider(&mut self.place, view, job)
    }

    fn uses_interference(&self) -> bool {
        self.place.uses_interference()
    }

    fn set_interference(&mut self, knowledge: &InterferenceContext) {
        self.place.set_interference(knowledge);
    }
}

/// Nobody is to be woken at the end of time.
fn wake_by(plan: &mut Plan, at: Time) {
    let earliest = plan.wake.map_or(at, |wake| wake.min(at));
    plan.wake = Some(earliest).filter(|at| *at < Time::NEVER);
}
