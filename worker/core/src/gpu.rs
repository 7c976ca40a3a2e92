//! One GPU: the state of its MPS daemon, whether it is in service, and the condition that the head knows.

use std::sync::Arc;

use cohabit_types::{Bytes, Condition, Device, DeviceSharing, Health, RankId, Span, Time};

use crate::interface::{GpuAccess, MpsEvent, MpsOrder};
use crate::mps_retry::MpsStartFailure;
use crate::mps_state::{MpsChange, MpsState};
use crate::xid;

/// Memory of foreign processes is reported in steps of this size.
const FOREIGN_STEP: u64 = 256 << 20;
/// It must fall this far below a lower step before that step is reported.
const FOREIGN_SLACK: u64 = FOREIGN_STEP / 2;
/// A critical error at most this long before a fault is taken to be related to it.
const XID_WINDOW: Span = Span::from_secs(60);

/// How many live ranks are on a GPU, by their access.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RankCounts {
    pub(crate) exclusive: usize,
    pub(crate) clients: usize,
    pub(crate) time_sliced: usize,
}

impl RankCounts {
    /// Counts another rank.
    pub(crate) const fn add(&mut self, access: GpuAccess) {
        match access {
            GpuAccess::None => {}
            GpuAccess::Exclusive => self.exclusive += 1,
            GpuAccess::Mps(_) => self.clients += 1,
            GpuAccess::TimeSliced(_) => self.time_sliced += 1,
        }
    }
}

/// A fault of the MPS server, in which all clients have lost their work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MpsServiceFault {
    /// The rank that caused it, if it is known.
    pub(crate) culprit: Option<RankId>,
}

/// A GPU.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gpu {
    model: Arc<str>,
    memory: Option<Bytes>,
    /// Whether limits of ranks that share it are enforced, if an MPS daemon starts.
    sharing: DeviceSharing,
    /// The last start of an MPS daemon, if it failed.
    start_failure: Option<MpsStartFailure>,
    /// The account whose ranks alone its daemon serves, where it serves one user at a time.
    served_account: Option<Arc<str>>,
    /// Why it is out of service, if it is.
    fenced: Option<String>,
    service: MpsState,
    foreign_memory: Bytes,
    /// The last critical error, by its Xid code.
    last_xid: Option<(Time, u64)>,
    /// The condition that the head knows.
    reported: Condition,
}

