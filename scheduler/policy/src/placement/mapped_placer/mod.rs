//! The placer that all policies share except `fifo`: the tightest fit, and for a job whose graph is known
//! the placement with the fastest iteration.
//!
//! Whole devices go to the node with the least left over or, where they may be on any nodes, to as few nodes
//! as possible; a share goes to the fullest device that it fits. When a job starts is not decided here.
//! Start with [`MappedPlacer::place`]; `servers.rs` translates nodes for the mapper, `graph_job.rs`
//! translates its answer back, and `tight.rs` places jobs without a graph.

mod free_device_counts;
mod graph_job;
mod servers;
mod tight;

use std::sync::Arc;

use cohabit_types::{Demand, GpuRequest, Placement, RankPlacement, Spread};

use super::first_fit::{find_shortage, place_on_node};
use crate::mapping::{Cache, GraphKey, JobGraph, Mapper, MapperOptions, Selection, Slot, select};
use crate::{
    ClusterChange, FreeNodes, JobTraits, PendingJob, Placer, Profile, Proposal, Shortage, View, ViewChange,
};
use graph_job::GraphJob;
pub(crate) use servers::LinkDefaults;
use servers::Servers;

/// Graphs that are kept, so that jobs with the same graph share one copy.
const MAX_GRAPHS: usize = 4_096;

/// Puts jobs on the tightest nodes with the least traffic between them.
#[derive(Debug, Clone)]
pub(crate) struct MappedPlacer {
    mapper: Mapper,
    /// For jobs without a graph.
    selection: Selection,
    servers: Servers,
    /// One copy of each graph.
    graphs: Cache<GraphKey, Arc<JobGraph>>,
}

impl Placer for MappedPlacer {
    fn learn(&mut self, _: &View, changes: &[ViewChange]) {
        self.servers.learn(changes);
    }

    fn prepare(&mut self, view: &View) -> ClusterChange {
        self.servers.refresh(&view.nodes)
    }

    fn profile(&mut self, demand: &Demand, traits: &JobTraits) -> Profile {
        let Some(graph) = self.graph(demand, traits) else { return Profile::flat(demand, traits) };
        let bounds = self.mapper.bounds(&graph, self.servers.all());
        Profile::mapped(demand, traits, graph, bounds)
    }

    fn place(
        &mut self,
        job: &PendingJob,
        profile: &Profile,
        free: &FreeNodes<'_>,
    ) -> Result<Proposal, Shortage> {
        let demand = &job.demand;
        let proposal = match demand.gpus {
            GpuRequest::Part(_) | GpuRequest::Whole(0) => tight::on_fullest(demand, free).map(Proposal::new),
            GpuRequest::Whole(_) if demand.nodes == 1 => self.on_any(demand, profile, free),
            GpuRequest::Whole(_) => self.on_several(demand, profile, free),
        };
        proposal.ok_or_else(|| find_shortage(demand, free.nodes()))
    }

    fn slowdown(&mut self, profile: &Profile, placement: &Placement) -> f64 {
        let Some(graph_job) = GraphJob::of(profile) else { return 1.0 };
        self.slots(placement)
            .map_or(1.0, |slots| graph_job.slowdown(&mut self.mapper, self.servers.all(), slots))
    }
}

impl MappedPlacer {
    /// A placer with these options; `links` stands for bandwidths that a node does not report.
    #[must_use]
    pub(crate) fn new(options: MapperOptions, links: LinkDefaults) -> MappedPlacer {
        MappedPlacer {
            selection: options.selection.clone(),
            mapper: Mapper::new(options),
            servers: Servers::new(links),
            graphs: Cache::new(MAX_GRAPHS),
        }
    }

    /// The graph of a job with whole devices, if its model describes one.
    fn graph(&mut self, demand: &Demand, traits: &JobTraits) -> Option<Arc<JobGraph>> {
        let GpuRequest::Whole(1..) = demand.gpus else { return None };
        let graph = JobGraph::of(traits.model.as_ref()?, demand.total_devices())?;
        Some(self.graphs.get_or(graph.key(), || Arc::new(graph)))
    }

    /// Whole devices on any nodes, or all on one.
    fn on_any(&mut self, demand: &Demand, profile: &Profile, free: &FreeNodes<'_>) -> Option<Proposal> {
        let least = match demand.spread {
            Spread::Free => 1,
            Spread::Even => demand.devices(),
        };
        let servers = self.servers.with_room(demand, least, free);
        let Some(graph_job) = GraphJob::of(profile) else {
            let slots = select(servers, demand.devices(), &self.selection)?;
            return Some(unmapped(demand, &slots, free));
        };
        let mapping = self.mapper.place(graph_job.graph, servers, demand.devices())?;
        Some(graph_job.proposal(&mut self.mapper, servers, mapping, demand, free))
    }

    /// The same number of whole devices on each of several nodes.
    fn on_several(&mut self, demand: &Demand, profile: &Profile, free: &FreeNodes<'_>) -> Option<Proposal> {
        let servers = self.servers.with_room(demand, demand.devices(), free);
        let slots = tight::equal_slots(servers, demand)?;
        let Some(graph_job) = GraphJob::of(profile) else { return Some(unmapped(demand, &slots, free)) };
        let mapping = self.mapper.map(graph_job.graph, servers, slots);
        Some(graph_job.proposal(&mut self.mapper, servers, mapping, demand, free))
    }

    /// The slots of a placement, in its order; `None` if one of its nodes no longer accepts jobs.
    fn slots(&self, placement: &Placement) -> Option<Vec<Slot>> {
        let slot = |part: &RankPlacement| {
            let server = self.servers.position(part.node)?;
            Some(Slot { server, count: part.devices.len() as u32 })
        };
        placement.parts.iter().map(slot).collect()
    }
}

/// The placement of a job without a graph.
fn unmapped(demand: &Demand, slots: &[Slot], free: &FreeNodes<'_>) -> Proposal {
    let parts = slots.iter().map(|slot| place_on_node(demand, free.node(slot.server), slot.count)).collect();
    let why = match slots.len() {
        nodes if nodes > 1 && demand.spread == Spread::Free => {
            format!("{} GPUs on {nodes} nodes", demand.devices())
        }
        _ => String::new(),
    };
    Proposal { why, ..Proposal::new(Placement { parts }) }
}
