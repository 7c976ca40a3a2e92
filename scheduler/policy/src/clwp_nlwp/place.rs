//! The choice of place: nodes by CLWP, devices on them by NLWP, and the placement that comes of it.

use cohabit_types::{Demand, DeviceId, GpuRequest, LaunchMode, Placement, RankPlacement, Slowdown};

use super::ClwpNlwpOptions;
use super::assignment::{AssignmentProblem, CrossNodeSwaps};
use super::links::Link;
use super::nodes::{NodeAllocation, choices, ranked};
use super::rows::ContentionTable;
use super::sites::{TaskDevice, sites};
use super::tasks::Tasks;
use crate::first_fit::find_shortage;
use crate::interference::{InterferenceContext, PredictionCache};
use crate::mapping::MapperOptions;
use crate::shared_place::Jobs;
use crate::{
    ClusterChange, FreeNodes, JobTraits, LinkDefaults, MappedPlacer, PendingJob, Placer, Profile, Proposal,
    Shortage, View, ViewChange,
};

/// Puts a job on the node whose jobs are least like it, and its tasks where they lose least time.
#[derive(Debug)]
pub(crate) struct ClwpNlwp {
    options: ClwpNlwpOptions,
    links: LinkDefaults,
    jobs: Jobs,
    rows: ContentionTable,
    asked: PredictionCache,
    /// Knows how long jobs of several devices take, and places those that need no device.
    mapped: MappedPlacer,
}

impl ClwpNlwp {
    pub(crate) fn new(
        options: ClwpNlwpOptions,
        links: LinkDefaults,
        knowledge: &InterferenceContext,
    ) -> ClwpNlwp {
        ClwpNlwp {
            options,
            links,
            jobs: Jobs::new(knowledge.solos.clone()),
            rows: ContentionTable::new(knowledge),
            asked: PredictionCache::new(knowledge.interference.clone()),
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

    fn uses_interference(&self) -> bool {
        true
    }

    fn set_interference(&mut self, knowledge: &InterferenceContext) {
        self.jobs.set_interference(knowledge.solos.clone());
        self.rows = ContentionTable::new(knowledge);
        self.asked = PredictionCache::new(knowledge.interference.clone());
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
        let ranked = ranked(job.id, &job.demand, free, &mut self.jobs, &mut self.rows, &self.options);
        let nodes = ranked.len();
        let tasks = Tasks::of(job, profile, self.options.traffic);
        let mut best = None;
        for blocks in choices(&job.demand, ranked) {
            let assign_tasks = self.assign_tasks(job, &tasks, &blocks);
            let proposal = self.proposal(job, profile, &blocks, &assign_tasks, nodes);
            if assign_tasks.iter().all(|site| site.fits) {
                return Ok(proposal);
            }
            // Where memory probably suffices nowhere, the node that suits the job best is as good as any.
            best.get_or_insert(proposal);
        }
        best.ok_or_else(|| find_shortage(&job.demand, free.nodes()))
    }

    fn slowdown(&mut self, profile: &Profile, placement: &Placement) -> f64 {
        self.mapped.slowdown(profile, placement)
    }
}

impl ClwpNlwp {
    /// The site of each task.
    fn assign_tasks<'f>(
        &mut self,
        job: &PendingJob,
        tasks: &Tasks,
        blocks: &[NodeAllocation<'f>],
    ) -> Vec<TaskDevice<'f>> {
        let all = sites(job.id, blocks, &mut self.jobs, &mut self.asked);
        let likely: Vec<TaskDevice<'f>> = all.iter().filter(|site| site.fits).cloned().collect();
        let is_enough = |(block, it): (usize, &NodeAllocation<'_>)| {
            likely.iter().filter(|site| site.block == block).count() >= it.tasks
        };
        let sites = if blocks.iter().enumerate().all(is_enough) { likely } else { all };
        let seats = self.problem(job, tasks, blocks, &sites).solve();
        seats.into_iter().map(|site| sites[site].clone()).collect()
    }

    fn problem(
        &self,
        job: &PendingJob,
        tasks: &Tasks,
        blocks: &[NodeAllocation<'_>],
        sites: &[TaskDevice<'_>],
    ) -> AssignmentProblem {
        let count = tasks.partners.len();
        let mut own = vec![Vec::with_capacity(sites.len()); count];
        for site in sites {
            let computes = tasks.graph.as_ref().map(|graph| graph.compute_seconds(&site.device.model));
            let computes = computes.unwrap_or_else(|| vec![site.seconds_alone; count]);
            own.iter_mut().zip(computes).for_each(|(own, seconds)| own.push(seconds * site.slowdown));
        }
        let link = |one: &TaskDevice<'_>, other: &TaskDevice<'_>| match one.block == other.block {
            true => Link::inside(one.node, one.device, other.device, self.links),
            false => Link::outside(one.node, other.node, self.links),
        };
        AssignmentProblem {
            partners: tasks.partners.clone(),
            homes: blocks.iter().enumerate().flat_map(|(node, it)| vec![node; it.tasks]).collect(),
            across: match job.traits.launch {
                LaunchMode::PerGpu => CrossNodeSwaps::Nodes,
                LaunchMode::PerNode => CrossNodeSwaps::No,
            },
            own,
            hurt: sites.iter().map(|site| site.hurt).collect(),
            nodes: sites.iter().map(|site| site.block).collect(),
            links: sites.iter().map(|one| sites.iter().map(|other| link(one, other)).collect()).collect(),
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
        let why = why(blocks, assign_tasks, nodes);
        match (job.demand.gpus, assign_tasks) {
            (GpuRequest::Part(_), [site]) => Proposal {
                slowdown: site.slowdown,
                colocation_slowdown: Some(Slowdown::from(site.slowdown)),
                why,
                ..Proposal::new(placement)
            },
            (GpuRequest::Part(_) | GpuRequest::Whole(_), _) => {
                Proposal { slowdown: self.slowdown(profile, &placement), why, ..Proposal::new(placement) }
            }
        }
    }
}

/// The node with the first task comes first, since all ranks meet there; devices come in the order of their
/// tasks.
fn placement(job: &PendingJob, blocks: &[NodeAllocation<'_>], assign_tasks: &[TaskDevice<'_>]) -> Placement {
    let part = |(block, it): (usize, &NodeAllocation<'_>)| {
        let here: Vec<(u32, &TaskDevice<'_>)> =
            (0..).zip(assign_tasks).filter(|(_, site)| site.block == block).collect();
        let devices: Vec<DeviceId> = here.iter().map(|(_, site)| site.device.id.clone()).collect();
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

fn why(blocks: &[NodeAllocation<'_>], assign_tasks: &[TaskDevice<'_>], nodes: usize) -> String {
    let [block] = blocks else { return format!("{} devices on {} nodes", assign_tasks.len(), blocks.len()) };
    let cost = block.candidate.score.cost;
    let (neighbours, slowdown) = match assign_tasks {
        [site] if site.neighbours > 0 => (site.neighbours, site.slowdown),
        _ => return String::new(),
    };
    let jobs = if neighbours == 1 { "1 job".to_owned() } else { format!("{neighbours} jobs") };
    let doubt =
        if assign_tasks.iter().all(|site| site.fits) { "" } else { ", though their memory may not fit" };
    format!(
        "beside {jobs} on a node whose jobs are among the least like it of {nodes} node(s) with room: cost \
         {cost:.2}, {slowdown:.2} times as long as alone{doubt}"
    )
}
