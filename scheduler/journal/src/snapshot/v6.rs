//! Snapshots of format 6, the newest: a job is stored in the phase that it is in.
//!
//! These are shapes of the core's own types (see [`shape`](crate::shape)), so a snapshot is written without a
//! copy of the jobs. A job that is the same as the one before it is stored as `null`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_policy::AttainedTime;
use cohabit_scheduler_core::{self as core, Config, state};
use cohabit_types::{
    AttemptId, Bytes, Device, DeviceId, Enforcement, Estimate, HostShare, Isolation, JobEvent, JobId,
    JobSpec, JobState, LinkBandwidths, NodeDrain, NodeId, Outcome, Placement, PlanRequestId, Progress,
    ReasonCode, Role, Share, SharingLimits, Signal, Slowdown, Span, StopReason, Time, WorkerKey,
};
use serde::{Deserialize, Serialize};
use serde_with::{As, Map, Same};

use crate::shape::shape_of;
use crate::stored::{
    StoredConfig, StoredDevice, StoredEnforcement, StoredEstimate, StoredHostShare, StoredIsolation,
    StoredJobEvent, StoredJobSpec, StoredJobState, StoredLinkBandwidths, StoredOutcome, StoredPlacement,
    StoredProgress, StoredReasonCode, StoredReservationBook, StoredRole, StoredShareBook,
    StoredSharingLimits, StoredStopReason, StoredWorkerKey, were_never_made,
};

#[derive(Serialize, Deserialize)]
#[serde(remote = "core::HeadSnapshot")]
pub(crate) struct HeadV6 {
    #[serde(with = "As::<StoredConfig>")]
    config: Config,
    last_number: u64,
    #[serde(with = "As::<Option<RestoredBackupV6>>", default, skip_serializing_if = "Option::is_none")]
    restored_backup: Option<state::RestoredBackup>,
    last_request: u64,
    open_plan_request: Option<PlanRequestId>,
    replan_needed: bool,
    interference_aware: bool,
    reconsider_colocations: bool,
    started_at: Time,
    next_plan_at: Option<Time>,
    dependents: BTreeMap<JobId, Vec<u64>>,
    #[serde(with = "As::<BTreeMap<Same, NodeV6>>")]
    nodes: BTreeMap<NodeId, state::Node>,
    #[serde(with = "As::<Option<StoredShareBook>>", default, skip_serializing_if = "Option::is_none")]
    shares: Option<state::ShareBook>,
    #[serde(with = "As::<StoredReservationBook>", default, skip_serializing_if = "were_never_made")]
    reservations: state::ReservationBook,
    nodes_joined: u64,
    #[serde(with = "As::<BTreeSet<(Same, AlarmV6)>>")]
    alarms: BTreeSet<(Time, state::Alarm)>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::RestoredBackup")]
pub(crate) struct RestoredBackupV6 {
    at: Time,
    attempt_gap: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "core::SnapshotPart")]
pub(crate) struct SnapshotPartV6 {
    #[serde(with = "As::<Map<Same, Arc<SubmissionV6>>>")]
    submissions: Vec<(u64, Arc<state::SubmissionState>)>,
    #[serde(with = "As::<Map<Same, Option<Arc<JobV6>>>>")]
    jobs: Vec<(JobId, Option<Arc<state::Job>>)>,
    eligible: Vec<JobId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "As::<Map<Same, Arc<ArchivedSubmissionV6>>>")]
    archived: Vec<(u64, Arc<state::ArchivedSubmission>)>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::ArchivedSubmission")]
pub(crate) struct ArchivedSubmissionV6 {
    user: String,
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
    work: u64,
    ended_at: Time,
    #[serde(with = "As::<TerminalStateV6>")]
    state: state::TerminalState,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(with = "As::<Vec<EndedMembersV6>>")]
    members: Vec<state::EndedMembers>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::EndedMembers")]
