//! GPUs, cores, memory, nodes and tasks: options of Slurm that depend on each other.
//!
//! Slurm starts a script once, and `srun` in it starts the tasks. Here the script itself is started: once on
//! each node, or once for each GPU where that is what the tasks are. What this changes is a warning.

use cohabit_client::types::Bytes;

use super::request::SlurmRequest;
use super::sbatch_options::SbatchKey;
use super::values::{self, GpuCount, memory_flag};

/// How many GPUs there are, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gpus {
    None,
    PerNode(u32),
    Total(u32),
}

/// The shape of a job.
#[derive(Debug, Clone, Copy)]
struct Shape {
    nodes: u32,
    tasks: u32,
    tasks_per_node: u32,
    cpus_per_task: Option<u32>,
    gpus: Gpus,
}

impl Shape {
    fn gpus_per_node(&self) -> u32 {
        match self.gpus {
            Gpus::None => 0,
            Gpus::PerNode(count) => count,
            Gpus::Total(count) => count / self.nodes,
        }
    }

    /// Whether there is one task for each GPU, and several on a node.
    fn has_task_per_gpu(&self) -> bool {
        self.tasks_per_node > 1 && self.tasks_per_node == self.gpus_per_node()
    }
}

/// The flags for the resources that were asked for. As in Slurm, a job gets no GPU unless it asks for one,
/// and a job without GPUs gets a core for each task.
pub(super) fn flags(request: &mut SlurmRequest, names_gpus: bool) -> Vec<String> {
    let shape = shape(request, names_gpus);
    let mut flags = Vec::new();
    let mut add = |name: &str, value: String| flags.extend([name.to_owned(), value]);
    if shape.nodes > 1 {
        add("--nodes", shape.nodes.to_string());
    }
    match shape.gpus {
        Gpus::None if names_gpus => {}
        Gpus::None | Gpus::PerNode(0) | Gpus::Total(0) => add("--gpus", "0".into()),
        Gpus::PerNode(count) => add("--gpus-per-node", count.to_string()),
        Gpus::Total(count) => add("--gpus", count.to_string()),
    }
    let cpus = cpus(request, &shape, names_gpus);
    cpus.into_iter().for_each(|cpus| add("--cpus", cpus.to_string()));
    memory(request, &shape, cpus).into_iter().for_each(|amount| add("--mem", memory_flag(amount)));
    if shape.has_task_per_gpu() {
        add("--launch", "per-gpu".into());
    } else if shape.tasks > shape.nodes {
        add("--env", format!("SLURM_NTASKS={}", shape.tasks));
        add("--env", format!("SLURM_NTASKS_PER_NODE={}", shape.tasks_per_node));
        add("--env", format!("SLURM_CPUS_PER_TASK={}", shape.cpus_per_task.unwrap_or(1)));
    }
    flags.extend(exclusive(request, &shape));
    flags
}

fn shape(request: &mut SlurmRequest, names_gpus: bool) -> Shape {
    let nodes_line = request.line(&[SbatchKey::Nodes]);
    let nodes = match number(request, SbatchKey::Nodes, values::nodes) {
        Some((least, true)) => {
            request.warn(nodes_line, format!("--nodes: of the range, {least} is used"));
            least
        }
        Some((least, false)) => least,
        None => 1,
    };
    let tasks_line = request.line(&[SbatchKey::NtasksPerNode, SbatchKey::Ntasks]);
    let count = |value: &str| values::count(value, 1);
    let per_node = number(request, SbatchKey::NtasksPerNode, count);
    let total = number(request, SbatchKey::Ntasks, count);
    let tasks_per_node = match (total, per_node) {
        // As in Slurm: with a total, this is the most on a node.
        (Some(total), _) => total.div_ceil(nodes),
        (None, per_node) => per_node.unwrap_or(1),
    };
    let shape = Shape {
        nodes,
        tasks: total.unwrap_or_else(|| tasks_per_node.saturating_mul(nodes)),
        tasks_per_node,
        cpus_per_task: number(request, SbatchKey::CpusPerTask, count),
        gpus: Gpus::None,
    };
    let gpus = gpus(request, &shape);
    let shape = Shape { gpus: if names_gpus { Gpus::None } else { gpus }, ..shape };
    warn_of_starts(request, &shape, tasks_line.or(nodes_line));
    shape
}

