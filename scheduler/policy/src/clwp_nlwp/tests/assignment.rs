//! Tasks on devices: a cost worked out by hand, and how near the best of all assignments the answer is.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::super::CostWeights;
use super::super::assignment::{AssignmentProblem, CrossNodeSwaps};
use super::super::links::DeviceLink;
use super::super::tasks::Partner;
use crate::mapping::Directions;

const NEAR: DeviceLink = DeviceLink { bandwidth: 10.0, latency: 0.5 };
const FAR: DeviceLink = DeviceLink { bandwidth: 2.0, latency: 1.0 };
const EQUAL: CostWeights = CostWeights { own: 1.0, hurt: 1.0, communication: 1.0 };

/// Devices of one node on these switches; tasks that send each other these bytes, as many each way.
fn problem(switches: &[usize], edges: &[(usize, usize, f64)], tasks: usize) -> AssignmentProblem {
    let mut partners = vec![Vec::new(); tasks];
    for (one, other, bytes) in edges {
        let bytes = Directions { sent: *bytes, received: *bytes };
        partners[*one].push(Partner { task: *other, bytes });
        partners[*other].push(Partner { task: *one, bytes });
    }
    let link = |one: usize, other: usize| if switches[one] == switches[other] { NEAR } else { FAR };
    let devices = 0..switches.len();
    AssignmentProblem {
        partners,
        task_nodes: vec![0; tasks],
        across: CrossNodeSwaps::Nodes,
        own: vec![vec![1.0; devices.len()]; tasks],
        hurt: vec![0.0; devices.len()],
        nodes: vec![0; devices.len()],
        links: devices.clone().map(|one| devices.clone().map(|other| link(one, other)).collect()).collect(),
        weights: EQUAL,
    }
}

#[test]
fn the_cost_of_three_tasks_is_as_worked_out_by_hand() {
    let mut problem = problem(&[0, 0, 1], &[(0, 1, 20.0), (1, 2, 6.0)], 3);
    problem.own[1] = vec![1.0, 4.0, 1.0];
    problem.hurt = vec![0.25, 0.5, 0.0];
    // The second task computes for 4 s. It sends 20 bytes nearby, 2.5 s, and 6 bytes far away, 4 s.
    assert_eq!(problem.cost(&[0, 1, 2]), 4.0 + (2.5 + 4.0) + 0.75);
    problem.weights = CostWeights { own: 2.0, hurt: 10.0, communication: 0.0 };
    assert_eq!(problem.cost(&[0, 1, 2]), 8.0 + 7.5);
}

#[test]
fn a_task_sends_and_receives_at_the_same_time() {
    let mut problem = problem(&[0, 0, 1], &[], 3);
    let bytes = |sent, received| Directions { sent, received };
    let partner = |task, bytes| Partner { task, bytes };
    problem.partners = vec![
        vec![partner(1, bytes(20.0, 0.0)), partner(2, bytes(0.0, 6.0))],
        vec![partner(0, bytes(0.0, 20.0))],
        vec![partner(0, bytes(6.0, 0.0))],
    ];
    // It sends 20 bytes nearby, 2.5 s, while it receives 6 bytes from far away, 4 s.
    assert_eq!(problem.cost(&[0, 1, 2]), 1.0 + 4.0);
    problem.partners[0][1].bytes.received = 1.0;
    problem.partners[2][0].bytes.sent = 1.0;
    assert_eq!(problem.cost(&[0, 1, 2]), 1.0 + 2.5);
}

#[test]
fn tasks_that_communicate_share_a_switch_where_interference_is_equal() {
    let chatty = problem(&[0, 1, 1], &[(0, 1, 100.0)], 2);
    let mut devices = chatty.solve();
    devices.sort_unstable();
    assert_eq!(devices, [1, 2]);
    assert_eq!(problem(&[0, 1, 1], &[], 2).solve(), [0, 1]);
}

