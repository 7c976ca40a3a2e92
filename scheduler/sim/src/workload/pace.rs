//! How long one iteration takes at best on an empty cluster.

use cohabit_policy::mapping::{JobGraph, Mapper, MapperOptions, Server};
use cohabit_types::ModelDescription;

use crate::machine_spec::MachineSpec;

/// The best pace of trainings on a cluster.
pub struct Pace {
    mapper: Mapper,
    empty: Vec<Server>,
}

impl Pace {
    /// On these machines, with nothing on them.
    #[must_use]
    pub fn on(shapes: &[MachineSpec]) -> Pace {
        Pace {
            mapper: Mapper::new(MapperOptions::default()),
            empty: shapes.iter().map(MachineSpec::server).collect(),
        }
    }

    /// Seconds for one iteration; none where the stages do not make so many devices.
    pub fn fastest(&mut self, model: &ModelDescription, devices: u32) -> Option<f64> {
        let graph = JobGraph::of(model, devices)?;
        Some(self.mapper.bounds(&graph, &self.empty).fastest)
    }
}
