//! How good agents are: their mean completion time beside the teacher's, on jobs that they do not learn from.

use std::collections::BTreeMap;
use std::sync::Arc;

use cohabit_console::CommandError;
use cohabit_predict::maifs::{NetworkAgents, TrainedAgents};
use cohabit_sim::maifs::RewardBaseline;
use cohabit_sim::{Evaluation, JobResult};
use cohabit_types::Time;

use super::episodes::{EpisodePurpose, Episodes};
use super::train::{run_agents, run_teacher};
use super::training_agents::CountedAgents;

/// Episodes that agents are compared with the teacher on.
pub(super) struct ValidationSet(Vec<ValidationEpisode>);

struct ValidationEpisode {
    evaluation: Evaluation,
    /// The teacher's mean completion time, in seconds.
    of_teacher: f64,
}

/// The best agents so far.
pub(super) struct BestAgents {
    pub(super) trained: TrainedAgents,
    pub(super) figures: ValidationFigures,
    /// After how many episodes of learning.
    pub(super) after: u32,
}

/// The figures of one validation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ValidationFigures {
    /// Mean completion time, in seconds, over the episodes.
    pub(super) mean_seconds: f64,
    /// The same of the teacher.
    pub(super) of_teacher: f64,
    /// The mean over episodes of the agents' mean completion time over the teacher's.
    pub(super) ratio: f64,
    /// How many agents sit out in a sub-step because of a conflict, on average.
    pub(super) conflicts: f64,
}

impl ValidationSet {
    pub(super) fn draw(episodes: &Episodes<'_>, count: u32) -> Result<ValidationSet, CommandError> {
        let episode = |number| {
            let evaluation = episodes.draw(EpisodePurpose::Validation, number)?;
            let of_teacher = mean_seconds(&run_teacher(evaluation.clone())?);
            Ok(ValidationEpisode { evaluation, of_teacher })
        };
        (0..count).map(episode).collect::<Result<_, CommandError>>().map(ValidationSet)
    }

    pub(super) fn measure(&self, agents: &NetworkAgents) -> Result<ValidationFigures, CommandError> {
        let (mut sum, mut of_teacher, mut ratios) = (0.0, 0.0, 0.0);
        let (mut conflicts, mut steps) = (0_usize, 0_usize);
        for episode in &self.0 {
            let (agents, counted) = CountedAgents::new(agents.clone());
            let mean = mean_seconds(&run_agents(episode.evaluation.clone(), Box::new(agents))?);
            for count in counted.try_iter() {
                conflicts += count;
                steps += 1;
            }
            sum += mean;
            of_teacher += episode.of_teacher;
            ratios += mean / episode.of_teacher.max(f64::MIN_POSITIVE);
        }
        let count = self.0.len() as f64;
        Ok(ValidationFigures {
            mean_seconds: sum / count,
            of_teacher: of_teacher / count,
            ratio: ratios / count,
            conflicts: conflicts as f64 / steps.max(1) as f64,
        })
    }
}

impl ValidationFigures {
    /// The figures of a card, by name.
    pub(super) fn by_name(&self) -> BTreeMap<String, f64> {
        let named = [
            ("mean_jct_seconds", self.mean_seconds),
            ("mean_jct_seconds_of_teacher", self.of_teacher),
            ("mean_jct_ratio_to_teacher", self.ratio),
            ("conflicts_per_sub_step", self.conflicts),
        ];
        named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// The mean time from submission to end, in seconds.
fn mean_seconds(jobs: &[JobResult]) -> f64 {
    let times = jobs.iter().filter_map(|job| Some(job.completion_time()?.as_secs_f64()));
    times.sum::<f64>() / jobs.len().max(1) as f64
}

/// What agents are rewarded against: the jobs in the teacher's system over time.
pub(super) fn baseline_of(jobs: &[JobResult]) -> Arc<RewardBaseline> {
    let mut changes: Vec<(Time, i64)> = jobs.iter().map(|job| (job.submitted, 1)).collect();
    changes.extend(jobs.iter().filter_map(|job| Some((job.ended?, -1))));
    changes.sort_unstable();
    let mut present = 0_i64;
    let mut counted: Vec<(Time, u32)> = Vec::new();
    for (at, change) in changes {
        present += change;
        let count = u32::try_from(present).unwrap_or_default();
        match counted.last_mut() {
            Some(last) if last.0 == at => last.1 = count,
            _ => counted.push((at, count)),
        }
    }
    let ideal: f64 = jobs.iter().map(|job| job.ideal.as_secs_f64()).sum();
    Arc::new(RewardBaseline { mean_seconds: ideal / jobs.len().max(1) as f64, jobs: counted })
}

#[cfg(test)]
mod tests {
    use cohabit_sim::JobResult;
    use cohabit_types::{JobState, Span};

    use super::*;

    fn at(seconds: u64) -> Time {
        Time::EPOCH + Span::from_secs(seconds)
    }

    fn job(submitted: u64, ended: u64, ideal: u64) -> JobResult {
        JobResult {
            line: None,
            user: "ada".into(),
            submitted: at(submitted),
            started: Some(at(submitted)),
            ended: Some(at(ended)),
            state: JobState::Completed,
            devices_milli: 1_000,
            nodes: vec!["node-0".into()],
            attempts: Vec::new(),
            out_of_memory: 0,
            ideal: Span::from_secs(ideal),
            gang_slowdown: None,
        }
    }

    #[test]
    fn the_baseline_counts_jobs_in_the_system() {
        let jobs = [job(0, 14, 10), job(1, 6, 3), job(2, 6, 2)];
        let baseline = baseline_of(&jobs);
        assert_eq!(baseline.jobs, [(at(0), 1), (at(1), 2), (at(2), 3), (at(6), 1), (at(14), 0)]);
        assert!((baseline.mean_seconds - 5.0).abs() < 1e-12);
        assert!((mean_seconds(&jobs) - (14.0 + 5.0 + 4.0) / 3.0).abs() < 1e-12);
    }
}
