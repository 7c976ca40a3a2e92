//! Trains a small network on handwritten digits: `cargo run --release --bin digits -- --help`.

use std::process::ExitCode;

use clap::Parser;
use cohabit_training::{self as training, DigitsOptions, TrainingProgram};

/// Train a small network on 1,797 handwritten digits and print its accuracy.
#[derive(Parser)]
#[command(name = "digits", version)]
struct Arguments {
    #[command(flatten)]
    options: DigitsOptions,
}

fn main() -> ExitCode {
    training::run(&TrainingProgram::Digits(Arguments::parse().options))
}
