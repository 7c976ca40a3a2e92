//! Rows of a CSV file with access by column name and errors that name the place.

use std::io::Read;

use cohabit_tables::{MissingColumns, TableFormat};
use csv::{Reader, ReaderBuilder, StringRecord, Trim};

use super::error::ReadError;
use super::format::MeasurementFormat;

/// The rows of a file.
pub(super) struct CsvRows<R> {
    reader: Reader<R>,
    headings: StringRecord,
}

/// One row.
pub(super) struct CsvRow<'a> {
    headings: &'a StringRecord,
    record: StringRecord,
}

impl<R: Read> CsvRows<R> {
    /// The rows of this text, which must have the columns of the format.
    pub(super) fn of(text: R, format: MeasurementFormat) -> Result<CsvRows<R>, ReadError> {
        let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(text);
        let headings = reader.headers()?.clone();
        MissingColumns::check(format.name(), format.columns(), headings.iter())?;
        Ok(CsvRows { reader, headings })
    }

    /// The next row.
    pub(super) fn next(&mut self) -> Result<Option<CsvRow<'_>>, ReadError> {
        let mut record = StringRecord::new();
        let found = self.reader.read_record(&mut record)?;
        Ok(found.then_some(CsvRow { headings: &self.headings, record }))
    }
}

impl CsvRow<'_> {
    /// Its line in the file, from 1.
    pub(super) fn line(&self) -> u64 {
        self.record.position().map_or(0, csv::Position::line)
    }

    /// Every column with its cell.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headings.iter().zip(&self.record)
    }

    /// The text of a cell; empty if there is no such column.
    pub(super) fn text(&self, column: &str) -> &str {
        self.all().find(|(heading, _)| *heading == column).map_or("", |(_, text)| text)
    }

    /// The text of a cell that must not be empty.
    pub(super) fn name(&self, column: &str) -> Result<&str, ReadError> {
        let name = self.text(column);
        if name.is_empty() { Err(self.wrong(column, "the cell is empty")) } else { Ok(name) }
    }

    /// A finite number of at least `least`; `None` for an empty cell.
    pub(super) fn number(&self, column: &str, least: f64) -> Result<Option<f64>, ReadError> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= least);
        let expected = || self.wrong(column, &format!("'{text}': expected a number of at least {least}"));
        number.ok_or_else(expected).map(Some)
    }

    /// A whole number; `None` for an empty cell.
    pub(super) fn count(&self, column: &str) -> Result<Option<u64>, ReadError> {
        let text = self.text(column);
        let refused = |_| self.wrong(column, &format!("'{text}': expected a whole number"));
        if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(refused) }
    }

    /// One of several words.
    pub(super) fn word<T>(&self, column: &str, words: &[(&str, T)]) -> Result<T, ReadError>
    where
        T: Copy,
    {
        let text = self.text(column);
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant);
        found.ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.wrong(column, &format!("'{text}': expected one of {}", words.join(", ")))
        })
    }

    pub(super) fn wrong(&self, column: &str, why: &str) -> ReadError {
        ReadError::Cell { line: self.line(), column: column.to_owned(), why: why.to_owned() }
    }
}
