//! Determines whether the limits of the ranks on a GPU are enforced, by observation: limits apply to clients
//! of the MPS server. A process that holds GPU memory without being a client bypasses MPS, because a program
//! that cannot reach the server runs without it silently.
//!
//! Pure. The two lists that are compared are not from the same moment, so a process is reported only if it is
//! found twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cohabit_types::{Enforcement, RankId};
use tokio::time::Instant;

/// A rank without a client after this time is no longer checked more often than others.
const FIRST_CLIENT_WINDOW: Duration = Duration::from_secs(60);

/// A process of a rank.
pub(crate) type RankPid = (RankId, i32);

/// The checks of the ranks on one GPU.
#[derive(Debug, Default)]
pub(crate) struct EnforcementChecks {
    ranks: BTreeMap<RankId, EnforcementCheck>,
    /// The processes that hold GPU memory, if the driver was asked since the last comparison.
    holders: Option<Vec<RankPid>>,
}

#[derive(Debug)]
struct EnforcementCheck {
    joined_at: Instant,
    /// Processes that held memory without being clients at the last comparison.
    suspects: BTreeSet<i32>,
    /// What was reported last.
    reported: Option<Enforcement>,
}

impl EnforcementChecks {
    /// A rank starts that is to be a client.
    pub(crate) fn join(&mut self, now: Instant, rank: RankId) {
        self.ranks.entry(rank).or_insert(EnforcementCheck {
            joined_at: now,
            suspects: BTreeSet::new(),
            reported: None,
        });
    }

    /// The rank has ended.
    pub(crate) fn leave(&mut self, rank: RankId) {
        self.ranks.remove(&rank);
    }

    /// Whether the GPU has no ranks.
    pub(crate) fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Whether a comparison is needed soon.
    pub(crate) fn is_waiting(&self, now: Instant) -> bool {
        self.ranks
            .values()
            .any(|check| check.reported.is_none() && now < check.joined_at + FIRST_CLIENT_WINDOW)
    }

    /// The driver reports that these processes hold GPU memory.
    pub(crate) fn held_by(&mut self, holders: Vec<RankPid>) {
        self.holders = Some(holders);
    }

    /// The MPS server, which was asked after the driver, reports these clients, of which no limit keeps the
    /// `unlimited` ones within that of their rank. Returns what is new.
    pub(crate) fn compare(
        &mut self,
        clients: &[RankPid],
        unlimited: &[RankPid],
    ) -> Vec<(RankId, Enforcement)> {
        let holders = self.holders.take();
        let mut changes = Vec::new();
        for (rank, check) in &mut self.ranks {
            let own = |members: &[RankPid]| -> BTreeSet<i32> {
                members.iter().filter(|(of, _)| of == rank).map(|(_, pid)| *pid).collect()
            };
            let clients: BTreeSet<i32> = own(clients);
            let holders: Option<BTreeSet<i32>> = holders.as_deref().map(own);
            let unlimited = own(unlimited).first().copied();
            if let Some(enforcement) = check.compare(&clients, holders.as_ref(), unlimited) {
                changes.push((*rank, enforcement));
            }
        }
        changes
    }
}

impl EnforcementCheck {
    /// The new result, if it differs from the last one that was reported.
    fn compare(
        &mut self,
        clients: &BTreeSet<i32>,
        holders: Option<&BTreeSet<i32>>,
        unlimited: Option<i32>,
    ) -> Option<Enforcement> {
        if let Some(pid) = unlimited {
            return self.report(Some(dropped_its_limit(pid)));
        }
        let outside: BTreeSet<i32> = match holders {
            Some(holders) => holders - clients,
            // No new list to compare with.
            None => {
                return self.report(
                    (!clients.is_empty() && self.reported.is_none()).then_some(Enforcement::Enforced),
                );
            }
        };
        let bypassing = outside.intersection(&self.suspects).next().copied();
        let enforcement = match bypassing {
            Some(pid) => Some(bypasses_mps(pid)),
            None if outside.is_empty() && !clients.is_empty() => Some(Enforcement::Enforced),
            None => None,
        };
        self.suspects = outside;
        self.report(enforcement)
    }

    fn report(&mut self, enforcement: Option<Enforcement>) -> Option<Enforcement> {
        let change = enforcement.filter(|new| self.reported.as_ref() != Some(new))?;
        self.reported = Some(change.clone());
        Some(change)
    }
}

