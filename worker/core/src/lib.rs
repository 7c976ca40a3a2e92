//! The worker of a Cohabit cluster as a state machine.
//!
//! It decides when a rank is started, how it is stopped and what is reported, and does none of it: effects
//! are data that the worker daemon, or the simulator, carries out. It reads no clock and knows no processes.
//!
//! ```text
//! interface        events, effects and their data              (start here)
//! worker           takes events: `Worker::handle`
//! state            the state, and what all parts need of it
//! starting         from an order to a running rank             gpu_admission   whether a GPU is ready for it
//! rank             the state of a rank                         environment     the variables of a rank
//! start_sequence   the deadline of its start                   stopping        how it is stopped
//! sharing          MPS daemons, enforcement, neighbors        mps_state       the state of an MPS daemon
//! gpu              the state of a GPU                          gpu_monitoring  samples and critical errors
//! colocation       speed of ranks beside each other            memory_watchdog memory limits without MPS
//! prefetch         attempts that were ordered in advance
//! pending_progress which progress to report                    xid             meaning of critical errors
//! orphan_timer     when an executor stops its rank by itself
//! slurm_environment  the variables of a rank as Slurm names them
//! ```

mod activity_meter;
mod allotment;
mod checkpoints;
mod code;
mod colocation;
mod environment;
mod gpu;
mod gpu_admission;
mod gpu_monitoring;
mod idleness;
mod interface;
mod memory_watchdog;
mod mps_retry;
mod mps_state;
mod orphan_timer;
mod pending_progress;
mod prefetch;
mod prefetched_order;
mod rank;
mod sharing;
mod signals;
mod slurm_environment;
mod stall;
mod stall_watch;
mod start_sequence;
mod starting;
mod state;
mod stopping;
#[cfg(test)]
mod tests;
mod usage;
mod usage_meter;
mod worker;
mod xid;

pub use interface::{
    Config, FetchedCheckpoints, FoundRank, GpuAccess, GpuSample, Lease, MpsEvent, MpsLimits, MpsOrder,
    RankExit, RankStart, SignalTarget, StopStep, Stopping, WorkerEffect, WorkerEvent,
};
pub use orphan_timer::{LEASE_TERM, OrphanTimer, WATCHDOG_INTERVAL, WATCHDOG_MARGIN};
pub use state::Worker;
pub use stopping::{StopAction, StopSequence};
