//! Figures of a head for metrics: what there is now, and what has been counted since it started.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{DeviceId, JobId, JobState, Share, Span, Time};

/// What a head counts. Every counter and histogram begins with the start of the head.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// When the head started.
    pub since: Time,
    /// The version of the head.
    pub version: String,
    /// The users that have jobs or have held GPUs.
    pub users: BTreeMap<String, UserFigures>,
    /// For how long the job has waited that only waits for room, and longest; nothing if none does.
    pub oldest_wait: Option<Span>,
    /// Attempts that ended, by how: a reason why they were stopped, or how their processes ended.
    pub attempts: BTreeMap<String, u64>,
    /// Seconds between the time from which only room kept a job waiting and its start, for each attempt.
    pub wait: Histogram,
    /// Seconds that each attempt held its devices.
    pub run: Histogram,
    /// Time from submission to end by the time of the last attempt, of completed jobs. An attempt counts as
    /// ten seconds at least.
    pub slowdown: Histogram,
    /// The nodes, by name.
    pub nodes: BTreeMap<String, NodeFigures>,
    /// Who holds which device now.
    pub holders: Vec<DeviceHolder>,
    /// Seconds that each plan took.
    pub plans: Histogram,
    /// Seconds that each commit to the journal took.
    pub commits: Histogram,
    /// Events that were handled.
    pub events: u64,
    /// Workers that are connected.
    pub links: u64,
    /// What keeps the head from accepting changes.
    pub problems: Vec<String>,
}

/// What there is of one user.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserFigures {
    /// Jobs that have not ended, members of arrays one by one.
    pub jobs: LiveJobs,
    /// Time on GPUs and host slots.
    pub gpu_time: GpuTime,
}

/// Jobs that have not ended, by state.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveJobs {
    /// They wait.
    pub pending: u64,
    /// They wait until somebody releases them.
    pub held: u64,
    /// They run.
    pub running: u64,
    /// They are being stopped.
    pub completing: u64,
}

/// Seconds on GPUs and host slots, each times the part that was held.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GpuTime {
    /// From the placement to the end of attempts.
    pub held: f64,
    /// Of the time that was measured, utilization times the part that was held: an estimate where a GPU is
    /// shared.
    pub busy: f64,
    /// Of the time that was measured, what a GPU did nothing in, for ten minutes or more on end.
    pub idle: f64,
    /// Held by attempts that ended because of a node, a device or a job that had to make room.
    pub lost: f64,
}

/// What there is of one node.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeFigures {
    /// How often its worker has connected.
    pub links: u64,
    /// Attempts that brought down an MPS server there.
    pub mps_faults: u64,
}

/// A job on a device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceHolder {
    /// The name of the node.
    pub node: String,
    /// The device.
    pub device: DeviceId,
    /// The job.
    pub job: JobId,
    /// Whose job.
    pub user: String,
    /// The part of the device.
    pub share: Share,
}

/// Counts of values between bounds.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Upper bounds, ascending.
    pub bounds: Vec<f64>,
    /// How many values are at most each bound, and above the one before; the last count is of the values
    /// above all bounds.
    pub counts: Vec<u64>,
    /// The sum of all values.
    pub sum: f64,
}

impl Histogram {
    /// Without values, with these ascending bounds.
    #[must_use]
    pub fn new(bounds: &[f64]) -> Histogram {
        Histogram { bounds: bounds.to_vec(), counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// Counts a value. One that is not finite is left out.
    pub fn observe(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        let place = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
            self.sum += value;
        }
    }

    /// How many values there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl LiveJobs {
    /// The count of jobs in this state; nothing for a state in which a job has ended.
    pub const fn count_mut(&mut self, state: JobState) -> Option<&mut u64> {
        match state {
            JobState::Pending => Some(&mut self.pending),
            JobState::Held => Some(&mut self.held),
            JobState::Running => Some(&mut self.running),
            JobState::Completing => Some(&mut self.completing),
            JobState::Completed
            | JobState::Failed
            | JobState::Cancelled
            | JobState::Timeout
            | JobState::NodeFail
            | JobState::OutOfMemory
            | JobState::Preempted => None,
        }
    }

    /// How many there are.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.pending + self.held + self.running + self.completing
    }
}

impl GpuTime {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: GpuTime) -> GpuTime {
        GpuTime {
            held: self.held + other.held,
            busy: self.busy + other.busy,
            idle: self.idle + other.idle,
            lost: self.lost + other.lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_at_the_first_bound_that_is_not_below_it() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 9.0, f64::NAN, f64::INFINITY] {
            histogram.observe(value);
        }
        assert_eq!((histogram.counts.as_slice(), histogram.sum), (&[2, 1, 1][..], 12.0));
        assert_eq!(histogram.count(), 4);
        let mut empty = Histogram::default();
        empty.observe(1.0);
        assert_eq!(empty.count(), 0);
    }
}
