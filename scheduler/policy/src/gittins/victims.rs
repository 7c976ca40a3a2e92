//! Which running jobs are stopped so that a more urgent one gets a good place: for each place, the fewest
//! devices and then the least urgent jobs; of all places, the cheapest.
//!
//! Stopping the least urgent jobs wherever they are would scatter the newcomer over slow links. Whether the
//! place is really good is left to the caller, who asks the placer.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use cohabit_fair_share::{Displacement, Line, Turns};
use cohabit_types::{Demand, JobId, LinkBandwidths, NodeId, Placement, RankPlacement, Spread};

use super::running::RunningEntry;
use crate::{DeviceView, FreeNodes, NodeView, RunningJob, View};

/// Places that are worth asking the placer about.
pub(super) const MAX_PLACES: usize = 4;

/// A running job that may be stopped.
#[derive(Debug, Clone, Copy)]
struct Candidate<'v> {
    id: JobId,
    priority: i32,
    job: &'v RunningJob,
    rank: f64,
    devices: f64,
    /// What stopping it costs, in seconds.
    cost: f64,
    /// The jobs of its user with which its turn comes, where users take turns.
    line: Line,
}

/// The running jobs that may be stopped.
#[derive(Debug)]
pub(super) struct Candidates<'v> {
    /// The least urgent first.
    all: Vec<Candidate<'v>>,
    /// For each node the candidates on it, by index; found at the first question about nodes.
    on_node: OnceCell<Vec<Vec<usize>>>,
    taken: BTreeSet<usize>,
    /// How much less urgent a job has to be, as a factor.
    margin: f64,
}

/// A job that needs room.
#[derive(Debug, Clone, Copy)]
pub(super) struct Newcomer<'d> {
    pub(super) demand: &'d Demand,
    pub(super) priority: i32,
    pub(super) rank: f64,
    pub(super) devices: f64,
    pub(super) line: Line,
    /// Whose turn it is, where users take turns.
    pub(super) turns: Option<&'d Turns>,
}

impl<'d> Newcomer<'d> {
    /// Whom it may displace, where users take turns.
    fn displacement(&self) -> Option<Displacement<'d>> {
        self.turns.map(|turns| Displacement::new(turns, self.line, self.demand))
    }
}

/// Jobs whose end makes room.
#[derive(Debug, Clone)]
pub(super) struct VictimSet {
    members: Vec<usize>,
    devices: f64,
    /// The rank of the most urgent one.
    most_urgent: f64,
}

impl VictimSet {
    /// Whether there is room without stopping any job.
    pub(super) const fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl<'v> Candidates<'v> {
    /// Lists the jobs that may be stopped, with the cost of each.
    pub(super) fn new<'r>(
        view: &'v View,
        running: impl Iterator<Item = (&'r RunningEntry, f64)>,
        margin: f64,
    ) -> Candidates<'v> {
        // Both are in the order of jobs.
        let mut jobs = view.running.iter().peekable();
        let candidate = |(entry, cost): (&RunningEntry, f64)| {
            while jobs.next_if(|(id, _)| **id < entry.job.id).is_some() {}
            let (_, job) = jobs.next_if(|(id, _)| **id == entry.job.id)?;
            let (rank, devices, line) = (entry.rank.value, entry.job.devices(), entry.job.line);
            Some(Candidate { id: job.id, priority: job.priority, job, rank, devices, cost, line })
        };
        let mut all: Vec<Candidate<'v>> = running.filter_map(candidate).collect();
        all.sort_unstable_by(|one, other| {
            let priority = one.priority.cmp(&other.priority);
            priority.then(other.rank.total_cmp(&one.rank)).then(other.id.cmp(&one.id))
        });
        Candidates { all, on_node: OnceCell::new(), taken: BTreeSet::new(), margin: 1.0 + margin }
    }

    /// The candidates on a node, by index.
    fn on_node(&self, position: usize, soon: &FreeNodes<'_>) -> &[usize] {
        &self.on_node.get_or_init(|| list_on_nodes(&self.all, soon))[position]
    }

