//! Machines and what they offer; what a job demands of them; and where its ranks go.

use serde::{Deserialize, Serialize};

use crate::{
    AccountKey, Bandwidth, Bytes, Device, DeviceId, HostShare, Isolation, NodeId, RankId, ReservationTerms,
    Share, SharingLimits, Slowdown, Span, Time,
};

/// What a job needs on each of its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Demand {
    /// How many nodes, all at once.
    pub nodes: u32,
    /// Devices on each node.
    pub gpus: GpuRequest,
    /// Memory on each device; not limited without it.
    pub gpu_memory: Option<Bytes>,
    /// Processor cores on each node, at least; 0 claims none.
    pub cpus: u32,
    /// Host memory on each node, at least; 0 claims none.
    pub memory: Bytes,
    /// The most cores and host memory that it may be given on each node, where they may differ from the
    /// least. They may change while it runs on one node.
    #[serde(default)]
    pub up_to: Option<HostShare>,
    /// Whether others may join its devices.
    pub sharing: Sharing,
    /// Whether its devices may lie on any nodes.
    #[serde(default)]
    pub spread: Spread,
    /// Whether it shares only where its limits are enforced.
    #[serde(default)]
    pub limits: EnforcementRequirement,
    /// Whether its share limits its computing too.
    #[serde(default)]
    pub compute: ComputeLimit,
    /// How many processes of a rank use its device: each gets as much of the rank's memory as any other.
    #[serde(default = "one")]
    pub gpu_processes: u32,
    /// The largest slowdown by neighbors on a device; the cluster's setting without it.
    #[serde(default)]
    pub max_slowdown: Option<Slowdown>,
    /// The account of its job, where policies tell accounts apart. Only the head sets it, for policies: it is
    /// neither stored nor sent.
    #[serde(skip)]
    pub account: Option<AccountKey>,
    /// Whether its job runs in a snapshot of its code, which its nodes have to fetch. Set like `account`.
    #[serde(skip)]
    pub has_code: bool,
    /// The one node that may hold its job. Set like `account`.
    #[serde(skip)]
    pub node: Option<NodeId>,
    /// Whether its job belongs to an application that may span nodes, so that its node has to have ports for
    /// applications. Set like `account`.
    #[serde(skip)]
    pub spans_nodes: bool,
    /// For how long its job keeps what it takes. Set like `account`.
    #[serde(skip)]
    pub held_for: HeldFor,
    /// Where it may run while nodes are reserved, or will be. Set like `account`.
    #[serde(skip)]
    pub reservations: ReservationTerms,
}

/// For how long a job keeps its devices before others can have them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HeldFor {
    /// Nobody asks.
    #[default]
    Unasked,
    /// It gives them back in time: see [`JobSpec::can_be_given_back`](crate::JobSpec::can_be_given_back).
    GivenBack,
    /// For as long as it likes.
    Unlimited,
}

const fn one() -> u32 {
    1
}

/// How many devices on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GpuRequest {
    /// A part of one device, less than the whole.
    Part(Share),
    /// This many whole devices; 0 runs beside them all.
    Whole(u32),
}

/// As people write it: whole devices, or a part of one below 1.
impl TryFrom<f64> for GpuRequest {
    type Error = String;
    fn try_from(amount: f64) -> Result<GpuRequest, String> {
        let thousandths = (amount * 1_000.0).round();
        match () {
            () if amount > 0.0 && amount < 1.0 && (1.0..1_000.0).contains(&thousandths) => {
                Ok(GpuRequest::Part(Share(thousandths as u32)))
            }
            () if amount >= 0.0 && amount.fract() == 0.0 && amount <= f64::from(u32::MAX) => {
                Ok(GpuRequest::Whole(amount as u32))
            }
            () => Err(format!(
                "{amount} is not a number of GPUs: give whole GPUs (1, 4), a share of one (0.5) or none (0)"
            )),
        }
    }
}

/// Whole devices, or a part of one below 1.
impl From<GpuRequest> for f64 {
    fn from(gpus: GpuRequest) -> f64 {
        match gpus {
            GpuRequest::Part(share) => share.as_f64(),
            GpuRequest::Whole(count) => f64::from(count),
        }
    }
}

/// Whether others may join the devices of a job that asks for a part of one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sharing {
    /// Others may use what is left.
    #[default]
    Shared,
    /// Nobody else.
    Exclusive,
}

