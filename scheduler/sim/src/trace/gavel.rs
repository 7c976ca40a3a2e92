//! Reads the traces of Gavel's simulator: tab-separated lines with steps, which a table of measured
//! throughputs turns into time.
//!
//! Lines have seven fields in traces drawn from Philly and ten in those of its testbed runs.

use std::io::Read;

use cohabit_types::Span;

use super::error::TraceError;
use super::job::TraceJob;
use super::rows::{Row, Rows, Strictness, positive, tab_separated};
use super::throughputs::Throughputs;

const PHILLY_COLUMNS: [&str; 7] =
    ["job type", "command", "flag", "needs_data_dir", "total_steps", "arrival_s", "scale_factor"];
const TESTBED_COLUMNS: [&str; 10] = [
    "job type",
    "command",
    "folder",
    "flag",
    "needs_data_dir",
    "total_steps",
    "scale_factor",
    "priority",
    "deadline",
    "arrival_s",
];
/// Gavel's traces have no users.
const DEFAULT_USER: &str = "gavel";

pub(super) fn read(
    text: impl Read,
    strictness: Strictness,
    throughputs: &Throughputs,
) -> Result<Rows, TraceError> {
    tab_separated(text, names, strictness, |row| job(row, throughputs))
}

/// Whether this is a line of such a trace.
pub(super) fn is_row(line: &str) -> bool {
    names(line.split('\t').count()).is_ok()
}

fn names(fields: usize) -> Result<&'static [&'static str], String> {
    match fields {
        7 => Ok(&PHILLY_COLUMNS),
        10 => Ok(&TESTBED_COLUMNS),
        _ => Err(format!("expected 7 or 10 tab-separated fields, found {fields}")),
    }
}

fn job(row: &Row<'_>, throughputs: &Throughputs) -> Result<TraceJob, String> {
    let job_type = row.required("job type")?;
    let (model, batch) = model_and_batch(job_type)?;
    let devices_milli = row.devices("scale_factor")?;
    let steps = row.count("total_steps")?;
    let rate = throughputs.steps_per_second(model, batch, devices_milli / 1_000)?;
    Ok(TraceJob {
        line: None,
        submitted: Span::from_secs_f64(row.seconds("arrival_s")?),
        duration: positive(Span::from_secs_f64(steps as f64 / rate), "total_steps")?,
        devices_milli,
        user: DEFAULT_USER.into(),
        group: format!("{job_type}/{}", devices_milli / 1_000),
        model: Some(model.to_owned()),
        batch,
        iterations: Some(steps),
        gpu_memory: None,
        virtual_cluster: None,
    })
}

/// Parses `ResNet-18 (batch size 64)`, or a model without batch size.
fn model_and_batch(job_type: &str) -> Result<(&str, Option<u64>), String> {
    let Some((model, rest)) = job_type.split_once(" (batch size ") else { return Ok((job_type, None)) };
    let batch = rest.strip_suffix(')').and_then(|number| number.parse().ok());
    let batch = batch.ok_or_else(|| {
        format!("no valid batch size in '{job_type}': expected, for example, (batch size 64)")
    })?;
    Ok((model, Some(batch)))
}
