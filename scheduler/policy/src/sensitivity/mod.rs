//! How much cores and host memory speed a job up: tables of speeds, whose they are, and how what is free is
//! handed out by them.
//!
//! A table says how fast a model trains by cores and host memory for each device. Speeds have any unit; they
//! are compared with the speed at the proportional share of a node: the ratio is the job's sensitivity `W(c,
//! h)`, 1 at that share. Start with `table.rs`; `job_curve.rs` is a table seen by one job on one node,
//! `hand_out.rs` what several jobs make of a node, `learned.rs` what progress tells while jobs run, and
//! `known.rs` joins that with what was measured before.

mod hand_out;
mod job_curve;
mod known;
mod learned;
mod profiles;
mod speed_levels;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use hand_out::{ShareClaim, hand_out};
pub use job_curve::JobCurve;
pub(crate) use known::KnownSensitivity;
pub use profiles::SensitivityProfiles;
pub use table::{SensitivityError, SensitivityTable};
