//! The options of the order, and how users write them. The directory's README says what each was measured
//! to do.

use std::str::FromStr;

use cohabit_types::Span;

use crate::mapping::Toggle;

/// How jobs are ordered and stopped.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OrderOptions {
    /// Whether jobs are stopped for more urgent ones (`preempt`).
    pub(crate) preempt: Toggle,
    /// No job is stopped before it has run this long (`quantum`).
    pub(crate) quantum: Span,
    /// Nor before it ran this many times what the stop costs (`stop-ratio`).
    pub(crate) stop_ratio: f64,
    /// By how much less urgent a job has to be to be stopped: its rank is larger by this factor, minus 1
    /// (`margin`).
    pub(crate) margin: f64,
    /// A place that is slower than the best by at most this factor is good (`theta`, at least 1).
    pub(crate) theta: f64,
    /// A job holds out for a good place at most this many times its typical rest (`delta`).
    pub(crate) delta: f64,
    /// The part of all device time that jobs which waited too long may have at once (`lane`).
    pub(crate) lane: f64,
    /// A job waited too long after this many times what it was expected to take (`patience`) ...
    pub(crate) patience: f64,
    /// ... and this long (`patience-base`).
    pub(crate) patience_base: Span,
    /// The part of all device time that may stay idle so that jobs with several devices find room
    /// (`drain`).
    pub(crate) drain: f64,
}

impl Default for OrderOptions {
    fn default() -> OrderOptions {
        OrderOptions {
            preempt: Toggle::On,
            quantum: Span::from_secs(600),
            stop_ratio: 10.0,
            margin: 1.0,
            theta: 1.5,
            delta: f64::INFINITY,
            lane: 0.05,
            patience: 4.0,
            patience_base: Span::from_secs(86_400),
            drain: 0.02,
        }
    }
}

impl OrderOptions {
    /// The keys that [`OrderOptions::set`] accepts.
    pub(crate) const KEYS: [&'static str; 10] = [
        "preempt",
        "quantum",
        "stop-ratio",
        "margin",
        "theta",
        "delta",
        "lane",
        "patience",
        "patience-base",
        "drain",
    ];

    /// Sets one option as a user writes it: `margin=1`.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what is allowed.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "preempt" => self.preempt = toggle(key, value)?,
            "quantum" => self.quantum = seconds(key, value)?,
            "stop-ratio" => self.stop_ratio = within(0.0..=1e6, key, value)?,
            "margin" => self.margin = within(0.0..=1e6, key, value)?,
            "theta" => self.theta = within(1.0..=1e6, key, value)?,
            "delta" => self.delta = within(0.0..=f64::INFINITY, key, value)?,
            "lane" => self.lane = within(0.0..=1.0, key, value)?,
            "patience" => self.patience = within(0.0..=1e6, key, value)?,
            "patience-base" => self.patience_base = seconds(key, value)?,
            "drain" => self.drain = within(0.0..=1.0, key, value)?,
            _ => {
                let keys = OrderOptions::KEYS.join(", ");
                return Err(format!("there is no parameter '{key}': use one of {keys}"));
            }
        }
        Ok(())
    }
}

fn toggle(key: &str, value: &str) -> Result<Toggle, String> {
    let found = Toggle::NAMES.iter().find(|(name, _)| *name == value).map(|(_, toggle)| *toggle);
    found.ok_or_else(|| format!("{key} is '{value}': use on or off"))
}

fn within(range: std::ops::RangeInclusive<f64>, key: &str, value: &str) -> Result<f64, String> {
    let number = f64::from_str(value).ok().filter(|number| range.contains(number));
    number
        .ok_or_else(|| format!("{key} is '{value}': use a number from {} to {}", range.start(), range.end()))
}

fn seconds(key: &str, value: &str) -> Result<Span, String> {
    within(0.0..=1e9, key, value)
        .map(Span::from_secs_f64)
        .map_err(|_| format!("{key} is '{value}': use a number of seconds from 0 to 1000000000"))
}