    /// Whether any job is less urgent by enough than a newcomer of this priority and rank.
    pub(super) fn has_less_urgent(&self, priority: i32, rank: f64) -> bool {
        // The first of those that are left has the lowest priority, and in it the largest rank.
        let first = (0..self.all.len()).find(|index| !self.taken.contains(index));
        first.map(|index| &self.all[index]).is_some_and(|it| {
            it.priority < priority || it.priority == priority && it.rank > self.margin * rank
        })
    }

    /// Whether a job may be stopped for a newcomer beside those that were chosen before.
    fn yields_to(
        &self,
        index: usize,
        newcomer: &Newcomer<'_>,
        displacement: Option<&Displacement<'_>>,
    ) -> bool {
        let candidate = &self.all[index];
        let price = newcomer.rank + candidate.cost * newcomer.devices;
        let (own, others) = (candidate.priority, newcomer.priority);
        let may_stop = |it: &Displacement<'_>| it.may_stop(candidate.line, candidate.job.holds);
        // Where users take turns, priorities order the jobs of one user.
        let is_comparable = displacement.is_none() || newcomer.line.party == candidate.line.party;
        let is_less_urgent = match is_comparable {
            true => own < others || own == others && candidate.rank > self.margin * price,
            false => candidate.rank > self.margin * price,
        };
        !self.taken.contains(&index) && is_less_urgent && displacement.is_none_or(may_stop)
    }

    /// Those of these jobs that may all be stopped for a newcomer, chosen one after the other.
    fn choose(&self, from: impl Iterator<Item = usize>, newcomer: &Newcomer<'_>) -> Vec<usize> {
        let mut displacement = newcomer.displacement();
        from.filter(|index| {
            let yields = self.yields_to(*index, newcomer, displacement.as_ref());
            if let Some(displacement) = displacement.as_mut().filter(|_| yields) {
                displacement.stop(self.all[*index].line, self.all[*index].job.holds);
            }
            yields
        })
        .collect()
    }

    /// Sets of jobs whose end makes room, the cheapest first.
    pub(super) fn sets(&self, newcomer: &Newcomer<'_>, soon: &FreeNodes<'_>) -> Vec<VictimSet> {
        // Nothing is cheaper than to stop no job.
        if newcomer.demand.nodes == 1 && has_places(newcomer.demand, soon) {
            return vec![self.set(Vec::new()); MAX_PLACES];
        }
        let mut sets = match newcomer.demand.devices() {
            1 if newcomer.demand.nodes == 1 && newcomer.demand.may_have_neighbors() => {
                self.single_residents(newcomer)
            }
            _ => Vec::new(),
        };
        sets.extend(self.node_sets(newcomer, soon));
        sets.sort_by(|one, other| {
            one.devices.total_cmp(&other.devices).then(other.most_urgent.total_cmp(&one.most_urgent))
        });
        sets.truncate(MAX_PLACES);
        sets
    }

    /// Each single job whose place the newcomer could take beside the others there.
    fn single_residents(&self, newcomer: &Newcomer<'_>) -> Vec<VictimSet> {
        let displacement = newcomer.displacement();
        let yielding =
            (0..self.all.len()).filter(|index| self.yields_to(*index, newcomer, displacement.as_ref()));
        yielding.take(MAX_PLACES).map(|index| self.set(vec![index])).collect()
    }

