//! EASY backfill: which jobs may pass the first one that does not fit, and that none of them delays it.

use std::collections::BTreeMap;

use cohabit_types::{Demand, Span, Time};
use proptest::prelude::*;

use super::cluster::{Ran, TestJob, run};
use super::kit::*;
use crate::parse_policy;

fn started(ran: &[Ran]) -> BTreeMap<u64, u64> {
    let seconds = |at: Time| at.as_micros() / 1_000_000;
    ran.iter().map(|it| (it.job.number, seconds(it.started_at))).collect()
}

fn easy(devices: usize, jobs: Vec<TestJob>) -> BTreeMap<u64, u64> {
    let nodes = vec![node(1, &vec![1_000; devices])];
    started(&run(parse_policy("easy-backfill").unwrap().as_mut(), nodes, jobs))
}

#[test]
fn a_short_job_passes_and_a_long_one_does_not() {
    let jobs = vec![
        TestJob::new(1, 0.0, anywhere(3), 100),
        TestJob::new(2, 1.0, anywhere(4), 10),
        TestJob::new(3, 2.0, anywhere(1), 200),
        TestJob::new(4, 3.0, anywhere(1), 90),
    ];
    assert_eq!(easy(4, jobs), BTreeMap::from([(1, 0), (2, 100), (4, 3), (3, 110)]));
}

#[test]
fn a_long_job_passes_where_the_reservation_leaves_room() {
    let jobs = vec![
        TestJob::new(1, 0.0, anywhere(3), 100),
        TestJob::new(2, 1.0, anywhere(2), 10),
        TestJob::new(3, 2.0, anywhere(1), 500),
    ];
    assert_eq!(easy(4, jobs), BTreeMap::from([(1, 0), (2, 100), (3, 2)]));
}

#[test]
fn a_job_that_runs_longer_than_expected_postpones_the_reservation() {
    let jobs = vec![
        TestJob::new(1, 0.0, anywhere(3), 1_000).expected(100),
        TestJob::new(2, 1.0, anywhere(4), 10),
        // At 500 s the first job is expected to go on for 50 s.
        TestJob::new(3, 500.0, anywhere(1), 51),
        TestJob::new(4, 500.0, anywhere(1), 49),
    ];
    let started = easy(4, jobs);
    assert_eq!((started[&2], started[&4], started[&3]), (1_000, 500, 1_010));
}

#[test]
fn the_reasons_mention_the_reservation() {
    let mut view = view(vec![node(1, &[1_000, 0])], vec![job(1, anywhere(2)), job(2, anywhere(1))]);
    let mut policy = parse_policy("easy-backfill").unwrap();
    let part = cohabit_types::RankPlacement {
        node: view.nodes[0].id,
        devices: vec![view.nodes[0].devices[1].id.clone()],
        share: cohabit_types::Share::WHOLE,
        ranks: vec![],
        host: None,
    };
    let other = job(9, anywhere(1)).placed(cohabit_types::Placement { parts: vec![part] }, Time::EPOCH);
    let running = crate::RunningJob { ends_at: Some(view.now + Span::from_secs(60)), ..other };
    view.running.insert(running.id, running);
    policy.learn(&view, &view.as_changes());
    assert_eq!(placed(&policy.plan(&view)), [0_u64; 0]);
    let reasons = policy.explain_pending(&view);
    assert!(
        reasons[0].why.ends_with("Starts in 1 min 0 s at the latest: GPUs are reserved for it"),
        "{reasons:?}"
    );
    assert!(reasons[1].why.ends_with("Would still run when the reservation of job 1 begins"), "{reasons:?}");
}

/// The textbook algorithm on counts alone: when each job starts.
fn textbook(devices: u64, jobs: &[(u64, u64, u64)]) -> BTreeMap<u64, u64> {
    let mut waiting: Vec<usize> = Vec::new();
    let mut running: Vec<(u64, u64)> = Vec::new();
    let mut started = BTreeMap::new();
    let mut moments: Vec<u64> = jobs.iter().map(|job| job.0).collect();
    moments.sort_unstable();
    while let Some(now) = moments.first().copied() {
        moments.retain(|at| *at > now);
        running.retain(|(end, _)| *end > now);
        waiting.extend((0..jobs.len()).filter(|job| jobs[*job].0 == now));
        let mut free = devices - running.iter().map(|it| it.1).sum::<u64>();
        let mut promise: Option<(u64, u64)> = None;
        waiting.retain(|job| {
            let (_, needed, runtime) = jobs[*job];
            let beside = |(at, spare): (u64, u64)| now + runtime <= at || needed <= spare;
            if needed > free || !promise.is_none_or(beside) {
                if promise.is_none() {
                    let mut ends = running.clone();
                    ends.sort_unstable();
                    let mut then = free;
                    let shadow = ends.iter().find_map(|(end, freed)| {
                        then += freed;
                        (then >= needed).then_some(*end)
                    });
                    let at = shadow.expect("it fits once all have ended");
                    let same_moment = ends.iter().filter(|it| it.0 == at).map(|it| it.1).sum::<u64>();
                    let before = ends.iter().filter(|it| it.0 < at).map(|it| it.1).sum::<u64>();
                    promise = Some((at, free + before + same_moment - needed));
                }
                return true;
            }
            if let Some((at, spare)) = &mut promise
                && now + runtime > *at
            {
                *spare -= needed;
            }
            free -= needed;
            running.push((now + runtime, needed));
            moments.push(now + runtime);
            started.insert(*job as u64 + 1, now);
            false
        });
        moments.sort_unstable();
    }
    started
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn with_exact_estimates_it_equals_the_textbook_algorithm(
        gaps in prop::collection::vec((0_u64..20, 1_u64..5, 1_u64..60), 1..40)
    ) {
        let mut now = 0;
        let jobs: Vec<(u64, u64, u64)> = gaps.into_iter().map(|(gap, needed, runtime)| {
            now += gap;
            (now, needed, runtime)
        }).collect();
        let test_job = |(number, job): (u64, &(u64, u64, u64))| {
            TestJob::new(number, job.0 as f64, anywhere(job.1 as u32), job.2)
        };
        let expected = textbook(4, &jobs);
        prop_assert_eq!(easy(4, (1..).zip(&jobs).map(test_job).collect()), expected);
    }

    #[test]
    fn no_job_delays_the_first_one_even_on_several_nodes(
        fillers in prop::collection::vec((1_u32..4, 10_u64..100), 1..8),
        later in prop::collection::vec((1_u32..5, 1_u64..150), 0..12),
    ) {
        let nodes = || vec![node(1, &[1_000; 4]), node(2, &[1_000; 4])];
        let mut jobs: Vec<TestJob> = Vec::new();
        for (devices, runtime) in fillers {
            jobs.push(TestJob::new(jobs.len() as u64 + 1, 0.0, gpus(devices), runtime));
        }
        let first = jobs.len() as u64 + 1;
        jobs.push(TestJob::new(first, 1.0, Demand { nodes: 2, ..gpus(3) }, 10));
        let start = |jobs: Vec<TestJob>| {
            started(&run(parse_policy("easy-backfill").unwrap().as_mut(), nodes(), jobs))
        };
        let alone = start(jobs.clone());
        prop_assume!((1..first).all(|filler| alone[&filler] == 0), "it is the first without room");
        for (devices, runtime) in later {
            jobs.push(TestJob::new(jobs.len() as u64 + 1, 2.0, gpus(devices), runtime));
        }
        prop_assert!(start(jobs)[&first] <= alone[&first]);
    }
}
