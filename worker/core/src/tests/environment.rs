//! The environment of ranks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{
    Array, Bytes, Demand, DeviceId, IndexRange, JobId, LaunchMode, RankRun, Rendezvous, RunOrder, Share,
};

use super::kit::{limited, order, spec};
use crate::environment::{environment, rendezvous_port};

/// The second of two nodes with two devices each.
fn second_node(mut order: RunOrder) -> RunOrder {
    order.attempt = JobId::member(7, 5).attempt(2);
    order.nodes.push("10.0.0.2".into());
    order.world_size = 4;
    order.ranks = vec![2, 3].into_iter().map(|rank| on_second_node(&order, rank)).collect();
    order
}

fn on_second_node(order: &RunOrder, rank: u32) -> RankRun {
    RankRun { rank, local_rank: rank - 2, node_rank: 1, ..order.ranks[0].clone() }
}

fn of_last_rank(order: &RunOrder) -> BTreeMap<Cow<'static, str>, String> {
    environment(order, order.ranks.last().unwrap())
}

#[track_caller]
fn says(environment: &BTreeMap<Cow<'static, str>, String>, expected: &[(&str, &str)]) {
    let expected = expected.iter().map(|(name, value)| (Cow::from((*name).to_owned()), (*value).to_owned()));
    assert_eq!(*environment, expected.collect());
}

#[test]
fn a_plain_job_gets_our_variables_and_those_for_a_launcher() {
    says(
        &of_last_rank(&order(spec(), 1)),
        &[
            ("COHABIT_ATTEMPT", "1"),
            ("COHABIT_JOB_ID", "7"),
            ("COHABIT_JOB_NAME", "train"),
            ("COHABIT_NNODES", "1"),
            ("COHABIT_NODE_RANK", "0"),
            ("COHABIT_RANK", "0"),
            ("COHABIT_SHARE", "1"),
            ("COHABIT_SUBMIT_DIR", "/home/ada"),
            ("COHABIT_WORLD_SIZE", "1"),
            ("MASTER_ADDR", "10.0.0.1"),
            ("MASTER_PORT", "29600"),
            ("NNODES", "1"),
            ("NODE_RANK", "0"),
            ("NPROC_PER_NODE", "1"),
        ],
    );
}

#[test]
fn a_rank_per_device_gets_the_variables_of_torchrun() {
    let mut spec = limited(60, None);
    spec.launch = LaunchMode::PerGpu;
    spec.retry.limit = 3;
    let mut environment = of_last_rank(&second_node(order(spec, 2)));
    environment.retain(|name, _| !name.starts_with("COHABIT_"));
    says(
        &environment,
        &[
            ("GROUP_RANK", "1"),
            ("GROUP_WORLD_SIZE", "2"),
            ("LOCAL_RANK", "1"),
            ("LOCAL_WORLD_SIZE", "2"),
            ("MASTER_ADDR", "10.0.0.1"),
            ("MASTER_PORT", "29600"),
            ("OMP_NUM_THREADS", "1"),
            ("RANK", "3"),
            ("ROLE_NAME", "default"),
            ("ROLE_RANK", "3"),
            ("ROLE_WORLD_SIZE", "4"),
            ("TORCHELASTIC_MAX_RESTARTS", "3"),
            ("TORCHELASTIC_RESTART_COUNT", "1"),
            ("TORCHELASTIC_RUN_ID", "7.5"),
            ("WORLD_SIZE", "4"),
        ],
    );
}

/// The second of two nodes, on which lie ranks 4 and 0 of six; the first has the other four.
fn uneven(launch: LaunchMode) -> RunOrder {
    let mut spec = spec();
    spec.launch = launch;
    let mut order = order(spec, 6);
    order.nodes.push("10.0.0.2".into());
    let devices = |local_rank: u32| vec![DeviceId(format!("gpu-{local_rank}").into())];
    let alone = |(local_rank, rank)| RankRun {
        rank,
        local_rank,
        node_rank: 1,
        devices: devices(local_rank),
        share: Share::WHOLE,
    };
    order.ranks = match launch {
        LaunchMode::PerGpu => [(0, 4), (1, 0)].into_iter().map(alone).collect(),
        LaunchMode::PerNode => vec![RankRun { devices: [devices(0), devices(1)].concat(), ..alone((0, 1)) }],
    };
    order
}

