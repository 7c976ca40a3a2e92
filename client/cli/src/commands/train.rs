//! `train`: runs a built-in training program for the jobs of `demo`.

use std::process::ExitCode;

use cohabit_training::TrainingProgram;

pub(super) fn train(program: &TrainingProgram) -> ExitCode {
    cohabit_training::run(program)
}
