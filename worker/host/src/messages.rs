//! The messages between a worker daemon and an executor, over the socket in the rank's directory.
//!
//! After each connection the executor sends everything it knows about the rank, then every change of its
//! progress. At the end it writes to `outcome.json` how the rank ended, sends the same, and closes the
//! connection: whoever was not connected, or not in time, reads the file.
//! [`format`](mod@crate::format) defines the JSON lines that carry these messages.

use cohabit_types::{Progress, Signal, Time};
use cohabit_worker_core::{Lease, SignalTarget, Stopping};

use crate::records::OutcomeRecord;

/// From the executor to the daemon.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecutorEvent {
    /// The rank is being stopped, and how far the stop has got. Sent before [`ExecutorEvent::Started`], so
    /// that a daemon that recovers the rank knows about the stop as soon as it knows that the rank runs. Only
    /// recovery reads it: a daemon that was connected when the stop began has ordered the stop itself.
    Stopping(Stopping),
    /// The rank's process has been running since this time.
    Started(Time),
    /// The process id of the rank's first process.
    Process(i32),
    /// The latest progress of the rank.
    Progress(Progress),
    /// How the rank ended, as it is written in its directory. The last message.
    Ended(Box<OutcomeRecord>),
}

/// From the daemon to the executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutorCommand {
    /// The rank is being stopped, and how far the stop has got. The executor keeps it for the next daemon and
    /// for `outcome.json`.
    Stopping(Stopping),
    /// Send this signal to the rank.
    Signal(Signal, SignalTarget),
    /// Whether the head could be reached at this time: for [`Lease::Held`], the last time at which it surely
    /// could. The orphan timer also starts when the connection is lost; only [`Lease::Held`] stops it.
    LeaseAt(Lease, Time),
    /// The same for executors of release 0.1, to which it is true at the time at which they read it.
    Lease(Lease),
}
