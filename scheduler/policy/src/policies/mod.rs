//! Policies by the names that users write, with their parameters: `a-srpt:theta=1.5,delta=1`.
//!
//! What is no name, no parameter of the policy or no allowed value is refused with what would have been
//! right. Nothing here plans.

mod hybrid;
mod parameters;
mod refusal;
mod sharing;

use cohabit_types::{Bandwidth, Span};

use crate::interference::InterferenceContext;
use crate::mapping::{IterationModel, MapperOptions, NicShare, Selection, Toggle};
use crate::{
    ASrpt, ASrptOptions, Discipline, Fifo, FirstFit, JobOrder, LeastAttained, LinkDefaults, MappedPlacer,
    Policy, Preemptive, QueueMode, QueueOrder, QueuePolicy, ShortestDuration, ShortestRemaining,
    SmallestWork,
};
use parameters::Parameters;
pub use refusal::PolicyParseError;
use sharing::sharing;

/// Every name that [`parse_policy`] knows.
pub const POLICY_NAMES: [&str; 22] = [
    "fifo",
    "fifo-strict",
    "fifo-greedy",
    "easy-backfill",
    "spd",
    "spd-strict",
    "spw",
    "spw-strict",
    "las",
    "srtf-oracle",
    "a-srpt",
    "a-srpt-no-delay",
    "a-srpt-strict",
    "a-srpt-random-map",
    "a-srpt-no-vm",
    "first-fit-sharing",
    "least-loaded",
    "util-threshold",
    "horus",
    "isacpp",
    "hybrid",
    "clwp-nlwp",
];

/// A new policy of this name, with parameters if any follow a colon: `las:queues=2,quantum=60`. Where it
/// looks at interference, it goes by the law.
///
/// # Errors
/// What is wrong with the text, and what would be right.
pub fn parse_policy(text: &str) -> Result<Box<dyn Policy>, PolicyParseError> {
    parse_policy_with(text, &InterferenceContext::default())
}

/// The same; where it looks at interference, it goes by this.
///
/// # Errors
/// As [`parse_policy`].
pub fn parse_policy_with(
    text: &str,
    knowledge: &InterferenceContext,
) -> Result<Box<dyn Policy>, PolicyParseError> {
    let (name, mut parameters) = Parameters::parse(text)?;
    let policy = named(name, knowledge, &mut parameters)?;
    parameters.finish()?;
    Ok(policy)
}

fn named(
    name: &str,
    knowledge: &InterferenceContext,
    parameters: &mut Parameters<'_>,
) -> Result<Box<dyn Policy>, PolicyParseError> {
    use Discipline::{Backfill, Strict, WorkConserving};
    match name {
        "fifo" => Ok(Box::new(QueuePolicy::new(Fifo, FirstFit, Strict))),
        "fifo-strict" => pipeline(Fifo, Strict, parameters),
        "fifo-greedy" => pipeline(Fifo, WorkConserving, parameters),
        "easy-backfill" => pipeline(Fifo, Backfill, parameters),
        "spd" => pipeline(ShortestDuration, WorkConserving, parameters),
        "spd-strict" => pipeline(ShortestDuration, Strict, parameters),
        "spw" => pipeline(SmallestWork, WorkConserving, parameters),
        "spw-strict" => pipeline(SmallestWork, Strict, parameters),
        "las" => las(parameters),
        "srtf-oracle" => {
            let quantum = quantum(parameters)?.unwrap_or(Span::ZERO);
            Ok(Box::new(Preemptive::new(
                ShortestRemaining,
                place(parameters, Selection::default())?,
                quantum,
            )))
        }
        "a-srpt" => a_srpt(ASrptOptions::default(), Selection::default(), parameters),
        "hybrid" => hybrid::hybrid(knowledge, parameters),
        "a-srpt-no-delay" => {
            let never = ASrptOptions { theta: f64::INFINITY, ..ASrptOptions::default() };
            a_srpt(never, Selection::default(), parameters)
        }
        "a-srpt-strict" => {
            let (queue_mode, queue_order) = (QueueMode::Strict, QueueOrder::Turn);
            let strict = ASrptOptions { queue_mode, queue_order, ..ASrptOptions::default() };
            a_srpt(strict, Selection::default(), parameters)
        }
        "a-srpt-random-map" => a_srpt(ASrptOptions::default(), Selection::Random(1), parameters),
        "a-srpt-no-vm" => {
            let no_machine = ASrptOptions { virtual_machine: Toggle::Off, ..ASrptOptions::default() };
            a_srpt(no_machine, Selection::default(), parameters)
        }
        other => sharing(other, knowledge, parameters)
            .unwrap_or_else(|| Err(PolicyParseError::name(other, &POLICY_NAMES))),
    }
}

