//! The versions of the trained model in the state directory: a directory for each, and a file that names the
//! current one.
//!
//! ```text
//! interference/current        3, or 3 held, or base held
//! interference/3/version.json its record, written last: a directory without it is not a version
//! interference/3/...          the files of the model
//! ```
//!
//! Whatever has a number for a name keeps it: a folder that this program cannot read may be a version of a
//! newer one. The same holds for `current`, which only an admin's choice replaces then.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cohabit_types::{ModelChoice, ModelRecord, Time};

use super::version_file::{StoredVersion, decode, encode};

/// How many versions are kept besides the current one.
const MAX_OLD_VERSIONS: usize = 10;

/// Every version, and which of them is current.
#[derive(Debug)]
pub(super) struct ModelVersions {
    folder: PathBuf,
    /// The oldest first.
    records: Vec<ModelRecord>,
    /// Until when a version may have learned sets that judge others, for those that may.
    learned_until: BTreeMap<u32, Time>,
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
        let stored: Vec<StoredVersion> =
            numbers_in(&folder).filter_map(|number| stored_version(&folder, number)).collect();
        let learned = |it: &StoredVersion| Some((it.record.version, it.learned_until?));
        let learned_until = stored.iter().filter_map(learned).collect();
        let mut records: Vec<ModelRecord> = stored.into_iter().map(|it| it.record).collect();
        records.sort_by_key(|record| record.version);
        let written = fs::read_to_string(folder.join(CURRENT)).unwrap_or_default();
        let choice = match VersionChoice::read(&written) {
            Some(choice) if choice.is_one_of(&records) => choice,
            None if !written.is_empty() => unreadable_choice(&folder),
            Some(_) | None => VersionChoice::default(),
        };
        ModelVersions { folder, records, learned_until, choice }
    }

    pub(super) fn records(&self) -> &[ModelRecord] {
        &self.records
    }

    pub(super) fn find(&self, version: u32) -> Option<&ModelRecord> {
        self.records.iter().find(|record| record.version == version)
    }

    /// Until when a version may have learned sets that judge others; `None` if it learned none of them.
    pub(super) fn learned_until(&self, version: u32) -> Option<Time> {
        self.learned_until.get(&version).copied()
    }

    pub(super) fn choice(&self) -> VersionChoice {
        self.choice
    }

    /// The number of the next version, which no earlier one had, whether or not it can be read.
    pub(super) fn next(&self) -> u32 {
        let known = self.records.last().map_or(0, |record| record.version);
        numbers_in(&self.folder).fold(known, u32::max).saturating_add(1)
    }

    /// The directory of a version.
    pub(super) fn folder(&self, version: u32) -> PathBuf {
        self.folder.join(version.to_string())
    }

    /// Makes the model in this version's directory a version, and the current one.
    pub(super) fn add(&mut self, record: ModelRecord) -> io::Result<()> {
        let version = record.version;
        write_atomically(&self.folder(version).join(RECORD), &encode(&record)?)?;
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

/// The names in the directory that are numbers.
fn numbers_in(folder: &Path) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The version in a directory, whose name must be the version's number.
fn stored_version(folder: &Path, number: u32) -> Option<StoredVersion> {
    let file = folder.join(number.to_string()).join(RECORD);
    let stored = decode(&fs::read(&file).ok()?);
    if let Err(error) = &stored {
        tracing::warn!(file = %file.display(), %error, "this version of the model cannot be read and is skipped");
    }
    stored.ok().filter(|stored| stored.record.version == number)
}

/// Neither a refit nor a restart replaces a choice that this program does not understand.
fn unreadable_choice(folder: &Path) -> VersionChoice {
    tracing::warn!(
        file = %folder.join(CURRENT).display(),
        "the choice of the model cannot be read, so the base predictor is in use and no new model replaces it: \
         start the version of Cohabit that wrote the file, or choose with `cohabit models use auto`"
    );
    VersionChoice { current: None, pinned: true }
}

/// Writes to a draft and renames it, so that no reader sees half a file.
pub(super) fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_added_extension("new");
    fs::write(&draft, bytes)?;
    fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
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
    fn the_number_of_a_version_that_cannot_be_read_is_never_used_again() {
        let folder = tempfile::tempdir().unwrap();
        let versions = with(folder.path(), 2);
        let newer = r#"{"schema":2,"version":2}"#;
        fs::write(versions.folder(2).join(RECORD), newer).unwrap();
        let again = with(folder.path(), 1);
        assert_eq!(again.records(), [version(1), version(3)]);
        assert_eq!(fs::read_to_string(again.folder(2).join(RECORD)).unwrap(), newer);
        fs::create_dir(again.folder(9)).unwrap();
        assert_eq!(again.next(), 10, "also of a folder that appeared since");
    }

    #[test]
    fn a_choice_that_cannot_be_read_is_kept_until_an_admin_chooses() {
        let folder = tempfile::tempdir().unwrap();
        let versions = with(folder.path(), 1);
        let current = versions.folder.join(CURRENT);
        fs::write(&current, "mixture of 1 and 2\n").unwrap();
        let mut again = ModelVersions::open(versions.folder.clone());
        assert_eq!(again.choice(), VersionChoice { current: None, pinned: true });
        assert_eq!(fs::read_to_string(&current).unwrap(), "mixture of 1 and 2\n");
        again.choose(VersionChoice { current: Some(1), pinned: false }).unwrap();
        assert_eq!(fs::read_to_string(&current).unwrap(), "1\n");
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
