//! The document of a dry run: the job and where it would run.

use std::collections::BTreeMap;

use cohabit_client::types::{
    Array, ColocationSlowdown, ComputeLimit, Dependency, DryRun, DryRunNeighbor, DryRunPlacement,
    EnforcementRequirement, Entrypoint, GpuRequest, JobId, JobSpec, LaunchMode, ModelDescription, Share,
    Sharing, Slowdown, Span, Spread, StallAction,
};
use serde::Serialize;

use crate::render::rfc3339;
use cohabit_documents::jobs::{HostShareDocument, PredictionDocument};

/// The job that would be submitted and the decision on it.
#[derive(Debug, Serialize)]
pub(super) struct DryRunDocument {
    dry_run: bool,
    name: String,
    command: Vec<String>,
    /// Whether the command is a script whose text is copied into the job.
    script: bool,
    workdir: String,
    environment: BTreeMap<String, String>,
    /// Null for `--nodes any`.
    nodes: Option<u32>,
    /// Null for `--nodes any`.
    gpus_per_node: Option<f64>,
    /// The total of all nodes.
    gpus: f64,
    gpu_memory: Option<u64>,
    exclusive: bool,
    enforced: bool,
    cap_compute: bool,
    gpu_processes: u32,
    max_slowdown: Option<f64>,
    cpus: u32,
    memory: u64,
    up_to: Option<HostShareDocument>,
    launch: LaunchMode,
    time_limit_s: Option<f64>,
    requeue_on_timeout: bool,
    stall: Option<StallDocument>,
    members: Option<u64>,
    at_once: Option<u32>,
    depends_on: Vec<Dependency>,
    begin: Option<String>,
    priority: i32,
    retries: u32,
    stop_signal: Option<String>,
    preemptible: bool,
    grace_s: f64,
    group: Option<String>,
    model: Option<ModelDescription>,
    iterations: Option<u64>,
    checkpoint: Option<String>,
    held: bool,
    slurm_env: bool,
    partition: Option<String>,
    stdout: Option<String>,
    stderr: Option<String>,
    notify: Vec<String>,
    idempotency_key: String,
    fitting_nodes: Vec<String>,
    /// Null if the job would have to wait.
    placement: Option<PlacementDocument>,
    beside: Vec<NeighborDocument>,
    predicted: DryRunPredictionDocument,
    reason: String,
}

/// Where the job would run.
#[derive(Debug, Serialize)]
struct PlacementDocument {
    nodes: Vec<String>,
    devices: Vec<String>,
    share: f64,
}

/// The prediction for the job there.
#[derive(Debug, Serialize)]
struct DryRunPredictionDocument {
    #[serde(flatten)]
    prediction: PredictionDocument,
    slowdown_least: Option<f64>,
    slowdown_most: Option<f64>,
    slowdown_measured: Option<f64>,
}

/// A job that would share its devices: its slowdown now, and with the new job.
#[derive(Debug, Serialize)]
struct NeighborDocument {
    job: JobId,
    name: String,
    slowdown_now: f64,
    slowdown: f64,
    slowdown_least: f64,
    slowdown_most: f64,
    slowdown_measured: Option<f64>,
}

