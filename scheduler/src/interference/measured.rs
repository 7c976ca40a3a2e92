//! Sets that were measured, and a table of them as a predictor: what was measured is what is expected.

use std::collections::BTreeMap;

use cohabit_proto::StretchSharing;

use super::{CoLocation, Colocated, Interference, Member, UNKNOWN_UNCERTAINTY};

/// A set with what was measured of it.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredSet {
    /// The jobs, with what is known of each alone.
    pub set: CoLocation,
    /// What became of them.
    pub outcome: Outcome,
}

/// What became of a set.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It ran; a figure for each member, in their order.
    Ran(Vec<Observed>),
    /// It did not fit into the GPU's memory.
    DidNotFit,
}

/// What was measured of one member beside the others.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Observed {
    /// How many times as long a step took as alone.
    pub slowdown: f64,
    /// The most memory that it held, in bytes.
    pub memory: Option<f64>,
    /// Part of the time during which it kept the GPU busy, 0 to 1.
    pub utilisation: Option<f64>,
}

/// The measurements of every set of a table.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct MeasuredTable {
    sets: BTreeMap<Key, Entry>,
}

/// A set whatever the order of its members, who are known by their configurations.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    gpu: String,
    sharing: u8,
    configurations: Vec<Configuration>,
}

type Configuration = (String, Option<u64>);

#[derive(Debug, Default, Clone, PartialEq)]
struct Entry {
    did_not_fit: u32,
    /// Means over repeated measurements, in the order of the key's configurations.
    members: Vec<Mean>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Mean {
    times: u32,
    ln_slowdown: f64,
    memory: Option<f64>,
    utilisation: Option<f64>,
}

/// How far two measurements of one set lie apart.
const UNCERTAINTY: f64 = 0.03;
