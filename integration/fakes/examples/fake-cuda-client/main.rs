//! Stands in for a training program that uses CUDA, on a machine that has none: it takes made-up memory of a
//! made-up GPU, connects to the fake MPS as CUDA does, steps at a scripted rate, and fails as it is told to.
//!
//! ```text
//! arguments   what is scripted
//! context     the GPU, as CUDA shows it: which one, through MPS or not, memory, errors that stay
//! errors      how CUDA and the frameworks put what went wrong
//! pace        how long a step takes beside others
//! reports     progress and checkpoints
//! training    the loop
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to its user")]

mod arguments;
mod context;
mod errors;
mod pace;
mod reports;
mod training;

use std::process::ExitCode;

use clap::Parser;
use cohabit_fakes::{FakeWorld, WORLD_VARIABLE};

use crate::arguments::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let world = match &arguments.world {
        Some(root) => FakeWorld::open(root),
        None => FakeWorld::of_this_program(),
    };
    let Some(world) = world else {
        eprintln!("This is a fake CUDA program: name its world by {WORLD_VARIABLE} or --world.");
        return ExitCode::from(2);
    };
    match training::run(&arguments, &world) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
