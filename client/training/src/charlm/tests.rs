//! Tests of the network. Tests that it learns run the program, which sets the number of threads.

use super::*;

fn charlm() -> Charlm {
    let run = RunOptions {
        seed: 1,
        data_parallel: false,
        threads: 1,
        checkpoint_folder: None,
        checkpoint_seconds: 30,
    };
    let (sample_length, temperature) = (20, 0.7);
    let options = CharlmOptions {
        steps: 1,
        learning_rate: 0.01,
        hidden: 16,
        batch_size: 4,
        sample_length,
        temperature,
        run,
    };
    Charlm::new(&options).unwrap()
}

#[test]
fn every_parameter_gets_a_gradient() {
    let charlm = charlm();
    let gradients = charlm.loss(0, Shard::ALL).unwrap().backward().unwrap();
    for (name, variable) in charlm.parameters.iter() {
        let gradient = gradients.get(variable).unwrap_or_else(|| panic!("{name} has none"));
        assert!(
            gradient.abs().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap() > 0.0,
            "{name} has zeros"
        );
    }
}

/// Compares with a difference quotient, because the gates are hand-written.
#[test]
fn the_gradient_is_the_slope_of_the_loss() {
    let charlm = charlm();
    let (_, bias) = charlm.parameters.iter().find(|(name, _)| *name == "recurrent.bias").unwrap();
    let loss = |bump: f64| -> f64 {
        let before = bias.copy().unwrap();
        bias.set(&(&before + bump).unwrap()).unwrap();
        let loss = f64::from(charlm.loss(0, Shard::ALL).unwrap().to_scalar::<f32>().unwrap());
        bias.set(&before).unwrap();
        loss
    };
    let slope = (loss(0.01) - loss(-0.01)) / 0.02;
    let gradients = charlm.loss(0, Shard::ALL).unwrap().backward().unwrap();
    let gradient = gradients.get(bias).unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap();
    assert!((slope - f64::from(gradient)).abs() < 1e-3, "{slope} but {gradient}");
}

#[test]
fn the_untrained_network_guesses_uniformly() {
    let charlm = charlm();
    let most = f64::from(charlm.text.alphabet_size() as u32).ln();
    let loss = f64::from(charlm.test_loss().unwrap());
    assert!((loss - most).abs() < 0.3, "{loss} but {most}");
}

#[test]
fn a_sample_has_the_given_length_and_is_repeatable() {
    let charlm = charlm();
    let sample = charlm.sample(20, 0.7).unwrap();
    assert_eq!(sample.chars().count(), 20);
    assert_eq!(sample, charlm.sample(20, 0.7).unwrap());
}

#[test]
fn sampled_indices_follow_the_probabilities() {
    let odds = [0.25, 0.0, 0.75];
    assert_eq!([0.0, 0.2, 0.3, 0.99, 1.5].map(|point| sample_index(&odds, point)), [0, 0, 2, 2, 2]);
}