    /// The cheapest sets that free one node, or as many as the newcomer needs.
    fn node_sets(&self, newcomer: &Newcomer<'_>, soon: &FreeNodes<'_>) -> Vec<VictimSet> {
        let demand = newcomer.demand;
        let (nodes, devices) = (demand.nodes, demand.devices());
        let largest = soon.nodes().map(|node| node.devices.len()).max().unwrap_or(0) as u32;
        let on_nodes = |need| self.cheapest_on_each_node(newcomer, soon, need);
        if nodes == 1 && devices <= largest {
            return on_nodes(devices).into_iter().map(|(_, set)| set).collect();
        }
        let (each, wanted) = match demand.spread {
            Spread::Even => (devices, devices.saturating_mul(nodes)),
            Spread::Free => (largest, devices),
        };
        let mut found: u32 = 0;
        let mut members = BTreeSet::new();
        let mut last: Option<usize> = None;
        for (position, set) in on_nodes(each) {
            if found >= wanted {
                break;
            }
            // The last node may need only a part of its devices.
            let missing = wanted - found;
            let set = match missing < each {
                true => self.cheapest_on(soon, position, newcomer, missing).unwrap_or(set),
                false => set,
            };
            members.extend(set.members);
            found += each.min(missing);
            last = Some(position);
        }
        match last {
            // What each node gives up may be too much together.
            Some(_)
                if found >= wanted
                    && self.choose(members.iter().copied(), newcomer).len() == members.len() =>
            {
                vec![self.set(members.into_iter().collect())]
            }
            Some(_) | None => Vec::new(),
        }
    }

    /// For each node where `need` devices can be had, the cheapest set; the cheapest node first.
    fn cheapest_on_each_node(
        &self,
        newcomer: &Newcomer<'_>,
        soon: &FreeNodes<'_>,
        need: u32,
    ) -> Vec<(usize, VictimSet)> {
        let set = |position| Some((position, self.cheapest_on(soon, position, newcomer, need)?));
        let mut sets: Vec<(usize, VictimSet)> = (0..soon.untouched().len()).filter_map(set).collect();
        sets.sort_by(|(at, one), (other_at, other)| {
            let devices = one.devices.total_cmp(&other.devices);
            devices.then(other.most_urgent.total_cmp(&one.most_urgent)).then(at.cmp(other_at))
        });
        sets
    }

    /// The jobs on a node that have to stop so that `need` devices fit the newcomer there.
    fn cheapest_on(
        &self,
        soon: &FreeNodes<'_>,
        position: usize,
        newcomer: &Newcomer<'_>,
        need: u32,
    ) -> Option<VictimSet> {
        let node = soon.node(position);
        let demand = newcomer.demand;
        let fits = |node: &NodeView| node.roomy_devices(demand).is_some_and(|devices| devices >= need);
        if fits(node) {
            return Some(self.set(Vec::new()));
        }
        let mut node = room_of(node);
        let mut displacement = newcomer.displacement();
        let mut chosen: Vec<usize> = Vec::new();
        for index in self.on_node(position, soon).iter().copied() {
            if fits(&node) {
                break;
            }
            if self.yields_to(index, newcomer, displacement.as_ref()) {
                self.move_parts(index, &mut node, NodeView::give_back);
                let stopped = &self.all[index];
                displacement.as_mut().into_iter().for_each(|it| it.stop(stopped.line, stopped.job.holds));
                chosen.push(index);
            }
        }
        if !fits(&node) {
            return None;
        }
        // The more urgent ones were chosen last; whoever is not needed goes on.
        let mut needed = Vec::new();
        for index in chosen.into_iter().rev() {
            self.move_parts(index, &mut node, NodeView::take);
            if !fits(&node) {
                self.move_parts(index, &mut node, NodeView::give_back);
                needed.push(index);
            }
        }
        Some(self.set(needed))
    }

    fn move_parts(
        &self,
        index: usize,
        node: &mut NodeView,
        change: fn(&mut NodeView, &Demand, &RankPlacement),
    ) {
        let job = self.all[index].job;
        let id = node.id;
        let parts = job.placement.parts.iter().filter(|part| part.node == id);
        parts.for_each(|part| change(node, &job.demand, part));
    }

    /// All jobs in whose place a newcomer may come.
    pub(super) fn yielding(&self, newcomer: &Newcomer<'_>) -> VictimSet {
        self.set(self.choose(0..self.all.len(), newcomer))
    }

