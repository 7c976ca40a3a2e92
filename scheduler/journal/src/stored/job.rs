//! What a user submits.

use std::collections::BTreeMap;

use cohabit_types::{self as types, Bytes, ContentHash, JobId, Share, Signal, Slowdown, Span, Time};
use serde::{Deserialize, Serialize};
use serde_with::As;

use super::{StoredHostShare, StoredModelDescription, StoredNotifyRequest, StoredSweep};
use crate::shape::shape_of;

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::JobSpec")]
pub(crate) struct StoredJobSpec {
    name: String,
    #[serde(rename = "work", with = "As::<StoredEntrypoint>")]
    entrypoint: types::Entrypoint,
    #[serde(with = "As::<StoredDemand>")]
    demand: types::Demand,
    #[serde(with = "As::<StoredLaunchMode>")]
    launch: types::LaunchMode,
    workdir: String,
    environment: BTreeMap<String, String>,
    #[serde(with = "As::<Option<StoredArray>>", default, skip_serializing_if = "Option::is_none")]
    array: Option<types::Array>,
    #[serde(with = "As::<Vec<StoredDependency>>")]
    depends_on: Vec<types::Dependency>,
    #[serde(skip_serializing_if = "Option::is_none")]
    begin: Option<Time>,
    priority: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_limit: Option<Span>,
    #[serde(with = "As::<StoredRetryPolicy>")]
    retry: types::RetryPolicy,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    requeue_on_timeout: bool,
    #[serde(with = "As::<Option<StoredStallPolicy>>", default, skip_serializing_if = "Option::is_none")]
    stall: Option<types::StallPolicy>,
    #[serde(with = "As::<StoredStop>")]
    stop: types::Stop,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    #[serde(with = "As::<Option<StoredModelDescription>>", default, skip_serializing_if = "Option::is_none")]
    model: Option<types::ModelDescription>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
    held: bool,
    slurm_environment: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    preemptible: bool,
    #[serde(with = "As::<Option<StoredCodeSnapshot>>", default, skip_serializing_if = "Option::is_none")]
    code: Option<types::CodeSnapshot>,
    #[serde(with = "As::<StoredOutputFiles>", default, skip_serializing_if = "types::OutputFiles::is_empty")]
    output: types::OutputFiles,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    partition: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    entries: Vec<String>,
    #[serde(with = "As::<Vec<StoredNotifyRequest>>", default, skip_serializing_if = "Vec::is_empty")]
    notify: Vec<types::NotifyRequest>,
    #[serde(with = "As::<StoredJobInput>", default, skip_serializing_if = "is_empty_input")]
    input: types::JobInput,
    #[serde(with = "As::<StoredQos>", default, skip_serializing_if = "is_normal")]
    qos: types::Qos,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(with = "As::<Option<StoredSweep>>", default, skip_serializing_if = "Option::is_none")]
    sweep: Option<types::Sweep>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    interactive: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Qos", rename_all = "lowercase")]
pub(crate) enum StoredQos {
    Low,
    Normal,
    High,
}

