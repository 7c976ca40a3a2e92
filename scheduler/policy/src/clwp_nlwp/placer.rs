//! The placer: nodes by CLWP, devices on them by NLWP, and the resulting placement.

use cohabit_types::{Demand, DeviceId, GpuRequest, LaunchMode, Placement, RankPlacement, Slowdown, counted};

use super::ClwpNlwpOptions;
use super::assignment::{AssignmentProblem, CrossNodeSwaps};
use super::candidate_nodes::{NodeAllocation, list_choices, rank_nodes};
use super::contention_table::ContentionTable;
use super::links::DeviceLink;
use super::task_devices::{TaskDevice, list_task_devices};
use super::tasks::Tasks;
use crate::interference::{InterferenceContext, PredictionCache};
use crate::mapping::MapperOptions;
use crate::placement::find_shortage;
use crate::sharing::Jobs;
use crate::{
    ClusterChange, FreeNodes, JobTraits, LinkDefaults, MappedPlacer, PendingJob, Placer, Profile, Proposal,
    Shortage, View, ViewChange,
};

/// Puts a job on the node whose jobs are least similar to it, and its tasks where they lose least time.
#[derive(Debug)]
pub(crate) struct ClwpNlwp {
    options: ClwpNlwpOptions,
    links: LinkDefaults,
    jobs: Jobs,
    rows: ContentionTable,
    cache: PredictionCache,
    /// Knows the runtimes of jobs of several devices, and places jobs without devices.
    mapped: MappedPlacer,
}

impl ClwpNlwp {
    pub(crate) fn new(
        options: ClwpNlwpOptions,
        links: LinkDefaults,
        context: &InterferenceContext,
    ) -> ClwpNlwp {
        ClwpNlwp {
            options,
            links,
            jobs: Jobs::new(context.solos.clone()),
            rows: ContentionTable::new(context),
            cache: PredictionCache::new(context.interference.clone()),
            mapped: MappedPlacer::new(MapperOptions::default(), links),
        }
    }
}

impl Placer for ClwpNlwp {
    fn learn(&mut self, view: &View, changes: &[ViewChange]) {
        self.mapped.learn(view, changes);
        self.jobs.learn(view.now, changes);
        self.rows.learn(changes);
    }

    fn set_interference(&mut self, context: &InterferenceContext) {
        self.jobs.set_interference(context.solos.clone());
        self.rows = ContentionTable::new(context);
        self.cache = PredictionCache::new(context.interference.clone());
    }

    fn prepare(&mut self, view: &View) -> ClusterChange {
        self.mapped.prepare(view)
    }

    fn profile(&mut self, demand: &Demand, traits: &JobTraits) -> Profile {
        self.mapped.profile(demand, traits)
    }

    fn place(
        &mut self,
        job: &PendingJob,
        profile: &Profile,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        if job.demand.gpus == GpuRequest::Whole(0) {
            return self.mapped.place(job, profile, free);
        }
        self.jobs.insert_if_unknown(job);
        let ranked = rank_nodes(job.id, &job.demand, free, &mut self.jobs, &mut self.rows, &self.options);
        let nodes = ranked.len();
        let tasks = Tasks::of(job, profile, self.options.traffic);
        let mut best = None;
        for blocks in list_choices(&job.demand, ranked) {
            let assign_tasks = self.assign_tasks(job, &tasks, &blocks);
            let proposal = self.proposal(job, profile, &blocks, &assign_tasks, nodes);
            if assign_tasks.iter().all(|task_device| task_device.fits) {
                return Ok(proposal);
            }
            // Where memory probably fits on no node, the best node is as good as any.
            best.get_or_insert(proposal);
        }
        best.ok_or_else(|| find_shortage(&job.demand, free.nodes()))
    }

    fn slowdown(&mut self, profile: &Profile, placement: &Placement) -> f64 {
        self.mapped.slowdown(profile, placement)
    }
}

