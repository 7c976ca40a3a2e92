//! Stops a daemon and its servers: politely, then by force.

use std::time::Duration;

use nix::sys::signal::Signal;

use super::MpsError;
use super::control::Control;
use super::patience::Deadline;
use super::processes::all_of_mps;
use crate::process::ProcessIdentity;

/// Between the force of one signal and that of the next.
const SIGNAL_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns when nothing of MPS in this home runs any more, and what was left of it is cleared away.
pub(super) fn stop(control: &Control, patience: Duration) -> Result<(), MpsError> {
    let polite = Deadline::after(patience);
    if !living(control).is_empty() {
        // The daemon gives clients that remain half of the time, then ends without them.
        let timeout = (patience / 2).as_secs().max(1);
        if let Err(error) = control.tell(&format!("quit -t {timeout}"), polite) {
            tracing::warn!(home = %control.home.pipe().display(), %error, "an MPS daemon does not hear");
        }
    }
    let mut left = remaining(control, polite);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        if !left.is_empty() {
            left.iter().for_each(|process| process.signal(signal));
            left = remaining(control, Deadline::after(SIGNAL_TIMEOUT));
        }
    }
    if left.is_empty() {
        return control.home.forget();
    }
    let processes: Vec<String> = left.iter().map(|process| process.pid().to_string()).collect();
    Err(MpsError(format!("MPS does not end, not even by force: see the processes {}", processes.join(", "))))
}

/// What runs at this deadline, or nothing as soon as nothing does.
fn remaining(control: &Control, deadline: Deadline) -> Vec<ProcessIdentity> {
    match deadline.wait(|| living(control).is_empty().then_some(())) {
        Some(()) => Vec::new(),
        None => living(control),
    }
}

fn living(control: &Control) -> Vec<ProcessIdentity> {
    all_of_mps(&control.home.pipe())
}
