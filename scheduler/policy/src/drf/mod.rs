//! Dominant Resource Fairness: the user with the smallest share of the cluster starts a job next.
//!
//! After A. Ghodsi et al., "Dominant resource fairness: fair allocation of multiple resource types", NSDI
//! 2011; the README says what is the paper's and what is ours. `dominant_share.rs` is the measure of a user,
//! `fair_turns.rs` the order that follows from it, `usage.rs` what users hold, and `policy.rs` the policy.
//! Where a job goes is not decided here.

mod dominant_share;
mod fair_turns;
mod policy;
#[cfg(test)]
mod tests;
mod usage;

pub(crate) use policy::Drf;
