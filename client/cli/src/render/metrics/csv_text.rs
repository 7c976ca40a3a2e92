//! Metrics as CSV: a row for each report, a column for each metric.

use cohabit_console::{CommandError, CommandErrorKind};

use super::attempt_series::{AttemptSeries, names};
use crate::render::rfc3339;

/// A row for each report; a cell is empty where a metric was not reported with the step.
pub(crate) fn csv(all: &[AttemptSeries]) -> Result<String, CommandError> {
    let names = names(all);
    let failed = |error: csv::Error| CommandError::from_error(CommandErrorKind::Internal, &error);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["job", "attempt", "step", "time"].iter().chain(&names)).map_err(failed)?;
    for AttemptSeries { rank, series } in all {
        let column = |name: &&str| series.names.iter().position(|known| known == name);
        let columns: Vec<Option<usize>> = names.iter().map(column).collect();
        for row in &series.rows {
            let fixed = [
                rank.attempt.job.to_string(),
                rank.attempt.attempt.to_string(),
                row.step.to_string(),
                rfc3339(row.at),
            ];
            let value = |column: &Option<usize>| {
                let value = column.and_then(|column| row.values[column]);
                value.map_or(String::new(), |value| value.to_string())
            };
            writer.write_record(fixed.into_iter().chain(columns.iter().map(value))).map_err(failed)?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| failed(error.into_error().into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
