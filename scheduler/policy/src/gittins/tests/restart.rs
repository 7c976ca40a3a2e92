//! The same jobs give the same plans, and a policy that starts anew ranks jobs as the one before did.

use std::collections::BTreeMap;
use std::sync::Mutex;

use cohabit_types::{JobId, Span, Time};
use proptest::prelude::*;

use super::kit::{drawn, job, named, nodes, order, policy, preemptible, watched};
use crate::gittins::GittinsOrder;
use crate::gittins::bins::BINS;
use crate::gittins::contexts::JobContexts;
use crate::tests::cluster::{TestCluster, TestJob};
use crate::tests::kit::gpus;
use crate::{EndedRun, FirstFit, JobFeatures, PendingJob, Policy, View, ViewChange};

/// The history that a head keeps: jobs that ran, and those that ended, in the order of their ends.
#[derive(Default)]
struct History {
    jobs: BTreeMap<JobId, PendingJob>,
    started: BTreeMap<JobId, Time>,
    ended: Vec<EndedRun>,
}

impl History {
    fn note(&mut self, now: Time, changes: &[ViewChange]) {
        for change in changes {
            match change {
                ViewChange::Pending(job) => drop(self.jobs.insert(job.id, job.clone())),
                ViewChange::Running(job) => drop(self.started.insert(job.id, job.started_at)),
                ViewChange::Gone(job) => self.end(*job, now),
                ViewChange::Node(_) | ViewChange::NodeGone(_) | ViewChange::Shares(_) => {}
            }
        }
    }

    fn end(&mut self, id: JobId, now: Time) {
        let job = &self.jobs[&id];
        let features = JobFeatures {
            user: job.traits.user.clone(),
            group: job.traits.name.clone(),
            submitted_at: job.submitted_at,
            devices_milli: job.demand.total_milli(),
            iterations: job.traits.iterations,
            ..JobFeatures::default()
        };
        let worked = job.attained.worked + now.since(self.started[&id]);
        let estimated = job.traits.estimate.as_ref().and_then(|it| it.runtime);
        self.ended.push(EndedRun { features, worked, estimated });
    }

    /// What a policy knows that starts now.
    fn restarted(&self, options: &str, view: &View) -> GittinsOrder<FirstFit> {
        let mut order = order(options, FirstFit);
        order.recall(&self.ended);
        order.learn(view, &view.as_changes());
        order
    }
}

/// For each live job its rank, and how many jobs reached each bin of each of its contexts.
type Known = BTreeMap<JobId, (f64, Vec<[f64; BINS]>)>;

fn known(order: &GittinsOrder<FirstFit>, view: &View) -> Known {
    let reached = |contexts: &JobContexts| {
        let counts = order.state.beliefs.counts(contexts);
        counts.map(|it| std::array::from_fn(|bin| it.at(bin).0)).collect()
    };
    let waiting = view.pending.keys().map(|id| {
        let job = order.state.waiting.get(*id).unwrap();
        let rest = order.state.beliefs.rest(&job.contexts, job.estimated, job.worked(), f64::INFINITY);
        (*id, (job.rank(rest).value, reached(&job.contexts)))
    });
    let running = order.state.running.iter().map(|entry| {
        let (contexts, estimated) = (&entry.job.contexts, entry.job.estimated);
        let rest = order.state.beliefs.rest(contexts, estimated, entry.age(view.now), f64::INFINITY);
        (entry.job.id, (entry.job.rank(rest).value, reached(&entry.job.contexts)))
    });
    waiting.chain(running).collect()
}

/// Runs the jobs, and compares after each plan with what a policy would know that starts now. Ranks may
/// differ by this factor, counts not at all.
fn compare_with_restarts(options: &str, devices: usize, jobs: Vec<TestJob>, factor: f64) -> usize {
    let count = jobs.len();
    let compared = Mutex::new(0);
    let history = Mutex::new(History::default());
    let mut watched = watched(
        order(options, FirstFit),
        |_, view, changes| history.lock().unwrap().note(view.now, changes),
        |view, _, order| {
            let after = known(&history.lock().unwrap().restarted(options, view), view);
            for (job, (rank, reached)) in known(order, view) {
                let (rank_after, reached_after) = &after[&job];
                for (before, after) in reached.iter().flatten().zip(reached_after.iter().flatten()) {
                    assert!((before - after).abs() < 1e-9, "{job}: {before} jobs, then {after}");
                }
                let change = (rank / rank_after).max(rank_after / rank);
                assert!(change <= factor, "{job}: {rank}, then {rank_after}");
                *compared.lock().unwrap() += 1;
            }
        },
    );
    let mut cluster = TestCluster::new(nodes(1, devices), jobs, Box::new(FirstFit));
    cluster.stopping_takes = Span::from_secs(10);
    assert_eq!(cluster.run(&mut watched).len(), count);
    compared.into_inner().unwrap()
}

/// Jobs of a few kinds, submitted within one session.
fn workloads() -> impl Strategy<Value = Vec<TestJob>> {
    let length = prop_oneof![3 => 1_u64..600, 1 => 1_000_u64..20_000];
    let drawn = (0_u64..1_500, 0_usize..4, length, any::<bool>());
    prop::collection::vec(drawn, 5..20).prop_map(|drawn| {
        let each = drawn.into_iter().zip(1..);
        each.map(|((arrives, kind, length, willing), number)| {
            let it = named(job(number, arrives as f64, gpus(1), length), ["a", "b", "c", "d"][kind]);
            // Users state the run time of two thirds, of every second of these the true one.
            let it = if number % 3 > 0 { it.expected(length * (number % 3)) } else { it };
            if willing { preemptible(it) } else { it }
        })
        .collect()
    })
}

#[test]
fn a_new_policy_that_recalls_jobs_run_one_by_one_has_the_very_ranks_of_the_one_before() {
    let compared: usize = drawn(workloads(), 30)
        .map(|jobs| compare_with_restarts("preempt=off,lane=0", 1, jobs, 1.0 + 1e-9))
        .sum();
    assert!(compared > 1_000);
}

#[test]
fn a_new_policy_counts_as_the_one_before_and_ranks_nearly_as_it_did() {
    // Passes and ends are counted in another order, and the latest weigh most.
    let options = "quantum=60,stop-ratio=0,margin=0.1,lane=0";
    let compared: usize =
        drawn(workloads(), 30).map(|jobs| compare_with_restarts(options, 3, jobs, 1.5)).sum();
    assert!(compared > 1_000);
}

#[test]
fn the_same_jobs_give_the_same_plans_bit_by_bit() {
    for jobs in drawn(workloads(), 20) {
        let run = || {
            let mut cluster = TestCluster::new(nodes(2, 1), jobs.clone(), Box::new(FirstFit));
            let ran = cluster.run(policy("a-srpt:quantum=60,stop-ratio=0").as_mut());
            (format!("{ran:?}"), cluster.plans)
        };
        assert_eq!(run(), run());
    }
}
