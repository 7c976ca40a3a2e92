//! Snapshots of formats 1 to 5. Only read: [`v6`](super::v6) is what the head writes.
//!
//! A job is one struct of optional fields here, whatever its phase. Where they contradict each other, the
//! conversion fails and names the job.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_policy::AttainedTime;
use cohabit_scheduler_core::{self as core, Config, HeadSnapshot, state};
use cohabit_types::{
    Bytes, Device, DeviceId, Enforcement, Estimate, Isolation, JobEvent, JobId, JobSpec, JobState,
    LinkBandwidths, NodeId, Outcome, Placement, PlanRequestId, Progress, ReasonCode, Role, Share,
    SharingLimits, Signal, Slowdown, Span, StopReason, Time, WorkerKey,
};
use serde::Deserialize;
use serde_with::{As, Same};
use state::{EndedAttempt, EndedJob, JobExit, JobStatus, TerminalState, WaitingJob};

use super::decoded::DecodedHead;
use crate::stored::{
    StoredConfig, StoredDevice, StoredEnforcement, StoredEstimate, StoredIsolation, StoredJobEvent,
    StoredJobSpec, StoredJobState, StoredLinkBandwidths, StoredOutcome, StoredPlacement, StoredProgress,
    StoredReasonCode, StoredRole, StoredSharingLimits, StoredStopReason, StoredWorkerKey,
};

/// A head: with all its jobs in formats 1 to 4, without any in format 5. What follows from the jobs is not
/// read.
#[derive(Deserialize)]
pub(crate) struct HeadV5 {
    #[serde(with = "As::<StoredConfig>")]
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
    submissions: BTreeMap<u64, SubmissionV5>,
    jobs: BTreeMap<JobId, Option<JobV5>>,
    eligible: BTreeSet<JobId>,
    dependents: BTreeMap<JobId, BTreeSet<JobId>>,
    nodes: BTreeMap<NodeId, NodeV5>,
    nodes_joined: u64,
    alarms: BTreeSet<(Time, AlarmV5)>,
}

/// Some of the jobs of a head in format 5.
#[derive(Deserialize)]
pub(crate) struct SnapshotPartV5 {
    submissions: BTreeMap<u64, SubmissionV5>,
    jobs: BTreeMap<JobId, Option<JobV5>>,
    eligible: BTreeSet<JobId>,
}

#[derive(Deserialize)]
struct SubmissionV5 {
    #[serde(with = "As::<StoredJobSpec>")]
    spec: JobSpec,
    user: String,
    #[serde(default)]
    account: Option<String>,
    #[serde(with = "As::<StoredRole>", default = "role_of_earlier_versions")]
    role: Role,
    submitted_at: Time,
    #[serde(with = "As::<Option<StoredEstimate>>", default)]
    estimate: Option<Estimate>,
    idempotency_key: Option<String>,
    #[serde(with = "As::<BTreeMap<StoredJobState, Same>>")]
    states: BTreeMap<JobState, u64>,
    started_at: Option<Time>,
    #[serde(with = "As::<Option<(Same, StoredJobState)>>", default)]
    speaker: Option<(JobId, JobState)>,
}

