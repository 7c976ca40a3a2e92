//! What holds on every instance with all options.

use super::instances::{Instance, Shape, place, spread};
use crate::a_srpt::{ASrptOptions, VirtualAlpha};

const VARIANTS: [&[(&str, &str)]; 8] = [
    &[],
    &[("queue", "strict"), ("order", "turn")],
    &[("theta", "inf")],
    &[("delta", "inf"), ("tau", "20")],
    &[("starvation-barrier", "reserve")],
    &[("starvation-barrier", "block"), ("order", "turn")],
    &[("virtual-alpha", "max")],
    &[("virtual-machine", "off")],
];

const SHAPE: Shape = Shape { nodes: 3, devices: 4, jobs: 25, error: 0.5 };

fn options(pairs: &[(&str, &str)]) -> ASrptOptions {
    let mut options = ASrptOptions::default();
    pairs.iter().for_each(|(key, value)| options.set(key, value).unwrap());
    options
}

#[test]
fn no_job_starts_before_its_virtual_turn_and_every_placement_is_within_its_bounds() {
    let mut place = place();
    for seed in 0..140 {
        let options = options(VARIANTS[seed as usize % VARIANTS.len()]);
        let instance = Instance::draw(SHAPE, seed);
        let profiles = instance.profiles(&mut place);
        let turns = instance.turns(&profiles, options.virtual_alpha);
        let guided = options.virtual_machine == crate::mapping::Toggle::On;
        for ((ran, profile), turn) in instance.run(&options, &place).iter().zip(&profiles).zip(turns) {
            assert!(turn >= ran.arrived_at, "seed {seed}: {:?}", ran.job);
            assert!(
                ran.started_at >= if guided { turn } else { ran.arrived_at },
                "seed {seed}: {:?}",
                ran.job
            );
            let bounds = profile.bounds.unwrap();
            let alpha = ran.slowdown * bounds.fastest;
            let within = bounds.floor * (1.0 - 1e-9)..=bounds.slowest * (1.0 + 1e-9);
            assert!(within.contains(&alpha), "seed {seed}: {alpha} of {bounds:?}");
            assert_eq!(ran.attempts, 1, "nobody is stopped");
        }
    }
}

#[test]
fn the_same_instance_gets_the_same_schedule_twice() {
    let place = place();
    for seed in 0..20 {
        let instance = Instance::draw(SHAPE, seed);
        let run = || instance.run(&ASrptOptions::default(), &place);
        let timeline = |ran: Vec<crate::tests::cluster::Ran>| -> Vec<_> {
            ran.into_iter().map(|it| (it.job, it.started_at, it.ended_at, it.placement, it.why)).collect()
        };
        assert_eq!(timeline(run()), timeline(run()));
    }
}

#[test]
fn delays_put_jobs_on_fewer_nodes() {
    let place = place();
    let nodes = |switches: &[(&str, &str)]| -> usize {
        let spreads = (0..30).map(|seed| {
            let ran = Instance::draw(SHAPE, seed).run(&options(switches), &place);
            ran.iter().map(|it| spread(&it.placement)).sum::<usize>()
        });
        spreads.sum()
    };
    let (patient, hasty) = (nodes(&[]), nodes(&[("theta", "inf")]));
    assert!(patient < hasty, "{patient} nodes in all against {hasty}");
}

#[test]
fn a_smaller_alpha_brings_no_job_a_later_turn() {
    let mut place = place();
    for seed in 0..50 {
        let instance = Instance::draw(SHAPE, seed);
        let profiles = instance.profiles(&mut place);
        let latest = |alpha| instance.turns(&profiles, alpha).into_iter().max();
        assert!(latest(VirtualAlpha::LowerBound) <= latest(VirtualAlpha::HeavyEdge));
        assert!(latest(VirtualAlpha::HeavyEdge) <= latest(VirtualAlpha::Max));
    }
}
