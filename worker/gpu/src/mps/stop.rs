//! Stops a daemon and its servers: by the command `quit`, then by SIGTERM, then by SIGKILL.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::control::Control;
use super::deadline::Deadline;
use super::error::MpsError;
use super::processes::all_of_mps;
use crate::process::ProcessIdentity;

/// How long processes may take to end after a signal.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns when no process of MPS in this directory is left, and its remains are removed.
pub(super) fn stop(control: &Control, timeout: Duration) -> Result<(), MpsError> {
    let deadline = Deadline::after(timeout);
    if !living(control).is_empty() {
        // The daemon gives remaining clients half of the time, then ends without them.
        let quit_timeout = (timeout / 2).as_secs().max(1);
        if let Err(error) = control.tell(&format!("quit -t {quit_timeout}"), deadline) {
            let directory = control.directory.path().display();
            tracing::warn!(%directory, %error, "an MPS daemon does not accept its quit command");
        }
    }
    let mut left = remaining(control, deadline);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        if !left.is_empty() {
            left.iter().for_each(|process| process.signal(signal));
            left = remaining(control, Deadline::after(SIGNAL_TIMEOUT));
        }
    }
    if left.is_empty() {
        return control.directory.remove_remains();
    }
    let processes: Vec<String> = left.iter().map(|process| process.pid().to_string()).collect();
    Err(MpsError(format!(
        "MPS does not end, not even after SIGKILL: inspect the processes {}",
        processes.join(", ")
    )))
}

/// The processes that are left at the deadline; returns as soon as none is left.
fn remaining(control: &Control, deadline: Deadline) -> Vec<ProcessIdentity> {
    match deadline.wait(|| living(control).is_empty().then_some(())) {
        Some(()) => Vec::new(),
        None => living(control),
    }
}

fn living(control: &Control) -> Vec<ProcessIdentity> {
    let mut living = all_of_mps(&control.directory.pipe());
    // A server of another account whose daemon has ended.
    let recorded = control.directory.processes().into_iter().filter(ProcessIdentity::is_alive);
    for process in recorded {
        if !living.contains(&process) {
            living.push(process);
        }
    }
    living
}
