//! What `digits` promises, without processes or signals: it learns, and a resumed training is the same
//! training.

use std::path::Path;

use super::*;

fn options(epochs: u32, checkpoint_folder: Option<&Path>) -> DigitsOptions {
    let checkpoint_folder = checkpoint_folder.map(Path::to_owned);
    let run = RunOptions { seed: 1, threads: 1, checkpoint_folder, checkpoint_seconds: 30 };
    DigitsOptions { epochs, learning_rate: 0.002, hidden: 64, batch_size: 32, run }
}

fn trained(options: &DigitsOptions) -> Digits {
    let digits = Digits::new(options).unwrap();
    let ending = trainer::train(
        &digits,
        options.learning_rate,
        options.by_flag(),
        &options.run,
        &mut Job::unwatched(),
    );
    assert_eq!(ending.unwrap(), Ending::Finished);
    digits
}

/// All weights as bits, sorted by name.
fn bits(digits: &Digits) -> Vec<u32> {
    let values = |(_, variable): (&str, &candle_core::Var)| -> Vec<f32> {
        variable.flatten_all().unwrap().to_vec1().unwrap()
    };
    digits.parameters.iter().flat_map(values).map(f32::to_bits).collect()
}

#[test]
fn it_learns_to_read_more_than_95_of_100_digits() {
    let digits = trained(&options(15, None));
    let accuracy = digits.accuracy().unwrap();
    assert!(accuracy > 0.95, "{accuracy}");
    let loss: f32 = digits.loss(0).unwrap().to_scalar().unwrap();
    assert!(loss < 0.2, "{loss}");
}

#[test]
fn untrained_it_guesses() {
    let digits = Digits::new(&options(1, None)).unwrap();
    assert!(digits.accuracy().unwrap() < 0.4);
    let loss: f32 = digits.loss(0).unwrap().to_scalar().unwrap();
    assert!((2.0..3.5).contains(&loss), "{loss}");
}

#[test]
fn every_parameter_gets_a_gradient() {
    let digits = Digits::new(&options(1, None)).unwrap();
    let gradients = digits.loss(0).unwrap().backward().unwrap();
    for (name, variable) in digits.parameters.iter() {
        let gradient = gradients.get(variable).unwrap_or_else(|| panic!("{name} has none"));
        assert!(
            gradient.abs().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap() > 0.0,
            "{name} has zeros"
        );
    }
}

#[test]
fn an_epoch_goes_through_all_images_once_in_an_order_of_its_own() {
    let digits = Digits::new(&options(2, None)).unwrap();
    let steps = digits.steps_per_epoch();
    let count = |epoch: u64| -> usize {
        (0..steps).map(|step| digits.batch(epoch * steps + step).unwrap().count()).sum()
    };
    assert_eq!((count(0), count(1)), (digits.training.count(), digits.training.count()));
    let labels = |step| digits.batch(step).unwrap().labels.to_vec1::<u32>().unwrap();
    assert_ne!(labels(0), labels(steps));
}

#[test]
fn resumed_it_ends_with_the_same_bits_as_uninterrupted() {
    let folder = tempfile::tempdir().unwrap();
    trained(&options(2, Some(folder.path())));
    let resumed = trained(&options(4, Some(folder.path())));
    let uninterrupted = trained(&options(4, None));
    assert!(bits(&resumed) == bits(&uninterrupted));
    assert!(bits(&resumed) != bits(&trained(&options(3, None))));
}

#[test]
fn a_training_that_was_finished_is_not_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let first = trained(&options(2, Some(folder.path())));
    let again = trained(&options(2, Some(folder.path())));
    assert!(bits(&first) == bits(&again));
}
