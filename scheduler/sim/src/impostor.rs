//! A worker that lies: it joins as a node of its own, which takes no job, and claims and reports ranks of
//! others. Nothing that it says may change a job or another node.

use std::collections::BTreeMap;

use cohabit_scheduler_core::Event;
use cohabit_types::{
    AttemptProgress, Bytes, Enforcement, HeldRank, HeldRankPhase, Incarnation, Inventory, Isolation, JobId,
    LinkBandwidths, NodeId, Outcome, Progress, RankId, Report, SharingLimits, Span, Time, UserIsolation,
    WorkerKey,
};
use uuid::Uuid;

use crate::random::Random;

/// The id of its node, which no simulated machine has.
const NODE: u128 = 0xBAD;

/// The only user whom its node serves; nobody has that name.
const OWNER: &str = "impostor";

/// What it says over one link about a rank of another worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lie {
    /// Which of the ranks that other workers hold, modulo their number. If there are none, one that does not
    /// exist.
    pub number: usize,
    /// What it says.
    pub claim: Claim,
}

/// What is said about the rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The impostor holds it.
    Holds,
    /// It runs.
    Started,
    /// It exited with this code.
    Ended(i32),
    /// It has done most of its work.
    Progress,
    /// Its limits are not enforced.
    Unenforced,
    /// It runs as another user.
    PrivateUser,
}

const CLAIMS: [Claim; 7] = [
    Claim::Holds,
    Claim::Started,
    Claim::Ended(0),
    Claim::Ended(1),
    Claim::Progress,
    Claim::Unenforced,
    Claim::PrivateUser,
];

impl Lie {
    /// Draws one.
    pub(crate) fn draw(random: &mut Random) -> Lie {
        Lie { number: random.between(0, 1_000) as usize, claim: *random.pick(&CLAIMS) }
    }

    /// The events of the link with this number, over which it says this, while others hold these ranks.
    pub(crate) fn events(self, held: &[RankId], link: u64, now: Time) -> Vec<Event> {
        let nobodys = || JobId::new(1 << 40).attempt(1).rank(0);
        let rank = held.get(self.number % held.len().max(1)).copied().unwrap_or_else(nobodys);
        let key = WorkerKey { node: NodeId(Uuid::from_u128(NODE)), incarnation: Incarnation(link) };
        let mut events = vec![Event::Joined(key, self.inventory(rank))];
        events.extend(self.report(rank, now).map(|report| Event::Report(key, report)));
        events.push(Event::Lost(key, "the link broke".into()));
        events
    }

    fn inventory(self, rank: RankId) -> Inventory {
        let held = HeldRank { rank, phase: HeldRankPhase::Running(Time::EPOCH) };
        Inventory {
            fetches_code: true,
            prefetches: true,
            application_ports: true,
            changes_host_shares: true,
            name: OWNER.into(),
            address: "10.9.9.9".into(),
            cpus: 64,
            memory: Bytes(1 << 40),
            devices: Vec::new(),
            build: "simulated".into(),
            links: LinkBandwidths::default(),
            sharing: SharingLimits::default(),
            max_jobs: None,
            rendezvous_ports: Vec::new(),
            isolation: Isolation { users: UserIsolation::OneAccount(OWNER.into()), ..Isolation::default() },
            orphan_grace: Span::ZERO,
            held_ranks: if self.claim == Claim::Holds { vec![held] } else { Vec::new() },
        }
    }

    fn report(self, rank: RankId, at: Time) -> Option<Report> {
        Some(match self.claim {
            Claim::Holds => return None,
            Claim::Started => Report::Started { rank, at },
            Claim::Ended(code) => Report::Ended {
                rank,
                outcome: Outcome::Exited(code),
                stopped: None,
                progress: None,
                at,
                usage: Vec::new(),
            },
            Claim::Progress => {
                let metrics = BTreeMap::new();
                let progress = Progress { step: 999, total: Some(1_000), rate: Some(1e9), metrics, at };
                Report::Progress(vec![AttemptProgress { attempt: rank.attempt, progress }])
            }
            Claim::Unenforced => {
                Report::Sharing { rank, enforcement: Enforcement::Unenforced("says the impostor".into()) }
            }
            Claim::PrivateUser => Report::PrivateUser { rank, uid: 0 },
        })
    }
}
