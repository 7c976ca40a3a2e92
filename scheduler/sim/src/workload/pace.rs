//! The time of one iteration at the best placement in an empty cluster.

use cohabit_policy::mapping::{JobGraph, Mapper, MapperOptions, Server};
use cohabit_types::ModelDescription;

use crate::machine_spec::MachineSpec;

/// Computes the best iteration times on a cluster.
pub struct Pace {
    mapper: Mapper,
    empty: Vec<Server>,
}

impl Pace {
    /// For these machines without any load.
    #[must_use]
    pub fn on(shapes: &[MachineSpec]) -> Pace {
        Pace {
            mapper: Mapper::new(MapperOptions::default()),
            empty: shapes.iter().map(MachineSpec::server).collect(),
        }
    }

    /// Time of one iteration in seconds; `None` if the stages do not add up to this many devices.
    pub fn fastest(&mut self, model: &ModelDescription, devices: u32) -> Option<f64> {
        let graph = JobGraph::of(model, devices)?;
        Some(self.mapper.bounds(&graph, &self.empty).fastest)
    }
}
