//! `outcome.json` and `acknowledged.json`: how a rank ended.

use cohabit_types::{FormatVersion, Outcome, Progress, StopReason, Time};
use cohabit_worker_core::RankExit;
use serde::{Deserialize, Serialize};

use crate::records::OutcomeRecord;
use crate::version::VERSION;

#[derive(Serialize, Deserialize)]
pub(super) struct OutcomeFile {
    #[serde(default)]
    pub(super) version: FormatVersion,
    ending: ExitPart,
    started_at: Option<Time>,
    progress: Option<Progress>,
}

#[derive(Serialize, Deserialize)]
struct ExitPart {
    outcome: Outcome,
    stopped: Option<StopReason>,
    at: Time,
}

impl From<&OutcomeRecord> for OutcomeFile {
    fn from(record: &OutcomeRecord) -> OutcomeFile {
        let OutcomeRecord { ending: RankExit { outcome, stopped, at }, started_at, progress } =
            record.clone();
        let ending = ExitPart { outcome, stopped, at };
        OutcomeFile { version: VERSION, ending, started_at, progress }
    }
}

impl From<OutcomeFile> for OutcomeRecord {
    fn from(file: OutcomeFile) -> OutcomeRecord {
        let ExitPart { outcome, stopped, at } = file.ending;
        let ending = RankExit { outcome, stopped, at };
        OutcomeRecord { ending, started_at: file.started_at, progress: file.progress }
    }
}
