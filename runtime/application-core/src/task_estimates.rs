//! How long the functions of tasks take, by what this process has seen of them.

use std::collections::BTreeMap;

use cohabit_types::Span;

/// More tasks are sent to a runner ahead of time while those that it has got take less than this.
pub(crate) const WINDOW_WORK: Span = Span::from_millis(1);

/// A runner that works for so long is worth its process.
pub(crate) const RUNNER_WORK: Span = Span::from_millis(100);

/// An observation changes an estimate by this part of the difference.
const OBSERVATION_PART: u64 = 8;

/// The estimates of all functions.
#[derive(Debug)]
pub(crate) struct TaskEstimates {
    functions: BTreeMap<u32, Span>,
}

impl TaskEstimates {
    pub(crate) const fn new() -> TaskEstimates {
        TaskEstimates { functions: BTreeMap::new() }
    }

    /// A task has run for so long.
    pub(crate) fn observe(&mut self, function: u32, took: Span) {
        let estimate = self.functions.entry(function).or_insert(took);
        let (old, new) = (u128::from(estimate.as_micros()), u128::from(took.as_micros()));
        let part = u128::from(OBSERVATION_PART);
        // A mean of two numbers of 64 bits has 64 bits.
        *estimate = Span::from_micros(((old * (part - 1) + new) / part) as u64);
    }

    /// Whether a task of the function has run.
    pub(crate) fn is_known(&self, function: u32) -> bool {
        self.functions.contains_key(&function)
    }

    /// How much of a runner's window a task takes; of an unknown function a whole one.
    pub(crate) fn window(&self, function: u32) -> Span {
        self.functions.get(&function).copied().unwrap_or(WINDOW_WORK)
    }

    /// How much of the work that makes a runner worth its process a task is; of an unknown function all.
    pub(crate) fn weight(&self, function: u32) -> Span {
        self.functions.get(&function).map_or(RUNNER_WORK, |estimate| (*estimate).min(RUNNER_WORK))
    }
}
