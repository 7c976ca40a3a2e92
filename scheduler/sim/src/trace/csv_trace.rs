//! Reads the trace format of this project: CSV with `submit_s,duration_s,gpus` and optional columns.

use std::io::Read;

use cohabit_types::{Bytes, Share, Span};

use super::error::TraceError;
use super::job::TraceJob;
use super::rows::{Columns, OptionalColumns, Row, Rows, Strictness, with_heading};

/// Columns that a file must have.
pub(super) const REQUIRED: &[&str] = &["submit_s", "duration_s", "gpus"];

const COLUMNS: Columns = Columns {
    format: "csv",
    required: REQUIRED,
    others: OptionalColumns::Only(&[
        "user",
        "group",
        "model",
        "batch",
        "iterations",
        "gpu_share",
        "gpu_mem_bytes",
        "vc",
    ]),
};

/// The user of jobs without a user and a virtual cluster.
const DEFAULT_USER: &str = "trace";

pub(super) fn read(text: impl Read, strictness: Strictness) -> Result<Rows, TraceError> {
    with_heading(text, &COLUMNS, strictness, job)
}

/// A missing user is replaced by the virtual cluster; without a group, jobs of a user with the same model and
/// number of devices form one.
fn job(row: &Row<'_>) -> Result<TraceJob, String> {
    let devices_milli = devices_milli(row)?;
    let owned = |column| row.text(column).map(str::to_owned);
    let (model, virtual_cluster) = (owned("model"), owned("vc"));
    let user = row.text("user").or(virtual_cluster.as_deref()).unwrap_or(DEFAULT_USER).to_owned();
    let usual_group = || format!("{user}/{}/{devices_milli}", model.as_deref().unwrap_or(""));
    Ok(TraceJob {
        line: None,
        submitted: Span::from_secs_f64(row.seconds("submit_s")?),
        duration: row.duration("duration_s")?,
        devices_milli,
        group: owned("group").unwrap_or_else(usual_group),
        batch: row.count_if_any("batch")?,
        iterations: row.count_if_any("iterations")?.filter(|count| *count > 0),
        gpu_memory: row.count_if_any("gpu_mem_bytes")?.filter(|bytes| *bytes > 0).map(Bytes),
        user,
        model,
        virtual_cluster,
    })
}

/// The column `gpus` in thousandths, or the share of the one GPU.
fn devices_milli(row: &Row<'_>) -> Result<u64, String> {
    let whole =
        row.devices("gpus").map_err(|why| format!("{why}; a part of one GPU belongs in gpu_share"))?;
    let Some(text) = row.text("gpu_share") else { return Ok(whole) };
    let share: f64 = text.parse().map_err(|_| format!("gpu_share is '{text}': expected a number"))?;
    let milli = (share * f64::from(Share::WHOLE.0)).round();
    match (whole, milli) {
        (_, 1_000.0) => Ok(whole),
        (1_000, 1.0..1_000.0) => Ok(milli as u64),
        (1_000, _) => Err(format!("gpu_share is {text}: expected a value from 0.001 to 1")),
        (_, _) => Err(format!("gpu_share is {text}: only one GPU can be shared, but gpus is larger than 1")),
    }
}