fn pipeline(
    rank: impl JobOrder + 'static,
    discipline: Discipline,
    parameters: &mut Parameters<'_>,
) -> Result<Box<dyn Policy>, PolicyParseError> {
    Ok(Box::new(QueuePolicy::new(rank, place(parameters, Selection::default())?, discipline)))
}

/// No job is stopped within ten minutes: long against stopping and starting, short against training.
const LAS_QUANTUM: Span = Span::from_secs(600);

fn las(parameters: &mut Parameters<'_>) -> Result<Box<dyn Policy>, PolicyParseError> {
    let mut urgency = LeastAttained::default();
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
    let quantum = quantum(parameters)?.unwrap_or(LAS_QUANTUM);
    Ok(Box::new(Preemptive::new(urgency, place(parameters, Selection::default())?, quantum)))
}

fn quantum(parameters: &mut Parameters<'_>) -> Result<Option<Span>, PolicyParseError> {
    let seconds = parameters.read("quantum", "seconds, 0 or more", |secs: &f64| (0.0..1e9).contains(secs))?;
    Ok(seconds.map(Span::from_secs_f64))
}

fn a_srpt(
    default: ASrptOptions,
    selection: Selection,
    parameters: &mut Parameters<'_>,
) -> Result<Box<dyn Policy>, PolicyParseError> {
    let options = order(default, parameters)?;
    Ok(Box::new(ASrpt::new(&options, place(parameters, selection)?)))
}

/// The switches of A-SRPT; those that are not given are `options`.
fn order(
    mut options: ASrptOptions,
    parameters: &mut Parameters<'_>,
) -> Result<ASrptOptions, PolicyParseError> {
    for key in ASrptOptions::KEYS {
        if let Some(value) = parameters.take(key) {
            options.set(key, value).map_err(|why| parameters.refuse(why))?;
        }
    }
    Ok(options)
}

const SWITCHES: [(&str, Toggle); 2] = [("on", Toggle::On), ("off", Toggle::Off)];

/// The choice of place, which takes the same parameters in all policies that have it.
fn place(parameters: &mut Parameters<'_>, selection: Selection) -> Result<MappedPlacer, PolicyParseError> {
    let default = MapperOptions::default();
    let nic_shares = [("device", NicShare::Device), ("job", NicShare::Job)];
    let micro_batches =
        parameters.read("micro-batches", "a whole number of at least 1", |it: &u32| *it >= 1)?;
    let options = MapperOptions {
        selection: selected(parameters, selection)?,
        iteration: micro_batches
            .map_or(default.iteration, |micro_batches| IterationModel::Synchronous { micro_batches }),
        nic_share: parameters.choose("nic-share", &nic_shares)?.unwrap_or(default.nic_share),
        multi_start: parameters.choose("multi-start", &SWITCHES)?.unwrap_or(default.multi_start),
        swaps: parameters.choose("swaps", &SWITCHES)?.unwrap_or(default.swaps),
    };
    Ok(MappedPlacer::new(options, links(parameters)?))
}

/// `default`, unless another one is asked for.
fn selected(parameters: &mut Parameters<'_>, default: Selection) -> Result<Selection, PolicyParseError> {
    let seed = parameters.read("map-seed", "a whole number", |_: &u64| true)?;
    let random = Selection::Random(seed.unwrap_or(1));
    let default = if seed.is_some() { random.clone() } else { default };
    let selections =
        [("consolidate", Selection::Consolidate), ("fragments", Selection::Fragments), ("random", random)];
    Ok(parameters.choose("selection", &selections)?.unwrap_or(default))
}

fn links(parameters: &mut Parameters<'_>) -> Result<LinkDefaults, PolicyParseError> {
    let default = LinkDefaults::default();
    let mut speed =
        |key| parameters.read(key, "a bandwidth like 25g or 300GB", |bandwidth: &Bandwidth| bandwidth.0 > 0);
    Ok(LinkDefaults {
        network: speed("network")?.unwrap_or(default.network),
        interconnect: speed("interconnect")?.unwrap_or(default.interconnect),
    })
}
