//! Jobs on one GPU, stage by stage until all but one have ended: how long each takes, and how much they slow
//! each other down.
//!
//! The multi-stage interference of ISACPP, for every policy that looks ahead in this way. Start with
//! `timeline.rs`, which is pure arithmetic; `device_timeline.rs` asks the predictor for each stage. Which
//! GPU is chosen is not decided here.

mod contention_degree;
mod device_timeline;
mod timeline;

pub(crate) use contention_degree::ContentionDegree;
pub(crate) use device_timeline::{
    DeviceTimeline, MultiStageEstimate, ResidentWork, build_set, estimate_all, find_work, run_stages,
};
