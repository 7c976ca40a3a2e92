//! Prints the accuracy of every kind of model on held-out measured pairs, as Markdown tables.
//!
//!     cargo run --release -p cohabit-predict --example prediction-tables -- pairs_flat.csv [KIND]...
//!
//! The file has Gavel's measured pairs, flattened. Sets are held out with the seeds 1 to 5, configurations,
//! models and GPUs with seed 1.
#![expect(clippy::print_stdout, reason = "printing is the purpose of this program")]

use std::error::Error;
use std::fs::File;

use cohabit_predict::interference::{
    EvaluationAccumulator, HoldOut, MeasuredSet, ModelKind, ModelTrainer, PredictionMetrics, kind_by_name,
    kind_names, read,
};

/// What is held out, the number of observed sets with each newcomer, and the seeds.
const SPLITS: [(HoldOut, usize, &[u64]); 8] = [
    (HoldOut::Sets, 0, &[1, 2, 3, 4, 5]),
    (HoldOut::Configurations, 0, &[1]),
    (HoldOut::Configurations, 3, &[1]),
    (HoldOut::Configurations, 5, &[1]),
    (HoldOut::Models, 0, &[1]),
    (HoldOut::Models, 3, &[1]),
    (HoldOut::Models, 5, &[1]),
    (HoldOut::Gpus, 0, &[1]),
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: prediction-tables FILE [KIND]...")?;
    let measured = read(File::open(file)?, None)?.sets;
    let named: Vec<String> = arguments.collect();
    let kinds = if named.is_empty() { kind_names() } else { named.iter().map(String::as_str).collect() };
    let figures = "MAPE | p95 | within 1 sigma | 2 sigma | misfits found | warnings right";
    println!("| model | held out | observed | GPU | {figures} |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for kind in kinds {
        for split in SPLITS {
            rows(kind_by_name(kind)?, split, &measured)?;
        }
    }
    Ok(())
}

/// Prints the rows of a kind of model and a split: one for all GPUs and one for each.
fn rows(
    kind: &'static dyn ModelKind,
    (hold_out, observed, seeds): (HoldOut, usize, &[u64]),
    measured: &[MeasuredSet],
) -> Result<(), Box<dyn Error>> {
    let mut accumulator = EvaluationAccumulator::default();
    for seed in seeds {
        let training = ModelTrainer { kind, seed: *seed, epochs: None };
        training.cross_validate(measured, hold_out, observed, &mut accumulator, &mut |_, _| {})?;
    }
    let begin = format!("| {} | {hold_out} | {observed} |", kind.name());
    println!("{begin} all | {} |", cells(&accumulator.figures()));
    for (gpu, figures) in accumulator.by_gpu() {
        println!("{begin} {} | {} |", gpu.name(), cells(&figures));
    }
    Ok(())
}

fn cells(figures: &PredictionMetrics) -> String {
    let all = [
        figures.mape_slowdown,
        figures.p95_ape_slowdown,
        figures.coverage_1sigma,
        figures.coverage_2sigma,
        figures.infeasible_recall,
        figures.infeasible_precision,
    ];
    let cell = |part: Option<f64>| part.map_or("-".to_owned(), |part| format!("{:.1}%", 100.0 * part));
    all.map(cell).join(" | ")
}
