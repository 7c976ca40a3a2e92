//! The tasks of a job, one for each of its devices, and what they send each other in one iteration.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{ModelDescription, PipelineStage};

use crate::mapping::JobGraph;
use crate::{PendingJob, Profile};

/// How tasks that train copies of one model sum up their gradients.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrafficPattern {
    /// In a ring.
    #[default]
    Ring,
    /// Each sends them to the first task and gets new parameters back.
    ParameterServer,
}

/// The tasks of a job.
#[derive(Debug, Clone)]
pub(super) struct Tasks {
    /// The partners of each task, with the bytes of one iteration in both directions.
    pub(super) partners: Vec<Vec<(usize, f64)>>,
    /// The job's graph, where its model describes what each task computes.
    pub(super) graph: Option<Arc<JobGraph>>,
}

/// Bytes of a parameter or of its gradient.
const PARAMETER: f64 = 4.0;

impl Tasks {
    /// By the job's graph; without one, by the parameters of its model; without those, tasks send nothing.
    pub(super) fn of(job: &PendingJob, profile: &Profile, traffic: TrafficPattern) -> Tasks {
        let count = job.demand.total_devices();
        let model = job.traits.model.as_ref();
        let graph = profile.graph.clone();
        let edges = match (model.and_then(copied), traffic) {
            (Some(bytes), TrafficPattern::ParameterServer) => {
                (1..count).map(|worker| (0, worker, 2.0 * bytes)).collect()
            }
            (Some(bytes), TrafficPattern::Ring) if graph.is_none() => ring(bytes, count),
            (Some(_) | None, _) => graph.as_ref().map(|graph| graph.edges()).unwrap_or_default(),
        };
        let mut partners = vec![Vec::new(); count as usize];
        for (one, other, bytes) in edges {
            let (one, other) = (one as usize, other as usize);
            partners[one].push((other, bytes));
            partners[other].push((one, bytes));
        }
        Tasks { partners, graph }
    }

    /// What a task sends and receives in one iteration, in bytes.
    pub(super) fn total(partners: &[(usize, f64)]) -> f64 {
        partners.iter().map(|(_, bytes)| bytes).sum()
    }
}

/// What every task sums up, in bytes, where all train copies of the whole model.
fn copied(model: &ModelDescription) -> Option<f64> {
    match &model.stages[..] {
        [] => model.parameters.map(|parameters| PARAMETER * parameters as f64),
        [only] => Some(only.gradient_bytes),
        [..] => None,
    }
}

fn ring(gradient_bytes: f64, replicas: u32) -> Vec<(u32, u32, f64)> {
    let compute_seconds_on = BTreeMap::new();
    let (compute_seconds, activation_bytes) = (0.0, 0.0);
    let stage =
        PipelineStage { replicas, compute_seconds, compute_seconds_on, activation_bytes, gradient_bytes };
    let model = ModelDescription { stages: vec![stage], ..ModelDescription::default() };
    JobGraph::of(&model, replicas).map(|graph| graph.edges()).unwrap_or_default()
}