impl DryRunDocument {
    pub(super) fn new(
        spec: &JobSpec,
        key: &str,
        fitting_nodes: Vec<String>,
        dry_run: &DryRun,
    ) -> DryRunDocument {
        let (command, script) = match &spec.entrypoint {
            Entrypoint::Command(command) => (command.argv.clone(), command.script.is_some()),
            Entrypoint::Application(_) | Entrypoint::Runner(_) => (vec![spec.entrypoint.title()], false),
        };
        let warning =
            spec.stop.warning.map(|warning| format!("{}@{}s", warning.signal, warning.before.as_secs_f64()));
        let is_even = spec.demand.spread == Spread::Even;
        let on_each = match spec.demand.gpus {
            GpuRequest::Part(share) => share.as_f64(),
            GpuRequest::Whole(count) => count.into(),
        };
        DryRunDocument {
            dry_run: true,
            name: spec.name.clone(),
            command,
            script,
            workdir: spec.workdir.clone(),
            environment: spec.environment.clone(),
            nodes: is_even.then_some(spec.demand.nodes),
            gpus_per_node: is_even.then_some(on_each),
            gpus: on_each * f64::from(spec.demand.nodes),
            gpu_memory: spec.demand.gpu_memory.map(|memory| memory.0),
            exclusive: spec.demand.sharing == Sharing::Exclusive,
            enforced: spec.demand.limits == EnforcementRequirement::Enforced,
            cap_compute: spec.demand.compute == ComputeLimit::Capped,
            gpu_processes: spec.demand.gpu_processes,
            max_slowdown: spec.demand.max_slowdown.map(Slowdown::as_f64),
            cpus: spec.demand.cpus,
            memory: spec.demand.memory.0,
            up_to: spec.demand.up_to.map(HostShareDocument::from),
            launch: spec.launch,
            time_limit_s: spec.time_limit.map(Span::as_secs_f64),
            requeue_on_timeout: spec.requeue_on_timeout,
            stall: spec
                .stall
                .map(|it| StallDocument { timeout_s: it.timeout.as_secs_f64(), action: it.action }),
            members: spec.array.as_ref().map(Array::len),
            at_once: spec.array.as_ref().and_then(|array| array.at_once),
            depends_on: spec.depends_on.clone(),
            begin: spec.begin.map(rfc3339),
            priority: spec.priority,
            retries: spec.retry.limit,
            stop_signal: warning,
            preemptible: spec.preemptible,
            grace_s: spec.stop.grace.as_secs_f64(),
            group: spec.group.clone(),
            model: spec.model.clone(),
            iterations: spec.iterations,
            checkpoint: spec.checkpoint.clone(),
            held: spec.held,
            slurm_env: spec.slurm_environment,
            partition: spec.partition.clone(),
            stdout: spec.output.stdout.clone(),
            stderr: spec.output.stderr.clone(),
            notify: spec.notify.iter().map(ToString::to_string).collect(),
            idempotency_key: key.to_owned(),
            fitting_nodes,
            placement: dry_run.place.as_ref().map(PlacementDocument::from),
            beside: dry_run.neighbors.iter().map(NeighborDocument::from).collect(),
            predicted: DryRunPredictionDocument::from(dry_run),
            reason: dry_run.reason.clone(),
        }
    }
}

/// When the job counts as stalled, and what follows.
#[derive(Debug, Serialize)]
struct StallDocument {
    timeout_s: f64,
    action: StallAction,
}

impl From<&DryRunPlacement> for PlacementDocument {
    fn from(place: &DryRunPlacement) -> PlacementDocument {
        let DryRunPlacement { nodes, devices, share } = place;
        PlacementDocument {
            nodes: nodes.clone(),
            devices: devices.iter().map(|device| device.to_string()).collect(),
            share: Share::as_f64(*share),
        }
    }
}

impl From<&DryRun> for DryRunPredictionDocument {
    fn from(dry_run: &DryRun) -> DryRunPredictionDocument {
        let slowdown = dry_run.slowdown.as_ref();
        DryRunPredictionDocument {
            prediction: PredictionDocument::from(&dry_run.predicted),
            slowdown_least: slowdown.map(|it| it.predicted.least.as_f64()),
            slowdown_most: slowdown.map(|it| it.predicted.most.as_f64()),
            slowdown_measured: slowdown.and_then(|it| it.measured).map(Slowdown::as_f64),
        }
    }
}

impl From<&DryRunNeighbor> for NeighborDocument {
    fn from(neighbor: &DryRunNeighbor) -> NeighborDocument {
        let DryRunNeighbor { name, now, then: ColocationSlowdown { job, predicted, measured, .. } } =
            neighbor;
        NeighborDocument {
            job: *job,
            name: name.clone(),
            slowdown_now: now.as_f64(),
            slowdown: predicted.expected.as_f64(),
            slowdown_least: predicted.least.as_f64(),
            slowdown_most: predicted.most.as_f64(),
            slowdown_measured: measured.map(Slowdown::as_f64),
        }
    }
}
