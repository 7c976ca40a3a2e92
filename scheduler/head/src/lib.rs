//! The head daemon of Cohabit: accepts clients and workers, journals events, and drives the scheduler core.
//!
//! All scheduling rules are in `cohabit-scheduler-core`; this crate does the input and output for it.
//! [`HeadDaemon::start`] opens a state directory, replays its journal, and serves clients and workers until
//! it is stopped. This crate decides nothing about jobs and runs none.
//!
//! ```text
//! sessions ──> driver ──> journal (durable) ──> core ──> effects ──> sessions, watchers, history
//!                 ├─────> planner (the policy, on its own thread) ──> driver
//!                 └─────> trainer (interference models, on its own thread) ──> driver ──> planner
//! ```
//!
//! | Module | What it holds |
//! |---|---|
//! | `daemon` | start and stop of the head: what is opened, in which order |
//! | `driver` | the actor that owns the core; start at `driver.rs`, its data is in `driver/state.rs` |
//! | `journal`, `recovery` | the durable log of events and snapshots, and the replay at a start |
//! | `replay_watch`, `recovery_mode`, `quarantine` | an event that ends every start: found, told, set aside |
//! | `backup` | a copy of the state directory in one file, and a new state directory from it |
//! | `history` | ended jobs as SQL tables |
//! | `sessions` | one task for each connected client and worker |
//! | `planner` | the policy on a thread of its own, with a time limit |
//! | `agents` | trained agents of the policy `maifs` |
//! | `sensitivity` | tables of how much cores and host memory speed jobs up |
//! | `interference`, `gpu_memory`, `estimates`, `ended_runs` | what the head learns from the jobs that ran |
//! | `update_log` | the order in which jobs changed, for clients that show all of them |
//! | `watchers` | clients that wait for a job to change |
//! | `application_questions` | what users ask the coordinators of live applications |
//! | `state_dir`, `clock`, `actor_thread` | the state directory, monotonic time, actors on threads |

mod actor_thread;
mod agents;
mod application_questions;
mod backup;
mod clock;
mod code_cleaner;
mod code_store;
mod daemon;
mod driver;
mod ended_runs;
mod error;
mod estimates;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod gpu_memory;
mod history;
mod interference;
mod interference_source;
mod job_description;
mod journal;
mod journal_failure;
mod options;
mod planner;
mod quarantine;
mod rates;
mod recovery;
mod recovery_mode;
mod replay_watch;
mod request_limits;
mod sensitivity;
mod sessions;
mod sql;
mod state_dir;
mod update_log;
mod watchers;

#[cfg(test)]
mod test_kit;
#[cfg(test)]
mod tests;

pub use backup::{BackupError, BackupSummary, ExistingFile, RestoreSummary, back_up, restore_backup};
pub use cohabit_scheduler_core::Config;
pub use daemon::HeadDaemon;
pub use error::HeadError;
#[cfg(feature = "learned")]
pub use interference::{InterferenceLearner, LearnerOptions, ModelAdapter};
pub use interference_source::{InterferenceSource, UnknownInterferenceSource};
pub use journal::{LogRepair, RepairedLog};
pub use journal_failure::JournalFailure;
pub use options::{CheckpointOptions, HeadOptions};
pub use quarantine::{UnreplayableEvent, quarantine, repair_journal, retry_replay, unreplayable_event};
pub use recovery_mode::RecoveryMode;
pub use request_limits::RequestLimits;
