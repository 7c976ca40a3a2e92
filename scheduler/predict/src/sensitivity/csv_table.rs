//! Our own format: CSV with the header `profile,cores,memory_gb,speed` and a row for each measured point, in
//! any order. Cores and memory are those of each device; speeds have any unit, the same within a profile.
//!
//! Where only cores were measured, `memory_gb` is empty in all rows of the profile: any amount will do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_policy::SensitivityTable;
use cohabit_types::Bytes;
use csv::{ReaderBuilder, StringRecord, Trim};

use super::error::SensitivityProblem;
use super::format::{COLUMNS, CORES, MEMORY, MOST_PROFILES, PROFILE, SPEED, columns, gigabytes};

/// The most rows of a file.
const MOST_ROWS: usize = 1_000_000;

/// The most memory for each device, in gigabytes: more than any machine has.
const MOST_MEMORY_GB: f64 = 1e6;

/// The points of a profile.
#[derive(Debug, Default)]
struct Points {
    /// Speeds by cores, whose bits are ordered as the positive numbers are, and memory.
    speeds: BTreeMap<(u64, Bytes), f64>,
    /// Whether rows have no memory.
    without_memory: bool,
}

/// One row.
struct Point {
    cores: f64,
    memory: Option<Bytes>,
    speed: f64,
}

/// The tables in this text by the name of their profile.
pub(super) fn read(text: &str) -> Result<BTreeMap<String, Arc<SensitivityTable>>, SensitivityProblem> {
    let mut reader = ReaderBuilder::new().trim(Trim::All).flexible(true).from_reader(text.as_bytes());
    let places = places(reader.headers().map_err(SensitivityProblem::Csv)?)?;
    let mut profiles: BTreeMap<String, Points> = BTreeMap::new();
    let mut record = StringRecord::new();
    let mut rows = 0;
    while reader.read_record(&mut record).map_err(SensitivityProblem::Csv)? {
        rows += 1;
        if rows > MOST_ROWS {
            return Err(SensitivityProblem::TooManyRows(MOST_ROWS));
        }
        let row = Row::of(&record, &places)?;
        let (name, point) = (row.profile()?, row.point()?);
        if !profiles.contains_key(name) && profiles.len() == MOST_PROFILES {
            return Err(SensitivityProblem::TooManyProfiles);
        }
        row.add(profiles.entry(name.to_owned()).or_default(), &point)?;
    }
    if profiles.is_empty() {
        return Err(SensitivityProblem::Empty);
    }
    let table = |(profile, points): (String, Points)| match points.into_table() {
        Ok(table) => Ok((profile, Arc::new(table))),
        Err(why) => Err(SensitivityProblem::Profile { profile, why }),
    };
    profiles.into_iter().map(table).collect()
}

/// Where each column is.
fn places(headings: &StringRecord) -> Result<[usize; 4], SensitivityProblem> {
    if headings.iter().all(str::is_empty) {
        return Err(SensitivityProblem::Empty);
    }
    let wrong = |what, column: &str| SensitivityProblem::Column { what, column: column.to_owned() };
    if let Some(unknown) = headings.iter().find(|heading| !COLUMNS.contains(heading)) {
        return Err(wrong("unknown", unknown));
    }
    let mut places = [0; 4];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        let mut found = headings.iter().enumerate().filter(|(_, heading)| *heading == column);
        *place = found.next().ok_or_else(|| wrong("missing", column))?.0;
        if found.next().is_some() {
            return Err(wrong("repeated", column));
        }
    }
    Ok(places)
}

/// A row of the file.
struct Row<'a> {
    line: u64,
    /// In the order of [`COLUMNS`].
    cells: [&'a str; 4],
}

impl<'a> Row<'a> {
    fn of(record: &'a StringRecord, places: &[usize; 4]) -> Result<Row<'a>, SensitivityProblem> {
        let line = record.position().map_or(0, csv::Position::line);
        if record.len() != COLUMNS.len() {
            let why = format!("it has {} cells instead of {}", record.len(), columns());
            return Err(SensitivityProblem::Row { line, why });
        }
        Ok(Row { line, cells: places.map(|place| &record[place]) })
    }

    fn profile(&self) -> Result<&'a str, SensitivityProblem> {
        let [profile, ..] = self.cells;
        match profile.is_empty() {
            true => Err(self.wrong(PROFILE, "the cell is empty: write the group, model or name of jobs")),
            false => Ok(profile),
        }
    }

    fn point(&self) -> Result<Point, SensitivityProblem> {
        let [_, cores, memory, speed] = self.cells;
        let memory = match memory {
            "" => None,
            given => Some(self.number(MEMORY, given, "a number of gigabytes from 0 to 1000000", |it| {
                (0.0..=MOST_MEMORY_GB).contains(&it)
            })?),
        };
        Ok(Point {
            cores: self.number(CORES, cores, "a number of cores above 0", |it| it > 0.0)?,
            memory: memory.map(gigabytes),
            speed: self.number(SPEED, speed, "a speed above 0", |it| it > 0.0)?,
        })
    }

    fn number(
        &self,
        column: &'static str,
        text: &str,
        expected: &str,
        fits: impl Fn(f64) -> bool,
    ) -> Result<f64, SensitivityProblem> {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite() && fits(*number));
        number.ok_or_else(|| self.wrong(column, &format!("'{text}' is not {expected}")))
    }

    /// Adds the point of this row to those of its profile.
    fn add(&self, points: &mut Points, point: &Point) -> Result<(), SensitivityProblem> {
        let [profile, ..] = self.cells;
        let without_memory = point.memory.is_none();
        if !points.speeds.is_empty() && points.without_memory != without_memory {
            let why = format!(
                "profile '{profile}' has rows with memory and rows without: write '{MEMORY}' in all of them, or in none"
            );
            return Err(self.refused(why));
        }
        points.without_memory = without_memory;
        let key = (point.cores.to_bits(), point.memory.unwrap_or_default());
        if points.speeds.insert(key, point.speed).is_some() {
            let memory = point.memory.map(|memory| format!(" and {memory}")).unwrap_or_default();
            let why = format!(
                "profile '{profile}' has a second speed for {} cores{memory}: leave one of the two rows out",
                point.cores
            );
            return Err(self.refused(why));
        }
        Ok(())
    }

    fn wrong(&self, column: &'static str, why: &str) -> SensitivityProblem {
        SensitivityProblem::Cell { line: self.line, column, why: why.to_owned() }
    }

    const fn refused(&self, why: String) -> SensitivityProblem {
        SensitivityProblem::Row { line: self.line, why }
    }
}

impl Points {
    fn into_table(self) -> Result<SensitivityTable, cohabit_policy::SensitivityError> {
        let cores: BTreeSet<u64> = self.speeds.keys().map(|(cores, _)| *cores).collect();
        let memory: BTreeSet<Bytes> = self.speeds.keys().map(|(_, memory)| *memory).collect();
        // A row ends at its first hole, so the rows together are never longer than there are points.
        let row = |cores: u64| {
            let speeds = memory.iter().map_while(|memory| self.speeds.get(&(cores, *memory)));
            speeds.copied().collect()
        };
        let rows: Vec<Vec<f64>> = cores.iter().map(|cores| row(*cores)).collect();
        let memory: Vec<Bytes> = memory.iter().copied().collect();
        SensitivityTable::new(cores.into_iter().map(f64::from_bits).collect(), &memory, &rows)
    }
}
