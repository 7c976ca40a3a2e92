//! `--dry-run`: shows the job that would be submitted, checked here and against the nodes; submits nothing.

use std::process::ExitCode;

use cohabit_client::proto::{
    Array, Bytes, Compute, Demand, Dependency, Device, DeviceRecord, DeviceSharing, Gpus, JobSpec, Limits,
    ModelDescription, NodeRecord, NodeState, Share, Sharing, Slowdown, Span, Spread, Work,
};
use cohabit_client::{Client, Submission};
use serde::Serialize;

use crate::arguments::Format;
use crate::failure::{Failure, Trouble};
use crate::output;
use crate::render::documents::versioned;
use crate::render::moment;

pub(super) async fn dry_run(
    client: &Client,
    submission: &Submission,
    format: Format,
) -> Result<ExitCode, Failure> {
    let spec = submission.spec();
    let fitting = fitting_nodes(spec, &client.nodes().await?)?;
    let plan = Plan::new(spec, submission.key(), fitting);
    match format {
        Format::Json => output::document(&versioned(plan))?,
        Format::Quiet => {}
        Format::Table | Format::Wide => output::data(&plan.words())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Names of the nodes that could run it, or a part of it, when they are empty; refused if they are too few.
fn fitting_nodes(spec: &JobSpec, nodes: &[NodeRecord]) -> Result<Vec<String>, Failure> {
    let demand = &spec.demand;
    let fitting: Vec<&NodeRecord> = nodes.iter().filter(|node| fits(demand, node)).collect();
    let Some(shortage) = missing(demand, nodes, &fitting) else {
        return Ok(fitting.iter().map(|node| node.name.clone()).collect());
    };
    let lenient = Demand { limits: Limits::BestEffort, ..*demand };
    let otherwise: Vec<&NodeRecord> = nodes.iter().filter(|node| fits(&lenient, node)).collect();
    Err(Failure::new(
        Trouble::Impossible("unsatisfiable"),
        match missing(&lenient, nodes, &otherwise) {
            Some(_) => shortage,
            None => {
                "it shares a GPU only within enforced limits, and none that is large enough enforces them: \
                     `cohabit nodes --output wide` says why"
                    .to_owned()
            }
        },
    ))
}

/// What is missing, if these are all the nodes that fit.
fn missing(demand: &Demand, nodes: &[NodeRecord], fitting: &[&NodeRecord]) -> Option<String> {
    match demand.spread {
        Spread::Even => too_few_nodes(demand, nodes, fitting.len()),
        Spread::Free => too_few_devices(demand, nodes, fitting),
    }
}

/// What is missing. Before the first worker has joined nothing is: the head takes any job, and lets it wait.
fn too_few_nodes(demand: &Demand, nodes: &[NodeRecord], fitting: usize) -> Option<String> {
    let largest = nodes.iter().filter(|node| is_there(node)).max_by_key(|node| node.devices.len())?;
    (fitting < demand.nodes as usize).then(|| {
        format!(
            "it needs {} node(s) and fits {fitting}: the largest node is {} with {} devices, {} cores and {}",
            demand.nodes,
            largest.name,
            largest.devices.len(),
            largest.cpus,
            largest.memory
        )
    })
}

/// The same for a job whose devices may lie anywhere.
fn too_few_devices(demand: &Demand, nodes: &[NodeRecord], fitting: &[&NodeRecord]) -> Option<String> {
    let wanted = demand.devices() as usize;
    let together: usize = fitting.iter().map(|node| large_devices(demand, node)).sum();
    (together < wanted && nodes.iter().any(is_there)).then(|| {
        format!(
            "it needs {wanted} devices, and all nodes with enough cores and memory together have {together} \
             that are large enough"
        )
    })
}

fn is_there(node: &NodeRecord) -> bool {
    match node.state {
        NodeState::Up | NodeState::Draining | NodeState::Drained | NodeState::Unreachable => true,
        NodeState::Lost => false,
    }
}

fn fits(demand: &Demand, node: &NodeRecord) -> bool {
    let least = match demand.spread {
        Spread::Even => demand.devices() as usize,
        Spread::Free => 1,
    };
    let is_roomy = node.cpus >= demand.cpus && node.memory >= demand.memory;
    is_there(node) && is_roomy && large_devices(demand, node) >= least
}

/// Devices of this node that could hold a rank.
fn large_devices(demand: &Demand, node: &NodeRecord) -> usize {
    let holds = |record: &&DeviceRecord| could_hold(demand, &record.device, node.sharing.reserve);
    node.devices.iter().filter(holds).count()
}

/// Whether a device without anything on it could hold a rank. Who shares leaves the reserve.
fn could_hold(demand: &Demand, device: &Device, reserve: Bytes) -> bool {
    let (shares, enforces) = match device.condition.sharing {
        DeviceSharing::Enforced => (demand.share_of(device.memory) < Share::WHOLE, true),
        DeviceSharing::Unenforced(_) => (demand.share_of(device.memory) < Share::WHOLE, false),
        DeviceSharing::Alone(_) => (false, false),
    };
    let needed = demand.gpu_memory.map(|needed| if shares { needed + reserve } else { needed });
    let is_large = device.memory.zip(needed).is_none_or(|(there, needed)| there >= needed);
    is_large && (enforces || !shares || demand.limits == Limits::BestEffort)
}

/// What would be submitted.
#[derive(Debug, Serialize)]
struct Plan {
    dry_run: bool,
    name: String,
    command: Vec<String>,
    /// Whether the command is a script whose text travels with the job.
    script: bool,
    workdir: String,
    environment: std::collections::BTreeMap<String, String>,
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
    launch: cohabit_client::proto::Launch,
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
}

impl Plan {
    fn new(spec: &JobSpec, key: &str, fitting_nodes: Vec<String>) -> Plan {
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
        }
    }

    fn words(&self) -> String {
        let members =
            self.members.map_or(String::new(), |members| format!(", an array of {members} members"));
        format!(
            "Would submit {} in {}{members}: {}.\nIt {}.\nNothing was submitted; --output json shows everything.",
            shlex::try_join(self.command.iter().map(String::as_str)).unwrap_or_else(|_| self.name.clone()),
            self.workdir,
            self.devices(),
            match self.fitting_nodes.as_slice() {
                [] => "has to wait for a worker to join".to_owned(),
                nodes => format!("fits {}", nodes.join(", ")),
            },
        )
    }

    fn devices(&self) -> String {
        match (self.nodes, self.gpus_per_node) {
            (Some(nodes), Some(gpus)) => format!("{gpus} GPUs on each of {nodes} node(s)"),
            (None, _) | (_, None) => format!("{} GPUs on any nodes", self.gpus),
        }
    }
}

#[cfg(test)]
mod tests;
