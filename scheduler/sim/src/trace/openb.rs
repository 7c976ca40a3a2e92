//! Reads the pods of Alibaba's cluster-trace-gpu-v2023 ("openb"), some of which hold a part of a GPU.
//!
//! A pod ran from its scheduling to its deletion. There are no users: the QoS class stands for one, and pods
//! of the same class and size form a group.

use std::io::Read;

use cohabit_types::{Share, Span};

use super::error::TraceError;
use super::job::TraceJob;
use super::rows::{Columns, OptionalColumns, Row, Rows, Strictness, positive, with_heading};

/// Columns that a file must have.
pub(super) const REQUIRED: &[&str] =
    &["num_gpu", "gpu_milli", "qos", "creation_time", "deletion_time", "scheduled_time"];

const COLUMNS: Columns = Columns { format: "openb", required: REQUIRED, others: OptionalColumns::Any };

pub(super) fn read(text: impl Read, strictness: Strictness) -> Result<Rows, TraceError> {
    with_heading(text, &COLUMNS, strictness, job)
}

fn job(row: &Row<'_>) -> Result<TraceJob, String> {
    let devices_milli = devices_milli(row)?;
    let cpus = row.text("cpu_milli").unwrap_or("");
    let user = row.required("qos")?.to_owned();
    Ok(TraceJob {
        line: None,
        submitted: Span::from_secs_f64(row.seconds("creation_time")?),
        duration: duration(row)?,
        devices_milli,
        group: format!("{user}/{cpus}/{devices_milli}"),
        user,
        model: None,
        batch: None,
        iterations: None,
        gpu_memory: None,
        virtual_cluster: None,
    })
}

/// The field `gpu_milli` counts for pods with one GPU; the others have whole GPUs.
fn devices_milli(row: &Row<'_>) -> Result<u64, String> {
    let whole = u64::from(Share::WHOLE.0);
    match (row.devices("num_gpu")?, row.count("gpu_milli")?) {
        (1_000, 0) => Err("gpu_milli is 0: it needs no GPU".into()),
        (1_000, milli) if milli <= whole => Ok(milli),
        (1_000, milli) => Err(format!("gpu_milli is {milli}: at most 1000 for one GPU")),
        (devices, _) => Ok(devices),
    }
}

fn duration(row: &Row<'_>) -> Result<Span, String> {
    if row.text("scheduled_time").is_none() {
        return Err("it was never scheduled".into());
    }
    let (scheduled, deleted) = (row.seconds("scheduled_time")?, row.seconds("deletion_time")?);
    if deleted < scheduled {
        return Err(format!("it was deleted at {deleted} s, before it was scheduled at {scheduled} s"));
    }
    positive(Span::from_secs_f64(deleted - scheduled), "deletion_time - scheduled_time")
}
