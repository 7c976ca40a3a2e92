//! What is true of jobs on one GPU, and what policies know of it.

use std::path::Path;
use std::sync::Arc;

use cohabit_console::{CommandError, CommandErrorKind};
#[cfg(feature = "predict")]
use cohabit_predict::interference::Model;
use cohabit_sim::workload::{Measurements, read_measurements};
use cohabit_sim::{Hardware, Interference, InterferenceContext, MachineSpec};
use cohabit_types::Slowdown;

use super::files::open_file;
use crate::simulate::arguments::{Predictor, SimulateArguments, Truth};

/// The measurements from which jobs on one GPU draw what they train, if they do.
pub(super) fn measurements(
    arguments: &SimulateArguments,
    machines: &[MachineSpec],
) -> Result<Option<Measurements>, CommandError> {
    let table = match (&arguments.interference, &arguments.configurations) {
        (Truth::Table(_), Some(_)) => {
            let message = "jobs train what the table of --interference knows: leave --configurations out, or judge by \
                           --interference law or model:FOLDER";
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

/// What is true.
pub(super) fn hardware(
    arguments: &SimulateArguments,
    measurements: Option<&Measurements>,
) -> Result<Hardware, CommandError> {
    let usual = Hardware::default();
    let truth = match (&arguments.interference, measurements) {
        (Truth::Table(_), Some(measured)) => measured.table_truth(),
        (Truth::Law, Some(measured)) => measured.law_truth(),
        (Truth::Model(folder), Some(measured)) => measured.truth_from(model(folder)?),
        (Truth::Model(folder), None) => model(folder)?,
        (Truth::Table(_) | Truth::Law, None) => usual.truth,
    };
    Ok(Hardware { truth, max_slowdown: arguments.max_slowdown })
}

/// What policies know where this is true: figures of jobs alone in any case.
pub(super) fn knowledge(
    arguments: &SimulateArguments,
    measurements: Option<&Measurements>,
    hardware: &Hardware,
) -> Result<InterferenceContext, CommandError> {
    let usual = InterferenceContext::default();
    let interference = match &arguments.predictor {
        Predictor::Law => usual.interference,
        Predictor::Truth => hardware.truth.clone(),
        Predictor::Pretrained => asked(model(Path::new("pretrained"))?, measurements),
        Predictor::Model(folder) => asked(model(folder)?, measurements),
    };
    let solos = measurements.map_or(usual.solos, Measurements::solos);
    Ok(InterferenceContext { interference, solos, max_slowdown: Slowdown::from(arguments.max_slowdown) })
}

/// A model learned how GPUs fare that are shared in one way: the simulated ones are those of its table.
fn asked(model: Arc<dyn Interference>, measurements: Option<&Measurements>) -> Arc<dyn Interference> {
    measurements.map_or(model.clone(), |measured| measured.with_measured_sharing(model))
}

/// The trained model in a folder, or the one that comes with the program.
#[cfg(feature = "predict")]
fn model(folder: &Path) -> Result<Arc<dyn Interference>, CommandError> {
    let model: Arc<dyn Model> = Arc::from(crate::model_directory::load_model(folder)?.model);
    Ok(model)
}

/// Without learned models there is none to ask.
#[cfg(not(feature = "predict"))]
fn model(folder: &Path) -> Result<Arc<dyn Interference>, CommandError> {
    let message =
        format!("{} cannot be asked: this program was built without the feature 'predict'", folder.display());
    Err(CommandError::new(CommandErrorKind::Usage, message))
}
