//! The mapper: servers for a job, its replicas on them, and the iteration time that results.
//!
//! An answer follows from the options and the question alone. Results are cached by the job's graph and the
//! classes of the servers, so that the same shape elsewhere costs one look-up.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::arrangement::ArrangementInput;
use super::bounds::{Bounds, compute_extremes};
use super::cache::Cache;
use super::cluster_version::ClusterVersion;
use super::graph::{GraphKey, JobGraph};
use super::iteration_time::{Arrangement, DeviceSpeeds, IterationTime};
use super::select::OpenServers;
use super::server::DeviceClass;
use super::shape::{Part, Shape};
use super::swap_search::SwapSearch;
use super::{MapperOptions, Selection, Server, Slot};

const MAX_REMEMBERED: usize = 4_096;

/// Where the replicas of a job go.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mapping {
    /// Devices of distinct servers, the most devices first.
    pub(crate) slots: Vec<Slot>,
    /// The vertices of the job's graph on each slot, ascending.
    pub(crate) ranks: Vec<Vec<u32>>,
    /// Seconds of one iteration.
    pub(crate) alpha: f64,
}

/// Maps jobs to servers.
#[derive(Debug, Clone)]
pub struct Mapper {
    options: MapperOptions,
    arrangements: Cache<(GraphKey, Vec<Part>), Arc<Arrangement>>,
    cluster: ClusterVersion,
    bounds: Cache<(GraphKey, u64), Bounds>,
}

impl Mapper {
    /// A mapper with an empty cache.
    #[must_use]
    pub const fn new(options: MapperOptions) -> Mapper {
        Mapper {
            options,
            arrangements: Cache::new(MAX_REMEMBERED),
            cluster: ClusterVersion::new(),
            bounds: Cache::new(MAX_REMEMBERED),
        }
    }

    /// Servers with free devices for a job, and its replicas on them. `None` if fewer than `devices` are
    /// free, or if the graph has another number of replicas.
    ///
    /// Where there are several models of devices, the servers of each model alone are tried too, and the
    /// fastest mapping wins; among equals, the one that could use all servers.
    pub(crate) fn place(&mut self, graph: &JobGraph, servers: &[Server], devices: u32) -> Option<Mapping> {
        if graph.devices() != devices {
            return None;
        }
        self.cluster.version(servers);
        let choices =
            OpenServers::free(servers).choices(devices, &self.options.selection, self.cluster.models());
        let found = choices.into_iter().map(|slots| self.arrange(graph, Shape::of(servers, slots)));
        found.reduce(faster).map(|found| found.mapping(graph))
    }

    /// The replicas of a job on given slots of distinct servers. Empty slots are left out.
    ///
    /// # Panics
    /// If the slots do not sum up to the graph's replicas, or name a server that is not in the list.
    pub(crate) fn map(&mut self, graph: &JobGraph, servers: &[Server], slots: Vec<Slot>) -> Mapping {
        assert_one_each(graph, &slots);
        self.arrange(graph, Shape::of(servers, slots)).mapping(graph)
    }

    /// Seconds of one iteration if the vertices are on the slots in their own order: what a job gets that
    /// numbers its ranks itself.
    ///
    /// # Panics
    /// As [`Mapper::map`].
    #[must_use]
    pub(crate) fn consecutive(&self, graph: &JobGraph, servers: &[Server], slots: &[Slot]) -> f64 {
        assert_one_each(graph, slots);
        let kinds = slots.iter().map(|slot| DeviceClass::of(&servers[slot.server]));
        let speeds: Vec<DeviceSpeeds> = kinds.map(|kind| DeviceSpeeds::of(graph, &kind)).collect();
        let counts: Vec<u32> = slots.iter().map(|slot| slot.count).collect();
        let input = ArrangementInput { time: time(graph, &self.options), speeds: &speeds, counts: &counts };
        input.consecutive().alpha
    }

