//! Signals of the cluster: SIGUSR1 warns that the job may be stopped soon, SIGTERM stops it.
//!
//! A signal only sets a flag, which the training checks between steps. The signal handler itself saves and
//! prints nothing.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGTERM, SIGUSR1};
use signal_hook::flag;

/// The signals received so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopSignals {
    warned: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
}

impl StopSignals {
    /// Handles the signals. From now on, neither of them ends the process.
    pub(crate) fn listen() -> io::Result<Self> {
        let signals = Self::default();
        flag::register(SIGUSR1, Arc::clone(&signals.warned))?;
        flag::register(SIGTERM, Arc::clone(&signals.terminated))?;
        Ok(signals)
    }

    /// Whether a warning has been received since the last call.
    pub(crate) fn take_warning(&self) -> bool {
        self.warned.swap(false, Ordering::Relaxed)
    }

    /// Whether the training has to stop.
    pub(crate) fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::Relaxed)
    }
}
