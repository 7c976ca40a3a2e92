//! Where the tasks of a job of several devices go.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{
    Demand, DeviceId, GpuPeer, LaunchMode, ModelDescription, PeerPath, PipelineStage, Placement,
    RankPlacement,
};

use super::{Metrics, knows};
use crate::tests::colocated::{plan_of, runs, training};
use crate::tests::kit::{anywhere, gpus, job, node, view};
use crate::{Action, NodeView, PendingJob, View};

/// A job with this model and launch mode.
fn trains(demand: Demand, model: ModelDescription, launch: LaunchMode) -> PendingJob {
    let mut job = job(1, demand);
    let traits = Arc::make_mut(&mut job.traits);
    (traits.model, traits.launch) = (Some(model), launch);
    job
}

fn copies(parameters: u64) -> ModelDescription {
    ModelDescription { parameters: Some(parameters), ..ModelDescription::default() }
}

/// A pipeline of stages with one replica each, which send these bytes to the next stage.
fn pipeline(activation_bytes: &[f64]) -> ModelDescription {
    let stage = |activation_bytes: &f64| PipelineStage {
        replicas: 1,
        compute_seconds: 0.1,
        compute_seconds_on: BTreeMap::new(),
        activation_bytes: *activation_bytes,
        gradient_bytes: 0.0,
    };
    ModelDescription { stages: activation_bytes.iter().map(stage).collect(), ..ModelDescription::default() }
}

fn placement(policy: &str, mut view: View, job: PendingJob) -> Placement {
    let (_, context) = knows(Metrics::default());
    view.pending.insert(job.id, job);
    let mut plan = plan_of(policy, &context, &view);
    match plan.actions.pop() {
        Some(Action::Place { placement, .. }) => placement,
        other => panic!("nobody is stopped and there is room: {other:?}"),
    }
}

/// The nodes by number, with their devices by position.
fn devices(placement: &Placement) -> Vec<(u128, Vec<String>)> {
    let position = |id: &DeviceId| id.0.replace("gpu-", "");
    let part = |part: &RankPlacement| (part.node.0.as_u128(), part.devices.iter().map(position).collect());
    placement.parts.iter().map(part).collect()
}

fn on(node: u128, devices: &[&str]) -> (u128, Vec<String>) {
    (node, devices.iter().map(|it| (*it).to_owned()).collect())
}

/// Four devices, the first two and the last two on one switch each; the first one is taken.
fn two_switches() -> NodeView {
    let mut node = node(1, &[0, 1_000, 1_000, 1_000]);
    for device in 0..4 {
        let others = (0..4).filter(|other| *other != device);
        let path = |other: usize| if other / 2 == device / 2 { PeerPath::Switch } else { PeerPath::System };
        let peer =
            |other: usize| GpuPeer { device: DeviceId(format!("gpu-{other}").into()), path: path(other) };
        node.devices[device].peers = others.map(peer).collect();
    }
    node
}

#[test]
fn tasks_that_communicate_share_a_switch_and_others_go_to_the_first_devices() {
    let at = |policy, parameters| {
        let job = trains(gpus(2), copies(parameters), LaunchMode::PerGpu);
        devices(&placement(policy, view(vec![two_switches()], vec![]), job))
    };
    let sorted = |mut all: Vec<(u128, Vec<String>)>| {
        all.iter_mut().for_each(|(_, devices)| devices.sort());
        all
    };
    assert_eq!(sorted(at("clwp-nlwp", 100_000_000)), [on(1, &["2", "3"])]);
    assert_eq!(at("clwp-nlwp", 0), [on(1, &["1", "2"])]);
    assert_eq!(at("clwp-nlwp:communication=0", 100_000_000), [on(1, &["1", "2"])]);
}

