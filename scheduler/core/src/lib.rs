//! The head of a Cohabit cluster as a state machine.
//!
//! Every change is an [`Event`] that [`Head::handle`] handles; all other methods only read. Effects are data
//! that the daemon, or the simulator, carries out in order. This crate reads no clock, opens no socket and
//! calls no policy: it requests a plan and checks the answer.
//!
//! ```text
//!  Event ──> handle ──> submit · job_changes · workers · planning · deadlines ──> lifecycle ──> [Effect]
//!  ended long ago ──> archive ──> [Effect], and back with an Event when it is queued again
//!  query ──> HeadReader: answer · records · reason · explain ──> records and sentences
//!  ids that changed ──> ViewTracker ──> changes of the policy's view
//! ```
//!
//! Start reading at `interface` (events and effects), `job` (the phases of a job) and `lifecycle`.
#![warn(missing_docs)]

mod account_keys;
mod account_separation;
mod accounting;
mod accounting_entry;
mod alarm;
mod allotment;
mod answer;
mod application_index;
mod application_nodes;
mod applications;
mod archive;
mod archived_submission;
mod checkpoints;
mod code;
mod deadlines;
mod dependencies;
mod dependency_graph;
mod dry_run;
mod eligible_demand;
mod expected_start;
mod expected_times;
mod explain;
mod feed;
mod figure_counters;
mod figures;
mod forecasts;
mod gpu_faults;
mod handle;
mod head;
mod idle_jobs;
mod interface;
mod invariants;
mod job;
mod job_changes;
mod job_memory;
mod job_state;
mod lifecycle;
mod memory_misfit;
mod node;
mod node_problem;
mod number_jump;
mod placement;
mod planning;
mod predicted_memory;
mod prefetch;
mod queue;
mod reader;
mod reason;
mod records;
mod rendezvous;
mod requests;
mod reservation_book;
mod reservations;
mod resolve;
mod restored_backup;
mod running_limit;
mod satisfiable;
mod share_accounting;
mod share_book;
mod share_report;
mod share_table;
mod snapshot_part;
mod snapshot_parts;
mod spec_pool;
mod submission;
mod submit;
mod succession;
mod terminal_state;
mod transition;
mod updates;
mod user_queues;
mod user_usage;
mod view_tracker;
mod volatile;
mod waiting_queue;
mod whole_gpu;
mod workers;

pub use accounting_entry::{
    AccountOwner, AccountingEntry, AccountingKind, AttemptAccount, LiveAccount, MeasuredTime,
};
pub use answer::{BriefRecords, ListPart};
pub use dry_run::DryRunJob;
pub use forecasts::PolicyForecasts;
pub use head::Head;
pub use interface::{ArchivedPart, ChangedIds, Config, DeadlineKind, Effect, Event, MemoryMisfit};
pub use invariants::BrokenInvariant;
pub use reader::HeadReader;
pub use snapshot_part::{MissingFirstJob, SnapshotPart};
pub use snapshot_parts::{HeadSnapshot, SnapshotParts};
pub use user_usage::UserUsage;
pub use view_tracker::ViewTracker;

/// The state of a head as plain data, for those who store it: `scheduler/journal` converts it to and from
/// the formats of snapshots.
pub mod state {
    pub use crate::alarm::Alarm;
    pub use crate::archived_submission::{ArchivedSubmission, EndedMembers};
    pub use crate::job::{
        Attempt, EndedAttempt, EndedJob, Job, JobExit, JobStatus, OrderedAllotment, PrefetchedAttempt, Rank,
        RankPhase, RendezvousEndpoint, WaitingJob,
    };
    pub use crate::node::{DeviceUse, Node, NodeLink, NodeProblem, Schedulability};
    pub use crate::reservation_book::ReservationBook;
    pub use crate::restored_backup::RestoredBackup;
    pub use crate::share_book::ShareBook;
    pub use crate::submission::SubmissionState;
    pub use crate::terminal_state::TerminalState;
}

#[cfg(test)]
mod tests;
