//! The document of a dry run: what would be submitted, and what would become of it.

use std::collections::BTreeMap;

use cohabit_client::proto::{
    Array, Companionship, Compute, Consideration, ConsideredNeighbour, ConsideredPlace, Dependency, Gpus,
    JobId, JobSpec, Launch, Limits, ModelDescription, Share, Sharing, Slowdown, Span, Spread, Work,
};
use serde::Serialize;

use crate::render::documents::Prediction;
use crate::render::moment;

/// What would be submitted, and what would become of it.
#[derive(Debug, Serialize)]
pub(super) struct Plan {
    dry_run: bool,
    name: String,
    command: Vec<String>,
    /// Whether the command is a script whose text travels with the job.
    script: bool,
    workdir: String,
    environment: BTreeMap<String, String>,
    /// Nothing where any nodes will do.
    nodes: Option<u32>,
    /// Nothing where any nodes will do.
    gpus_per_node: Option<f64>,
    /// On all nodes together.
    gpus: f64,
    gpu_memory: Option<u64>,
    exclusive: bool,
    enforced: bool,
    cap_compute: bool,
    gpu_processes: u32,
    max_slowdown: Option<f64>,
    cpus: u32,
    memory: u64,
    launch: Launch,
    time_limit_s: Option<f64>,
    members: Option<u64>,
    at_once: Option<u32>,
    depends_on: Vec<Dependency>,
    begin: Option<String>,
    priority: i32,
    retries: u32,
    stop_signal: Option<String>,
    grace_s: f64,
    group: Option<String>,
    model: Option<ModelDescription>,
    iterations: Option<u64>,
    checkpoint: Option<String>,
    held: bool,
    slurm_env: bool,
    idempotency_key: String,
    fitting_nodes: Vec<String>,
    /// Nothing where it would have to wait for a place.
    placement: Option<Place>,
    beside: Vec<Neighbour>,
    predicted: Predicted,
    reason: String,
}

/// Where it would go.
#[derive(Debug, Serialize)]
struct Place {
    nodes: Vec<String>,
    devices: Vec<String>,
    share: f64,
}

/// What is expected of it there.
#[derive(Debug, Serialize)]
struct Predicted {
    #[serde(flatten)]
    prediction: Prediction,
    slowdown_least: Option<f64>,
    slowdown_most: Option<f64>,
    slowdown_measured: Option<f64>,
}

/// A job that it would join: how many times as long as alone that one takes now, and would take then.
#[derive(Debug, Serialize)]
struct Neighbour {
    job: JobId,
    name: String,
    slowdown_now: f64,
    slowdown: f64,
    slowdown_least: f64,
    slowdown_most: f64,
    slowdown_measured: Option<f64>,
}

impl Plan {
    pub(super) fn new(
        spec: &JobSpec,
        key: &str,
        fitting_nodes: Vec<String>,
        consideration: &Consideration,
    ) -> Plan {
        let (command, script) = match &spec.work {
            Work::Command(command) => (command.argv.clone(), command.script.is_some()),
            Work::Function(_) | Work::Actor(_) => (vec![spec.work.title()], false),
        };
        let warning =
            spec.stop.warning.map(|warning| format!("{}@{}s", warning.signal, warning.before.as_secs_f64()));
        let is_even = spec.demand.spread == Spread::Even;
        let on_each = match spec.demand.gpus {
            Gpus::Part(share) => share.as_f64(),
            Gpus::Whole(count) => count.into(),
        };
        Plan {
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
            enforced: spec.demand.limits == Limits::Enforced,
            cap_compute: spec.demand.compute == Compute::Capped,
            gpu_processes: spec.demand.gpu_processes,
            max_slowdown: spec.demand.max_slowdown.map(Slowdown::as_f64),
            cpus: spec.demand.cpus,
            memory: spec.demand.memory.0,
            launch: spec.launch,
            time_limit_s: spec.time_limit.map(Span::as_secs_f64),
            members: spec.array.as_ref().map(Array::len),
            at_once: spec.array.as_ref().and_then(|array| array.at_once),
            depends_on: spec.depends_on.clone(),
            begin: spec.begin.map(moment),
            priority: spec.priority,
            retries: spec.retry.limit,
            stop_signal: warning,
            grace_s: spec.stop.grace.as_secs_f64(),
            group: spec.group.clone(),
            model: spec.model.clone(),
            iterations: spec.iterations,
            checkpoint: spec.checkpoint.clone(),
            held: spec.held,
            slurm_env: spec.slurm_environment,
            idempotency_key: key.to_owned(),
            fitting_nodes,
            placement: consideration.place.as_ref().map(Place::from),
            beside: consideration.neighbours.iter().map(Neighbour::from).collect(),
            predicted: Predicted::from(consideration),
            reason: consideration.reason.clone(),
        }
    }
}

impl From<&ConsideredPlace> for Place {
    fn from(place: &ConsideredPlace) -> Place {
        let ConsideredPlace { nodes, devices, share } = place;
        Place {
            nodes: nodes.clone(),
            devices: devices.iter().map(|device| device.to_string()).collect(),
            share: Share::as_f64(*share),
        }
    }
}

impl From<&Consideration> for Predicted {
    fn from(consideration: &Consideration) -> Predicted {
        let company = consideration.company.as_ref();
        Predicted {
            prediction: Prediction::from(&consideration.predicted),
            slowdown_least: company.map(|it| it.predicted.least.as_f64()),
            slowdown_most: company.map(|it| it.predicted.most.as_f64()),
            slowdown_measured: company.and_then(|it| it.measured).map(Slowdown::as_f64),
        }
    }
}

impl From<&ConsideredNeighbour> for Neighbour {
    fn from(neighbour: &ConsideredNeighbour) -> Neighbour {
        let ConsideredNeighbour { name, now, then: Companionship { job, predicted, measured, .. } } =
            neighbour;
        Neighbour {
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