    /// Seconds of one iteration if vertex `i` is on server `homes[i]`.
    ///
    /// # Panics
    /// If the length of `homes` is not the number of vertices, or if a server is not in the list.
    #[must_use]
    pub fn given(&self, graph: &JobGraph, servers: &[Server], servers_of: &[usize]) -> f64 {
        assert_eq!(servers_of.len() as u64, u64::from(graph.devices()), "every replica needs a home");
        let mut rows: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        let mut servers_of = servers_of.iter();
        for (stage, node) in graph.stages().iter().enumerate() {
            for home in servers_of.by_ref().take(node.replicas as usize) {
                rows.entry(*home).or_insert_with(|| vec![0; graph.stages().len()])[stage] += 1;
            }
        }
        let speeds = rows.keys().map(|server| DeviceSpeeds::of(graph, &DeviceClass::of(&servers[*server])));
        let speeds: Vec<DeviceSpeeds> = speeds.collect();
        SwapSearch::new(time(graph, &self.options), &speeds, rows.into_values().flatten().collect()).alpha()
    }

    /// How fast and how slow an iteration can be on these servers if nothing else runs.
    ///
    /// A mapper that draws at random is measured against the best that this one reaches, too.
    pub fn bounds(&mut self, graph: &JobGraph, servers: &[Server]) -> Bounds {
        let key = (graph.key(), self.cluster.version(servers));
        let (options, cluster) = (&self.options, &self.cluster);
        self.bounds.get_or(key, || {
            let time = time(graph, options);
            let speeds: Vec<DeviceSpeeds> =
                cluster.kinds().iter().map(|kind| DeviceSpeeds::of(graph, kind)).collect();
            let (floor, slowest) = compute_extremes(time, &speeds);
            let open_servers = OpenServers::all(servers);
            let choices = open_servers.choices(graph.devices(), &Selection::Consolidate, cluster.models());
            let best_alpha =
                |slots| with_input(time, &Shape::of(servers, slots), |input| input.tight(options).alpha);
            Bounds { fastest: choices.into_iter().map(best_alpha).fold(slowest, f64::min), slowest, floor }
        })
    }

    fn arrange(&mut self, graph: &JobGraph, shape: Shape) -> PlacedArrangement {
        let options = &self.options;
        let work = || with_input(time(graph, options), &shape, |input| Arc::new(input.arrange(options)));
        let arrangement = self.arrangements.get_or((graph.key(), shape.parts()), work);
        PlacedArrangement { shape, arrangement }
    }
}

fn assert_one_each(graph: &JobGraph, slots: &[Slot]) {
    let devices: u64 = slots.iter().map(|slot| u64::from(slot.count)).sum();
    assert_eq!(devices, u64::from(graph.devices()), "every replica needs a device of its own");
}

const fn time<'g>(graph: &'g JobGraph, options: &MapperOptions) -> IterationTime<'g> {
    IterationTime { graph, iteration: options.iteration, nic_share: options.nic_share }
}

fn with_input<Result>(
    time: IterationTime<'_>,
    shape: &Shape,
    work: impl FnOnce(ArrangementInput<'_>) -> Result,
) -> Result {
    let speeds: Vec<DeviceSpeeds> = shape.kinds().map(|kind| DeviceSpeeds::of(time.graph, kind)).collect();
    let counts: Vec<u32> = shape.slots().map(|slot| slot.count).collect();
    work(ArrangementInput { time, speeds: &speeds, counts: &counts })
}

/// An arrangement on the servers for which it was made.
struct PlacedArrangement {
    shape: Shape,
    arrangement: Arc<Arrangement>,
}

/// The faster of two; between equals, the first.
fn faster(first: PlacedArrangement, second: PlacedArrangement) -> PlacedArrangement {
    if second.arrangement.alpha < first.arrangement.alpha { second } else { first }
}

impl PlacedArrangement {
    /// Lays the rings: the replicas of a stage are numbered server by server, so that a stage on several
    /// servers crosses the network on no more links than it has servers.
    fn mapping(&self, graph: &JobGraph) -> Mapping {
        let mut placed = vec![0; graph.stages().len()];
        let rows = self.arrangement.replicas.chunks_exact(placed.len());
        let mut ranks_of = |row: &[u32]| {
            let mut ranks = Vec::new();
            for ((stage, count), placed) in graph.stages().iter().zip(row).zip(&mut placed) {
                ranks.extend(stage.vertices(*placed..*placed + count));
                *placed += count;
            }
            ranks
        };
        let ranks = rows.map(&mut ranks_of).collect();
        Mapping { slots: self.shape.slots().collect(), ranks, alpha: self.arrangement.alpha }
    }
}