    /// The jobs of a set that hold devices of a placement; where cores or memory are short, all those on its
    /// nodes.
    pub(super) fn in_the_way(
        &self,
        set: &VictimSet,
        demand: &Demand,
        placement: &Placement,
        soon: &FreeNodes<'_>,
    ) -> VictimSet {
        let overlap = |meets: fn(&RankPlacement, &RankPlacement) -> bool| {
            let parts = |index: &usize| self.all[*index].job.placement.parts.iter();
            let is_met = |index: &usize| {
                parts(index).any(|held| {
                    placement.parts.iter().any(|part| part.node == held.node && meets(part, held))
                })
            };
            self.set(set.members.iter().copied().filter(is_met).collect())
        };
        let on_devices = overlap(|part, held| part.devices.iter().any(|it| held.devices.contains(it)));
        let without = self.without(&on_devices, soon);
        let fits = |part: &RankPlacement| {
            without.position(part.node).is_some_and(|at| without.node(at).fits(demand, part).is_ok())
        };
        if placement.parts.iter().all(fits) { on_devices } else { overlap(|_, _| true) }
    }

    /// Takes a job that may no longer be stopped; `false` if it was told to stop.
    pub(super) fn protect(&mut self, job: JobId) -> bool {
        let index = self.all.iter().position(|candidate| candidate.id == job);
        index.is_none_or(|index| self.taken.insert(index))
    }

    fn set(&self, members: Vec<usize>) -> VictimSet {
        let devices = members.iter().map(|index| self.all[*index].devices).sum();
        let most_urgent = members.iter().map(|index| self.all[*index].rank).fold(f64::INFINITY, f64::min);
        VictimSet { members, devices, most_urgent }
    }

    /// What is free once the jobs of a set have ended.
    pub(super) fn without<'f>(&self, set: &VictimSet, soon: &FreeNodes<'f>) -> FreeNodes<'f> {
        let mut without = soon.clone();
        for index in &set.members {
            let job = self.all[*index].job;
            without.remove_resident(job.id, &job.demand, &job.placement);
        }
        without
    }

    /// Takes the jobs of a set, so that none is stopped twice.
    pub(super) fn take(&mut self, set: &VictimSet) -> Vec<JobId> {
        self.taken.extend(set.members.iter().copied());
        set.members.iter().map(|index| self.all[*index].id).collect()
    }
}

/// For each node the candidates on it, by index.
fn list_on_nodes(all: &[Candidate<'_>], free: &FreeNodes<'_>) -> Vec<Vec<usize>> {
    let positions: BTreeMap<NodeId, usize> =
        free.nodes().enumerate().map(|(position, node)| (node.id, position)).collect();
    let mut on_node = vec![Vec::new(); positions.len()];
    for (index, candidate) in all.iter().enumerate() {
        for part in &candidate.job.placement.parts {
            if let Some(position) = positions.get(&part.node) {
                on_node[*position].push(index);
            }
        }
    }
    on_node
}

/// Whether a demand for one node fits so many nodes that it is worth asking about no other place.
fn has_places(demand: &Demand, free: &FreeNodes<'_>) -> bool {
    let fits = |node: &&NodeView| node.roomy_devices(demand).is_some_and(|count| count >= demand.devices());
    free.nodes().filter(fits).take(MAX_PLACES).count() == MAX_PLACES
}

/// A node with all that decides what fits it, and without texts, residents and links, which cost most of a
/// copy.
fn room_of(node: &NodeView) -> NodeView {
    let device = |device: &DeviceView| DeviceView {
        id: device.id.clone(),
        kind: device.kind,
        model: String::new(),
        free: device.free,
        memory: device.memory,
        memory_free: device.memory_free,
        jobs: Vec::new(),
        availability: device.availability,
        sharing: device.sharing,
        foreign_memory: device.foreign_memory,
        peers: Vec::new(),
    };
    NodeView {
        id: node.id,
        ordinal: node.ordinal,
        name: String::new(),
        cpus: node.cpus,
        cpus_free: node.cpus_free,
        memory: node.memory,
        memory_free: node.memory_free,
        max_jobs: node.max_jobs,
        jobs: node.jobs,
        links: LinkBandwidths::default(),
        owner: node.owner,
        windows: node.windows.clone(),
        fetches_code: node.fetches_code,
        application_ports: node.application_ports,
        changes_host_shares: node.changes_host_shares,
        devices: node.devices.iter().map(device).collect(),
    }
}
