//! The sizes and the variant of the networks (section 5).

use cohabit_policy::maifs::{Coordination, LEVELS, PAIR_FEATURES, SERVER_FEATURES, TASK_FEATURES};
use serde::{Deserialize, Serialize};

/// d: the width of an encoded node or job.
pub(super) const WIDTH: usize = 32;
/// The number of heads of each attention.
pub(super) const HEADS: usize = 2;
/// The number of factors g of a task.
pub(super) const FACTORS: usize = 8;
/// The number of blocks in which agents attend to each other.
pub(super) const BLOCKS: usize = 2;
/// The width of the hidden layer of a block.
pub(super) const BLOCK_HIDDEN: usize = 64;
/// The width of the hidden layer of the utility of doing nothing.
pub(super) const IDLE_HIDDEN: usize = 16;
/// The number of inputs of the heads for a job on a node.
pub(super) const PAIR_INPUTS: usize = 2 * WIDTH + PAIR_FEATURES;

/// The sizes that weights fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkShape {
    /// d: the width of an encoded node or job.
    pub width: usize,
    /// The number of heads of each attention.
    pub heads: usize,
    /// The number of blocks in which agents attend to each other.
    pub blocks: usize,
    /// The number of factors of a task.
    pub factors: usize,
    /// The number of features of a node.
    pub server_features: usize,
    /// The number of features of a job.
    pub task_features: usize,
    /// The number of features of a job on a node.
    pub pair_features: usize,
    /// L: the number of levels of a share.
    pub levels: usize,
}

impl NetworkShape {
    /// The sizes of this program's networks, for a number of levels.
    #[must_use]
    pub fn of_levels(levels: usize) -> NetworkShape {
        NetworkShape {
            width: WIDTH,
            heads: HEADS,
            blocks: BLOCKS,
            factors: FACTORS,
            server_features: SERVER_FEATURES,
            task_features: TASK_FEATURES,
            pair_features: PAIR_FEATURES,
            levels,
        }
    }
}

/// What can be left out, to measure what it is worth (section 10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkVariant {
    /// L: the number of levels of a share; 1 for fixed demands.
    pub levels: usize,
    /// Whether agents attend to each other.
    pub attention: bool,
    /// How agents agree on a joint action.
    pub coordination: Coordination,
}

impl Default for NetworkVariant {
    fn default() -> NetworkVariant {
        NetworkVariant { levels: LEVELS, attention: true, coordination: Coordination::default() }
    }
}
