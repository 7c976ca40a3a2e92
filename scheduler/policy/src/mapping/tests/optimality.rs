//! The mapper compared with the best of all assignments, on random jobs of eight devices. Jobs follow from
//! fixed seeds, so the figures are always the same, and the limits leave no room for a worse mapper.

use std::io::Write;

use super::reference::optimum;
use super::{TEN_GIGABIT, model, random_stages, server};
use crate::mapping::{IterationModel, JobGraph, Mapper, MapperOptions, Server, Slot, Toggle};

/// How eight devices may be spread over several servers.
const COUNTS: [&[u32]; 4] = [&[4, 4], &[5, 3], &[3, 3, 2], &[2, 2, 2, 2]];

/// The mapper's alpha over the optimum, for each of these jobs.
fn ratios(jobs: std::ops::Range<u64>, counts: &[u32], network: f64, options: &MapperOptions) -> Vec<f64> {
    let servers: Vec<Server> = counts.iter().map(|_| Server { network, ..server(8, 8) }).collect();
    let slot = |(server, count): (usize, &u32)| Slot { server, count: *count };
    let slots: Vec<Slot> = counts.iter().enumerate().map(slot).collect();
    let devices = counts.iter().sum();
    let ratio = |seed| {
        let described = model(&random_stages(seed, devices));
        let job = JobGraph::of(&described, devices).unwrap();
        let best = optimum(&described, &servers, &slots, options.iteration);
        let found = Mapper::new(options.clone()).map(&job, &servers, slots.clone()).alpha;
        assert!(found >= best * (1.0 - 1e-12), "{found} is below the optimum {best} of job {seed}");
        found / best
    };
    jobs.map(ratio).collect()
}

fn mean(ratios: &[f64]) -> f64 {
    ratios.iter().sum::<f64>() / ratios.len() as f64
}

fn worst(ratios: &[f64]) -> f64 {
    ratios.iter().copied().fold(1.0, f64::max)
}

#[test]
fn with_all_options_the_mapper_finds_the_optimum() {
    let options = MapperOptions::default();
    for counts in COUNTS {
        for network in [TEN_GIGABIT, 10.0 * TEN_GIGABIT] {
            let jobs = if counts.len() < 4 { 0..60 } else { 0..8 };
            let ratios = ratios(jobs, counts, network, &options);
            assert!(worst(&ratios) < 1.000_001, "{counts:?} at {network}: {ratios:?}");
        }
    }
}

#[test]
fn a_synchronous_pipeline_is_mapped_as_well() {
    let iteration = IterationModel::Synchronous { micro_batches: 4 };
    let options = MapperOptions { iteration, ..Default::default() };
    for counts in &COUNTS[..3] {
        let ratios = ratios(0..30, counts, TEN_GIGABIT, &options);
        assert!(mean(&ratios) < 1.001 && worst(&ratios) < 1.02, "{counts:?}: {ratios:?}");
    }
}

#[test]
fn each_option_improves_the_mapping() {
    let worth = |multi_start, swaps| {
        let options = MapperOptions { multi_start, swaps, ..Default::default() };
        mean(&ratios(0..60, &[5, 3], TEN_GIGABIT, &options))
    };
    let plain = worth(Toggle::Off, Toggle::Off);
    let started = worth(Toggle::On, Toggle::Off);
    let swapped = worth(Toggle::Off, Toggle::On);
    let both = worth(Toggle::On, Toggle::On);
    assert!(plain < 1.66 && swapped < 1.41 && started < 1.01, "{plain} {swapped} {started}");
    assert!(both < started && started < swapped && swapped < plain, "{plain} {swapped} {started} {both}");
}

/// The table of the README: `cargo test -p cohabit-policy near_the_optimum -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes; it measures the table of the README"]
fn six_hundred_other_jobs_are_mapped_near_the_optimum() {
    const OPTIONS: [(Toggle, Toggle); 4] = [
        (Toggle::Off, Toggle::Off),
        (Toggle::On, Toggle::Off),
        (Toggle::Off, Toggle::On),
        (Toggle::On, Toggle::On),
    ];
    for network in [TEN_GIGABIT, 10.0 * TEN_GIGABIT] {
        for counts in &COUNTS[..3] {
            let measured = OPTIONS.map(|(multi_start, swaps)| {
                let options = MapperOptions { multi_start, swaps, ..Default::default() };
                let ratios = ratios(1_000..1_600, counts, network, &options);
                (mean(&ratios), worst(&ratios))
            });
            let cells = measured.map(|(mean, worst)| format!("{mean:.3} / {worst:.2}"));
            let row = format!("| {counts:?}, {} Gb/s | {} |", network * 8e-9, cells.join(" | "));
            writeln!(std::io::stdout(), "{row}").unwrap();
            let (both, worst) = measured[3];
            assert!(both < 1.001 && worst < 1.1, "{counts:?} at {network}: {both}, at worst {worst}");
        }
    }
}
