//! One GPU: its MPS daemon, whether it is in service, and what is told of its condition.

use std::sync::Arc;

use cohabit_types::{Bytes, Condition, Device, DeviceSharing, Health, RankId, Span, Time};

use crate::access::RankCounts;
use crate::service::{MpsChange, MpsState};
use crate::{MpsEvent, MpsOrder, xid};

/// Memory of strangers is told in steps of this size.
const FOREIGN_STEP: u64 = 256 << 20;
/// It has to fall so far below a lower step before that one is told.
const FOREIGN_SLACK: u64 = FOREIGN_STEP / 2;
/// How long a critical error is held to have to do with a fault.
const XID_WINDOW: Span = Span::from_secs(60);

/// All clients of the MPS server have lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MpsServiceFault {
    /// By the fault of this one, if it is known.
    pub(crate) culprit: Option<RankId>,
}

/// A GPU and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gpu {
    model: Arc<str>,
    memory: Option<Bytes>,
    /// What becomes of the limits of ranks that share it.
    sharing: DeviceSharing,
    /// Why it is out of service, if it is.
    fenced: Option<String>,
    service: MpsState,
    foreign_memory: Bytes,
    /// The last critical error, by its number.
    last_xid: Option<(Time, u64)>,
    /// The condition that the head knows.
    reported: Condition,
}

impl Gpu {
    /// As it is when the worker starts.
    pub(crate) fn new(device: &Device) -> Gpu {
        let Condition { health, sharing, foreign_memory } = device.condition.clone();
        Gpu {
            model: device.model.as_str().into(),
            memory: device.memory,
            sharing,
            fenced: match health {
                Health::Well => None,
                Health::Recovering(why) | Health::Fenced(why) => Some(why),
            },
            service: MpsState::Idle,
            foreign_memory,
            last_xid: None,
            reported: device.condition.clone(),
        }
    }

    pub(crate) fn model(&self) -> Arc<str> {
        self.model.clone()
    }

    pub(crate) const fn memory(&self) -> Option<Bytes> {
        self.memory
    }

    pub(crate) const fn service(&self) -> &MpsState {
        &self.service
    }

    pub(crate) const fn service_mut(&mut self) -> &mut MpsState {
        &mut self.service
    }

    pub(crate) const fn has_no_daemon(&self) -> bool {
        matches!(self.service, MpsState::Idle)
    }

    /// Why it is out of service, if it is.
    pub(crate) fn fenced(&self) -> Option<&str> {
        self.fenced.as_deref()
    }

    /// Takes it out of service until somebody has looked after it; the first reason stays.
    pub(crate) fn fence(&mut self, why: String) {
        self.fenced.get_or_insert(why);
    }

    /// Takes note of what the actor of its MPS daemon says. Where no daemon can be started nobody tries again
    /// before the next worker daemon does.
    pub(crate) fn apply(&mut self, now: Time, word: MpsEvent) -> Option<MpsServiceFault> {
        match self.service.apply(self.with_recent_xid(now, word)) {
            MpsChange::None => None,
            MpsChange::CannotStart(why) => {
                self.sharing = DeviceSharing::Unenforced(why);
                None
            }
            MpsChange::DidNotRecover(why) => {
                self.fence(format!("its MPS server did not come back after a fault: {why}"));
                None
            }
            MpsChange::ClientsLost { culprit } => Some(MpsServiceFault { culprit }),
        }
    }

    /// A fault of which no client is named, with what the driver said shortly before.
    fn with_recent_xid(&self, now: Time, word: MpsEvent) -> MpsEvent {
        match (word, self.last_xid) {
            (MpsEvent::Faulted { culprit: None, detail }, Some((at, code)))
                if now.since(at) <= XID_WINDOW =>
            {
                let detail = format!("{detail}; the driver had reported {}", xid::describe(code));
                MpsEvent::Faulted { culprit: None, detail }
            }
            (word, _) => word,
        }
    }

    /// What becomes of limits now. Ranks that an earlier worker daemon left taking turns are no clients of an
    /// MPS server, so others can only take turns with them.
    pub(crate) fn sharing(&self, rank_counts: RankCounts) -> DeviceSharing {
        match &self.sharing {
            DeviceSharing::Enforced if rank_counts.taking_turns > 0 => {
                DeviceSharing::Unenforced("ranks on it were started without MPS, and still run".into())
            }
            sharing @ (DeviceSharing::Enforced | DeviceSharing::Unenforced(_) | DeviceSharing::Alone(_)) => {
                sharing.clone()
            }
        }
    }

    pub(crate) fn note_xid(&mut self, now: Time, code: u64) {
        self.last_xid = Some((now, code));
    }

    /// Memory that strangers hold, rounded up to steps. It follows a rise at once, and a fall that is more
    /// than a wobble.
    pub(crate) fn note_foreign_memory(&mut self, held: Bytes) {
        let wobbles =
            held.0 > 0 && held.0 + FOREIGN_SLACK > self.foreign_memory.0.saturating_sub(FOREIGN_STEP);
        if held > self.foreign_memory || !wobbles {
            self.foreign_memory = Bytes(held.0.div_ceil(FOREIGN_STEP) * FOREIGN_STEP);
        }
    }

    /// What its daemon has to be told because of who is on it, or because it is time.
    pub(crate) fn upkeep(&mut self, now: Time, rank_counts: RankCounts) -> Option<MpsOrder> {
        self.service.note_clients(now, rank_counts.clients);
        let has_lost_all = matches!(self.service, MpsState::Faulted(_)) && rank_counts.clients == 0;
        let is_idle = self.service.deadline().is_some_and(|due_at| due_at <= now);
        match self.fenced {
            None if has_lost_all => Some(MpsOrder::Recover),
            Some(_) if has_lost_all => Some(MpsOrder::Stop),
            None | Some(_) => is_idle.then_some(MpsOrder::Stop),
        }
    }

    /// How it is now.
    fn condition(&self, rank_counts: RankCounts) -> Condition {
        let health = match (&self.fenced, &self.service) {
            (Some(why), _) => Health::Fenced(why.clone()),
            (None, MpsState::Faulted(detail) | MpsState::Recovering(detail)) => {
                Health::Recovering(format!("its MPS server was in fault: {detail}"))
            }
            (
                None,
                MpsState::Idle
                | MpsState::Starting
                | MpsState::Adopting
                | MpsState::Up { .. }
                | MpsState::Stopping,
            ) => Health::Well,
        };
        Condition { health, sharing: self.sharing(rank_counts), foreign_memory: self.foreign_memory }
    }

    /// How it is now; the head is about to be told.
    pub(crate) fn report_condition(&mut self, rank_counts: RankCounts) -> Condition {
        self.reported = self.condition(rank_counts);
        self.reported.clone()
    }

    /// The same, if the head does not know it.
    pub(crate) fn unreported_condition(&mut self, rank_counts: RankCounts) -> Option<Condition> {
        (self.condition(rank_counts) != self.reported).then(|| self.report_condition(rank_counts))
    }
}
