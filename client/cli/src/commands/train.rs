//! `train`: one of the built-in training programs, as the jobs of `demo` run it.

use std::process::ExitCode;

use cohabit_examples::train::{self, Program};

pub(super) fn train(program: &Program) -> ExitCode {
    train::run(program)
}
