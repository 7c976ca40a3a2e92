//! What policies promise, as scenarios and as properties of random clusters.

mod backfill;
pub(crate) mod cluster;
pub(crate) mod colocated;
mod fair_turns;
mod forecast;
mod free;
pub(crate) mod kit;
mod mapped_placer;
mod owners;
mod policies;
mod properties;
mod queue;
mod queue_policy;
mod sharing;
mod virtual_srpt_machine;
