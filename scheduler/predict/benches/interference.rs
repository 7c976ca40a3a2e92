//! How long learned models of interference take for a set of two, three or four jobs, alone and in a batch:
//! run by hand, prints a table. An argument leaves out the models without this text.
//!
//! The measurements follow the law of slowdown: 26 configurations on three GPUs, 850 pairs as in Gavel's
//! tables, and 150 triples. Networks are trained for two epochs, which costs the same to ask as a whole
//! training. Sets are asked about that were not measured.
#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench measures real time")]
#![expect(clippy::print_stdout, reason = "a bench is read on a terminal")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on ends here")]

use std::hint::black_box;
use std::time::Instant;

use cohabit_policy::interference::{
    AnalyticInterference, ColocationSet, GpuKind, Interference, MaxMinSharing, MeasuredMember, ModelFeatures,
    SetMember, SetOutcome, SoloMetrics,
};
use cohabit_predict::interference::{MeasuredSet, Model, TrainingData, kind_by_name, kind_names};
use cohabit_types::{ModelFamily, SharingStrategy};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const CONFIGURATIONS: u64 = 26;
const GPUS: [&str; 3] = ["k80", "p100", "v100"];
const PAIRS: usize = 850;
const TRIPLES: usize = 150;
const BATCH: usize = 128;
const RUNS: usize = 100;

fn main() {
    let wanted = std::env::args().skip(1).find(|text| !text.starts_with('-')).unwrap_or_default();
    println!("| model | members | one set, us | in a batch of {BATCH}, us a set: p50 | p99 |");
    println!("|---|---|---|---|---|");
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut measured: Vec<MeasuredSet> = (0..PAIRS).map(|_| measure(draw(&mut random, 2))).collect();
    measured.extend((0..TRIPLES).map(|_| measure(draw(&mut random, 3))));
    for name in kind_names().into_iter().filter(|name| name.contains(&wanted)) {
        let data = TrainingData { train: &measured, held_back: &[], seed: 1, epochs: Some(2) };
        let model = kind_by_name(name).unwrap().train(&data, &mut |_| ()).unwrap();
        for members in 2..=4 {
            let sets: Vec<ColocationSet> = (0..BATCH).map(|_| draw(&mut random, members)).collect();
            let alone = sorted(RUNS, |run| micros(&*model, std::slice::from_ref(&sets[run % BATCH])));
            let batch = sorted(RUNS, |_| micros(&*model, &sets) / BATCH as f64);
            let at = |times: &[f64], part: f64| times[((times.len() - 1) as f64 * part) as usize];
            println!(
                "| {name} | {members} | {:.1} | {:.1} | {:.1} |",
                at(&alone, 0.5),
                at(&batch, 0.5),
                at(&batch, 0.99)
            );
        }
    }
}

/// Microseconds for the prediction of these sets.
fn micros(model: &dyn Model, sets: &[ColocationSet]) -> f64 {
    let before = Instant::now();
    drop(black_box(model.predict(sets)));
    before.elapsed().as_secs_f64() * 1e6
}

fn sorted(runs: usize, time: impl FnMut(usize) -> f64) -> Vec<f64> {
    let mut times: Vec<f64> = (0..runs).map(time).collect();
    times.sort_by(f64::total_cmp);
    times
}

/// A set of random jobs on a random GPU.
fn draw(random: &mut ChaCha8Rng, members: usize) -> ColocationSet {
    let place = (random.next_u64() % GPUS.len() as u64) as usize;
    let members = (0..members).map(|_| member(random.next_u64() % CONFIGURATIONS, place as u64)).collect();
    ColocationSet { gpu: GpuKind::named(GPUS[place]), sharing: Some(SharingStrategy::Mps), members }
}

/// A job of this configuration on this GPU.
fn member(number: u64, place: u64) -> SetMember {
    let utilization = 0.1 + 0.03 * number as f64 - 0.02 * place as f64;
    SetMember {
        model: format!("model-{}", number / 4),
        family: Some(if number < 13 { ModelFamily::Cnn } else { ModelFamily::Rnn }),
        batch: Some(16 << (number % 4)),
        features: ModelFeatures {
            parameters: Some(1e6 * (number + 1) as f64),
            flops_per_sample: Some(1e9 * (number + 2) as f64),
            ..ModelFeatures::default()
        },
        solo: SoloMetrics {
            rate: Some(10.0 / (number + 1) as f64),
            memory: Some(1e8 * (number + 1) as f64),
            utilization: Some(utilization),
            ..SoloMetrics::default()
        },
        ..SetMember::default()
    }
}

/// A set with the slowdowns of the law.
fn measure(set: ColocationSet) -> MeasuredSet {
    let law = AnalyticInterference::<MaxMinSharing>::default().predict(std::slice::from_ref(&set)).remove(0);
    let observed =
        law.iter().map(|it| MeasuredMember { slowdown: it.slowdown, ..MeasuredMember::default() }).collect();
    MeasuredSet { set, outcome: SetOutcome::Ran(observed) }
}
