//! The mapper's switches: which servers, which replicas, and what an iteration is taken to cost.
//!
//! The defaults are what schedules best; the others exist to follow the inferred paper to the letter, or to
//! measure what a part is worth. Nothing here computes anything.

/// Which servers a job gets, and how its replicas are spread over them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum Selection {
    /// The smallest server that holds the whole job; else the fullest servers, and the tightest fit for what
    /// is left.
    #[default]
    Consolidate,
    /// The smallest server that holds the whole job; else the smallest remainders first, so that whole
    /// servers stay free for others.
    Fragments,
    /// Servers and replicas drawn pseudo-randomly from this seed: what a scheduler without a mapper does.
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
        /// Parts into which a batch is cut; 0 counts as 1.
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

/// Whether a part takes part.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Toggle {
    /// It does.
    #[default]
    On,
    /// It does not.
    Off,
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
    /// Whether groups are also grown from a replica of each stage, and the best result is taken.
    pub(crate) multi_start: Toggle,
    /// Whether replicas are exchanged between servers while that helps.
    pub(crate) swaps: Toggle,
}
