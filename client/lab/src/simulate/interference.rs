//! Slowdowns of jobs that share a GPU: the true ones, and those that policies predict.

use std::path::Path;
use std::sync::Arc;

use cohabit_console::{CommandError, CommandErrorKind};
#[cfg(feature = "predict")]
use cohabit_predict::interference::Model;
use cohabit_sim::workload::{Measurements, read_measurements};
use cohabit_sim::{DEFAULT_MAX_SLOWDOWN, Hardware, Interference, InterferenceContext, MachineSpec};
use cohabit_types::Slowdown;

use super::files::open_file;
use crate::simulate::arguments::{Predictor, Truth, WorkloadArguments};

/// The measurements from which configurations of jobs are drawn, if any.
pub(super) fn measurements(
    arguments: &WorkloadArguments,
    machines: &[MachineSpec],
) -> Result<Option<Measurements>, CommandError> {
    let table = match (&arguments.interference, &arguments.configurations) {
        (Truth::Table(_), Some(_)) => {
            let message = "--configurations conflicts with --interference table:FILE, which draws configurations from FILE: remove \
                           one, or use --interference law or model:DIR";
            return Err(CommandError::new(CommandErrorKind::Usage, message.to_owned()));
        }
        (Truth::Table(table), None) | (Truth::Law | Truth::Model(_), Some(table)) => table,
        (Truth::Law | Truth::Model(_), None) => return Ok(None),
    };
    let measured = read_measurements(open_file(table)?).map_err(|error| unusable(table, &error))?;
    Measurements::of(&measured, machines).map(Some).map_err(|error| unusable(table, &error))
}

fn unusable(table: &Path, error: &dyn std::error::Error) -> CommandError {
    CommandError::new(CommandErrorKind::Impossible("unusable_table"), format!("{}: {error}", table.display()))
}

/// The true slowdowns.
pub(super) fn hardware(
    arguments: &WorkloadArguments,
    measurements: Option<&Measurements>,
) -> Result<Hardware, CommandError> {
    let usual = Hardware::default();
    let truth = match (&arguments.interference, measurements) {
        (Truth::Table(_), Some(measured)) => measured.table_truth(),
        (Truth::Law, Some(measured)) => measured.law_truth(),
        (Truth::Model(folder), Some(measured)) => measured.truth_from(model(folder)?),
        (Truth::Model(folder), None) => model(folder)?,
        (Truth::Table(_) | Truth::Law, None) => usual.truth.clone(),
    };
    let max_slowdown = arguments.max_slowdown.unwrap_or(DEFAULT_MAX_SLOWDOWN);
    Ok(Hardware { truth, max_slowdown, ..usual })
}

/// What policies know: the measurements of jobs running alone, and predicted slowdowns.
pub(super) fn knowledge(
    arguments: &WorkloadArguments,
    measurements: Option<&Measurements>,
    hardware: &Hardware,
) -> Result<InterferenceContext, CommandError> {
    let usual = InterferenceContext::default();
    let interference = match arguments.predictor() {
        Predictor::Law | Predictor::None => usual.interference,
        Predictor::Truth => hardware.truth.clone(),
        Predictor::Pretrained => with_measured_sharing(model(Path::new("pretrained"))?, measurements),
        Predictor::Model(folder) => with_measured_sharing(model(folder)?, measurements),
    };
    let solos = match (arguments.predictor(), measurements) {
        (Predictor::None, _) | (_, None) => usual.solos,
        (_, Some(measured)) => measured.solos(),
    };
    Ok(InterferenceContext { interference, solos, max_slowdown: arguments.max_slowdown.map(Slowdown::from) })
}

/// A model predicts for the way of sharing that it was trained on; the simulated GPUs share as in the table.
pub(super) fn with_measured_sharing(
    model: Arc<dyn Interference>,
    measurements: Option<&Measurements>,
) -> Arc<dyn Interference> {
    measurements.map_or(model.clone(), |measured| measured.with_measured_sharing(model))
}

/// Loads the model in a directory, or the one that comes with the program.
#[cfg(feature = "predict")]
pub(super) fn load_model(folder: &Path) -> Result<Arc<dyn Model>, CommandError> {
    Ok(Arc::from(crate::model_directory::load_model(folder)?.model))
}

#[cfg(feature = "predict")]
fn model(folder: &Path) -> Result<Arc<dyn Interference>, CommandError> {
    let model: Arc<dyn Model> = load_model(folder)?;
    Ok(model)
}

/// Without the feature `predict`, there are no models.
#[cfg(not(feature = "predict"))]
fn model(folder: &Path) -> Result<Arc<dyn Interference>, CommandError> {
    let message = format!(
        "cannot load the model {}: this program was built without the feature `predict`",
        folder.display()
    );
    Err(CommandError::new(CommandErrorKind::Usage, message))
}
