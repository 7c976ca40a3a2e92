//! The two files of a comparison: the table, and the details beside it.
//!
//! Both are rewritten after each set and replaced atomically, so a table never has half a set. The table
//! takes precedence: details of sets that it lacks are dropped.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cohabit_types::SharingStrategy;

use crate::details::{Details, NotMeasured, RunDetails, SetDetails};
use crate::error::ProfileError;
use crate::table::{self, ProfileRow, TableError};
use crate::workload::ProfileWorkload;
use cohabit_host::files::{FileContext, FileError};
use cohabit_host::format::{VersionedFile, read_versioned};

/// What has been measured.
#[derive(Debug)]
pub(super) struct Results {
    table: PathBuf,
    rows: Vec<ProfileRow>,
    details: Details,
    /// The fingerprint of the table when it was last written; `None` if there is no table.
    left: Option<FileFingerprint>,
}

/// What changes when the table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileFingerprint {
    inode: u64,
    length: u64,
    changed_at: (i64, i64),
}

impl Results {
    /// Reads both files; empty if there is no table.
    pub(super) fn open(table: &Path) -> Result<Results, ProfileError> {
        let left = file_fingerprint(table)?;
        let rows = match left {
            Some(_) => table::read(&fs::read(table).at("read", table)?)
                .map_err(|trouble| ProfileError::Table { table: table.to_owned(), trouble })?,
            None => Vec::new(),
        };
        let mut details: Details = read_versioned(&beside(table, ".json"))?.unwrap_or_default();
        details.sets.retain(|set| rows.iter().any(|row| row.set == set.set));
        Ok(Results { table: table.to_owned(), rows, details, left })
    }

    /// All rows.
    pub(super) fn rows(&self) -> &[ProfileRow] {
        &self.rows
    }

    /// Refuses workloads that differ from those of the same name in the table.
    pub(super) fn check(&self, workloads: &[ProfileWorkload]) -> Result<(), ProfileError> {
        let configuration =
            |model: &str, batch: u64, precision: &str| format!("model {model}, batch {batch} {precision}");
        for row in &self.rows {
            let there = configuration(&row.model, row.batch, &row.precision);
            let Some(workload) = workloads.iter().find(|workload| workload.name == row.workload) else {
                continue;
            };
            let now = configuration(&workload.model, workload.batch, &workload.precision);
            if there != now {
                let (table, workload) = (self.table.clone(), row.workload.clone());
                return Err(ProfileError::OtherWorkload { table, workload, there, now });
            }
        }
        Ok(())
    }

    /// Whether the table has this set, with names in any order.
    pub(super) fn has(&self, gpu: &str, sharing: SharingStrategy, names: &[&str]) -> bool {
        let mut wanted = names.to_vec();
        wanted.sort_unstable();
        let ours = |row: &&ProfileRow| row.gpu == gpu && row.sharing == sharing;
        self.rows.chunk_by(|a, b| a.set == b.set).any(|set| {
            let mut there: Vec<&str> = set.iter().filter(ours).map(|row| row.workload.as_str()).collect();
            there.sort_unstable();
            there == wanted
        })
    }

    /// The row of a workload alone on this GPU.
    pub(super) fn solo(&self, gpu: &str, workload: &str) -> Option<&ProfileRow> {
        let is_alone = |set: &&[ProfileRow]| set.len() == 1 && set[0].sharing == SharingStrategy::Exclusive;
        let mut alone = self.rows.chunk_by(|a, b| a.set == b.set).filter(is_alone).flatten();
        alone.find(|row| row.gpu == gpu && row.workload == workload)
    }

    /// The number of the next set.
    pub(super) fn next_set(&self) -> u64 {
        self.rows.iter().map(|row| row.set).max().map_or(1, |last| last + 1)
    }

    /// Adds a command and returns its number.
    pub(super) fn begin(&mut self, run: RunDetails) -> usize {
        self.details.runs.push(run);
        self.details.runs.len() - 1
    }

    /// Adds a set, all of it or nothing.
    pub(super) fn add(&mut self, rows: Vec<ProfileRow>, details: SetDetails) -> Result<(), ProfileError> {
        let names: Vec<String> = rows.iter().map(|row| row.workload.clone()).collect();
        self.forget(&details.sharing, &names);
        self.rows.extend(rows);
        self.details.sets.push(details);
        self.save()
    }

    /// Adds a set that could not be measured.
    pub(super) fn add_not_measured(&mut self, set: NotMeasured) -> Result<(), ProfileError> {
        self.forget(&set.sharing, &set.workloads);
        self.details.not_measured.push(set);
        self.save()
    }

    /// Removes the record of an earlier failure to measure this set.
    fn forget(&mut self, sharing: &str, names: &[String]) {
        self.details.not_measured.retain(|set| set.sharing != sharing || set.workloads != names);
    }

    fn save(&mut self) -> Result<(), ProfileError> {
        if file_fingerprint(&self.table)? != self.left {
            return Err(ProfileError::Changed(self.table.clone()));
        }
        let unwritable = |trouble: TableError| ProfileError::Table { table: self.table.clone(), trouble };
        let details = beside(&self.table, ".json");
        put(&details, &self.details.encode())?;
        put(&self.table, &table::write(&self.rows).map_err(unwritable)?)?;
        self.left = file_fingerprint(&self.table)?;
        Ok(())
    }
}