/// How the devices of a job lie on nodes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// The same number of devices on each of its `nodes`.
    #[default]
    Even,
    /// The whole devices of its one `nodes` may lie on any number of nodes, as the scheduler thinks best;
    /// cores and host memory are claimed on each of them.
    Free,
}

/// Whether a job that shares a device needs its limits enforced.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnforcementRequirement {
    /// It shares wherever there is room, and its record shows whether they are enforced.
    #[default]
    BestEffort,
    /// It runs only where they are.
    Enforced,
}

/// Whether a share of a device limits more than what may be placed there.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComputeLimit {
    /// A rank may use what its neighbors leave idle.
    #[default]
    Open,
    /// A rank computes on its share of the multiprocessors and no others.
    Capped,
}

impl Default for Demand {
    fn default() -> Demand {
        Demand {
            nodes: 1,
            gpus: GpuRequest::Whole(1),
            gpu_memory: None,
            cpus: 0,
            memory: Bytes::ZERO,
            up_to: None,
            sharing: Sharing::Shared,
            spread: Spread::Even,
            limits: EnforcementRequirement::BestEffort,
            compute: ComputeLimit::Open,
            gpu_processes: 1,
            max_slowdown: None,
            account: None,
            has_code: false,
            node: None,
            spans_nodes: false,
            held_for: HeldFor::Unasked,
            reservations: ReservationTerms::default(),
        }
    }
}

impl Demand {
    /// Refuses a demand that makes no sense, in words for the person who asked.
    ///
    /// # Errors
    /// What is wrong and what to do.
    pub fn check(&self) -> Result<(), String> {
        if self.nodes == 0 {
            return Err("a job needs at least one node".into());
        }
        self.check_host_range()?;
        match self.gpus {
            GpuRequest::Part(share) if share.0 == 0 || share >= Share::WHOLE => Err(format!(
                "a share of a GPU is between 0 and 1, not {share}: give a share such as 0.5, or whole GPUs"
            )),
            GpuRequest::Whole(0) if self.gpu_memory.is_some() => {
                Err("the job asks for GPU memory but for no GPU: add --gpus".into())
            }
            GpuRequest::Part(_) | GpuRequest::Whole(0) if self.spread == Spread::Free => {
                Err("only whole GPUs can be placed on any nodes: ask for one or more".into())
            }
            GpuRequest::Whole(_) if self.spread == Spread::Free && self.nodes != 1 => {
                Err("a job runs either on any nodes or on a number of nodes: give one of the two".into())
            }
            GpuRequest::Whole(_) if self.compute == ComputeLimit::Capped => {
                Err("only a job with a share of a GPU can have its computation limited: ask for a share, such as --gpus 0.5".into())
            }
            GpuRequest::Whole(_) if self.max_slowdown.is_some() => {
                Err("only a job that shares a GPU can limit its slowdown: ask for a share, such as --gpus 0.5".into())
            }
            GpuRequest::Part(_) | GpuRequest::Whole(_) if self.gpu_processes == 0 => {
                Err("--gpu-processes must be at least 1: leave it out for one process per rank, or give a larger number"
                    .into())
            }
            GpuRequest::Part(_) | GpuRequest::Whole(_) => Ok(()),
        }
    }

    /// A range of cores or of host memory begins above nothing and does not end below its begin.
    fn check_host_range(&self) -> Result<(), String> {
        let Some(most) = self.up_to else { return Ok(()) };
        let (cpus, memory) = (self.cpus, self.memory);
        if most.cpus < cpus {
            let most = most.cpus;
            return Err(format!(
                "the range --cpus {cpus}..{most} ends below its begin: write --cpus {most}..{cpus}"
            ));
        }
        if most.memory < memory {
            return Err(format!(
                "the range of --mem ends at {}, below its begin at {memory}: swap both",
                most.memory
            ));
        }
        if cpus == 0 && most.cpus > 0 {
            return Err(format!(
                "the range --cpus 0..{most} begins at no core: write --cpus 1..{most}",
                most = most.cpus
            ));
        }
        if memory == Bytes::ZERO && most.memory > Bytes::ZERO {
            return Err(
                "the range of --mem begins at 0: begin it at the least that the job can run with".into()
            );
        }
        Ok(())
    }

