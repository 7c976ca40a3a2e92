//! Keeps the metrics of a rank over its steps in a file of bounded size.
//!
//! Each line of the file is a report: `{"step":120,"at":…,"metrics":{"loss":0.41}}`, after a first line that
//! says how many reports stand for one. When there are too many lines, every second is dropped, and from then
//! on every second report: what is left is spread evenly over the whole training. A report with a metric that
//! is no finite number always stays: it is what people look for.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cohabit_types::{MetricRow, MetricSeries, MetricValue, Time};
use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};

use super::lines::ProgressEntry;
use crate::files::{WriteMode, write};

/// The most reports in a file.
const MAX_ROWS: usize = 2_048;

/// The most values in a file; a report may have 64.
const MAX_VALUES: usize = 32_768;

/// The most bytes of a file that are read: what the bounds above allow, with the longest names.
const MAX_BYTES: u64 = 8 << 20;

/// The most different names in a series.
const MAX_NAMES: usize = 256;

/// Writes the series of a rank.
#[derive(Debug)]
pub struct SeriesWriter {
    path: PathBuf,
    rows: Vec<Row>,
    /// How many values the rows have together.
    values: usize,
    /// One of so many reports is kept.
    thinning: u64,
    /// How many reports there were.
    seen: u64,
    last_step: u64,
    /// Whether the file has what `rows` has.
    is_written: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Row {
    step: u64,
    at: Time,
    metrics: BTreeMap<String, MetricValue>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Header {
    thinning: u64,
}

impl Row {
    fn is_finite(&self) -> bool {
        self.metrics.values().all(|value| value.is_finite())
    }
}

impl SeriesWriter {
    /// A series that begins now. The file is made with the first report that has a metric.
    #[must_use]
    pub fn new(path: PathBuf) -> SeriesWriter {
        SeriesWriter {
            path,
            rows: Vec::new(),
            values: 0,
            thinning: 1,
            seen: 0,
            last_step: 0,
            is_written: false,
        }
    }

    /// Adds reports that were read at this time. A failure to write costs the file, and not the rank.
    pub fn add(&mut self, now: Time, entries: Vec<ProgressEntry>) {
        let mut added: Vec<Row> = Vec::new();
        for entry in entries {
            self.last_step = entry.step.unwrap_or(self.last_step);
            let row = Row { step: self.last_step, at: now, metrics: entry.metrics };
            let latest = added.last().or(self.rows.last());
            let is_repeated = latest.is_some_and(|last| last.step == row.step && last.metrics == row.metrics);
            if row.metrics.is_empty() || is_repeated {
                continue;
            }
            self.seen += 1;
            if (self.seen - 1).is_multiple_of(self.thinning) || !row.is_finite() {
                self.values += row.metrics.len();
                added.push(row);
            }
        }
        if !added.is_empty() {
            self.keep(added);
        }
    }

    fn keep(&mut self, added: Vec<Row>) {
        let text = lines(&added);
        self.rows.extend(added);
        let is_full = || self.rows.len() > MAX_ROWS || self.values > MAX_VALUES;
        self.is_written = match is_full() {
            false if self.is_written => self.append(&text).is_ok(),
            false => self.rewrite().is_ok(),
            true => {
                self.thin_out();
                self.rewrite().is_ok()
            }
        };
    }

    /// Drops every second row; if all have values that are no numbers, also of those.
    fn thin_out(&mut self) {
        while self.rows.len() > MAX_ROWS || self.values > MAX_VALUES {
            self.thinning = self.thinning.saturating_mul(2);
            let before = self.rows.len();
            let mut place = 0_usize;
            self.rows.retain(|row| {
                place += 1;
                place % 2 == 1 || !row.is_finite()
            });
            if self.rows.len() == before {
                let mut place = 0_usize;
                self.rows.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
            }
            self.values = self.rows.iter().map(|row| row.metrics.len()).sum();
        }
    }

    fn append(&self, text: &[u8]) -> io::Result<()> {
        let careful = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
        OpenOptions::new().append(true).custom_flags(careful).open(&self.path)?.write_all(text)
    }

    fn rewrite(&self) -> io::Result<()> {
        let mut text = serde_json::to_vec(&Header { thinning: self.thinning })?;
        text.push(b'\n');
        text.extend(lines(&self.rows));
        write(&self.path, &text, WriteMode::ForThisBoot).map_err(io::Error::other)
    }
}

fn lines(rows: &[Row]) -> Vec<u8> {
    let mut text = Vec::new();
    for row in rows {
        // Names and numbers always have a JSON form.
        if let Ok(line) = serde_json::to_vec(row) {
            text.extend(line);
            text.push(b'\n');
        }
    }
    text
}

/// The series in this file; empty if there is none. A line that is being written is left out.
///
/// # Errors
/// When the file cannot be read.
pub fn read_series(path: &Path) -> io::Result<MetricSeries> {
    let careful = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = match OpenOptions::new().read(true).custom_flags(careful).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(MetricSeries::default()),
        file => file?,
    };
    let mut text = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut text)?;
    Ok(series(&text))
}

