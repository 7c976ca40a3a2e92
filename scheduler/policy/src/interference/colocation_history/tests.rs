//! What is learned from samples.

use cohabit_types::Span;

use super::*;

fn member(model: &str) -> SetMember {
    SetMember { model: model.to_owned(), batch: Some(32), ..SetMember::default() }
}

/// A minute of a member with neighbors on a V100 under MPS, which ends at minute `until`.
fn minute(until: u64, rate: f64, model: &str, neighbors: &[&str]) -> ObservedSample {
    ObservedSample {
        gpu: GpuKind::named("v100"),
        sharing: SharingStrategy::Mps,
        member: member(model),
        neighbors: neighbors.iter().map(|model| member(model)).collect(),
        until: Time::EPOCH + Span::from_secs(60 * until),
        length: Span::from_secs(60),
        steps: 600,
        rate,
        memory: Some(4e9),
        utilization: Some(0.5),
    }
}

fn experience(sample: &[ObservedSample]) -> ColocationHistory {
    let mut all = ColocationHistory::default();
    sample.iter().for_each(|it| all.note(it));
    all
}

/// `a` runs at 10 steps per second alone and at 8 beside `b`, which runs at 6 and at 3.
fn pair() -> Vec<ObservedSample> {
    vec![
        minute(1, 10.0, "a", &[]),
        minute(2, 6.0, "b", &[]),
        minute(3, 8.0, "a", &["b"]),
        minute(4, 3.0, "b", &["a"]),
    ]
}

fn slowdowns(set: &ObservedSet) -> Vec<f64> {
    let SetOutcome::Ran(observed) = &set.measured.outcome else { panic!("{set:?}") };
    observed.iter().map(|it| (it.slowdown * 1e6).round() / 1e6).collect()
}

#[test]
fn a_pair_is_known_once_both_were_seen_together_and_alone() {
    let sample = pair();
    for missing in 0..sample.len() {
        let others: Vec<ObservedSample> =
            sample.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, it)| it.clone()).collect();
        assert_eq!(experience(&others).sets(), [], "without stretch {missing}");
    }
    let sets = experience(&sample).sets();
    let [set] = &sets[..] else { panic!("{sets:?}") };
    assert_eq!(slowdowns(set), [1.25, 2.0]);
    assert_eq!(set.measured.set.sharing, Some(SharingStrategy::Mps));
    let solos = set.measured.set.members.iter().map(|it| it.solo.rate.unwrap().round());
    assert_eq!(solos.collect::<Vec<_>>(), [10.0, 6.0]);
    assert_eq!(set.last, Time::EPOCH + Span::from_secs(240));
}

#[test]
fn measurements_alone_may_come_from_another_way_of_sharing() {
    let mut sample = pair();
    for alone in &mut sample[..2] {
        alone.sharing = SharingStrategy::Exclusive;
    }
    assert_eq!(slowdowns(&experience(&sample).sets()[0]), [1.25, 2.0]);
    let closer = minute(5, 16.0, "a", &[]);
    assert_eq!(slowdowns(&experience(&[sample, vec![closer]].concat()).sets()[0]), [2.0, 2.0]);
}

#[test]
fn uninformative_samples_are_ignored() {
    let valid = minute(1, 10.0, "a", &[]);
    let nothing = [
        ObservedSample { steps: 4, ..valid.clone() },
        ObservedSample { length: Span::from_millis(1_999), ..valid.clone() },
        ObservedSample { rate: f64::NAN, ..valid.clone() },
        ObservedSample { rate: 0.0, ..valid.clone() },
        minute(1, 10.0, "", &[]),
        minute(1, 10.0, "a", &["b", ""]),
    ];
    assert_eq!(experience(&nothing), ColocationHistory::default());
    assert_ne!(experience(&[valid]), ColocationHistory::default());
}

