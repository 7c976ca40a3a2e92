//! The placer that most policies share: tight fits, and ranks placed so that little traffic crosses the
//! network.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{
    Bandwidth, Demand, DeviceId, LaunchMode, LinkBandwidths, ModelDescription, PipelineStage, Placement,
    RankPlacement,
};
use proptest::prelude::*;

use super::kit::*;
use crate::mapping::MapperOptions;
use crate::{
    ClusterChange, FirstFit, FreeNodes, LinkDefaults, MappedPlacer, NodeView, PendingJob, Placer, Profile,
};
use crate::{Proposal, Shortage, View, ViewChange};

fn placer() -> MappedPlacer {
    MappedPlacer::new(MapperOptions::default(), LinkDefaults::default())
}

fn propose(nodes: Vec<NodeView>, job: &PendingJob) -> Result<Proposal, Shortage> {
    let view = View { nodes, ..View::default() };
    let mut place = placer();
    place.prepare(&view);
    let profile = place.profile(&job.demand, &job.traits);
    let proposal = place.place(job, &profile, &FreeNodes::new(&view.nodes))?;
    assert_eq!(place.slowdown(&profile, &proposal.placement), proposal.slowdown, "as it was proposed");
    Ok(proposal)
}

/// The nodes of a placement by number, each with its devices by position.
fn placed_on(placement: &Placement) -> Vec<(u128, Vec<String>)> {
    let device = |id: &DeviceId| id.0.replace("gpu-", "");
    let place = |part: &RankPlacement| (part.node.0.as_u128(), part.devices.iter().map(device).collect());
    placement.parts.iter().map(place).collect()
}

fn at(demand: Demand, nodes: Vec<NodeView>) -> Vec<(u128, Vec<String>)> {
    placed_on(&propose(nodes, &job(1, demand)).unwrap().placement)
}

fn stage(replicas: u32, activation_bytes: f64, gradient_bytes: f64) -> PipelineStage {
    PipelineStage {
        replicas,
        compute_seconds: 0.1,
        compute_seconds_on: BTreeMap::new(),
        activation_bytes,
        gradient_bytes,
    }
}

fn training(number: u64, demand: Demand, stages: Vec<PipelineStage>, launch: LaunchMode) -> PendingJob {
    let mut job = job(number, demand);
    let traits = Arc::make_mut(&mut job.traits);
    traits.model = Some(ModelDescription { stages, ..ModelDescription::default() });
    traits.launch = launch;
    job
}

#[test]
fn whole_devices_go_to_the_tightest_node() {
    let nodes = || vec![node(1, &[1_000; 4]), node(2, &[0, 1_000, 1_000]), node(3, &[1_000, 1_000])];
    assert_eq!(at(gpus(2), nodes()), [(2, vec!["1".into(), "2".into()])]);
    assert_eq!(at(anywhere(2), nodes()), [(2, vec!["1".into(), "2".into()])]);
    assert_eq!(at(gpus(3), nodes())[0].0, 1);
}

