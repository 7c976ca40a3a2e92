//! What all members want of one class of runners, and which runners there are.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::RankId;

use crate::coordinator_effect::CoordinatorEffect;
use crate::deadlocks::ClassSupply;
use crate::frames::FromCoordinator;
use crate::ids::TaskRunnerNumber;
use crate::task_class::TaskClass;

/// So many runners in a row may end before they connect.
const MAX_EARLY_DEATHS: u32 = 3;

/// A class.
#[derive(Debug)]
pub(crate) struct ClassDemand {
    /// Also those that want nothing at present, as long as they know runners.
    wants: BTreeMap<RankId, u32>,
    /// The processes that take tasks; all callers know all of them.
    live: BTreeSet<RankId>,
    /// Those that would, but for the task that keeps their GPUs while it waits for further runners.
    blocked: BTreeSet<RankId>,
    /// Runners that do not serve yet.
    pending: BTreeSet<TaskRunnerNumber>,
    /// How many runners have ended before they connected, since one connected.
    early_deaths: u32,
    growth: Growth,
    surplus: Surplus,
    /// There are to be no more runners than live: others wait for what they would claim.
    is_held_back: bool,
}

/// Whether runners that are expected beyond what is wanted are given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Surplus {
    /// There were none the last time.
    Unseen,
    /// There are some, and their time runs.
    Tolerated,
    /// It is over.
    Cancelled,
}

/// Whether more runners are submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Growth {
    Open,
    /// No more came, but some live: until somebody wants another number, or none is left.
    Stalled,
}

impl ClassDemand {
    pub(crate) const fn new() -> ClassDemand {
        ClassDemand {
            wants: BTreeMap::new(),
            live: BTreeSet::new(),
            blocked: BTreeSet::new(),
            pending: BTreeSet::new(),
            early_deaths: 0,
            growth: Growth::Open,
            surplus: Surplus::Unseen,
            is_held_back: false,
        }
    }

    /// Whether there is no runner and nobody wants one.
    pub(crate) fn is_unused(&self) -> bool {
        self.wants.is_empty() && self.has_no_runner()
    }

    fn has_no_runner(&self) -> bool {
        self.live.is_empty() && self.blocked.is_empty() && self.pending.is_empty()
    }

    /// Whether the class can run something, now or later.
    pub(crate) fn supply(&self) -> ClassSupply {
        if !self.live.is_empty() {
            ClassSupply::Live
        } else if self.growth == Growth::Stalled && self.pending.is_empty() {
            ClassSupply::Exhausted
        } else {
            ClassSupply::Growing
        }
    }

    /// Number of processes that take tasks.
    pub(crate) fn live(&self) -> usize {
        self.live.len()
    }

    /// Of the processes that take tasks, that of the newest job.
    pub(crate) fn newest(&self) -> Option<RankId> {
        self.live.last().copied()
    }

    /// Others wait for what more runners would claim, or do not. Whether that is new.
    pub(crate) fn hold_back(&mut self, is_held_back: bool) -> bool {
        std::mem::replace(&mut self.is_held_back, is_held_back) != is_held_back
    }

    /// A process takes no tasks for now, or takes some again.
    pub(crate) fn block(&mut self, member: RankId, is_blocked: bool) {
        let (from, to) = if is_blocked {
            (&mut self.live, &mut self.blocked)
        } else {
            (&mut self.blocked, &mut self.live)
        };
        if from.remove(&member) {
            to.insert(member);
        }
    }

    /// Those that know the runners.
    pub(crate) fn callers(&self) -> impl Iterator<Item = RankId> {
        self.wants.keys().copied()
    }

    /// A member wants so many runners: those of which it has to be told.
    pub(crate) fn want(&mut self, by: RankId, runners: u32) -> Vec<RankId> {
        self.growth = Growth::Open;
        let is_new = self.wants.insert(by, runners).is_none();
        if is_new { self.live_from(by) } else { Vec::new() }
    }

    /// All wants are out of date.
    pub(crate) fn forget_wants(&mut self) {
        self.wants.values_mut().for_each(|want| *want = 0);
    }

    /// A member has ended.
    pub(crate) fn forget(&mut self, member: RankId) {
        self.wants.remove(&member);
    }

    /// A runner will serve.
    pub(crate) fn expect(&mut self, runner: TaskRunnerNumber) {
        self.pending.insert(runner);
    }

    /// A runner that was expected will not serve.
    pub(crate) fn give_up(&mut self, runner: TaskRunnerNumber) {
        self.pending.remove(&runner);
    }

    /// A runner that was expected serves.
    pub(crate) fn join(&mut self, runner: TaskRunnerNumber, member: RankId) {
        self.pending.remove(&runner);
        self.live.insert(member);
        self.early_deaths = 0;
        self.growth = Growth::Open;
    }

