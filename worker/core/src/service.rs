//! The MPS daemon of one GPU as a state machine: which order is under way, and what its actor's words mean.
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
//! Each order has one answer, and the next order comes only after it.

use cohabit_types::{RankId, Span, Time};

use crate::{MpsEvent, MpsOrder};

/// How long a daemon without clients is kept for the next one.
const IDLE_TIMEOUT: Span = Span::from_secs(10);

/// How the MPS daemon of a GPU is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MpsState {
    /// There is none.
    Idle,
    /// It was ordered to start.
    Starting,
    /// That of an earlier worker daemon is to be taken over; it has clients.
    Adopting,
    /// Clients may come; since when it has none.
    Up { idle_since: Option<Time> },
    /// It was ordered to stop.
    Stopping,
    /// It was in fault, as this says; its clients are on their way out.
    Faulted(String),
    /// They are gone, and it was ordered to come back after the fault that this tells of.
    Recovering(String),
}

/// What an actor's word means beyond the state that it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MpsChange {
    /// Nothing more.
    None,
    /// No daemon can be started here: why.
    CannotStart(String),
    /// All clients have lost, by the fault of this one if it is known.
    ClientsLost { culprit: Option<RankId> },
    /// It did not come back after a fault: why.
    DidNotRecover(String),
}

impl MpsState {
    /// The state that an order leads to.
    ///
    /// # Panics
    /// If the order does not belong there: an earlier one may be unanswered.
    pub(crate) fn order(&mut self, order: MpsOrder) {
        *self = match (order, &*self) {
            (MpsOrder::Start, MpsState::Idle) => MpsState::Starting,
            (MpsOrder::Adopt, MpsState::Idle) => MpsState::Adopting,
            (MpsOrder::Stop, MpsState::Up { .. } | MpsState::Faulted(_)) => MpsState::Stopping,
            (MpsOrder::Recover, MpsState::Faulted(detail)) => MpsState::Recovering(detail.clone()),
            (order, service) => panic!("{order:?} was ordered of an MPS daemon that is {service:?}"),
        };
    }

    /// Takes note of a word; one that answers nothing is ignored.
    pub(crate) fn apply(&mut self, word: MpsEvent) -> MpsChange {
        let (next, news) = match (word, &*self) {
            (MpsEvent::Up, MpsState::Starting | MpsState::Adopting | MpsState::Recovering(_)) => {
                (MpsState::Up { idle_since: None }, MpsChange::None)
            }
            (MpsEvent::Failed(why), MpsState::Starting) => (MpsState::Idle, MpsChange::CannotStart(why)),
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
        news
    }

    /// Notes whether it has clients now.
    pub(crate) fn note_clients(&mut self, now: Time, clients: usize) {
        if let MpsState::Up { idle_since } = self {
            *idle_since = match clients {
                0 => Some(idle_since.unwrap_or(now)),
                _ => None,
            };
        }
    }

    /// When a daemon without clients is stopped.
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
