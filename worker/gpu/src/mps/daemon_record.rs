//! Which processes the MPS daemon of a GPU has, and the format of `daemon.json`, which says so.
//!
//! MPS daemons outlive worker daemons, so a worker may find the file of a newer version. `golden` holds what
//! each version wrote.

use cohabit_types::{DeviceId, FormatVersion, NewerVersion};
use serde::{Deserialize, Serialize};

use super::server_log::Position;
use crate::process::ProcessIdentity;

/// The version that is written, and the latest that is read.
const VERSION: FormatVersion = FormatVersion::new(1);

const REMEDY: &str = "start the newer version again, or let the jobs on this GPU end before a downgrade";

/// A daemon that was started and checked.
#[derive(Debug)]
pub(super) struct DaemonRecord {
    pub(super) gpu: DeviceId,
    pub(super) daemon: ProcessIdentity,
    pub(super) server: ProcessIdentity,
    /// How far its server's log was read and its faults dealt with.
    pub(super) acknowledged_log_position: Position,
}

/// Why the file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum DaemonFileError {
    /// A later version of Cohabit wrote it.
    #[error(transparent)]
    Newer(#[from] NewerVersion),
    /// It is damaged.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The system does not give it.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

#[derive(Serialize, Deserialize)]
struct DaemonFile {
    #[serde(default)]
    version: FormatVersion,
    gpu: DeviceId,
    daemon: ProcessPart,
    server: ProcessPart,
    /// How far the server's log was read and its faults dealt with.
    dealt_with: Position,
}

#[derive(Serialize, Deserialize)]
struct ProcessPart {
    pid: i32,
    started_at_ticks: u64,
    boot: String,
}

/// The part of every version.
#[derive(Deserialize)]
struct VersionField {
    #[serde(default)]
    version: FormatVersion,
}

impl DaemonRecord {
    /// The text of the file.
    pub(super) fn encode(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&DaemonFile::from(self))
    }

    /// Reads a file of any version up to this one.
    ///
    /// # Errors
    /// When the file is of a later version, or is not such a file.
    pub(super) fn decode(text: &[u8]) -> Result<DaemonRecord, DaemonFileError> {
        let VersionField { version } = serde_json::from_slice(text)?;
        version.check(VERSION, REMEDY)?;
        Ok(serde_json::from_slice::<DaemonFile>(text)?.into())
    }
}

impl From<&DaemonRecord> for DaemonFile {
    fn from(record: &DaemonRecord) -> DaemonFile {
        let DaemonRecord { gpu, daemon, server, acknowledged_log_position } = record;
        DaemonFile {
            version: VERSION,
            gpu: gpu.clone(),
            daemon: daemon.into(),
            server: server.into(),
            dealt_with: *acknowledged_log_position,
        }
    }
}

impl From<DaemonFile> for DaemonRecord {
    fn from(file: DaemonFile) -> DaemonRecord {
        let DaemonFile { version: _, gpu, daemon, server, dealt_with } = file;
        DaemonRecord {
            gpu,
            daemon: daemon.into(),
            server: server.into(),
            acknowledged_log_position: dealt_with,
        }
    }
}

impl From<&ProcessIdentity> for ProcessPart {
    fn from(process: &ProcessIdentity) -> ProcessPart {
        ProcessPart {
            pid: process.pid(),
            started_at_ticks: process.started_at_ticks(),
            boot: process.boot().to_owned(),
        }
    }
}

impl From<ProcessPart> for ProcessIdentity {
    fn from(part: ProcessPart) -> ProcessIdentity {
        ProcessIdentity::new(part.pid, part.started_at_ticks, part.boot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EARLIEST: &str = include_str!("../../golden/daemon-earliest.json");
    const VERSION_1: &str = include_str!("../../golden/daemon-1.json");

    #[test]
    fn files_of_all_releases_are_read_and_the_latest_version_is_written() {
        for text in [EARLIEST, VERSION_1] {
            let record = DaemonRecord::decode(text.as_bytes()).unwrap();
            assert_eq!(
                (record.gpu.as_str(), record.daemon.pid(), record.server.pid()),
                ("GPU-a", 4711, 4712)
            );
            assert_eq!(String::from_utf8(record.encode().unwrap()).unwrap(), VERSION_1.trim_end());
        }
    }

    #[test]
    fn a_later_version_is_refused_whatever_else_it_holds() {
        let refusal = DaemonRecord::decode(br#"{"version":2,"daemons":[]}"#).unwrap_err();
        assert!(matches!(refusal, DaemonFileError::Newer(_)), "{refusal}");
    }
}
