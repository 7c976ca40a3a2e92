//! Figures: one printed line for many measurements.

use std::time::Duration;

/// Prints one figure: bench, quantity, value.
#[expect(clippy::print_stdout, reason = "a bench is read on a terminal")]
pub(crate) fn print_figure(bench: &str, what: &str, value: &str) {
    println!("{bench:<16} {what:<58} {value}");
}

/// Prints an error.
#[expect(clippy::print_stderr, reason = "a bench is read on a terminal")]
pub(crate) fn print_error(what: &str) {
    eprintln!("{what}");
}

/// Median, 99th percentile and maximum, in milliseconds.
pub(crate) fn format_percentiles(mut times: Vec<Duration>) -> String {
    if times.is_empty() {
        return "none".to_owned();
    }
    times.sort_unstable();
    let at = |part: f64| millis(times[((times.len() - 1) as f64 * part) as usize]);
    format!("p50 {} ms, p99 {} ms, most {} ms, of {}", at(0.5), at(0.99), at(1.0), times.len())
}

/// The median.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

pub(crate) fn millis(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

/// The rate per second.
pub(crate) fn rate(count: usize, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64()
}
