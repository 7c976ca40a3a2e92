//! The signals that end a command, handled: what it has begun has to be ended in order.

use cohabit_console::{CommandError, CommandErrorKind};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end this process. They would leave the terminal raw.
pub(in crate::commands) struct EndSignals {
    interrupts: Signal,
    hangups: Signal,
    terminations: Signal,
    quits: Signal,
}

impl EndSignals {
    pub(in crate::commands) fn new() -> Result<EndSignals, CommandError> {
        Ok(EndSignals {
            interrupts: handle(SignalKind::interrupt())?,
            hangups: handle(SignalKind::hangup())?,
            terminations: handle(SignalKind::terminate())?,
            quits: handle(SignalKind::quit())?,
        })
    }

    /// The name of the first that comes.
    pub(in crate::commands) async fn recv(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupts.recv() => "SIGINT",
            _ = self.hangups.recv() => "SIGHUP",
            _ = self.terminations.recv() => "SIGTERM",
            _ = self.quits.recv() => "SIGQUIT",
        }
    }
}

pub(super) fn handle(kind: SignalKind) -> Result<Signal, CommandError> {
    signal(kind).map_err(|error| {
        CommandError::new(CommandErrorKind::InputOutput, format!("cannot handle signals: {error}"))
    })
}
