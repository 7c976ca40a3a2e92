//! The GPU memory and utilization of a set.
//!
//! Pure.

use std::time::Duration;

use cohabit_types::{Bytes, GpuPerformance, GpuReading};

/// One sample of the GPU while a set runs.
#[derive(Debug, Clone)]
pub(super) struct UsageSample {
    /// The time since the set started.
    pub(super) at: Duration,
    pub(super) reading: GpuReading,
    /// GPU memory of each member, where the driver reports it.
    pub(super) members: Vec<Option<Bytes>>,
}

/// The usage over all samples.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct SetUsage {
    /// The peak memory of each member.
    pub(super) memory: Vec<Option<Bytes>>,
    /// The fraction of the measurement in which the GPU was busy.
    pub(super) utilization: Option<f64>,
    /// Averages over the measurement.
    pub(super) performance: Option<GpuPerformance>,
}

/// The usage of this many members, measured from this time on. If the driver reports no processes, a single
/// member has all memory beyond what was in use before.
pub(super) fn usage(
    samples: &[UsageSample],
    members: usize,
    from: Duration,
    before: Option<Bytes>,
) -> SetUsage {
    let largest = |member: usize| samples.iter().filter_map(|sample| *sample.members.get(member)?).max();
    let alone = || {
        Some(samples.iter().filter_map(|sample| sample.reading.memory_used).max()?.saturating_sub(before?))
    };
    let memory = |member| largest(member).or_else(|| if members == 1 { alone() } else { None });
    let measured: Vec<&GpuReading> =
        samples.iter().filter(|sample| sample.at >= from).map(|sample| &sample.reading).collect();
    // The first sample covers time before the measurement; it is only used if there is no other.
    let measured = if measured.len() > 1 { &measured[1..] } else { &measured };
    SetUsage {
        memory: (0..members).map(memory).collect(),
        utilization: mean(measured.iter().map(|reading| reading.utilization)),
        performance: performance(measured),
    }
}

fn performance(readings: &[&GpuReading]) -> Option<GpuPerformance> {
    let samples: Vec<&GpuPerformance> =
        readings.iter().filter_map(|reading| reading.performance.as_ref()).collect();
    let mean =
        |of: fn(&GpuPerformance) -> Option<f64>| mean(samples.iter().map(|performance| of(performance)));
    (!samples.is_empty()).then(|| GpuPerformance {
        sm_active: mean(|it| it.sm_active),
        sm_occupancy: mean(|it| it.sm_occupancy),
        tensor_active: mean(|it| it.tensor_active),
        memory_bandwidth: mean(|it| it.memory_bandwidth),
    })
}

/// The mean of the known values.
fn mean(numbers: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let known: Vec<f64> = numbers.flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Duration = Duration::from_secs(5);

    fn sample(at: u64, utilization: f64, used: u64, members: &[Option<u64>]) -> UsageSample {
        let reading = GpuReading {
            utilization: Some(utilization),
            memory_used: Some(Bytes(used)),
            performance: Some(GpuPerformance { sm_active: Some(utilization / 2.0), ..Default::default() }),
            ..GpuReading::default()
        };
        UsageSample {
            at: Duration::from_secs(at),
            reading,
            members: members.iter().map(|it| it.map(Bytes)).collect(),
        }
    }

    #[test]
    fn memory_is_the_overall_peak_and_utilization_the_mean_of_the_measurement() {
        let samples = [
            sample(1, 1.0, 900, &[Some(600), Some(100)]),
            sample(5, 1.0, 500, &[Some(200), Some(200)]),
            sample(6, 0.4, 500, &[Some(200), Some(300)]),
            sample(7, 0.6, 500, &[None, Some(300)]),
        ];
        let usage = usage(&samples, 2, FROM, Some(Bytes(50)));
        assert_eq!(usage.memory, [Some(Bytes(600)), Some(Bytes(300))]);
        assert_eq!(usage.utilization, Some(0.5));
        assert_eq!(usage.performance.unwrap().sm_active, Some(0.25));
    }

    #[test]
    fn a_single_member_has_all_used_memory_if_processes_are_not_reported() {
        let samples = [sample(1, 0.0, 900, &[None, None]), sample(6, 0.0, 700, &[None, None])];
        assert_eq!(usage(&samples, 1, FROM, Some(Bytes(50))).memory, [Some(Bytes(850))]);
        assert_eq!(usage(&samples, 2, FROM, Some(Bytes(50))).memory, [None, None]);
    }

    #[test]
    fn a_single_sample_is_used() {
        let usage = usage(&[sample(1, 1.0, 0, &[]), sample(5, 0.5, 0, &[])], 1, FROM, None);
        assert_eq!(usage.utilization, Some(0.5));
    }

    #[test]
    fn values_that_are_not_reported_are_none() {
        let nothing = UsageSample { at: FROM, reading: GpuReading::default(), members: vec![None] };
        let usage = usage(&[nothing.clone(), nothing], 1, FROM, None);
        assert_eq!(usage, SetUsage { memory: vec![None], ..SetUsage::default() });
    }
}
