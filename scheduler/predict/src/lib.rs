//! Learned predictors for Cohabit's policies: what is expected of a job before it runs.
//!
//! The traits are in `cohabit-scheduler`; this crate learns. It is apart from it because models bring large
//! libraries, which neither the policies nor the simulator need.
#![warn(missing_docs)]

mod recent_median;

pub use recent_median::RecentMedian;