#[test]
fn members_of_one_configuration_are_the_same_and_a_speedup_is_no_slowdown() {
    let sample = [
        minute(1, 10.0, "a", &[]),
        minute(2, 8.0, "a", &["a"]),
        minute(2, 8.0, "a", &["a"]),
        minute(3, 6.0, "b", &[]),
        minute(4, 7.0, "b", &["c"]),
        minute(4, 9.0, "c", &["b"]),
        minute(5, 9.0, "c", &[]),
    ];
    let sets = experience(&sample).sets();
    assert_eq!(sets.iter().map(slowdowns).collect::<Vec<_>>(), [[1.25; 2], [1.0, 1.0]]);
}

#[test]
fn frequent_and_steady_samples_are_more_certain() {
    let even = |minutes| {
        let minutes = (0..minutes).flat_map(|_| pair()).collect::<Vec<_>>();
        experience(&minutes).sets()[0].uncertainty[0]
    };
    let (once, often) = (even(1), even(60));
    assert!((0.10..0.13).contains(&once), "{once}");
    assert_eq!(often, 0.03);
    let uneven = (0..60).flat_map(|at| {
        let slower = minute(at, if at % 2 == 0 { 4.0 } else { 8.0 }, "a", &["b"]);
        pair().into_iter().take(2).chain([slower, minute(at, 3.0, "b", &["a"])])
    });
    let uneven = experience(&uneven.collect::<Vec<_>>()).sets()[0].uncertainty.clone();
    assert!((0.33..0.36).contains(&uneven[0]) && uneven[1] == 0.03, "{uneven:?}");
}

#[test]
fn a_program_that_was_changed_is_noticed() {
    let mut all = experience(&(0..600).map(|at| minute(at, 10.0, "a", &[])).collect::<Vec<_>>());
    let rate = |all: &ColocationHistory| {
        let table = all.solos(&SoloMetricsTable::default());
        table.find(&GpuKind::named("v100"), &member("a").configuration()).unwrap().1.rate.unwrap()
    };
    assert_eq!(rate(&all).round(), 10.0);
    (600..720).for_each(|at| all.note(&minute(at, 40.0, "a", &[])));
    assert!((36.0..40.0).contains(&rate(&all)), "after two hours: {}", rate(&all));
}

#[test]
fn a_sample_counts_the_same_in_one_piece_as_in_many() {
    let before = minute(0, 20.0, "a", &[]);
    let whole = ObservedSample { length: Span::from_secs(3_600), ..minute(60, 10.0, "a", &[]) };
    let pieces = (1..=60).map(|at| minute(at, 10.0, "a", &[]));
    let [whole, pieces] = [vec![whole], pieces.collect::<Vec<_>>()].map(|sample| {
        let table = experience(&[vec![before.clone()], sample].concat()).solos(&SoloMetricsTable::default());
        table.find(&GpuKind::named("v100"), &member("a").configuration()).unwrap().1.rate.unwrap()
    });
    assert!((whole - pieces).abs() < 1e-9 && whole > 10.0, "{whole} {pieces}");
}

#[test]
fn observations_win_over_measurements_from_elsewhere() {
    let v100 = GpuKind::named("v100");
    let measured = |rate| SoloMetrics {
        rate: Some(rate),
        memory: Some(1e9),
        others: BTreeMap::from([("smact".to_owned(), 0.7)]),
        ..SoloMetrics::default()
    };
    let mut beside = SoloMetricsTable::default();
    for (model, rate) in [("a", 99.0), ("z", 7.0)] {
        beside.insert(v100.clone(), member(model).configuration(), measured(rate));
    }
    let table = experience(&pair()).solos(&beside);
    let solo = |model| table.find(&v100, &member(model).configuration()).unwrap().1.clone();
    let own = solo("a");
    assert_eq!((own.rate.unwrap().round(), own.memory, own.utilization), (10.0, Some(4e9), Some(0.5)));
    assert_eq!(own.others["smact"], 0.7, "what no stretch tells");
    assert_eq!(solo("z"), measured(7.0));
    assert_eq!(solo("b").rate.unwrap().round(), 6.0);
}

