//! Rows of a file with columns: each becomes a job, or is skipped with its line and the reason.

use std::collections::BTreeMap;
use std::io::{self, Read};

use cohabit_tables::MissingColumns;
use cohabit_types::Span;
use csv::{Reader, ReaderBuilder, StringRecord};

use super::error::{SkippedRow, TraceError};
use super::job::TraceJob;

/// What to do with invalid rows.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Skip and report them.
    #[default]
    Lenient,
    /// Fail on the first one.
    Strict,
}

/// The jobs and the skipped rows of a file.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) jobs: Vec<TraceJob>,
    pub(super) skipped: Vec<SkippedRow>,
}

/// The columns of a format.
pub(super) struct Columns {
    pub(super) format: &'static str,
    pub(super) required: &'static [&'static str],
    pub(super) others: OptionalColumns,
}

/// Columns that may be missing.
pub(super) enum OptionalColumns {
    /// Only these: a misspelt name must not go unnoticed.
    Only(&'static [&'static str]),
    /// Any others that the publishers added.
    Any,
}

/// One row and the indices of its columns.
pub(super) struct Row<'a> {
    record: &'a StringRecord,
    places: &'a BTreeMap<String, usize>,
}

/// Times from here on are taken for mistakes.
const LONGEST_SECONDS: f64 = 1e10;
/// Longer run times are taken for mistakes: ten years.
const LONGEST_DURATION: Span = Span::from_secs(10 * 365 * 86_400);

