//! Compares the recorded outcome of a rank with what its machine observed.

use cohabit_scheduler_core::Event;
use cohabit_types::{Outcome, RankId, Report, StartFailure, Time};

use super::observed::ObservedAttempt;
use super::{HandledEvent, JobTransition, ReferenceModel};
use crate::node::SimNode;

/// What really became of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrueOutcome<'a> {
    /// No machine knows it.
    NoTrace,
    /// It ended like this, if that was ever known, and the record on the disk is lost.
    Forgotten(Option<&'a Outcome>),
    /// It is alive.
    Lives,
    /// It ended like this.
    Ended(&'a Outcome),
}

impl ReferenceModel {
    /// Checks that every new outcome is the one that the machine observed, and that a rank given up is really
    /// gone.
    pub(super) fn check_outcomes(&self, it: &HandledEvent<'_>, step: &JobTransition) -> Result<(), String> {
        // A store may end and be started again by one event.
        let goes_on = |attempt: &&ObservedAttempt| attempt.number >= step.before.latest_number();
        for attempt in step.after.attempts.iter().filter(goes_on) {
            let before = step.before.attempt(attempt.number);
            for (number, rank) in (0..).zip(&attempt.ranks) {
                let known = before.and_then(|before| before.ranks.get(number as usize)?.outcome.as_ref());
                if let (None, Some(outcome)) = (known, &rank.outcome) {
                    self.check_outcome(it, step.id.attempt(attempt.number).rank(number), outcome)?;
                }
            }
        }
        Ok(())
    }

    fn check_outcome(&self, it: &HandledEvent<'_>, rank: RankId, recorded: &Outcome) -> Result<(), String> {
        let truth = TrueOutcome::of(it.now, rank, it.nodes);
        let fits = match (it.event, recorded) {
            (Event::Report(key, Report::Ended { rank: reported, outcome, .. }), _) => {
                let from_there = *reported == rank && self.ordered.get(&rank) == Some(&key.node);
                from_there && outcome == recorded && truth.may_be_recorded_as(recorded)
            }
            // Its node came back without it.
            (Event::Joined(..), Outcome::Lost(_) | Outcome::NotStarted(StartFailure::OrderLost)) => {
                truth.is_gone()
            }
            // Its node was unreachable for too long.
            (Event::Alarm, Outcome::Lost(_)) => truth != TrueOutcome::Lives,
            _ => false,
        };
        match fits {
            true => Ok(()),
            false => Err(format!("{rank} is recorded as {recorded:?}, the truth is {truth:?}")),
        }
    }
}

impl<'a> TrueOutcome<'a> {
    fn of(now: Time, rank: RankId, nodes: &'a [SimNode]) -> TrueOutcome<'a> {
        let mut machines = nodes.iter().map(|node| &node.machine);
        if machines.clone().any(|machine| machine.has_live_rank(now, rank)) {
            return TrueOutcome::Lives;
        }
        let is_forgotten = machines.clone().any(|machine| machine.accounts().forgotten.contains(&rank));
        let outcome = machines.find_map(|machine| machine.accounts().outcomes.get(&rank));
        match (is_forgotten, outcome) {
            (true, outcome) => TrueOutcome::Forgotten(outcome),
            (false, Some(outcome)) => TrueOutcome::Ended(outcome),
            (false, None) => TrueOutcome::NoTrace,
        }
    }

    /// Whether a worker may report this outcome.
    fn may_be_recorded_as(self, outcome: &Outcome) -> bool {
        match self {
            TrueOutcome::NoTrace => matches!(outcome, Outcome::NotStarted(_)),
            TrueOutcome::Forgotten(observed) => {
                observed == Some(outcome) || matches!(outcome, Outcome::Lost(_))
            }
            TrueOutcome::Lives => false,
            TrueOutcome::Ended(observed) => observed == outcome,
        }
    }

    /// Whether nobody can tell any more how it ended.
    fn is_gone(self) -> bool {
        matches!(
            self,
            TrueOutcome::NoTrace | TrueOutcome::Forgotten(_) | TrueOutcome::Ended(Outcome::Lost(_))
        )
    }
}
