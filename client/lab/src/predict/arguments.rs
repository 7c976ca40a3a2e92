//! `predict`: which model is trained on which measurements, or asked about them.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cohabit_console::DisplayArguments;
use cohabit_predict::interference::{HoldOut, MeasurementFormat as DataFormat, ModelKind, kind_by_name};

// Arguments of `predict`.
#[derive(Debug, Args)]
pub struct PredictArguments {
    #[command(subcommand)]
    pub(crate) verb: PredictVerb,
}

// What to do with models of interference.
#[derive(Debug, Subcommand)]
pub(crate) enum PredictVerb {
    /// Train a model on measured sets of jobs and keep it in a folder
    Train(PredictTrainArguments),
    /// Ask a trained model about measured sets and tell how far it is off
    Eval(PredictEvalArguments),
    /// Show what a trained model is
    Show(PredictShowArguments),
}

// Measured sets.
#[derive(Debug, Args)]
pub(crate) struct DataArguments {
    /// The measurements: a table that `cohabit profile` wrote, or one with the same columns
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) data: PathBuf,
    /// Format of the measurements: co-location, or gavel-pairs
    #[arg(long, value_name = "FORMAT", default_value_t)]
    pub(crate) format: DataFormat,
}

// What is held out.
#[derive(Debug, Args)]
pub(crate) struct HoldOutArguments {
    /// Tell how good such models are on what they never saw, by training more of them, each without a part of
    /// the measurements: sets, configurations, models or gpus; several with commas between them
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) hold_out: Vec<HoldOut>,
    /// Let each of them see so many sets with each configuration that was held out, on each GPU, before it is
    /// asked about the others
    #[arg(long, value_name = "SETS", default_value_t = 0, requires = "hold_out")]
    pub(crate) observed: usize,
}

// Arguments of `predict train`.
#[derive(Debug, Args)]
pub(crate) struct PredictTrainArguments {
    /// The kind of model
    #[arg(long, value_name = "MODEL", value_parser = kind, help = model_help())]
    pub(crate) model: &'static dyn ModelKind,
    #[command(flatten)]
    pub(crate) data: DataArguments,
    /// Where to keep it: a folder, which is made if need be
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) held: HoldOutArguments,
    /// The seed of everything that is drawn
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Train for at most so many epochs
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) epochs: Option<u64>,
    /// Show how far the training is
    #[arg(long)]
    pub(crate) progress: bool,
    /// Write a page with the figures and the learning curves
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `predict eval`.
#[derive(Debug, Args)]
pub(crate) struct PredictEvalArguments {
    /// The folder of the model, or 'pretrained' for the one that comes with the program
    #[arg(long, value_name = "DIR")]
    pub(crate) weights: PathBuf,
    #[command(flatten)]
    pub(crate) data: DataArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `predict show`.
#[derive(Debug, Args)]
pub(crate) struct PredictShowArguments {
    /// The folder of the model, or 'pretrained' for the one that comes with the program
    #[arg(value_name = "DIR")]
    pub(crate) weights: PathBuf,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

impl PredictArguments {
    /// How the result is shown.
    pub fn display(&self) -> &DisplayArguments {
        match &self.verb {
            PredictVerb::Train(arguments) => &arguments.display,
            PredictVerb::Eval(arguments) => &arguments.display,
            PredictVerb::Show(arguments) => &arguments.display,
        }
    }
}

fn kind(name: &str) -> Result<&'static dyn ModelKind, String> {
    kind_by_name(name).map_err(|error| error.to_string())
}

fn model_help() -> String {
    format!("The kind of model: {}", cohabit_predict::interference::kind_names().join(", "))
}
