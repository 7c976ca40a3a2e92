//! What the cluster says by signals: SIGUSR1 warns that the end may come soon, SIGTERM says that it has come.
//!
//! A signal only sets a flag; the training looks at the flags between two steps. Nothing is saved or printed
//! from inside a signal handler.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGTERM, SIGUSR1};
use signal_hook::flag;

/// The signals that have arrived so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopSignals {
    warned: Arc<AtomicBool>,
    terminated: Arc<AtomicBool>,
}

impl StopSignals {
    /// Starts to listen; from here on neither signal ends the process by itself.
    pub(crate) fn listen() -> io::Result<Self> {
        let signals = Self::default();
        flag::register(SIGUSR1, Arc::clone(&signals.warned))?;
        flag::register(SIGTERM, Arc::clone(&signals.terminated))?;
        Ok(signals)
    }

    /// Whether a warning has come since the last call.
    pub(crate) fn take_warning(&self) -> bool {
        self.warned.swap(false, Ordering::Relaxed)
    }

    /// Whether the training has to end.
    pub(crate) fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::Relaxed)
    }
}
