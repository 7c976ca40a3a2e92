//! Learned predictors for Cohabit's policies: what is expected of a job before it runs.
//!
//! The traits are in `cohabit-policy`; this crate learns. It is apart from it because models bring large
//! libraries, which neither the policies nor the simulator need.
#![warn(missing_docs)]

mod accuracy;
mod backtest;
mod basis;
mod cohort;
mod cohort_statistics;
mod constant;
mod features;
mod forest;
mod forest_model;
mod group_mean;
mod history;
pub mod interference;
mod median;
mod quantity;
mod quantity_estimator;
mod recent_median;

pub use accuracy::{Accuracy, AccuracyAccumulator, AccuracyStats, EstimateErrors, Percentiles, Recurrence};
pub use backtest::backtest;
pub use constant::Constant;
pub use forest::{FittedForest, Forest, ForestFit};
pub use group_mean::GroupMean;
pub use quantity::Quantity;
pub use recent_median::RecentMedian;
