//! Arguments of `predict`.

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

// Commands on models.
#[derive(Debug, Subcommand)]
pub(crate) enum PredictVerb {
    /// Train a model on measured sets of jobs and store it in a directory
    Train(PredictTrainArguments),
    /// Compare the predictions of a trained model with measured sets
    Eval(PredictEvalArguments),
    /// Show the description of a trained model
    Show(PredictShowArguments),
}

// Measured sets.
#[derive(Debug, Args)]
pub(crate) struct DataArguments {
    /// Measurements: a table written by `cohabit profile`, or one with the same columns
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) data: PathBuf,
    /// Format of the measurements: co-location or gavel-pairs
    #[arg(long, value_name = "FORMAT", default_value_t)]
    pub(crate) format: DataFormat,
}

// What is held out of the training.
#[derive(Debug, Args)]
pub(crate) struct HoldOutArguments {
    /// Measure the error on unseen data: train further models, each without a part of the measurements. The
    /// parts are sets, configurations, models or gpus; separate several with commas
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) hold_out: Vec<HoldOut>,
    /// Let each of these models observe this many sets with each held-out configuration, on each GPU, before
    /// it predicts the others
    #[arg(long, value_name = "SETS", default_value_t = 0, requires = "hold_out")]
    pub(crate) observed: usize,
}

// Arguments of `predict train`.
#[derive(Debug, Args)]
pub(crate) struct PredictTrainArguments {
    /// Kind of model
    #[arg(long, value_name = "MODEL", value_parser = kind, help = model_help())]
    pub(crate) model: &'static dyn ModelKind,
    #[command(flatten)]
    pub(crate) data: DataArguments,
    /// Directory for the model; created if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) held: HoldOutArguments,
    /// Seed of all random choices
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Largest number of epochs to train
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) epochs: Option<u64>,
    /// Show training progress
    #[arg(long)]
    pub(crate) progress: bool,
    /// Write an HTML page with the errors and learning curves to this file
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `predict eval`.
#[derive(Debug, Args)]
pub(crate) struct PredictEvalArguments {
    /// Directory of the model, or 'pretrained' for the one that comes with the program
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
    /// Directory of the model, or 'pretrained' for the one that comes with the program
    #[arg(value_name = "DIR")]
    pub(crate) weights: PathBuf,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

impl PredictArguments {
    /// The display flags.
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
    format!("Kind of model: {}", cohabit_predict::interference::kind_names().join(", "))
}
