//! `train`: one of the built-in training programs, as the jobs of `demo` run it.

use std::process::ExitCode;

use cohabit_examples::train::{self, TrainingProgram};

pub(super) fn train(program: &TrainingProgram) -> ExitCode {
    train::run(program)
}