impl Gpu {
    /// A GPU at the start of the worker.
    pub(crate) fn new(device: &Device) -> Gpu {
        let Condition { health, sharing, foreign_memory } = device.condition.clone();
        Gpu {
            model: device.model.as_str().into(),
            memory: device.memory,
            sharing,
            start_failure: None,
            served_account: None,
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

    /// Whether its daemon serves ranks of this account; `None` stands for all accounts.
    pub(crate) fn serves(&self, account: Option<&str>) -> bool {
        self.served_account.as_deref() == account
    }

    /// Enters the state that an order leads to.
    pub(crate) fn order(&mut self, order: &MpsOrder) {
        self.service.order(order);
        match order {
            MpsOrder::Start(account) | MpsOrder::Adopt(account) | MpsOrder::Recover(account) => {
                self.served_account.clone_from(account);
            }
            MpsOrder::Stop => {}
        }
    }

    /// The account whose ranks alone a daemon for this one serves; `None` if it serves those of all.
    pub(crate) fn account_of_daemon(&self, account: &str) -> Option<Arc<str>> {
        match self.sharing {
            DeviceSharing::OneUser(_) => Some(account.into()),
            DeviceSharing::Enforced | DeviceSharing::Unenforced(_) | DeviceSharing::Alone(_) => None,
        }
    }

    pub(crate) const fn has_no_daemon(&self) -> bool {
        matches!(self.service, MpsState::Idle)
    }

    /// Why it is out of service, if it is.
    pub(crate) fn fenced(&self) -> Option<&str> {
        self.fenced.as_deref()
    }

    /// Takes it out of service until an operator has repaired it. The first reason is kept.
    pub(crate) fn fence(&mut self, why: String) {
        self.fenced.get_or_insert(why);
    }

    /// Applies an event of its MPS manager.
    pub(crate) fn apply(&mut self, now: Time, event: MpsEvent) -> Option<MpsServiceFault> {
        match self.service.apply(self.with_recent_xid(now, event)) {
            MpsChange::None => None,
            MpsChange::Started => {
                self.start_failure = None;
                None
            }
            MpsChange::DidNotStart(why) => {
                self.start_failure = Some(MpsStartFailure::new(now, why, self.start_failure.as_ref()));
                None
            }
            MpsChange::DidNotRecover(why) => {
                self.fence(format!("its MPS server did not recover from a fault: {why}"));
                None
            }
            MpsChange::ClientsLost { culprit } => Some(MpsServiceFault { culprit }),
        }
    }

    /// Adds a recent critical error to a fault without a culprit.
    fn with_recent_xid(&self, now: Time, event: MpsEvent) -> MpsEvent {
        match (event, self.last_xid) {
            (MpsEvent::Faulted { culprit: None, detail }, Some((at, code)))
                if now.since(at) <= XID_WINDOW =>
            {
                let detail = format!("{detail}; the driver had reported {}", xid::describe(code));
                MpsEvent::Faulted { culprit: None, detail }
            }
            (event, _) => event,
        }
    }

    /// Whether limits are enforced now. Time-sliced ranks that an earlier worker daemon left are no MPS
    /// clients, so other ranks can only be time-sliced beside them.
    pub(crate) fn sharing(&self, ranks: RankCounts) -> DeviceSharing {
        match &self.sharing {
            DeviceSharing::Enforced | DeviceSharing::OneUser(_)
                if let Some(failure) = &self.start_failure =>
            {
                DeviceSharing::Unenforced(failure.reason())
            }
            DeviceSharing::Enforced | DeviceSharing::OneUser(_) if ranks.time_sliced > 0 => {
                DeviceSharing::Unenforced("ranks that were started without MPS still run on it".into())
            }
            sharing @ (DeviceSharing::Enforced
            | DeviceSharing::OneUser(_)
            | DeviceSharing::Unenforced(_)
            | DeviceSharing::Alone(_)) => sharing.clone(),
        }
    }

    pub(crate) fn note_xid(&mut self, now: Time, code: u64) {
        self.last_xid = Some((now, code));
    }

    /// Memory of foreign processes, rounded up to steps. Follows every rise at once, and a fall only if it is
    /// larger than a fluctuation.
    pub(crate) fn note_foreign_memory(&mut self, held: Bytes) {
        let fluctuates =
            held.0 > 0 && held.0 + FOREIGN_SLACK > self.foreign_memory.0.saturating_sub(FOREIGN_STEP);
        if held > self.foreign_memory || !fluctuates {
            self.foreign_memory = Bytes(held.0.div_ceil(FOREIGN_STEP) * FOREIGN_STEP);
        }
    }

    /// The order that its daemon needs, given the ranks on the GPU and the time.
    pub(crate) fn upkeep(&mut self, now: Time, ranks: RankCounts) -> Option<MpsOrder> {
        self.service.note_clients(now, ranks.clients);
        let has_lost_all = matches!(self.service, MpsState::Faulted(_)) && ranks.clients == 0;
        let is_idle = self.service.deadline().is_some_and(|due_at| due_at <= now);
        match self.fenced {
            None if has_lost_all => Some(MpsOrder::Recover(self.served_account.clone())),
            Some(_) if has_lost_all => Some(MpsOrder::Stop),
            None | Some(_) if is_idle => Some(MpsOrder::Stop),
            None => self.retry(now, ranks),
            Some(_) => None,
        }
    }

    /// The order to start a daemon again that did not start, when it is time and no rank is on the GPU.
    fn retry(&mut self, now: Time, ranks: RankCounts) -> Option<MpsOrder> {
        let failure = self.start_failure.as_mut().filter(|failure| failure.retry_at() <= now)?;
        failure.postpone(now);
        let is_free = matches!(self.service, MpsState::Idle) && ranks == RankCounts::default();
        is_free.then(|| MpsOrder::Start(self.served_account.clone()))
    }

    /// When it needs an order if nothing happens before.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let retry = self.start_failure.as_ref().filter(|_| self.fenced.is_none());
        [self.service.deadline(), retry.map(MpsStartFailure::retry_at)].into_iter().flatten().min()
    }

    /// Its present condition.
    fn condition(&self, ranks: RankCounts) -> Condition {
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
        Condition { health, sharing: self.sharing(ranks), foreign_memory: self.foreign_memory }
    }

    /// Its present condition, which is being reported to the head.
    pub(crate) fn report_condition(&mut self, ranks: RankCounts) -> Condition {
        self.reported = self.condition(ranks);
        self.reported.clone()
    }

    /// Its present condition, if the head does not know it.
    pub(crate) fn unreported_condition(&mut self, ranks: RankCounts) -> Option<Condition> {
        (self.condition(ranks) != self.reported).then(|| self.report_condition(ranks))
    }
}
