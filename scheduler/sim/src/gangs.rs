//! The true speed of gangs: how fast a job whose ranks communicate runs at its placement.
//!
//! The slowest rank determines the speed, so it is one number for each attempt, fixed when the head orders
//! it: the iteration time at the best placement over the iteration time at this one. The bandwidths are those
//! of the machines, whatever their workers report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cohabit_policy::mapping::{JobGraph, Mapper, MapperOptions, Server};
use cohabit_scheduler_core::Effect;
use cohabit_types::{AttemptId, JobId, Order, RunOrder};

use crate::machine_spec::MachineSpec;

/// The gangs that run.
pub(crate) struct Gangs {
    mapper: Mapper,
    /// The machines without any load.
    empty: Vec<Server>,
    /// The index of each machine by its address.
    positions: BTreeMap<String, usize>,
    speeds: BTreeMap<AttemptId, f64>,
}

impl Gangs {
    pub(crate) fn on(shapes: &[MachineSpec]) -> Gangs {
        let positions = shapes.iter().enumerate().map(|(position, shape)| (shape.address(), position));
        Gangs {
            mapper: Mapper::new(MapperOptions::default()),
            empty: servers(shapes),
            positions: positions.collect(),
            speeds: BTreeMap::new(),
        }
    }

    /// Records the attempts that the head orders and returns those with a job graph, with their relative
    /// speed.
    pub(crate) fn record_orders(&mut self, effects: &[Effect]) -> Vec<(AttemptId, f64)> {
        let mut orders: BTreeMap<AttemptId, Vec<&RunOrder>> = BTreeMap::new();
        for effect in effects {
            if let Effect::SendOrder(_, Order::Run(order)) = effect
                && order.spec.model.is_some()
            {
                orders.entry(order.attempt).or_default().push(order);
            }
        }
        let with_speed =
            orders.into_iter().filter_map(|(attempt, orders)| Some((attempt, self.speed_of(&orders)?)));
        let with_speed: Vec<(AttemptId, f64)> = with_speed.collect();
        self.speeds.extend(with_speed.iter().copied());
        with_speed
    }

    /// The speed of an attempt relative to its best placement, in (0, 1]; 1 for jobs without a graph.
    pub(crate) fn speed(&self, attempt: AttemptId) -> f64 {
        self.speeds.get(&attempt).copied().unwrap_or(1.0)
    }

    /// Forgets the attempts of an ended job.
    pub(crate) fn forget(&mut self, job: JobId) {
        let ended: Vec<AttemptId> =
            self.speeds.range(job.attempt(0)..=job.attempt(u32::MAX)).map(|(attempt, _)| *attempt).collect();
        ended.iter().for_each(|attempt| _ = self.speeds.remove(attempt));
    }

    fn speed_of(&mut self, orders: &[&RunOrder]) -> Option<f64> {
        let vertices = self.vertices(orders)?;
        let graph = JobGraph::of(orders.first()?.spec.model.as_ref()?, vertices.len() as u32)?;
        let fastest = self.mapper.bounds(&graph, &self.empty).fastest;
        Some(fastest / self.mapper.given(&graph, &self.empty, &vertices))
    }

    /// The machine of each vertex of the graph: the ranks in order, each with as many vertices as it has
    /// devices.
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

/// The machines. Machines of one model share one string, so that comparing models is cheap.
fn servers(shapes: &[MachineSpec]) -> Vec<Server> {
    let mut models: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut shared = |server: Server| {
        let model = models.get(&server.model).unwrap_or(&server.model).clone();
        models.insert(model.clone());
        Server { model, ..server }
    };
    shapes.iter().map(|shape| shared(shape.server())).collect()
}
