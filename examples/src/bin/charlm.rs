//! Trains a character-level language model: `cargo run --release --bin charlm -- --help`.

use std::process::ExitCode;

use clap::Parser;
use cohabit_training::{self as training, CharlmOptions, TrainingProgram};

/// Train a small language model on a few pages of English text and print a sample of its writing.
#[derive(Parser)]
#[command(name = "charlm", version)]
struct Arguments {
    #[command(flatten)]
    options: CharlmOptions,
}

fn main() -> ExitCode {
    training::run(&TrainingProgram::Charlm(Arguments::parse().options))
}