pub(crate) struct EndedMembersV6 {
    first: u32,
    last: u32,
    #[serde(with = "As::<TerminalStateV6>")]
    state: state::TerminalState,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::SubmissionState")]
pub(crate) struct SubmissionV6 {
    #[serde(with = "As::<Arc<StoredJobSpec>>")]
    spec: Arc<JobSpec>,
    user: String,
    account: Option<String>,
    #[serde(with = "As::<StoredRole>")]
    role: Role,
    submitted_at: Time,
    #[serde(with = "As::<Option<StoredEstimate>>")]
    estimate: Option<Estimate>,
    idempotency_key: Option<String>,
    #[serde(with = "As::<BTreeMap<StoredJobState, Same>>")]
    state_counts: BTreeMap<JobState, u64>,
    first_started_at: Option<Time>,
    #[serde(with = "As::<Option<(Same, TerminalStateV6)>>")]
    worst_member: Option<(JobId, state::TerminalState)>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::Job")]
pub(crate) struct JobV6 {
    #[serde(with = "As::<JobStatusV6>")]
    status: state::JobStatus,
    #[serde(with = "As::<Vec<EndedAttemptV6>>")]
    ended_attempts: Vec<state::EndedAttempt>,
    #[serde(with = "As::<AttainedTimeV6>")]
    attained_before: AttainedTime,
    #[serde(with = "As::<Option<JobExitV6>>")]
    last_exit: Option<state::JobExit>,
    own_failures: u32,
    node_failures: u32,
    exclusive_from_attempt: Option<u32>,
    #[serde(with = "As::<Vec<StoredJobEvent>>")]
    events: Vec<JobEvent>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "AttainedTime")]
pub(crate) struct AttainedTimeV6 {
    held: Span,
    worked: Span,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::JobStatus", rename_all = "snake_case")]
pub(crate) enum JobStatusV6 {
    Waiting(#[serde(with = "As::<WaitingJobV6>")] state::WaitingJob),
    Running(#[serde(with = "As::<Box<AttemptV6>>")] Box<state::Attempt>),
    Stopping(
        #[serde(with = "As::<Box<AttemptV6>>")] Box<state::Attempt>,
        #[serde(with = "As::<StoredStopReason>")] StopReason,
    ),
    Ended(#[serde(with = "As::<EndedJobV6>")] state::EndedJob),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::WaitingJob")]
pub(crate) struct WaitingJobV6 {
    held: bool,
    has_dependencies: bool,
    not_before: Option<Time>,
    eligible_at: Time,
    #[serde(with = "As::<Option<Box<PrefetchedV6>>>", default, skip_serializing_if = "Option::is_none")]
    prefetched: Option<Box<state::PrefetchedAttempt>>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::PrefetchedAttempt")]
pub(crate) struct PrefetchedV6 {
    #[serde(with = "As::<AttemptV6>")]
    attempt: state::Attempt,
    after: AttemptId,
    #[serde(with = "As::<Option<StoredStopReason>>")]
    cancelled: Option<StopReason>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::EndedJob")]
pub(crate) struct EndedJobV6 {
    #[serde(with = "As::<TerminalStateV6>")]
    state: state::TerminalState,
    #[serde(with = "As::<StoredReasonCode>")]
    reason: ReasonCode,
    at: Time,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::TerminalState", rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum TerminalStateV6 {
    Completed,
    Failed,
    Cancelled,
    Timeout,
    NodeFail,
    OutOfMemory,
    Preempted,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::JobExit", rename_all = "snake_case")]
pub(crate) enum JobExitV6 {
    Code(i32),
    Signal(Signal),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::EndedAttempt")]
pub(crate) struct EndedAttemptV6 {
    #[serde(with = "As::<AttemptV6>")]
    attempt: state::Attempt,
    #[serde(with = "As::<Option<StoredStopReason>>")]
    stop_requested: Option<StopReason>,
    at: Time,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::Attempt")]
pub(crate) struct AttemptV6 {
    number: u32,
    #[serde(with = "As::<StoredPlacement>")]
    placement: Placement,
    rendezvous: Option<(NodeId, u16)>,
    #[serde(default, skip_serializing_if = "is_nothing")]
    holds: u64,
    started_at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ordered_at: Option<Time>,
    expected_runtime: Option<Span>,
    predicted_slowdown: Option<Slowdown>,
    #[serde(with = "As::<Option<StoredStopReason>>")]
    stop_reported: Option<StopReason>,
    #[serde(with = "As::<Vec<RankV6>>")]
    ranks: Vec<state::Rank>,
    first_failure: Option<u32>,
    #[serde(with = "As::<Option<StoredProgress>>")]
    progress: Option<Progress>,
    #[serde(default)]
    allotted_at: Option<Time>,
    #[serde(with = "As::<Option<OrderedAllotmentV6>>", default)]
    ordered_allotment: Option<state::OrderedAllotment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idle_since: Option<Time>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::OrderedAllotment")]
pub(crate) struct OrderedAllotmentV6 {
    #[serde(with = "As::<StoredHostShare>")]
    from: HostShare,
    #[serde(with = "As::<StoredHostShare>")]
    to: HostShare,
    why: String,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::Rank")]
pub(crate) struct RankV6 {
    node: NodeId,
    node_name: String,
    devices: Vec<DeviceId>,
    #[serde(with = "As::<RankPhaseV6>")]
    phase: state::RankPhase,
    #[serde(with = "As::<Option<StoredEnforcement>>")]
    enforcement: Option<Enforcement>,
    #[serde(with = "As::<Option<StoredEnforcement>>")]
    host_limits: Option<Enforcement>,
    private_uid: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::RankPhase", rename_all = "snake_case")]
pub(crate) enum RankPhaseV6 {
    Ordered,
    Running,
    Ended(#[serde(with = "As::<StoredOutcome>")] Outcome),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::Node")]
pub(crate) struct NodeV6 {
    name: String,
    ordinal: u64,
    address: String,
    build: String,
    cpus: u32,
    memory: Bytes,
    #[serde(with = "As::<StoredLinkBandwidths>")]
    links: LinkBandwidths,
    #[serde(with = "As::<StoredSharingLimits>")]
    sharing: SharingLimits,
    max_jobs: Option<u32>,
    #[serde(with = "As::<StoredIsolation>")]
    isolation: Isolation,
    fetches_code: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    prefetches: bool,
    application_ports: bool,
    #[serde(default)]
    changes_host_shares: bool,
    rendezvous_ports: Vec<u16>,
    occupied_ports: BTreeSet<u16>,
    orphan_grace: Span,
    #[serde(with = "As::<LinkStateV6>")]
    link: state::NodeLink,
    #[serde(with = "As::<SchedulabilityV6>")]
    schedulability: state::Schedulability,
    #[serde(with = "As::<Option<NodeDrainV6>>", default, skip_serializing_if = "Option::is_none")]
    drain: Option<NodeDrain>,
    #[serde(with = "As::<Option<NodeProblemV6>>")]
    problem: Option<state::NodeProblem>,
    link_changed_at: Time,
    cpus_used: u32,
    memory_used: Bytes,
    #[serde(with = "As::<Vec<DeviceUseV6>>")]
    devices: Vec<state::DeviceUse>,
    jobs: BTreeSet<JobId>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::NodeLink", rename_all = "snake_case")]
pub(crate) enum LinkStateV6 {
    Up(#[serde(with = "As::<StoredWorkerKey>")] WorkerKey),
    Unreachable(#[serde(with = "As::<StoredWorkerKey>")] WorkerKey),
    Lost(#[serde(with = "As::<StoredWorkerKey>")] WorkerKey),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::Schedulability", rename_all = "snake_case")]
pub(crate) enum SchedulabilityV6 {
    Open,
    Drained,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "NodeDrain")]
pub(crate) struct NodeDrainV6 {
    by: String,
    at: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reservation: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::NodeProblem")]
pub(crate) struct NodeProblemV6 {
    message: String,
    count: u32,
    paused_until: Option<Time>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::DeviceUse")]
pub(crate) struct DeviceUseV6 {
    #[serde(with = "As::<StoredDevice>")]
    device: Device,
    used: Share,
    memory_used: Bytes,
    jobs: BTreeSet<JobId>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "state::Alarm", rename_all = "snake_case")]
pub(crate) enum AlarmV6 {
    NodeLost(NodeId),
    JobEligible(JobId),
    NodeRetry(NodeId),
    DrainDeadline(NodeId),
    JobClosing(JobId),
    JobIdle(JobId),
    Reservation(u64),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
const fn is_nothing(amount: &u64) -> bool {
    *amount == 0
}

shape_of! {
    HeadV6 => core::HeadSnapshot,
    RestoredBackupV6 => state::RestoredBackup,
    SnapshotPartV6 => core::SnapshotPart,
    ArchivedSubmissionV6 => state::ArchivedSubmission,
    EndedMembersV6 => state::EndedMembers,
    SubmissionV6 => state::SubmissionState,
    JobV6 => state::Job,
    JobStatusV6 => state::JobStatus,
    WaitingJobV6 => state::WaitingJob,
    PrefetchedV6 => state::PrefetchedAttempt,
    EndedJobV6 => state::EndedJob,
    TerminalStateV6 => state::TerminalState,
    JobExitV6 => state::JobExit,
    AttainedTimeV6 => AttainedTime,
    EndedAttemptV6 => state::EndedAttempt,
    AttemptV6 => state::Attempt,
    OrderedAllotmentV6 => state::OrderedAllotment,
    RankV6 => state::Rank,
    RankPhaseV6 => state::RankPhase,
    NodeV6 => state::Node,
    LinkStateV6 => state::NodeLink,
    SchedulabilityV6 => state::Schedulability,
    NodeDrainV6 => NodeDrain,
    NodeProblemV6 => state::NodeProblem,
    DeviceUseV6 => state::DeviceUse,
    AlarmV6 => state::Alarm,
}
