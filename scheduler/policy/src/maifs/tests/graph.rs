//! The rule of the three strongest edges, and the graphs to compare with.

use super::instances::Instance;
use crate::maifs::graph::CoordinationGraph;
use crate::maifs::{Coordination, GraphKind, JointObservation, SERVER_FEATURES};

#[test]
fn equal_agents_form_groups_of_four_by_index() {
    let instance = Instance::of(&[&[0.0, 2.0, 1.0][..]; 8], 1.0);
    let graph = CoordinationGraph::of(Coordination::default(), &instance.utilities());
    let four = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    let other = four.map(|(one, two)| (one + 4, two + 4));
    let mut edges = graph.edges().to_vec();
    edges.sort_unstable();
    assert_eq!(edges, [four, other].concat());
}

#[test]
fn the_stronger_edges_of_an_agent_come_first() {
    // The later an agent, the more it wants the only job.
    let rows: Vec<Vec<f32>> = (0..6_u8).map(|at| vec![0.0, 0.2 * f32::from(at)]).collect();
    let rows: Vec<&[f32]> = rows.iter().map(Vec::as_slice).collect();
    let graph = CoordinationGraph::of(Coordination::default(), &Instance::of(&rows, 1.0).utilities());
    let of_last: Vec<(usize, usize)> = graph.edges().iter().filter(|(_, two)| *two == 5).copied().collect();
    assert_eq!(of_last, [(4, 5), (3, 5), (2, 5)]);
}

#[test]
fn agents_that_want_different_jobs_or_none_have_no_edge() {
    let rows: [&[f32]; 4] = [&[0.0, 5.0, 0.0], &[0.0, 0.0, 5.0], &[5.0, 0.0, 0.0], &[5.0, 0.0, 0.0]];
    let instance = Instance::of(&rows, 1.0);
    assert_eq!(CoordinationGraph::of(Coordination::default(), &instance.utilities()).edges(), []);
}

#[test]
fn the_full_graph_leaves_out_padding() {
    let mut instance = Instance::of(&[&[0.0, 1.0][..]; 4], 1.0);
    let mut observation = JointObservation::new(instance.values.shape);
    [0, 1, 3].iter().for_each(|node| observation.set_server(*node, &[0.0; SERVER_FEATURES]));
    instance.observation = observation;
    let graph = |kind| CoordinationGraph::of(Coordination::Agents(kind), &instance.utilities());
    assert_eq!(graph(GraphKind::Full).edges(), [(0, 1), (0, 3), (1, 3)]);
    assert_eq!(graph(GraphKind::Empty).edges(), []);
}
