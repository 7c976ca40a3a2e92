//! `--dry-run`: shows the job that would be submitted, checked here and against the nodes; submits nothing.

use std::process::ExitCode;

use cohabit_client::proto::{
    Array, Dependency, Gpus, JobSpec, ModelDescription, NodeRecord, NodeState, Sharing, Span, Spread, Work,
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

/// Names of the nodes that could run it when they are empty; refused if they are too few.
fn fitting_nodes(spec: &JobSpec, nodes: &[NodeRecord]) -> Result<Vec<String>, Failure> {
    let fitting: Vec<_> =
        nodes.iter().filter(|node| fits(spec, node)).map(|node| node.name.clone()).collect();
    let largest = nodes.iter().filter(|node| is_there(node)).max_by_key(|node| node.devices.len());
    match largest {
        Some(largest) if fitting.len() < spec.demand.nodes as usize => Err(Failure::new(
            Trouble::Impossible("unsatisfiable"),
            format!(
                "it needs {} node(s) and fits {}: the largest node is {} with {} devices, {} cores and {}",
                spec.demand.nodes,
                fitting.len(),
                largest.name,
                largest.devices.len(),
                largest.cpus,
                largest.memory
            ),
        )),
        // Before the first worker has joined the head takes any job, and lets it wait.
        Some(_) | None => Ok(fitting),
    }
}

fn is_there(node: &NodeRecord) -> bool {
    match node.state {
        NodeState::Up | NodeState::Draining | NodeState::Drained | NodeState::Unreachable => true,
        NodeState::Lost => false,
    }
}

fn fits(spec: &JobSpec, node: &NodeRecord) -> bool {
    let demand = &spec.demand;
    let is_large = |memory: Option<cohabit_client::proto::Bytes>| match (memory, demand.gpu_memory) {
        (Some(there), Some(wanted)) => there >= wanted,
        (None, _) | (_, None) => true,
    };
    let least = match demand.spread {
        Spread::Even => demand.devices() as usize,
        Spread::Free => 1,
    };
    let devices = node.devices.iter().filter(|record| is_large(record.device.memory)).count();
    is_there(node) && devices >= least && node.cpus >= demand.cpus && node.memory >= demand.memory
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
    nodes: u32,
    gpus_per_node: f64,
    gpu_memory: Option<u64>,
    exclusive: bool,
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
        Plan {
            dry_run: true,
            name: spec.name.clone(),
            command,
            script,
            workdir: spec.workdir.clone(),
            environment: spec.environment.clone(),
            nodes: spec.demand.nodes,
            gpus_per_node: match spec.demand.gpus {
                Gpus::Part(share) => share.as_f64(),
                Gpus::Whole(count) => count.into(),
            },
            gpu_memory: spec.demand.gpu_memory.map(|memory| memory.0),
            exclusive: spec.demand.sharing == Sharing::Exclusive,
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
            "Would submit {} in {}{members}: {} GPUs on each of {} node(s).\nIt {}.\nNothing was submitted; \
             --output json shows everything.",
            shlex::try_join(self.command.iter().map(String::as_str)).unwrap_or_else(|_| self.name.clone()),
            self.workdir,
            self.gpus_per_node,
            self.nodes,
            match self.fitting_nodes.as_slice() {
                [] => "has to wait for a worker to join".to_owned(),
                nodes => format!("fits {}", nodes.join(", ")),
            },
        )
    }
}

#[cfg(test)]
mod tests;
