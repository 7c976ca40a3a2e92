//! How an attempt is stopped, and by which signals.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Span;

/// How an attempt is stopped: warning signal, SIGTERM, grace, SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// Sent ahead of SIGTERM, where asked for.
    pub warning: Option<WarningSignal>,
    /// From SIGTERM to SIGKILL.
    pub grace: Span,
}

impl Default for Stop {
    fn default() -> Stop {
        Stop { warning: None, grace: Span::from_secs(30) }
    }
}

/// The signal that announces a stop, and how long before SIGTERM it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarningSignal {
    /// Which signal.
    pub signal: Signal,
    /// How long before SIGTERM.
    pub before: Span,
}

/// A signal by its Linux number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Signal(pub i32);

impl Signal {
    /// Hang-up.
    pub const HUP: Signal = Signal(1);
    /// Interrupt.
    pub const INT: Signal = Signal(2);
    /// Kill: cannot be caught.
    pub const KILL: Signal = Signal(9);
    /// First user signal.
    pub const USR1: Signal = Signal(10);
    /// Second user signal.
    pub const USR2: Signal = Signal(12);
    /// Polite request to end.
    pub const TERM: Signal = Signal(15);
    /// Go on after a stop.
    pub const CONT: Signal = Signal(18);

    const NAMES: [(&str, Signal); 13] = [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal(3)),
        ("ILL", Signal(4)),
        ("ABRT", Signal(6)),
        ("BUS", Signal(7)),
        ("FPE", Signal(8)),
        ("KILL", Signal::KILL),
        ("USR1", Signal::USR1),
        ("SEGV", Signal(11)),
        ("USR2", Signal::USR2),
        ("TERM", Signal::TERM),
        ("CONT", Signal::CONT),
    ];

    /// The signal with this name, with or without `SIG`, or this number.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Signal> {
        let upper = name.to_ascii_uppercase();
        let bare = upper.strip_prefix("SIG").unwrap_or(&upper);
        let named = Signal::NAMES.iter().find(|(known, _)| *known == bare).map(|(_, signal)| *signal);
        named.or_else(|| bare.parse().ok().filter(|n| (1..=64).contains(n)).map(Signal))
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Signal::NAMES.iter().find(|(_, signal)| signal == self) {
            Some((name, _)) => write!(f, "SIG{name}"),
            None => write!(f, "signal {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_go_by_name_and_number() {
        assert_eq!(Signal::by_name("SIGUSR1"), Some(Signal::USR1));
        assert_eq!(Signal::by_name("term"), Some(Signal::TERM));
        assert_eq!(Signal::by_name("64"), Some(Signal(64)));
        assert_eq!(Signal::by_name("65"), None);
        assert_eq!(Signal::USR1.to_string(), "SIGUSR1");
    }
}
