//! NLWP: assigns the tasks of one job to the devices of its nodes, one task per device.
//!
//! Tasks that communicate most are placed first, each where it costs least; then tasks are moved and swapped
//! while that makes an iteration of the job shorter or harms its neighbors less. Pure arithmetic.

use super::CostWeights;
use super::links::DeviceLink;
use super::tasks::{Partner, Tasks};
use crate::mapping::Directions;

/// What is to be decided.
#[derive(Debug, Clone)]
pub(super) struct AssignmentProblem {
    /// The partners of each task.
    pub(super) partners: Vec<Vec<Partner>>,
    /// The node of each task; a node has at least as many devices as tasks.
    pub(super) task_nodes: Vec<usize>,
    /// Whether tasks may be swapped between nodes.
    pub(super) across: CrossNodeSwaps,
    /// Seconds of an iteration of each task on each device, without communication.
    pub(super) own: Vec<Vec<f64>>,
    /// Seconds that a task on a device costs the jobs there.
    pub(super) hurt: Vec<f64>,
    /// The node of each device.
    pub(super) nodes: Vec<usize>,
    /// The links from each device to each other one.
    pub(super) links: Vec<Vec<DeviceLink>>,
    pub(super) weights: CostWeights,
}

/// Whether tasks of different nodes can be swapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CrossNodeSwaps {
    /// They can.
    Nodes,
    /// They cannot: their numbers follow from the order of the nodes.
    No,
}

/// The largest number of improvement steps.
const ROUNDS: usize = 20;
/// Jobs with more tasks keep their first assignment: the number of swaps grows with the square.
const MAX_REFINED: usize = 64;
/// A smaller relative improvement is rounding noise.
const NOTABLE: f64 = 1e-9;

/// A change of the assignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A task to a free device.
    Move(usize, usize),
    /// Two tasks.
    Swap(usize, usize),
}

impl AssignmentProblem {
    /// The device of each task.
    pub(super) fn solve(&self) -> Vec<usize> {
        let mut devices = self.place_greedily();
        if self.task_nodes.len() > MAX_REFINED {
            return devices;
        }
        for _ in 0..ROUNDS {
            let now = self.cost(&devices);
            let tried = self.steps(&devices).into_iter().map(|step| {
                let devices = after(&devices, step);
                (self.cost(&devices), devices)
            });
            match tried.reduce(|best, next| if next.0 < best.0 { next } else { best }) {
                Some((cost, better)) if cost < now - NOTABLE * now.abs() => devices = better,
                Some(_) | None => break,
            }
        }
        devices
    }

    /// Tasks that communicate most first, each where it costs least beside those that are placed already.
    fn place_greedily(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.task_nodes.len()).collect();
        let total = |task: &usize| Tasks::total(&self.partners[*task]);
        order.sort_by(|one, other| total(other).total_cmp(&total(one)));
        let mut devices: Vec<Option<usize>> = vec![None; self.task_nodes.len()];
        let mut is_taken = vec![false; self.nodes.len()];
        for task in order {
            let is_open = |device: &usize| !is_taken[*device] && self.nodes[*device] == self.task_nodes[task];
            let cost = |device: usize| self.cost_of_task(task, device, &devices);
            let open = (0..self.nodes.len()).filter(is_open).map(|device| (cost(device), device));
            let least = open.reduce(|best, next| if next.0 < best.0 { next } else { best });
            let (_, device) = least.expect("each node has a device for each of its tasks");
            is_taken[device] = true;
            devices[task] = Some(device);
        }
        devices.into_iter().flatten().collect()
    }

    /// The cost of one more task on a device, in seconds.
    fn cost_of_task(&self, task: usize, device: usize, placed: &[Option<usize>]) -> f64 {
        let communication = self.communication(task, device, |partner| placed[partner]);
        self.weights.total(self.own[task][device], self.hurt[device], communication)
    }

    /// The cost of an iteration, in seconds: all tasks wait for the slowest computation and for the slowest
    /// communication; what neighbors lose is added.
    pub(super) fn cost(&self, devices: &[usize]) -> f64 {
        let largest = |seconds: &dyn Fn(usize) -> f64| (0..devices.len()).map(seconds).fold(0.0, f64::max);
        let own = largest(&|task| self.own[task][devices[task]]);
        let communication =
            largest(&|task| self.communication(task, devices[task], |partner| Some(devices[partner])));
        let hurt: f64 = devices.iter().map(|device| self.hurt[*device]).sum();
        self.weights.total(own, hurt, communication)
    }

    /// Seconds that a task on a device communicates with its partners, as far as they have devices: it sends
    /// and receives at the same time.
    fn communication(&self, task: usize, device: usize, placed: impl Fn(usize) -> Option<usize>) -> f64 {
        let mut seconds = Directions::default();
        for partner in &self.partners[task] {
            if let Some(other) = placed(partner.task) {
                let link = self.links[device][other];
                seconds.sent += link.seconds(partner.bytes.sent);
                seconds.received += link.seconds(partner.bytes.received);
            }
        }
        seconds.larger()
    }

    /// All moves to free devices of a task's node, and all swaps of two tasks.
    fn steps(&self, devices: &[usize]) -> Vec<Step> {
        let tasks = 0..devices.len();
        let open: Vec<usize> = (0..self.nodes.len()).filter(|device| !devices.contains(device)).collect();
        let moves = tasks.clone().flat_map(|task| {
            let node = self.nodes[devices[task]];
            let open = open.iter().filter(move |device| self.nodes[**device] == node);
            open.map(move |device| Step::Move(task, *device))
        });
        let swaps = tasks.clone().flat_map(|one| (one + 1..devices.len()).map(move |other| (one, other)));
        let may = |(one, other): &(usize, usize)| match self.across {
            CrossNodeSwaps::Nodes => true,
            CrossNodeSwaps::No => self.nodes[devices[*one]] == self.nodes[devices[*other]],
        };
        moves.chain(swaps.filter(may).map(|(one, other)| Step::Swap(one, other))).collect()
    }
}

fn after(devices: &[usize], step: Step) -> Vec<usize> {
    let mut devices = devices.to_vec();
    match step {
        Step::Move(task, device) => devices[task] = device,
        Step::Swap(one, other) => devices.swap(one, other),
    }
    devices
}
