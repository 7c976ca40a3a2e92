//! Why a job does not fit: which resource is short, with numbers, for programs and for people.
//!
//! A sentence leaves the job out as its subject and has no full stop: "needs 4 free GPUs on one node; the
//! best node has 0 free".

use std::fmt;

use cohabit_types::{
    Bytes, GIVEN_BACK_WITHIN, GpuRequest, JobId, ReasonCode, Share, Slowdown, Span, counted,
};

/// The resource that is short, with numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shortage {
    /// No node accepts jobs.
    Nodes,
    /// The nodes that accept jobs serve only other accounts.
    Account,
    /// The nodes that accept jobs are reserved for others, or will be before the job has left them.
    Reserved {
        /// The node that stays open longest.
        node: String,
        /// How long until its reservation begins.
        starts_in: Span,
    },
    /// What is free is lent only to jobs that can be given back.
    KeptForOthers,
    /// The nodes that accept jobs cannot fetch the snapshot of its code.
    CodeSnapshots,
    /// The nodes that accept jobs may not run processes of its application.
    Application,
    /// Too few nodes have what each of them needs.
    NodesAtOnce {
        /// Nodes needed.
        needed: u32,
        /// Nodes with enough free.
        found: u32,
    },
    /// Devices on all nodes together, for a job that may use any of them.
    DevicesInAll {
        /// Devices needed.
        needed: u32,
        /// Devices with enough free.
        found: u32,
    },
    /// Devices.
    Devices {
        /// What is needed on one node.
        needed: GpuRequest,
        /// Why a job that asked for part of a device takes a whole one.
        alone: Option<ExclusiveReason>,
        /// The largest number of entirely free devices on one node.
        whole: u32,
        /// The largest free share of one device.
        share: Share,
        /// Devices of that node that are out of service.
        out: u32,
    },
    /// Devices that enforce the limits of a share.
    Enforcement,
    /// Room for one more rank on devices that have enough of everything else.
    RankSlots {
        /// Ranks that share each of them.
        ranks: u32,
    },
    /// Devices that no other user shares, of those that serve one user at a time.
    OtherUser,
    /// Devices that only Cohabit uses, for a job that does not state how much memory it needs.
    ForeignMemory {
        /// The least memory that other programs hold on a free device.
        hold: Bytes,
    },
    /// Devices that are idle enough, by the rule of the policy.
    Busy {
        /// The limit for the sum of utilizations on one device, in percent.
        most: u32,
    },
    /// Devices on which the job and its neighbors would stay within their allowed slowdowns.
    Slowdown {
        /// Devices with enough free.
        devices: u32,
        /// What rules out the device that came nearest.
        conflict: SharingConflict,
    },
    /// Room for one more job on nodes that have enough of everything else.
    Jobs {
        /// The most jobs that the best of them runs at once.
        most: u32,
    },
    /// Device memory.
    Memory {
        /// Needed on each device.
        needed: Bytes,
        /// What has to stay free in addition.
        reserve: Bytes,
        /// The largest amount that is free on a device with a large enough share.
        free: Bytes,
    },
    /// CPU cores.
    Cpus {
        /// Needed on one node.
        needed: u32,
        /// The largest number that is free on a node with enough devices.
        free: u32,
    },
    /// Host memory.
    HostMemory {
        /// Needed on one node.
        needed: Bytes,
        /// The largest amount that is free on a node with enough devices.
        free: Bytes,
    },
}

/// What keeps a job from joining a device that has enough free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharingConflict {
    /// The job itself would be slowed down too much.
    OwnSlowdown {
        /// Its slowdown there, by a cautious prediction.
        slowdown: Slowdown,
        /// Its largest allowed slowdown.
        allowed: Slowdown,
    },
    /// A neighbor would be slowed down too much.
    NeighborSlowdown {
        /// That neighbor.
        job: JobId,
        /// Its slowdown, by a cautious prediction.
        slowdown: Slowdown,
        /// Its largest allowed slowdown.
        allowed: Slowdown,
    },
    /// A job would be done later than without sharing.
    Later {
        /// The neighbor, or `None` for the job itself.
        neighbor: Option<JobId>,
        /// By how much.
        by: Span,
    },
    /// Together they would probably need more memory than the device has.
    Memory,
}

