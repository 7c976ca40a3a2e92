//! `digits` without processes or signals: it learns, and a resumed training is the same training.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::process_group::ProcessGroup;
use crate::process_group::tests::run_ranks;

/// The shard of a single rank.
const ALL: Shard = Shard::ALL;

fn options(epochs: u32, checkpoint_folder: Option<&Path>) -> DigitsOptions {
    let checkpoint_folder = checkpoint_folder.map(Path::to_owned);
    let run =
        RunOptions { seed: 1, data_parallel: false, threads: 1, checkpoint_folder, checkpoint_seconds: 30 };
    DigitsOptions {
        epochs,
        learning_rate: 0.002,
        hidden: 64,
        batch_size: 32,
        distort: None,
        loader_threads: 1,
        run,
    }
}

fn trained(options: &DigitsOptions) -> Digits {
    trained_by(options, ProcessGroup::alone())
}

fn trained_by(options: &DigitsOptions, group: ProcessGroup) -> Digits {
    let digits = Digits::new(options).unwrap();
    let plan = TrainingConfig {
        learning_rate: options.learning_rate,
        options: options.by_flag(),
        run: &options.run,
    };
    let ending = training_loop::train(&digits, plan, group, &mut JobContext::detached());
    assert_eq!(ending.unwrap(), TrainingEnd::Finished);
    digits
}

/// The results of all ranks of a group of this size.
fn trained_together(options: &DigitsOptions, ranks: u32) -> Vec<Digits> {
    run_ranks(ranks, |group| trained_by(options, group))
}

fn furthest_apart(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(left, right)| (left - right).abs()).fold(0.0, f32::max)
}

fn values(digits: &Digits) -> Vec<f32> {
    bits(digits).into_iter().map(f32::from_bits).collect()
}

/// All weights as bits, sorted by name.
fn bits(digits: &Digits) -> Vec<u32> {
    let values = |(_, variable): (&str, &candle_core::Var)| -> Vec<f32> {
        variable.flatten_all().unwrap().to_vec1().unwrap()
    };
    digits.model.parameters().iter().flat_map(values).map(f32::to_bits).collect()
}

#[test]
fn it_learns_to_recognize_95_percent_of_the_digits() {
    let digits = trained(&options(15, None));
    let accuracy = digits.model.accuracy().unwrap();
    assert!(accuracy > 0.95, "{accuracy}");
    let loss: f32 = digits.loss(0, ALL).unwrap().to_scalar().unwrap();
    assert!(loss < 0.2, "{loss}");
}

#[test]
fn the_untrained_network_guesses() {
    let digits = Digits::new(&options(1, None)).unwrap();
    assert!(digits.model.accuracy().unwrap() < 0.4);
    let loss: f32 = digits.loss(0, ALL).unwrap().to_scalar().unwrap();
    assert!((2.0..3.5).contains(&loss), "{loss}");
}

#[test]
fn every_parameter_gets_a_gradient() {
    let digits = Digits::new(&options(1, None)).unwrap();
    let gradients = digits.loss(0, ALL).unwrap().backward().unwrap();
    for (name, variable) in digits.model.parameters().iter() {
        let gradient = gradients.get(variable).unwrap_or_else(|| panic!("{name} has none"));
        assert!(
            gradient.abs().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap() > 0.0,
            "{name} has zeros"
        );
    }
}

#[test]
fn an_epoch_visits_all_images_once_in_a_new_order() {
    let digits = Digits::new(&options(2, None)).unwrap();
    let steps = digits.steps_per_epoch();
    let count = |epoch: u64| -> usize {
        (0..steps)
            .flat_map(|step| digits.model.batch(epoch * steps + step, 32))
            .collect::<BTreeSet<_>>()
            .len()
    };
    assert_eq!((count(0), count(1)), (digits.model.image_count(), digits.model.image_count()));
    assert_ne!(digits.model.batch(0, 32), digits.model.batch(steps, 32));
}

#[test]
fn a_resumed_training_ends_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    trained(&options(2, Some(folder.path())));
    let resumed = trained(&options(4, Some(folder.path())));
    let uninterrupted = trained(&options(4, None));
    assert!(bits(&resumed) == bits(&uninterrupted));
    assert!(bits(&resumed) != bits(&trained(&options(3, None))));
}

#[test]
fn a_finished_training_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let first = trained(&options(2, Some(folder.path())));
    let again = trained(&options(2, Some(folder.path())));
    assert!(bits(&first) == bits(&again));
}

#[test]
fn all_ranks_end_with_the_same_bits_and_nearly_those_of_a_single_rank() {
    let alone = values(&trained(&options(2, None)));
    for ranks in [2, 3] {
        let [first, others @ ..] = &trained_together(&options(2, None), ranks)[..] else { panic!("none") };
        assert!(others.iter().all(|other| bits(other) == bits(first)));
        let apart = furthest_apart(&values(first), &alone);
        assert!(apart < 1e-3, "with {ranks} ranks a weight is off by {apart}");
    }
}

#[test]
fn shards_of_a_step_add_up_to_its_loss() {
    let digits = Digits::new(&options(1, None)).unwrap();
    let last = digits.steps_per_epoch() - 1;
    for (step, ranks) in [(0, 2), (0, 3), (last, 64)] {
        let part = |rank| -> f32 { digits.loss(step, Shard { rank, ranks }).unwrap().to_scalar().unwrap() };
        let whole: f32 = digits.loss(step, ALL).unwrap().to_scalar().unwrap();
        let sum: f32 = (0..ranks).map(part).sum();
        assert!((sum - whole).abs() < 1e-4, "{sum} and {whole}");
    }
}

#[test]
fn distorted_images_are_the_same_after_a_resume_and_in_shards() {
    let folder = tempfile::tempdir().unwrap();
    let distorted = |epochs, threads, folder: Option<&Path>| DigitsOptions {
        distort: Some(2),
        loader_threads: threads,
        ..options(epochs, folder)
    };
    trained(&distorted(1, 1, Some(folder.path())));
    let resumed = trained(&distorted(2, 3, Some(folder.path())));
    assert!(bits(&resumed) == bits(&trained(&distorted(2, 2, None))));
    assert!(bits(&resumed) != bits(&trained(&options(2, None))));
    let part = |rank, ranks| -> f32 { resumed.loss(7, Shard { rank, ranks }).unwrap().to_scalar().unwrap() };
    let (sum, whole) = (part(0, 2) + part(1, 2), part(0, 1));
    assert!((sum - whole).abs() < 1e-4, "{sum} and {whole}");
}

#[test]
fn a_group_resumes_from_the_checkpoint_of_a_single_rank() {
    let folder = tempfile::tempdir().unwrap();
    trained(&options(2, Some(folder.path())));
    // Only the first rank reads the directory; it sends the state to the other.
    let resumed = trained_together(&options(4, Some(folder.path())), 2);
    let uninterrupted = values(&trained(&options(4, None)));
    let apart = furthest_apart(&values(&resumed[1]), &uninterrupted);
    assert!(apart < 1e-3, "a weight is off by {apart}");
    assert!(bits(&resumed[0]) == bits(&resumed[1]));
}
