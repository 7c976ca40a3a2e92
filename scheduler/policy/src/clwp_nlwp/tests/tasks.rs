//! What tasks send each other, by figures worked out by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::{ModelDescription, PipelineStage};

use super::super::tasks::{Partner, Tasks, TrafficPattern};
use crate::mapping::JobGraph;
use crate::tests::kit::{anywhere, job};
use crate::{PendingJob, Profile};

fn stage(activation_bytes: f64, gradient_bytes: f64, replicas: u32) -> PipelineStage {
    let compute_seconds_on = BTreeMap::new();
    PipelineStage { replicas, compute_seconds: 0.1, compute_seconds_on, activation_bytes, gradient_bytes }
}

fn trains(devices: u32, model: ModelDescription) -> PendingJob {
    let mut job = job(1, anywhere(devices));
    Arc::make_mut(&mut job.traits).model = Some(model);
    job
}

/// The partners of each task, with the bytes that it sends and receives in one iteration.
fn partners(job: &PendingJob, traffic: TrafficPattern) -> Vec<Vec<(usize, f64, f64)>> {
    let graph = job.traits.model.as_ref().and_then(|model| JobGraph::of(model, job.demand.total_devices()));
    let profile = Profile { graph: graph.map(Arc::new), ..Profile::flat(&job.demand, &job.traits) };
    let words = |partner: &Partner| (partner.task, partner.bytes.sent, partner.bytes.received);
    let tasks = Tasks::of(job, &profile, traffic).partners;
    tasks.iter().map(|partners| partners.iter().map(words).collect()).collect()
}

fn of_stages(stages: Vec<PipelineStage>) -> ModelDescription {
    ModelDescription { stages, ..ModelDescription::default() }
}

#[test]
fn stages_exchange_activations_and_replicas_sum_up_gradients_in_rings() {
    let job = trains(3, of_stages(vec![stage(8.0, 10.0, 2), stage(0.0, 99.0, 1)]));
    // 8 bytes forward and as many back, shared by two replicas; and the two links of a ring of two, one each
    // way, of 2 * 1/2 * 10 bytes.
    let should = [
        vec![(1, 10.0, 10.0), (2, 4.0, 4.0)],
        vec![(0, 10.0, 10.0), (2, 4.0, 4.0)],
        vec![(0, 4.0, 4.0), (1, 4.0, 4.0)],
    ];
    assert_eq!(partners(&job, TrafficPattern::Ring), should);
    assert_eq!(partners(&job, TrafficPattern::ParameterServer), should, "stages are no copies of one model");
}

#[test]
fn copies_without_stages_sum_up_their_parameters() {
    let model = ModelDescription { parameters: Some(3), ..ModelDescription::default() };
    let ring = partners(&trains(3, model.clone()), TrafficPattern::Ring);
    // 2 * 2/3 * 3 parameters of 4 bytes, to the next task and from the one before.
    let should = [
        [(1, 16.0, 0.0), (2, 0.0, 16.0)],
        [(0, 0.0, 16.0), (2, 16.0, 0.0)],
        [(0, 16.0, 0.0), (1, 0.0, 16.0)],
    ];
    assert_eq!(ring, should);
    let star = partners(&trains(3, model), TrafficPattern::ParameterServer);
    // 3 parameters of 4 bytes: gradients to the first task, parameters back.
    let both = |task| (task, 12.0, 12.0);
    assert_eq!(star, [vec![both(1), both(2)], vec![both(0)], vec![both(0)]]);
}

#[test]
fn a_single_stage_is_a_copy_and_an_undescribed_job_sends_nothing() {
    let one = trains(2, of_stages(vec![stage(0.0, 5.0, 2)]));
    assert_eq!(partners(&one, TrafficPattern::ParameterServer), [[(1, 5.0, 5.0)], [(0, 5.0, 5.0)]]);
    let silent = trains(2, ModelDescription::default());
    assert_eq!(partners(&silent, TrafficPattern::Ring), [[], []] as [[(usize, f64, f64); 0]; 2]);
}
