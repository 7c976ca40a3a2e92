//! Jobs whose own faults on a GPU broke its MPS server, and with it ended all other jobs there.
//!
//! After two such faults the attempts of a job have their GPU to themselves. If one fails there, too, and the
//! job has retries left, it is held until somebody releases it. The faults are counted in the job's attempts,
//! so no release and no restart of the head forgets them.

use cohabit_types::{Cause, Demand, JobEventKind, ReasonCode, Sharing, StopReason, counted};

use crate::job::Job;

/// Faults after which a job shares no GPU any more.
const MOST_SHARED_FAULTS: usize = 2;

impl Job {
    /// Whether its attempts have their GPU to themselves because of its faults.
    pub(crate) fn is_isolated(&self) -> bool {
        self.mps_faults() >= MOST_SHARED_FAULTS
    }

    /// This demand, without neighbors if the job is isolated.
    pub(crate) fn isolate(&self, demand: Demand) -> Demand {
        match self.is_isolated() {
            true => Demand { sharing: Sharing::Exclusive, ..demand },
            false => demand,
        }
    }

    /// Attempts that ended because its own fault broke the MPS server of their GPU.
    fn mps_faults(&self) -> usize {
        let stops = self.ended_attempts.iter().map(|ended| ended.as_ref().effective_stop());
        stops.filter(|why| *why == Some(StopReason::MpsFault)).count()
    }

    /// Why it is on hold, if no user put it there.
    pub(crate) fn fault_hold_reason(&self) -> Option<(ReasonCode, String)> {
        let is_hold = |kind: &JobEventKind| matches!(kind, JobEventKind::Held);
        let hold = self.events.iter().rev().find(|event| is_hold(&event.kind))?;
        if matches!(hold.cause, Cause::User(_)) || !self.is_isolated() {
            return None;
        }
        let faults = counted(self.mps_faults(), "attempt", "attempts");
        let why = format!(
            "its faults on the GPU broke the MPS server in {faults}, and attempt {} failed alone on its GPU: release \
             it to let it run again, alone; it is held again if it fails again",
            self.attempt_count()
        );
        Some((ReasonCode::HeldAfterFaults, why))
    }

    /// Why it has its GPU to itself, if because of its faults; added to the reason of its state.
    pub(crate) fn isolation_clause(&self) -> Option<String> {
        self.is_isolated().then(|| {
            let faults = counted(self.mps_faults(), "attempt", "attempts");
            format!(
                "it has its GPU to itself, because its faults on the GPU broke the MPS server in {faults}"
            )
        })
    }
}