    /// The cores and the host memory that it needs at least on each node.
    #[must_use]
    pub const fn least_host(&self) -> HostShare {
        HostShare { cpus: self.cpus, memory: self.memory }
    }

    /// The cores and the host memory that it may be given at most on each node.
    #[must_use]
    pub fn most_host(&self) -> HostShare {
        self.up_to.unwrap_or(self.least_host())
    }

    /// Whether its cores and host memory may change while it runs: it gives a range of them, and runs on one
    /// node.
    #[must_use]
    pub const fn is_fungible(&self) -> bool {
        self.up_to.is_some() && self.nodes == 1 && matches!(self.spread, Spread::Even)
    }

    /// Whether it claims cores or host memory.
    #[must_use]
    pub fn claims_host(&self) -> bool {
        self.cpus > 0 || self.memory > Bytes::ZERO
    }

    /// Whether its rank may have neighbors on a device with memory of its own. It may not if nobody knows
    /// how much memory it needs, nor if its ranks wait for each other on several devices.
    #[must_use]
    pub const fn may_have_neighbors(&self) -> bool {
        matches!((self.gpus, self.sharing), (GpuRequest::Part(_), Sharing::Shared))
            && self.nodes == 1
            && self.gpu_memory.is_some()
    }

    /// How much of a device like this one it takes.
    #[must_use]
    pub const fn share_of(&self, memory: Option<Bytes>) -> Share {
        match memory {
            Some(_) if !self.may_have_neighbors() => Share::WHOLE,
            Some(_) | None => self.share(),
        }
    }

    /// How many devices are occupied on all nodes together.
    #[must_use]
    pub const fn total_devices(&self) -> u32 {
        self.devices() * self.nodes
    }

    /// How much is occupied on all nodes together, in thousandths of a device.
    #[must_use]
    pub const fn total_milli(&self) -> u64 {
        self.devices() as u64 * self.nodes as u64 * self.share().0 as u64
    }

    /// How many devices are occupied on each node; on all together, where they are spread freely.
    #[must_use]
    pub const fn devices(&self) -> u32 {
        match self.gpus {
            GpuRequest::Part(_) => 1,
            GpuRequest::Whole(count) => count,
        }
    }

    /// How much of each of those devices it asks for.
    #[must_use]
    pub const fn share(&self) -> Share {
        match (self.gpus, self.sharing) {
            (GpuRequest::Part(share), Sharing::Shared) => share,
            (GpuRequest::Part(_), Sharing::Exclusive) | (GpuRequest::Whole(_), _) => Share::WHOLE,
        }
    }
}

/// What a worker says about its machine when it joins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// For people: the host name unless the worker was given another.
    pub name: String,
    /// Where other nodes reach this one.
    pub address: String,
    /// Processor cores.
    pub cpus: u32,
    /// Host memory.
    pub memory: Bytes,
    /// In the order in which they are filled.
    pub devices: Vec<Device>,
    /// Version of the worker.
    pub build: String,
    /// How fast devices reach each other, as far as it is known.
    #[serde(default)]
    pub links: LinkBandwidths,
    /// How far those of its devices that have memory of their own may be shared.
    #[serde(default)]
    pub sharing: SharingLimits,
    /// The most jobs that it runs at once; `None` if it does not say.
    #[serde(default)]
    pub max_jobs: Option<u32>,
    /// Ports at which ranks on it may wait for others; nothing else uses them.
    #[serde(default)]
    pub rendezvous_ports: Vec<u16>,
    /// What it keeps apart.
    #[serde(default)]
    pub isolation: Isolation,
    /// Whether it can run jobs in snapshots of their code.
    #[serde(default)]
    pub fetches_code: bool,
    /// Whether it takes attempts in advance, which begin when others have ended.
    #[serde(default)]
    pub prefetches: bool,
    /// Whether applications may listen at its ports for their processes on other nodes.
    #[serde(default)]
    pub application_ports: bool,
    /// Whether it can change the cores and the host memory of a running job.
    #[serde(default)]
    pub changes_host_shares: bool,
    /// How long its ranks go on while the head cannot be reached.
    pub orphan_grace: Span,
    /// Ranks that it holds, and those whose end it has yet to see acknowledged.
    pub held_ranks: Vec<HeldRank>,
}

