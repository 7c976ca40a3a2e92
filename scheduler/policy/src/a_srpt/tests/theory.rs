//! The inequalities behind A-SRPT, on random instances with estimated iterations: the lower bounds, the
//! bound for each job in a strict queue, and the bound for the sum.
//!
//! The optimum of an instance is unknown; where a proof needs it, a lower bound stands in, which makes the
//! claim stronger.

use super::bounds::{Numbers, at_most};
use super::instances::{Instance, Shape, completion, place, sum};
use crate::a_srpt::{ASrptOptions, VirtualAlpha};

const ALPHAS: [&str; 3] = ["heavy-edge", "max", "lower-bound"];

/// Instances of each shape.
const SEEDS: u64 = 260;

fn shapes() -> impl Iterator<Item = Shape> {
    let clusters = [(2, 4), (3, 3), (4, 2)].into_iter();
    clusters.flat_map(|(nodes, devices)| {
        [0.0, 0.8].into_iter().map(move |error| Shape { nodes, devices, jobs: 10, error })
    })
}

fn options(pairs: &[(&str, &str)]) -> ASrptOptions {
    let mut options = ASrptOptions::default();
    pairs.iter().for_each(|(key, value)| options.set(key, value).unwrap());
    options
}

#[test]
fn strict_queues_keep_the_bounds_of_each_job_and_of_the_sum() {
    let mut place = place();
    for (shape, seed) in shapes().flat_map(|shape| (0..SEEDS).map(move |seed| (shape, seed))) {
        let instance = Instance::draw(shape, seed);
        let profiles = instance.profiles(&mut place);
        let numbers = Numbers::of(&instance, &profiles, &mut place);
        let turns = instance.turns(&profiles, VirtualAlpha::LowerBound);
        let delta = [0.0, 0.5, 1.0][seed as usize % 3];
        let switches = [
            ("queue", "strict"),
            ("order", "turn"),
            ("virtual-alpha", "lower-bound"),
            ("delta", &delta.to_string()),
        ];
        let ran = instance.run(&options(&switches), &place);
        let crowd = 1.0 + numbers.nu * numbers.rho * numbers.crowding();
        for ((job, profile), (turn, ran)) in instance.jobs.iter().zip(&profiles).zip(turns.iter().zip(&ran)) {
            let patient = turn.as_secs_f64() + delta * profile.runtime.as_secs_f64();
            let longest = job.iterations as f64 * profile.bounds.unwrap().slowest;
            let ended = ran.ended_at.as_secs_f64();
            assert!(at_most(ended, patient * crowd + longest), "seed {seed}: {:?}", ran.job);
        }
        let ratio = numbers.mu * (1.0 + delta) * crowd + numbers.rho;
        assert!(at_most(completion(&ran), ratio * numbers.least), "seed {seed}");
    }
}

#[test]
fn no_schedule_beats_the_virtual_machine_with_exact_estimates() {
    let mut place = place();
    for (shape, seed) in shapes().flat_map(|shape| (0..SEEDS / 3).map(move |seed| (shape, seed))) {
        let instance = Instance::draw(shape, seed);
        let foreseen = instance.foreseen();
        let known = foreseen.profiles(&mut place);
        let relaxed = sum(&foreseen.turns(&known, VirtualAlpha::LowerBound));
        let switches = [
            ("queue", ["greedy", "strict"][seed as usize % 2]),
            ("virtual-alpha", ALPHAS[seed as usize % 3]),
        ];
        assert!(at_most(relaxed, completion(&instance.run(&options(&switches), &place))), "seed {seed}");
    }
}

#[test]
fn the_virtual_optimum_is_within_rho_of_the_least_possible_for_each_alpha() {
    let mut place = place();
    for (shape, seed) in shapes().flat_map(|shape| (0..SEEDS * 3).map(move |seed| (shape, seed))) {
        let foreseen = Instance::draw(shape, seed).foreseen();
        let profiles = foreseen.profiles(&mut place);
        let numbers = Numbers::of(&foreseen, &profiles, &mut place);
        for alpha in [VirtualAlpha::LowerBound, VirtualAlpha::HeavyEdge, VirtualAlpha::Max] {
            let optimum = sum(&foreseen.turns(&profiles, alpha));
            assert!(at_most(optimum, numbers.rho * numbers.least), "seed {seed} {alpha:?}");
        }
    }
}
