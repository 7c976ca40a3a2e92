//! The environment of a rank: Cohabit's variables, those of `torchrun` or for a launcher, and Slurm's on
//! request.
//!
//! Paths, times and `CUDA_VISIBLE_DEVICES` depend on the host and are added by the worker daemon.

use std::borrow::Cow;
use std::collections::BTreeMap;

use cohabit_types::{ApplicationRole, LaunchMode, RankRun, RunOrder};

use crate::slurm_environment::slurm_variables;

/// The port of the rendezvous, under `torchrun`'s name.
const MASTER_PORT: &str = "MASTER_PORT";

/// As many variables as a rank gets without Slurm's, so that their list need not grow.
const USUAL_VARIABLES: usize = 26;

/// The number of threads of numeric libraries.
const THREADS: &str = "OMP_NUM_THREADS";

/// All variables of this rank.
pub(crate) fn environment(order: &RunOrder, run: &RankRun) -> BTreeMap<Cow<'static, str>, String> {
    let mut environment = own(order, run);
    match order.spec.launch {
        LaunchMode::PerGpu => environment.extend(torchrun(order, run)),
        LaunchMode::PerNode => environment.extend(launcher(order, run)),
    }
    if order.spec.slurm_environment {
        environment.extend(slurm_variables(order, run));
    }
    environment.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect()
}

/// Later variables replace earlier ones of the same name.
pub(crate) type Variables = Vec<(&'static str, String)>;

fn own(order: &RunOrder, run: &RankRun) -> Variables {
    let mut variables = Variables::with_capacity(USUAL_VARIABLES);
    variables.extend([
        ("COHABIT_JOB_ID", order.attempt.job.to_string()),
        ("COHABIT_JOB_NAME", order.spec.name.clone()),
        ("COHABIT_ATTEMPT", order.attempt.attempt.to_string()),
        ("COHABIT_NODE_RANK", run.node_rank.to_string()),
        ("COHABIT_NNODES", order.nodes.len().to_string()),
        ("COHABIT_RANK", run.rank.to_string()),
        ("COHABIT_WORLD_SIZE", order.world_size.to_string()),
        ("COHABIT_SHARE", run.share.to_string()),
        ("COHABIT_SUBMIT_DIR", order.spec.workdir.clone()),
    ]);
    let role = order.spec.entrypoint.role();
    variables.extend(role.map(|role| (ApplicationRole::VARIABLE, role.as_str().to_owned())));
    variables.extend(order.attempt.job.index.map(|index| ("COHABIT_ARRAY_INDEX", index.to_string())));
    variables
}

/// The variables that `torchrun` sets for its ranks.
fn torchrun(order: &RunOrder, run: &RankRun) -> Variables {
    let mut variables = Variables::from([
        ("RANK", run.rank.to_string()),
        ("WORLD_SIZE", order.world_size.to_string()),
        ("LOCAL_RANK", run.local_rank.to_string()),
        ("LOCAL_WORLD_SIZE", order.ranks.len().to_string()),
        ("GROUP_RANK", run.node_rank.to_string()),
        ("GROUP_WORLD_SIZE", order.nodes.len().to_string()),
        ("ROLE_NAME", "default".to_owned()),
        ("ROLE_RANK", run.rank.to_string()),
        ("ROLE_WORLD_SIZE", order.world_size.to_string()),
        ("TORCHELASTIC_RUN_ID", order.attempt.job.to_string()),
        ("TORCHELASTIC_RESTART_COUNT", order.attempt.attempt.saturating_sub(1).to_string()),
        ("TORCHELASTIC_MAX_RESTARTS", order.spec.retry.limit.to_string()),
    ]);
    variables.extend(master(order));
    variables.extend(threads(order));
    variables
}

/// Ranks on one host that each start a thread for every core slow each other down; `torchrun` gives each rank
/// one thread. Here the ranks divide the cores that the job claims. The job's own variable takes precedence.
fn threads(order: &RunOrder) -> Option<(&'static str, String)> {
    let share = order.spec.demand.most_host().cpus / (order.ranks.len() as u32).max(1);
    let own = order.spec.environment.contains_key(THREADS);
    (!own).then(|| (THREADS, share.max(1).to_string()))
}

/// The variables that a launcher needs to find its peers on other nodes.
fn launcher(order: &RunOrder, run: &RankRun) -> Variables {
    let mut variables = Variables::from([
        ("NODE_RANK", run.node_rank.to_string()),
        ("NNODES", order.nodes.len().to_string()),
        ("NPROC_PER_NODE", run.devices.len().max(1).to_string()),
    ]);
    variables.extend(master(order));
    variables
}

/// The rendezvous. The job's own port takes precedence.
fn master(order: &RunOrder) -> Variables {
    let Some(rendezvous) = &order.rendezvous else { return Variables::new() };
    let mut variables = Variables::from([("MASTER_ADDR", rendezvous.address.clone())]);
    if !order.spec.environment.contains_key(MASTER_PORT) {
        variables.push((MASTER_PORT, rendezvous.port.to_string()));
    }
    variables
}

/// The port on which this rank will listen for the others, unless the job sets its own.
pub(crate) fn rendezvous_port(order: &RunOrder, run: &RankRun) -> Option<u16> {
    let hosts = run.rank == 0 && !order.spec.environment.contains_key(MASTER_PORT);
    order.rendezvous.as_ref().filter(|_| hosts).map(|rendezvous| rendezvous.port)
}
