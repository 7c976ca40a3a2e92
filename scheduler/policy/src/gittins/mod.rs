//! An order by Gittins indices of run times that are learned from all jobs, while they run: the job that is
//! most likely to end soon for the devices that it takes goes first, and may take the place of a running one
//! that agreed to be stopped.
//!
//! Start with `policy.rs`, which makes a plan; `draft.rs` finds room for one job and `victims.rs` chooses
//! who is stopped. `state.rs` keeps the jobs: `waiting.rs` and `running.rs` in order, `beliefs.rs` what is
//! known of their work time (`contexts.rs`, `counts.rs`, `hazards.rs`, `bins.rs`, `estimates.rs`).
//! `order_outlooks.rs` tells a placer what is expected of jobs. With
//! `promise=turn`, `promised_turns.rs` says when each job is due and `promised_lane.rs` serves those that
//! are. The README in this directory lists the properties that are wanted and where each is tested. Devices
//! are chosen by a [`crate::Placer`].

mod beliefs;
mod bins;
mod contexts;
mod counts;
mod draft;
mod estimates;
mod exclusive_schedule;
mod explain;
mod hazards;
mod job;
mod options;
mod order_outlooks;
mod policy;
mod promised_lane;
mod promised_turns;
mod releases;
mod running;
mod state;
mod stop_costs;
mod token_bucket;
mod victims;
mod waiting;

pub(crate) use options::{OrderOptions, PATIENCE, PATIENCE_BASE};
pub(crate) use policy::GittinsOrder;

#[cfg(test)]
mod tests;
