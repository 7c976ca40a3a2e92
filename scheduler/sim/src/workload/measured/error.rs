//! Why measurements cannot be used as the truth of a cluster.

/// Why measurements cannot be used as the truth of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MeasurementsError {
    /// The cluster is empty.
    #[error("the cluster has no machines")]
    NoMachines,
    /// The table has no measurements of a GPU model.
    #[error("the table has no measurements on {make}, only on {known}: simulate a cluster with these GPUs")]
    NoSuchGpu {
        /// The GPU model, as the cluster calls it.
        make: String,
        /// The GPU models of the table.
        known: String,
    },
    /// The table has no set of two or more on a GPU model.
    #[error("the table has no co-located jobs on {make}, so it says nothing about sharing")]
    NoPairs {
        /// The GPU model, as the cluster calls it.
        make: String,
    },
    /// No configuration is left.
    #[error(
        "no configuration of the table was measured alone on every GPU model of the cluster and fits into its memory"
    )]
    NothingFits,
}
