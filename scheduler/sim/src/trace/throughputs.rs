//! Measured throughputs of models on GPUs, in training steps per second without other jobs.
//!
//! A table may hold measurements of several sources, which do not agree: one has to be chosen, and no value
//! is taken from another.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::str::FromStr;

use cohabit_tables::open_table;

use super::error::{SkippedRow, TraceError};
use super::rows::{Columns, OptionalColumns, Row, each_with_heading};

const COLUMNS: Columns = Columns {
    format: "throughputs",
    required: &["source", "gpu", "consolidated", "model", "batch_size", "scale_factor", "steps_per_s"],
    others: OptionalColumns::Any,
};

/// Steps per second from one source and on one GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Throughputs {
    of: ThroughputSource,
    /// By model, batch size (0 if it is not given) and number of devices.
    rates: BTreeMap<(String, u64, u64), f64>,
}

/// Which measurements of a table to use, written `sim/v100`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThroughputSource {
    /// The table's column `source`.
    pub source: String,
    /// The table's column `gpu`.
    pub gpu: String,
}

/// A text that is not of the form SOURCE/GPU.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid throughput source '{0}': expected SOURCE/GPU, for example sim/v100")]
pub struct ParseThroughputSourceError(String);

impl Throughputs {
    /// Reads a table. For several devices, only measurements on one machine count.
    ///
    /// # Errors
    /// If the table cannot be read, or has no measurements of this source and GPU.
    pub fn read(table: impl Read, of: ThroughputSource) -> Result<Throughputs, TraceError> {
        let text = open_table(table)?.text;
        let mut rates = BTreeMap::new();
        let mut sources: Vec<String> = Vec::new();
        each_with_heading(text, &COLUMNS, |line, row| {
            let bad = |why| TraceError::BadRow(SkippedRow { line, why });
            let measured = row.and_then(ThroughputRow::of).map_err(bad)?;
            if measured.of == of && measured.is_usable {
                rates.insert(measured.key, measured.rate);
            }
            let name = measured.of.to_string();
            if !sources.contains(&name) {
                sources.push(name);
            }
            Ok(())
        })?;
        if rates.is_empty() {
            let why = format!("no measurements for {of}; the table has {}", sources.join(", "));
            return Err(TraceError::BadRow(SkippedRow { line: 1, why }));
        }
        Ok(Throughputs { of, rates })
    }

    /// Steps per second of a model with this batch size on this many devices.
    pub(super) fn steps_per_second(
        &self,
        model: &str,
        batch: Option<u64>,
        devices: u64,
    ) -> Result<f64, String> {
        let key = (model.to_owned(), batch.unwrap_or(0), devices);
        let rate = self.rates.get(&key).copied().filter(|rate| *rate > 0.0);
        rate.ok_or_else(|| {
            let batch = batch.map_or(String::new(), |batch| format!(" with batch size {batch}"));
            format!("no throughput of {model}{batch} on {devices} GPUs for {}", self.of)
        })
    }
}

/// One row.
struct ThroughputRow {
    of: ThroughputSource,
    is_usable: bool,
    key: (String, u64, u64),
    rate: f64,
}

impl ThroughputRow {
    fn of(row: &Row<'_>) -> Result<ThroughputRow, String> {
        let of =
            ThroughputSource { source: row.required("source")?.into(), gpu: row.required("gpu")?.into() };
        let key = (row.required("model")?.to_owned(), row.count("batch_size")?, row.count("scale_factor")?);
        let is_usable = row.required("consolidated")?.eq_ignore_ascii_case("true");
        Ok(ThroughputRow { of, is_usable, key, rate: row.seconds("steps_per_s")? })
    }
}

/// The source with which Gavel's own traces were made.
impl Default for ThroughputSource {
    fn default() -> ThroughputSource {
        ThroughputSource { source: "sim".into(), gpu: "v100".into() }
    }
}

impl fmt::Display for ThroughputSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.source, self.gpu)
    }
}

impl FromStr for ThroughputSource {
    type Err = ParseThroughputSourceError;
    fn from_str(text: &str) -> Result<ThroughputSource, ParseThroughputSourceError> {
        let parts = text.split_once('/').filter(|(source, gpu)| !source.is_empty() && !gpu.is_empty());
        let (source, gpu) = parts.ok_or_else(|| ParseThroughputSourceError(text.to_owned()))?;
        Ok(ThroughputSource { source: source.into(), gpu: gpu.into() })
    }
}
