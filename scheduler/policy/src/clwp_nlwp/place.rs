//! The choice of place: nodes by CLWP, devices on them by NLWP, and the placement that comes of it.

use cohabit_types::{Demand, DeviceId, Gpus, Launch, Placement, RankPlacement, Slowdown};

use super::ClwpNlwpOptions;
use super::assignment::{Across, Problem};
use super::links::Link;
use super::nodes::{Block, choices, ranked};
use super::rows::Rows;
use super::sites::{Site, sites};
use super::tasks::Tasks;
use crate::first_fit::shortage_on;
use crate::interference::{Asked, Knowledge};
use crate::mapping::MapperOptions;
use crate::shared_place::Jobs;
use crate::{
    Change, Cluster, FreeNodes, JobTraits, LinkDefaults, MappedPlace, PendingJob, Place, Profile, Proposal,
    Shortage, View,
};

/// Puts a job on the node whose jobs are least like it, and its tasks where they lose least time.
#[derive(Debug)]
pub(crate) struct ClwpNlwp {
    options: ClwpNlwpOptions,
    links: LinkDefaults,
    jobs: Jobs,
    rows: Rows,
    asked: Asked,
    /// Knows how long jobs of several devices take, and places those that need no device.
    mapped: MappedPlace,
}

impl ClwpNlwp {
    pub(crate) fn new(options: ClwpNlwpOptions, links: LinkDefaults, knowledge: &Knowledge) -> ClwpNlwp {
        ClwpNlwp {
            options,
            links,
            jobs: Jobs::new(knowledge.solos.clone()),
            rows: Rows::new(knowledge),
            asked: Asked::new(knowledge.interference.clone()),
            mapped: MappedPlace::new(MapperOptions::default(), links),
        }
    }
}

impl Place for ClwpNlwp {
    fn learn(&mut self, view: &View, changes: &[Change]) {
        self.mapped.learn(view, changes);
        self.jobs.learn(view.now, changes);
        self.rows.learn(changes);
    }

    fn know(&mut self, knowledge: &Knowledge) {
        self.jobs.know(knowledge.solos.clone());
        self.rows = Rows::new(knowledge);
        self.asked = Asked::new(knowledge.interference.clone());
    }

    fn prepare(&mut self, view: &View) -> Cluster {
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
        if job.demand.gpus == Gpus::Whole(0) {
            return self.mapped.place(job, profile, free);
        }
        self.jobs.welcome(job);
        let ranked = ranked(job.id, &job.demand, free, &mut self.jobs, &mut self.rows, &self.options);
        let nodes = ranked.len();
        let tasks = Tasks::of(job, profile, self.options.traffic);
        let mut best = None;
        for blocks in choices(&job.demand, ranked) {
            let seated = self.seated(job, &tasks, &blocks);
            let proposal = self.proposal(job, profile, &blocks, &seated, nodes);
            if seated.iter().all(|site| site.fits) {
                return Ok(proposal);
            }
            // Where memory probably suffices nowhere, the node that suits the job best is as good as any.
            best.get_or_insert(proposal);
        }
        best.ok_or_else(|| shortage_on(&job.demand, free.nodes()))
    }

    fn slowdown(&mut self, profile: &Profile, placement: &Placement) -> f64 {
        self.mapped.slowdown(profile, placement)
    }
}

impl ClwpNlwp {
    /// The site of each task.
    fn seated<'f>(&mut self, job: &PendingJob, tasks: &Tasks, blocks: &[Block<'f>]) -> Vec<Site<'f>> {
        let all = sites(job.id, blocks, &mut self.jobs, &mut self.asked);
        let likely: Vec<Site<'f>> = all.iter().filter(|site| site.fits).cloned().collect();
        let is_enough = |(block, it): (usize, &Block<'_>)| {
            likely.iter().filter(|site| site.block == block).count() >= it.tasks
        };
        let sites = if blocks.iter().enumerate().all(is_enough) { likely } else { all };
        let seats = self.problem(job, tasks, blocks, &sites).solved();
        seats.into_iter().map(|site| sites[site].clone()).collect()
    }

    fn problem(&self, job: &PendingJob, tasks: &Tasks, blocks: &[Block<'_>], sites: &[Site<'_>]) -> Problem {
        let count = tasks.partners.len();
        let mut own = vec![Vec::with_capacity(sites.len()); count];
        for site in sites {
            let computes = tasks.graph.as_ref().map(|graph| graph.compute_seconds(&site.device.model));
            let computes = computes.unwrap_or_else(|| vec![site.seconds_alone; count]);
            own.iter_mut().zip(computes).for_each(|(own, seconds)| own.push(seconds * site.slowdown));
        }
        let link = |one: &Site<'_>, other: &Site<'_>| match one.block == other.block {
            true => Link::inside(one.node, one.device, other.device, self.links),
            false => Link::outside(one.node, other.node, self.links),
        };
        Problem {
            partners: tasks.partners.clone(),
            homes: blocks.iter().enumerate().flat_map(|(node, it)| vec![node; it.tasks]).collect(),
            across: match job.traits.launch {
                Launch::PerGpu => Across::Nodes,
                Launch::PerNode => Across::No,
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
        blocks: &[Block<'_>],
        seated: &[Site<'_>],
        nodes: usize,
    ) -> Proposal {
        let placement = placement(job, blocks, seated);
        let why = why(blocks, seated, nodes);
        match (job.demand.gpus, seated) {
            (Gpus::Part(_), [site]) => Proposal {
                slowdown: site.slowdown,
                beside_others: Some(Slowdown::from(site.slowdown)),
                why,
                ..Proposal::new(placement)
            },
            (Gpus::Part(_) | Gpus::Whole(_), _) => {
                Proposal { slowdown: self.slowdown(profile, &placement), why, ..Proposal::new(placement) }
            }
        }
    }
}

/// The node with the first task comes first, since all ranks meet there; devices come in the order of their
/// tasks.
fn placement(job: &PendingJob, blocks: &[Block<'_>], seated: &[Site<'_>]) -> Placement {
    let part = |(block, it): (usize, &Block<'_>)| {
        let here: Vec<(u32, &Site<'_>)> = (0..).zip(seated).filter(|(_, site)| site.block == block).collect();
        let devices: Vec<DeviceId> = here.iter().map(|(_, site)| site.device.id.clone()).collect();
        let ranks = match job.traits.launch {
            Launch::PerGpu if seated.len() > 1 => here.iter().map(|(task, _)| *task).collect(),
            Launch::PerGpu | Launch::PerNode => Vec::new(),
        };
        RankPlacement { ranks, ..it.candidate.node.part(&job.demand, devices) }
    };
    let mut parts: Vec<RankPlacement> = blocks.iter().enumerate().map(part).collect();
    parts.sort_by_key(|part| part.ranks.first().copied());
    Placement { parts }
}

fn why(blocks: &[Block<'_>], seated: &[Site<'_>], nodes: usize) -> String {
    let [block] = blocks else { return format!("{} devices on {} nodes", seated.len(), blocks.len()) };
    let cost = block.candidate.score.cost;
    let (neighbours, slowdown) = match seated {
        [site] if site.neighbours > 0 => (site.neighbours, site.slowdown),
        _ => return String::new(),
    };
    let jobs = if neighbours == 1 { "1 job".to_owned() } else { format!("{neighbours} jobs") };
    let doubt = if seated.iter().all(|site| site.fits) { "" } else { ", though their memory may not fit" };
    format!(
        "beside {jobs} on a node whose jobs are among the least like it of {nodes} node(s) with room: cost \
         {cost:.2}, {slowdown:.2} times as long as alone{doubt}"
    )
}
