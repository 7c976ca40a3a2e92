//! The JSON of snapshot formats 1 to 5: a job is one struct of optional fields, whatever its phase.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_types::{
    Bytes, Device, DeviceId, Enforcement, Estimate, Isolation, JobEvent, JobId, JobSpec, JobState,
    LinkBandwidths, NodeId, Outcome, Placement, PlanRequestId, Progress, ReasonCode, Role, Share,
    SharingLimits, Signal, Slowdown, Span, StopReason, Time, WorkerKey,
};
use serde::{Deserialize, Serialize};

use crate::alarm;
use crate::head;
use crate::interface::Config;
use crate::job::{self, EndedAttempt, EndedJob, JobExit, JobStatus, TerminalState, WaitingJob};
use crate::node;
use crate::snapshot_parts::{self, HeadSnapshot, MissingFirstJob};
use crate::submission;

/// A head: with all its jobs in formats 1 to 4, without any in format 5.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Head {
    config: Config,
    last_number: u64,
    last_ticket: u64,
    open_ticket: Option<PlanRequestId>,
    plan_wanted: bool,
    #[serde(default)]
    learns: bool,
    #[serde(default)]
    reconsiders: bool,
    #[serde(default)]
    started_at: Time,
    wake: Option<Time>,
    submissions: BTreeMap<u64, Submission>,
    jobs: BTreeMap<JobId, Option<Job>>,
    eligible: BTreeSet<JobId>,
    unended: BTreeSet<JobId>,
    ended: BTreeSet<(Time, JobId)>,
    dependents: BTreeMap<JobId, BTreeSet<JobId>>,
    keys: BTreeMap<String, BTreeMap<String, u64>>,
    nodes: BTreeMap<NodeId, Node>,
    nodes_joined: u64,
    alarms: BTreeSet<(Time, Alarm)>,
}

/// Some of the jobs of a head in format 5.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SnapshotPart {
    submissions: BTreeMap<u64, Submission>,
    jobs: BTreeMap<JobId, Option<Job>>,
    eligible: BTreeSet<JobId>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Submission {
    spec: JobSpec,
    user: String,
    #[serde(default)]
    account: Option<String>,
    #[serde(default = "role_of_earlier_versions")]
    role: Role,
    submitted_at: Time,
    estimate: Option<Estimate>,
    idempotency_key: Option<String>,
    states: BTreeMap<JobState, u64>,
    started_at: Option<Time>,
    speaker: Option<(JobId, JobState)>,
}

