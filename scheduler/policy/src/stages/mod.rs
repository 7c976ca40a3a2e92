//! Jobs on one GPU, stage by stage until all but one have ended: how long each takes beside whom, and how
//! much they stand in each other's way.
//!
//! ISACPP's multi-stage interference, for every policy that looks ahead in this way. Which GPU is chosen is
//! not decided here.

mod contention;
mod scene;
mod timeline;

pub(crate) use contention::Contention;
pub(crate) use scene::{Expected, Scene, company, expected, play, with_newcomer, without_newcomer};
