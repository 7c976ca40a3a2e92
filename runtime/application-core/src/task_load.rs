//! How many runners the tasks of one class could keep busy.

use std::collections::BTreeMap;

use crate::task_estimates::{RUNNER_WORK, TaskEstimates};

/// Tasks that need a runner, by function: all but those that are parked, or whose runner leaves.
#[derive(Debug)]
pub(crate) struct TaskLoad {
    functions: BTreeMap<u32, u64>,
}

impl TaskLoad {
    pub(crate) const fn new() -> TaskLoad {
        TaskLoad { functions: BTreeMap::new() }
    }

    pub(crate) fn add(&mut self, function: u32) {
        *self.functions.entry(function).or_insert(0) += 1;
    }

    pub(crate) fn remove(&mut self, function: u32) {
        if let Some(count) = self.functions.get_mut(&function) {
            *count -= 1;
            if *count == 0 {
                self.functions.remove(&function);
            }
        }
    }

    /// The runners that would have something to do.
    pub(crate) fn runners(&self, estimates: &TaskEstimates) -> u64 {
        let weights = self.functions.iter().map(|(function, count)| estimates.weight(*function) * *count);
        let work: u64 = weights.map(|weight| weight.as_micros()).sum();
        work.div_ceil(RUNNER_WORK.as_micros())
    }
}