/// How often the script is started, where that is not as in Slurm.
fn warn_of_starts(request: &mut SlurmRequest, shape: &Shape, line: Option<usize>) {
    let Shape { nodes, tasks, .. } = *shape;
    let text = match () {
        () if shape.has_task_per_gpu() => format!(
            "the script is started {tasks} times, once for each GPU, with the number of its task in SLURM_PROCID: remove \
             srun from it"
        ),
        () if tasks > nodes => format!(
            "the script is started once on each node, with the cores of all its tasks there, and has to start the \
             {tasks} tasks itself (mpirun, torchrun): there is no srun"
        ),
        () if nodes > 1 => format!(
            "the script is started on each of the {nodes} nodes, not on the first alone, with the number of the node in \
             SLURM_NODEID: remove srun from it"
        ),
        () => return,
    };
    request.warn(line, text);
}

fn gpus(request: &mut SlurmRequest, shape: &Shape) -> Gpus {
    let found = [
        (SbatchKey::GpusPerNode, values::typed_gpus as fn(&str) -> Result<GpuCount, String>),
        (SbatchKey::Gres, values::generic_resources),
        (SbatchKey::Gpus, values::typed_gpus),
        (SbatchKey::GpusPerTask, values::typed_gpus),
    ]
    .map(|(key, parse)| gpu_count(request, key, parse));
    match found {
        [Some(count), ..] | [_, Some(count), ..] if count > 0 => Gpus::PerNode(count),
        [_, _, Some(count), _] => Gpus::Total(count),
        [.., Some(count)] => Gpus::PerNode(count.saturating_mul(shape.tasks_per_node)),
        [..] => Gpus::None,
    }
}

fn gpu_count(
    request: &mut SlurmRequest,
    key: SbatchKey,
    parse: fn(&str) -> Result<GpuCount, String>,
) -> Option<u32> {
    let line = request.line(&[key]);
    let GpuCount { count, types, others } = number(request, key, parse)?;
    if !types.is_empty() {
        let types = types.join(", ");
        request.warn(line, format!("the type of GPU ({types}) has no effect: the job may get any GPU"));
    }
    if !others.is_empty() {
        let others = others.join(", ");
        request.warn(line, format!("{others} has no effect: the only resource of --gres here is gpu"));
    }
    count
}

fn cpus(request: &mut SlurmRequest, shape: &Shape, names_gpus: bool) -> Option<u32> {
    let per_gpu = number(request, SbatchKey::CpusPerGpu, |value| values::count(value, 1));
    let has_no_gpu = shape.gpus_per_node() == 0 && !names_gpus;
    match (shape.cpus_per_task, per_gpu) {
        (None, Some(per_gpu)) => Some(per_gpu.saturating_mul(shape.gpus_per_node().max(1))),
        (None, None) if shape.tasks_per_node == 1 && !has_no_gpu => None,
        (per_task, _) => Some(per_task.unwrap_or(1).saturating_mul(shape.tasks_per_node)),
    }
}

/// The memory on each node.
fn memory(request: &mut SlurmRequest, shape: &Shape, cpus: Option<u32>) -> Option<Bytes> {
    let times = |amount: Bytes, count: u32| Bytes(amount.0.saturating_mul(u64::from(count.max(1))));
    let line = request.line(&[SbatchKey::Mem, SbatchKey::MemPerCpu, SbatchKey::MemPerGpu]);
    let per_node = number(request, SbatchKey::Mem, values::memory);
    let per_cpu = number(request, SbatchKey::MemPerCpu, values::memory);
    let per_gpu = number(request, SbatchKey::MemPerGpu, values::memory);
    let amount = per_node
        .or_else(|| per_cpu.map(|amount| times(amount, cpus.unwrap_or(shape.tasks_per_node))))
        .or_else(|| per_gpu.map(|amount| times(amount, shape.gpus_per_node())));
    if amount == Some(Bytes::ZERO) {
        let why = "all memory of a node cannot be reserved, so the job has no limit: give an amount";
        request.warn(line, format!("--mem=0: {why}"));
    }
    amount.filter(|amount| *amount > Bytes::ZERO)
}

fn exclusive(request: &mut SlurmRequest, shape: &Shape) -> Option<String> {
    let option = request.take(SbatchKey::Exclusive)?;
    let has_gpus = shape.gpus_per_node() > 0;
    let why = if has_gpus {
        "the job shares its GPUs with no other, but does not get the rest of its nodes"
    } else {
        "it has no effect, because whole nodes cannot be reserved: ask for the GPUs, cores and memory of one"
    };
    request.warn(option.line, format!("{}: {why}", option.name));
    has_gpus.then(|| "--exclusive".to_owned())
}

/// The value of an option; a malformed one is an error.
fn number<T>(
    request: &mut SlurmRequest,
    key: SbatchKey,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Option<T> {
    let option = request.take(key)?;
    match parse(option.value.as_deref().unwrap_or_default()) {
        Ok(value) => Some(value),
        Err(why) => {
            request.refuse(option.line, format!("{}: {why}", option.name));
            None
        }
    }
}
