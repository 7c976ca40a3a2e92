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
    /// What a job that waits is promised (`promise`).
    pub(crate) promise: WaitPromise,
    /// With a promised turn: a job is due this many times as long after it could first run as its virtual
    /// turn comes (`promise-factor`, at least 1).
    pub(crate) promise_factor: f64,
    /// The part of all device time that may stay idle so that jobs with several devices find room
    /// (`drain`).
    pub(crate) drain: f64,
}

/// From when on a job that waits goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitPromise {
    /// When it has waited many times what it was expected to take; as long as the lane has device time left.
    Patience,
    /// Some time after its turn on the virtual machine; the lane is a number of devices, in strict order.
    Turn,
}

impl WaitPromise {
    /// The words for it.
    const NAMES: [(&'static str, WaitPromise); 2] =
        [("patience", WaitPromise::Patience), ("turn", WaitPromise::Turn)];
}

/// Four times as long as a day and what a job is expected to take.
pub(crate) const PATIENCE: f64 = 4.0;
pub(crate) const PATIENCE_BASE: Span = Span::from_secs(86_400);

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
            patience: PATIENCE,
            patience_base: PATIENCE_BASE,
            promise: WaitPromise::Patience,
            promise_factor: 4.0,
            drain: 0.02,
        }
    }
}

impl OrderOptions {
    /// The keys that [`OrderOptions::set`] accepts.
    pub(crate) const KEYS: [&'static str; 12] = [
        "preempt",
        "quantum",
        "stop-ratio",
        "margin",
        "theta",
        "delta",
        "lane",
        "patience",
        "patience-base",
        "promise",
        "promise-factor",
        "drain",
    ];

    /// Sets one option as a user writes it: `margin=1`.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what is allowed.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "preempt" => self.preempt = choice(&Toggle::NAMES, key, value)?,
            "quantum" => self.quantum = seconds(key, value)?,
            "stop-ratio" => self.stop_ratio = within(0.0..=1e6, key, value)?,
            "margin" => self.margin = within(0.0..=1e6, key, value)?,
            "theta" => self.theta = within(1.0..=1e6, key, value)?,
            "delta" => self.delta = within(0.0..=f64::INFINITY, key, value)?,
            "lane" => self.lane = within(0.0..=1.0, key, value)?,
            "patience" => self.patience = within(0.0..=1e6, key, value)?,
            "patience-base" => self.patience_base = seconds(key, value)?,
            "promise" => self.promise = choice(&WaitPromise::NAMES, key, value)?,
            "promise-factor" => self.promise_factor = within(1.0..=1e6, key, value)?,
            "drain" => self.drain = within(0.0..=1.0, key, value)?,
            _ => {
                let keys = OrderOptions::KEYS.join(", ");
                return Err(format!("there is no parameter '{key}': use one of {keys}"));
            }
        }
        Ok(())
    }
}

fn choice<T: Copy>(choices: &[(&str, T)], key: &str, value: &str) -> Result<T, String> {
    let found = choices.iter().find(|(name, _)| *name == value).map(|(_, choice)| *choice);
    let names = || choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or ");
    found.ok_or_else(|| format!("{key} is '{value}': use {}", names()))
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