fn series(text: &[u8]) -> MetricSeries {
    let mut read = MetricSeries { thinning: 1, ..MetricSeries::default() };
    let mut columns = BTreeMap::new();
    for line in text.split(|byte| *byte == b'\n') {
        if let Ok(Row { step, at, metrics }) = serde_json::from_slice(line) {
            let mut values = vec![None; read.names.len()];
            for (name, value) in metrics {
                let column = *columns.entry(name.clone()).or_insert(read.names.len());
                if column == read.names.len() {
                    read.names.push(name);
                    values.push(None);
                }
                values[column] = Some(value);
            }
            read.rows.push(MetricRow { step, at, values });
        } else if let Ok(Header { thinning }) = serde_json::from_slice(line) {
            read.thinning = thinning;
        }
        if read.rows.len() > MAX_ROWS || read.names.len() > MAX_NAMES {
            break;
        }
    }
    for row in &mut read.rows {
        row.values.resize(read.names.len(), None);
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(step: u64, loss: f64) -> ProgressEntry {
        let metrics = [("loss".to_owned(), MetricValue(loss))].into();
        ProgressEntry { step: Some(step), total: None, metrics }
    }

    fn written(folder: &tempfile::TempDir) -> (SeriesWriter, PathBuf) {
        let path = folder.path().join("series");
        (SeriesWriter::new(path.clone()), path)
    }

    #[test]
    fn reports_are_read_back_with_a_column_for_each_name() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, path) = written(&folder);
        assert_eq!(read_series(&path).unwrap(), MetricSeries::default());
        writer.add(Time::from_micros(1), vec![entry(1, 0.5), entry(2, f64::NAN)]);
        let accuracy = [("accuracy".to_owned(), MetricValue(0.9))].into();
        let later = ProgressEntry { step: None, total: None, metrics: accuracy };
        writer.add(Time::from_micros(2), vec![later.clone(), later, ProgressEntry::default()]);
        let series = read_series(&path).unwrap();
        assert_eq!(series.names, ["loss", "accuracy"]);
        let points = |name| series.points(name).collect::<Vec<_>>();
        assert_eq!(points("loss"), [(1, MetricValue(0.5)), (2, MetricValue(f64::NAN))]);
        assert_eq!((points("accuracy"), points("none")), (vec![(2, MetricValue(0.9))], vec![]));
        assert_eq!((series.rows.len(), series.thinning), (3, 1));
    }

    #[test]
    fn a_long_training_is_thinned_out_evenly_and_keeps_what_is_no_number() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, path) = written(&folder);
        for step in 0..100_000 {
            let loss = if step == 77_777 { f64::INFINITY } else { 1.0 / (1.0 + step as f64) };
            writer.add(Time::EPOCH, vec![entry(step, loss)]);
        }
        let series = read_series(&path).unwrap();
        assert!((1_000..=MAX_ROWS).contains(&series.rows.len()), "{}", series.rows.len());
        assert_eq!(series.thinning, 64);
        let gaps = series.rows.windows(2).map(|rows| rows[1].step - rows[0].step);
        assert!(gaps.clone().all(|gap| gap <= 64), "{:?}", gaps.max());
        assert!(series.points("loss").any(|point| point == (77_777, MetricValue(f64::INFINITY))));
        assert!(std::fs::metadata(&path).unwrap().len() < 256 << 10);
    }

    #[test]
    fn many_metrics_and_no_numbers_at_all_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, path) = written(&folder);
        for step in 0..3_000 {
            let metrics = (0..64).map(|n| (format!("m{n}"), MetricValue(f64::NAN))).collect();
            writer.add(Time::EPOCH, vec![ProgressEntry { step: Some(step), total: None, metrics }]);
        }
        let series = read_series(&path).unwrap();
        let values: usize = series.rows.iter().map(|row| row.values.iter().flatten().count()).sum();
        assert!(values <= MAX_VALUES && series.rows.len() > 100, "{values} values");
    }

    #[test]
    fn a_torn_or_foreign_line_is_passed_over() {
        let text =
            b"{\"thinning\":4}\n{\"step\":1,\"at\":5,\"metrics\":{\"a\":1}}\nrubbish\n{\"step\":2,\"at\":";
        let read = series(text);
        assert_eq!((read.rows.len(), read.thinning), (1, 4));
    }
}
