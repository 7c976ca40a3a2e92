//! What ranks did with the GPUs that they held, as their workers measured it.
//!
//! Under MPS a driver tells how busy a GPU is, not who keeps it busy: all figures of a shared GPU but the
//! memory are of the whole GPU while the rank held its part.

use serde::{Deserialize, Serialize};

use crate::{Bytes, DeviceId, RankId, Share, Span, Time};

/// A rank and its GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankUsage {
    /// Which rank.
    pub rank: RankId,
    /// Each of its GPUs that was read at least twice while it ran.
    pub devices: Vec<DeviceUsage>,
}

/// What became of the time that a rank held a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceUsage {
    /// Which GPU.
    pub device: DeviceId,
    /// The time that the rank's process ran.
    pub held: Span,
    /// The part of it that readings cover; never more than `held`. The rest is unknown, not idle: the
    /// driver did not answer, or the worker's daemon was down.
    pub measured: Span,
    /// Utilization of the GPU, integrated over the measured time; never more than that.
    pub busy: Span,
    /// Measured time in which the GPU stayed below [`IDLE_BELOW`] for at least [`IDLE_STRETCH`] on end.
    pub idle: Span,
    /// The most memory that the rank held; of the whole GPU where it was alone and the driver does not tell.
    pub memory: Option<Bytes>,
    /// The memory of the GPU.
    pub capacity: Bytes,
    /// Watt-hours that the GPU took, where it reports its power.
    pub energy: Option<f64>,
    /// Whether another rank was on the GPU at some time.
    pub shared: bool,
    /// How it went, over time.
    pub curve: UsageCurve,
}

/// A GPU below this utilization does nothing.
pub const IDLE_BELOW: f64 = 0.01;

/// Shorter pauses do not count as idle: programs load data, validate, and save.
pub const IDLE_STRETCH: Span = Span::from_secs(600);

/// A job whose GPUs have done nothing for so long is worth telling.
pub const IDLE_WARNING: Span = Span::from_secs(1_800);

/// Means over equal spans since the start of the process, at most [`UsageCurve::MOST_POINTS`].
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageCurve {
    /// The length of each span.
    pub step: Span,
    /// The spans, the earliest first.
    pub points: Vec<UsagePoint>,
}

impl UsageCurve {
    /// Two neighbors are merged into one when there would be more.
    pub const MOST_POINTS: usize = 120;
}

/// Means over a span, in percent; nothing where no reading tells.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsagePoint {
    /// The part of the time in which a kernel ran on the GPU, 0 to 100.
    pub utilization: Option<u8>,
    /// The part of the GPU's memory that the rank held, 0 to 100.
    pub memory: Option<u8>,
}

/// What a job did with a GPU, as the head keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UsageRecord {
    /// Which rank.
    pub rank: RankId,
    /// Whose job.
    pub user: String,
    /// The name of the node.
    pub node: String,
    /// The part of the GPU that it held.
    pub share: Share,
    /// When the head learned of it: for a rank that has ended, of its end.
    pub at: Time,
    /// Whether the rank still ran.
    pub live: bool,
    /// The figures.
    pub usage: DeviceUsage,
}

impl DeviceUsage {
    /// Busy per measured time, 0 to 1; nothing where nothing was measured.
    #[must_use]
    pub fn utilization(&self) -> Option<f64> {
        (self.measured > Span::ZERO).then(|| self.busy.as_secs_f64() / self.measured.as_secs_f64())
    }

    /// The figures within their bounds, whatever a worker reports: spans no longer than the one that they are
    /// a part of, finite numbers, percents up to 100, and a curve of bounded length.
    pub fn bound(&mut self) {
        self.measured = self.measured.min(self.held);
        self.busy = self.busy.min(self.measured);
        self.idle = self.idle.min(self.measured);
        self.energy = self.energy.filter(|it| it.is_finite() && *it >= 0.0);
        self.curve.points.truncate(UsageCurve::MOST_POINTS);
        for point in &mut self.curve.points {
            point.utilization = point.utilization.map(|it| it.min(100));
            point.memory = point.memory.map(|it| it.min(100));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_without_sense_are_bounded() {
        let wild = UsagePoint { utilization: Some(255), memory: Some(101) };
        let mut usage = DeviceUsage {
            device: DeviceId("gpu0".into()),
            held: Span::from_secs(10),
            measured: Span::from_secs(20),
            busy: Span::from_secs(30),
            idle: Span::from_secs(40),
            memory: None,
            capacity: Bytes(1),
            energy: Some(f64::NAN),
            shared: false,
            curve: UsageCurve { step: Span::from_secs(1), points: vec![wild; 1_000] },
        };
        usage.bound();
        let ten = Span::from_secs(10);
        assert_eq!((usage.measured, usage.busy, usage.idle, usage.energy), (ten, ten, ten, None));
        assert_eq!(usage.curve.points.len(), UsageCurve::MOST_POINTS);
        assert!(usage.curve.points.iter().all(|it| (it.utilization, it.memory) == (Some(100), Some(100))));
        assert_eq!(usage.utilization(), Some(1.0));
    }
}
