//! Which submissions still wait for the end of which jobs.
//!
//! An edge exists only while its submission waits: it leaves with the end of the earlier job, or as soon as
//! the submission waits no longer. The work of all ends together is one step for each edge.

use std::collections::BTreeMap;

use cohabit_types::{Dependency, DependencyKind, JobId};

use crate::terminal_state::TerminalState;

/// The edges, from both sides.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct DependencyGraph {
    /// By the job, or the array as a whole, that has to end: the submissions that wait for it.
    dependents: BTreeMap<JobId, BTreeMap<u64, EndCondition>>,
    /// By the number of the submission: for how many it waits.
    counts: BTreeMap<u64, usize>,
}

/// How an earlier job has to end. Two opposite conditions are never met.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndCondition {
    completed: bool,
    not_completed: bool,
}

/// A submission one of whose jobs to wait for has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dependent {
    pub(crate) number: u64,
    /// How the job had to end.
    pub(crate) condition: EndCondition,
    /// Whether it was the last one.
    pub(crate) is_last: bool,
}

impl EndCondition {
    fn add(&mut self, when: DependencyKind) {
        match when {
            DependencyKind::AfterAny => {}
            DependencyKind::AfterOk => self.completed = true,
            DependencyKind::AfterNotOk => self.not_completed = true,
        }
    }

    /// Whether a job that ended in this state meets it.
    pub(crate) fn is_met(self, state: TerminalState) -> bool {
        match state == TerminalState::Completed {
            true => !self.not_completed,
            false => !self.completed,
        }
    }
}

/// What is asked of each of these jobs: one that is named twice has to meet both.
pub(crate) fn conditions(dependencies: &[Dependency]) -> BTreeMap<JobId, EndCondition> {
    let mut conditions: BTreeMap<JobId, EndCondition> = BTreeMap::new();
    for Dependency { job, when } in dependencies {
        conditions.entry(*job).or_default().add(*when);
    }
    conditions
}

impl DependencyGraph {
    /// A submission begins to wait for these jobs.
    pub(crate) fn insert(&mut self, number: u64, conditions: BTreeMap<JobId, EndCondition>) {
        if conditions.is_empty() {
            return;
        }
        self.counts.insert(number, conditions.len());
        for (earlier, condition) in conditions {
            self.dependents.entry(earlier).or_default().insert(number, condition);
        }
    }

    /// A job has ended: removes its edges, and returns the submissions that waited for it.
    pub(crate) fn remove_ended(&mut self, earlier: JobId) -> Vec<Dependent> {
        let dependents = self.dependents.remove(&earlier).unwrap_or_default();
        let dependents = dependents.into_iter();
        dependents
            .map(|(number, condition)| Dependent { number, condition, is_last: self.count_down(number) })
            .collect()
    }

    /// Whether that was the last job for which this submission waited.
    fn count_down(&mut self, number: u64) -> bool {
        let Some(count) = self.counts.get_mut(&number) else { return false };
        *count -= 1;
        let is_last = *count == 0;
        if is_last {
            self.counts.remove(&number);
        }
        is_last
    }

    /// A submission with these dependencies waits no longer.
    pub(crate) fn remove_dependent(&mut self, number: u64, dependencies: &[Dependency]) {
        if self.counts.remove(&number).is_none() {
            return;
        }
        for Dependency { job, .. } in dependencies {
            let Some(dependents) = self.dependents.get_mut(job) else { continue };
            dependents.remove(&number);
            if dependents.is_empty() {
                self.dependents.remove(job);
            }
        }
    }

    /// For how many jobs this submission waits.
    pub(crate) fn count(&self, number: u64) -> usize {
        self.counts.get(&number).copied().unwrap_or(0)
    }

    /// Whether this submission waits for this job.
    pub(crate) fn waits_for(&self, number: u64, earlier: JobId) -> bool {
        self.dependents.get(&earlier).is_some_and(|dependents| dependents.contains_key(&number))
    }

    /// The submissions that wait, in the order of their numbers, by the job that has to end.
    pub(crate) fn numbers(&self) -> BTreeMap<JobId, Vec<u64>> {
        let of = |(job, dependents): (&JobId, &BTreeMap<u64, EndCondition>)| {
            (*job, dependents.keys().copied().collect())
        };
        self.dependents.iter().map(of).collect()
    }

    /// The graph with these numbers and the dependencies of the submissions; others are left out.
    pub(crate) fn of<'s>(
        numbers: &BTreeMap<JobId, Vec<u64>>,
        submissions: impl IntoIterator<Item = (u64, &'s [Dependency])>,
    ) -> DependencyGraph {
        let mut graph = DependencyGraph::default();
        for (number, dependencies) in submissions {
            let mut conditions = conditions(dependencies);
            let waits = |of: &Vec<u64>| of.binary_search(&number).is_ok();
            conditions.retain(|earlier, _| numbers.get(earlier).is_some_and(waits));
            graph.insert(number, conditions);
        }
        graph
    }
}
