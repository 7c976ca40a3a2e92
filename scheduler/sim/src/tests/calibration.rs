//! What people are told of run times holds as often as it says: on published traces, whose jobs start at
//! once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use cohabit_policy::{CompletedRun, JobFeatures, PastRuns};
use cohabit_types::{Span, Time};

use crate::trace::TraceJob;
use crate::trace::published::read_published;

/// How often a range held.
#[derive(Debug, Default, Clone, Copy)]
struct Coverage {
    stated: u32,
    held: u32,
}

impl Coverage {
    fn part(self) -> f64 {
        f64::from(self.held) / f64::from(self.stated.max(1))
    }
}

fn run(job: &TraceJob) -> CompletedRun {
    let submitted_at = Time::EPOCH + job.submitted;
    let features = JobFeatures {
        user: job.user.clone(),
        group: job.group.clone(),
        devices_milli: job.devices_milli,
        model: job.model.clone(),
        batch_size: job.batch,
        submitted_at,
        ..JobFeatures::default()
    };
    CompletedRun { features, ended_at: submitted_at + job.duration, runtime: job.duration, iterations: None }
}

/// Every third job is asked for its range when it is submitted, and at these ages if it lives that long, with
/// what has ended by its submission.
fn coverage(jobs: &[TraceJob], ages: &[u64]) -> BTreeMap<u64, Coverage> {
    let (mut past, mut running) = (PastRuns::default(), BinaryHeap::new());
    let mut coverage = BTreeMap::<u64, Coverage>::new();
    for (number, job) in jobs.iter().enumerate() {
        while let Some(Reverse((end, ended))) = running.peek().copied()
            && end <= job.submitted
        {
            running.pop();
            past.learn(&[run(&jobs[ended])]);
        }
        running.push(Reverse((job.submitted + job.duration, number)));
        let known = past.like(&run(job).features).filter(|_| number % 3 == 0);
        for age in ages.iter().map(|secs| Span::from_secs(*secs)).take_while(|age| *age < job.duration) {
            let Some(known) = &known else { break };
            let rest = known.distribution.remaining(age);
            let count = coverage.entry(age.as_micros() / 1_000_000).or_default();
            count.stated += 1;
            count.held += u32::from((age + rest.least..=age + rest.most).contains(&job.duration));
        }
    }
    coverage
}

#[test]
#[expect(clippy::print_stderr, reason = "the figures are part of the result")]
fn ranges_of_run_times_hold_eight_times_of_ten() {
    for file in [
        "philly/philly_pollux_66k.csv.gz",
        "alibaba_gpu_v2023/openb_pod_list_default.csv.gz",
        "alibaba_pai_2020/gaia_pai-100k.csv.gz",
    ] {
        let Some(trace) = read_published(file, None) else { continue };
        let measured = coverage(&trace.jobs, &[0, 60, 600, 3_600]);
        eprintln!("{file}: {measured:?}");
        for (age, coverage) in &measured {
            if coverage.stated < 200 {
                continue;
            }
            let part = coverage.part();
            assert!((0.75..=0.85).contains(&part), "{file} at {age} s: {part:.3} of {coverage:?}");
        }
    }
}
