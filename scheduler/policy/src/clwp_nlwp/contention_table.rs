//! The contention metrics of jobs, one row for each kind of GPU: completed by the predictor or, where it has
//! no such metrics, from what is known of the job alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_types::JobId;

use super::SimilarityMeasure;
use crate::ViewChange;
use crate::interference::{
    ColocationSet, ContentionMetrics, GpuKind, GpuModel, Interference, InterferenceContext, SetMember,
};
use crate::sharing::Jobs;

/// The rows of all jobs that were asked about.
#[derive(Debug)]
pub(super) struct ContentionTable {
    predictor: Arc<dyn Interference>,
    rows: BTreeMap<JobId, BTreeMap<GpuKind, ContentionRow>>,
}

/// A job on a kind of GPU.
#[derive(Debug)]
pub(super) struct ContentionRow {
    /// By the predictor, if it completes rows.
    completed: Option<ContentionMetrics>,
    /// By what is known of the job alone.
    assumed: ContentionMetrics,
}

impl ContentionTable {
    pub(super) fn new(context: &InterferenceContext) -> ContentionTable {
        ContentionTable { predictor: context.interference.clone(), rows: BTreeMap::new() }
    }

    /// Drops the rows of jobs that are gone.
    pub(super) fn learn(&mut self, changes: &[ViewChange]) {
        for change in changes {
            match change {
                ViewChange::Gone(job) => drop(self.rows.remove(job)),
                ViewChange::Node(_)
                | ViewChange::NodeGone(_)
                | ViewChange::Pending(_)
                | ViewChange::Running(_)
                | ViewChange::Shares(_) => {}
            }
        }
    }

    /// Completes the rows of these jobs on these GPUs, all new ones in one question.
    pub(super) fn complete(&mut self, wanted: Vec<(JobId, GpuKind)>, jobs: &mut Jobs) {
        let mut new: Vec<(JobId, GpuKind)> =
            wanted.into_iter().filter(|(job, gpu)| !self.has(*job, gpu)).collect();
        new.sort();
        new.dedup();
        if new.is_empty() {
            return;
        }
        let alone = |(job, gpu): &(JobId, GpuKind)| {
            let members = vec![jobs.member(*job, gpu).member.clone()];
            ColocationSet { gpu: gpu.clone(), sharing: None, members }
        };
        let sets: Vec<ColocationSet> = new.iter().map(alone).collect();
        let mut completed = self.predictor.contention(&sets).unwrap_or_default().into_iter();
        for ((job, gpu), set) in new.into_iter().zip(&sets) {
            let row =
                ContentionRow { completed: completed.next().and_then(first), assumed: assume_metrics(set) };
            self.rows.entry(job).or_default().insert(gpu, row);
        }
    }

    /// The row of a job that was completed before.
    pub(super) fn of(&self, job: JobId, gpu: &GpuKind) -> &ContentionRow {
        &self.rows[&job][gpu]
    }

    fn has(&self, job: JobId, gpu: &GpuKind) -> bool {
        self.rows.get(&job).is_some_and(|rows| rows.contains_key(gpu))
    }
}

impl ContentionRow {
    /// The similarity, by completed rows where both jobs have one.
    pub(super) fn similarity(&self, other: &ContentionRow, measure: SimilarityMeasure) -> f64 {
        match (&self.completed, &other.completed) {
            (Some(one), Some(other)) => measure.of(one, other),
            (Some(_), None) | (None, Some(_) | None) => measure.of(&self.assumed, &other.assumed),
        }
    }
}

fn first(rows: Vec<ContentionMetrics>) -> Option<ContentionMetrics> {
    rows.into_iter().next()
}

/// The assumed fraction of a GPU's memory, of its peak and of its link, where it is unknown.
const USUAL_MEMORY: f64 = 0.25;
const USUAL_COMPUTE: f64 = 0.2;
const USUAL_INPUT: f64 = 0.02;
/// Bandwidth of the link between host and GPU, in bytes per second: PCIe 3 with 16 lanes.
const HOST_LINK: f64 = 16e9;

/// How busy the job alone keeps the GPU, and its fractions of memory, peak performance and host link; what
/// is unknown is that of a usual job.
fn assume_metrics(alone: &ColocationSet) -> ContentionMetrics {
    let Some(member @ SetMember { batch, features, solo, .. }) = alone.members.first() else {
        return ContentionMetrics(Vec::new());
    };
    let samples = batch.zip(solo.rate).map(|(batch, rate)| batch as f64 * rate);
    let a_second = |each: Option<f64>| samples.zip(each).map(|(samples, each)| samples * each);
    let peak = alone.gpu.model().unwrap_or(GpuModel::FALLBACK).peak;
    let metrics = [
        member.busy(),
        alone.memory_filled().unwrap_or(USUAL_MEMORY),
        a_second(features.flops_per_sample).map_or(USUAL_COMPUTE, |it| it / peak),
        a_second(features.input_bytes).map_or(USUAL_INPUT, |it| it / HOST_LINK),
    ];
    ContentionMetrics(metrics.map(|it| it.clamp(0.0, 1.0)).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interference::{ModelFeatures, SoloMetrics};

    fn alone(member: SetMember) -> ColocationSet {
        ColocationSet { gpu: GpuKind::named("v100"), sharing: None, members: vec![member] }
    }

    #[test]
    fn the_row_of_a_measured_job_is_its_fractions_of_the_gpu() {
        let solo = SoloMetrics {
            rate: Some(10.0),
            memory: Some((4_u64 << 30) as f64),
            utilization: Some(0.5),
            ..SoloMetrics::default()
        };
        let features = ModelFeatures {
            flops_per_sample: Some(1.57e10),
            input_bytes: Some(1.6e6),
            ..ModelFeatures::default()
        };
        let ContentionMetrics(row) =
            assume_metrics(&alone(SetMember { batch: Some(32), features, solo, ..SetMember::default() }));
        let should = [0.5, 0.25, 0.32, 0.032];
        assert!(row.iter().zip(should).all(|(is, should)| (is - should).abs() < 1e-12), "{row:?}");
    }

    #[test]
    fn the_row_of_an_unknown_job_is_that_of_a_usual_one() {
        let unknown = assume_metrics(&alone(SetMember::default()));
        assert_eq!(
            unknown,
            ContentionMetrics(vec![SetMember::default().busy(), USUAL_MEMORY, USUAL_COMPUTE, USUAL_INPUT])
        );
    }

    #[test]
    fn completed_rows_are_compared_with_completed_rows_only() {
        let row = |completed: Option<[f64; 2]>| ContentionRow {
            completed: completed.map(|metrics| ContentionMetrics(metrics.to_vec())),
            assumed: ContentionMetrics(vec![1.0; 4]),
        };
        let (one, other, none) = (row(Some([1.0, 0.0])), row(Some([0.0, 1.0])), row(None));
        assert_eq!(one.similarity(&other, SimilarityMeasure::Cosine), 0.0);
        assert_eq!(one.similarity(&none, SimilarityMeasure::Load), 4.0);
        assert_eq!(none.similarity(&one, SimilarityMeasure::Cosine), 1.0);
    }
}