fn bypasses_mps(pid: i32) -> Enforcement {
    Enforcement::Unenforced(format!(
        "its process {pid} uses the GPU outside of MPS: keep the CUDA_MPS_* variables, in a container too"
    ))
}

fn dropped_its_limit(pid: i32) -> Enforcement {
    Enforcement::Unenforced(format!(
        "its process {pid} was started without its CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: keep this variable"
    ))
}

#[cfg(test)]
mod tests {
    use cohabit_types::JobId;

    use super::*;

    fn rank(job: u64) -> RankId {
        JobId::new(job).attempt(1).rank(0)
    }

    /// Two ranks that have just come.
    fn checks() -> EnforcementChecks {
        let mut checks = EnforcementChecks::default();
        checks.join(Instant::now(), rank(1));
        checks.join(Instant::now(), rank(2));
        checks
    }

    #[test]
    fn a_rank_with_a_client_is_enforced_and_reported_once() {
        let mut checks = checks();
        assert_eq!(checks.compare(&[], &[]), []);
        assert_eq!(checks.compare(&[(rank(1), 10)], &[]), [(rank(1), Enforcement::Enforced)]);
        checks.held_by(vec![(rank(1), 10)]);
        assert_eq!(checks.compare(&[(rank(1), 10)], &[]), []);
    }

    #[test]
    fn a_process_that_bypasses_mps_is_reported_at_the_second_check() {
        let mut checks = checks();
        checks.held_by(vec![(rank(1), 10), (rank(1), 11)]);
        assert_eq!(checks.compare(&[(rank(1), 10)], &[]), []);
        checks.held_by(vec![(rank(1), 10), (rank(1), 11)]);
        assert_eq!(checks.compare(&[(rank(1), 10)], &[]), [(rank(1), bypasses_mps(11))]);
    }

    #[test]
    fn the_same_list_of_holders_reports_no_process_twice() {
        let mut checks = checks();
        checks.held_by(vec![(rank(1), 10)]);
        assert_eq!(checks.compare(&[], &[]), []);
        assert_eq!(checks.compare(&[], &[]), []);
    }

    #[test]
    fn a_process_that_becomes_a_client_between_two_checks_clears_its_rank() {
        let mut checks = checks();
        checks.held_by(vec![(rank(1), 10)]);
        assert_eq!(checks.compare(&[], &[]), []);
        checks.held_by(vec![(rank(1), 10)]);
        assert_eq!(checks.compare(&[(rank(1), 10)], &[]), [(rank(1), Enforcement::Enforced)]);
    }

    #[test]
    fn a_rank_is_enforced_again_when_its_stray_process_is_gone() {
        let mut checks = checks();
        for _ in 0..2 {
            checks.held_by(vec![(rank(2), 10), (rank(2), 11)]);
            checks.compare(&[(rank(2), 10)], &[]);
        }
        checks.held_by(vec![(rank(2), 10)]);
        assert_eq!(checks.compare(&[(rank(2), 10)], &[]), [(rank(2), Enforcement::Enforced)]);
    }

    #[test]
    fn clients_are_looked_for_eagerly_while_a_new_rank_has_none() {
        let now = Instant::now();
        let mut checks = EnforcementChecks::default();
        assert!(checks.is_empty() && !checks.is_waiting(now));
        checks.join(now, rank(1));
        assert!(
            !checks.is_empty() && checks.is_waiting(now) && !checks.is_waiting(now + FIRST_CLIENT_WINDOW)
        );
        checks.compare(&[(rank(1), 10)], &[]);
        assert!(!checks.is_waiting(now));
        checks.leave(rank(1));
        assert!(checks.is_empty());
    }

    #[test]
    fn a_client_without_its_limit_is_not_enforced_until_it_is_gone() {
        let mut checks = checks();
        let (client, other) = ((rank(1), 10), (rank(1), 11));
        assert_eq!(checks.compare(&[client, other], &[other]), [(rank(1), dropped_its_limit(11))]);
        assert_eq!(checks.compare(&[client, other], &[other]), []);
        checks.held_by(vec![client]);
        assert_eq!(checks.compare(&[client], &[]), [(rank(1), Enforcement::Enforced)]);
    }

    #[test]
    fn unexpected_processes_are_ignored() {
        let mut checks = EnforcementChecks::default();
        checks.held_by(vec![(rank(1), 10)]);
        assert_eq!(checks.compare(&[(rank(1), 10)], &[]), []);
    }
}