/// Reads a file with a header; `job` returns the job of a row or the reason why there is none.
pub(super) fn with_heading(
    text: impl Read,
    columns: &Columns,
    strictness: Strictness,
    job: impl FnMut(&Row<'_>) -> Result<TraceJob, String>,
) -> Result<Rows, TraceError> {
    let mut rows = Rows::default();
    each_with_heading(text, columns, rows.row_collector(strictness, job))?;
    Ok(rows)
}

/// Reads a file with a header row by row.
pub(super) fn each_with_heading(
    text: impl Read,
    columns: &Columns,
    mut keep: impl FnMut(u64, Result<&Row<'_>, String>) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let mut reader = reader(ReaderBuilder::new().trim(csv::Trim::All), text);
    let places = columns.places(reader.headers().map_err(unreadable)?)?;
    each(&mut reader, |line, record| {
        let width = places.len();
        let row = record.and_then(|record| match record.len() == width {
            true => Ok(Row { record, places: &places }),
            false => Err(format!("expected {width} columns, found {}", record.len())),
        });
        keep(line, row.as_ref().map_err(Clone::clone))
    })
}

/// Reads tab-separated lines; `names` returns the columns of a line with this many fields.
pub(super) fn tab_separated(
    text: impl Read,
    names: impl Fn(usize) -> Result<&'static [&'static str], String>,
    strictness: Strictness,
    job: impl FnMut(&Row<'_>) -> Result<TraceJob, String>,
) -> Result<Rows, TraceError> {
    let tabs = &mut ReaderBuilder::new();
    let mut reader = reader(tabs.has_headers(false).delimiter(b'\t').quoting(false), text);
    let mut rows = Rows::default();
    let mut keep = rows.row_collector(strictness, job);
    each(&mut reader, |line, record| {
        let found = record.and_then(|record| Ok((record, places(names(record.len())?.iter().copied()))));
        let row = found.as_ref().map(|(record, places)| Row { record, places });
        keep(line, row.as_ref().map_err(|why| (*why).clone()))
    })?;
    drop(keep);
    Ok(rows)
}

/// A reader that sees every line end, so that lines can be counted.
fn reader<R: Read>(builder: &mut ReaderBuilder, text: R) -> Reader<impl Read + use<R>> {
    builder.flexible(true).terminator(csv::Terminator::Any(b'\n')).from_reader(text.chain(b"\n".as_slice()))
}

/// Passes on every record with its line, or the reason why a line is not a record.
fn each<R: Read>(
    reader: &mut Reader<R>,
    mut take: impl FnMut(u64, Result<&StringRecord, String>) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let mut record = StringRecord::new();
    loop {
        let found = reader.read_record(&mut record);
        let last_line = reader.position().line() - 1;
        match found {
            Ok(false) => return Ok(()),
            Ok(true) if record.len() == 1 && record[0].trim().is_empty() => {}
            Ok(true) => take(last_line - lines_within(&record), Ok(&record))?,
            Err(error) if matches!(error.kind(), csv::ErrorKind::Utf8 { .. }) => {
                take(last_line, Err("not valid UTF-8".into()))?;
            }
            Err(error) => return Err(unreadable(error)),
        }
    }
}

/// Quoted fields may span several lines.
fn lines_within(record: &StringRecord) -> u64 {
    record.iter().map(|field| field.matches('\n').count() as u64).sum()
}

fn unreadable(error: csv::Error) -> TraceError {
    let message = error.to_string();
    let reason = if let csv::ErrorKind::Io(reason) = error.into_kind() { Some(reason) } else { None };
    TraceError::Unreadable(reason.unwrap_or_else(|| io::Error::other(message)))
}

fn places<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<String, usize> {
    names.enumerate().map(|(place, name)| (name.to_owned(), place)).collect()
}

impl Rows {
    fn row_collector<'a>(
        &'a mut self,
        strictness: Strictness,
        mut job: impl FnMut(&Row<'_>) -> Result<TraceJob, String> + 'a,
    ) -> impl FnMut(u64, Result<&Row<'_>, String>) -> Result<(), TraceError> + 'a {
        move |line, row| {
            match (row.and_then(&mut job), strictness) {
                (Ok(job), _) => self.jobs.push(TraceJob { line: Some(line), ..job }),
                (Err(why), Strictness::Lenient) => self.skipped.push(SkippedRow { line, why }),
                (Err(why), Strictness::Strict) => return Err(TraceError::BadRow(SkippedRow { line, why })),
            }
            Ok(())
        }
    }
}

impl Columns {
    fn places(&self, heading: &StringRecord) -> Result<BTreeMap<String, usize>, TraceError> {
        let places = places(heading.iter());
        MissingColumns::check(self.format, self.required, heading.iter())?;
        if let OptionalColumns::Only(optional) = self.others {
            let known = || self.required.iter().chain(optional).copied();
            if let Some(column) = heading.iter().find(|name| known().all(|it| it != *name)) {
                let known = known().collect::<Vec<_>>().join(", ");
                let column = column.to_owned();
                return Err(TraceError::UnknownColumn { format: self.format, column, known });
            }
        }
        Ok(places)
    }
}

impl Row<'_> {
    /// The text of a column; `None` if there is no such column or the field is empty.
    pub(super) fn text(&self, column: &str) -> Option<&str> {
        let field = self.record.get(*self.places.get(column)?)?.trim();
        (!field.is_empty()).then_some(field)
    }

    /// The text of a required column.
    pub(super) fn required(&self, column: &str) -> Result<&str, String> {
        self.text(column).ok_or_else(|| format!("{column} is empty"))
    }

    /// A time in seconds, not negative.
    pub(super) fn seconds(&self, column: &str) -> Result<f64, String> {
        let text = self.required(column)?;
        let seconds: f64 = text.parse().map_err(|_| format!("{column} is '{text}': expected a number"))?;
        match (0.0..LONGEST_SECONDS).contains(&seconds) {
            true => Ok(seconds),
            false => Err(format!("{column} is {text}: expected a value from 0 to {LONGEST_SECONDS:e} s")),
        }
    }

    /// A time span above zero.
    pub(super) fn duration(&self, column: &str) -> Result<Span, String> {
        positive(Span::from_secs_f64(self.seconds(column)?), column)
    }

    /// A whole number.
    pub(super) fn count(&self, column: &str) -> Result<u64, String> {
        whole(self.required(column)?, column)
    }

    /// A whole number, if the column has a value.
    pub(super) fn count_if_any(&self, column: &str) -> Result<Option<u64>, String> {
        self.text(column).map(|text| whole(text, column)).transpose()
    }

    /// Whole devices in thousandths; at least one.
    pub(super) fn devices(&self, column: &str) -> Result<u64, String> {
        match self.count(column)? {
            0 => Err(format!("{column} is 0: the job needs no GPU")),
            count => u32::try_from(count)
                .map(|count| u64::from(count) * 1_000)
                .map_err(|_| format!("{column} is {count}: too large for a number of GPUs")),
        }
    }
}

/// The run time, unless it is zero or longer than any job.
pub(super) fn positive(span: Span, column: &str) -> Result<Span, String> {
    match span {
        Span::ZERO => Err(format!("{column} is 0: the job did not run")),
        span if span > LONGEST_DURATION => Err(format!("{column} is {span}: expected at most ten years")),
        span => Ok(span),
    }
}

/// Parses a whole number; some files write `3.0`.
fn whole(text: &str, column: &str) -> Result<u64, String> {
    let digits = text.split_once('.').filter(|(_, places)| places.bytes().all(|it| it == b'0'));
    let digits = digits.map_or(text, |(digits, _)| digits);
    digits.parse().map_err(|_| format!("{column} is '{text}': expected a whole number"))
}
