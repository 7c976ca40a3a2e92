//! Estimates of submission are believed as far as earlier ones came true.

use cohabit_types::{Span, Time};
use proptest::prelude::*;

use super::kit::{job, named, nodes, of, policy, seconds};
use crate::gittins::beliefs::{Beliefs, Evidence};
use crate::gittins::bins::{self, BINS};
use crate::gittins::contexts::{JobContexts, JobKind};
use crate::gittins::counts::BinCounts;
use crate::gittins::estimates::{EstimateOrigin, EstimatedWork};
use crate::gittins::hazards::Hazards;
use crate::tests::cluster::{TestJob, run};
use crate::tests::kit::gpus;

/// The contexts of a job that shares only those of all jobs and of its number of devices with others.
fn join(beliefs: &mut Beliefs, user: &str) -> JobContexts {
    let (user, group) = (user.to_owned(), "train".to_owned());
    let kind = JobKind { user, group, model: None, batch_size: None, milli: 1_000 };
    beliefs.join(kind, Time::EPOCH)
}

fn stated(seconds: u64) -> EstimatedWork {
    EstimatedWork::new(Span::from_secs(seconds), EstimateOrigin::User)
}

fn learned(seconds: u64) -> EstimatedWork {
    EstimatedWork::new(Span::from_secs(seconds), EstimateOrigin::Estimator)
}

fn trust(beliefs: &Beliefs, job: &JobContexts, estimate: EstimatedWork) -> Option<f64> {
    let Evidence::Estimate(_, trust) = beliefs.evidence(job, Some(estimate)) else { return None };
    Some(trust)
}

/// By hand: each of nine contexts takes a third of the wider one's trust and two thirds of its own record.
#[test]
fn trust_follows_from_the_records_of_all_contexts() {
    let mut beliefs = Beliefs::default();
    let (ada, bob) = (join(&mut beliefs, "ada"), join(&mut beliefs, "bob"));
    assert_eq!(trust(&beliefs, &ada, stated(100)), Some(0.5));
    assert_eq!(trust(&beliefs, &ada, learned(100)), None, "an estimator must have shown what it knows");
    beliefs.judge(&ada, stated(100), 110.0);
    // One true estimate leaves a doubt of 0.5 * (2/3)^9 about the same batch, of 0.5 * (2/3)^2 about others.
    let close = |trust: Option<f64>, expected: f64| (trust.unwrap() - expected).abs() < 1e-6;
    assert!(close(trust(&beliefs, &ada, stated(100)), 0.986_994));
    assert!(close(trust(&beliefs, &bob, stated(100)), 0.777_778));
    assert_eq!(trust(&beliefs, &ada, learned(100)), None, "the user's word says nothing of the estimator");
    beliefs.judge(&bob, stated(100), 160.0);
    assert_eq!(trust(&beliefs, &bob, stated(100)), None);
    assert!(trust(&beliefs, &ada, stated(100)).unwrap() > 0.9, "one user's lie is not another's");
}

#[test]
fn an_estimate_comes_true_within_half_as_much_again() {
    let untrue = [66.0, 151.0, 0.0, f64::INFINITY];
    assert!([67.0, 100.0, 150.0].iter().all(|worked| stated(100).comes_true(*worked)));
    assert!(untrue.iter().all(|worked| !stated(100).comes_true(*worked)));
}

proptest! {
    /// The mixture of both distributions, by their probabilities to work longer than each bin.
    #[test]
    fn hazards_with_an_estimate_mix_the_estimate_and_what_is_known_without_it(
        ends in prop::collection::vec(0..BINS, 0..20), seconds in 2_u64..1_000_000, trust in 0.5..1.0,
    ) {
        let mut counts = BinCounts::default();
        for end in ends {
            (0..end).for_each(|bin| counts.pass(bin));
            counts.end(end);
        }
        let known = Hazards::of([&counts].into_iter());
        let believed = known.believing(seconds as f64, trust);
        let (mut without, mut with) = (1.0, 1.0);
        for bin in 0..BINS {
            without *= 1.0 - known.0[bin];
            with *= 1.0 - believed.0[bin];
            let end = bins::start_of(bin + 1);
            let log_part = (1.5 * seconds as f64 / end).ln() / 2.25_f64.ln();
            let expected = trust * log_part.clamp(0.0, 1.0) + (1.0 - trust) * without;
            prop_assert!((with - expected).abs() < 1e-9, "bin {bin}: {with} instead of {expected}");
        }
        let rest = believed.rest(0.0, f64::INFINITY);
        prop_assert!(rest.gittins.is_finite() && rest.typical > 0.0);
    }
}

/// A job of this user that states iterations of a second each, and truly has `length` of them.
fn states(number: u64, user: &str, arrives: f64, stated: u64, length: u64) -> TestJob {
    let mut it = named(job(number, arrives, gpus(1), length), "train").expected(stated);
    std::sync::Arc::make_mut(&mut it.pending.traits).user = user.to_owned();
    it
}

#[test]
fn a_user_who_states_the_truth_goes_by_it_and_one_who_lies_does_not() {
    // Both say that the first of their jobs takes 600 s, and then that a waiting one takes 100 s.
    let second_of = |first_takes: u64| {
        let jobs = vec![
            states(1, "ada", 0.0, 600, first_takes),
            job(2, 10_000.0, gpus(1), 5_000),
            states(3, "bob", 10_001.0, 100_000, 100_000),
            states(4, "ada", 10_002.0, 100, 100),
            job(5, 10_003.0, gpus(1), 50),
        ];
        let ran = run(policy("a-srpt:lane=0").as_mut(), nodes(1, 1), jobs);
        (seconds(of(&ran, 4).started_at), seconds(of(&ran, 5).started_at))
    };
    let (truth, other) = second_of(600);
    assert!(truth < other, "the stated 100 s go first: {truth} s and {other} s");
    let (lie, other) = second_of(6_000);
    assert!(lie > other, "nothing is stated of the other, and what is stated is not believed");
}

#[test]
fn a_lie_is_found_while_the_first_job_still_runs() {
    // Four jobs that state a minute and take hours; on the second GPU an honest one of an hour waits behind.
    let mut jobs: Vec<TestJob> = (1..=6).map(|number| states(number, "eve", 0.0, 60, 20_000)).collect();
    jobs.push(states(7, "bob", 1_000.0, 3_600, 3_600));
    jobs.push(job(8, 0.5, gpus(1), 2_000));
    let ran = run(policy("a-srpt:lane=0").as_mut(), nodes(1, 2), jobs);
    let started = |number| seconds(of(&ran, number).started_at);
    let liars: Vec<f64> = (1..=6).map(started).collect();
    assert_eq!(liars.iter().filter(|at| **at < 1_000.0).count(), 2, "{liars:?}");
    assert!(liars.iter().filter(|at| **at > started(7)).count() >= 4, "{liars:?}, honest: {}", started(7));
}
