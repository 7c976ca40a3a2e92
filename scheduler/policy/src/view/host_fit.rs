//! Cores and host memory of a node: what is left, what is proportional to a job's devices, and what a job
//! that gives a range of them starts with.

use cohabit_types::{Bytes, Demand, HostShare, RankPlacement, Share};

use crate::NodeView;

impl NodeView {
    /// All its cores and its host memory.
    #[must_use]
    pub const fn host(&self) -> HostShare {
        HostShare { cpus: self.cpus, memory: self.memory }
    }

    /// Cores and host memory that no job holds.
    #[must_use]
    pub const fn host_free(&self) -> HostShare {
        HostShare { cpus: self.cpus_free, memory: self.memory_free }
    }

    /// Its cores and its host memory in proportion to so many devices of this share, cores rounded down; all
    /// of them where the node has no devices.
    #[must_use]
    pub fn proportional_share(&self, devices: u32, share: Share) -> HostShare {
        let (taken, all) = (u64::from(devices) * u64::from(share.0), self.devices.len() as u64 * 1_000);
        let part = |amount: u64| match all {
            0 => amount,
            all => (u128::from(amount) * u128::from(taken.min(all)) / u128::from(all)) as u64,
        };
        HostShare { cpus: part(u64::from(self.cpus)) as u32, memory: Bytes(part(self.memory.0)) }
    }

    /// What a job with this demand has by rights, with so many devices here: the proportional share, within
    /// the range that it gives. Without devices there is no proportion, and it is the least.
    #[must_use]
    pub fn fair_share(&self, demand: &Demand, devices: u32) -> HostShare {
        let proportional = match devices {
            0 => HostShare::default(),
            devices => self.proportional_share(devices, demand.share()),
        };
        proportional.at_least(demand.least_host()).at_most(demand.most_host())
    }

    /// What a job that gives a range starts with here: what it has by rights, as far as that is free, and
    /// never less than the least that it needs.
    pub(crate) fn starting_share(&self, demand: &Demand, devices: u32) -> HostShare {
        self.fair_share(demand, devices).at_most(self.host_free()).at_least(demand.least_host())
    }

    /// Checks that a part of a placement says what a job gets here if, and only if, the job gives a range.
    pub(crate) fn check_host_share(&self, demand: &Demand, part: &RankPlacement) -> Result<(), String> {
        let name = &self.name;
        match (demand.up_to, part.host) {
            (None, None) => Ok(()),
            (None, Some(_)) => {
                Err(format!("the plan changes the cores or the memory of a job on node {name}"))
            }
            (Some(_), None) => Err(format!(
                "the plan does not say how many cores and how much memory the job gets on node {name}"
            )),
            (Some(most), Some(host)) => match demand.least_host().is_within(host) && host.is_within(most) {
                true => Ok(()),
                false => Err(format!("the plan gives the job {host} on node {name}, outside its range")),
            },
        }
    }

    /// Takes so much of what is left.
    pub(crate) fn hold(&mut self, share: HostShare) {
        let left = self.host_free().saturating_sub(share);
        (self.cpus_free, self.memory_free) = (left.cpus, left.memory);
    }

    /// Gives so much back.
    pub(crate) fn free(&mut self, share: HostShare) {
        let left = self.host_free().plus(share).at_most(self.host());
        (self.cpus_free, self.memory_free) = (left.cpus, left.memory);
    }
}
