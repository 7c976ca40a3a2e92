//! Learned predictors for Cohabit's policies: what is expected of a job before it runs.
//!
//! The traits are in `cohabit-policy`; this crate learns. It is apart from it because models bring large
//! libraries, which neither the policies nor the simulator need.
#![warn(missing_docs)]

mod accuracy;
mod basis;
mod constant;
mod forest;
mod group_mean;
mod history;
pub mod interference;
mod learner;
mod ledger;
mod median;
mod model;
mod quantity;
mod recent_median;
mod rolling;
mod row;

pub use accuracy::{Accuracy, AccuracyAccumulator, AccuracyStats, EstimateErrors, Percentiles, Recurrence};
pub use constant::Constant;
pub use forest::{FittedForest, Forest, ForestFit};
pub use group_mean::GroupMean;
pub use quantity::Quantity;
pub use recent_median::RecentMedian;
pub use rolling::rolling;
