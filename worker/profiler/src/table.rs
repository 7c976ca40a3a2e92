//! The co-location table: a row for each member of a set, as CSV.
//!
//! Pure. Columns that this program does not know are kept as they are.

use std::collections::{BTreeMap, BTreeSet};

use cohabit_types::{CO_LOCATION_COLUMNS, SharingStrategy};
use csv::StringRecord;

/// The columns of this program's tables beyond those of every table. Feature columns follow.
const OWN_COLUMNS: [&str; 4] = ["workload", "precision", "solo_spread", "rate_spread"];

fn is_column(name: &str) -> bool {
    CO_LOCATION_COLUMNS.iter().chain(&OWN_COLUMNS).any(|column| *column == name)
}

/// One member of a set.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileRow {
    /// The number of its set, unique in the table.
    pub set: u64,
    /// Model of the GPU.
    pub gpu: String,
    /// How the set shared the GPU.
    pub sharing: SharingStrategy,
    /// The model that is trained.
    pub model: String,
    /// Samples in one step.
    pub batch: u64,
    /// Alone on the GPU, without MPS.
    pub solo: MemberFigures,
    /// Together with the other members.
    pub together: MemberFigures,
    /// Whether the set can run on the GPU at all.
    pub feasible: bool,
    /// The workload's name.
    pub workload: String,
    /// Its precision.
    pub precision: String,
    /// Further properties, by column.
    pub features: BTreeMap<String, String>,
}

/// The measurements of one member.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct MemberFigures {
    /// Steps per second.
    pub rate: Option<f64>,
    /// The difference between the fastest and the slowest part of the measurement, relative to the rate.
    pub spread: Option<f64>,
    /// The most memory that its processes held, in bytes.
    pub memory: Option<u64>,
    /// The fraction of time in which the GPU was busy, 0 to 1.
    pub utilization: Option<f64>,
}

/// Why a table cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// It is not CSV.
    #[error("{0}")]
    Csv(#[from] csv::Error),
    /// It is another kind of table.
    #[error("column '{0}' is missing: this is not a table of `cohabit profile`; write to another file")]
    NoColumn(&'static str),
    /// A cell is invalid.
    #[error("line {line}: '{text}' is not a valid {column}")]
    Cell {
        /// From 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// The content of the cell.
        text: String,
    },
}

/// Parses a table.
pub(super) fn read(text: &[u8]) -> Result<Vec<ProfileRow>, TableError> {
    let mut reader = csv::Reader::from_reader(text);
    let headings = reader.headers()?.clone();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record?;
        rows.push(Cells { headings: &headings, record: &record }.row()?);
    }
    Ok(rows)
}

/// Writes a table.
pub(super) fn write(rows: &[ProfileRow]) -> Result<Vec<u8>, TableError> {
    let features: BTreeSet<&str> =
        rows.iter().flat_map(|row| row.features.keys()).map(String::as_str).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(CO_LOCATION_COLUMNS.iter().chain(&OWN_COLUMNS).chain(&features))?;
    for row in rows {
        let more = features.iter().map(|name| row.features.get(*name).cloned().unwrap_or_default());
        writer.write_record(cells(row).into_iter().chain(more))?;
    }
    writer.into_inner().map_err(|error| csv::Error::from(error.into_error()).into())
}

fn cells(row: &ProfileRow) -> [String; 16] {
    let ProfileRow { solo, together, .. } = row;
    [
        row.set.to_string(),
        row.gpu.clone(),
        row.sharing.word().to_owned(),
        row.model.clone(),
        row.batch.to_string(),
        number(solo.rate),
        number(together.rate),
        solo.memory.map_or(String::new(), |bytes| bytes.to_string()),
        together.memory.map_or(String::new(), |bytes| bytes.to_string()),
        number(solo.utilization),
        number(together.utilization),
        row.feasible.to_string(),
        row.workload.clone(),
        row.precision.clone(),
        number(solo.spread),
        number(together.spread),
    ]
}

/// Rounds to six significant digits, which is more than any measurement has.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| rounded(value).to_string())
}

/// One line, with access by column name.
struct Cells<'a> {
    headings: &'a StringRecord,
    record: &'a StringRecord,
}

