//! Two directories: one that is read, one that is written to.

use std::path::PathBuf;

use cohabit_transfer::{
    ReceiveError, ReceiveLimits, Received, Receiver, Target, TransferEntry, TransferPath, TransferTask,
    encode, send,
};
use cohabit_types::{Bytes, COPY_LIMIT, CopyDepth};
use tempfile::TempDir;

pub(crate) struct Kit {
    pub(crate) from: TempDir,
    pub(crate) to: TempDir,
}

impl Kit {
    pub(crate) fn new() -> Kit {
        Kit { from: tempfile::tempdir().unwrap(), to: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn source(&self, name: &str) -> PathBuf {
        self.from.path().join(name)
    }

    pub(crate) fn target(&self, name: &str) -> PathBuf {
        self.to.path().join(name)
    }

    pub(crate) fn task(&self, path: &str) -> TransferTask {
        TransferTask {
            base: self.from.path().to_owned(),
            path: path.into(),
            depth: CopyDepth::Tree,
            limit: COPY_LIMIT,
            private: Vec::new(),
            open: Vec::new(),
        }
    }

    /// What comes of this task where it arrives as `name`.
    pub(crate) fn transfer(&self, task: &TransferTask, name: &str) -> Result<Received, ReceiveError> {
        let mut bytes = Vec::new();
        send(task, &mut bytes).unwrap();
        self.receive(name, &bytes)
    }

    pub(crate) fn receive(&self, name: &str, bytes: &[u8]) -> Result<Received, ReceiveError> {
        let mut receiver = Receiver::new(Target::Path(self.target(name)), limits(COPY_LIMIT));
        for piece in bytes.chunks(1_000) {
            receiver.take(piece)?;
        }
        receiver.finish()
    }

    /// The names in the directory that is written to.
    pub(crate) fn arrived(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.to.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

pub(crate) const fn limits(bytes: Bytes) -> ReceiveLimits {
    ReceiveLimits { bytes }
}

pub(crate) fn path(names: &[&str]) -> TransferPath {
    names.iter().fold(TransferPath::default(), |path, name| path.join(name.as_bytes()).unwrap())
}

pub(crate) fn stream(entries: &[TransferEntry]) -> Vec<u8> {
    entries.iter().flat_map(|entry| encode(entry).unwrap()).collect()
}
