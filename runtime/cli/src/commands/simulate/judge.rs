//! What is true of jobs on one GPU, and what policies know of it.

use std::path::Path;
use std::sync::Arc;

use cohabit_sim::workload::{Measurements, read_measurements};
use cohabit_sim::{Hardware, Interference, Knowledge, Shape};

use super::input::open;
use crate::arguments::{Predictor, SimulateArguments, Truth};
use crate::failure::{Failure, Trouble};

/// The measurements from which jobs on one GPU draw what they train, if they do.
pub(super) fn measurements(
    arguments: &SimulateArguments,
    machines: &[Shape],
) -> Result<Option<Measurements>, Failure> {
    let table = match (&arguments.interference, &arguments.configurations) {
        (Truth::Table(_), Some(_)) => {
            let message = "jobs train what the table of --interference knows: leave --configurations out, or judge by \
                           --interference law";
            return Err(Failure::new(Trouble::Usage, message.to_owned()));
        }
        (Truth::Table(table), None) | (Truth::Law, Some(table)) => table,
        (Truth::Law, None) => return Ok(None),
    };
    let measured = read_measurements(open(table)?).map_err(|error| unusable(table, &error))?;
    Measurements::of(&measured, machines).map(Some).map_err(|error| unusable(table, &error))
}

fn unusable(table: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::new(Trouble::Impossible("unusable_table"), format!("{}: {error}", table.display()))
}

/// What is true.
pub(super) fn hardware(arguments: &SimulateArguments, measurements: Option<&Measurements>) -> Hardware {
    let usual = Hardware::default();
    let truth: Arc<dyn Interference> = match (&arguments.interference, measurements) {
        (Truth::Table(_), Some(measured)) => measured.by_table(),
        (Truth::Law, Some(measured)) => measured.by_law(),
        (Truth::Table(_) | Truth::Law, None) => usual.truth,
    };
    Hardware { truth, max_slowdown: arguments.max_slowdown }
}

/// What policies know: figures of jobs alone in any case.
pub(super) fn knowledge(arguments: &SimulateArguments, measurements: Option<&Measurements>) -> Knowledge {
    let usual = Knowledge::default();
    let interference = match arguments.predictor {
        Predictor::Law => usual.interference,
        Predictor::Truth => hardware(arguments, measurements).truth,
    };
    Knowledge { interference, solos: measurements.map_or(usual.solos, Measurements::solos), ..usual }
}
