//! What all members want of one class of runners, and which runners there are.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::AttemptId;

use crate::coordinator_effect::CoordinatorEffect;
use crate::frames::FromCoordinator;
use crate::ids::TaskRunnerNumber;
use crate::task_class::TaskClass;

/// So many runners in a row may end before they connect.
const MAX_EARLY_DEATHS: u32 = 3;

/// A class.
#[derive(Debug)]
pub(crate) struct ClassDemand {
    /// Also those that want nothing at present, as long as they know runners.
    wants: BTreeMap<AttemptId, u32>,
    /// The processes that take tasks; all callers know all of them.
    live: BTreeSet<AttemptId>,
    /// Runners that do not serve yet.
    pending: BTreeSet<TaskRunnerNumber>,
    /// How many runners have ended before they connected, since one connected.
    early_deaths: u32,
    growth: Growth,
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
            pending: BTreeSet::new(),
            early_deaths: 0,
            growth: Growth::Open,
        }
    }

    /// Whether there is no runner and nobody wants one.
    pub(crate) fn is_unused(&self) -> bool {
        self.wants.is_empty() && self.live.is_empty() && self.pending.is_empty()
    }

    /// Those that know the runners.
    pub(crate) fn callers(&self) -> impl Iterator<Item = AttemptId> {
        self.wants.keys().copied()
    }

    /// A member wants so many runners: those of which it has to be told.
    pub(crate) fn want(&mut self, by: AttemptId, runners: u32) -> Vec<AttemptId> {
        self.growth = Growth::Open;
        let is_new = self.wants.insert(by, runners).is_none();
        if is_new { self.live_from(by) } else { Vec::new() }
    }

    /// All wants are out of date.
    pub(crate) fn forget_wants(&mut self) {
        self.wants.values_mut().for_each(|want| *want = 0);
    }

    /// A member has ended.
    pub(crate) fn forget(&mut self, member: AttemptId) {
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
    pub(crate) fn join(&mut self, runner: TaskRunnerNumber, member: AttemptId) {
        self.pending.remove(&runner);
        self.live.insert(member);
        self.early_deaths = 0;
        self.growth = Growth::Open;
    }

    /// A process takes no more tasks.
    pub(crate) fn leave(&mut self, member: AttemptId) {
        self.live.remove(&member);
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

    /// Takes the runners that are expected beyond what is wanted, the newest first.
    pub(crate) fn take_surplus(&mut self) -> Vec<TaskRunnerNumber> {
        let surplus = (self.live.len() + self.pending.len()).saturating_sub(self.wanted());
        let taken: Vec<_> = std::iter::from_fn(|| self.pending.pop_last()).take(surplus).collect();
        if self.live.is_empty() {
            self.wants.retain(|_, want| *want > 0);
        }
        taken
    }

    /// How many more runners are to be submitted now.
    pub(crate) fn growth(&mut self) -> usize {
        let (live, pending) = (self.live.len(), self.pending.len());
        if live + pending == 0 {
            self.growth = Growth::Open;
        }
        match self.growth {
            Growth::Stalled => 0,
            Growth::Open => {
                let missing = self.wanted().saturating_sub(live + pending);
                missing.min(live.max(1).saturating_sub(pending))
            }
        }
    }

    /// No more runners come: callers hear of it if there is none at all, and then have to want them anew.
    fn stall(&mut self, class: &TaskClass, why: &str, effects: &mut Vec<CoordinatorEffect>) {
        self.early_deaths = 0;
        if self.live.is_empty() && self.pending.is_empty() {
            effects.extend(self.wants.iter().filter(|(_, want)| **want > 0).map(|(to, _)| {
                let (class, why) = (class.clone(), why.to_owned());
                CoordinatorEffect::Send { to: *to, frame: FromCoordinator::NoRunner { class, why } }
            }));
            self.wants.clear();
        } else {
            self.growth = Growth::Stalled;
        }
    }

    fn wanted(&self) -> usize {
        self.wants.values().fold(0_usize, |sum, want| sum.saturating_add(*want as usize))
    }

    /// All live processes, in another order for each caller, so that not all send their first task to the
    /// same one; a caller that is a runner itself begins with itself.
    fn live_from(&self, caller: AttemptId) -> Vec<AttemptId> {
        let own = self.live.iter().position(|member| *member == caller);
        let count = self.live.len() as u64;
        let drawn = || caller.job.number.checked_rem(count).unwrap_or(0) as usize;
        let start = own.unwrap_or_else(drawn);
        self.live.iter().skip(start).chain(self.live.iter().take(start)).copied().collect()
    }
}
