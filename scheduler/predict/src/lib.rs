//! Learned predictors for Cohabit's policies.
//!
//! - The estimators ([`Forest`], [`RecentMedian`], [`GroupMean`], [`Constant`]) predict the run time and the
//!   iterations of a job at its submission. Start reading with `forest.rs`, then `quantity_estimator.rs`;
//!   README.md explains the choices and has the accuracy.
//! - The models in [`interference`] predict how much jobs that share a GPU slow each other down. Start with
//!   `interference/model.rs`; `interference/README.md` compares the kinds of models.
//! - The tables in [`sensitivity`] say how much cores and host memory speed a job up. Start with
//!   [`sensitivity::read_sensitivity`].
//! - The agents of [`maifs`] value the joint actions of nodes that choose jobs together. Start with the
//!   example in `maifs/mod.rs`.
//!
//! The traits are in `cohabit-policy`. The crates are separate because models need large libraries, which the
//! policies do not.
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
pub mod maifs;
mod median;
mod networks;
mod quantity;
mod quantity_estimator;
mod random;
mod recent_median;
pub mod sensitivity;
mod stored_files;

pub use accuracy::{Accuracy, AccuracyAccumulator, AccuracyStats, EstimateErrors, Percentiles, Recurrence};
pub use backtest::backtest;
pub use constant::Constant;
pub use forest::{FittedForest, Forest, ForestFit};
pub use group_mean::GroupMean;
pub use quantity::Quantity;
pub use recent_median::RecentMedian;
pub use stored_files::{FileAction, StoredFileError};