/// How fast the devices of a node reach each other and those of other nodes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkBandwidths {
    /// Between this node and the network, all its devices together, each way.
    pub network: Option<Bandwidth>,
    /// Between one device and the others of this node, each way.
    pub interconnect: Option<Bandwidth>,
}

/// A rank that a joining worker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldRank {
    /// The id.
    pub rank: RankId,
    /// Its progress.
    pub phase: HeldRankPhase,
}

/// How far a held rank is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeldRankPhase {
    /// Its executor is being started.
    Starting,
    /// It runs since then.
    Running(Time),
    /// It ended; the report follows.
    Ended,
}

/// Where a job goes: one part for each node, in the order of node ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// One for each node.
    pub parts: Vec<RankPlacement>,
}

/// What a job gets on one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankPlacement {
    /// The node.
    pub node: NodeId,
    /// Devices there; empty for a job that needs none.
    pub devices: Vec<DeviceId>,
    /// How much of each of them.
    pub share: Share,
    /// The rank for each of these devices, where each device has a rank of its own and the order of ranks
    /// matters; empty where ranks are numbered in the order of parts and devices.
    #[serde(default)]
    pub ranks: Vec<u32>,
    /// Cores and host memory there; as the demand says without them.
    #[serde(default)]
    pub host: Option<HostShare>,
}

impl Placement {
    /// What the job gets on this node.
    #[must_use]
    pub fn part_on(&self, node: NodeId) -> Option<&RankPlacement> {
        self.parts.iter().find(|part| part.node == node)
    }
}

impl RankPlacement {
    /// The cores and the host memory that the job holds there.
    #[must_use]
    pub fn host_share(&self, demand: &Demand) -> HostShare {
        self.host.unwrap_or(demand.least_host())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_gpus_is_a_part_of_one_or_whole_ones() {
        for (amount, gpus) in
            [(0.0, GpuRequest::Whole(0)), (0.5, GpuRequest::Part(Share(500))), (4.0, GpuRequest::Whole(4))]
        {
            assert_eq!(GpuRequest::try_from(amount), Ok(gpus));
            assert_eq!(f64::from(gpus), amount);
        }
        for bad in [-1.0, 1.5, 1e-9, 0.9999, f64::NAN, f64::INFINITY, 1e12] {
            assert!(GpuRequest::try_from(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_part_is_strictly_between_0_and_1() {
        let part = |share| Demand { gpus: GpuRequest::Part(Share(share)), ..Demand::default() };
        assert!(part(0).check().is_err());
        assert!(part(1_000).check().is_err());
        assert_eq!(part(500).check(), Ok(()));
        assert_eq!(part(500).share(), Share(500));
        assert_eq!(Demand { sharing: Sharing::Exclusive, ..part(500) }.share(), Share::WHOLE);
    }

    #[test]
    fn a_range_of_cores_or_memory_has_to_be_one() {
        let range = |cpus, memory, most: (u32, u64)| Demand {
            cpus,
            memory: Bytes(memory),
            up_to: Some(HostShare { cpus: most.0, memory: Bytes(most.1) }),
            ..Demand::default()
        };
        assert_eq!(range(2, 5, (12, 5)).check(), Ok(()));
        assert_eq!(range(2, 0, (12, 0)).check(), Ok(()));
        for (bad, named) in [
            (range(12, 0, (2, 0)), "the range --cpus 12..2 ends below its begin: write --cpus 2..12"),
            (range(0, 0, (2, 0)), "the range --cpus 0..2 begins at no core"),
            (range(2, 1 << 31, (2, 1 << 30)), "the range of --mem ends at 1 GiB, below its begin at 2 GiB"),
            (range(2, 0, (2, 1 << 30)), "the range of --mem begins at 0"),
        ] {
            let why = bad.check().unwrap_err();
            assert!(why.starts_with(named), "{why}");
        }
    }

    #[test]
    fn only_a_job_on_one_node_is_fungible() {
        let range = Demand { up_to: Some(HostShare { cpus: 4, memory: Bytes::ZERO }), ..Demand::default() };
        assert!(range.is_fungible());
        assert!(!Demand { nodes: 2, ..range }.is_fungible());
        assert!(!Demand { spread: Spread::Free, ..range }.is_fungible());
        assert!(!Demand::default().is_fungible());
    }
}
