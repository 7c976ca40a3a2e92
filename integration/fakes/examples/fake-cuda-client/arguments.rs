//! What is scripted, as command line arguments.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// A fake of a training program that uses CUDA; no GPU is involved.
#[derive(Debug, Clone, Parser)]
pub(crate) struct Arguments {
    /// The made-up world; else the one that the environment names, or that this program lies in.
    #[arg(long)]
    pub(crate) world: Option<PathBuf>,
    /// Steps until it is done.
    #[arg(long, default_value_t = 100)]
    pub(crate) steps: u64,
    /// Steps a second, alone on the GPU.
    #[arg(long, value_parser = positive, default_value_t = 50.0)]
    pub(crate) rate: f64,
    /// How much longer a step takes for each co-runner of the same MPS server.
    #[arg(long, value_parser = factor, default_value_t = 1.2)]
    pub(crate) mps_factor: f64,
    /// How much longer a step takes for each co-runner with which the GPU takes turns.
    #[arg(long, value_parser = factor, default_value_t = 2.0)]
    pub(crate) sliced_factor: f64,
    /// Memory that each process takes at its start: bytes, or with K, M or G.
    #[arg(long, value_parser = bytes, default_value = "0")]
    pub(crate) alloc: u64,
    /// Takes this much more at a step.
    #[arg(long, value_parser = bytes_at, value_name = "STEP=BYTES")]
    pub(crate) alloc_after: Vec<(u64, u64)>,
    /// Whose words it has when memory runs out.
    #[arg(long, value_enum, default_value_t = Framework::Torch)]
    pub(crate) oom_text: Framework,
    /// Reads memory that is not its own at this step: under MPS, everybody's fault.
    #[arg(long, conflicts_with = "anonymous_fault_at")]
    pub(crate) fault_at: Option<u64>,
    /// Fails at this step so that the MPS server's log names nobody.
    #[arg(long)]
    pub(crate) anonymous_fault_at: Option<u64>,
    /// Goes on when the GPU only gives errors any more.
    #[arg(long)]
    pub(crate) ignore_fault: bool,
    /// Does not react to SIGTERM.
    #[arg(long, conflicts_with = "checkpoint")]
    pub(crate) ignore_term: bool,
    /// On SIGTERM writes its step to $COHABIT_CHECKPOINT_DIR/step and ends well; begins from there.
    #[arg(long)]
    pub(crate) checkpoint: bool,
    /// The status with which it ends when all steps are done.
    #[arg(long, default_value_t = 0)]
    pub(crate) exit: u8,
    /// Uses the GPU beside MPS.
    #[arg(long)]
    pub(crate) bypass_mps: bool,
    /// So many processes use the GPU; the others follow the first.
    #[arg(long, default_value_t = 1)]
    pub(crate) processes: u32,
    /// Makes no step any more after this one, and stays.
    #[arg(long)]
    pub(crate) hang_after: Option<u64>,
    /// It follows this process and ends with it.
    #[arg(long, hide = true)]
    pub(crate) follow: Option<i32>,
}

/// Whose words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Framework {
    Torch,
    Jax,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|it| it.is_finite() && *it > 0.0);
    number.ok_or_else(|| format!("{text} is no number above zero"))
}

/// A factor that lets a step take as long as alone, or longer.
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
