//! The ground truth of gangs: how fast a job whose ranks talk to each other is where they lie.
//!
//! The slowest rank sets the pace of all, so it is one number for an attempt, fixed when the head orders it
//! to run: an iteration's time at the best place over its time at this one. The links are those that the
//! machines have, whatever their workers say of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_policy::mapping::{JobGraph, Mapper, MapperOptions, Server};
use cohabit_scheduler_core::Effect;
use cohabit_types::{AttemptId, JobId, Order, RunOrder};

use crate::machine_spec::MachineSpec;

/// The gangs that run.
pub(crate) struct Gangs {
    mapper: Mapper,
    /// The machines, with nothing on them.
    empty: Vec<Server>,
    /// Their positions by address.
    positions: BTreeMap<String, usize>,
    paces: BTreeMap<AttemptId, f64>,
}

impl Gangs {
    pub(crate) fn on(shapes: &[MachineSpec]) -> Gangs {
        let positions = shapes.iter().enumerate().map(|(position, shape)| (shape.address(), position));
        Gangs {
            mapper: Mapper::new(MapperOptions::default()),
            empty: servers(shapes),
            positions: positions.collect(),
            paces: BTreeMap::new(),
        }
    }

    /// Takes note of the attempts that the head wants to run, and answers with those that have a graph.
    pub(crate) fn ordered(&mut self, effects: &[Effect]) -> Vec<(AttemptId, f64)> {
        let mut orders: BTreeMap<AttemptId, Vec<&RunOrder>> = BTreeMap::new();
        for effect in effects {
            if let Effect::Tell(_, Order::Run(order)) = effect
                && order.spec.model.is_some()
            {
                orders.entry(order.attempt).or_default().push(order);
            }
        }
        let paced =
            orders.into_iter().filter_map(|(attempt, orders)| Some((attempt, self.pace_of(&orders)?)));
        let paced: Vec<(AttemptId, f64)> = paced.collect();
        self.paces.extend(paced.iter().copied());
        paced
    }

    /// How fast an attempt is, as a part of its best pace.
    pub(crate) fn pace(&self, attempt: AttemptId) -> f64 {
        self.paces.get(&attempt).copied().unwrap_or(1.0)
    }

    /// None of its attempts runs any more.
    pub(crate) fn forget(&mut self, job: JobId) {
        let ended: Vec<AttemptId> =
            self.paces.range(job.attempt(0)..=job.attempt(u32::MAX)).map(|(attempt, _)| *attempt).collect();
        ended.iter().for_each(|attempt| _ = self.paces.remove(attempt));
    }

    fn pace_of(&mut self, orders: &[&RunOrder]) -> Option<f64> {
        let vertices = self.vertices(orders)?;
        let graph = JobGraph::of(orders.first()?.spec.model.as_ref()?, vertices.len() as u32)?;
        let fastest = self.mapper.bounds(&graph, &self.empty).fastest;
        Some(fastest / self.mapper.given(&graph, &self.empty, &vertices))
    }

    /// The machine of each vertex of the graph: the ranks in their order, each with as many vertices as it
    /// has devices.
    fn vertices(&self, orders: &[&RunOrder]) -> Option<Vec<usize>> {
        let mut machines = BTreeMap::new();
        for order in orders {
            for run in &order.ranks {
                let address = order.nodes.get(run.node_rank as usize)?;
                machines.insert(run.rank, (*self.positions.get(address)?, run.devices.len()));
            }
        }
        Some(
            machines.into_values().flat_map(|(machine, count)| std::iter::repeat_n(machine, count)).collect(),
        )
    }
}

/// The machines; those of one model hold the same string, so that comparing them costs nothing.
fn servers(shapes: &[MachineSpec]) -> Vec<Server> {
    let mut models: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut shared = |server: Server| {
        let model = models.get(&server.model).unwrap_or(&server.model).clone();
        models.insert(model.clone());
        Server { model, ..server }
    };
    shapes.iter().map(|shape| shared(shape.server())).collect()
}
