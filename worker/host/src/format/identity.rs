//! `executor.json`: which processes the executor of a rank and its watchdog are.

use cohabit_types::FormatVersion;
use serde::{Deserialize, Serialize};

use crate::process::ProcessIdentity;
use crate::records::ExecutorRecord;
use crate::version::VERSION;

#[derive(Serialize, Deserialize)]
pub(super) struct IdentityFile {
    #[serde(default)]
    pub(super) version: FormatVersion,
    pid: i32,
    started_at_ticks: u64,
    boot: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    watchdog: Option<WatchdogPart>,
}

#[derive(Serialize, Deserialize)]
struct WatchdogPart {
    pid: i32,
    started_at_ticks: u64,
}

impl From<&ExecutorRecord> for IdentityFile {
    fn from(record: &ExecutorRecord) -> IdentityFile {
        let ExecutorRecord { process, watchdog } = record;
        let watchdog = watchdog
            .as_ref()
            .map(|process| WatchdogPart { pid: process.pid(), started_at_ticks: process.started_at_ticks() });
        IdentityFile {
            version: VERSION,
            pid: process.pid(),
            started_at_ticks: process.started_at_ticks(),
            boot: process.boot().to_owned(),
            watchdog,
        }
    }
}

impl From<IdentityFile> for ExecutorRecord {
    fn from(file: IdentityFile) -> ExecutorRecord {
        let IdentityFile { version: _, pid, started_at_ticks, boot, watchdog } = file;
        let watchdog =
            watchdog.map(|part| ProcessIdentity::new(part.pid, part.started_at_ticks, boot.clone()));
        ExecutorRecord { process: ProcessIdentity::new(pid, started_at_ticks, boot), watchdog }
    }
}