#[test]
fn local_ranks_are_counted_on_their_own_node() {
    let environment = of_last_rank(&uneven(LaunchMode::PerGpu));
    let values = ["RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "WORLD_SIZE", "GROUP_RANK"]
        .map(|name| environment[name].as_str());
    assert_eq!(values, ["0", "1", "2", "6", "1"]);
}

#[test]
fn a_launcher_gets_the_number_of_devices_of_its_node() {
    let environment = of_last_rank(&uneven(LaunchMode::PerNode));
    let values = ["NODE_RANK", "NNODES", "NPROC_PER_NODE"].map(|name| environment[name].as_str());
    assert_eq!(values, ["1", "2", "2"]);
}

#[test]
fn only_rank_0_listens_on_the_rendezvous_port() {
    let mut order = uneven(LaunchMode::PerGpu);
    order.rendezvous = Some(Rendezvous { address: "10.0.0.2".into(), port: 29_777 });
    let listens =
        |order: &RunOrder| order.ranks.iter().map(|run| rendezvous_port(order, run)).collect::<Vec<_>>();
    assert_eq!(listens(&order), [None, Some(29_777)]);
    let environment = of_last_rank(&order);
    let values = ["MASTER_ADDR", "MASTER_PORT"].map(|name| environment[name].as_str());
    assert_eq!(values, ["10.0.0.2", "29777"]);
    Arc::make_mut(&mut order.spec).environment.insert("MASTER_PORT".into(), "1234".into());
    assert_eq!(listens(&order), [None, None], "the job looks after a port of its own");
    assert!(!of_last_rank(&order).contains_key("MASTER_PORT"));
    order.rendezvous = None;
    assert!(!of_last_rank(&order).contains_key("MASTER_ADDR"));
}

#[test]
fn ranks_of_a_node_divide_its_claimed_cores_unless_the_job_says_how_many_threads() {
    let mut order = uneven(LaunchMode::PerGpu);
    Arc::make_mut(&mut order.spec).demand.cpus = 9;
    assert_eq!(of_last_rank(&order)["OMP_NUM_THREADS"], "4");
    Arc::make_mut(&mut order.spec).environment.insert("OMP_NUM_THREADS".into(), "7".into());
    assert!(!of_last_rank(&order).contains_key("OMP_NUM_THREADS"), "the job's own value is added elsewhere");
    assert!(!of_last_rank(&uneven(LaunchMode::PerNode)).contains_key("OMP_NUM_THREADS"));
}

#[test]
fn array_index_limits_and_share_are_in_the_environment() {
    let mut order = second_node(order(limited(60, None), 2));
    order.ranks[1].share = Share(250);
    let environment = of_last_rank(&order);
    let value = |name: &str| environment.get(name).map(String::as_str);
    assert_eq!(value("COHABIT_JOB_ID"), Some("7.5"));
    assert_eq!(value("COHABIT_ARRAY_INDEX"), Some("5"));
    assert_eq!(value("COHABIT_SHARE"), Some("0.25"));
}

#[test]
fn slurm_variables_are_set_on_request() {
    let mut spec = limited(60, None);
    spec.slurm_environment = true;
    spec.partition = Some("gpu".into());
    spec.demand = Demand { cpus: 8, memory: Bytes(3 << 30), ..spec.demand };
    let ranges = vec![IndexRange { first: 2, last: 9, step: 3 }, IndexRange { first: 1, last: 1, step: 1 }];
    spec.array = Some(Array { ranges, at_once: None });
    let mut environment = of_last_rank(&second_node(order(spec, 2)));
    environment.retain(|name, _| name.starts_with("SLURM"));
    says(
        &environment,
        &[
            ("SLURMD_NODENAME", "10.0.0.2"),
            ("SLURM_ARRAY_JOB_ID", "7"),
            ("SLURM_ARRAY_TASK_COUNT", "4"),
            ("SLURM_ARRAY_TASK_ID", "5"),
            ("SLURM_ARRAY_TASK_MAX", "8"),
            ("SLURM_ARRAY_TASK_MIN", "1"),
            ("SLURM_ARRAY_TASK_STEP", "3"),
            ("SLURM_CLUSTER_NAME", "cohabit"),
            ("SLURM_CPUS_ON_NODE", "8"),
            ("SLURM_CPUS_PER_TASK", "4"),
            ("SLURM_GPUS_ON_NODE", "2"),
            ("SLURM_JOBID", "7"),
            ("SLURM_JOB_CPUS_PER_NODE", "8"),
            ("SLURM_JOB_ID", "7"),
            ("SLURM_JOB_NAME", "train"),
            ("SLURM_JOB_NODELIST", "10.0.0.1,10.0.0.2"),
            ("SLURM_JOB_NUM_NODES", "2"),
            ("SLURM_JOB_PARTITION", "gpu"),
            ("SLURM_JOB_USER", "ada"),
            ("SLURM_LOCALID", "1"),
            ("SLURM_MEM_PER_NODE", "3072"),
            ("SLURM_NNODES", "2"),
            ("SLURM_NODEID", "1"),
            ("SLURM_NODELIST", "10.0.0.1,10.0.0.2"),
            ("SLURM_NPROCS", "4"),
            ("SLURM_NTASKS", "4"),
            ("SLURM_PROCID", "3"),
            ("SLURM_RESTART_COUNT", "1"),
            ("SLURM_SUBMIT_DIR", "/home/ada"),
        ],
    );
}

#[test]
fn tasks_that_a_script_starts_itself_are_counted_as_it_says() {
    let mut spec = spec();
    spec.slurm_environment = true;
    spec.demand.cpus = 8;
    spec.environment = [("SLURM_NTASKS", "4"), ("SLURM_CPUS_PER_TASK", "2")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let environment = of_last_rank(&order(spec, 1));
    let value = |name: &str| environment.get(name).map(String::as_str);
    let found = ["SLURM_NTASKS", "SLURM_NPROCS", "SLURM_CPUS_PER_TASK"].map(value);
    assert_eq!(found, [Some("4"), Some("4"), Some("2")]);
    assert_eq!(value("SLURM_ARRAY_TASK_ID"), None);
}
