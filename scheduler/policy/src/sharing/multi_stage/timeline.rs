//! Multi-stage interference of the jobs on one GPU, until all but one have ended.
//!
//! A stage lasts until the first of the present jobs ends; then the others speed up. The first job is the
//! newcomer, and only stages with the newcomer count. This is pure arithmetic: the caller asks the predictor
//! what a stage is like, so that many GPUs can be asked about together. Symbols are those of the ISACPP
//! paper.

/// What a job still has to do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RemainingIterations {
    /// Iterations left (`rho`).
    pub(super) iterations: f64,
    /// Seconds of one iteration alone.
    pub(super) seconds_alone: f64,
}

/// What a stage is like for one job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StageConditions {
    /// Seconds of one iteration beside the other jobs (`tau / I`).
    pub(super) seconds: f64,
    /// The contention degree that the job meets (`RCD`).
    pub(super) contention: f64,
}

/// The stages of one GPU so far.
#[derive(Debug, Clone)]
pub(super) struct Timeline {
    left: Vec<RemainingIterations>,
    /// Seconds that each job would take alone.
    alone: Vec<f64>,
    /// The jobs that have not ended.
    present: Vec<usize>,
    /// Seconds since the newcomer started.
    elapsed: f64,
    /// The end of each job, in seconds (`T`).
    ends: Vec<f64>,
    stages: Vec<TimelineStage>,
}

#[derive(Debug, Clone)]
struct TimelineStage {
    seconds: f64,
    /// Contention of the jobs present in each stage.
    contention: Vec<(usize, f64)>,
}

/// The newcomer's index among the jobs.
const NEWCOMER: usize = 0;

impl Timeline {
    /// The timeline of these jobs, the newcomer first.
    pub(super) fn new(jobs: Vec<RemainingIterations>) -> Timeline {
        let alone = jobs.iter().map(|work| work.iterations * work.seconds_alone).collect();
        let (present, ends) = ((0..jobs.len()).collect(), vec![0.0; jobs.len()]);
        let mut timeline = Timeline { left: jobs, alone, present, elapsed: 0.0, ends, stages: Vec::new() };
        timeline.end_alone();
        timeline
    }

    /// The jobs of the next stage; empty if there is none.
    pub(super) fn present(&self) -> &[usize] {
        &self.present
    }

    /// Goes through a stage with these conditions for the present jobs, in their order.
    pub(super) fn pass(&mut self, beside: &[StageConditions]) {
        let needs = |(job, beside): (&usize, &StageConditions)| self.left[*job].iterations * beside.seconds;
        let needs: Vec<f64> = self.present.iter().zip(beside).map(needs).collect();
        let Some(first) = (0..needs.len()).min_by(|a, b| needs[*a].total_cmp(&needs[*b])) else { return };
        let seconds = needs[first];
        for (job, beside) in self.present.iter().zip(beside) {
            let left = &mut self.left[*job].iterations;
            // Whole iterations, as in the released code; never more than are left, whatever rounding does.
            *left = (*left - (seconds / beside.seconds).floor()).max(0.0);
        }
        self.elapsed += seconds;
        let contention = self.present.iter().copied().zip(beside.iter().map(|it| it.contention)).collect();
        self.stages.push(TimelineStage { seconds, contention });
        self.ends[self.present.remove(first)] = self.elapsed;
        self.end_alone();
    }

    /// A job that is left alone meets no contention.
    fn end_alone(&mut self) {
        if let [last] = self.present[..] {
            let RemainingIterations { iterations, seconds_alone } = self.left[last];
            self.ends[last] = self.elapsed + iterations * seconds_alone;
            self.present.clear();
        }
    }

    /// The overall interference of the newcomer: what it meets, plus the mean of what the others meet from
    /// it; 0 where it is alone.
    pub(super) fn interference(&self) -> f64 {
        let others = self.left.len().saturating_sub(1);
        if others == 0 {
            return 0.0;
        }
        let met_by_others: f64 = (1..=others).map(|job| self.met_by(job)).sum();
        self.met_by(NEWCOMER) + met_by_others / others as f64
    }