/// Why a job that asked for part of a device takes a whole one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExclusiveReason {
    /// It does not state how much GPU memory it needs.
    WithoutFigure,
    /// It shares with no other job.
    Exclusive,
    /// Its ranks on several nodes wait for each other.
    Gang,
    /// The device cannot be shared.
    Device,
    /// The policy does not share devices.
    Policy,
}

impl Shortage {
    /// Whether it concerns this job alone: other jobs of its class may well fit.
    pub(crate) const fn is_its_own(&self) -> bool {
        matches!(self, Shortage::Busy { .. })
    }

    /// The reason code, for programs.
    #[must_use]
    pub const fn code(&self) -> ReasonCode {
        match self {
            Shortage::Nodes
            | Shortage::Account
            | Shortage::Reserved { .. }
            | Shortage::CodeSnapshots
            | Shortage::Application => ReasonCode::WaitingForNodes,
            Shortage::NodesAtOnce { .. }
            | Shortage::DevicesInAll { .. }
            | Shortage::Devices { .. }
            | Shortage::Enforcement
            | Shortage::RankSlots { .. }
            | Shortage::OtherUser
            | Shortage::Busy { .. }
            | Shortage::Slowdown { .. } => ReasonCode::WaitingForDevices,
            Shortage::KeptForOthers => ReasonCode::WaitingForTurn,
            Shortage::ForeignMemory { .. } | Shortage::Memory { .. } => ReasonCode::WaitingForMemory,
            Shortage::Cpus { .. } | Shortage::HostMemory { .. } | Shortage::Jobs { .. } => {
                ReasonCode::WaitingForHost
            }
        }
    }
}

const OTHER_NODES: &str = "no connected worker accepts jobs of applications of other nodes";
const ENFORCEMENT: &str = "needs a GPU that enforces limits (--enforced); no free GPU does";
const OTHER_USER: &str =
    "needs a GPU that no other user shares: the driver lets jobs of one user at a time share each";

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shortage::Nodes => f.write_str("no connected worker accepts jobs"),
            Shortage::Account => f.write_str("no connected worker accepts jobs of its account"),
            Shortage::Reserved { node, starts_in } => f.write_str(&reserved(node, *starts_in)),
            Shortage::KeptForOthers => f.write_str(&kept_for_others()),
            Shortage::CodeSnapshots => f.write_str("no connected worker can fetch code snapshots"),
            Shortage::Application => f.write_str(OTHER_NODES),
            Shortage::NodesAtOnce { needed, found } => f.write_str(&nodes_at_once(*needed, *found)),
            Shortage::DevicesInAll { needed, found } => {
                let are = if *found == 1 { "is" } else { "are" };
                write!(f, "needs {} on any nodes; {found} {are} free", free_gpus(*needed))
            }
            Shortage::Devices { needed, alone, whole, share, out } => {
                match needed {
                    GpuRequest::Part(part) => {
                        write!(f, "needs {part} of a GPU; the largest free part is {share}")
                    }
                    GpuRequest::Whole(count) => {
                        write!(f, "needs {} on one node; the best node has {whole} free", free_gpus(*count))
                    }
                }?;
                alone.map_or(Ok(()), |why| write!(f, ". It takes a whole GPU because {why}"))?;
                match out {
                    0 => Ok(()),
                    1 => f.write_str("; 1 GPU there is out of service"),
                    out => write!(f, "; {out} GPUs there are out of service"),
                }
            }
            Shortage::Enforcement => f.write_str(ENFORCEMENT),
            Shortage::RankSlots { ranks } => {
                write!(f, "needs a GPU with room for one more rank; each already runs {ranks}, the limit")
            }
            Shortage::OtherUser => f.write_str(OTHER_USER),
            Shortage::Busy { most } => {
                write!(f, "would make every GPU with room busier than the limit of {most} %")
            }
            Shortage::Slowdown { devices: 1, conflict } => {
                write!(f, "cannot join the jobs on the only GPU with room: {conflict}")
            }
            Shortage::Slowdown { devices, conflict } => write!(
                f,
                "cannot join the jobs on any of the {devices} GPUs with room: on the best one, {conflict}"
            ),
            Shortage::ForeignMemory { hold } => write!(
                f,
                "does not state how much GPU memory it needs (--gpu-mem); other programs hold at least \
                 {hold} of every free GPU"
            ),
            Shortage::Memory { needed, reserve, free } => {
                let reserve = Some(reserve).filter(|it| **it > Bytes::ZERO);
                let plus = reserve.map(|it| format!(" plus a reserve of {it}")).unwrap_or_default();
                write!(f, "needs {needed} of GPU memory{plus}; the best GPU has {free} free")
            }
            Shortage::Cpus { needed, free } => {
                let cores = counted(*needed, "CPU core", "CPU cores");
                write!(f, "needs {cores}; the best node has {free} free")
            }
            Shortage::HostMemory { needed, free } => {
                write!(f, "needs {needed} of host memory; the best node has {free} free")
            }
            Shortage::Jobs { most } => {
                write!(
                    f,
                    "needs a node with room for one more job; the best one already runs {most}, its limit"
                )
            }
        }
    }
}

