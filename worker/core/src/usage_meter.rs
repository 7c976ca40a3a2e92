//! Measures what a rank does with a GPU that it holds: from each reading to the next.

use cohabit_types::{
    Bytes, DeviceId, DeviceUsage, GpuReading, IDLE_BELOW, IDLE_STRETCH, Span, Time, UsageCurve, UsagePoint,
};

/// Readings come every two seconds; after a pause of more than this the time between is unknown.
const LONGEST_GAP: Span = Span::from_secs(30);
/// The length of the first spans of a curve: some readings each.
const FIRST_STEP: Span = Span::from_secs(10);

/// A rank and one of its GPUs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UsageMeter {
    capacity: Bytes,
    started_at: Time,
    last_reading: Option<Time>,
    measured: Span,
    /// Seconds of work.
    busy: f64,
    /// Idle stretches that are over.
    idle: Span,
    /// The stretch in which the GPU does nothing, if it does nothing.
    quiet: Option<QuietStretch>,
    memory: Option<Bytes>,
    /// Watt-seconds.
    energy: Option<f64>,
    shared: bool,
    curve: CurveMeter,
}

/// Between two readings.
#[derive(Debug, Clone, Copy, PartialEq)]
struct QuietStretch {
    since: Time,
    until: Time,
}

/// One reading, as far as it concerns a rank.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RankReading<'r> {
    pub(crate) gpu: &'r GpuReading,
    /// The memory of the rank, where it is known.
    pub(crate) memory: Option<Bytes>,
    /// Whether other ranks are on the GPU.
    pub(crate) shared: bool,
}

impl UsageMeter {
    /// Of a rank whose process has run since `started_at`, on a GPU with so much memory.
    pub(crate) fn new(started_at: Time, capacity: Bytes) -> UsageMeter {
        UsageMeter {
            capacity,
            started_at,
            last_reading: None,
            measured: Span::ZERO,
            busy: 0.0,
            idle: Span::ZERO,
            quiet: None,
            memory: None,
            energy: None,
            shared: false,
            curve: CurveMeter::default(),
        }
    }

    pub(crate) fn record(&mut self, now: Time, reading: RankReading<'_>) {
        self.memory = self.memory.max(reading.memory);
        self.shared |= reading.shared;
        let before = self.last_reading.replace(now);
        let covered = before.map(|before| (before, now.since(before)));
        let covered = covered.filter(|(_, length)| *length > Span::ZERO && *length <= LONGEST_GAP);
        let Some(((before, length), utilization)) = covered.zip(reading.gpu.utilization) else {
            return self.end_quiet();
        };
        let (seconds, utilization) = (length.as_secs_f64(), utilization.clamp(0.0, 1.0));
        self.measured = self.measured + length;
        self.busy += seconds * utilization;
        if let Some(power) = reading.gpu.power.filter(|it| it.is_finite()) {
            self.energy = Some(self.energy.unwrap_or(0.0) + seconds * power.max(0.0));
        }
        let memory = reading.memory.map(|held| held.0 as f64 / self.capacity.0.max(1) as f64);
        self.curve.record(before.since(self.started_at), seconds, utilization, memory);
        if utilization < IDLE_BELOW {
            let since = self.quiet_since().unwrap_or(before);
            self.quiet = Some(QuietStretch { since, until: now });
        } else {
            self.end_quiet();
        }
    }

    /// Since when the GPU has done nothing, if it does nothing.
    pub(crate) fn quiet_since(&self) -> Option<Time> {
        self.quiet.map(|quiet| quiet.since)
    }

    /// The figures of a process that has run, or ran, until `end`; nothing before the second reading.
    pub(crate) fn usage(&self, device: &DeviceId, end: Time) -> Option<DeviceUsage> {
        if self.measured == Span::ZERO {
            return None;
        }
        // A process may end between two readings.
        let held = end.since(self.started_at).max(self.measured);
        Some(DeviceUsage {
            device: device.clone(),
            held,
            measured: self.measured,
            busy: Span::from_secs_f64(self.busy).min(self.measured),
            idle: self.idle + self.open_stretch(),
            memory: self.memory,
            capacity: self.capacity,
            energy: self.energy.map(|joules| joules / 3_600.0),
            shared: self.shared,
            curve: self.curve.curve(),
        })
    }

