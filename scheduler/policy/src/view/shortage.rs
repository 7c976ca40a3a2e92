//! Why a job has no place: what there is too little of, with numbers, for programs and for people.

use std::fmt;

use cohabit_types::{Bytes, GpuRequest, JobId, ReasonCode, Share, Slowdown};

/// What there is too little of, with numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shortage {
    /// No node takes jobs.
    Nodes,
    /// Too few nodes have room at once.
    NodesAtOnce {
        /// Nodes needed.
        needed: u32,
        /// Nodes with room.
        found: u32,
    },
    /// Devices on all nodes together, for a job that may lie on any.
    DevicesInAll {
        /// Devices needed.
        needed: u32,
        /// Devices with room.
        found: u32,
    },
    /// Devices.
    Devices {
        /// What is needed on a node.
        needed: GpuRequest,
        /// Why that is a whole device, where a part was asked for.
        alone: Option<ExclusiveReason>,
        /// The most wholly free devices on one node.
        whole: u32,
        /// The largest free share of one device.
        share: Share,
        /// Devices of that node that are out of service.
        out: u32,
    },
    /// Devices on which the limits of a share are enforced.
    Enforcement,
    /// Places on devices that have enough else.
    RankSlots {
        /// Ranks that share each of them.
        ranks: u32,
    },
    /// Devices that only Cohabit uses, for a job that does not say how much memory it needs.
    ForeignMemory {
        /// The least memory that other programs hold on a free device.
        hold: Bytes,
    },
    /// Devices whose neighbours leave it enough time, by the rule of the policy.
    Busy {
        /// The most that jobs on a device may keep it busy together, in percent.
        most: u32,
    },
    /// Devices on which it and its neighbours would slow each other down no more than they may.
    Neighbours {
        /// Devices with room.
        seats: u32,
        /// What keeps it from the one on which it does least harm.
        harm: SharingConflict,
    },
    /// Device memory.
    Memory {
        /// Needed on each device.
        needed: Bytes,
        /// What has to stay free beside that.
        reserve: Bytes,
        /// The most that is free on a device with enough share.
        free: Bytes,
    },
    /// Cores.
    Cpus {
        /// Needed on a node.
        needed: u32,
        /// The most that are free on one with enough devices.
        free: u32,
    },
    /// Host memory.
    HostMemory {
        /// Needed on a node.
        needed: Bytes,
        /// The most that is free on one with enough devices.
        free: Bytes,
    },
}

/// What keeps a job from a device with room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharingConflict {
    /// It would be slowed too much itself.
    ToItself {
        /// How many times as long as alone it would take, by a careful guess.
        slowdown: Slowdown,
        /// The most that is allowed.
        allowed: Slowdown,
    },
    /// A neighbour would be.
    ToNeighbour {
        /// Which.
        job: JobId,
        /// How many times as long as alone it would take, by a careful guess.
        slowdown: Slowdown,
        /// The most that is allowed.
        allowed: Slowdown,
    },
    /// They would probably need more memory than there is.
    Memory,
}

/// Why a job that asks for a part of a device takes all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExclusiveReason {
    /// It does not say how much of its memory it needs.
    WithoutFigure,
    /// It lets nobody join it.
    Exclusive,
    /// Its ranks wait for each other on several nodes.
    Gang,
    /// The device cannot be shared.
    Device,
    /// The policy puts nobody beside others.
    Policy,
}

impl Shortage {
    /// Whether it is of this job alone: others that need the same may well have room.
    pub(crate) const fn is_its_own(&self) -> bool {
        matches!(self, Shortage::Busy { .. })
    }

    /// For programs.
    #[must_use]
    pub const fn code(&self) -> ReasonCode {
        match self {
            Shortage::Nodes => ReasonCode::WaitingForNodes,
            Shortage::NodesAtOnce { .. }
            | Shortage::DevicesInAll { .. }
            | Shortage::Devices { .. }
            | Shortage::Enforcement
            | Shortage::RankSlots { .. }
            | Shortage::Busy { .. }
            | Shortage::Neighbours { .. } => ReasonCode::WaitingForDevices,
            Shortage::ForeignMemory { .. } | Shortage::Memory { .. } => ReasonCode::WaitingForMemory,
            Shortage::Cpus { .. } | Shortage::HostMemory { .. } => ReasonCode::WaitingForHost,
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shortage::Nodes => f.write_str("no worker is connected that takes jobs"),
            Shortage::NodesAtOnce { needed, found } => {
                write!(f, "it needs {needed} nodes at once and {found} have room")
            }
            Shortage::DevicesInAll { needed, found } => {
                write!(f, "it needs {needed} whole device(s) on any nodes and {found} are free")
            }
            Shortage::Devices { needed, alone, whole, share, out } => {
                match needed {
                    GpuRequest::Part(part) => {
                        write!(f, "it needs {part} of a device and the largest free part is {share}")
                    }
                    GpuRequest::Whole(count) => write!(
                        f,
                        "it needs {count} whole device(s) on a node and the most that are free on one is \
                         {whole}"
                    ),
                }?;
                alone.map_or(Ok(()), |why| write!(f, ", since {why}"))?;
                if *out > 0 { write!(f, "; {out} device(s) there are out of service") } else { Ok(()) }
            }
            Shortage::Enforcement => {
                f.write_str("it shares a device only within enforced limits and no free device enforces them")
            }
            Shortage::RankSlots { ranks } => {
                write!(f, "{ranks} ranks share each GPU already, and no more may")
            }
            Shortage::Busy { most } => {
                write!(f, "with it, every GPU with room would be busier than the {most} % that are allowed")
            }
            Shortage::Neighbours { seats, harm } => {
                write!(f, "it may join nobody on the {seats} GPU(s) with room: {harm}")
            }
            Shortage::ForeignMemory { hold } => write!(
                f,
                "it does not say how much device memory it needs, and programs that Cohabit did not start \
                 hold {hold} of the device on which they hold least"
            ),
            Shortage::Memory { needed, reserve, free } => {
                write!(f, "it needs {needed} of device memory")?;
                if *reserve > Bytes::ZERO {
                    write!(f, " beside a reserve of {reserve}")?;
                }
                write!(f, " and the most that is free is {free}")
            }
            Shortage::Cpus { needed, free } => {
                write!(f, "it needs {needed} cores and the most that are free is {free}")
            }
            Shortage::HostMemory { needed, free } => {
                write!(f, "it needs {needed} of host memory and the most that is free is {free}")
            }
        }
    }
}

/// A clause: what would happen where it does least harm.
impl fmt::Display for SharingConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SharingConflict::ToItself { slowdown, allowed } => write!(
                f,
                "it would take up to {slowdown} times as long as alone at the best of them, and {allowed} is \
                 allowed"
            ),
            SharingConflict::ToNeighbour { job, slowdown, allowed } => write!(
                f,
                "at the best of them job {job} would take up to {slowdown} times as long as alone, and \
                 {allowed} is allowed"
            ),
            SharingConflict::Memory => f.write_str("their memory would probably not fit"),
        }
    }
}

/// A clause: "since …".
impl fmt::Display for ExclusiveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExclusiveReason::WithoutFigure => {
                "a GPU is shared only by those who say how much of its memory they need"
            }
            ExclusiveReason::Exclusive => "nobody may join it there",
            ExclusiveReason::Gang => "a job of several nodes shares no GPU",
            ExclusiveReason::Device => "the devices there cannot be shared",
            ExclusiveReason::Policy => "the policy lets nobody share one",
        })
    }
}