fn nodes_at_once(needed: u32, found: u32) -> String {
    let have = if found == 1 { "node has" } else { "nodes have" };
    format!("needs {needed} nodes at the same time; {found} {have} enough free")
}

fn kept_for_others() -> String {
    let hours = GIVEN_BACK_WITHIN.as_micros() / 3_600_000_000;
    format!("what is free is kept for jobs that can be given back: --preemptible, or --time {hours}h or less")
}

fn reserved(node: &str, starts_in: Span) -> String {
    match starts_in {
        Span::ZERO => {
            format!("needs a node that is not reserved for others; {node} is (cohabit reserve list)")
        }
        ahead => format!(
            "could still run when a reservation begins: {node} is reserved in {ahead} (cohabit reserve list); a \
             shorter --time, or --preemptible, lets it start before"
        ),
    }
}

fn free_gpus(count: u32) -> String {
    if count == 1 { "1 free GPU".to_owned() } else { format!("{count} free GPUs") }
}

/// A clause: what would happen on the device that came nearest.
impl fmt::Display for SharingConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SharingConflict::OwnSlowdown { slowdown, allowed } => {
                write!(f, "its slowdown could reach {slowdown}, and {allowed} is allowed")
            }
            SharingConflict::NeighborSlowdown { job, slowdown, allowed } => {
                write!(f, "the slowdown of job {job} could reach {slowdown}, and {allowed} is allowed")
            }
            SharingConflict::Later { neighbor: None, by } => {
                write!(f, "it would be done {by} later than if no jobs shared GPUs")
            }
            SharingConflict::Later { neighbor: Some(job), by } => {
                write!(f, "job {job} would be done {by} later than if no jobs shared GPUs")
            }
            SharingConflict::Memory => f.write_str("their memory would probably not fit"),
        }
    }
}

/// A clause after "because".
impl fmt::Display for ExclusiveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExclusiveReason::WithoutFigure => "it does not state how much GPU memory it needs (--gpu-mem)",
            ExclusiveReason::Exclusive => "it shares with no other job (--exclusive)",
            ExclusiveReason::Gang => "jobs on several nodes do not share GPUs",
            ExclusiveReason::Device => "the GPUs there cannot be shared",
            ExclusiveReason::Policy => "the policy does not share GPUs",
        })
    }
}
