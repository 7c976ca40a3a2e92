//! `executor.json`: which process the executor of a rank is.

use cohabit_types::FormatVersion;
use serde::{Deserialize, Serialize};

use crate::process::ProcessIdentity;
use crate::version::VERSION;

#[derive(Serialize, Deserialize)]
pub(super) struct IdentityFile {
    #[serde(default)]
    pub(super) version: FormatVersion,
    pid: i32,
    started_at_ticks: u64,
    boot: String,
}

impl From<&ProcessIdentity> for IdentityFile {
    fn from(identity: &ProcessIdentity) -> IdentityFile {
        IdentityFile {
            version: VERSION,
            pid: identity.pid(),
            started_at_ticks: identity.started_at_ticks(),
            boot: identity.boot().to_owned(),
        }
    }
}

impl From<IdentityFile> for ProcessIdentity {
    fn from(file: IdentityFile) -> ProcessIdentity {
        ProcessIdentity::new(file.pid, file.started_at_ticks, file.boot)
    }
}
