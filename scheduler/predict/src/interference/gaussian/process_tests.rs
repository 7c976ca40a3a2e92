//! Predictions against the equations that were solved.

use cohabit_policy::interference::{ColocationSet, GpuKind, SetMember, SoloMetrics};

use super::*;
use crate::interference::gaussian::prior::WITH_PAIRS;
use crate::interference::gaussian::questions::Questions;

fn set(gpu: &str, jobs: &[u32]) -> ColocationSet {
    let member = |job: &u32| SetMember {
        model: format!("model-{}", job / 3),
        batch: Some(8 << (job % 3)),
        solo: SoloMetrics { utilization: Some(0.1 * f64::from(*job)), ..SoloMetrics::default() },
        ..SetMember::default()
    };
    let members = jobs.iter().map(member).collect();
    ColocationSet { gpu: GpuKind::named(gpu), sharing: None, members }
}

/// With exact observations, a prediction at one of them is its target less noise times its weight: that is
/// its row of the equations.
#[test]
fn predictions_at_observations_solve_the_equations() {
    let sets = [
        set("v100", &[1, 2]),
        set("v100", &[1, 8]),
        set("k80", &[1, 2]),
        set("k80", &[4, 4, 7]),
        set("v100", &[2, 5, 8, 1]),
    ];
    let mut observations = Observations::default();
    let rows: Vec<(&ColocationSet, usize)> =
        sets.iter().flat_map(|set| (0..set.members.len()).map(move |member| (set, member))).collect();
    for (at, (set, member)) in rows.iter().enumerate() {
        observations.add(set, *member, 0.1 * at as f64, Censoring::Exact);
    }
    let process = observations.learn(WITH_PAIRS);
    let mut questions = Questions::new(&process);
    for (at, (set, member)) in rows.into_iter().enumerate() {
        let expected = 0.1 * at as f64 - process.prior.noise * process.factors[at];
        let asked = questions.ask(set);
        let predicted = questions.predict(&asked, member).mean;
        assert!((predicted - expected).abs() < 1e-9, "{predicted} instead of {expected}");
    }
}

#[test]
fn questions_have_the_same_answers_alone_and_together() {
    let sets = [set("v100", &[1, 2]), set("v100", &[3, 8, 1]), set("k80", &[1, 2])];
    let mut observations = Observations::default();
    observations.add(&sets[0], 0, 0.3, Censoring::Exact);
    observations.add(&sets[2], 1, 0.1, Censoring::AtMost);
    let process = observations.learn(WITH_PAIRS);
    let mut together = Questions::new(&process);
    for (set, member) in sets.iter().flat_map(|set| (0..set.members.len()).map(move |at| (set, at))) {
        let asked = together.ask(set);
        let mut alone = Questions::new(&process);
        let asked_alone = alone.ask(set);
        assert_eq!(together.predict(&asked, member), alone.predict(&asked_alone, member));
    }
}