impl Cells<'_> {
    fn row(&self) -> Result<ProfileRow, TableError> {
        let features =
            self.headings.iter().zip(self.record).filter(|(name, text)| !is_column(name) && !text.is_empty());
        Ok(ProfileRow {
            set: self.must("set")?,
            gpu: self.text("gpu")?.to_owned(),
            sharing: self.text("sharing")?.parse().map_err(|_| self.wrong("sharing"))?,
            model: self.text("model")?.to_owned(),
            batch: self.must("batch")?,
            solo: self.figures(["solo_rate", "solo_spread", "solo_mem", "solo_util"])?,
            together: self.figures(["rate", "rate_spread", "mem", "util"])?,
            feasible: self.must("feasible")?,
            workload: self.text("workload")?.to_owned(),
            precision: self.text("precision")?.to_owned(),
            features: features.map(|(name, text)| (name.to_owned(), text.to_owned())).collect(),
        })
    }

    fn figures(
        &self,
        [rate, spread, memory, utilization]: [&'static str; 4],
    ) -> Result<MemberFigures, TableError> {
        Ok(MemberFigures {
            rate: self.may(rate)?,
            spread: self.may(spread)?,
            memory: self.may(memory)?,
            utilization: self.may(utilization)?,
        })
    }

    fn text(&self, column: &'static str) -> Result<&str, TableError> {
        let at = self.headings.iter().position(|name| name == column).ok_or(TableError::NoColumn(column))?;
        Ok(self.record.get(at).unwrap_or_default())
    }

    fn may<T: std::str::FromStr>(&self, column: &'static str) -> Result<Option<T>, TableError> {
        if self.text(column)?.is_empty() { Ok(None) } else { self.must(column).map(Some) }
    }

    fn must<T: std::str::FromStr>(&self, column: &'static str) -> Result<T, TableError> {
        self.text(column)?.parse().map_err(|_| self.wrong(column))
    }

    fn wrong(&self, column: &'static str) -> TableError {
        let text = self.text(column).unwrap_or_default().to_owned();
        TableError::Cell { line: self.record.position().map_or(0, csv::Position::line), column, text }
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::*;

    /// A member that alone makes 10 steps a second.
    pub(crate) fn row(set: u64, sharing: SharingStrategy, workload: &str, rate: f64) -> ProfileRow {
        let figures = |rate| MemberFigures {
            rate: Some(rate),
            spread: Some(0.01),
            memory: Some(1 << 30),
            utilization: Some(0.5),
        };
        ProfileRow {
            set,
            gpu: "Fake H200".into(),
            sharing,
            model: format!("{workload}-net"),
            batch: 8,
            solo: figures(10.0),
            together: figures(rate),
            feasible: true,
            workload: workload.to_owned(),
            precision: "fp32".into(),
            features: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::samples::row;
    use super::*;

    fn text(rows: &[ProfileRow]) -> String {
        String::from_utf8(write(rows).unwrap()).unwrap()
    }

    #[test]
    fn a_row_has_the_columns_that_predictors_read() {
        let text = text(&[row(3, SharingStrategy::Mps, "a", 6.123_456_789)]);
        assert_eq!(
            text,
            "set,gpu,sharing,model,batch,solo_rate,rate,solo_mem,mem,solo_util,util,feasible,workload,precision,solo_spread,rate_spread\n\
             3,Fake H200,mps,a-net,8,10,6.12346,1073741824,1073741824,0.5,0.5,true,a,fp32,0.01,0.01\n"
        );
    }

    #[test]
    fn a_table_is_read_as_it_was_written_with_the_features_of_every_row() {
        let feature = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
        let infeasible = MemberFigures::default();
        let rows = [
            ProfileRow {
                features: feature("op_Conv", "53"),
                ..row(1, SharingStrategy::Exclusive, "a, \"b\"", 10.0)
            },
            ProfileRow {
                features: feature("family", "cnn"),
                ..row(2, SharingStrategy::TimeSliced, "c", 4.5)
            },
            ProfileRow {
                together: infeasible,
                feasible: false,
                ..row(2, SharingStrategy::TimeSliced, "d", 0.0)
            },
        ];
        assert_eq!(read(text(&rows).as_bytes()).unwrap(), rows);
    }

    #[test]
    fn an_invalid_cell_is_reported_with_its_line() {
        let good = text(&[row(1, SharingStrategy::Mps, "a", 6.0)]);
        let refusal = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(refusal(&good.replace(",mps,", ",spread,")), "line 2: 'spread' is not a valid sharing");
        assert_eq!(refusal(&good.replace(",10,6,", ",fast,6,")), "line 2: 'fast' is not a valid solo_rate");
        assert!(refusal(&good.replace("workload", "name")).contains("column 'workload'"));
        assert!(refusal(&(good + "1,2\n")).contains("line: 3"));
    }
}