impl ClwpNlwp {
    /// The device of each task.
    fn assign_tasks<'f>(
        &mut self,
        job: &PendingJob,
        tasks: &Tasks,
        blocks: &[NodeAllocation<'f>],
    ) -> Vec<TaskDevice<'f>> {
        let all = list_task_devices(job.id, blocks, &mut self.jobs, &mut self.cache);
        let likely: Vec<TaskDevice<'f>> =
            all.iter().filter(|task_device| task_device.fits).cloned().collect();
        let is_enough = |(block, it): (usize, &NodeAllocation<'_>)| {
            likely.iter().filter(|task_device| task_device.block == block).count() >= it.tasks
        };
        let task_devices = if blocks.iter().enumerate().all(is_enough) { likely } else { all };
        let seats = self.problem(job, tasks, blocks, &task_devices).solve();
        seats.into_iter().map(|task_device| task_devices[task_device].clone()).collect()
    }

    fn problem(
        &self,
        job: &PendingJob,
        tasks: &Tasks,
        blocks: &[NodeAllocation<'_>],
        task_devices: &[TaskDevice<'_>],
    ) -> AssignmentProblem {
        let count = tasks.partners.len();
        let mut own = vec![Vec::with_capacity(task_devices.len()); count];
        for task_device in task_devices {
            let computes = tasks.graph.as_ref().map(|graph| graph.compute_seconds(&task_device.device.model));
            let computes = computes.unwrap_or_else(|| vec![task_device.seconds_alone; count]);
            own.iter_mut().zip(computes).for_each(|(own, seconds)| own.push(seconds * task_device.slowdown));
        }
        let link = |one: &TaskDevice<'_>, other: &TaskDevice<'_>| match one.block == other.block {
            true => DeviceLink::inside(one.node, one.device, other.device, self.links),
            false => DeviceLink::outside(one.node, other.node, self.links),
        };
        AssignmentProblem {
            partners: tasks.partners.clone(),
            task_nodes: blocks.iter().enumerate().flat_map(|(node, it)| vec![node; it.tasks]).collect(),
            across: match job.traits.launch {
                LaunchMode::PerGpu => CrossNodeSwaps::Nodes,
                LaunchMode::PerNode => CrossNodeSwaps::No,
            },
            own,
            hurt: task_devices.iter().map(|task_device| task_device.hurt).collect(),
            nodes: task_devices.iter().map(|task_device| task_device.block).collect(),
            links: task_devices
                .iter()
                .map(|one| task_devices.iter().map(|other| link(one, other)).collect())
                .collect(),
            weights: self.options.costs,
        }
    }

    fn proposal(
        &mut self,
        job: &PendingJob,
        profile: &Profile,
        blocks: &[NodeAllocation<'_>],
        assign_tasks: &[TaskDevice<'_>],
        nodes: usize,
    ) -> Proposal {
        let placement = placement(job, blocks, assign_tasks);
        let why = explain(blocks, assign_tasks, nodes);
        match (job.demand.gpus, assign_tasks) {
            (GpuRequest::Part(_), [task_device]) => Proposal {
                slowdown: task_device.slowdown,
                colocation_slowdown: Some(Slowdown::from(task_device.slowdown)),
                why,
                ..Proposal::new(placement)
            },
            (GpuRequest::Part(_) | GpuRequest::Whole(_), _) => {
                Proposal { slowdown: self.slowdown(profile, &placement), why, ..Proposal::new(placement) }
            }
        }
    }
}

/// The node with the first task comes first, because all ranks meet there; devices come in the order of
/// their tasks.
fn placement(job: &PendingJob, blocks: &[NodeAllocation<'_>], assign_tasks: &[TaskDevice<'_>]) -> Placement {
    let part = |(block, it): (usize, &NodeAllocation<'_>)| {
        let here: Vec<(u32, &TaskDevice<'_>)> =
            (0..).zip(assign_tasks).filter(|(_, task_device)| task_device.block == block).collect();
        let devices: Vec<DeviceId> =
            here.iter().map(|(_, task_device)| task_device.device.id.clone()).collect();
        let ranks = match job.traits.launch {
            LaunchMode::PerGpu if assign_tasks.len() > 1 => here.iter().map(|(task, _)| *task).collect(),
            LaunchMode::PerGpu | LaunchMode::PerNode => Vec::new(),
        };
        RankPlacement { ranks, ..it.candidate.node.part(&job.demand, devices) }
    };
    let mut parts: Vec<RankPlacement> = blocks.iter().enumerate().map(part).collect();
    parts.sort_by_key(|part| part.ranks.first().copied());
    Placement { parts }
}

fn explain(blocks: &[NodeAllocation<'_>], assign_tasks: &[TaskDevice<'_>], nodes: usize) -> String {
    let [block] = blocks else { return format!("{} GPUs on {} nodes", assign_tasks.len(), blocks.len()) };
    let cost = block.candidate.score.cost;
    let (neighbors, slowdown) = match assign_tasks {
        [task_device] if task_device.neighbors > 0 => (task_device.neighbors, task_device.slowdown),
        _ => return String::new(),
    };
    let jobs = counted(neighbors, "job", "jobs");
    let nodes = counted(nodes, "node", "nodes");
    let doubt = if assign_tasks.iter().all(|task_device| task_device.fits) {
        ""
    } else {
        "; their memory may not fit"
    };
    format!(
        "shares a GPU with {jobs}, on the best of {nodes} with room: cost {cost:.2}, expected slowdown \
         {slowdown:.2}{doubt}"
    )
}