    fn end_quiet(&mut self) {
        self.idle = self.idle + self.open_stretch();
        self.quiet = None;
    }

    /// The length of the stretch in which the GPU does nothing, once it is long enough to count.
    fn open_stretch(&self) -> Span {
        let open = self.quiet.map(|quiet| quiet.until.since(quiet.since));
        open.filter(|open| *open >= IDLE_STRETCH).unwrap_or(Span::ZERO)
    }
}

/// A curve in the making. Sums are kept, not means, so merging neighbors loses nothing.
#[derive(Debug, Clone, PartialEq)]
struct CurveMeter {
    step: Span,
    points: Vec<PointSums>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct PointSums {
    utilization: WeightedSum,
    memory: WeightedSum,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct WeightedSum {
    sum: f64,
    weight: f64,
}

impl Default for CurveMeter {
    fn default() -> CurveMeter {
        CurveMeter { step: FIRST_STEP, points: Vec::new() }
    }
}

impl CurveMeter {
    /// Adds values that held for `seconds` since `start`, a time after the start of the process.
    fn record(&mut self, start: Span, seconds: f64, utilization: f64, memory: Option<f64>) {
        let index = |step: Span| usize::try_from(start.as_micros() / step.as_micros()).unwrap_or(usize::MAX);
        while index(self.step) >= UsageCurve::MOST_POINTS {
            self.halve();
        }
        let index = index(self.step);
        if self.points.len() <= index {
            self.points.resize(index + 1, PointSums::default());
        }
        self.points[index].utilization.add(utilization, seconds);
        if let Some(memory) = memory {
            self.points[index].memory.add(memory, seconds);
        }
    }

    fn halve(&mut self) {
        self.step = self.step + self.step;
        let merged = self.points.chunks(2).map(|pair| match pair {
            [first, second] => first.with(second),
            rest => rest.first().copied().unwrap_or_default(),
        });
        self.points = merged.collect();
    }

    fn curve(&self) -> UsageCurve {
        let points = self
            .points
            .iter()
            .map(|it| UsagePoint { utilization: it.utilization.percent(), memory: it.memory.percent() });
        UsageCurve { step: self.step, points: points.collect() }
    }
}

impl PointSums {
    fn with(&self, other: &PointSums) -> PointSums {
        PointSums {
            utilization: self.utilization.with(&other.utilization),
            memory: self.memory.with(&other.memory),
        }
    }
}

impl WeightedSum {
    fn add(&mut self, value: f64, weight: f64) {
        *self = self.with(&WeightedSum { sum: value * weight, weight });
    }

    fn with(&self, other: &WeightedSum) -> WeightedSum {
        WeightedSum { sum: self.sum + other.sum, weight: self.weight + other.weight }
    }

    fn percent(&self) -> Option<u8> {
        let mean = (self.weight > 0.0).then(|| self.sum / self.weight)?;
        Some((mean * 100.0).round().clamp(0.0, 100.0) as u8)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gpu(utilization: f64) -> GpuReading {
        GpuReading { utilization: Some(utilization), power: Some(360.0), ..GpuReading::default() }
    }

    fn at(secs: u64) -> Time {
        Time::from_micros(secs * 1_000_000)
    }

    /// Readings every two seconds from second 0, of a process that started at second 0.
    fn metered(utilizations: impl IntoIterator<Item = f64>) -> UsageMeter {
        let mut meter = UsageMeter::new(at(0), Bytes(100));
        meter.record(at(0), RankReading { gpu: &gpu(0.0), memory: None, shared: false });
        for (number, utilization) in (1..).zip(utilizations) {
            let reading = RankReading { gpu: &gpu(utilization), memory: Some(Bytes(25)), shared: false };
            meter.record(at(number * 2), reading);
        }
        meter
    }

    fn usage(meter: &UsageMeter, end: u64) -> DeviceUsage {
        meter.usage(&DeviceId("gpu0".into()), at(end)).unwrap()
    }

    #[test]
    fn work_is_integrated_over_the_measured_time() {
        let usage = usage(&metered([1.0, 0.5, 0.0, 0.5]), 9);
        let seconds = [usage.held, usage.measured, usage.busy, usage.idle].map(|it| it.as_secs_f64());
        assert_eq!(seconds, [9.0, 8.0, 4.0, 0.0]);
        assert_eq!((usage.memory, usage.energy), (Some(Bytes(25)), Some(8.0 * 360.0 / 3_600.0)));
        let point = UsagePoint { utilization: Some(50), memory: Some(25) };
        assert_eq!(usage.curve, UsageCurve { step: FIRST_STEP, points: vec![point] });
    }

    #[test]
    fn a_pause_counts_as_idle_once_it_is_long() {
        let pause = |readings: usize| {
            let busy = [1.0];
            metered(busy.into_iter().chain(vec![0.0; readings]).chain(busy)).idle.as_secs_f64()
        };
        assert_eq!((pause(299), pause(300)), (0.0, 600.0));
        let open = metered(vec![0.001; 400]);
        assert_eq!((open.quiet_since(), usage(&open, 800).idle), (Some(at(0)), Span::from_secs(800)));
    }

    #[test]
    fn time_without_readings_is_unknown_and_ends_a_pause() {
        let mut meter = metered(vec![0.0; 200]);
        meter.record(at(1_000), RankReading { gpu: &gpu(0.0), memory: None, shared: true });
        meter.record(at(1_002), RankReading { gpu: &gpu(0.0), memory: None, shared: false });
        let seen = usage(&meter, 1_002);
        assert_eq!((seen.measured, seen.idle), (Span::from_secs(402), Span::ZERO));
        assert_eq!((seen.shared, meter.quiet_since()), (true, Some(at(1_000))));
        let gap = seen.curve.points[50];
        assert_eq!(gap, UsagePoint::default(), "a gap, not a zero");
        let blind = GpuReading::default();
        meter.record(at(1_004), RankReading { gpu: &blind, memory: None, shared: false });
        assert_eq!((usage(&meter, 1_004).measured, meter.quiet_since()), (seen.measured, None));
    }

    #[test]
    fn one_reading_measures_nothing() {
        let meter = metered([]);
        assert_eq!(meter.usage(&DeviceId("gpu0".into()), at(1)), None);
    }

    proptest! {
        /// Whatever is read: parts are no longer than the whole, curves have at most 120 points, and their
        /// mean is that of the readings.
        #[test]
        fn figures_agree(utilizations in proptest::collection::vec(0.0..=1.0f64, 1..3_000)) {
            let usage = usage(&metered(utilizations.iter().copied()), 2 * utilizations.len() as u64);
            prop_assert!(usage.busy <= usage.measured && usage.idle <= usage.measured);
            prop_assert!(usage.measured <= usage.held);
            prop_assert!(usage.curve.points.len() <= UsageCurve::MOST_POINTS);
            let mean = utilizations.iter().sum::<f64>() / utilizations.len() as f64;
            prop_assert!((usage.utilization().unwrap() - mean).abs() < 1e-3);
            // The last span may be shorter than the others, so it weighs less.
            let whole = usage.held.as_micros() / usage.curve.step.as_micros();
            if let Some(readings) = usize::try_from(whole * usage.curve.step.as_micros() / 2_000_000).ok()
                && readings > 0
            {
                let of_readings = utilizations[..readings].iter().sum::<f64>() / readings as f64;
                let points = &usage.curve.points[..whole as usize];
                let of_points = points.iter().map(|it| f64::from(it.utilization.unwrap())).sum::<f64>();
                prop_assert!((of_points / points.len() as f64 / 100.0 - of_readings).abs() < 0.006);
            }
        }
    }
}
