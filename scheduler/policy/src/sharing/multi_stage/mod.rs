//! Jobs on one GPU, stage by stage until all but one have ended: how long each takes beside whom, and how
//! much they stand in each other's way.
//!
//! ISACPP's multi-stage interference, for every policy that looks ahead in this way. Which GPU is chosen is
//! not decided here.

mod contention_degree;
mod device_timeline;
mod timeline;

pub(crate) use contention_degree::ContentionDegree;
pub(crate) use device_timeline::{
    DeviceTimeline, MultiStageEstimate, build_with_newcomer, build_without_newcomer, company, expected,
    run_stages,
};
