//! Ticks of axes of time, in round units.

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;

/// Steps between the ticks of an axis of time, in seconds.
const STEPS: [f64; 24] = [
    1.0,
    2.0,
    5.0,
    10.0,
    30.0,
    MINUTE,
    2.0 * MINUTE,
    5.0 * MINUTE,
    10.0 * MINUTE,
    30.0 * MINUTE,
    HOUR,
    2.0 * HOUR,
    6.0 * HOUR,
    12.0 * HOUR,
    DAY,
    2.0 * DAY,
    5.0 * DAY,
    10.0 * DAY,
    20.0 * DAY,
    50.0 * DAY,
    100.0 * DAY,
    200.0 * DAY,
    500.0 * DAY,
    1_000.0 * DAY,
];
/// Positions of ticks of a logarithmic axis of time, in seconds.
const LANDMARKS: [f64; 15] = [
    0.001,
    0.01,
    0.1,
    1.0,
    10.0,
    MINUTE,
    10.0 * MINUTE,
    HOUR,
    6.0 * HOUR,
    DAY,
    7.0 * DAY,
    30.0 * DAY,
    100.0 * DAY,
    1_000.0 * DAY,
    10_000.0 * DAY,
];
/// More tick labels would overlap.
const MAX_TICKS: f64 = 9.0;

/// Round times in an interval, in seconds.
pub(super) fn times(from: f64, to: f64) -> Vec<f64> {
    let room = (to - from) / MAX_TICKS;
    let step = STEPS.into_iter().find(|step| *step >= room).unwrap_or(to - from);
    let first = (from / step).ceil() as u64;
    (first..).map(|number| number as f64 * step).take_while(|time| *time <= to).collect()
}

/// Landmarks in an interval; the interval and the results are powers of ten.
pub(super) fn logarithms(from: f64, to: f64) -> Vec<f64> {
    LANDMARKS.into_iter().map(f64::log10).filter(|power| (from..=to).contains(power)).collect()
}

/// A round time in its largest unit: `30 s`, `10 min`, `6 h`, `2 d`.
pub(super) fn format_time(seconds: f64) -> String {
    let units = [(DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1.0, "s")];
    // A time that was computed as a power of ten is not exactly round.
    let is_whole = |unit: f64| {
        let count = (seconds / unit).round();
        count >= 1.0 && (seconds / unit - count).abs() < 1e-6
    };
    match units.into_iter().find(|(unit, _)| is_whole(*unit)) {
        Some((unit, name)) => format!("{:.0} {name}", seconds / unit),
        None if seconds == 0.0 => "0".to_owned(),
        None if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        None => format!("{seconds:.0} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(
            times(0.0, 3_600.0).iter().map(|it| format_time(*it)).collect::<Vec<_>>(),
            ["0", "10 min", "20 min", "30 min", "40 min", "50 min", "1 h"]
        );
        assert_eq!(times(100.0, 130.0), [100.0, 105.0, 110.0, 115.0, 120.0, 125.0, 130.0]);
        for length in [0.5, 7.0, 86_400.0, 4e7, 3e9] {
            assert!(times(0.0, length).len() <= 11, "{length}: {:?}", times(0.0, length));
        }
    }

    #[test]
    fn landmarks_are_within_the_interval() {
        let labels: Vec<String> =
            logarithms(-0.5, 5.0).iter().map(|power| format_time(10_f64.powf(*power))).collect();
        assert_eq!(labels, ["1 s", "10 s", "1 min", "10 min", "1 h", "6 h", "1 d"]);
    }
}