    /// What a job meets while the newcomer is there, averaged over its whole time (`F`).
    fn met_by(&self, job: usize) -> f64 {
        let degree =
            |stage: &TimelineStage, of| stage.contention.iter().find(|(it, _)| *it == of).map(|it| it.1);
        let build_with_newcomer = self.stages.iter().filter(|stage| degree(stage, NEWCOMER).is_some());
        let met = build_with_newcomer.filter_map(|stage| Some(stage.seconds * degree(stage, job)?));
        // A job that ends at once meets nothing.
        if self.ends[job] > 0.0 { met.sum::<f64>() / self.ends[job] } else { 0.0 }
    }

    /// Seconds of one iteration of a job alone.
    pub(super) fn seconds_alone(&self, job: usize) -> f64 {
        self.left[job].seconds_alone
    }

    /// Seconds that a job would take alone for what it had left at the start.
    pub(super) fn alone(&self, job: usize) -> f64 {
        self.alone[job]
    }

    /// Seconds until the end of each job.
    pub(super) fn ends(&self) -> &[f64] {
        &self.ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(seconds: f64, contention: f64) -> StageConditions {
        StageConditions { seconds, contention }
    }

    /// A newcomer with 50 iterations in an epoch, A with 100 and B with 200.
    #[test]
    fn the_interference_of_three_jobs_is_as_worked_out_by_hand() {
        let work = |iterations, seconds_alone| RemainingIterations { iterations, seconds_alone };
        let mut timeline = Timeline::new(vec![work(400.0, 0.5), work(300.0, 0.3), work(1_000.0, 0.1)]);
        assert_eq!(timeline.present(), [0, 1, 2]);
        timeline.pass(&[beside(0.6, 3.6), beside(0.4, 4.2), beside(0.25, 3.9)]);
        assert_eq!(timeline.present(), [0, 2]);
        timeline.pass(&[beside(0.4, 3.3), beside(0.175, 3.5)]);
        assert_eq!(timeline.present(), [0; 0]);
        let close = |is: f64, should: f64| (is - should).abs() < 5e-7;
        assert!([120.0, 200.0].iter().zip([1, 0]).all(|(ends, job)| close(timeline.ends()[job], *ends)));
        assert!(close(timeline.ends()[2], 206.3), "{timeline:?}");
        let met: Vec<f64> = (0..3).map(|job| timeline.met_by(job)).collect();
        assert!(close(met[0], 3.48) && close(met[1], 4.2) && close(met[2], 3.625788), "{met:?}");
        assert!(close(timeline.interference(), 7.392894), "{}", timeline.interference());
    }

    #[test]
    fn a_job_alone_meets_no_contention() {
        let timeline = Timeline::new(vec![RemainingIterations { iterations: 10.0, seconds_alone: 2.0 }]);
        assert_eq!((timeline.present().len(), timeline.interference(), timeline.ends()[0]), (0, 0.0, 20.0));
    }

    #[test]
    fn stages_after_the_newcomers_end_do_not_count() {
        let work = |iterations| RemainingIterations { iterations, seconds_alone: 1.0 };
        let mut timeline = Timeline::new(vec![work(10.0), work(100.0), work(100.0)]);
        timeline.pass(&[beside(1.0, 1.0); 3]);
        timeline.pass(&[beside(1.0, 1_000.0); 2]);
        let overall = 1.0 + (10.0 / 100.0 + 10.0 / 100.0) / 2.0;
        assert!((timeline.interference() - overall).abs() < 1e-12);
    }

    #[test]
    fn a_job_without_work_left_ends_at_once() {
        let mut timeline =
            Timeline::new(vec![RemainingIterations { iterations: 10.0, seconds_alone: 1.0 }; 2]);
        timeline.left[1].iterations = 0.0;
        timeline.pass(&[beside(2.0, 3.0); 2]);
        assert_eq!((timeline.interference(), timeline.ends()[0]), (0.0, 10.0));
    }
}
