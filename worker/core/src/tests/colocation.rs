//! Samples of ranks beside each other.

use cohabit_types::{
    Bytes, ColocationSample, GpuReading, Outcome, Progress, RankId, Report, SharingStrategy, Signal,
};

use super::gpu_kit::*;
use super::kit::*;
use crate::{GpuSample, WorkerEffect, WorkerEvent};

fn step_at(step: u64, secs: u64) -> Progress {
    Progress { step, at: at(secs), ..Progress::default() }
}

fn row(job: u64, neighbors: &[u64], from: u64, to: u64, steps: u64) -> ColocationSample {
    ColocationSample {
        rank: rank_of(job),
        device: gpu(0),
        gpu: "NVIDIA H100".into(),
        sharing: SharingStrategy::Mps,
        neighbors: neighbors.iter().map(|job| rank_of(*job)).collect(),
        from: at(from),
        to: at(to),
        steps,
        rate: steps as f64 / (to - from) as f64,
        memory: None,
        utilization: None,
    }
}

fn rows(rows: &[ColocationSample]) -> WorkerEffect {
    WorkerEffect::Report(Report::ColocationSamples(rows.to_vec()))
}

fn rows_in(effect: WorkerEffect) -> Vec<ColocationSample> {
    if let WorkerEffect::Report(Report::ColocationSamples(rows)) = effect { rows } else { Vec::new() }
}

impl TestWorker {
    /// The rank of this job has done so many steps at this second, which is nobody's business here.
    fn steps(self, job: u64, step: u64, secs: u64) -> TestWorker {
        self.event(WorkerEvent::Progress(rank_of(job), step_at(step, secs)))
    }

    /// That ranks ended is what other tests are about.
    fn forget_ended(mut self) -> TestWorker {
        let effects = self.take_effects().into_iter();
        self.effects =
            effects.filter(|it| !matches!(it, WorkerEffect::Report(Report::Ended { .. }))).collect();
        self
    }

    fn sees_busy(self, utilization: f64, memory: &[(RankId, Bytes)]) -> TestWorker {
        let reading = GpuReading { utilization: Some(utilization), ..GpuReading::default() };
        self.sees(GpuSample { reading: Ok(reading), ..look(memory) })
    }
}

#[test]
fn a_sample_ends_with_the_rank() {
    let last = WorkerEffect::Report(Report::Ended {
        rank: rank_of(1),
        outcome: Outcome::Signalled(Signal::TERM),
        stopped: None,
        progress: Some(step_at(90, 160)),
        at: at(100),
        usage: Vec::new(),
    });
    TestWorker::serving(&[1])
        .steps(1, 10, 152)
        .steps(1, 50, 156)
        .steps(1, 90, 160)
        .does_nothing()
        .dies(1)
        .does([last, rows(&[row(1, &[], 152, 160, 80)])]);
}

#[test]
fn a_long_period_is_reported_in_growing_rows() {
    TestWorker::serving(&[1])
        .steps(1, 0, 100)
        .steps(1, 9, 109)
        .does_nothing()
        .steps(1, 11, 111)
        .does([rows(&[row(1, &[], 100, 111, 11)])])
        .steps(1, 30, 130)
        .does_nothing()
        .steps(1, 32, 132)
        .does([rows(&[row(1, &[], 111, 132, 21)])])
        .steps(1, 40, 140)
        .dies(1)
        .forget_ended()
        .does([rows(&[row(1, &[], 132, 140, 8)])]);
}

#[test]
fn a_period_without_a_step_has_no_row() {
    let waits = TestWorker::serving(&[1]).steps(1, 5, 100).steps(1, 5, 200).does_nothing();
    waits.steps(1, 6, 201).does([rows(&[row(1, &[], 100, 201, 1)])]);
}

#[test]
fn a_sample_ends_when_the_neighbors_change() {
    TestWorker::serving(&[1])
        .steps(1, 10, 100)
        .steps(1, 30, 105)
        .run(sharer(2))
        .forget_effects()
        .steps(1, 40, 108)
        .does_nothing()
        .runs(2)
        .does([started(rank_of(2), 100), rows(&[row(1, &[], 100, 108, 30)])])
        .steps(1, 45, 120)
        .steps(2, 1, 121)
        .steps(1, 46, 128)
        .steps(2, 5, 129)
        .dies(2)
        .forget_ended()
        .does([rows(&[row(1, &[2], 120, 128, 1), row(2, &[1], 121, 129, 4)])]);
}

#[test]
fn memory_is_the_peak_and_utilization_the_mean_of_all_scans() {
    let expected =
        ColocationSample { memory: Some(Bytes(9)), utilization: Some(0.75), ..row(1, &[], 100, 108, 10) };
    let mine = |bytes| [(rank_of(1), Bytes(bytes))];
    TestWorker::serving(&[1])
        .steps(1, 0, 100)
        .sees_busy(0.5, &mine(7))
        .sees_busy(1.0, &mine(9))
        .sees_busy(0.75, &mine(8))
        .steps(1, 10, 108)
        .forget_effects()
        .dies(1)
        .forget_ended()
        .does([rows(&[expected])]);
}

#[test]
fn without_two_reports_and_a_step_between_them_there_is_no_row() {
    TestWorker::serving(&[1, 2])
        .steps(1, 10, 100)
        .steps(2, 10, 100)
        .steps(2, 10, 110)
        .dies(1)
        .dies(2)
        .forget_ended()
        .does_nothing();
}

#[test]
fn a_step_that_goes_back_restarts_the_sample() {
    TestWorker::serving(&[1])
        .steps(1, 500, 100)
        .steps(1, 2, 110)
        .steps(1, 4, 120)
        .dies(1)
        .forget_ended()
        .does([rows(&[row(1, &[], 110, 120, 2)])]);
}

#[test]
fn rows_are_queued_without_a_link_and_the_oldest_are_dropped() {
    let mut test = TestWorker::serving(&[1]).unlink();
    for job in 2..1_004 {
        test = test.run(sharer(job)).runs(job).steps(job, 1, job).steps(job, 2, job + 1).dies(job);
    }
    let mut test = test.forget_effects().event(WorkerEvent::Linked);
    let rows: Vec<ColocationSample> = test.take_effects().into_iter().flat_map(rows_in).collect();
    assert_eq!(rows.len(), 1_000);
    assert_eq!(rows.first().map(|row| row.rank), Some(rank_of(4)));
    assert_eq!(rows.last().map(|row| row.rank), Some(rank_of(1_003)));
}

#[test]
fn a_rank_on_several_gpus_or_none_has_no_rows() {
    let mut both = loner(1);
    both.ranks[0].devices = vec![gpu(0), gpu(1)];
    TestWorker::with_gpus()
        .run(both)
        .runs(1)
        .forget_effects()
        .steps(1, 1, 100)
        .steps(1, 5, 110)
        .dies(1)
        .forget_ended()
        .does_nothing();
    TestWorker::running(spec()).progress(0, step_at(1, 100)).progress(0, step_at(9, 110)).does_nothing();
}

#[test]
fn a_row_has_the_way_of_sharing() {
    let assert_sharing = |test: TestWorker, run, sharing| {
        let expected = ColocationSample { sharing, ..row(1, &[], 100, 108, 9) };
        let test = test.run(run).runs(1).steps(1, 1, 100).steps(1, 10, 108).forget_effects();
        test.dies(1).forget_ended().does([rows(&[expected])]);
    };
    assert_sharing(TestWorker::with_gpus(), loner(1), SharingStrategy::Exclusive);
    assert_sharing(TestWorker::without_mps(), sharer(1), SharingStrategy::TimeSliced);
}
