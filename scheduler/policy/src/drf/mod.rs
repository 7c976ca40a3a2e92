//! Dominant Resource Fairness: the user with the smallest share of the cluster starts a job next.
//!
//! After A. Ghodsi et al., "Dominant resource fairness: fair allocation of multiple resource types", NSDI
//! 2011; the README says what is the paper's and what is ours. `dominant_share.rs` is the measure of a user,
//! `user_holdings.rs` what users hold, `demand_queues.rs` what they wait for, `fair_turns.rs` the order that
//! follows, and `policy.rs` the policy. Where a job goes is not decided here.

mod demand_queues;
mod dominant_share;
mod fair_turns;
mod policy;
#[cfg(test)]
mod tests;
mod user_holdings;

pub(crate) use policy::Drf;
