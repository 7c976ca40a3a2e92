//! Jobs on one GPU, stage by stage until all but one have ended: how long each takes beside whom, and how
//! much they stand in each other's way.
//!
//! ISACPP's multi-stage interference, for every policy that looks ahead in this way. Which GPU is chosen is
//! not decided here.

mod contention;
mod scene;
mod timeline;

pub(crate) use contention::ContentionDegree;
pub(crate) use scene::{
    DeviceTimeline, MultiStageEstimate, build_with_newcomer, build_without_newcomer, company, expected,
    run_stages,
};
