//! `SLURM_*`: what `COHABIT_*` says, under the names that scripts written for Slurm expect.
//!
//! What the job's own environment says of its tasks takes precedence: a script may ask for more tasks than it
//! has ranks, because it starts them itself.

use cohabit_types::{Array, Bytes, IndexRange, RankRun, RunOrder};

use crate::environment::Variables;

/// The prefix of host slots, which stand in for GPUs where there are none.
const HOST_SLOT: &str = "host-";

/// The variables of this rank.
pub(crate) fn slurm_variables(order: &RunOrder, run: &RankRun) -> Variables {
    let nodes = order.nodes.join(",");
    let mut variables = Variables::from([
        ("SLURM_CLUSTER_NAME", "cohabit".to_owned()),
        ("SLURM_JOB_ID", order.attempt.job.number.to_string()),
        ("SLURM_JOBID", order.attempt.job.number.to_string()),
        ("SLURM_JOB_NAME", order.spec.name.clone()),
        ("SLURM_JOB_USER", order.account.clone()),
        ("SLURM_RESTART_COUNT", order.attempt.attempt.saturating_sub(1).to_string()),
        ("SLURM_NODEID", run.node_rank.to_string()),
        ("SLURM_JOB_NUM_NODES", order.nodes.len().to_string()),
        ("SLURM_NNODES", order.nodes.len().to_string()),
        ("SLURM_JOB_NODELIST", nodes.clone()),
        ("SLURM_NODELIST", nodes),
        ("SLURM_PROCID", run.rank.to_string()),
        ("SLURM_LOCALID", run.local_rank.to_string()),
        ("SLURM_GPUS_ON_NODE", gpus_on_node(order).to_string()),
        ("SLURM_SUBMIT_DIR", order.spec.workdir.clone()),
    ]);
    let name = order.nodes.get(run.node_rank as usize);
    variables.extend(name.map(|name| ("SLURMD_NODENAME", name.clone())));
    variables.extend(order.spec.partition.iter().map(|name| ("SLURM_JOB_PARTITION", name.clone())));
    variables.extend(tasks(order));
    variables.extend(host_share(order));
    variables.extend(array(order));
    variables
}

fn gpus_on_node(order: &RunOrder) -> usize {
    let devices = order.ranks.iter().flat_map(|rank| &rank.devices);
    devices.filter(|device| !device.0.starts_with(HOST_SLOT)).count()
}

/// The number of tasks, unless the job says how many it starts itself.
fn tasks(order: &RunOrder) -> Variables {
    let own = order.spec.environment.get("SLURM_NTASKS");
    let count = own.cloned().unwrap_or_else(|| order.world_size.to_string());
    Variables::from([("SLURM_NTASKS", count.clone()), ("SLURM_NPROCS", count)])
}

/// Cores and host memory on this node, as far as the job claims them; memory in MiB.
fn host_share(order: &RunOrder) -> Variables {
    let share = order.spec.demand.most_host();
    let mut variables = Variables::new();
    if share.cpus > 0 {
        let on_node = share.cpus.to_string();
        let per_task = (share.cpus / (order.ranks.len() as u32).max(1)).max(1).to_string();
        let own = order.spec.environment.get("SLURM_CPUS_PER_TASK");
        variables.push(("SLURM_CPUS_PER_TASK", own.cloned().unwrap_or(per_task)));
        variables.push(("SLURM_CPUS_ON_NODE", on_node.clone()));
        variables.push(("SLURM_JOB_CPUS_PER_NODE", on_node));
    }
    if share.memory > Bytes::ZERO {
        variables.push(("SLURM_MEM_PER_NODE", (share.memory.0 >> 20).to_string()));
    }
    variables
}

fn array(order: &RunOrder) -> Variables {
    let job = order.attempt.job;
    let Some(index) = job.index else { return Variables::new() };
    let mut variables = Variables::from([
        ("SLURM_ARRAY_JOB_ID", job.number.to_string()),
        ("SLURM_ARRAY_TASK_ID", index.to_string()),
    ]);
    if let Some(array) = &order.spec.array {
        variables.push(("SLURM_ARRAY_TASK_COUNT", array.len().to_string()));
        variables.extend(bounds(array));
    }
    variables
}

/// The least and the greatest index, and the step.
fn bounds(array: &Array) -> Variables {
    // The last index that a range has, which its bound need not be.
    let last = |range: &IndexRange| range.last - range.last.saturating_sub(range.first) % range.step.max(1);
    let least = array.ranges.iter().map(|range| range.first).min();
    let most = array.ranges.iter().map(last).max();
    let step = array.ranges.first().map(|range| range.step);
    let named =
        [("SLURM_ARRAY_TASK_MIN", least), ("SLURM_ARRAY_TASK_MAX", most), ("SLURM_ARRAY_TASK_STEP", step)];
    named.into_iter().filter_map(|(name, value)| Some((name, value?.to_string()))).collect()
}
