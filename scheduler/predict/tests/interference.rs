//! How good the models of interference are on the measured pairs of Gavel.
//!
//! The pairs are no part of the repository: where they are absent, the tests say so and check nothing.
#![expect(clippy::print_stderr, clippy::unwrap_used, reason = "a test that tells what it found")]

use std::path::{Path, PathBuf};

use cohabit_predict::interference::{
    Figures, Format, HoldOut, Lesson, Tally, folds, kind_by_name, read,
};
use cohabit_scheduler::interference::MeasuredSet;

const SEED: u64 = 1;

/// Found in a folder `shared` beside the repository.
fn pairs() -> Option<Vec<MeasuredSet>> {
    let file = "shared/data/gavel/pairs_flat.csv";
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found: Option<PathBuf> = above.map(|folder| folder.join(file)).find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: there is no {file} in any folder above");
    }
    found.map(|path| read(std::fs::File::open(path).unwrap(), Format::GavelPairs).unwrap())
}

/// The figures of a kind over all divisions; after `observed` sets with each newcomer on each GPU.
fn figures(kind: &str, measured: &[MeasuredSet], hold_out: HoldOut, observed: usize) -> Figures {
    let mut tally = Tally::default();
    for fold in folds(measured, hold_out, observed, SEED) {
        let lesson = Lesson { train: &fold.train, held_back: &[], seed: SEED, epochs: None };
        let model = kind_by_name(kind).unwrap().train(&lesson, &mut |_| {}).unwrap();
        if fold.observed.is_empty() {
            tally.ask(&*model, &fold.test);
        } else {
            tally.ask(&*model.adapted(&fold.observed), &fold.test);
        }
    }
    let figures = tally.figures();
    eprintln!("{kind:10} {hold_out:15} after {observed}: {figures:?}");
    figures
}

#[test]
fn tell() {
    let Some(measured) = pairs() else { return };
    for kind in ["additive", "gaussian"] {
        figures(kind, &measured, HoldOut::Sets, 0);
        for hold_out in [HoldOut::Configurations, HoldOut::Models] {
            for observed in [0, 3, 5] {
                figures(kind, &measured, hold_out, observed);
            }
        }
    }
}
