//! Policies by the names that users write, with their parameters: `a-srpt:theta=1.5,delta=1`.
//!
//! A new policy gets a line in `POLICIES`, which also says whether it is aware of interference. An unknown
//! name, an unknown parameter and a wrong value are refused with what would be right. Nothing here plans.

mod hybrid;
mod parameters;
mod parse_error;
mod placement;
mod sharing;

use cohabit_types::Span;

use crate::Discipline::{self, Backfill, Strict, WorkConserving};
use crate::a_srpt::{ASrpt, ASrptOptions, QueueMode, QueueOrder};
use crate::baselines::{LeastAttained, Preemptive, ShortestDuration, ShortestRemaining, SmallestWork};
use crate::drf::Drf;
use crate::gittins::GittinsOrder;
use crate::interference::InterferenceContext;
use crate::maifs::Maifs;
use crate::mapping::{Selection, Toggle};
use crate::reclaim::Reclaiming;
use crate::sharing::{FirstFitSharing, Horus, LeastLoaded};
use crate::tetris::Tetris;
use crate::tune::Tuned;
use crate::{Fifo, FirstFit, JobOrder, Policy, QueuePolicy};
use Parse::{Aware, Plain};
use hybrid::parse_hybrid;
use parameters::Parameters;
pub use parse_error::PolicyParseError;
use placement::{parse_a_srpt_options, parse_order_options, parse_placer};
use sharing::{parse_clwp_nlwp, parse_isacpp, parse_util_threshold, shared_policy};

/// A policy, or what is wrong with its parameters.
type Parsed = Result<Box<dyn Policy>, PolicyParseError>;

