//! How much memory is expected of a job, and how certain that is.

use proptest::prelude::*;

use super::*;

const GIB: u64 = 1 << 30;

fn configuration(batch: Option<u64>) -> Configuration {
    Configuration { model: "resnet-50".into(), batch, precision: String::new() }
}

/// Runs on a V100: batch sizes with the GiB that they held.
fn seen(runs: &[(u64, u64)]) -> Footprints {
    let mut seen = Footprints::default();
    for (batch, gibibytes) in runs {
        seen.note(&GpuKind::named("v100"), &configuration(Some(*batch)), Bytes(gibibytes * GIB));
    }
    seen
}

fn expected(seen: &Footprints, batch: u64) -> Option<Footprint> {
    let asked = configuration(Some(batch));
    seen.expect(&[GpuKind::named("V100")], &asked, &ModelFeatures::default())
}

/// GiB and certainty.
fn expected_gib(seen: &Footprints, batch: u64) -> Option<(f64, Certainty)> {
    let gibibytes = |bytes: Bytes| (bytes.0 as f64 / GIB as f64 * 1e3).round() / 1e3;
    expected(seen, batch).map(|it| (gibibytes(it.bytes), it.certainty))
}

#[test]
fn a_known_configuration_is_expected_to_hold_the_same_with_a_margin() {
    assert_eq!(expected_gib(&seen(&[(32, 10)]), 32), Some((10.5, Certainty::Known)));
    assert_eq!(expected_gib(&seen(&[(32, 2)]), 32), Some((2.25, Certainty::Known)), "at least 256 MiB");
    assert_eq!(expected(&seen(&[(32, 10)]), 32).unwrap().basis, "a run of resnet-50 (32)");
    let often = seen(&[(32, 10), (32, 8), (32, 9)]);
    assert_eq!(expected_gib(&often, 32), Some((10.5, Certainty::Known)), "the most that it ever held");
    assert_eq!(expected(&often, 32).unwrap().basis, "3 runs of resnet-50 (32)");
}

#[test]
fn two_batch_sizes_predict_others_on_a_line() {
    let two = seen(&[(16, 4), (32, 6)]);
    assert_eq!(expected_gib(&two, 48), Some((9.2, Certainty::Known)), "8 GiB and 15 %");
    assert_eq!(expected_gib(&two, 24), Some((5.75, Certainty::Known)));
    assert_eq!(expected_gib(&two, 31), Some((6.3, Certainty::Known)), "no more than the next larger one");
    assert_eq!(
        expected_gib(&two, 65),
        Some((11.644, Certainty::Guessed)),
        "far from everything that was seen"
    );
    assert_eq!(expected(&two, 48).unwrap().basis, "resnet-50 with 2 batches of 16 to 32");
}

#[test]
fn one_batch_size_predicts_smaller_ones_only() {
    let one = seen(&[(32, 10)]);
    assert_eq!(expected_gib(&one, 8), Some((10.5, Certainty::Known)));
    assert_eq!(
        expected(&one, 8).unwrap().basis,
        "resnet-50 with a batch of 32, which needs at least as much"
    );
    assert_eq!(expected_gib(&one, 33), None);
}

#[test]
fn a_falling_line_is_not_used() {
    let falling = seen(&[(16, 6), (32, 4)]);
    assert_eq!(expected_gib(&falling, 32), Some((6.3, Certainty::Known)), "no less than a smaller batch");
    assert_eq!(expected_gib(&falling, 64), Some((6.3, Certainty::Known)));
}

#[test]
fn a_job_must_be_known_on_every_gpu_that_it_may_get() {
    let mut both = seen(&[(32, 10)]);
    let [v100, h200] = ["v100", "h200"].map(GpuKind::named);
    let (asked, unheard) = (configuration(Some(32)), ModelFeatures::default());
    let expect = |seen: &Footprints| seen.expect(&[v100.clone(), h200.clone()], &asked, &unheard).unwrap();
    assert_eq!(expect(&both).certainty, Certainty::Guessed);
    both.note(&h200, &asked, Bytes(20 * GIB));
    assert_eq!((expect(&both).certainty, expect(&both).bytes), (Certainty::Known, Bytes(21 * GIB)));
}

#[test]
fn a_description_alone_is_a_guess() {
    let none = Footprints::default();
    let features =
        ModelFeatures { parameters: Some(1e9), activation_bytes: Some(4e9), ..ModelFeatures::default() };
    let guess = none.expect(&[GpuKind::named("v100")], &configuration(Some(32)), &features).unwrap();
    assert_eq!((guess.certainty, guess.bytes), (Certainty::Guessed, Bytes(23_723_517_440)));
    let parameters = ModelFeatures { activation_bytes: None, ..features };
    assert_eq!(none.expect(&[GpuKind::named("v100")], &configuration(Some(32)), &parameters), None);
}

#[test]
fn a_job_without_a_batch_size_is_known_after_three_runs() {
    let (v100, asked) = (GpuKind::named("v100"), configuration(None));
    let mut runs = Footprints::default();
    for (run, expected) in [(1, None), (2, None), (3, Some(Bytes(21 * GIB)))] {
        runs.note(&v100, &asked, Bytes(20 * GIB));
        let footprint = runs.expect(std::slice::from_ref(&v100), &asked, &ModelFeatures::default());
        assert_eq!(footprint.map(|it| it.bytes), expected, "run {run}");
    }
    assert_eq!(expected_gib(&runs, 32), None, "whatever their batches were");
}

#[test]
fn another_precision_is_another_footprint() {
    let half = Configuration { precision: "bf16".into(), ..configuration(Some(16)) };
    let mut runs = seen(&[(32, 10)]);
    runs.note(&GpuKind::named("v100"), &half, Bytes(3 * GIB));
    assert_eq!(expected_gib(&runs, 64), None, "a line takes two batches of one precision");
    assert_eq!(expected_gib(&runs, 16), Some((10.5, Certainty::Known)));
}

#[test]
fn a_run_without_a_name_is_ignored() {
    let mut none = Footprints::default();
    none.note(&GpuKind::named("v100"), &Configuration::default(), Bytes(GIB));
    assert_eq!(none, Footprints::default());
}

#[test]
fn the_configuration_not_seen_for_the_longest_time_is_dropped() {
    let mut many = seen(&[(1, 1)]);
    for batch in 0..MAX_CONFIGURATIONS as u64 {
        many.note(&GpuKind::named("k80"), &configuration(Some(batch)), Bytes(GIB));
    }
    assert_eq!(expected_gib(&many, 1), None);
    assert_eq!(many.runs.len(), MAX_CONFIGURATIONS);
}

proptest! {
    #[test]
    fn larger_batches_hold_no_less_and_the_order_of_runs_does_not_matter(
        runs in prop::collection::vec((1..64_u64, 1..20_u64), 2..8),
    ) {
        let turned: Vec<(u64, u64)> = runs.iter().rev().copied().collect();
        let (seen, turned) = (seen(&runs), seen(&turned));
        let of = |seen: &Footprints| -> Vec<Option<(f64, Certainty)>> {
            (1..140).map(|batch| expected_gib(seen, batch)).collect()
        };
        let all = of(&seen);
        prop_assert_eq!(&all, &of(&turned));
        let bytes: Vec<f64> = all.iter().flatten().map(|(bytes, _)| *bytes).collect();
        prop_assert!(bytes.is_sorted(), "{:?}", bytes);
        for (batch, held) in runs {
            let expected = expected(&seen, batch).unwrap();
            prop_assert!(expected.bytes >= Bytes(held * GIB) && expected.certainty == Certainty::Known);
        }
    }
}
