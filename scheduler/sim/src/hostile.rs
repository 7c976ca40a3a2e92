//! A user who means harm. What the head must refuse may change nothing, and what it must grant may hurt
//! nobody else: arrays that never run, depend on the jobs of others, and are held, released and requeued over
//! and over.

use cohabit_types::{
    Array, ChangeResult, Demand, Dependency, DependencyKind, DrainRequest, JobChange, JobId, JobSpec,
    Principal, Reply, Request, Role, Submit, Time,
};

use crate::random::Random;

/// No scenario has so many jobs.
const FIRST_ABSENT: u64 = 1_000_000;

/// The user's name.
const NAME: &str = "mallory";

/// A request of this user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostileRequest {
    /// Changes jobs of others, or jobs that do not exist.
    ChangeOthers {
        /// The change.
        change: JobChange,
        /// Which jobs; the same job may be named many times.
        jobs: Vec<JobChoice>,
    },
    /// Submits an array that never becomes eligible, which is allowed.
    SubmitOwn {
        /// The number of its members.
        members: u32,
        /// The jobs of others on which it depends.
        depends_on: Vec<JobChoice>,
    },
    /// Changes an own array, which is allowed.
    ChangeOwn {
        /// The change.
        change: JobChange,
        /// Which one: 0 is the latest.
        back: u64,
    },
    /// Submits a job that makes no sense.
    SubmitNonsense(Nonsense),
    /// Submits a job with a worker's token.
    SubmitAsWorker,
    /// Drains or resumes a node, by its number, as a user.
    AdministerNode {
        /// The number of the node.
        node: usize,
        /// Whether to drain it.
        drain: bool,
    },
}

/// A choice among the jobs of others when the request is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobChoice {
    /// One of theirs, counted round and round.
    OfOthers(u64),
    /// A member of one of theirs, which may be no array.
    MemberOfOthers(u64, u32),
    /// One that does not exist.
    Absent(u64),
}

/// Whether the head must refuse a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedReply {
    Refusal,
    Any,
}

/// What makes no sense in a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nonsense {
    /// It needs no node.
    NoNode,
    /// Its working directory is relative.
    RelativeDirectory,
    /// It depends on many jobs that do not exist.
    UnknownDependencies,
}

const CHANGES: [JobChange; 5] =
    [JobChange::Cancel, JobChange::Hold, JobChange::Release, JobChange::Requeue, JobChange::Kill];
const NONSENSE: [Nonsense; 3] =
    [Nonsense::NoNode, Nonsense::RelativeDirectory, Nonsense::UnknownDependencies];

impl HostileRequest {
    /// Draws one, in a cluster with this many nodes.
    pub(crate) fn draw(random: &mut Random, nodes: usize) -> HostileRequest {
        match random.between(0, 5) {
            0 => HostileRequest::SubmitNonsense(*random.pick(&NONSENSE)),
            1 => HostileRequest::SubmitAsWorker,
            2 => HostileRequest::AdministerNode {
                node: random.between(0, nodes as u64 - 1) as usize,
                drain: random.chance(0.5),
            },
            3 => {
                let most = if random.chance(0.05) { 300 } else { 12 };
                let count = random.between(0, most);
                HostileRequest::SubmitOwn {
                    members: random.between(1, most) as u32,
                    depends_on: (0..count).map(|_| JobChoice::OfOthers(random.between(0, 60))).collect(),
                }
            }
            4 => HostileRequest::ChangeOwn { change: *random.pick(&CHANGES), back: random.between(0, 3) },
            _ => {
                let count = random.between(1, 200);
                let jobs = (0..count).map(|_| JobChoice::draw(random)).collect();
                HostileRequest::ChangeOthers { change: *random.pick(&CHANGES), jobs }
            }
        }
    }

