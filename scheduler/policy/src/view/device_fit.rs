//! One device and one demand: which share the demand takes, and whether it fits.

use cohabit_types::{Bytes, Demand, EnforcementRequirement, Share};

use crate::{DeviceAvailability, DeviceView, SharingMode, SharingUsers};

impl DeviceView {
    /// The share that the demand takes: the whole device where the job shares with no other, or the device
    /// cannot be shared.
    #[must_use]
    pub fn share_for(&self, demand: &Demand) -> Share {
        match self.sharing.mode {
            SharingMode::Enforced | SharingMode::Unenforced => demand.share_of(self.memory),
            SharingMode::Exclusive => Share::WHOLE,
        }
    }

    /// Whether it could hold one rank of the demand at its best, with nothing else on it.
    pub(crate) fn could_ever_hold(&self, demand: &Demand) -> bool {
        self.allows(demand) && self.suffices(demand, self.memory, Bytes::ZERO)
    }

    /// Whether it could hold one rank of the demand in its present condition if it ran no job. A device that
    /// recovers by itself counts.
    pub(crate) fn could_hold_when_empty(&self, demand: &Demand) -> bool {
        let own = self.memory.map(|memory| memory.saturating_sub(self.foreign_memory));
        self.is_in_service() && self.allows(demand) && self.suffices(demand, own, self.foreign_memory)
    }

    /// Whether jobs may use it, now or soon.
    #[must_use]
    pub const fn is_in_service(&self) -> bool {
        match self.availability {
            DeviceAvailability::Open | DeviceAvailability::Recovering => true,
            DeviceAvailability::Closed => false,
        }
    }

    /// Whether jobs may start on it now, and it may be used as the demand asks.
    pub(crate) fn takes(&self, demand: &Demand) -> bool {
        self.availability == DeviceAvailability::Open && self.allows(demand)
    }

    /// Whether a large enough share is free.
    pub(crate) fn has_share(&self, demand: &Demand) -> bool {
        self.free >= self.share_for(demand)
    }

    /// Whether it may hold one more rank.
    pub(crate) fn has_place(&self) -> bool {
        self.sharing.ranks_free != Some(0)
    }

    /// Whether enough of its memory is free.
    pub(crate) fn has_memory(&self, demand: &Demand) -> bool {
        self.suffices(demand, self.memory_free, self.foreign_memory)
    }

    /// Whether it is not in use by another user, where it serves one at a time.
    pub(crate) fn serves(&self, demand: &Demand) -> bool {
        match self.sharing.users {
            SharingUsers::Several | SharingUsers::One(None) => true,
            SharingUsers::One(user) => user == demand.account,
        }
    }

    /// Whether one rank of the demand fits now.
    pub(crate) fn has_room(&self, demand: &Demand) -> bool {
        self.takes(demand)
            && self.has_share(demand)
            && self.has_place()
            && self.serves(demand)
            && self.has_memory(demand)
    }

    /// Takes a share for one rank of the demand.
    pub(crate) fn take(&mut self, demand: &Demand, share: Share) {
        self.free = self.free.saturating_sub(share);
        let claimed = demand.gpu_memory.unwrap_or_default();
        self.memory_free = self.memory_free.map(|free| free.saturating_sub(claimed));
        self.sharing.ranks_free = self.sharing.ranks_free.map(|left| left.saturating_sub(1));
        if self.sharing.users == SharingUsers::One(None) {
            self.sharing.users = SharingUsers::One(demand.account);
        }
    }

    /// Gives back the share of one rank of the demand.
    pub(crate) fn give_back(&mut self, demand: &Demand, share: Share) {
        self.free = (self.free + share).min(Share::WHOLE);
        let claimed = demand.gpu_memory.unwrap_or_default();
        let most = self.memory.unwrap_or_default().saturating_sub(self.foreign_memory);
        self.memory_free = self.memory_free.map(|free| (free + claimed).min(most));
        self.sharing.ranks_free = self.sharing.ranks_free.map(|left| left + 1);
        if self.free == Share::WHOLE && self.sharing.users != SharingUsers::Several {
            self.sharing.users = SharingUsers::One(None);
        }
    }

    /// Whether that much free memory is enough. A job that shares leaves a reserve; one that does not state
    /// its memory gets no device of which other programs hold more than a tenth.
    fn suffices(&self, demand: &Demand, free: Option<Bytes>, foreign: Bytes) -> bool {
        match (demand.gpu_memory, free) {
            (Some(needed), Some(free)) => free >= needed + self.reserve_for(demand),
            (None, Some(_)) => foreign.0 <= self.memory.unwrap_or_default().0 / 10,
            (None | Some(_), None) => true,
        }
    }

    /// The memory that one rank of the demand has to leave free.
    pub(crate) fn reserve_for(&self, demand: &Demand) -> Bytes {
        if self.would_share(demand) { self.sharing.reserve } else { Bytes::ZERO }
    }

    /// Whether it may be shared as the demand asks.
    fn allows(&self, demand: &Demand) -> bool {
        match (self.sharing.mode, demand.limits) {
            (SharingMode::Unenforced, EnforcementRequirement::Enforced) => !self.would_share(demand),
            (SharingMode::Unenforced, EnforcementRequirement::BestEffort)
            | (SharingMode::Enforced | SharingMode::Exclusive, _) => true,
        }
    }

    fn would_share(&self, demand: &Demand) -> bool {
        self.share_for(demand) < Share::WHOLE
    }
}
