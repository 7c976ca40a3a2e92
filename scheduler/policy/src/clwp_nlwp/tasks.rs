//! The tasks of a job, one for each of its devices, and what they send each other in one iteration.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{ModelDescription, PipelineStage};

use crate::mapping::{Directions, Flow, JobGraph};
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
    /// The partners of each task.
    pub(super) partners: Vec<Vec<Partner>>,
    /// The job's graph, where its model describes what each task computes.
    pub(super) graph: Option<Arc<JobGraph>>,
}

/// What a task exchanges with one other task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Partner {
    pub(super) task: usize,
    /// Bytes of one iteration.
    pub(super) bytes: Directions,
}

/// Bytes of a parameter or of its gradient.
const PARAMETER: f64 = 4.0;

impl Tasks {
    /// By the job's graph; without one, by the parameters of its model; without those, tasks send nothing.
    pub(super) fn of(job: &PendingJob, profile: &Profile, traffic: TrafficPattern) -> Tasks {
        let count = job.demand.total_devices();
        let model = job.traits.model.as_ref();
        let graph = profile.graph.clone();
        let flows = match (model.and_then(copied), traffic) {
            (Some(bytes), TrafficPattern::ParameterServer) => star(bytes, count),
            (Some(bytes), TrafficPattern::Ring) if graph.is_none() => ring(bytes, count),
            (Some(_) | None, _) => graph.as_ref().map(|graph| graph.flows()).unwrap_or_default(),
        };
        let mut exchanged: Vec<BTreeMap<usize, Directions>> = vec![BTreeMap::new(); count as usize];
        for Flow { from, to, bytes } in flows {
            let (from, to) = (from as usize, to as usize);
            exchanged[from].entry(to).or_default().sent += bytes;
            exchanged[to].entry(from).or_default().received += bytes;
        }
        let of_task = |with: BTreeMap<usize, Directions>| {
            with.into_iter().map(|(task, bytes)| Partner { task, bytes }).collect()
        };
        let partners = exchanged.into_iter().map(of_task).collect();
        Tasks { partners, graph }
    }

    /// What a task sends and receives in one iteration, in bytes.
    pub(super) fn total(partners: &[Partner]) -> f64 {
        partners.iter().map(|partner| partner.bytes.sent + partner.bytes.received).sum()
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

/// Gradients to the first task, and as many bytes of parameters back.
fn star(bytes: f64, tasks: u32) -> Vec<Flow> {
    let flow = |from, to| Flow { from, to, bytes };
    (1..tasks).flat_map(|worker| [flow(worker, 0), flow(0, worker)]).filter(|it| it.bytes > 0.0).collect()
}

fn ring(gradient_bytes: f64, replicas: u32) -> Vec<Flow> {
    let compute_seconds_on = BTreeMap::new();
    let (compute_seconds, activation_bytes) = (0.0, 0.0);
    let stage =
        PipelineStage { replicas, compute_seconds, compute_seconds_on, activation_bytes, gradient_bytes };
    let model = ModelDescription { stages: vec![stage], ..ModelDescription::default() };
    JobGraph::of(&model, replicas).map(|graph| graph.flows()).unwrap_or_default()
}
