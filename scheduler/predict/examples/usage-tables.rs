//! Prints the accuracy of predicted memory and utilization on sets of two to four jobs whose members use
//! neither what they use alone nor a multiple of it.
//!
//!     cargo run --release -p cohabit-predict --example usage-tables -- [KIND]...
//!
//! The members of a set share a context, which saves each 600 MB, and keep the GPU busy for at most all of
//! the time together; slowdowns follow the law. All values have noise. There are 24 configurations of 8
//! models, and 400 pairs, 300 triples and 100 quadruples of them. One fifth of the sets is held out, then
//! each model in turn.
#![expect(clippy::print_stdout, reason = "printing is the purpose of this program")]

use std::error::Error;

use cohabit_policy::interference::{
    AnalyticInterference, ColocationEstimate, ColocationSet, GpuKind, MaxMinSharing, MeasuredMember,
    SetMember, SetOutcome, SoloMetrics,
};
use cohabit_predict::interference::{
    EvaluationAccumulator, HoldOut, Interference, MeasuredSet, ModelTrainer, kind_by_name,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const CONFIGURATIONS: u64 = 24;
/// The number of members of a set, and how many such sets.
const SIZES: [(usize, usize); 3] = [(2, 400), (3, 300), (4, 100)];
const SHARED_CONTEXT: f64 = 6e8;
/// The largest error of a measured slowdown or utilization, and of memory, as a fraction.
const NOISE: f64 = 0.05;
const NOISE_OF_MEMORY: f64 = 0.01;
const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let named: Vec<String> = std::env::args().skip(1).collect();
    let default = ["gaussian".to_owned(), "e-ggat-plus".to_owned()];
    let kinds = if named.is_empty() { &default[..] } else { &named[..] };
    let measured = corpus();
    println!("| model | held out | slowdown | memory | memory, scaled | utilization | utilization, scaled |");
    println!("|---|---|---|---|---|---|---|");
    for name in kinds {
        let training = ModelTrainer { kind: kind_by_name(name)?, seed: SEED, epochs: None };
        for hold_out in [HoldOut::Sets, HoldOut::Models] {
            let mut accumulator = EvaluationAccumulator::default();
            training.cross_validate(&measured, hold_out, 0, &mut accumulator, &mut |_, _| {})?;
            let figures = accumulator.figures();
            let cells = [
                figures.mape_slowdown,
                figures.mape_memory,
                figures.mape_memory_scaled,
                figures.mape_utilization,
                figures.mape_utilization_scaled,
            ];
            let cell =
                |part: Option<f64>| part.map_or("-".to_owned(), |part| format!("{:.1}%", 100.0 * part));
            println!("| {name} | {hold_out} | {} |", cells.map(cell).join(" | "));
        }
    }
    Ok(())
}

fn corpus() -> Vec<MeasuredSet> {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut sets = Vec::new();
    for (members, count) in SIZES {
        for _ in 0..count {
            let members = (0..members).map(|_| member(random.next_u64() % CONFIGURATIONS)).collect();
            let set = ColocationSet { gpu: GpuKind::named("a100"), sharing: None, members };
            sets.push(measured(set, &mut random));
        }
    }
    sets
}

fn member(number: u64) -> SetMember {
    let busy = 0.1 + 0.88 * number as f64 / (CONFIGURATIONS - 1) as f64;
    // Not in the order of the utilization.
    let memory = 1.2e9 + 3e8 * (number * 7 % CONFIGURATIONS) as f64;
    let (rate, memory, utilization) = (Some(10.0 / busy), Some(memory), Some(busy));
    SetMember {
        model: format!("model {}", number / 3),
        batch: Some(16 << (number % 3)),
        solo: SoloMetrics { rate, memory, utilization, ..SoloMetrics::default() },
        ..SetMember::default()
    }
}

fn measured(set: ColocationSet, random: &mut ChaCha8Rng) -> MeasuredSet {
    let mut noisy = |value: f64, noise: f64| {
        let part = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        value * (1.0 + noise * (2.0 * part - 1.0))
    };
    let wanted = set.members.iter().filter_map(|member| member.solo.utilization).sum::<f64>().max(1.0);
    let law = AnalyticInterference::<MaxMinSharing>::default().predict(std::slice::from_ref(&set)).remove(0);
    let observed = |(by_law, member): (ColocationEstimate, &SetMember)| MeasuredMember {
        slowdown: noisy(by_law.slowdown, NOISE).max(1.0),
        memory: member.solo.memory.map(|alone| noisy(alone - SHARED_CONTEXT, NOISE_OF_MEMORY)),
        utilization: member.solo.utilization.map(|alone| noisy(alone / wanted, NOISE).min(1.0)),
    };
    MeasuredSet { outcome: SetOutcome::Ran(law.into_iter().zip(&set.members).map(observed).collect()), set }
}
