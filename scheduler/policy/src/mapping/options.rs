//! The mapper's options: which servers, which replicas, and what an iteration costs.
//!
//! The defaults schedule best; the others follow the paper to the letter, or measure what a part is worth.

/// Which servers a job gets, and how its replicas are spread over them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum Selection {
    /// The smallest server that holds the whole job; else the fullest servers, and the tightest fit for the
    /// rest.
    #[default]
    Consolidate,
    /// The smallest server that holds the whole job; else the smallest remainders first, so that whole
    /// servers stay free for others.
    Fragments,
    /// Servers and replicas drawn pseudo-randomly from this seed: a scheduler without a mapper.
    Random(u64),
}

/// What one iteration costs, given what every replica computes and sends.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IterationModel {
    /// The slowest device sets the pace: steady-state pipelining with data parallelism.
    #[default]
    Bottleneck,
    /// A pipeline that fills and drains in each iteration, then exchanges its gradients.
    Synchronous {
        /// Parts of a batch; 0 counts as 1.
        micro_batches: u32,
    },
}

/// How the devices of a server share its network card.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NicShare {
    /// Each device owns an equal and fixed share.
    #[default]
    Device,
    /// The shares of a job's devices on one server are pooled, and divided fairly among those that still
    /// send.
    Job,
}

/// Whether a part of an algorithm is used.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toggle {
    /// It is.
    #[default]
    On,
    /// It is not.
    Off,
}

impl Toggle {
    /// The words that users write.
    pub(crate) const NAMES: [(&str, Toggle); 2] = [("on", Toggle::On), ("off", Toggle::Off)];
}

/// How to map. The default is consolidate, bottleneck, shares of devices, several starts, swaps.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct MapperOptions {
    /// Which servers.
    pub(crate) selection: Selection,
    /// What an iteration costs.
    pub(crate) iteration: IterationModel,
    /// How network cards are shared.
    pub(crate) nic_share: NicShare,
    /// Whether groups are also grown from a replica of each stage, to take the best result.
    pub(crate) multi_start: Toggle,
    /// Whether replicas are swapped between servers while that helps.
    pub(crate) swaps: Toggle,
}