    /// A process takes no more tasks.
    pub(crate) fn leave(&mut self, member: RankId) {
        self.live.remove(&member);
        self.blocked.remove(&member);
    }

    /// The head has refused a runner.
    pub(crate) fn refused(&mut self, class: &TaskClass, text: &str, effects: &mut Vec<CoordinatorEffect>) {
        self.stall(class, text, effects);
    }

    /// The job of a runner has ended, and no process of it has connected.
    pub(crate) fn died_early(&mut self, class: &TaskClass, text: &str, effects: &mut Vec<CoordinatorEffect>) {
        self.early_deaths += 1;
        if self.early_deaths >= MAX_EARLY_DEATHS {
            let deaths = self.early_deaths;
            let why = format!("{deaths} processes in a row ended before they connected; the last: {text}");
            self.stall(class, &why, effects);
        }
    }

    /// The time in which a surplus of runners is tolerated is over.
    pub(crate) fn end_toleration(&mut self) {
        self.surplus = Surplus::Cancelled;
    }

    /// Takes the runners that are expected beyond what is wanted, the newest first, if nobody wants any or
    /// there have been too many for as long as that is tolerated. What is wanted changes with every estimate,
    /// and each runner that is submitted and cancelled is work for the head.
    pub(crate) fn take_surplus(
        &mut self,
        class: &TaskClass,
        effects: &mut Vec<CoordinatorEffect>,
    ) -> Vec<TaskRunnerNumber> {
        let wanted = self.wanted();
        let surplus = (self.live.len() + self.pending.len()).saturating_sub(self.target());
        let surplus = surplus.min(self.pending.len());
        let taken = match self.surplus {
            Surplus::Unseen if surplus > 0 && wanted > 0 => {
                self.surplus = Surplus::Tolerated;
                effects.push(CoordinatorEffect::AwaitSurplus { class: class.clone() });
                Vec::new()
            }
            Surplus::Tolerated if wanted > 0 => Vec::new(),
            Surplus::Unseen | Surplus::Tolerated => self.take_newest(surplus),
            Surplus::Cancelled => {
                self.surplus = Surplus::Unseen;
                self.take_newest(surplus)
            }
        };
        if self.live.is_empty() && self.blocked.is_empty() {
            self.wants.retain(|_, want| *want > 0);
        }
        taken
    }

    fn take_newest(&mut self, count: usize) -> Vec<TaskRunnerNumber> {
        std::iter::from_fn(|| self.pending.pop_last()).take(count).collect()
    }

    /// How many more runners are to be submitted now.
    pub(crate) fn growth(&mut self) -> usize {
        let (live, pending) = (self.live.len(), self.pending.len());
        if self.has_no_runner() {
            self.growth = Growth::Open;
        }
        match self.growth {
            Growth::Stalled => 0,
            Growth::Open => {
                let missing = self.target().saturating_sub(live + pending);
                missing.min(live.max(1).saturating_sub(pending))
            }
        }
    }

    /// No more runners come: callers hear of it if there is none at all, and then have to want them anew.
    fn stall(&mut self, class: &TaskClass, why: &str, effects: &mut Vec<CoordinatorEffect>) {
        self.early_deaths = 0;
        if self.has_no_runner() {
            effects.extend(self.wants.iter().filter(|(_, want)| **want > 0).map(|(to, _)| {
                let (class, why) = (class.clone(), why.to_owned());
                CoordinatorEffect::Send { to: *to, frame: FromCoordinator::NoRunner { class, why } }
            }));
            self.wants.clear();
        } else {
            self.growth = Growth::Stalled;
        }
    }

    /// How many runners there are to be.
    fn target(&self) -> usize {
        let most = if self.is_held_back { self.live.len().max(1) } else { usize::MAX };
        self.wanted().min(most)
    }

    /// How many runners all want together.
    pub(crate) fn wanted(&self) -> usize {
        self.wants.values().fold(0_usize, |sum, want| sum.saturating_add(*want as usize))
    }

    /// All live processes, in another order for each caller, so that not all send their first task to the
    /// same one; a caller that is a runner itself begins with itself.
    fn live_from(&self, caller: RankId) -> Vec<RankId> {
        let all: Vec<RankId> = self.live.union(&self.blocked).copied().collect();
        let own = all.iter().position(|member| *member == caller);
        let count = all.len() as u64;
        let drawn = || caller.job().number.checked_rem(count).unwrap_or(0) as usize;
        let start = own.unwrap_or_else(drawn);
        // The one that is named last is taken first.
        all.iter().skip(start).chain(all.iter().take(start)).rev().copied().collect()
    }
}
