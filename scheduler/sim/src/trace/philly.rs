//! Reads Microsoft's Philly trace as published with Pollux: `timestamp,duration,num_gpus,gpu_time,cluster`.
//!
//! There are no users: the virtual cluster stands for one, and its jobs with the same number of GPUs form a
//! group.

use std::io::Read;

use cohabit_types::Span;

use super::civil;
use super::error::TraceError;
use super::job::TraceJob;
use super::rows::{Columns, OptionalColumns, Row, Rows, Strictness, with_heading};

/// Columns that a file must have.
pub(super) const REQUIRED: &[&str] = &["timestamp", "duration", "num_gpus", "cluster"];

const COLUMNS: Columns = Columns { format: "philly", required: REQUIRED, others: OptionalColumns::Any };

pub(super) fn read(text: impl Read, strictness: Strictness) -> Result<Rows, TraceError> {
    with_heading(text, &COLUMNS, strictness, job)
}

fn job(row: &Row<'_>) -> Result<TraceJob, String> {
    let written = row.required("timestamp")?;
    let submitted = civil::seconds(written)
        .ok_or_else(|| format!("timestamp is '{written}': expected a date like 2017-09-04 10:30:41"))?;
    let cluster = row.required("cluster")?.to_owned();
    let devices_milli = row.devices("num_gpus")?;
    Ok(TraceJob {
        line: None,
        submitted: Span::from_secs(submitted),
        duration: row.duration("duration")?,
        devices_milli,
        group: format!("{cluster}/{}", devices_milli / 1_000),
        user: cluster.clone(),
        model: None,
        batch: None,
        iterations: None,
        gpu_memory: None,
        virtual_cluster: Some(cluster),
    })
}
