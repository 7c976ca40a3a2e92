//! What is logged of connections that come to nothing: each by itself while they are few, their number while
//! they are many. Whoever dials often must not fill the disk.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// In this time ...
const WHILE: Duration = Duration::from_secs(10);
/// ... so many are told of one by one.
const MOST: u32 = 20;

/// Tells of trouble with peers.
#[derive(Default)]
pub(crate) struct Complaints(Mutex<Told>);

/// What was told in the present while.
struct Told {
    since: Instant,
    told: u32,
    untold: u32,
}

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Somebody with a client of ours was refused: a person may want to know why.
    Refusal,
    /// Something else dialled.
    Noise,
}

impl Complaints {
    /// Tells of one, unless there were many just now.
    pub(crate) fn of(&self, weight: Weight, address: SocketAddr, reason: &impl Display) {
        match (self.tells(), weight) {
            (true, Weight::Refusal) => tracing::warn!(%address, %reason, "refused a connection"),
            (true, Weight::Noise) => tracing::info!(%address, %reason, "turned a connection away"),
            (false, _) => {}
        }
    }

    /// Tells that somebody made room for others, unless there was much to tell just now.
    pub(crate) fn of_a_crowd(&self, greetings: usize) {
        if self.tells() {
            tracing::warn!(greetings, "more dial than are greeted at once: who has taken longest makes room");
        }
    }

    /// Tells that the system did not hand over a connection, unless there was much to tell just now.
    pub(crate) fn of_the_system(&self, error: &io::Error) {
        if self.tells() {
            tracing::warn!(%error, "the system did not hand over a connection; it is asked again");
        }
    }

    fn tells(&self) -> bool {
        let (tells, untold) = self.0.lock().unwrap_or_else(PoisonError::into_inner).next(Instant::now());
        if untold > 0 {
            tracing::warn!(connections = untold, "so many more came to nothing");
        }
        tells
    }
}

impl Told {
    /// Whether the next is told of, and how many were not before it that have to be told of now.
    fn next(&mut self, now: Instant) -> (bool, u32) {
        let untold = if now.duration_since(self.since) < WHILE {
            0
        } else {
            let untold = self.untold;
            *self = Told { since: now, told: 0, untold: 0 };
            untold
        };
        let tells = self.told < MOST;
        self.told += u32::from(tells);
        self.untold += u32::from(!tells);
        (tells, untold)
    }
}

impl Default for Told {
    fn default() -> Told {
        Told { since: Instant::now(), told: 0, untold: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_only_the_first_are_told_and_then_how_many_there_were() {
        let mut told = Told::default();
        let start = told.since;
        let tells = |told: &mut Told, at| told.next(start + at);
        assert!((0..MOST).all(|_| tells(&mut told, Duration::ZERO) == (true, 0)));
        assert!((0..1_000).all(|_| tells(&mut told, WHILE / 2) == (false, 0)));
        assert_eq!(tells(&mut told, WHILE), (true, 1_000));
        assert_eq!(tells(&mut told, WHILE), (true, 0));
    }
}
