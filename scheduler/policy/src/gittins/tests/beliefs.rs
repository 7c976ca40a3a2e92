//! The goldens of the belief, its bounds, and that news of siblings points the right way.

use cohabit_types::{Span, Time};
use proptest::prelude::*;

use crate::gittins::beliefs::Beliefs;
use crate::gittins::bins::{self, BINS};
use crate::gittins::contexts::{JobContexts, JobKind};
use crate::gittins::counts::BinCounts;
use crate::gittins::hazards::Hazards;

const NO_LIMIT: f64 = f64::INFINITY;

fn kind(user: &str, milli: u64) -> JobKind {
    JobKind { user: user.into(), group: "train".into(), model: None, batch_size: None, milli }
}

fn at(seconds: u64) -> Time {
    Time::EPOCH + Span::from_secs(seconds)
}

/// Within half a unit of the last digit.
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 0.000_6, "{found} instead of {expected}");
}

#[test]
fn rests_without_any_count_are_those_of_the_prior() {
    let mut beliefs = Beliefs::default();
    let job = beliefs.join(kind("ada", 1_000), at(0));
    close(beliefs.rest(&job, None, 0.0, NO_LIMIT).gittins, 104.016);
    close(beliefs.rest(&job, None, 0.0, NO_LIMIT).typical, 114.087);
    close(beliefs.rest(&job, None, 1_000.0, NO_LIMIT).gittins, 1_723.945);
}

/// The worked example shares six contexts with its sibling.
#[test]
fn one_sibling_raises_the_rest_while_it_runs_and_lowers_it_when_it_ends() {
    let hazards = |counts: &BinCounts| Hazards::of([counts; 6].into_iter());
    let mut counts = BinCounts::default();
    let passed = bins::containing(911.0);
    (0..passed).for_each(|bin| counts.pass(bin));
    close(hazards(&counts).rest(0.0, NO_LIMIT).gittins, 1_272.717);
    close(hazards(&counts).rest(0.0, NO_LIMIT).typical, 2_768.106);
    counts.end(passed);
    close(hazards(&counts).rest(0.0, NO_LIMIT).gittins, 915.029);
    close(hazards(&counts).rest(0.0, NO_LIMIT).typical, 791.382);
    let hazard = hazards(&counts).0[9];
    assert!((hazard - 0.929_767).abs() < 5e-7, "{hazard}");
}

#[test]
fn a_time_limit_bounds_the_rest() {
    let mut beliefs = Beliefs::default();
    let job = beliefs.join(kind("ada", 1_000), at(0));
    let rest = beliefs.rest(&job, None, 100.0, 110.0);
    assert!(rest.gittins <= 10.0 && rest.typical <= 10.0, "{rest:?}");
    assert!(beliefs.rest(&job, None, 200.0, 110.0).typical <= 1.0, "beyond its limit it ends at once");
}

#[test]
fn sessions_and_batches_follow_the_gaps_between_submissions() {
    let mut beliefs = Beliefs::default();
    let mut join = |seconds| beliefs.join(kind("ada", 1_000), at(seconds));
    let (first, same_batch, same_session, next_session) = (join(0), join(30), join(1_000), join(3_000));
    assert_eq!(first.batch(), same_batch.batch());
    assert_ne!(first.batch(), same_session.batch());
    assert_eq!(first.session(), same_session.session());
    assert_ne!(same_session.session(), next_session.session());
    assert_eq!(first.kind(), next_session.kind());
    let other = beliefs.join(kind("bob", 1_000), at(0));
    assert_ne!(first.kind(), other.kind());
}

#[test]
fn jobs_of_one_group_share_sessions_whatever_they_train() {
    let mut beliefs = Beliefs::default();
    let mut join = |model: &str, seconds| {
        let kind = JobKind { model: Some(model.into()), ..kind("ada", 1_000) };
        beliefs.join(kind, at(seconds))
    };
    let (resnet, bert, later_bert) = (join("resnet", 0), join("bert", 1), join("bert", 9_000));
    assert_eq!(resnet.session(), bert.session());
    assert_ne!(resnet.kind(), bert.kind());
    assert_ne!(resnet.batch(), bert.batch(), "their ranks differ");
    assert_eq!((later_bert.group(), later_bert.kind()), (bert.group(), bert.kind()));
    assert_ne!(later_bert.session(), bert.session());
}

