//! Tests of the whole daemon, over real links on loopback.

mod agents;
mod applications;
mod broken_state;
mod checkpoints;
mod code;
mod colocation;
mod feed;
mod history;
mod hostile_requests;
mod jobs;
mod learning;
mod memory;
mod planning;
mod privacy;
mod recorded;
mod recovery;
mod refusals;
mod restarts;
mod status;
mod storage;
mod tokens;
mod updates;
mod viewers;
mod workers;