/// Makes a policy with the parameters that were written after its name.
enum Parse {
    /// No plan depends on interference, so nothing is known of it here.
    Plain(fn(&mut Parameters<'_>) -> Parsed),
    /// Plans depend on predictions of interference.
    Aware(fn(&InterferenceContext, &mut Parameters<'_>) -> Parsed),
}

/// The policy whose decisions are made for shares that change.
const MAIFS: &str = "maifs";

/// Every policy, by its name.
const POLICIES: &[(&str, Parse)] = &[
    ("fifo", Plain(|_| Ok(first_come_first_served()))),
    ("fifo-strict", Plain(|parameters| queue_policy(Fifo, Strict, parameters))),
    ("fifo-greedy", Plain(|parameters| queue_policy(Fifo, WorkConserving, parameters))),
    ("easy-backfill", Plain(|parameters| queue_policy(Fifo, Backfill, parameters))),
    ("spd", Plain(|parameters| queue_policy(ShortestDuration, WorkConserving, parameters))),
    ("spd-strict", Plain(|parameters| queue_policy(ShortestDuration, Strict, parameters))),
    ("spw", Plain(|parameters| queue_policy(SmallestWork, WorkConserving, parameters))),
    ("spw-strict", Plain(|parameters| queue_policy(SmallestWork, Strict, parameters))),
    ("las", Plain(|parameters| parse_las(LeastAttained::default(), parameters))),
    ("las-tuned", Plain(|parameters| parse_las(LeastAttained::TUNED, parameters))),
    ("srtf-oracle", Plain(parse_shortest_remaining)),
    ("tetris", Plain(parse_tetris)),
    ("a-srpt", Plain(parse_gittins)),
    (
        "a-srpt-turn",
        Plain(|parameters| parse_a_srpt(ASrptOptions::default(), Selection::default(), parameters)),
    ),
    (
        "a-srpt-no-delay",
        Plain(|parameters| {
            let never = ASrptOptions { theta: f64::INFINITY, ..ASrptOptions::default() };
            parse_a_srpt(never, Selection::default(), parameters)
        }),
    ),
    (
        "a-srpt-strict",
        Plain(|parameters| {
            let (queue_mode, queue_order) = (QueueMode::Strict, QueueOrder::Turn);
            let strict = ASrptOptions { queue_mode, queue_order, ..ASrptOptions::default() };
            parse_a_srpt(strict, Selection::default(), parameters)
        }),
    ),
    (
        "a-srpt-random-map",
        Plain(|parameters| parse_a_srpt(ASrptOptions::default(), Selection::Random(1), parameters)),
    ),
    (
        "a-srpt-no-vm",
        Plain(|parameters| {
            let no_machine = ASrptOptions { virtual_machine: Toggle::Off, ..ASrptOptions::default() };
            parse_a_srpt(no_machine, Selection::default(), parameters)
        }),
    ),
    ("first-fit-sharing", Aware(|context, parameters| shared_policy(FirstFitSharing, context, parameters))),
    ("least-loaded", Aware(|context, parameters| shared_policy(LeastLoaded, context, parameters))),
    ("drf", Aware(parse_drf)),
    ("util-threshold", Aware(parse_util_threshold)),
    ("horus", Aware(|context, parameters| shared_policy(Horus, context, parameters))),
    ("isacpp", Aware(parse_isacpp)),
    ("hybrid", Aware(parse_hybrid)),
    ("clwp-nlwp", Aware(parse_clwp_nlwp)),
    (MAIFS, Aware(parse_maifs)),
];

/// Every name that [`parse_policy`] knows.
pub const POLICY_NAMES: [&str; POLICIES.len()] = {
    let mut names = [""; POLICIES.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = POLICIES[index].0;
        index += 1;
    }
    names
};

/// A new policy with this name and, after a colon, parameters: `las:queues=2,quantum=60`. Where it looks at
/// interference, it uses the analytic model.
///
/// # Errors
/// What is wrong with the text, and what would be right.
pub fn parse_policy(text: &str) -> Result<Box<dyn Policy>, PolicyParseError> {
    parse_policy_with(text, &InterferenceContext::default())
}

/// The same, with this knowledge of interference.
///
/// # Errors
/// As [`parse_policy`].
pub fn parse_policy_with(
    text: &str,
    context: &InterferenceContext,
) -> Result<Box<dyn Policy>, PolicyParseError> {
    let (name, mut parameters) = Parameters::parse(text)?;
    let policy = match find(name)? {
        Plain(parse) => parse(&mut parameters)?,
        Aware(parse) => parse(context, &mut parameters)?,
    };
    let tune = tunes(name, &mut parameters)?;
    parameters.finish()?;
    let policy = Box::new(Reclaiming::new(policy));
    Ok(if tune { Box::new(Tuned::new(policy)) } else { policy })
}

/// Whether plans of the policy that this text names depend on interference.
///
/// # Errors
/// What is wrong with the name.
pub fn uses_interference(text: &str) -> Result<bool, PolicyParseError> {
    let (name, _) = Parameters::parse(text)?;
    find(name).map(|parse| matches!(parse, Aware(_)))
}

/// Whether the policy that this text names tunes shares of cores and host memory by sensitivity.
///
/// # Errors
/// What is wrong with the text.
pub fn uses_sensitivity(text: &str) -> Result<bool, PolicyParseError> {
    let (name, mut parameters) = Parameters::parse(text)?;
    Ok(tunes(name, &mut parameters)? || name == MAIFS)
}

/// Whether trained agents decide for the policy that this text names.
///
/// # Errors
/// What is wrong with the text.
pub fn uses_agents(text: &str) -> Result<bool, PolicyParseError> {
    Parameters::parse(text).map(|(name, _)| name == MAIFS)
}

/// Whether shares are tuned: agents choose shares, so theirs are by default.
fn tunes(name: &str, parameters: &mut Parameters<'_>) -> Result<bool, PolicyParseError> {
    let usual = if name == MAIFS { Toggle::On } else { Toggle::Off };
    Ok(matches!(parameters.choose("tune", &Toggle::NAMES)?.unwrap_or(usual), Toggle::On))
}

fn find(name: &str) -> Result<&'static Parse, PolicyParseError> {
    let known = POLICIES.iter().find(|(known, _)| *known == name);
    known.map(|(_, parse)| parse).ok_or_else(|| PolicyParseError::name(name, &POLICY_NAMES))
}

/// First come, first served, on the first devices that are free: what `fifo` stands for, and the fallback of
/// a head whose policy gives no plan.
#[must_use]
pub fn first_come_first_served() -> Box<dyn Policy> {
    Box::new(QueuePolicy::new(Fifo, FirstFit, Strict))
}

fn queue_policy(
    rank: impl JobOrder + 'static,
    discipline: Discipline,
    parameters: &mut Parameters<'_>,
) -> Parsed {
    Ok(Box::new(QueuePolicy::new(rank, parse_placer(parameters, Selection::default())?, discipline)))
}

/// No job is stopped within ten minutes: long against stopping and starting, short against training.
const LAS_QUANTUM: Span = Span::from_secs(600);

fn parse_las(mut urgency: LeastAttained, parameters: &mut Parameters<'_>) -> Parsed {
    let hours =
        parameters.read("gpu-hours", "a number above 0", |hours: &f64| *hours > 0.0 && *hours < 1e6)?;
    if let Some(hours) = hours {
        urgency.first = Span::from_secs_f64(hours * 3_600.0);
    }
    let factor = parameters.read("factor", "a whole number of at least 2", |factor: &u32| *factor >= 2)?;
    urgency.factor = factor.unwrap_or(urgency.factor);
    let queues =
        parameters.read("queues", "a whole number from 1 to 20", |queues: &u32| (1..=20).contains(queues))?;
    urgency.queues = queues.unwrap_or(urgency.queues);
    let quantum = parse_quantum(parameters)?.unwrap_or(LAS_QUANTUM);
    Ok(Box::new(Preemptive::new(urgency, parse_placer(parameters, Selection::default())?, quantum)))
}

fn parse_shortest_remaining(parameters: &mut Parameters<'_>) -> Parsed {
    let quantum = parse_quantum(parameters)?.unwrap_or(Span::ZERO);
    let place = parse_placer(parameters, Selection::default())?;
    Ok(Box::new(Preemptive::new(ShortestRemaining, place, quantum)))
}

fn parse_quantum(parameters: &mut Parameters<'_>) -> Result<Option<Span>, PolicyParseError> {
    let seconds = parameters.read("quantum", "seconds, 0 or more", |secs: &f64| (0.0..1e9).contains(secs))?;
    Ok(seconds.map(Span::from_secs_f64))
}

fn parse_tetris(parameters: &mut Parameters<'_>) -> Parsed {
    Ok(Box::new(Tetris::new(parse_placer(parameters, Selection::default())?)))
}

fn parse_drf(context: &InterferenceContext, parameters: &mut Parameters<'_>) -> Parsed {
    Ok(Box::new(Drf::new(parse_placer(parameters, Selection::default())?, context)))
}

fn parse_maifs(context: &InterferenceContext, parameters: &mut Parameters<'_>) -> Parsed {
    Ok(Box::new(Maifs::new(parse_placer(parameters, Selection::default())?, context)))
}

fn parse_gittins(parameters: &mut Parameters<'_>) -> Parsed {
    let options = parse_order_options(parameters)?;
    Ok(Box::new(GittinsOrder::new(options, parse_placer(parameters, Selection::default())?)))
}

fn parse_a_srpt(default: ASrptOptions, selection: Selection, parameters: &mut Parameters<'_>) -> Parsed {
    let options = parse_a_srpt_options(default, parameters)?;
    Ok(Box::new(ASrpt::new(&options, parse_placer(parameters, selection)?)))
}
