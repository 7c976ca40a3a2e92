//! Prints the accuracy of every kind of model on sets of two to four jobs that follow the law of slowdown.
//!
//!     cargo run --release -p cohabit-predict --example law-tables -- [KIND]...
//!
//! There are 60 configurations, and 3,000 pairs, 1,500 triples and 500 quadruples of them, with noise that is
//! a property of the set; one tenth of the sets is held out. Errors are relative to the noisy measurements
//! and to the law itself, because noise cannot be predicted.
#![expect(clippy::print_stdout, reason = "printing is the purpose of this program")]

use std::error::Error;

use cohabit_policy::interference::{
    AnalyticInterference, ColocationSet, GpuKind, MaxMinSharing, MeasuredMember, SetMember, SetOutcome,
    SoloMetrics,
};
use cohabit_predict::interference::{
    Interference, MeasuredSet, ModelTrainer, evaluate, held_back, kind_by_name, kind_names,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const CONFIGURATIONS: u64 = 60;
/// The number of members of a set, and how many such sets.
const SIZES: [(usize, usize); 3] = [(2, 3_000), (3, 1_500), (4, 500)];
/// Standard deviation of the logarithm of a slowdown.
const NOISE: f64 = 0.03;
const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let kinds = if named.is_empty() { kind_names() } else { named.iter().map(String::as_str).collect() };
    let (train, test) = held_back(&corpus(), 10, SEED);
    println!("| model | members | sets | error, measured | error, law | within 1 sigma | 2 sigma |");
    println!("|---|---|---|---|---|---|---|");
    rows("the law itself", &AnalyticInterference::<MaxMinSharing>::default(), &test);
    for name in kinds {
        let training = ModelTrainer { kind: kind_by_name(name)?, seed: SEED, epochs: None };
        let model = training.train(&train, &mut |_| {})?;
        rows(name, &*model, &test);
    }
    Ok(())
}

/// Prints a row for each size of sets.
fn rows(name: &str, model: &dyn Interference, test: &[MeasuredSet]) {
    let cell = |part: Option<f64>| part.map_or("-".to_owned(), |part| format!("{:.1}%", 100.0 * part));
    for (members, _) in SIZES {
        let noisy: Vec<_> = test.iter().filter(|it| it.set.members.len() == members).cloned().collect();
        let clean: Vec<_> = noisy.iter().map(|it| measured(it.set.clone(), 1.0)).collect();
        let (beside_noisy, beside_clean) = (evaluate(model, &noisy), evaluate(model, &clean));
        let cells = [
            beside_noisy.mape_slowdown,
            beside_clean.mape_slowdown,
            beside_noisy.coverage_1sigma,
            beside_noisy.coverage_2sigma,
        ];
        println!("| {name} | {members} | {} | {} |", noisy.len(), cells.map(cell).join(" | "));
    }
}

fn corpus() -> Vec<MeasuredSet> {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut sets = Vec::new();
    for (members, count) in SIZES {
        for _ in 0..count {
            let mut numbers: Vec<u64> = (0..members).map(|_| random.next_u64() % CONFIGURATIONS).collect();
            numbers.sort_unstable();
            let members = numbers.iter().map(|number| member(*number)).collect();
            let set = ColocationSet { gpu: GpuKind::named("a100"), sharing: None, members };
            sets.push(measured(set, noise(&numbers)));
        }
    }
    sets
}

/// The noise of a set, the same in every measurement of its members.
fn noise(numbers: &[u64]) -> f64 {
    let seed = numbers.iter().fold(SEED, |seed, number| seed * (CONFIGURATIONS + 1) + number + 1);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut part = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let radius = (-2.0 * (1.0 - part()).ln()).sqrt();
    (NOISE * radius * (std::f64::consts::TAU * part()).cos()).exp()
}

fn member(number: u64) -> SetMember {
    let busy = 0.1 + 0.88 * number as f64 / (CONFIGURATIONS - 1) as f64;
    SetMember {
        model: format!("model {}", number / 3),
        batch: Some(16 << (number % 3)),
        solo: SoloMetrics { rate: Some(10.0 / busy), utilization: Some(busy), ..SoloMetrics::default() },
        ..SetMember::default()
    }
}

/// The set with the slowdowns of the law times a factor.
fn measured(set: ColocationSet, factor: f64) -> MeasuredSet {
    let predicted =
        AnalyticInterference::<MaxMinSharing>::default().predict(std::slice::from_ref(&set)).remove(0);
    let observed = predicted.iter().map(|predicted| MeasuredMember {
        slowdown: (predicted.slowdown * factor).max(1.0),
        ..MeasuredMember::default()
    });
    MeasuredSet { outcome: SetOutcome::Ran(observed.collect()), set }
}