/// `TABLE.csv.json` for `TABLE.csv`.
fn beside(table: &Path, ending: &str) -> PathBuf {
    let mut name = table.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Replaces the file atomically.
fn put(path: &Path, text: &[u8]) -> Result<(), FileError> {
    let fresh = beside(path, ".new");
    let mut file = File::create(&fresh).at("create", &fresh)?;
    file.write_all(text).at("write", &fresh)?;
    file.sync_all().at("flush", &fresh)?;
    fs::rename(&fresh, path).at("put in place", path)
}

fn file_fingerprint(path: &Path) -> Result<Option<FileFingerprint>, FileError> {
    match fs::metadata(path) {
        Ok(file) => {
            let changed_at = (file.mtime(), file.mtime_nsec());
            Ok(Some(FileFingerprint { inode: file.ino(), length: file.len(), changed_at }))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at("inspect", path),
    }
}

#[cfg(test)]
mod tests {
    use SharingStrategy::{Exclusive, Mps, TimeSliced};

    use super::*;
    use crate::table::samples::row;
    use crate::workload::samples::workload;

    fn details(set: u64) -> SetDetails {
        SetDetails {
            set,
            run: 0,
            sharing: "mps".into(),
            ended_at: "2026-11-21T08:33:20Z".into(),
            took_s: 20.0,
            feasible: true,
            reason: None,
            members: Vec::new(),
            performance: None,
        }
    }

    fn filled(table: &Path) -> Results {
        let mut results = Results::open(table).unwrap();
        results.add(vec![row(1, Exclusive, "a", 10.0)], details(1)).unwrap();
        let pair = vec![row(2, Mps, "b", 7.0), row(2, Mps, "a", 8.0)];
        results.add(pair, details(2)).unwrap();
        results
    }

    #[test]
    fn measured_sets_are_known_to_the_next_command() {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("t.csv");
        filled(&table);
        let results = Results::open(&table).unwrap();
        assert_eq!((results.rows.len(), results.details.sets.len(), results.next_set()), (3, 2, 3));
        assert!(results.has("Fake H200", Mps, &["a", "b"]) && results.has("Fake H200", Mps, &["b", "a"]));
        for (gpu, sharing, names) in [
            ("Another", Mps, &["a", "b"][..]),
            ("Fake H200", TimeSliced, &["a", "b"]),
            ("Fake H200", Mps, &["a"]),
            ("Fake H200", Mps, &["a", "a"]),
            ("Fake H200", Mps, &["a", "b", "b"]),
        ] {
            assert!(!results.has(gpu, sharing, names), "{gpu} {sharing:?} {names:?}");
        }
        assert_eq!(results.solo("Fake H200", "a").map(|row| row.set), Some(1));
        assert_eq!(results.solo("Fake H200", "b"), None);
    }

    #[test]
    fn details_of_sets_that_the_table_has_not_got_are_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("t.csv");
        filled(&table);
        let text = fs::read_to_string(&table).unwrap();
        fs::write(&table, text.lines().take(2).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        let results = Results::open(&table).unwrap();
        assert_eq!(results.details.sets.iter().map(|set| set.set).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn details_of_a_newer_profiler_are_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (table, details) = (folder.path().join("t.csv"), folder.path().join("t.csv.json"));
        filled(&table);
        let newer = r#"{"schema":2,"runs":{},"clocks":[1410]}"#;
        fs::write(&details, newer).unwrap();
        let refusal = Results::open(&table).unwrap_err().to_string();
        for part in ["t.csv.json", "version 2", "reads 1 to 1", "another one"] {
            assert!(refusal.contains(part), "{refusal}");
        }
        assert_eq!(fs::read_to_string(&details).unwrap(), newer);
    }

    #[test]
    fn details_of_released_profilers_are_read_and_written_alike() {
        let folder = tempfile::tempdir().unwrap();
        let (table, path) = (folder.path().join("t.csv"), folder.path().join("t.csv.json"));
        let golden = include_str!("../golden/details-1.json");
        fs::write(&path, golden).unwrap();
        let details = read_versioned::<Details>(&path).unwrap().unwrap();
        assert_eq!((details.runs.len(), details.sets[0].members.len()), (1, 1));
        assert_eq!(String::from_utf8(details.encode()).unwrap(), golden);
        // A table without sets has no details of them.
        assert!(Results::open(&table).unwrap().details.sets.is_empty());
    }

    #[test]
    fn a_set_that_could_not_be_measured_is_forgotten_once_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = filled(&folder.path().join("t.csv"));
        let failed = |reason: &str| NotMeasured {
            run: 0,
            sharing: "mps".into(),
            workloads: vec!["c".into()],
            reason: reason.into(),
        };
        results.add_not_measured(failed("first")).unwrap();
        results.add_not_measured(failed("second")).unwrap();
        assert_eq!(results.details.not_measured, [failed("second")]);
        results.add(vec![row(3, Mps, "c", 7.0)], details(3)).unwrap();
        assert_eq!(results.details.not_measured, []);
    }

    #[test]
    fn tables_of_other_programs_are_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let table = folder.path().join("t.csv");
        let mut results = filled(&table);
        let text = fs::read_to_string(&table).unwrap() + "# mine\n";
        fs::write(&table, &text).unwrap();
        let refusal = results.add(vec![row(3, Mps, "c", 7.0)], details(3)).unwrap_err();
        assert!(matches!(refusal, ProfileError::Changed(_)), "{refusal}");
        assert_eq!(fs::read_to_string(&table).unwrap(), text);
    }

    #[test]
    fn a_name_stands_for_one_workload_only() {
        let folder = tempfile::tempdir().unwrap();
        let results = filled(&folder.path().join("t.csv"));
        results.check(&[workload("a"), workload("new")]).unwrap();
        let larger = ProfileWorkload { batch: 64, ..workload("b") };
        let refusal = results.check(&[larger]).unwrap_err().to_string();
        assert!(
            refusal.contains("'b' is in the table with model b-net, batch 8 fp32, but now has"),
            "{refusal}"
        );
    }
}
