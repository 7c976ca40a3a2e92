//! Reads Alibaba's PAI trace of 2020 in the form that GAIA published: `arrival_time,length,cpus`.
//!
//! The column `cpus` is GAIA's measure of a job's size; it stands for GPUs here. There are no users and no
//! groups. GAIA wrote the long trace in hours and the short one in seconds, under the same heading.

use std::io::Read;

use cohabit_types::Span;

use super::error::TraceError;
use super::job::TraceJob;
use super::rows::{Columns, OptionalColumns, Row, Rows, Strictness, positive, with_heading};

/// Columns that a file must have.
pub(super) const REQUIRED: &[&str] = &["arrival_time", "length", "cpus"];

const COLUMNS: Columns = Columns { format: "pai", required: REQUIRED, others: OptionalColumns::Any };

/// The user of all jobs.
const DEFAULT_USER: &str = "pai";
/// A longer job shows that the file is in seconds: GAIA kept jobs of up to about three days.
const LONGEST_HOURS: f64 = 100.0;

/// The unit of the columns of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Hours,
    Seconds,
}

pub(super) fn read(text: impl Read, strictness: Strictness, unit: TimeUnit) -> Result<Rows, TraceError> {
    with_heading(text, &COLUMNS, strictness, |row| job(row, unit))
}

fn job(row: &Row<'_>, unit: TimeUnit) -> Result<TraceJob, String> {
    let length = row.seconds("length")?;
    if unit == TimeUnit::Hours && length > LONGEST_HOURS {
        return Err(format!(
            "length is {length} h: expected at most {LONGEST_HOURS} h; use --format pai-seconds"
        ));
    }
    let devices_milli = row.devices("cpus")?;
    Ok(TraceJob {
        line: None,
        submitted: unit.span(row.seconds("arrival_time")?),
        duration: positive(unit.span(length), "length")?,
        devices_milli,
        user: DEFAULT_USER.into(),
        group: format!("{DEFAULT_USER}/{}", devices_milli / 1_000),
        model: None,
        batch: None,
        iterations: None,
        gpu_memory: None,
        virtual_cluster: None,
    })
}

impl TimeUnit {
    fn span(self, count: f64) -> Span {
        let seconds = match self {
            TimeUnit::Hours => 3_600.0,
            TimeUnit::Seconds => 1.0,
        };
        Span::from_secs_f64(count * seconds)
    }
}