#[test]
fn the_oldest_sets_are_dropped_and_single_configurations_stay() {
    let mut all = experience(&pair());
    for number in 0..MAX_TRACKED_SETS as u64 {
        all.note(&minute(10 + number, 1.0, "a", &[&format!("other {number}")]));
    }
    assert_eq!(all.sets.len(), MAX_TRACKED_SETS);
    assert_eq!(all.sets(), [], "nothing is known of the others, and the pair has left");
    pair()[2..].iter().for_each(|it| all.note(&ObservedSample { until: Time::NEVER, ..it.clone() }));
    assert_eq!(all.sets().len(), 1, "each was still known alone");
}

/// A member finds no memory left beside these neighbors, at the end of this minute.
fn misfit(until: u64, model: &str, neighbors: &[&str]) -> ObservedMisfit {
    let ObservedSample { gpu, sharing, member, neighbors, until, .. } = minute(until, 1.0, model, neighbors);
    ObservedMisfit { gpu, sharing, member, neighbors, at: until }
}

/// Whether the only set of the history did not fit.
fn did_not_fit(all: &ColocationHistory) -> bool {
    let sets = all.sets();
    let [set] = &sets[..] else { panic!("{sets:?}") };
    set.measured.outcome == SetOutcome::DidNotFit
}

#[test]
fn a_set_that_did_not_fit_is_known_without_any_rate() {
    let mut all = ColocationHistory::default();
    all.note_misfit(&misfit(1, "b", &["a"]));
    let [set] = &all.sets()[..] else { panic!("{all:?}") };
    let models: Vec<&str> = set.measured.set.members.iter().map(|it| it.model.as_str()).collect();
    assert_eq!((models, &set.measured.outcome), (vec!["a", "b"], &SetOutcome::DidNotFit));
    assert_eq!(
        (set.measured.set.sharing, set.last),
        (Some(SharingStrategy::Mps), minute(1, 1.0, "a", &[]).until)
    );
    all.note_misfit(&misfit(2, "b", &[""]));
    assert_eq!(all.sets().len(), 1, "a job without a name is no set");
}

#[test]
fn a_misfit_counts_until_the_job_that_failed_ran_in_the_set_again() {
    let mut all = experience(&pair());
    assert!(!did_not_fit(&all));
    all.note_misfit(&misfit(5, "b", &["a"]));
    assert!(did_not_fit(&all), "it ran before");
    all.note(&minute(5, 8.0, "a", &["b"]));
    all.note(&minute(4, 3.0, "b", &["a"]));
    assert!(did_not_fit(&all), "samples of that attempt, of either job, come later");
    all.note(&minute(6, 3.0, "b", &["a"]));
    assert_eq!(slowdowns(&all.sets()[0]), [1.25, 2.0], "it fits after all");
    all.note_misfit(&misfit(5, "b", &["a"]));
    assert!(!did_not_fit(&all), "a misfit that is told again is the same one");
    all.note_misfit(&misfit(7, "a", &["b"]));
    assert!(did_not_fit(&all));
}

#[test]
fn a_job_that_fails_alone_says_nothing_about_its_neighbors() {
    let mut all = experience(&pair());
    all.note_misfit(&misfit(5, "b", &["a"]));
    let alone = ObservedMisfit { sharing: SharingStrategy::Exclusive, ..misfit(6, "b", &[]) };
    all.note_misfit(&alone);
    assert!(!did_not_fit(&all), "what it needs is too much for the whole GPU");
    all.note_misfit(&misfit(7, "a", &["b"]));
    assert!(did_not_fit(&all), "the other one does not fail alone");
    let mut all = experience(&pair());
    all.note_misfit(&misfit(5, "b", &["a"]));
    all.note_misfit(&alone);
    all.note(&ObservedSample { sharing: SharingStrategy::Exclusive, ..minute(8, 6.0, "b", &[]) });
    assert!(did_not_fit(&all), "the program was mended");
}

#[test]
fn misfits_of_many_sets_are_bounded_too() {
    let mut all = ColocationHistory::default();
    for number in 0..MAX_TRACKED_SETS as u64 + 10 {
        all.note_misfit(&misfit(number, "a", &[&format!("other {number}")]));
    }
    assert_eq!(all.sets().len(), MAX_TRACKED_SETS);
}
