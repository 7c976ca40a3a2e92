//! Seeds give the same run again, and no invariant is violated.

use crate::draw::Options;
use crate::failure::{FailureKind, SimFailure};
use crate::recorder::TraceDetail;
use crate::run::{run, run_twice};
use crate::scenario::Scenario;
use crate::swarm::{SwarmSummary, command, swarm};

#[test]
fn the_first_seeds_violate_nothing() {
    let summary = swarm(0..25, &Options::default());
    assert_eq!(summary.failed, []);
    assert!(summary.crashes > 50 && summary.breaks > 100 && summary.ranks > 200, "{summary:?}");
    assert!(summary.clients > 50 && summary.gpu_faults > 50, "{summary:?}");
}

#[test]
fn numbers_of_nodes_and_jobs_can_be_fixed() {
    let options = Options { nodes: Some(7), jobs: Some(60) };
    let scenario = Scenario::draw(3, &options);
    // Children of applications come on top.
    let submissions = scenario.submissions.iter().filter(|submission| submission.parent.is_none());
    assert_eq!((scenario.shapes.len(), submissions.count()), (7, 60));
    assert_eq!(run_twice(3, &options, TraceDetail::Nothing).failure, None);
}

#[test]
fn another_seed_gives_another_run() {
    let digest = |seed| run(seed, Scenario::draw(seed, &Options::default()), TraceDetail::Nothing).digest;
    assert_ne!(digest(1), digest(2));
}

#[test]
fn failures_have_their_command_and_the_worst_exit_code() {
    let options = Options { nodes: Some(2), jobs: None };
    let mut summary = SwarmSummary::default();
    for (seed, kind) in [(8, FailureKind::Differs), (9, FailureKind::NeverEnded)] {
        let mut run = run(seed, Scenario::draw(seed, &options), TraceDetail::Nothing);
        run.failure = Some(SimFailure { kind, at: cohabit_types::Time::EPOCH, detail: "made up".into() });
        summary.add(seed, &options, run);
    }
    assert_eq!((summary.exit_code(), summary.failed.len()), (2, 2));
    assert!(summary.failed[0].command.ends_with("repeat --seed 8 --nodes 2"));
    assert_eq!(command(8, &options), summary.failed[0].command);
}

#[test]
fn many_seeds_order_jobs_as_the_default_does_stop_them_and_start_those_that_waited_too_long() {
    let is_robust = |seed: &u64| {
        let policy = Scenario::draw(*seed, &Options::default()).policy;
        matches!(policy.split(':').next(), Some("a-srpt" | "hybrid"))
    };
    let robust: Vec<u64> = (0..100).filter(is_robust).collect();
    assert!(robust.len() >= 45, "{} of 100 seeds", robust.len());
    let counters = |seed| run(seed, Scenario::draw(seed, &Options::default()), TraceDetail::Nothing).counters;
    let all: Vec<_> = robust.into_iter().take(24).map(counters).collect();
    assert!(all.iter().map(|it| it.stops).sum::<u64>() > 10, "{all:?}");
    assert!(all.iter().map(|it| it.overdue_starts).sum::<u64>() > 10, "{all:?}");
}