/// What may be counted of one of a few jobs.
#[derive(Debug, Clone, Copy)]
enum Step {
    Pass(usize, usize),
    End(usize, f64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0_usize..6, 0..BINS).prop_map(|(job, bin)| Step::Pass(job, bin)),
        (0_usize..6, 0.0_f64..1e6).prop_map(|(job, worked)| Step::End(job, worked)),
    ];
    prop::collection::vec(step, 0..60)
}

fn some_jobs(beliefs: &mut Beliefs) -> Vec<JobContexts> {
    let submitted =
        [("ada", 1, 0), ("ada", 1, 10), ("ada", 1, 900), ("ada", 2, 0), ("bob", 1, 0), ("bob", 8, 9)];
    submitted.iter().map(|(user, gpus, when)| beliefs.join(kind(user, gpus * 1_000), at(*when))).collect()
}

/// The hazards by their definition, from the list of all that was counted.
fn naive_hazards(counted: &[(JobContexts, usize, bool)], job: &JobContexts) -> [f64; BINS] {
    std::array::from_fn(|bin| {
        job.0.iter().enumerate().fold(0.2, |above, (depth, context)| {
            let (mut reached, mut ended) = (0.0, 0.0);
            for (_, _, ends) in
                counted.iter().filter(|(other, at, _)| other.0[depth] == *context && *at == bin)
            {
                reached = 0.95 * reached + 1.0;
                ended = 0.95 * ended + f64::from(u8::from(*ends));
            }
            (ended + 2.0 * above) / (reached + 2.0)
        })
    })
}

proptest! {
    #[test]
    fn counts_stay_bounded_and_hazards_are_those_of_a_naive_recount(steps in steps()) {
        let mut beliefs = Beliefs::default();
        let jobs = some_jobs(&mut beliefs);
        let mut counted = Vec::new();
        for step in steps {
            match step {
                Step::Pass(job, bin) => {
                    beliefs.pass(&jobs[job], bin);
                    counted.push((jobs[job], bin, false));
                }
                Step::End(job, worked) => {
                    let bin = bins::containing(worked);
                    beliefs.end(&jobs[job], bin, worked);
                    counted.push((jobs[job], bin, true));
                }
            }
        }
        for job in &jobs {
            for counts in beliefs.counts(job) {
                for bin in 0..BINS {
                    let (reached, ended) = counts.at(bin);
                    prop_assert!(0.0 <= ended && ended <= reached && reached <= 20.0);
                }
            }
            let hazards = beliefs.hazards(job).0;
            for (hazard, naive) in hazards.iter().zip(naive_hazards(&counted, job)) {
                prop_assert!(0.0 < *hazard && *hazard < 1.0);
                prop_assert!((hazard - naive).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_sibling_that_passes_a_bin_never_lowers_the_rest_of_those_that_wait(
        steps in steps(), bin in 0..BINS,
    ) {
        let mut beliefs = Beliefs::default();
        let jobs = some_jobs(&mut beliefs);
        for step in steps {
            match step {
                Step::Pass(job, bin) => beliefs.pass(&jobs[job], bin),
                Step::End(job, worked) => beliefs.end(&jobs[job], 0, worked),
            }
        }
        let (hazards, rest) = (beliefs.hazards(&jobs[1]), beliefs.rest(&jobs[1], None, 0.0, NO_LIMIT));
        let mut ended = beliefs.clone();
        beliefs.pass(&jobs[0], bin);
        let after = beliefs.rest(&jobs[1], None, 0.0, NO_LIMIT);
        prop_assert!(beliefs.hazards(&jobs[1]).0.iter().zip(hazards.0).all(|(new, old)| *new <= old + 1e-12));
        prop_assert!(after.gittins >= rest.gittins * (1.0 - 1e-9));
        prop_assert!(after.typical >= rest.typical * (1.0 - 1e-9));
        ended.end(&jobs[0], 0, 0.0);
        let after = ended.rest(&jobs[1], None, 0.0, NO_LIMIT);
        prop_assert!(after.typical <= rest.typical * (1.0 + 1e-9));
    }
}
