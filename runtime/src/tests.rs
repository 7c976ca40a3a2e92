//! The whole daemon over real links on loopback.

mod history;
mod jobs;
mod planning;
mod refusals;
mod restarts;
mod workers;
