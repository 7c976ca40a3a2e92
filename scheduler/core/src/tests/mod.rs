//! Scenarios of the head, written with the test kit in `kit`.
#![expect(clippy::wildcard_enum_match_arm, reason = "a test names the one variant that it expects")]

mod accounting;
mod allotment;
mod application_nodes;
mod applications;
mod archive;
mod arrays;
mod checkpoints;
mod colocation;
mod devices;
mod expected_times;
mod feed;
mod figures;
mod gpu_faults;
mod idle_jobs;
mod invariants;
mod isolation;
mod jobs;
mod kit;
mod memory_misfit;
mod node_owners;
mod planning;
mod predicted_memory;
mod rendezvous;
mod replay;
mod requests;
mod reservations;
mod restored_backup;
mod running_limit;
mod share_limits;
mod shares;
mod stalls;
mod succession;
mod time_slices;
mod updates;
mod workers;
