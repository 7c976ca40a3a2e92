//! How far each channel has come, on the disk: replaced as a whole, durably, after each delivery.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cohabit_client::types::{FeedCursor, Time};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::NotifyError;

/// The version of the file that this program writes.
const VERSION: u32 = 1;

/// How far one channel has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChannelState {
    /// All entries up to this number are done.
    number: u64,
    /// The time of that entry, in microseconds since 1970.
    at: u64,
    /// Entries behind it that were delivered, while earlier ones wait to be told together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) delivered: Vec<u64>,
}

impl ChannelState {
    pub(crate) fn new(cursor: FeedCursor, delivered: Vec<u64>) -> ChannelState {
        ChannelState { number: cursor.number, at: cursor.at.as_micros(), delivered }
    }

    pub(crate) const fn cursor(&self) -> FeedCursor {
        FeedCursor { number: self.number, at: Time::from_micros(self.at) }
    }
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StateDocument {
    version: u32,
    channels: BTreeMap<String, ChannelState>,
}

/// The state file, which this process alone uses. Its methods block.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    document: Mutex<StateDocument>,
    _lock: Flock<File>,
}

impl StateFile {
    /// Opens the file; one that does not exist begins empty.
    pub(crate) fn open(path: &Path) -> Result<StateFile, NotifyError> {
        let failed = |source| NotifyError::State { path: path.to_owned(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(beside(path, ".lock"));
        let lock = Flock::lock(lock.map_err(failed)?, FlockArg::LockExclusiveNonblock);
        let lock = lock.map_err(|(_, error)| match error == Errno::EWOULDBLOCK {
            true => NotifyError::InUse { path: path.to_owned() },
            false => failed(error.into()),
        })?;
        let document = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => StateDocument::default(),
            read => parsed(&read.map_err(failed)?).map_err(failed)?,
        };
        let document = Mutex::new(StateDocument { version: VERSION, ..document });
        Ok(StateFile { path: path.to_owned(), document, _lock: lock })
    }

    /// How far this channel has come, if it has begun.
    pub(crate) fn channel(&self, name: &str) -> Option<ChannelState> {
        self.document.lock().unwrap_or_else(PoisonError::into_inner).channels.get(name).cloned()
    }

    /// Notes how far this channel has come; durable when this returns.
    pub(crate) fn note(&self, name: &str, state: ChannelState) -> Result<(), NotifyError> {
        let mut document = self.document.lock().unwrap_or_else(PoisonError::into_inner);
        document.channels.insert(name.to_owned(), state);
        let failed = |source| NotifyError::State { path: self.path.clone(), source };
        let bytes = serde_json::to_vec(&*document).map_err(|error| failed(error.into()))?;
        replace(&self.path, &bytes).map_err(failed)
    }
}

fn parsed(bytes: &[u8]) -> io::Result<StateDocument> {
    let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let remedy = "remove it to begin with what happens from now on";
    let document: StateDocument = serde_json::from_slice(bytes)
        .map_err(|error| invalid(format!("it is damaged ({error}): {remedy}")))?;
    match document.version > VERSION {
        true => Err(invalid(format!("a later version of cohabit wrote it: use that one, or {remedy}"))),
        false => Ok(document),
    }
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = beside(path, ".new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(number: u64) -> ChannelState {
        ChannelState::new(FeedCursor { number, at: Time::from_micros(9) }, vec![number + 2])
    }

    #[test]
    fn what_was_noted_is_there_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/state.json");
        let file = StateFile::open(&path).unwrap();
        assert_eq!(file.channel("mail"), None);
        file.note("mail", state(1)).unwrap();
        file.note("chat", state(2)).unwrap();
        file.note("mail", state(3)).unwrap();
        assert!(matches!(StateFile::open(&path), Err(NotifyError::InUse { .. })));
        drop(file);
        let file = StateFile::open(&path).unwrap();
        assert_eq!((file.channel("mail"), file.channel("chat")), (Some(state(3)), Some(state(2))));
    }

    #[test]
    fn a_damaged_file_and_one_of_a_later_version_are_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        for (text, part) in [("{", "it is damaged"), (r#"{"version":2,"channels":{}}"#, "a later version")] {
            fs::write(&path, text).unwrap();
            let refusal = StateFile::open(&path).unwrap_err();
            let cause = std::error::Error::source(&refusal).unwrap().to_string();
            assert!(cause.contains(part) && cause.contains("remove it"), "{cause}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "it stays as it was");
        }
    }
}
