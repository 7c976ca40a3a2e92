//! Arguments of `predict`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cohabit_console::{CommandError, DisplayArguments};
use cohabit_predict::interference::{HoldOut, MeasurementFormat, ModelKind, kind_by_name};

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
    /// Format of the measurements: co-location or gavel-pairs [default: detected from the first line]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<MeasurementFormat>,
}

// What is held out of the training.
#[derive(Debug, Args)]
pub(crate) struct HoldOutArguments {
    /// Measure the error on unseen data: train further models, each without a part of the measurements. The
    /// parts are sets, configurations, models or gpus; separate several with commas
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    pub(crate) hold_out: Vec<HoldOut>,
    /// Let each of these models observe this many sets with each held-out configuration, on each GPU, before
    /// it predicts the others; for configurations and models, which are new to them [default: 0]
    #[arg(long, value_name = "SETS", requires = "hold_out")]
    pub(crate) observed: Option<usize>,
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
    /// Largest number of epochs to train, for the kinds that learn in epochs: the networks
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

impl PredictTrainArguments {
    /// Refuses flags that have no effect on this kind of model, or on what is held out.
    ///
    /// # Errors
    /// The first of these flags.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        let kind = self.model.name();
        if self.epochs.is_some() && self.model.epochs().is_none() {
            return Err(CommandError::invalid(format!(
                "--epochs has no effect on --model {kind}, which is solved in closed form: remove it"
            )));
        }
        if self.report.as_ref() == Some(&self.out) {
            let message =
                "--report is a file and --out a directory, and both name the same: give each its own";
            return Err(CommandError::invalid(message));
        }
        let held = &self.held;
        if held.observed.is_some_and(|sets| sets > 0) && !held.hold_out.iter().any(|it| it.has_newcomers()) {
            let message = "--observed has no effect where no jobs are new: hold out configurations or models, or remove it";
            return Err(CommandError::invalid(message));
        }
        Ok(())
    }
}

fn kind(name: &str) -> Result<&'static dyn ModelKind, String> {
    kind_by_name(name).map_err(|error| error.to_string())
}

fn model_help() -> String {
    format!("Kind of model: {}", cohabit_predict::interference::kind_names().join(", "))
}
