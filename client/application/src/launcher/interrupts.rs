//! Cancels what was launched when somebody wants the launcher to end: with Ctrl-C, or with SIGTERM as a batch
//! system or a service manager sends it.

use std::io;

use cohabit_client::Client;
use cohabit_types::JobId;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::terminal::{exit, say};

/// The exit code after a second Ctrl-C.
const INTERRUPTED: i32 = 130;

/// The exit code after a second SIGTERM.
const TERMINATED: i32 = 143;

/// The signals that want the launcher to end.
pub(super) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// From now on they do not end the process by themselves.
    ///
    /// # Errors
    /// If the system does not let it.
    pub(super) fn listen() -> io::Result<Interrupts> {
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Interrupts { interrupt, terminate })
    }

    /// Waits for the next one; returns the exit code of a launcher that ends with it.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => INTERRUPTED,
            _ = self.terminate.recv() => TERMINATED,
        }
    }

    /// The first one cancels what was launched, the second leaves it alone.
    pub(super) async fn cancel(mut self, client: Client, job: JobId) {
        self.next().await;
        say(&format!("cancels job {job}; press Ctrl-C again to leave without waiting for its end"));
        let cancelling = async {
            match client.job(job).cancel().await {
                Ok(()) => std::future::pending().await,
                Err(error) => say(&format!("job {job} cannot be cancelled: {error}")),
            }
        };
        tokio::select! {
            () = cancelling => {}
            code = self.next() => exit(code),
        }
        // It could not be cancelled: the next one leaves.
        exit(self.next().await)
    }
}