/// Submissions from before roles were kept run with the rights of the worker, as their users were promised.
const fn role_of_earlier_versions() -> Role {
    Role::Admin
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
enum AlarmV5 {
    Node(NodeId),
    Job(JobId),
    Pause(NodeId),
}

#[derive(Deserialize)]
struct NodeV5 {
    name: String,
    ordinal: u64,
    address: String,
    build: String,
    cpus: u32,
    memory: Bytes,
    #[serde(with = "As::<StoredLinkBandwidths>", default)]
    links: LinkBandwidths,
    #[serde(with = "As::<StoredSharingLimits>", default)]
    sharing: SharingLimits,
    #[serde(with = "As::<StoredIsolation>", default)]
    isolation: Isolation,
    #[serde(default)]
    rendezvous_ports: Vec<u16>,
    #[serde(default)]
    taken_ports: BTreeSet<u16>,
    orphan_grace: Span,
    link: LinkStateV5,
    intake: IntakeV5,
    #[serde(default)]
    trouble: Option<TroubleV5>,
    since: Time,
    cpus_used: u32,
    memory_used: Bytes,
    devices: Vec<DeviceUseV5>,
    jobs: BTreeSet<JobId>,
}

#[derive(Deserialize)]
enum LinkStateV5 {
    Up(#[serde(with = "As::<StoredWorkerKey>")] WorkerKey),
    Broken(#[serde(with = "As::<StoredWorkerKey>")] WorkerKey),
    Lost(#[serde(with = "As::<StoredWorkerKey>")] WorkerKey),
}

#[derive(Deserialize)]
enum IntakeV5 {
    Open,
    Closed,
}

#[derive(Deserialize)]
struct DeviceUseV5 {
    #[serde(with = "As::<StoredDevice>")]
    device: Device,
    used: Share,
    memory_used: Bytes,
    residents: BTreeSet<JobId>,
}

#[derive(Deserialize)]
struct TroubleV5 {
    what: String,
    times: u32,
    paused_until: Option<Time>,
}

#[derive(Deserialize)]
pub(crate) struct JobV5 {
    #[serde(with = "As::<StoredJobState>")]
    state: JobState,
    #[serde(with = "As::<StoredReasonCode>")]
    reason: ReasonCode,
    waits_for: BTreeSet<JobId>,
    not_before: Option<Time>,
    eligible_at: Time,
    attempts: Vec<AttemptV5>,
    failures: u32,
    node_failures: u32,
    #[serde(default)]
    alone_from: Option<u32>,
    exit_code: Option<i32>,
    signal: Option<Signal>,
    ended_at: Option<Time>,
    #[serde(with = "As::<Vec<StoredJobEvent>>")]
    story: Vec<JobEvent>,
}

#[derive(Deserialize)]
pub(crate) struct AttemptV5 {
    number: u32,
    #[serde(with = "As::<StoredPlacement>")]
    placement: Placement,
    #[serde(default)]
    meeting_point: Option<(NodeId, u16)>,
    started_at: Time,
    #[serde(default)]
    expected: Option<Span>,
    #[serde(default)]
    slowdown: Option<Slowdown>,
    ended_at: Option<Time>,
    #[serde(with = "As::<Option<StoredStopReason>>", default)]
    stopping: Option<StopReason>,
    #[serde(with = "As::<Option<StoredStopReason>>", default)]
    stopped: Option<StopReason>,
    ranks: Vec<RankV5>,
    first_failure: Option<u32>,
    #[serde(with = "As::<Option<StoredProgress>>", default)]
    progress: Option<Progress>,
}

#[derive(Deserialize)]
struct RankV5 {
    node: NodeId,
    node_name: String,
    devices: Vec<DeviceId>,
    phase: RankPhaseV5,
    #[serde(with = "As::<Option<StoredEnforcement>>", default)]
    enforcement: Option<Enforcement>,
    #[serde(with = "As::<Option<StoredEnforcement>>", default)]
    host_limits: Option<Enforcement>,
    #[serde(default)]
    private_uid: Option<u32>,
}

#[derive(Deserialize)]
enum RankPhaseV5 {
    Ordered,
    Running,
    Ended(#[serde(with = "As::<StoredOutcome>")] Outcome),
}

impl TryFrom<JobV5> for state::Job {
    type Error = String;

    fn try_from(mut stored: JobV5) -> Result<state::Job, String> {
        let last_exit = match (stored.exit_code, stored.signal) {
            (Some(_), Some(_)) => return Err("it has an exit code and a signal".to_owned()),
            (Some(code), None) => Some(JobExit::Code(code)),
            (None, signal) => signal.map(JobExit::Signal),
        };
        let live = stored.attempts.pop_if(|attempt| attempt.ended_at.is_none());
        Ok(state::Job {
            status: stored.status(live)?,
            ended_attempts: stored.attempts.into_iter().map(ended_attempt).collect::<Result<_, _>>()?,
            attained_before: AttainedTime::default(),
            last_exit,
            own_failures: stored.failures,
            node_failures: stored.node_failures,
            exclusive_from_attempt: stored.alone_from,
            events: stored.story,
        })
    }
}

impl JobV5 {
    /// The phase that the fields agree on.
    fn status(&mut self, live: Option<AttemptV5>) -> Result<JobStatus, String> {
        let stopping = live.as_ref().and_then(|attempt| attempt.stopping);
        let live = live.map(|attempt| Box::new(state::Attempt::from(attempt)));
        match (self.state, live, stopping, self.ended_at, TerminalState::of(self.state)) {
            (JobState::Pending | JobState::Held, None, _, None, _) => Ok(JobStatus::Waiting(WaitingJob {
                held: self.state == JobState::Held,
                has_dependencies: !self.waits_for.is_empty(),
                not_before: self.not_before,
                eligible_at: self.eligible_at,
                prefetched: None,
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

fn ended_attempt(stored: AttemptV5) -> Result<EndedAttempt, String> {
    let (number, stop_requested) = (stored.number, stored.stopping);
    let at = stored
        .ended_at
        .ok_or_else(|| format!("attempt {number} has not ended, although a later one exists"))?;
    Ok(EndedAttempt { attempt: stored.into(), stop_requested, at })
}

impl From<AttemptV5> for state::Attempt {
    fn from(stored: AttemptV5) -> state::Attempt {
        state::Attempt {
            number: stored.number,
            placement: stored.placement,
            holds: 0,
            rendezvous: stored.meeting_point,
            started_at: stored.started_at,
            ordered_at: None,
            expected_runtime: stored.expected,
            predicted_slowdown: stored.slowdown,
            stop_reported: stored.stopped,
            ranks: stored.ranks.into_iter().map(Into::into).collect(),
            first_failure: stored.first_failure,
            progress: stored.progress,
            allotted_at: None,
            idle_since: None,
            ordered_allotment: None,
        }
    }
}

impl From<RankV5> for state::Rank {
    fn from(stored: RankV5) -> state::Rank {
        state::Rank {
            node: stored.node,
            node_name: stored.node_name,
            devices: stored.devices,
            phase: match stored.phase {
                RankPhaseV5::Ordered => state::RankPhase::Ordered,
                RankPhaseV5::Running => state::RankPhase::Running,
                RankPhaseV5::Ended(outcome) => state::RankPhase::Ended(outcome),
            },
            enforcement: stored.enforcement,
            host_limits: stored.host_limits,
            private_uid: stored.private_uid,
        }
    }
}

/// Jobs by id; `None` for a job that equals the one before it.
type JobRun = Vec<(JobId, Option<Arc<state::Job>>)>;

/// The jobs, each with its id in the error if its fields contradict each other.
fn jobs(stored: BTreeMap<JobId, Option<JobV5>>) -> Result<JobRun, String> {
    let convert = |(id, job): (JobId, Option<JobV5>)| {
        let job = job.map(state::Job::try_from).transpose().map_err(|why| format!("job {id}: {why}"))?;
        Ok((id, job.map(Arc::new)))
    };
    stored.into_iter().map(convert).collect()
}

fn submissions(
    stored: BTreeMap<u64, SubmissionV5>,
) -> Result<Vec<(u64, Arc<state::SubmissionState>)>, String> {
    let convert = |(number, stored): (u64, SubmissionV5)| {
        let worst = |(member, state): (JobId, JobState)| {
            let state = TerminalState::of(state);
            let not_ended =
                || format!("submission {number}: member {member} represents it, but has not ended");
            Ok::<_, String>((member, state.ok_or_else(not_ended)?))
        };
        let submission = state::SubmissionState {
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

impl TryFrom<SnapshotPartV5> for core::SnapshotPart {
    type Error = String;

    fn try_from(stored: SnapshotPartV5) -> Result<core::SnapshotPart, String> {
        Ok(core::SnapshotPart {
            submissions: submissions(stored.submissions)?,
            jobs: jobs(stored.jobs)?,
            eligible: stored.eligible.into_iter().collect(),
            archived: Vec::new(),
        })
    }
}

impl TryFrom<HeadV5> for DecodedHead {
    type Error = String;

    fn try_from(stored: HeadV5) -> Result<DecodedHead, String> {
        let (submissions, jobs, eligible) = (stored.submissions, stored.jobs, stored.eligible);
        let part = SnapshotPartV5 { submissions, jobs, eligible };
        let head = HeadSnapshot {
            config: stored.config,
            last_number: stored.last_number,
            restored_backup: None,
            last_request: stored.last_ticket,
            open_plan_request: stored.open_ticket,
            replan_needed: stored.plan_wanted,
            interference_aware: stored.learns,
            reconsider_colocations: stored.reconsiders,
            started_at: stored.started_at,
            next_plan_at: stored.wake,
            dependents: stored.dependents.into_iter().map(by_submission).collect(),
            nodes: stored.nodes.into_iter().map(|(id, node)| (id, node.into())).collect(),
            shares: None,
            reservations: state::ReservationBook::default(),
            nodes_joined: stored.nodes_joined,
            alarms: stored.alarms.into_iter().map(|(at, alarm)| (at, alarm.into())).collect(),
        };
        let jobs = (!part.jobs.is_empty()).then(|| part.try_into()).transpose()?;
        Ok(DecodedHead { head, jobs })
    }
}

/// Earlier formats listed the members of an array one by one.
fn by_submission((earlier, dependents): (JobId, BTreeSet<JobId>)) -> (JobId, Vec<u64>) {
    let mut numbers: Vec<u64> = dependents.into_iter().map(|job| job.number).collect();
    numbers.dedup();
    (earlier, numbers)
}

impl From<AlarmV5> for state::Alarm {
    fn from(stored: AlarmV5) -> state::Alarm {
        match stored {
            AlarmV5::Node(node) => state::Alarm::NodeLost(node),
            AlarmV5::Job(job) => state::Alarm::JobEligible(job),
            AlarmV5::Pause(node) => state::Alarm::NodeRetry(node),
        }
    }
}

impl From<NodeV5> for state::Node {
    fn from(stored: NodeV5) -> state::Node {
        state::Node {
            name: stored.name,
            ordinal: stored.ordinal,
            address: stored.address,
            build: stored.build,
            cpus: stored.cpus,
            memory: stored.memory,
            links: stored.links,
            sharing: stored.sharing,
            isolation: stored.isolation,
            fetches_code: false,
            prefetches: false,
            application_ports: false,
            changes_host_shares: false,
            max_jobs: None,
            rendezvous_ports: stored.rendezvous_ports,
            occupied_ports: stored.taken_ports,
            orphan_grace: stored.orphan_grace,
            link: match stored.link {
                LinkStateV5::Up(key) => state::NodeLink::Up(key),
                LinkStateV5::Broken(key) => state::NodeLink::Unreachable(key),
                LinkStateV5::Lost(key) => state::NodeLink::Lost(key),
            },
            schedulability: match stored.intake {
                IntakeV5::Open => state::Schedulability::Open,
                IntakeV5::Closed => state::Schedulability::Drained,
            },
            drain: None,
            problem: stored.trouble.map(|trouble| state::NodeProblem {
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

impl From<DeviceUseV5> for state::DeviceUse {
    fn from(stored: DeviceUseV5) -> state::DeviceUse {
        state::DeviceUse {
            device: stored.device,
            used: stored.used,
            memory_used: stored.memory_used,
            jobs: stored.residents,
        }
    }
}
