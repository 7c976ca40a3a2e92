//! Commands of the laboratory: `simulate`, `policy`, `predict` and `profile`, with their arguments, tables,
//! documents and charts; and the page of `report`, which has charts of the same kind (`usage_page`).
//!
//! Each command is a feature of this crate and one module with a `run` function: start at `simulate.rs`,
//! `policy.rs`, `predict.rs` or `profile.rs`. None of them talks to a head or reads settings: the `cohabit`
//! program parses the command line and hands over what comes from settings.

#[cfg(feature = "predict")]
mod model_directory;
#[cfg(any(feature = "simulate", feature = "predict"))]
mod output_file;
#[cfg(any(feature = "simulate", feature = "predict"))]
mod page;
#[cfg(all(feature = "simulate", feature = "predict"))]
pub mod policy;
#[cfg(feature = "predict")]
pub mod predict;
#[cfg(feature = "profile")]
pub mod profile;
#[cfg(feature = "simulate")]
pub mod simulate;
#[cfg(feature = "simulate")]
pub mod usage_page;

#[cfg(any(feature = "simulate", feature = "predict"))]
pub use output_file::OutputFile;
