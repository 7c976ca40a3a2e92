//! The head daemon of Cohabit: listens, journals, drives the core.
//!
//! All rules live in `cohabit-scheduler-core`; this crate is its hands. [`HeadDaemon::start`] opens a state folder,
//! replays its journal, and serves clients and workers until it is stopped. It decides nothing about jobs and
//! never touches one.
//!
//! ```text
//! sessions ──> driver ──> journal (durable) ──> core ──> effects ──> sessions, watchers, history
//!                 ├─────> planner (the policy, on a thread of its own) ──> driver
//!                 └─────> learner (what sharing costs, likewise) ──> driver ──> planner
//! ```

mod clock;
mod daemon;
mod driver;
mod error;
mod estimates;
mod footprints;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod interference;
mod journal;
mod options;
mod planner;
mod recovery;
mod sessions;
mod sql;
mod state_dir;
mod thread;
mod watchers;

#[cfg(test)]
mod kit;
#[cfg(test)]
mod tests;

pub use cohabit_net::Fingerprint;
pub use cohabit_scheduler_core::Config;
pub use daemon::HeadDaemon;
pub use error::HeadError;
pub use interference::{InterferenceSource, UnknownInterferenceSource};
pub use options::HeadOptions;
