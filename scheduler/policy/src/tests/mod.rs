//! What policies promise, as scenarios and as properties of random clusters.

mod backfill;
pub(crate) mod cluster;
pub(crate) mod company;
mod forecast;
mod free;
pub(crate) mod kit;
mod mapped_place;
mod pipeline;
mod policies;
mod properties;
mod queue;
mod sharing;
