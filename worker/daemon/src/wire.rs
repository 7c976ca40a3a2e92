//! What a worker daemon and an executor say to each other: lines of JSON over the socket in the rank's
//! folder.
//!
//! An executor says all that it knows to each daemon that connects, and then how far the rank is. How it
//! ended is not among it: that is in the rank's folder, and the end of the connection says where to look.

use cohabit_types::{Progress, Signal, Time};
use cohabit_worker_core::{Lease, SignalTarget, Stopping};
use serde::{Deserialize, Serialize};

/// From executor to daemon.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExecutorEvent {
    /// The rank is being stopped, and this far. Comes ahead of `Started`, so that whoever hears of a rank
    /// that runs knows it; a daemon that is there when it begins hears nothing of it.
    Stopping(Stopping),
    /// The rank's process runs since then.
    Started(Time),
    /// It has this number.
    Process(i32),
    /// How far it is.
    Progress(Progress),
}

/// From daemon to executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExecutorCommand {
    /// The rank is being stopped, and this far: to be kept for the next daemon, and for the rank's end.
    Stopping(Stopping),
    /// Send this signal.
    Signal(Signal, SignalTarget),
    /// Whether the head can be reached. The executor's clock runs from the loss of a connection, too, and
    /// only `Held` stops it.
    Lease(Lease),
}

/// The line that says it.
pub(crate) fn line<T: Serialize>(word: &T) -> Vec<u8> {
    let mut line = serde_json::to_vec(word).expect("words are plain values with text keys");
    line.push(b'\n');
    line
}
