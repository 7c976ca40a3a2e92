//! The state machine of one GPU's MPS daemon: which order is being carried out, and what the events of its
//! manager mean.
//!
//! ```text
//!          Start          Up           idle: Stop
//!  Idle ─────────▶ Starting ──▶ Up ─────────────────▶ Stopping ──▶ Idle
//!                     │ Failed   ▲ │ Faulted             ▲
//!                     ▼          │ ▼                     │ a fenced GPU
//!                   Idle         │ Faulted ──────────────┤
//!                                │ │ all clients are gone: Recover
//!  Adopting ── Up ───────────────┤ ▼
//!     └─────── Failed ─▶ Faulted └ Recovering ── Failed ──▶ Idle, and the GPU is fenced
//! ```
//!
//! Each order has one answer; the next order comes only after it.

use cohabit_types::{RankId, Span, Time};

use crate::interface::{MpsEvent, MpsOrder};

/// How long a daemon without clients is kept.
const IDLE_TIMEOUT: Span = Span::from_secs(10);

/// The state of the MPS daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MpsState {
    /// There is no daemon.
    Idle,
    /// It was ordered to start.
    Starting,
    /// The daemon of an earlier worker daemon is being adopted; it has clients.
    Adopting,
    /// Clients may connect; since when it has none.
    Up { idle_since: Option<Time> },
    /// It was ordered to stop.
    Stopping,
    /// It had this fault; its clients are being stopped.
    Faulted(String),
    /// Its clients are gone, and it was ordered to recover from this fault.
    Recovering(String),
}

/// What a rank that comes to the GPU finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MpsReadiness {
    /// No daemon.
    NoDaemon,
    /// A daemon that serves clients.
    Serving,
    /// A daemon of which something is expected first.
    Changing,
}

/// The consequence of an event beyond the new state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MpsChange {
    /// None.
    None,
    /// A daemon was started, or is running again.
    Started,
    /// No daemon could be started: why.
    DidNotStart(String),
    /// All clients have lost their work; this one is the culprit, if it is known.
    ClientsLost { culprit: Option<RankId> },
    /// It did not recover from a fault: why.
    DidNotRecover(String),
}

impl MpsState {
    /// Enters the state that an order leads to.
    ///
    /// # Panics
    /// If the order is not valid in this state, for example because an earlier one is not answered.
    pub(crate) fn order(&mut self, order: &MpsOrder) {
        *self = match (order, &*self) {
            (MpsOrder::Start(_), MpsState::Idle) => MpsState::Starting,
            (MpsOrder::Adopt(_), MpsState::Idle) => MpsState::Adopting,
            (MpsOrder::Stop, MpsState::Up { .. } | MpsState::Faulted(_)) => MpsState::Stopping,
            (MpsOrder::Recover(_), MpsState::Faulted(detail)) => MpsState::Recovering(detail.clone()),
            (order, service) => panic!("{order:?} was ordered of an MPS daemon in state {service:?}"),
        };
    }

    /// Applies an event; one that does not fit the state is ignored.
    pub(crate) fn apply(&mut self, event: MpsEvent) -> MpsChange {
        let (next, change) = match (event, &*self) {
            (MpsEvent::Up, MpsState::Starting | MpsState::Adopting | MpsState::Recovering(_)) => {
                (MpsState::Up { idle_since: None }, MpsChange::Started)
            }
            (MpsEvent::Failed(why), MpsState::Starting) => (MpsState::Idle, MpsChange::DidNotStart(why)),
            (MpsEvent::Failed(why), MpsState::Adopting) => {
                (MpsState::Faulted(why), MpsChange::ClientsLost { culprit: None })
            }
            (MpsEvent::Failed(why), MpsState::Recovering(_)) => {
                (MpsState::Idle, MpsChange::DidNotRecover(why))
            }
            (MpsEvent::Stopped, MpsState::Stopping) => (MpsState::Idle, MpsChange::None),
            (MpsEvent::Faulted { culprit, detail }, MpsState::Up { .. }) => {
                (MpsState::Faulted(detail), MpsChange::ClientsLost { culprit })
            }
            (MpsEvent::Up | MpsEvent::Failed(_) | MpsEvent::Stopped | MpsEvent::Faulted { .. }, _) => {
                return MpsChange::None;
            }
        };
        *self = next;
        change
    }

    /// What a rank that comes now finds.
    pub(crate) const fn readiness(&self) -> MpsReadiness {
        match self {
            MpsState::Idle => MpsReadiness::NoDaemon,
            MpsState::Up { .. } => MpsReadiness::Serving,
            MpsState::Starting
            | MpsState::Adopting
            | MpsState::Stopping
            | MpsState::Faulted(_)
            | MpsState::Recovering(_) => MpsReadiness::Changing,
        }
    }

    /// Notes how many clients it has now.
    pub(crate) fn note_clients(&mut self, now: Time, clients: usize) {
        if let MpsState::Up { idle_since } = self {
            *idle_since = match clients {
                0 => Some(idle_since.unwrap_or(now)),
                _ => None,
            };
        }
    }

    /// When a daemon without clients is to be stopped.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self {
            MpsState::Up { idle_since } => idle_since.map(|since| since + IDLE_TIMEOUT),
            MpsState::Idle
            | MpsState::Starting
            | MpsState::Adopting
            | MpsState::Stopping
            | MpsState::Faulted(_)
            | MpsState::Recovering(_) => None,
        }
    }
}
