//! CLWP: nodes in the order in which they suit a job, by how similar the jobs there are, and how busy.

use std::cmp::Reverse;

use cohabit_types::{Demand, JobId, Share, Spread};

use super::contention_table::ContentionTable;
use super::{ClwpNlwpOptions, SlotNormalization};
use crate::interference::GpuKind;
use crate::sharing::Jobs;
use crate::{DeviceView, FreeNodes, NodeView};

/// A node that the job fits.
#[derive(Debug, Clone)]
pub(super) struct CandidateNode<'f> {
    pub(super) node: &'f NodeView,
    /// Its devices that the job fits.
    pub(super) roomy: Vec<&'f DeviceView>,
    pub(super) score: Score,
}

/// How well a node suits a job: the smaller, the better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Score {
    /// The similarity of the jobs there, weighted by their slots, plus the weighted utilization (`s`).
    pub(super) cost: f64,
    /// The mean utilization of its devices, 0 to 1.
    pub(super) utilization: f64,
}

/// The number of tasks that a node gets.
#[derive(Debug, Clone)]
pub(super) struct NodeAllocation<'f> {
    pub(super) candidate: CandidateNode<'f>,
    pub(super) tasks: usize,
}

/// The nodes that a job fits, the best first; among equals the less busy one, then the first.
pub(super) fn rank_nodes<'f>(
    newcomer: JobId,
    demand: &Demand,
    free: &'f FreeNodes<'_>,
    jobs: &mut Jobs,
    rows: &mut ContentionTable,
    options: &ClwpNlwpOptions,
) -> Vec<CandidateNode<'f>> {
    let least = match demand.spread {
        Spread::Even => demand.devices() as usize,
        Spread::Free => 1,
    };
    let roomy = |node: &'f NodeView| -> Option<(&'f NodeView, Vec<&'f DeviceView>)> {
        let roomy: Vec<&DeviceView> = node.roomy(demand).collect();
        (node.has_host_room(demand) && roomy.len() >= least).then_some((node, roomy))
    };
    let with_room: Vec<_> = free.nodes().filter_map(roomy).collect();
    let wanted: Vec<_> = with_room.iter().flat_map(|(node, _)| everybody(newcomer, node, jobs)).collect();
    rows.complete(wanted, jobs);
    let candidate =
        |(node, roomy)| CandidateNode { node, roomy, score: Score::of(newcomer, node, jobs, rows, options) };
    let mut candidates: Vec<CandidateNode<'_>> = with_room.into_iter().map(candidate).collect();
    candidates.sort_by(|one, other| {
        let (one, other) = (one.score, other.score);
        one.cost.total_cmp(&other.cost).then(one.utilization.total_cmp(&other.utilization))
    });
    candidates
}

/// The newcomer and the jobs of a node, each with the kinds of GPU on which it is or would be.
fn everybody(newcomer: JobId, node: &NodeView, jobs: &Jobs) -> Vec<(JobId, GpuKind)> {
    let on_device = |device: &DeviceView| {
        let gpu = GpuKind::named(&device.model);
        let present = jobs.on(device).into_iter().chain([newcomer]);
        present.map(|job| (job, gpu.clone())).collect::<Vec<_>>()
    };
    node.devices.iter().flat_map(on_device).collect()
}

impl Score {
    fn of(
        newcomer: JobId,
        node: &NodeView,
        jobs: &mut Jobs,
        rows: &ContentionTable,
        options: &ClwpNlwpOptions,
    ) -> Score {
        let (mut similarity, mut slots, mut busy) = (0.0, 0.0, 0.0);
        for device in &node.devices {
            let gpu = GpuKind::named(&device.model);
            let mut on_device = 0.0;
            for job in jobs.on(device) {
                let taken = part(device.share_for(jobs.demand(job)));
                let row = rows.of(job, &gpu);
                similarity += taken * rows.of(newcomer, &gpu).similarity(row, options.similarity);
                slots += taken;
                on_device += jobs.member(job, &gpu).member.busy();
            }
            busy += f64::min(on_device, 1.0);
        }
        let devices = node.devices.len().max(1) as f64;
        let of = match options.slots {
            SlotNormalization::Busy if slots > 0.0 => slots,
            SlotNormalization::Busy | SlotNormalization::All => devices,
        };
        let utilization = busy / devices;
        Score { cost: similarity / of + options.mu * utilization, utilization }
    }
}

fn part(share: Share) -> f64 {
    f64::from(share.0) / f64::from(Share::WHOLE.0)
}

/// The sets of nodes to try, in order: for a job that fits one node, each alone; for others, the best ones
/// together. Empty where there are too few.
pub(super) fn list_choices<'f>(
    demand: &Demand,
    ranked: Vec<CandidateNode<'f>>,
) -> Vec<Vec<NodeAllocation<'f>>> {
    let devices = demand.devices() as usize;
    let block = |candidate| NodeAllocation { candidate, tasks: devices };
    match demand.spread {
        Spread::Even if demand.nodes == 1 => ranked.into_iter().map(|it| vec![block(it)]).collect(),
        Spread::Even => {
            let nodes = demand.nodes as usize;
            let together = ranked.into_iter().take(nodes).map(block).collect::<Vec<_>>();
            if together.len() == nodes { vec![together] } else { Vec::new() }
        }
        Spread::Free => match ranked.iter().position(|it| it.roomy.len() >= devices) {
            Some(large_enough) => vec![vec![block(ranked[large_enough].clone())]],
            None => blocks(devices, ranked).into_iter().collect(),
        },
    }
}

/// As few nodes as possible, all free devices of each but the last; among nodes with equally many, the
/// better one first.
fn blocks(devices: usize, mut ranked: Vec<CandidateNode<'_>>) -> Option<Vec<NodeAllocation<'_>>> {
    ranked.sort_by_key(|candidate| Reverse(candidate.roomy.len()));
    let mut left = devices;
    let mut blocks = Vec::new();
    for candidate in ranked {
        let tasks = candidate.roomy.len().min(left);
        left -= tasks;
        blocks.push(NodeAllocation { candidate, tasks });
        if left == 0 {
            return Some(blocks);
        }
    }
    None
}
