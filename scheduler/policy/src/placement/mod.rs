//! Choosing devices for one job.
//!
//! `placer.rs` defines the trait and what it answers; `profile.rs` what is expected of a job before it runs;
//! `class_key.rs` which jobs need exactly the same, so that one failed search stands for all of them. Two
//! placers live here: `first_fit.rs`, the simplest, and `mapped_placer/`, which most policies use. Placers
//! for shared GPUs are in `sharing/`. When a job starts is not decided here.

mod class_key;
mod first_fit;
mod mapped_placer;
mod placer;
mod profile;
mod workload;

pub(crate) use class_key::ClassKey;
pub(crate) use first_fit::{FirstFit, find_shortage};
pub(crate) use mapped_placer::{LinkDefaults, MappedPlacer};
pub use placer::Proposal;
pub(crate) use placer::{ClusterChange, JobOutlook, NoOutlooks, OutlookVersion, Outlooks, Placer, dry_run};
pub use profile::UNKNOWN_RUNTIME;
pub(crate) use profile::{EstimateBasis, Profile};
pub(crate) use workload::WorkloadKey;
