//! A user who asks for what the head must refuse: nothing that this user does may change anything.

use cohabit_types::{
    ChangeResult, Demand, Dependency, DependencyKind, JobChange, JobId, JobSpec, Principal, Reply, Request,
    Role, Submit,
};

use crate::random::Random;

/// The user's name.
const NAME: &str = "mallory";

/// A request that the head must refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostileRequest {
    /// Changes jobs of others, or jobs that do not exist.
    ChangeOthers {
        /// The change.
        change: JobChange,
        /// Which jobs; the same job may be named many times.
        jobs: Vec<JobId>,
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
        match random.between(0, 3) {
            0 => HostileRequest::SubmitNonsense(*random.pick(&NONSENSE)),
            1 => HostileRequest::SubmitAsWorker,
            2 => HostileRequest::AdministerNode {
                node: random.between(0, nodes as u64 - 1) as usize,
                drain: random.chance(0.5),
            },
            _ => {
                let count = random.between(1, 200);
                let job = |random: &mut Random| match random.chance(0.8) {
                    true => JobId::new(random.between(0, 60)),
                    false => JobId::member(random.between(0, 60), random.between(0, 9) as u32),
                };
                let jobs = (0..count).map(|_| job(random)).collect();
                HostileRequest::ChangeOthers { change: *random.pick(&CHANGES), jobs }
            }
        }
    }

    /// The request and its sender; `node` names a node by its number.
    pub(crate) fn request(self, node: impl Fn(usize) -> String) -> (Principal, Request) {
        let user = Principal::new(NAME, Role::User);
        match self {
            HostileRequest::ChangeOthers { change, jobs } => (user, Request::Change(change, jobs)),
            HostileRequest::SubmitNonsense(nonsense) => (user, submit(nonsense.spec())),
            HostileRequest::SubmitAsWorker => (Principal::new(NAME, Role::Worker), submit(plain())),
            HostileRequest::AdministerNode { node: number, drain: true } => {
                (user, Request::Drain(node(number)))
            }
            HostileRequest::AdministerNode { node: number, drain: false } => {
                (user, Request::Resume(node(number)))
            }
        }
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
        Reply::Accepted { .. } | Reply::Node(_) => false,
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

fn plain() -> JobSpec {
    JobSpec::command(vec!["true".into()], "/".into())
}

fn submit(spec: JobSpec) -> Request {
    Request::Submit(Box::new(Submit { spec, idempotency_key: None, estimate: None }))
}
