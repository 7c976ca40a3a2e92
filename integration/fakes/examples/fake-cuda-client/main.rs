//! A fake CUDA training program for hosts without GPUs: it allocates memory of a fake GPU, connects to the
//! fake MPS as CUDA does, makes steps at a scripted rate, and fails as scripted.
//!
//! ```text
//! arguments   the script
//! context     the GPU: which one, through MPS or not, memory, sticky errors
//! errors      the messages of CUDA and of frameworks
//! pace        how long a step takes beside other programs
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
