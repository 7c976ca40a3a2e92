//! The versions of the trained model in the state directory: a directory for each, and a file that names the
//! current one.
//!
//! ```text
//! interference/current        3, or 3 held, or base held
//! interference/3/version.json its record, written last: a directory without it is not a version
//! interference/3/...          the files of the model
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cohabit_types::{ModelChoice, ModelRecord};

/// How many versions are kept besides the current one.
const MAX_OLD_VERSIONS: usize = 10;

/// Every version, and which of them is current.
#[derive(Debug)]
pub(super) struct ModelVersions {
    folder: PathBuf,
    /// The oldest first.
    records: Vec<ModelRecord>,
    choice: VersionChoice,
}

/// Which version is current; without one the base predictor is in use.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct VersionChoice {
    pub(super) current: Option<u32>,
    /// Whether an admin chose it, so that no newer version replaces it.
    pub(super) pinned: bool,
}

impl ModelVersions {
    /// Reads the directory, if it exists. Versions that cannot be read are skipped with a warning.
    pub(super) fn open(folder: PathBuf) -> ModelVersions {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut records: Vec<ModelRecord> = entries.filter_map(|entry| record(&entry.path())).collect();
        records.sort_by_key(|record| record.version);
        let written = fs::read_to_string(folder.join(CURRENT)).unwrap_or_default();
        let choice = VersionChoice::read(&written).filter(|it| it.is_one_of(&records));
        ModelVersions { folder, records, choice: choice.unwrap_or_default() }
    }

    pub(super) fn records(&self) -> &[ModelRecord] {
        &self.records
    }

    pub(super) fn find(&self, version: u32) -> Option<&ModelRecord> {
        self.records.iter().find(|record| record.version == version)
    }

    pub(super) fn choice(&self) -> VersionChoice {
        self.choice
    }

    /// The number of the next version, which no earlier one had.
    pub(super) fn next(&self) -> u32 {
        self.records.last().map_or(0, |record| record.version) + 1
    }

    /// The directory of a version.
    pub(super) fn folder(&self, version: u32) -> PathBuf {
        self.folder.join(version.to_string())
    }

    /// Makes the model in this version's directory a version, and the current one.
    pub(super) fn add(&mut self, record: ModelRecord) -> io::Result<()> {
        let version = record.version;
        write_atomically(&self.folder(version).join(RECORD), &serde_json::to_vec_pretty(&record)?)?;
        self.records.push(record);
        self.choose(VersionChoice { current: Some(version), pinned: false })?;
        self.remove_oldest();
        Ok(())
    }

    /// Makes this the choice from now on.
    pub(super) fn choose(&mut self, choice: VersionChoice) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        write_atomically(&self.folder.join(CURRENT), choice.text().as_bytes())?;
        self.choice = choice;
        Ok(())
    }

    /// Uses the base predictor until the next choice. Nothing is written: the next start tries the stored
    /// choice again.
    pub(super) fn fall_back_to_base(&mut self) {
        self.choice = VersionChoice::default();
    }

    /// Failures are only logged: a directory that stays costs disk space and nothing else.
    fn remove_oldest(&mut self) {
        let current = self.choice.current;
        let old = |record: &&ModelRecord| Some(record.version) != current;
        let count = self.records.iter().filter(old).count().saturating_sub(MAX_OLD_VERSIONS);
        let forgotten: Vec<u32> = self.records.iter().filter(old).take(count).map(|it| it.version).collect();
        for version in forgotten {
            if let Err(error) = fs::remove_dir_all(self.folder(version)) {
                tracing::warn!(version, %error, "cannot remove an old version of the model");
            }
            self.records.retain(|record| record.version != version);
        }
    }
}

const CURRENT: &str = "current";
const RECORD: &str = "version.json";
const PINNED: &str = " held";

impl VersionChoice {
    fn text(self) -> String {
        let choice = self.current.map_or(ModelChoice::Base, ModelChoice::Version);
        format!("{choice}{}\n", if self.pinned { PINNED } else { "" })
    }

    fn read(text: &str) -> Option<VersionChoice> {
        let text = text.trim_end();
        let (choice, pinned) = text.strip_suffix(PINNED).map_or((text, false), |choice| (choice, true));
        match choice.parse().ok()? {
            ModelChoice::Version(version) => Some(VersionChoice { current: Some(version), pinned }),
            ModelChoice::Base => Some(VersionChoice { current: None, pinned }),
            ModelChoice::Auto => None,
        }
    }

    fn is_one_of(&self, records: &[ModelRecord]) -> bool {
        self.current.is_none_or(|version| records.iter().any(|record| record.version == version))
    }
}

/// The record of the version in a directory, whose name must be the version's number.
fn record(folder: &Path) -> Option<ModelRecord> {
    let number: u32 = folder.file_name()?.to_str()?.parse().ok()?;
    let text = fs::read(folder.join(RECORD)).ok()?;
    let record = serde_json::from_slice::<ModelRecord>(&text);
    if let Err(error) = &record {
        tracing::warn!(folder = %folder.display(), %error, "this version of the model is damaged and is skipped");
    }
    record.ok().filter(|record| record.version == number)
}

/// Writes to a draft and renames it, so that no reader sees half a file.
pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_added_extension("new");
    fs::write(&draft, bytes)?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use cohabit_types::Time;

    use super::*;

    fn version(number: u32) -> ModelRecord {
        ModelRecord {
            version: number,
            kind: "gaussian".into(),
            base: "law".into(),
            trained_at: Time::EPOCH,
            rows: 40,
            validation_rows: 10,
            error: 0.05,
            error_before: 0.1,
        }
    }

    /// A directory with this many versions.
    fn with(folder: &Path, count: u32) -> ModelVersions {
        let mut versions = ModelVersions::open(folder.join("interference"));
        for _ in 0..count {
            let next = versions.next();
            fs::create_dir_all(versions.folder(next)).unwrap();
            versions.add(version(next)).unwrap();
        }
        versions
    }

    #[test]
    fn versions_and_the_choice_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut versions = with(folder.path(), 2);
        versions.choose(VersionChoice { current: Some(1), pinned: true }).unwrap();
        let again = ModelVersions::open(folder.path().join("interference"));
        assert_eq!((again.records(), again.choice()), (versions.records(), versions.choice()));
        assert_eq!(again.next(), 3);
    }

    #[test]
    fn a_damaged_version_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let versions = with(folder.path(), 2);
        fs::write(versions.folder(2).join(RECORD), "{").unwrap();
        fs::create_dir(versions.folder(3)).unwrap();
        let again = ModelVersions::open(folder.path().join("interference"));
        assert_eq!(again.records(), [version(1)]);
        assert_eq!(
            again.choice(),
            VersionChoice::default(),
            "a version that does not exist cannot be current"
        );
    }

    #[test]
    fn only_the_newest_and_the_current_one_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let versions = with(folder.path(), 14);
        let kept: Vec<u32> = versions.records().iter().map(|record| record.version).collect();
        assert_eq!(kept, (4..=14).collect::<Vec<_>>());
        assert!(!versions.folder(3).exists() && versions.folder(4).exists());
    }
}
