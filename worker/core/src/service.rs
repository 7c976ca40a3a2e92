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

use crate::{MpsOrder, MpsWord};

/// How long a daemon without clients is kept for the next one.
const KEPT_IDLE: Span = Span::from_secs(10);

/// How the MPS daemon of a GPU is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Service {
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
pub(crate) enum News {
    /// Nothing more.
    None,
    /// No daemon can be started here: why.
    CannotStart(String),
    /// All clients have lost, by the fault of this one if it is known.
    ClientsLost { culprit: Option<RankId> },
    /// It did not come back after a fault: why.
    DidNotRecover(String),
}

impl Service {
    /// The state that an order leads to.
    ///
    /// # Panics
    /// If the order does not belong there: an earlier one may be unanswered.
    pub(crate) fn order(&mut self, order: MpsOrder) {
        *self = match (order, &*self) {
            (MpsOrder::Start, Service::Idle) => Service::Starting,
            (MpsOrder::Adopt, Service::Idle) => Service::Adopting,
            (MpsOrder::Stop, Service::Up { .. } | Service::Faulted(_)) => Service::Stopping,
            (MpsOrder::Recover, Service::Faulted(detail)) => Service::Recovering(detail.clone()),
            (order, service) => panic!("{order:?} was ordered of an MPS daemon that is {service:?}"),
        };
    }

    /// Takes note of a word; one that answers nothing is ignored.
    pub(crate) fn hear(&mut self, word: MpsWord) -> News {
        let (next, news) = match (word, &*self) {
            (MpsWord::Up, Service::Starting | Service::Adopting | Service::Recovering(_)) => {
                (Service::Up { idle_since: None }, News::None)
            }
            (MpsWord::Failed(why), Service::Starting) => (Service::Idle, News::CannotStart(why)),
            (MpsWord::Failed(why), Service::Adopting) => {
                (Service::Faulted(why), News::ClientsLost { culprit: None })
            }
            (MpsWord::Failed(why), Service::Recovering(_)) => (Service::Idle, News::DidNotRecover(why)),
            (MpsWord::Stopped, Service::Stopping) => (Service::Idle, News::None),
            (MpsWord::Faulted { culprit, detail }, Service::Up { .. }) => {
                (Service::Faulted(detail), News::ClientsLost { culprit })
            }
            (MpsWord::Up | MpsWord::Failed(_) | MpsWord::Stopped | MpsWord::Faulted { .. }, _) => {
                return News::None;
            }
        };
        *self = next;
        news
    }

    /// Notes whether it has clients now.
    pub(crate) fn note_clients(&mut self, now: Time, clients: usize) {
        if let Service::Up { idle_since } = self {
            *idle_since = match clients {
                0 => Some(idle_since.unwrap_or(now)),
                _ => None,
            };
        }
    }

    /// When a daemon without clients is stopped.
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self {
            Service::Up { idle_since } => idle_since.map(|since| since + KEPT_IDLE),
            Service::Idle
            | Service::Starting
            | Service::Adopting
            | Service::Stopping
            | Service::Faulted(_)
            | Service::Recovering(_) => None,
        }
    }
}
