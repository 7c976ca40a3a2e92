//! `outcome.json` and `acknowledged.json`: how a rank ended.

use cohabit_types::{FormatVersion, Outcome, RankId, StopReason, Time};
use cohabit_worker_core::RankExit;
use serde::{Deserialize, Serialize};

use super::progress::ProgressPart;
use super::stop_reason::{self, AddedReasons};
use crate::records::OutcomeRecord;
use crate::version::VERSION;

#[derive(Serialize, Deserialize)]
pub(super) struct OutcomeFile {
    #[serde(default)]
    pub(super) version: FormatVersion,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rank: Option<RankId>,
    ending: ExitPart,
    started_at: Option<Time>,
    progress: Option<ProgressPart>,
}

#[derive(Serialize, Deserialize)]
struct ExitPart {
    outcome: Outcome,
    stopped: Option<StopReason>,
    at: Time,
    #[serde(flatten)]
    added: AddedReasons,
}

impl From<&OutcomeRecord> for OutcomeFile {
    fn from(record: &OutcomeRecord) -> OutcomeFile {
        let OutcomeRecord { rank, ending: RankExit { outcome, stopped, at }, started_at, progress } =
            record.clone();
        let (stopped, added) = stopped.map(stop_reason::split).unzip();
        let ending = ExitPart { outcome, stopped, at, added: added.unwrap_or_default() };
        OutcomeFile { version: VERSION, rank, ending, started_at, progress: progress.map(Into::into) }
    }
}

impl From<OutcomeFile> for OutcomeRecord {
    fn from(file: OutcomeFile) -> OutcomeRecord {
        let ExitPart { outcome, stopped, at, added } = file.ending;
        let stopped = stopped.map(|why| stop_reason::join(why, added));
        let ending = RankExit { outcome, stopped, at };
        let (rank, progress) = (file.rank, file.progress.map(Into::into));
        OutcomeRecord { rank, ending, started_at: file.started_at, progress }
    }
}
