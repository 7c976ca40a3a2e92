//! How busy the GPUs of a job were, and how much of their memory it held: a chart for each rank and GPU.
//!
//! Pure: from what workers measured to what the template draws.

use cohabit_client::types::{AttemptId, JobId, UsageCurve, UsagePoint, UsageRecord, counted};
use cohabit_console::records::gpu_usage::attempt_usage;
use cohabit_console::records::short_name::short_name;

use super::chart_field::{BOTTOM, LEFT, RIGHT, TOP};
use super::curve_path::curve_path;

/// The most charts: a gang may have thousands of GPUs.
const MOST_CHARTS: usize = 8;
/// Names are cut to so many characters.
const LONGEST_NAME: usize = 40;

/// The GPUs of one attempt.
#[derive(Debug)]
pub(crate) struct GpuCurves {
    pub(crate) attempt: u32,
    pub(crate) charts: Vec<GpuChart>,
    /// What has no chart.
    pub(crate) others: Option<String>,
}

/// A rank and one of its GPUs.
#[derive(Debug, PartialEq)]
pub(crate) struct GpuChart {
    pub(crate) name: String,
    pub(crate) figures: String,
    /// The path of how busy it was.
    pub(crate) busy: String,
    /// The path of the memory that the rank held.
    pub(crate) memory: String,
    /// How long the rank held it.
    pub(crate) held: String,
    /// Everything in one sentence.
    pub(crate) words: String,
}

impl GpuCurves {
    /// The latest attempt of which something was measured; nothing where there is none.
    pub(crate) fn new(job: JobId, usage: &[UsageRecord]) -> Option<GpuCurves> {
        let measured = || usage.iter().filter(|it| !it.usage.curve.points.is_empty());
        let attempt = measured().map(|it| it.rank.attempt).filter(|it| it.job == job).max()?;
        let mut records: Vec<&UsageRecord> = measured().filter(|it| it.rank.attempt == attempt).collect();
        records.sort_by_key(|it| (it.rank.rank, &it.usage.device));
        let others = records.split_off(records.len().min(MOST_CHARTS));
        let others = (!others.is_empty()).then(|| {
            let count = counted(others.len(), "more GPU has", "more GPUs have");
            format!("{count} no chart here: cohabit show {job} --output json has them.")
        });
        let charts = records.into_iter().map(|it| GpuChart::new(attempt, it)).collect();
        Some(GpuCurves { attempt: attempt.attempt, charts, others })
    }
}

impl GpuChart {
    fn new(attempt: AttemptId, record: &UsageRecord) -> GpuChart {
        let (usage, curve) = (&record.usage, &record.usage.curve);
        let device = short_name(&usage.device.to_string(), LONGEST_NAME);
        let node = short_name(&record.node, LONGEST_NAME);
        let name = format!("Rank {}, GPU {device} on {node}", record.rank.rank);
        let figures = attempt_usage(std::slice::from_ref(record), attempt);
        let figures = figures.unwrap_or_else(|| "nothing measured".to_owned());
        GpuChart {
            busy: path(curve, |point| point.utilization),
            memory: path(curve, |point| point.memory),
            held: usage.held.to_string(),
            words: format!("GPU use over {}. {name}: {figures}", usage.held),
            name,
            figures,
        }
    }
}

/// The path of percents; a gap where nothing is known.
fn path(curve: &UsageCurve, percent: fn(&UsagePoint) -> Option<u8>) -> String {
    let width = (RIGHT - LEFT) / curve.points.len() as f64;
    let place = |(point, index): (&UsagePoint, u32)| {
        let height = f64::from(percent(point)?.min(100)) / 100.0;
        Some((LEFT + (f64::from(index) + 0.5) * width, BOTTOM - height * (BOTTOM - TOP)))
    };
    curve_path(curve.points.iter().zip(0..).map(place))
}

#[cfg(test)]
mod tests {
    use cohabit_client::types::{Bytes, DeviceId, DeviceUsage, Share, Span, Time};

    use super::*;

    fn record(attempt: u32, rank: u32, utilization: &[Option<u8>]) -> UsageRecord {
        let point = |it: &Option<u8>| UsagePoint { utilization: *it, memory: it.map(|_| 50) };
        let held = Span::from_secs(60);
        UsageRecord {
            rank: JobId::new(7).attempt(attempt).rank(rank),
            user: "ada".into(),
            node: "gpu1".into(),
            share: Share::WHOLE,
            at: Time::EPOCH,
            live: false,
            usage: DeviceUsage {
                device: DeviceId("GPU-1".into()),
                held,
                measured: held,
                busy: Span::from_secs(30),
                idle: Span::ZERO,
                memory: None,
                capacity: Bytes(80 << 30),
                energy: None,
                shared: false,
                curve: UsageCurve {
                    step: Span::from_secs(20),
                    points: utilization.iter().map(point).collect(),
                },
            },
        }
    }

    #[test]
    fn a_point_lies_in_the_middle_of_its_span_and_what_is_unknown_is_a_gap() {
        let usage = [record(1, 0, &[Some(100), None, Some(0)])];
        let curves = GpuCurves::new(JobId::new(7), &usage).unwrap();
        let [chart] = &curves.charts[..] else { panic!("{curves:?}") };
        assert_eq!(chart.busy, "M107.0 12.0h.9M287.0 142.0h.9");
        assert_eq!(chart.memory, "M107.0 77.0h.9M287.0 77.0h.9");
        assert_eq!(chart.words, "GPU use over 1 min 0 s. Rank 0, GPU GPU-1 on gpu1: 50% busy of 1 min 0 s");
    }

    #[test]
    fn only_the_latest_measured_attempt_is_drawn_by_rank_and_not_endlessly() {
        let ranks = (0..10).rev().map(|rank| record(2, rank, &[Some(1)]));
        let usage: Vec<UsageRecord> =
            [record(1, 0, &[Some(9)]), record(3, 0, &[])].into_iter().chain(ranks).collect();
        let curves = GpuCurves::new(JobId::new(7), &usage).unwrap();
        assert_eq!((curves.attempt, curves.charts.len()), (2, MOST_CHARTS));
        assert!(curves.charts[0].name.starts_with("Rank 0,") && curves.charts[7].name.starts_with("Rank 7,"));
        assert_eq!(
            curves.others.as_deref(),
            Some("2 more GPUs have no chart here: cohabit show 7 --output json has them.")
        );
        assert!(GpuCurves::new(JobId::new(7), &[record(3, 0, &[])]).is_none());
    }
}