#[test]
fn a_parameter_server_is_where_all_tasks_reach_it_best() {
    let chain = || {
        let mut node = node(1, &[1_000; 3]);
        let peer = |device: usize, path| GpuPeer { device: DeviceId(format!("gpu-{device}").into()), path };
        node.devices[0].peers = vec![peer(1, PeerPath::Switch), peer(2, PeerPath::System)];
        node.devices[1].peers = vec![peer(0, PeerPath::Switch), peer(2, PeerPath::Switch)];
        node.devices[2].peers = vec![peer(0, PeerPath::System), peer(1, PeerPath::Switch)];
        view(vec![node], vec![])
    };
    let job = || trains(gpus(3), copies(100_000_000), LaunchMode::PerGpu);
    let served = placement("clwp-nlwp:traffic=parameter-server", chain(), job());
    assert_eq!(devices(&served)[0].1[0], "1");
    // In a ring all tasks have two neighbors, so no device is better.
    assert_eq!(devices(&placement("clwp-nlwp", chain(), job()))[0].1[0], "0");
}

#[test]
fn ranks_are_swapped_between_nodes_where_each_can_be_put_on_a_device() {
    let at = |launch| {
        let nodes = vec![node(1, &[1_000; 2]), node(2, &[1_000; 2])];
        placement(
            "clwp-nlwp",
            view(nodes, vec![]),
            trains(anywhere(4), pipeline(&[1e3, 1e9, 1e3, 0.0]), launch),
        )
    };
    let ranks =
        |placement: &Placement| placement.parts.iter().map(|part| part.ranks.clone()).collect::<Vec<_>>();
    // The second and the third stage exchange most.
    assert_eq!(ranks(&at(LaunchMode::PerGpu)), [[0, 3], [1, 2]]);
    assert_eq!(ranks(&at(LaunchMode::PerNode)), [[0; 0]; 2]);
}

#[test]
fn a_job_larger_than_any_node_takes_the_best_nodes() {
    let mut view = view((1..=3).map(|number| node(number, &[1_000; 3])).collect(), vec![]);
    runs(&mut view, training(101, "light", 100), 0, 0, 50);
    runs(&mut view, training(102, "heavy", 100), 1, 0, 50);
    let at = placement("clwp-nlwp:mu=1", view, job(1, anywhere(6)));
    assert_eq!(devices(&at), [on(3, &["0", "1", "2"]), on(1, &["1", "2"]), on(2, &["1"])]);
}

#[test]
fn a_job_is_split_over_as_few_nodes_as_possible() {
    let mut view = view(vec![node(1, &[1_000]), node(2, &[1_000]), node(3, &[1_000; 4])], vec![]);
    runs(&mut view, training(101, "heavy", 100), 2, 0, 50);
    let at = devices(&placement("clwp-nlwp", view, job(1, anywhere(4))));
    assert_eq!(at, [on(3, &["1", "2", "3"]), on(1, &["0"])]);
}

#[test]
fn whole_devices_go_to_one_node_that_fits_or_to_as_many_as_demanded() {
    let nodes = || {
        let mut view = view((1..=3).map(|number| node(number, &[1_000; 3])).collect(), vec![]);
        runs(&mut view, training(101, "heavy", 100), 0, 0, 50);
        view
    };
    assert_eq!(devices(&placement("clwp-nlwp", nodes(), job(1, anywhere(3)))), [on(2, &["0", "1", "2"])]);
    assert_eq!(devices(&placement("clwp-nlwp", nodes(), job(1, gpus(2)))), [on(2, &["0", "1"])]);
    let gang = Demand { nodes: 3, ..gpus(2) };
    let at = devices(&placement("clwp-nlwp", nodes(), job(1, gang)));
    assert_eq!(at, [on(2, &["0", "1"]), on(3, &["0", "1"]), on(1, &["1", "2"])]);
}

#[test]
fn a_faster_kind_of_gpu_on_the_node_is_taken() {
    let mut mixed = node(1, &[1_000; 2]);
    (mixed.devices[0].model, mixed.devices[1].model) = ("K80".into(), "A100".into());
    assert_eq!(devices(&placement("clwp-nlwp", view(vec![mixed], vec![]), job(1, gpus(1)))), [on(1, &["1"])]);
}
