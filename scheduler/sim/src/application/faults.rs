//! What is broken, and when.

use cohabit_types::{JobId, RankId, Span, Time};

use super::event::{ApplicationEvent, ApplicationFault, HeadEvent, Pair};
use super::head::RunnerPurpose;
use super::process::ProcessCode;
use super::world::ApplicationWorld;

/// How long after an early start of the next attempt the present one is ended.
const OVERLAP: (Span, Span) = (Span::from_millis(50), Span::from_secs(8));

impl ApplicationWorld {
    /// Draws all faults before the end of the faults.
    pub(super) fn draw_faults(&mut self) {
        let length = self.quiet_at.since(Time::EPOCH).as_micros();
        let kinds = [
            (ApplicationFault::Break, 40),
            (ApplicationFault::DialAgain, 20),
            (ApplicationFault::Kill, 12),
            (ApplicationFault::EarlyAttempt, 6),
        ];
        for (fault, most) in kinds {
            let count = if self.random.chance(0.7) { self.random.between(0, most) } else { 0 };
            for _ in 0..count {
                let at = Time::EPOCH + Span::from_micros(self.random.between(0, length));
                self.queue.put(at, ApplicationEvent::Fault(fault));
            }
        }
        if self.random.chance(0.03) {
            let at = Time::EPOCH + Span::from_micros(self.random.between(0, length));
            self.queue.put(at, ApplicationEvent::Fault(ApplicationFault::KillCoordinator));
        }
        if self.random.chance(0.3) {
            self.most_runners = self.random.between(1, 3) as usize;
        }
        self.early_death = match self.random.between(0, 9) {
            0..=6 => 0.0,
            7..=8 => 0.1,
            _ => 0.7,
        };
        self.death = if self.random.chance(0.3) { 0.001 + 0.004 * self.random.fraction() } else { 0.0 };
    }

    pub(super) fn inject(&mut self, fault: ApplicationFault) {
        match fault {
            ApplicationFault::Break => self.break_some_connection(),
            ApplicationFault::DialAgain => {
                let dialing = self.network.channels.iter().filter(|(_, channel)| channel.has_dialer());
                let pairs: Vec<Pair> = dialing.map(|(pair, _)| *pair).collect();
                if !pairs.is_empty() {
                    let pair = *self.random.pick(&pairs);
                    for _ in 0..self.random.between(1, 3) {
                        self.dial(pair);
                    }
                }
            }
            ApplicationFault::Kill => {
                let members: Vec<RankId> = self.processes.keys().copied().collect();
                if !members.is_empty() {
                    let member = *self.random.pick(&members);
                    // Without mains the application ends early.
                    let code = self.processes[&member].code;
                    if code != ProcessCode::Main || self.random.chance(0.3) {
                        self.counters.kills += 1;
                        self.kill(member, 137);
                    }
                }
            }
            ApplicationFault::EarlyAttempt => self.start_early_attempt(),
            ApplicationFault::KillCoordinator => {
                self.counters.kills += 1;
                self.exit = Some(137);
            }
            ApplicationFault::CutNode => self.cut_some_node(),
            ApplicationFault::CutPair => self.cut_some_pair(),
            ApplicationFault::KillStore => self.kill_some_store(),
            ApplicationFault::LoseNode => self.lose_some_node(),
        }
    }

    fn break_some_connection(&mut self) {
        let channels = self.network.channels.iter();
        let links: Vec<_> =
            channels.flat_map(|(pair, it)| it.unbroken().into_iter().map(|link| (*pair, link))).collect();
        if !links.is_empty() {
            let (pair, link) = *self.random.pick(&links);
            self.counters.breaks += 1;
            self.break_connection(pair, link);
        }
    }

    /// The head takes a process for dead that lives, and starts the next one; the first one is ended later.
    fn start_early_attempt(&mut self) {
        let jobs = self.head.jobs.iter();
        let runners = jobs.filter(|(_, it)| match it.request.purpose {
            RunnerPurpose::Gang(_) | RunnerPurpose::Tasks(_) => true,
            RunnerPurpose::Main | RunnerPurpose::Store(_) => false,
        });
        let jobs: Vec<JobId> = runners.map(|(job, _)| *job).filter(|job| self.head.may_retry(*job)).collect();
        if jobs.is_empty() {
            return;
        }
        let job = *self.random.pick(&jobs);
        let members = self.processes.range(job.attempt(0).rank(0)..=job.attempt(u32::MAX).rank(u32::MAX));
        let living: Vec<RankId> = members.map(|(member, _)| *member).collect();
        if living.len() == self.head.jobs[&job].request.ranks as usize {
            self.start_attempt(job);
            for member in living {
                self.after(OVERLAP, ApplicationEvent::Head(HeadEvent::Kill(member)));
            }
        }
    }
}