    /// The request, its sender, and whether it must be refused; `None` if there is nothing to change yet.
    /// `node` names a node by its number; the jobs of others and of this user are given.
    pub(crate) fn request(
        self,
        node: impl Fn(usize) -> String,
        others: &[JobId],
        own: &[JobId],
    ) -> Option<(Principal, Request, ExpectedReply)> {
        let user = Principal::new(NAME, Role::User);
        let chosen = |jobs: Vec<JobChoice>| jobs.into_iter().map(|job| job.among(others)).collect();
        let (by, request) = match self {
            HostileRequest::SubmitOwn { members, depends_on } => {
                let spec = never_eligible(members, chosen(depends_on));
                return Some((user, submit(spec), ExpectedReply::Any));
            }
            HostileRequest::ChangeOwn { change, back } => {
                let back = back.checked_rem(own.len() as u64)? as usize;
                let request = Request::Change(change, vec![own[own.len() - 1 - back]]);
                return Some((user, request, ExpectedReply::Any));
            }
            HostileRequest::ChangeOthers { change, jobs } => (user, Request::Change(change, chosen(jobs))),
            HostileRequest::SubmitNonsense(nonsense) => (user, submit(nonsense.spec())),
            HostileRequest::SubmitAsWorker => (Principal::new(NAME, Role::Worker), submit(plain())),
            HostileRequest::AdministerNode { node: number, drain: true } => {
                (user, Request::Drain(DrainRequest::new(node(number))))
            }
            HostileRequest::AdministerNode { node: number, drain: false } => {
                (user, Request::Resume(node(number)))
            }
        };
        Some((by, request, ExpectedReply::Refusal))
    }
}

impl JobChoice {
    fn draw(random: &mut Random) -> JobChoice {
        let pick = random.between(0, 60);
        match random.between(0, 9) {
            0 => JobChoice::Absent(pick),
            1 | 2 => JobChoice::MemberOfOthers(pick, random.between(0, 9) as u32),
            _ => JobChoice::OfOthers(pick),
        }
    }

    fn among(self, others: &[JobId]) -> JobId {
        let other = |pick: u64| Some(others[pick.checked_rem(others.len() as u64)? as usize]);
        match self {
            JobChoice::OfOthers(pick) => other(pick),
            JobChoice::MemberOfOthers(pick, index) => other(pick).map(|job| JobId::member(job.number, index)),
            JobChoice::Absent(_) => None,
        }
        .unwrap_or(JobId::new(FIRST_ABSENT))
    }
}

/// Checks that a reply to such a request grants nothing.
///
/// # Errors
/// If it does.
pub(crate) fn check_refused(reply: &Reply) -> Result<(), String> {
    let is_refused = match reply {
        Reply::Refused(_) => true,
        Reply::Changed(results) => {
            results.iter().all(|(_, result)| matches!(result, ChangeResult::Refused(_)))
        }
        Reply::Accepted { .. } | Reply::Node(_) | Reply::SharesApplied | Reply::Reservation(_) => false,
    };
    is_refused.then_some(()).ok_or_else(|| format!("the head granted a hostile request: {reply:?}"))
}

impl Nonsense {
    fn spec(self) -> JobSpec {
        match self {
            Nonsense::NoNode => JobSpec { demand: Demand { nodes: 0, ..Demand::default() }, ..plain() },
            Nonsense::RelativeDirectory => JobSpec { workdir: "here".into(), ..plain() },
            Nonsense::UnknownDependencies => {
                let after = |number| Dependency { job: JobId::new(number), when: DependencyKind::AfterAny };
                JobSpec { depends_on: (1_000_000..1_001_000).map(after).collect(), ..plain() }
            }
        }
    }
}

/// An array on hold whose begin never comes.
fn never_eligible(members: u32, depends_on: Vec<JobId>) -> JobSpec {
    let after = |job| Dependency { job, when: DependencyKind::AfterAny };
    JobSpec {
        held: true,
        begin: Some(Time::from_micros(u64::MAX / 4)),
        array: Some(Array::from(0..=members - 1)),
        depends_on: depends_on.into_iter().map(after).collect(),
        ..plain()
    }
}

fn plain() -> JobSpec {
    JobSpec::command(vec!["true".into()], "/".into())
}

fn submit(spec: JobSpec) -> Request {
    Request::Submit(Box::new(Submit { spec, idempotency_key: None, estimate: None }))
}