#[test]
fn a_gang_takes_the_tightest_nodes() {
    let nodes = vec![node(1, &[1_000; 4]), node(2, &[1_000; 2]), node(3, &[1_000; 3]), node(4, &[1_000])];
    let gang = Demand { nodes: 2, ..gpus(2) };
    assert_eq!(at(gang, nodes).iter().map(|it| it.0).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn a_job_for_any_nodes_takes_as_few_as_possible() {
    let nodes = vec![node(1, &[1_000]), node(2, &[1_000; 3]), node(3, &[1_000; 2]), node(4, &[1_000; 4])];
    let proposal = propose(nodes, &job(1, anywhere(6))).unwrap();
    assert_eq!(placed_on(&proposal.placement).iter().map(|it| it.0).collect::<Vec<_>>(), [4, 3]);
    assert_eq!(proposal.why, "6 GPUs on 2 nodes");
}

#[test]
fn a_part_goes_to_the_fullest_device_that_fits() {
    let nodes = vec![node(1, &[1_000, 600]), node(2, &[300, 500, 900]), node(3, &[500])];
    assert_eq!(at(part(400), nodes), [(2, vec!["1".into()])]);
}

#[test]
fn a_job_without_devices_goes_to_the_node_with_the_fewest_free_cores() {
    let busy = NodeView { cpus_free: 3, ..node(2, &[0]) };
    let full = NodeView { cpus_free: 1, ..node(3, &[0]) };
    let needs = Demand { cpus: 2, ..gpus(0) };
    assert_eq!(at(needs, vec![node(1, &[1_000]), busy, full]), [(2, vec![])]);
}

#[test]
fn ranks_that_communicate_most_share_a_node() {
    // Two pipelines of two stages with heavy rings: stages must not be split.
    let stages = vec![stage(2, 1e3, 1e9), stage(2, 1e3, 1e9)];
    let job = training(1, anywhere(4), stages, LaunchMode::PerGpu);
    let nodes = vec![node(1, &[1_000; 2]), node(2, &[1_000; 2]), node(3, &[1_000, 0, 0, 0])];
    let proposal = propose(nodes, &job).unwrap();
    let ranks: Vec<&[u32]> = proposal.placement.parts.iter().map(|part| &part.ranks[..]).collect();
    assert_eq!(ranks, [&[0, 1], &[2, 3]]);
}

#[test]
fn the_node_with_rank_0_comes_first() {
    // The second stage fills the larger node; the first one, with rank 0, gets the smaller node.
    let stages = vec![stage(1, 1e3, 0.0), stage(3, 0.0, 1e9)];
    let job = training(1, anywhere(4), stages, LaunchMode::PerGpu);
    let proposal = propose(vec![node(1, &[1_000; 3]), node(2, &[1_000])], &job).unwrap();
    let parts = &proposal.placement.parts;
    assert_eq!((parts[0].node.0.as_u128(), &parts[0].ranks[..]), (2, &[0][..]));
    assert_eq!(parts[1].ranks, [1, 2, 3]);
}

#[test]
fn a_command_that_launches_its_own_ranks_is_rated_by_the_order_of_the_nodes() {
    // The best mapping would pair replicas of both stages; numbered in order, stages are split.
    let stages = || vec![stage(2, 1e9, 0.0), stage(2, 0.0, 0.0)];
    let nodes = || vec![node(1, &[1_000; 2]), node(2, &[1_000; 2])];
    let ours = propose(nodes(), &training(1, anywhere(4), stages(), LaunchMode::PerGpu)).unwrap();
    let theirs = propose(nodes(), &training(1, anywhere(4), stages(), LaunchMode::PerNode)).unwrap();
    assert!(theirs.placement.parts.iter().all(|part| part.ranks.is_empty()), "{theirs:?}");
    assert!(theirs.slowdown > ours.slowdown * 1.3, "{} {}", theirs.slowdown, ours.slowdown);
    assert_eq!(ours.why, "4 GPUs on 2 nodes, as fast as the best placement");
    assert!(theirs.why.starts_with("4 GPUs on 2 nodes, an iteration takes"), "{}", theirs.why);
}

#[test]
fn a_placement_is_compared_with_the_best_on_the_empty_cluster() {
    let job = training(1, anywhere(4), vec![stage(4, 0.0, 1e9)], LaunchMode::PerGpu);
    let whole = propose(vec![node(1, &[1_000; 4]), node(2, &[1_000; 4])], &job).unwrap();
    assert_eq!((whole.slowdown, whole.why.as_str()), (1.0, ""));
    let torn = propose(vec![node(1, &[1_000, 1_000, 0, 0]), node(2, &[1_000, 0, 0, 1_000])], &job).unwrap();
    assert!(torn.slowdown > 2.0, "{torn:?}");
    assert!(torn.why.contains("4 GPUs on 2 nodes, an iteration takes"), "{}", torn.why);
}

#[test]
fn bounds_hold_until_the_nodes_change() {
    let mut place = placer();
    let look =
        |place: &mut MappedPlacer, nodes: Vec<NodeView>| place.prepare(&View { nodes, ..View::default() });
    assert_eq!(look(&mut place, vec![node(1, &[1_000])]), ClusterChange::Changed);
    assert_eq!(look(&mut place, vec![node(1, &[0])]), ClusterChange::Same, "only what is free differs");
    assert_eq!(look(&mut place, vec![node(1, &[1_000, 1_000])]), ClusterChange::Changed);
    let links = LinkBandwidths { network: Some(Bandwidth(1_000_000_000)), interconnect: None };
    let slow = NodeView { links, ..node(1, &[1_000, 1_000]) };
    assert_eq!(look(&mut place, vec![slow]), ClusterChange::Changed);
    assert_eq!(look(&mut place, vec![]), ClusterChange::Changed);
}

#[test]
fn a_graph_on_a_cluster_without_nodes_waits_for_them() {
    let gang = training(1, Demand { nodes: 2, ..gpus(2) }, vec![stage(4, 0.0, 1e9)], LaunchMode::PerGpu);
    assert_eq!(propose(vec![], &gang), Err(Shortage::Nodes));
}

fn demands() -> impl Strategy<Value = Demand> {
    let shape = prop_oneof![
        (1_u32..1_000).prop_map(part),
        (0_u32..5).prop_map(gpus),
        (1_u32..10).prop_map(anywhere),
        (1_u32..3, 2_u32..4).prop_map(|(devices, nodes)| Demand { nodes, ..gpus(devices) })
    ];
    (shape, 0_u32..10).prop_map(|(demand, cpus)| Demand { cpus, ..demand })
}

proptest! {
    /// A shortage is real, and a placement is valid.
    #[test]
    fn it_fits_jobs_wherever_first_fit_does(
        demand in demands(),
        free in prop::collection::vec(
            prop::collection::vec(prop_oneof![Just(1_000_u32), 0_u32..1_000], 0..5),
            0..5,
        ),
        launch in prop_oneof![Just(LaunchMode::PerGpu), Just(LaunchMode::PerNode)],
    ) {
        let nodes: Vec<NodeView> = (0..).zip(&free).map(|(number, free)| node(number, free)).collect();
        let room = FreeNodes::new(&nodes);
        let plain = job(1, demand);
        let flat = Profile::flat(&demand, &plain.traits);
        let by_first_fit = FirstFit.place(&plain, &flat, &room);
        let graphed = training(1, demand, vec![stage(demand.total_devices(), 1e6, 1e8)], launch);
        for job in [plain, graphed] {
            match propose(nodes.clone(), &job) {
                Ok(proposal) => prop_assert_eq!(fits(&room, &demand, &proposal.placement), Ok(())),
                Err(shortage) => prop_assert_eq!(by_first_fit.as_ref().err(), Some(&shortage)),
            }
            prop_assert_eq!(propose(nodes.clone(), &job).is_ok(), by_first_fit.is_ok());
        }
    }
}

#[test]
fn a_node_that_is_gone_holds_nothing() {
    let mut place = placer();
    let mut view = View { nodes: vec![node(1, &[1_000; 4]), node(2, &[1_000; 4])], ..View::default() };
    place.learn(&view, &view.as_changes());
    place.prepare(&view);
    let gone = view.nodes.pop().map(|node| ViewChange::NodeGone(node.id)).unwrap();
    place.learn(&view, std::slice::from_ref(&gone));
    assert_eq!(place.prepare(&view), ClusterChange::Changed);
    let change = ViewChange::Node(view.nodes[0].clone());
    place.learn(&view, &[change]);
    assert_eq!(place.prepare(&view), ClusterChange::Same);
}