fn is_normal(qos: &types::Qos) -> bool {
    *qos == types::Qos::Normal
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::JobInput", rename_all = "lowercase")]
pub(crate) enum StoredJobInput {
    Empty,
    Sent,
    Terminal(#[serde(with = "As::<StoredTerminalSize>")] types::TerminalSize),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::TerminalSize")]
pub(crate) struct StoredTerminalSize {
    rows: u16,
    columns: u16,
}

fn is_empty_input(input: &types::JobInput) -> bool {
    *input == types::JobInput::Empty
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::OutputFiles")]
pub(crate) struct StoredOutputFiles {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stdout: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stderr: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::CodeSnapshot")]
pub(crate) struct StoredCodeSnapshot {
    manifest: ContentHash,
    folder: String,
    files: u64,
    bytes: Bytes,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Entrypoint")]
pub(crate) enum StoredEntrypoint {
    Command(#[serde(with = "As::<StoredCommand>")] types::Command),
    Application(#[serde(with = "As::<StoredApplicationWork>")] types::ApplicationWork),
    Runner(#[serde(with = "As::<StoredRunnerWork>")] types::RunnerWork),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Command")]
pub(crate) struct StoredCommand {
    argv: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::ApplicationWork")]
pub(crate) struct StoredApplicationWork {
    program: String,
    arguments: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_gpus: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::RunnerWork")]
pub(crate) struct StoredRunnerWork {
    application: types::AttemptId,
    program: String,
    #[serde(with = "As::<StoredRunnerRole>")]
    role: types::RunnerRole,
    arguments: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    node: Option<String>,
    #[serde(skip_serializing_if = "is_one", default = "one")]
    ranks: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::RunnerRole", rename_all = "lowercase")]
pub(crate) enum StoredRunnerRole {
    Main,
    Actor,
    Tasks,
    Store,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Demand")]
pub(crate) struct StoredDemand {
    nodes: u32,
    #[serde(with = "As::<StoredGpuRequest>")]
    gpus: types::GpuRequest,
    gpu_memory: Option<Bytes>,
    cpus: u32,
    memory: Bytes,
    #[serde(with = "As::<Option<StoredHostShare>>", default, skip_serializing_if = "Option::is_none")]
    up_to: Option<types::HostShare>,
    #[serde(with = "As::<StoredSharing>")]
    sharing: types::Sharing,
    #[serde(with = "As::<StoredSpread>", default)]
    spread: types::Spread,
    #[serde(with = "As::<StoredEnforcementRequirement>", default)]
    limits: types::EnforcementRequirement,
    #[serde(with = "As::<StoredComputeLimit>", default)]
    compute: types::ComputeLimit,
    #[serde(default = "one")]
    gpu_processes: u32,
    #[serde(default)]
    max_slowdown: Option<Slowdown>,
    #[serde(skip)]
    account: Option<types::AccountKey>,
    #[serde(skip)]
    has_code: bool,
    #[serde(skip)]
    node: Option<types::NodeId>,
    #[serde(skip)]
    spans_nodes: bool,
    #[serde(skip)]
    held_for: types::HeldFor,
    #[serde(skip)]
    reservations: types::ReservationTerms,
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_one(number: &u32) -> bool {
    *number == 1
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::GpuRequest", rename_all = "lowercase")]
pub(crate) enum StoredGpuRequest {
    Part(Share),
    Whole(u32),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Sharing", rename_all = "lowercase")]
pub(crate) enum StoredSharing {
    Shared,
    Exclusive,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Spread", rename_all = "lowercase")]
pub(crate) enum StoredSpread {
    Even,
    Free,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::EnforcementRequirement", rename_all = "kebab-case")]
pub(crate) enum StoredEnforcementRequirement {
    BestEffort,
    Enforced,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::ComputeLimit", rename_all = "lowercase")]
pub(crate) enum StoredComputeLimit {
    Open,
    Capped,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::LaunchMode", rename_all = "kebab-case")]
pub(crate) enum StoredLaunchMode {
    PerNode,
    PerGpu,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Array")]
pub(crate) struct StoredArray {
    #[serde(with = "As::<Vec<StoredIndexRange>>")]
    ranges: Vec<types::IndexRange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_once: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::IndexRange")]
pub(crate) struct StoredIndexRange {
    first: u32,
    last: u32,
    step: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Dependency")]
pub(crate) struct StoredDependency {
    job: JobId,
    #[serde(with = "As::<StoredDependencyKind>")]
    when: types::DependencyKind,
}

#[derive(Serialize, Deserialize)]
#[expect(clippy::enum_variant_names, reason = "the words of Slurm")]
#[serde(remote = "types::DependencyKind", rename_all = "lowercase")]
pub(crate) enum StoredDependencyKind {
    AfterOk,
    AfterAny,
    AfterNotOk,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::RetryPolicy")]
pub(crate) struct StoredRetryPolicy {
    limit: u32,
    backoff: Span,
    backoff_cap: Span,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::StallPolicy")]
pub(crate) struct StoredStallPolicy {
    timeout: Span,
    #[serde(with = "As::<StoredStallAction>")]
    action: types::StallAction,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::StallAction", rename_all = "snake_case")]
pub(crate) enum StoredStallAction {
    Warn,
    Requeue,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::Stop")]
pub(crate) struct StoredStop {
    #[serde(with = "As::<Option<StoredWarningSignal>>", default, skip_serializing_if = "Option::is_none")]
    warning: Option<types::WarningSignal>,
    grace: Span,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "types::WarningSignal")]
pub(crate) struct StoredWarningSignal {
    signal: Signal,
    before: Span,
}

shape_of! {
    StoredJobInput => types::JobInput,
    StoredQos => types::Qos,
    StoredTerminalSize => types::TerminalSize,
    StoredCodeSnapshot => types::CodeSnapshot,
    StoredJobSpec => types::JobSpec,
    StoredEntrypoint => types::Entrypoint,
    StoredCommand => types::Command,
    StoredApplicationWork => types::ApplicationWork,
    StoredRunnerWork => types::RunnerWork,
    StoredRunnerRole => types::RunnerRole,
    StoredDemand => types::Demand,
    StoredGpuRequest => types::GpuRequest,
    StoredSharing => types::Sharing,
    StoredSpread => types::Spread,
    StoredEnforcementRequirement => types::EnforcementRequirement,
    StoredComputeLimit => types::ComputeLimit,
    StoredLaunchMode => types::LaunchMode,
    StoredArray => types::Array,
    StoredOutputFiles => types::OutputFiles,
    StoredIndexRange => types::IndexRange,
    StoredDependency => types::Dependency,
    StoredDependencyKind => types::DependencyKind,
    StoredRetryPolicy => types::RetryPolicy,
    StoredStallPolicy => types::StallPolicy,
    StoredStallAction => types::StallAction,
    StoredStop => types::Stop,
    StoredWarningSignal => types::WarningSignal,
}
