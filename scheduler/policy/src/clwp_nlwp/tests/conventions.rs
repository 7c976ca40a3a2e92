//! NLWP and the mapper compute the same seconds of communication for the same ranks on the same devices.

use std::sync::Arc;

use proptest::prelude::*;

use cohabit_types::{ModelDescription, PipelineStage};

use super::super::CostWeights;
use super::super::assignment::{AssignmentProblem, CrossNodeSwaps};
use super::super::links::DeviceLink;
use super::super::tasks::{Tasks, TrafficPattern};
use crate::mapping::{JobGraph, Mapper, MapperOptions, Server, Slot};
use crate::tests::kit::{anywhere, job, node};
use crate::{LinkDefaults, NodeView, Profile};

/// Seconds that the slowest task communicates by NLWP, without latencies, with its tasks on the devices of
/// these nodes in order.
fn by_nlwp(model: &ModelDescription, graph: &JobGraph, nodes: &[NodeView], counts: &[u32]) -> f64 {
    let mut job = job(1, anywhere(graph.devices()));
    Arc::make_mut(&mut job.traits).model = Some(model.clone());
    let profile = Profile { graph: Some(Arc::new(graph.clone())), ..Profile::flat(&job.demand, &job.traits) };
    let tasks = Tasks::of(&job, &profile, TrafficPattern::Ring);
    let used = |(at, count): (usize, &u32)| (0..*count as usize).map(move |device| (at, device));
    let devices: Vec<(usize, usize)> = counts.iter().enumerate().flat_map(used).collect();
    let link = |one: &(usize, usize), other: &(usize, usize)| {
        let ends = [one, other].map(|(at, device)| &nodes[*at].devices[*device]);
        let found = match one.0 == other.0 {
            true => DeviceLink::inside(&nodes[one.0], ends[0], ends[1], LinkDefaults::default()),
            false => DeviceLink::outside(&nodes[one.0], &nodes[other.0], LinkDefaults::default()),
        };
        DeviceLink { latency: 0.0, ..found }
    };
    let problem = AssignmentProblem {
        partners: tasks.partners,
        task_nodes: devices.iter().map(|(at, _)| *at).collect(),
        across: CrossNodeSwaps::No,
        own: vec![vec![0.0; devices.len()]; devices.len()],
        hurt: vec![0.0; devices.len()],
        nodes: devices.iter().map(|(at, _)| *at).collect(),
        links: devices.iter().map(|one| devices.iter().map(|other| link(one, other)).collect()).collect(),
        weights: CostWeights { own: 0.0, hurt: 0.0, communication: 1.0 },
    };
    problem.cost(&(0..devices.len()).collect::<Vec<_>>())
}

/// The same by the mapper, for ranks that are numbered in the order of the nodes.
fn by_mapper(graph: &JobGraph, nodes: &[NodeView], counts: &[u32]) -> f64 {
    let defaults = LinkDefaults::default();
    let server = |node: &NodeView| Server {
        free: 0,
        devices: node.devices.len() as u32,
        network: defaults.network.bytes_per_second(),
        interconnect: defaults.interconnect.bytes_per_second(),
        model: "".into(),
    };
    let servers: Vec<Server> = nodes.iter().map(server).collect();
    let slots: Vec<Slot> =
        counts.iter().enumerate().map(|(server, count)| Slot { server, count: *count }).collect();
    Mapper::new(MapperOptions::default()).consecutive(graph, &servers, &slots)
}

proptest! {
    #[test]
    fn communication_takes_as_long_as_the_mapper_says(
        stages in prop::collection::vec((1..5_u32, 0.0..1e9, 0.0..1e9), 1..4),
        cuts in prop::collection::vec(1..5_u32, 16)
    ) {
        let stage = |words: &(u32, f64, f64)| PipelineStage {
            replicas: words.0,
            compute_seconds: 0.0,
            compute_seconds_on: Default::default(),
            activation_bytes: words.1,
            gradient_bytes: words.2,
        };
        let model =
            ModelDescription { stages: stages.iter().map(stage).collect(), ..ModelDescription::default() };
        let mut left: u32 = stages.iter().map(|stage| stage.0).sum();
        let graph = JobGraph::of(&model, left).unwrap();
        let mut counts = Vec::new();
        for cut in cuts {
            counts.extend((left > 0).then_some(cut.min(left)));
            left -= cut.min(left);
        }
        let nodes: Vec<NodeView> = (1..).map(|number| node(number, &[1_000; 4])).take(counts.len()).collect();
        let (nlwp, mapper) = (by_nlwp(&model, &graph, &nodes, &counts), by_mapper(&graph, &nodes, &counts));
        prop_assert!((nlwp - mapper).abs() <= 1e-9 * mapper, "{counts:?}: {nlwp} is not {mapper}");
    }
}
