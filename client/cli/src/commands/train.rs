//! `train`: one of the built-in training programs, as the jobs of `demo` run it.

use std::process::ExitCode;

use cohabit_training::TrainingProgram;

pub(super) fn train(program: &TrainingProgram) -> ExitCode {
    cohabit_training::run(program)
}
