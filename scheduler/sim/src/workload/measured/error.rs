//! Why measurements cannot be the truth of a cluster.

/// Why measurements cannot be the truth of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MeasurementsError {
    /// There is nothing to measure on.
    #[error("there are no machines")]
    NoMachines,
    /// The table is about other GPUs.
    #[error("nothing was measured on {make}: the table has {known}; take a cluster of these")]
    NoSuchGpu {
        /// As the cluster calls it.
        make: String,
        /// What the table calls those that it has.
        known: String,
    },
    /// Every row is about one job alone.
    #[error("no two jobs were measured beside each other on {make}: that says nothing about sharing")]
    NoPairs {
        /// As the cluster calls it.
        make: String,
    },
    /// No configuration is left.
    #[error(
        "no configuration of the table was measured alone on every GPU of the cluster and fits into its memory"
    )]
    NothingFits,
}