/// Submissions from before roles were kept run with the rights of the worker, as their users were promised.
const fn role_of_earlier_versions() -> Role {
    Role::Admin
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum Alarm {
    Node(NodeId),
    Job(JobId),
    Pause(NodeId),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Node {
    name: String,
    ordinal: u64,
    address: String,
    build: String,
    cpus: u32,
    memory: Bytes,
    #[serde(default)]
    links: LinkBandwidths,
    #[serde(default)]
    sharing: SharingLimits,
    #[serde(default)]
    isolation: Isolation,
    #[serde(default)]
    rendezvous_ports: Vec<u16>,
    #[serde(default)]
    taken_ports: BTreeSet<u16>,
    orphan_grace: Span,
    link: LinkState,
    intake: Intake,
    #[serde(default)]
    trouble: Option<Trouble>,
    since: Time,
    cpus_used: u32,
    memory_used: Bytes,
    devices: Vec<DeviceUse>,
    jobs: BTreeSet<JobId>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum LinkState {
    Up(WorkerKey),
    Broken(WorkerKey),
    Lost(WorkerKey),
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Intake {
    Open,
    Closed,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct DeviceUse {
    device: Device,
    used: Share,
    memory_used: Bytes,
    residents: BTreeSet<JobId>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Trouble {
    what: String,
    times: u32,
    paused_until: Option<Time>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    state: JobState,
    reason: ReasonCode,
    waits_for: BTreeSet<JobId>,
    not_before: Option<Time>,
    eligible_at: Time,
    attempts: Vec<Attempt>,
    failures: u32,
    node_failures: u32,
    #[serde(default)]
    alone_from: Option<u32>,
    exit_code: Option<i32>,
    signal: Option<Signal>,
    ended_at: Option<Time>,
    story: Vec<JobEvent>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Attempt {
    number: u32,
    placement: Placement,
    #[serde(default)]
    meeting_point: Option<(NodeId, u16)>,
    started_at: Time,
    #[serde(default)]
    expected: Option<Span>,
    #[serde(default)]
    slowdown: Option<Slowdown>,
    ended_at: Option<Time>,
    stopping: Option<StopReason>,
    stopped: Option<StopReason>,
    ranks: Vec<Rank>,
    first_failure: Option<u32>,
    progress: Option<Progress>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Rank {
    node: NodeId,
    node_name: String,
    devices: Vec<DeviceId>,
    phase: RankPhase,
    #[serde(default)]
    enforcement: Option<Enforcement>,
    #[serde(default)]
    host_limits: Option<Enforcement>,
    #[serde(default)]
    private_uid: Option<u32>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum RankPhase {
    Ordered,
    Running,
    Ended(Outcome),
}

impl TryFrom<Job> for job::Job {
    type Error = String;

    fn try_from(mut stored: Job) -> Result<job::Job, String> {
        let last_exit = match (stored.exit_code, stored.signal) {
            (Some(_), Some(_)) => return Err("it has an exit code and a signal".to_owned()),
            (Some(code), None) => Some(JobExit::Code(code)),
            (None, signal) => signal.map(JobExit::Signal),
        };
        let live = stored.attempts.pop_if(|attempt| attempt.ended_at.is_none());
        Ok(job::Job {
            status: stored.status(live)?,
            ended_attempts: stored.attempts.into_iter().map(ended_attempt).collect::<Result<_, _>>()?,
            last_exit,
            own_failures: stored.failures,
            node_failures: stored.node_failures,
            exclusive_from_attempt: stored.alone_from,
            events: stored.story,
        })
    }
}

impl Job {
    /// The phase that the fields agree on.
    fn status(&mut self, live: Option<Attempt>) -> Result<JobStatus, String> {
        let stopping = live.as_ref().and_then(|attempt| attempt.stopping);
        let live = live.map(|attempt| Box::new(job::Attempt::from(attempt)));
        match (self.state, live, stopping, self.ended_at, TerminalState::of(self.state)) {
            (JobState::Pending | JobState::Held, None, _, None, _) => Ok(JobStatus::Waiting(WaitingJob {
                held: self.state == JobState::Held,
                waits_for: std::mem::take(&mut self.waits_for),
                not_before: self.not_before,
                eligible_at: self.eligible_at,
            })),
            (JobState::Running, Some(attempt), None, None, _) => Ok(JobStatus::Running(attempt)),
            (JobState::Completing, Some(attempt), Some(why), None, _) => {
                Ok(JobStatus::Stopping(attempt, why))
            }
            (_, None, _, Some(at), Some(state)) => {
                Ok(JobStatus::Ended(EndedJob { state, reason: self.reason, at }))
            }
            (state, live, stopping, ended_at, _) => Err(format!(
                "its state is {state}, but it has {} live attempt, {}, and {}",
                if live.is_some() { "a" } else { "no" },
                stopping.map_or_else(
                    || "no stop was requested".to_owned(),
                    |why| format!("a stop was requested because {}", why.clause())
                ),
                if ended_at.is_some() { "a time of its end" } else { "no time of its end" },
            )),
        }
    }
}

fn ended_attempt(stored: Attempt) -> Result<EndedAttempt, String> {
    let (number, stop_requested) = (stored.number, stored.stopping);
    let at = stored
        .ended_at
        .ok_or_else(|| format!("attempt {number} has not ended, although a later one exists"))?;
    Ok(EndedAttempt { attempt: stored.into(), stop_requested, at })
}

impl From<Attempt> for job::Attempt {
    fn from(stored: Attempt) -> job::Attempt {
        job::Attempt {
            number: stored.number,
            placement: stored.placement,
            rendezvous: stored.meeting_point,
            started_at: stored.started_at,
            expected_runtime: stored.expected,
            predicted_slowdown: stored.slowdown,
            stop_reported: stored.stopped,
            ranks: stored.ranks.into_iter().map(Into::into).collect(),
            first_failure: stored.first_failure,
            progress: stored.progress,
        }
    }
}

impl From<Rank> for job::Rank {
    fn from(stored: Rank) -> job::Rank {
        job::Rank {
            node: stored.node,
            node_name: stored.node_name,
            devices: stored.devices,
            phase: match stored.phase {
                RankPhase::Ordered => job::RankPhase::Ordered,
                RankPhase::Running => job::RankPhase::Running,
                RankPhase::Ended(outcome) => job::RankPhase::Ended(outcome),
            },
            enforcement: stored.enforcement,
            host_limits: stored.host_limits,
            private_uid: stored.private_uid,
        }
    }
}

impl From<job::Job> for Job {
    fn from(job: job::Job) -> Job {
        let (state, reason) = (job.state(), job.reason_code());
        let attempts = job
            .attempts()
            .map(|it| Attempt::new(it.attempt.clone(), it.stop_requested, it.ended_at))
            .collect();
        let waiting = job.waiting().cloned().unwrap_or(WaitingJob::since(Time::EPOCH));
        Job {
            state,
            reason,
            waits_for: waiting.waits_for,
            not_before: waiting.not_before,
            eligible_at: waiting.eligible_at,
            attempts,
            failures: job.own_failures,
            node_failures: job.node_failures,
            alone_from: job.exclusive_from_attempt,
            exit_code: job.last_exit.and_then(JobExit::code),
            signal: job.last_exit.and_then(JobExit::signal),
            ended_at: job.ended().map(|end| end.at),
            story: job.events,
        }
    }
}

impl Attempt {
    fn new(attempt: job::Attempt, stopping: Option<StopReason>, ended_at: Option<Time>) -> Attempt {
        Attempt {
            number: attempt.number,
            placement: attempt.placement,
            meeting_point: attempt.rendezvous,
            started_at: attempt.started_at,
            expected: attempt.expected_runtime,
            slowdown: attempt.predicted_slowdown,
            ended_at,
            stopping,
            stopped: attempt.stop_reported,
            ranks: attempt.ranks.into_iter().map(Into::into).collect(),
            first_failure: attempt.first_failure,
            progress: attempt.progress,
        }
    }
}

impl From<job::Rank> for Rank {
    fn from(rank: job::Rank) -> Rank {
        Rank {
            node: rank.node,
            node_name: rank.node_name,
            devices: rank.devices,
            phase: match rank.phase {
                job::RankPhase::Ordered => RankPhase::Ordered,
                job::RankPhase::Running => RankPhase::Running,
                job::RankPhase::Ended(outcome) => RankPhase::Ended(outcome),
            },
            enforcement: rank.enforcement,
            host_limits: rank.host_limits,
            private_uid: rank.private_uid,
        }
    }
}

/// The jobs, each with its id in the error if its fields contradict each other.
fn jobs(stored: BTreeMap<JobId, Option<Job>>) -> Result<Vec<(JobId, Option<Arc<job::Job>>)>, String> {
    let convert = |(id, job): (JobId, Option<Job>)| {
        let job = job.map(job::Job::try_from).transpose().map_err(|why| format!("job {id}: {why}"))?;
        Ok((id, job.map(Arc::new)))
    };
    stored.into_iter().map(convert).collect()
}

fn submissions(stored: BTreeMap<u64, Submission>) -> Result<Vec<(u64, Arc<submission::Submission>)>, String> {
    let convert = |(number, stored): (u64, Submission)| {
        let worst = |(member, state): (JobId, JobState)| {
            let state = TerminalState::of(state);
            let not_ended =
                || format!("submission {number}: member {member} represents it, but has not ended");
            Ok::<_, String>((member, state.ok_or_else(not_ended)?))
        };
        let submission = submission::Submission {
            spec: Arc::new(stored.spec),
            user: stored.user,
            account: stored.account,
            role: stored.role,
            submitted_at: stored.submitted_at,
            estimate: stored.estimate,
            idempotency_key: stored.idempotency_key,
            state_counts: stored.states,
            first_started_at: stored.started_at,
            worst_member: stored.speaker.map(worst).transpose()?,
        };
        Ok((number, Arc::new(submission)))
    };
    stored.into_iter().map(convert).collect::<Result<_, String>>()
}

impl TryFrom<SnapshotPart> for snapshot_parts::SnapshotPart {
    type Error = String;

    fn try_from(stored: SnapshotPart) -> Result<snapshot_parts::SnapshotPart, String> {
        Ok(snapshot_parts::SnapshotPart {
            submissions: submissions(stored.submissions)?,
            jobs: jobs(stored.jobs)?,
            eligible: stored.eligible.into_iter().collect(),
        })
    }
}

impl TryFrom<Head> for snapshot_parts::StoredSnapshot {
    type Error = String;

    fn try_from(stored: Head) -> Result<snapshot_parts::StoredSnapshot, String> {
        let (submissions, jobs, eligible) = (stored.submissions, stored.jobs, stored.eligible);
        let part = SnapshotPart { submissions, jobs, eligible };
        let rest = HeadSnapshot {
            config: stored.config,
            last_number: stored.last_number,
            last_request: stored.last_ticket,
            open_plan_request: stored.open_ticket,
            replan_needed: stored.plan_wanted,
            interference_aware: stored.learns,
            reconsider_colocations: stored.reconsiders,
            started_at: stored.started_at,
            next_plan_at: stored.wake,
            dependents: stored.dependents,
            nodes: stored.nodes.into_iter().map(|(id, node)| (id, node.into())).collect(),
            nodes_joined: stored.nodes_joined,
            alarms: stored.alarms.into_iter().map(|(at, alarm)| (at, alarm.into())).collect(),
        };
        let jobs = (!part.jobs.is_empty()).then(|| part.try_into()).transpose()?;
        Ok(snapshot_parts::StoredSnapshot { rest, jobs })
    }
}

impl TryFrom<Head> for head::Head {
    type Error = String;

    fn try_from(stored: Head) -> Result<head::Head, String> {
        let snapshot = snapshot_parts::StoredSnapshot::try_from(stored)?;
        let head = head::Head::from_snapshot(snapshot.rest, snapshot.jobs.into_iter().collect());
        head.map_err(|error: MissingFirstJob| error.to_string())
    }
}

impl From<Alarm> for alarm::Alarm {
    fn from(stored: Alarm) -> alarm::Alarm {
        match stored {
            Alarm::Node(node) => alarm::Alarm::NodeLost(node),
            Alarm::Job(job) => alarm::Alarm::JobEligible(job),
            Alarm::Pause(node) => alarm::Alarm::NodeRetry(node),
        }
    }
}

impl From<Node> for node::Node {
    fn from(stored: Node) -> node::Node {
        node::Node {
            name: stored.name,
            ordinal: stored.ordinal,
            address: stored.address,
            build: stored.build,
            cpus: stored.cpus,
            memory: stored.memory,
            links: stored.links,
            sharing: stored.sharing,
            isolation: stored.isolation,
            rendezvous_ports: stored.rendezvous_ports,
            occupied_ports: stored.taken_ports,
            orphan_grace: stored.orphan_grace,
            link: match stored.link {
                LinkState::Up(key) => node::LinkState::Up(key),
                LinkState::Broken(key) => node::LinkState::Unreachable(key),
                LinkState::Lost(key) => node::LinkState::Lost(key),
            },
            schedulability: match stored.intake {
                Intake::Open => node::Schedulability::Open,
                Intake::Closed => node::Schedulability::Drained,
            },
            problem: stored.trouble.map(|trouble| node::NodeProblem {
                message: trouble.what,
                count: trouble.times,
                paused_until: trouble.paused_until,
            }),
            link_changed_at: stored.since,
            cpus_used: stored.cpus_used,
            memory_used: stored.memory_used,
            devices: stored.devices.into_iter().map(Into::into).collect(),
            jobs: stored.jobs,
        }
    }
}

impl From<DeviceUse> for node::DeviceUse {
    fn from(stored: DeviceUse) -> node::DeviceUse {
        node::DeviceUse {
            device: stored.device,
            used: stored.used,
            memory_used: stored.memory_used,
            jobs: stored.residents,
        }
    }
}

impl From<head::Head> for Head {
    fn from(head: head::Head) -> Head {
        let (rest, mut parts) = head.split_for_snapshot(usize::MAX);
        let part = parts.next().map(SnapshotPart::from);
        let (submissions, jobs, eligible) =
            part.map(|part| (part.submissions, part.jobs, part.eligible)).unwrap_or_default();
        let (unended, ended, keys) = (head.active, head.ended, head.idempotency_keys);
        Head { submissions, jobs, eligible, unended, ended, keys, ..rest.into() }
    }
}

impl From<HeadSnapshot> for Head {
    fn from(rest: HeadSnapshot) -> Head {
        Head {
            config: rest.config,
            last_number: rest.last_number,
            last_ticket: rest.last_request,
            open_ticket: rest.open_plan_request,
            plan_wanted: rest.replan_needed,
            learns: rest.interference_aware,
            reconsiders: rest.reconsider_colocations,
            started_at: rest.started_at,
            wake: rest.next_plan_at,
            submissions: BTreeMap::new(),
            jobs: BTreeMap::new(),
            eligible: BTreeSet::new(),
            unended: BTreeSet::new(),
            ended: BTreeSet::new(),
            dependents: rest.dependents,
            keys: BTreeMap::new(),
            nodes: rest.nodes.into_iter().map(|(id, node)| (id, node.into())).collect(),
            nodes_joined: rest.nodes_joined,
            alarms: rest.alarms.into_iter().map(|(at, alarm)| (at, alarm.into())).collect(),
        }
    }
}

impl From<snapshot_parts::SnapshotPart> for SnapshotPart {
    fn from(part: snapshot_parts::SnapshotPart) -> SnapshotPart {
        let submissions = part.submissions.into_iter();
        let jobs = part.jobs.into_iter();
        SnapshotPart {
            submissions: submissions.map(|(number, it)| (number, Arc::unwrap_or_clone(it).into())).collect(),
            jobs: jobs.map(|(id, job)| (id, job.map(|job| Arc::unwrap_or_clone(job).into()))).collect(),
            eligible: part.eligible.into_iter().collect(),
        }
    }
}

impl From<submission::Submission> for Submission {
    fn from(submission: submission::Submission) -> Submission {
        Submission {
            spec: Arc::unwrap_or_clone(submission.spec),
            user: submission.user,
            account: submission.account,
            role: submission.role,
            submitted_at: submission.submitted_at,
            estimate: submission.estimate,
            idempotency_key: submission.idempotency_key,
            states: submission.state_counts,
            started_at: submission.first_started_at,
            speaker: submission.worst_member.map(|(member, state)| (member, state.job_state())),
        }
    }
}

impl From<alarm::Alarm> for Alarm {
    fn from(alarm: alarm::Alarm) -> Alarm {
        match alarm {
            alarm::Alarm::NodeLost(node) => Alarm::Node(node),
            alarm::Alarm::JobEligible(job) => Alarm::Job(job),
            alarm::Alarm::NodeRetry(node) => Alarm::Pause(node),
        }
    }
}

impl From<node::Node> for Node {
    fn from(node: node::Node) -> Node {
        let device = |device: node::DeviceUse| DeviceUse {
            device: device.device,
            used: device.used,
            memory_used: device.memory_used,
            residents: device.jobs,
        };
        Node {
            name: node.name,
            ordinal: node.ordinal,
            address: node.address,
            build: node.build,
            cpus: node.cpus,
            memory: node.memory,
            links: node.links,
            sharing: node.sharing,
            isolation: node.isolation,
            rendezvous_ports: node.rendezvous_ports,
            taken_ports: node.occupied_ports,
            orphan_grace: node.orphan_grace,
            link: match node.link {
                node::LinkState::Up(key) => LinkState::Up(key),
                node::LinkState::Unreachable(key) => LinkState::Broken(key),
                node::LinkState::Lost(key) => LinkState::Lost(key),
            },
            intake: match node.schedulability {
                node::Schedulability::Open => Intake::Open,
                node::Schedulability::Drained => Intake::Closed,
            },
            trouble: node.problem.map(|problem| Trouble {
                what: problem.message,
                times: problem.count,
                paused_until: problem.paused_until,
            }),
            since: node.link_changed_at,
            cpus_used: node.cpus_used,
            memory_used: node.memory_used,
            devices: node.devices.into_iter().map(device).collect(),
            jobs: node.jobs,
        }
    }
}
