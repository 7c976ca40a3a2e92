//! The real binary as real processes on loopback: a head, workers, and the command line, as people use them.
//!
//! Every cluster has a temporary directory and a port of its own. No test sleeps to become correct: tests
//! wait for a condition and fail when it does not hold within a generous limit.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod a_srpt;
mod applications;
mod archive;
mod arrays;
mod backups;
mod bad_input;
mod cgroups;
mod checkpoints;
mod completions;
mod copies;
mod demo;
mod documents;
mod estimates;
mod execs;
mod export;
mod fair_share;
mod faults;
mod forwards;
mod gangs;
mod gpus;
mod history;
mod hostile;
mod idle_sessions;
mod input;
mod interference;
mod isolation;
mod jobs;
mod kit;
mod logs;
mod metrics;
mod notebooks;
mod notify;
mod preemption;
mod profile;
mod reports;
mod reservations;
mod resources;
mod retention;
mod running_limit;
mod sdk;
mod selections;
mod shares;
mod shells;
mod simulated_gpus;
mod slices;
mod slurm;
mod snapshots;
mod sweeps;
mod tokens;
mod updates;
mod web;
mod worker_disk;
mod zoo;