#[test]
fn neighbors_that_would_lose_more_than_communication_saves_are_spared() {
    let mut problem = problem(&[0, 1, 1], &[(0, 1, 8.0)], 2);
    // Communication takes 1.3 s nearby, 5 s far away.
    problem.hurt = vec![0.0, 0.0, 3.0];
    assert_eq!(sorted(problem.solve()), [1, 2]);
    problem.hurt[2] = 4.0;
    assert_eq!(sorted(problem.solve()), [0, 1]);
}

fn sorted(mut devices: Vec<usize>) -> Vec<usize> {
    devices.sort_unstable();
    devices
}

#[test]
fn each_node_keeps_as_many_tasks_as_it_was_given() {
    let mut problem = problem(&[0, 0, 1, 1], &[(0, 2, 100.0), (1, 3, 100.0)], 4);
    (problem.task_nodes, problem.nodes) = (vec![0, 0, 1, 1], vec![0, 0, 1, 1]);
    let nodes = |devices: Vec<usize>| devices.into_iter().map(|device| device / 2).collect::<Vec<_>>();
    let exchanged = nodes(problem.solve());
    assert_eq!((exchanged[0], exchanged[1]), (exchanged[2], exchanged[3]));
    assert_ne!(exchanged[0], exchanged[1]);
    problem.across = CrossNodeSwaps::No;
    assert_eq!(nodes(problem.solve()), [0, 0, 1, 1]);
}

/// The least cost of all assignments.
fn least(problem: &AssignmentProblem, chosen: &mut Vec<usize>) -> f64 {
    if chosen.len() == problem.task_nodes.len() {
        return problem.cost(chosen);
    }
    let mut best = f64::INFINITY;
    for device in 0..problem.nodes.len() {
        if !chosen.contains(&device) {
            chosen.push(device);
            best = best.min(least(problem, chosen));
            chosen.pop();
        }
    }
    best
}

/// Up to five tasks with random traffic on up to seven devices.
fn drawn(draws: &mut ChaCha8Rng) -> AssignmentProblem {
    let mut below = |limit: u32| draws.next_u32() % limit;
    let tasks = 2 + below(4) as usize;
    let switches: Vec<usize> = (0..tasks + below(3) as usize).map(|_| below(3) as usize).collect();
    let mut edges = Vec::new();
    for one in 0..tasks {
        for other in one + 1..tasks {
            if below(2) == 0 {
                edges.push((one, other, f64::from(below(40))));
            }
        }
    }
    let mut problem = problem(&switches, &edges, tasks);
    problem.hurt.iter_mut().for_each(|hurt| *hurt = f64::from(below(4)) / 2.0);
    for own in problem.own.iter_mut().flatten() {
        *own = 1.0 + f64::from(below(8)) / 4.0;
    }
    problem
}

#[test]
fn the_answer_is_near_the_best_of_all_assignments() {
    let mut draws = ChaCha8Rng::seed_from_u64(1);
    let ratios: Vec<f64> = (0..400)
        .map(|_| {
            let problem = drawn(&mut draws);
            let solve = problem.solve();
            let mut distinct = sorted(solve.clone());
            distinct.dedup();
            assert_eq!(distinct.len(), problem.task_nodes.len(), "a device for each task");
            assert_eq!(problem.solve(), solve, "the same problem has the same answer");
            problem.cost(&solve) / least(&problem, &mut Vec::new())
        })
        .collect();
    let best = ratios.iter().filter(|ratio| **ratio < 1.0 + 1e-9).count();
    let (mean, worst) = (ratios.iter().sum::<f64>() / 400.0, ratios.iter().copied().fold(0.0, f64::max));
    assert!(ratios.iter().all(|ratio| *ratio > 1.0 - 1e-9));
    assert!(best >= 310 && mean < 1.05 && worst < 2.5, "{best} of 400 are best; mean {mean}, worst {worst}");
}
