//! What is scripted, as command line arguments.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// A fake of a training program that uses CUDA; no GPU is involved.
#[derive(Debug, Clone, Parser)]
pub(crate) struct Arguments {
    /// The simulated world; else the one that the environment names, or that this program lies in.
    #[arg(long)]
    pub(crate) world: Option<PathBuf>,
    /// Steps until it is done.
    #[arg(long, default_value_t = 100)]
    pub(crate) steps: u64,
    /// Steps a second, alone on the GPU.
    #[arg(long, value_parser = positive, default_value_t = 50.0)]
    pub(crate) rate: f64,
    /// The slowdown of a step for each co-runner on the same MPS server
    #[arg(long, value_parser = factor, default_value_t = 1.2)]
    pub(crate) mps_factor: f64,
    /// The slowdown of a step for each time-sliced co-runner
    #[arg(long, value_parser = factor, default_value_t = 2.0)]
    pub(crate) sliced_factor: f64,
    /// Memory that each process takes at its start: bytes, or with K, M or G.
    #[arg(long, value_parser = bytes, default_value = "0")]
    pub(crate) alloc: u64,
    /// Takes this much more at a step.
    #[arg(long, value_parser = bytes_at, value_name = "STEP=BYTES")]
    pub(crate) alloc_after: Vec<(u64, u64)>,
    /// The framework whose out-of-memory message it prints
    #[arg(long, value_enum, default_value_t = Framework::Torch)]
    pub(crate) oom_text: Framework,
    /// Makes an invalid memory access at this step: under MPS a fault of all clients
    #[arg(long, conflicts_with = "anonymous_fault_at")]
    pub(crate) fault_at: Option<u64>,
    /// Fails at this step without a culprit in the MPS server's log
    #[arg(long)]
    pub(crate) anonymous_fault_at: Option<u64>,
    /// Keeps running when every GPU call fails
    #[arg(long)]
    pub(crate) ignore_fault: bool,
    /// Ignores SIGTERM
    #[arg(long, conflicts_with = "checkpoint")]
    pub(crate) ignore_term: bool,
    /// On SIGTERM writes its step to $COHABIT_CHECKPOINT_DIR/step and exits with success; starts from there
    #[arg(long)]
    pub(crate) checkpoint: bool,
    /// Its exit code when all steps are done
    #[arg(long, default_value_t = 0)]
    pub(crate) exit: u8,
    /// Uses the GPU without MPS
    #[arg(long)]
    pub(crate) bypass_mps: bool,
    /// The number of processes that use the GPU; the others follow the first
    #[arg(long, default_value_t = 1)]
    pub(crate) processes: u32,
    /// Hangs after this step
    #[arg(long)]
    pub(crate) hang_after: Option<u64>,
    /// Follows this process and ends with it
    #[arg(long, hide = true)]
    pub(crate) follow: Option<i32>,
}

/// The framework of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Framework {
    Torch,
    Jax,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|it| it.is_finite() && *it > 0.0);
    number.ok_or_else(|| format!("{text} is no number above zero"))
}

/// Parses a slowdown, which is at least 1.
fn factor(text: &str) -> Result<f64, String> {
    positive(text).and_then(|it| if it >= 1.0 { Ok(it) } else { Err(format!("{text} is less than 1")) })
}

fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.trim_end_matches(|c: char| c.is_ascii_alphabetic()) {
        digits if digits.len() == text.len() => (digits, 0),
        digits => match &text[digits.len()..] {
            "K" => (digits, 10),
            "M" => (digits, 20),
            "G" => (digits, 30),
            unit => return Err(format!("{unit} is no unit: say K, M or G")),
        },
    };
    digits.parse::<u64>().map(|number| number << shift).map_err(|error| error.to_string())
}

fn bytes_at(text: &str) -> Result<(u64, u64), String> {
    let (step, amount) = text.split_once('=').ok_or("say STEP=BYTES")?;
    Ok((step.parse().map_err(|_| format!("{step} is no step"))?, bytes(amount)?))
}
