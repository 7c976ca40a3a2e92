//! The whole daemon over real links on loopback.

mod company;
mod history;
mod jobs;
mod learning;
mod memory;
mod planning;
mod recorded;
mod refusals;
mod restarts;
mod storage;
mod workers;
