//! The options of A-SRPT, and how users write them.
//!
//! The directory's README says which of them are the paper's and which are inferred.

use std::str::FromStr;

use cohabit_types::Span;

use crate::mapping::Toggle;

/// How A-SRPT plans. The defaults schedule best by measurement: see the directory's README.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ASrptOptions {
    /// A job whose worst placement is slower than its best by more than this factor may wait for a better
    /// one (`theta`, at least 1).
    pub(crate) theta: f64,
    /// It waits at most this many times its shortest runtime (`delta`).
    pub(crate) delta: f64,
    /// And at most this long (`tau`).
    pub(crate) tau: Option<Span>,
    /// What happens to the jobs behind one that does not fit.
    pub(crate) queue_mode: QueueMode,
    /// The order of jobs whose virtual turn has come.
    pub(crate) queue_order: QueueOrder,
    /// What happens to other jobs once one is starving; a strict queue needs no barrier.
    pub(crate) starvation_barrier: StarvationBarrier,
    /// Whether a job may start before its virtual turn if devices are idle.
    pub(crate) eager_start: Toggle,
    /// Which iteration time the virtual machine uses.
    pub(crate) virtual_alpha: VirtualAlpha,
    /// Whether the virtual machine is used; without it, the shortest expected runtime goes first.
    pub(crate) virtual_machine: Toggle,
}

/// What happens to the jobs behind one that does not fit.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueMode {
    /// They may pass.
    #[default]
    Greedy,
    /// They wait.
    Strict,
}

/// What happens to other jobs once one is starving.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StarvationBarrier {
    /// Nothing: jobs may pass it for ever.
    #[default]
    Off,
    /// Resources are reserved for it: only jobs that are expected to end before the reservation, or to leave
    /// it intact, may pass.
    Reserve,
    /// No job passes it.
    Block,
}

/// The order of jobs whose virtual turn has come.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueOrder {
    /// By expected runtime.
    #[default]
    Duration,
    /// By the time of the virtual turn (`q_i`), as in the paper.
    Turn,
}

/// The iteration time by which the virtual machine measures a job's work.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VirtualAlpha {
    /// That of the mapper's placement on the empty cluster.
    #[default]
    HeavyEdge,
    /// That of the worst placement.
    Max,
    /// A lower bound for all placements.
    LowerBound,
}

impl Default for ASrptOptions {
    fn default() -> ASrptOptions {
        ASrptOptions {
            theta: 1.5,
            delta: 1.0,
            tau: None,
            queue_mode: QueueMode::default(),
            queue_order: QueueOrder::default(),
            starvation_barrier: StarvationBarrier::default(),
            eager_start: Toggle::Off,
            virtual_alpha: VirtualAlpha::default(),
            virtual_machine: Toggle::On,
        }
    }
}

impl ASrptOptions {
    /// The keys that [`ASrptOptions::set`] accepts.
    pub(crate) const KEYS: [&'static str; 9] = [
        "theta",
        "delta",
        "tau",
        "queue",
        "order",
        "starvation-barrier",
        "eager-start",
        "virtual-alpha",
        "virtual-machine",
    ];

    /// Sets one option as a user writes it: `theta=1.5`.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what is allowed.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "theta" => self.theta = at_least(1.0, key, value)?,
            "delta" => self.delta = at_least(0.0, key, value)?,
            "tau" => self.tau = tau(value)?,
            "queue" => {
                let modes = [("greedy", QueueMode::Greedy), ("strict", QueueMode::Strict)];
                self.queue_mode = one_of(&modes, key, value)?;
            }
            "order" => {
                let orders = [("turn", QueueOrder::Turn), ("duration", QueueOrder::Duration)];
                self.queue_order = one_of(&orders, key, value)?;
            }
            "starvation-barrier" => {
                self.starvation_barrier = one_of(&BARRIERS, key, value)?;
            }
            "eager-start" => self.eager_start = one_of(&Toggle::NAMES, key, value)?,
            "virtual-alpha" => self.virtual_alpha = one_of(&ALPHAS, key, value)?,
            "virtual-machine" => self.virtual_machine = one_of(&Toggle::NAMES, key, value)?,
            _ => {
                return Err(format!(
                    "a-srpt has no parameter '{key}': use one of {}",
                    ASrptOptions::KEYS.join(", ")
                ));
            }
        }
        Ok(())
    }
}

const BARRIERS: [(&str, StarvationBarrier); 3] = [
    ("off", StarvationBarrier::Off),
    ("reserve", StarvationBarrier::Reserve),
    ("block", StarvationBarrier::Block),
];

const ALPHAS: [(&str, VirtualAlpha); 3] = [
    ("heavy-edge", VirtualAlpha::HeavyEdge),
    ("max", VirtualAlpha::Max),
    ("lower-bound", VirtualAlpha::LowerBound),
];

fn at_least(least: f64, key: &str, value: &str) -> Result<f64, String> {
    let number = f64::from_str(value).ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("{key} is '{value}': use a number of at least {least}, or inf"))
}

fn tau(value: &str) -> Result<Option<Span>, String> {
    let seconds = || f64::from_str(value).ok().filter(|seconds| *seconds >= 0.0 && seconds.is_finite());
    match value {
        "none" => Ok(None),
        _ => match seconds() {
            Some(seconds) => Ok(Some(Span::from_secs_f64(seconds))),
            None => Err(format!("tau is '{value}': use a number of seconds, or none")),
        },
    }
}

fn one_of<T: Copy>(choices: &[(&str, T)], key: &str, value: &str) -> Result<T, String> {
    let found = choices.iter().find(|(name, _)| *name == value).map(|(_, choice)| *choice);
    found.ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        format!("{key} is '{value}': use {}", names.join(" or "))
    })
}
