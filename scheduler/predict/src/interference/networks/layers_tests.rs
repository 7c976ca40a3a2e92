//! Layers compared with worked examples, and their gradients with central differences.

use candle_core::{DType, Device, Tensor};

use super::*;
use crate::networks::gradients_agree;

const PRECISION: DType = DType::F64;

fn tensor(rows: &[&[f64]]) -> Tensor {
    let all: Vec<f64> = rows.concat();
    Tensor::from_vec(all, (rows.len(), rows[0].len()), &Device::Cpu).unwrap()
}

fn members() -> Tensor {
    tensor(&[&[1.0, 2.0], &[-1.0, 1.0], &[0.5, -2.0]])
}

fn graph() -> (Tensor, Tensor) {
    let edges = tensor(&[&[0.0, 1.2, 1.6], &[1.1, 0.0, 1.3], &[1.9, 1.4, 0.0]]);
    let partner_mask = tensor(&[&[0.0, 1.0, 1.0], &[1.0, 0.0, 1.0], &[1.0, 1.0, 0.0]]);
    (edges.unsqueeze(0).unwrap(), partner_mask.unsqueeze(0).unwrap())
}

/// The head of the worked example.
fn head() -> AttentionHead {
    AttentionHead {
        weight: Affine { weight: Tensor::eye(2, PRECISION, &Device::Cpu).unwrap(), bias: None },
        source: tensor(&[&[0.5], &[-0.25]]),
        destination: tensor(&[&[0.1], &[0.3]]),
        edge_gain: tensor(&[&[0.8]]),
        sharpness: tensor(&[&[1.5]]),
    }
}

fn affine(weight: &[&[f64]], bias: &[f64]) -> Affine {
    let bias = Tensor::new(bias, &Device::Cpu).unwrap();
    Affine { weight: tensor(weight).t().unwrap().contiguous().unwrap(), bias: Some(bias) }
}

fn gate() -> Gate {
    Gate {
        reset: affine(&[&[0.1, 0.2, 0.3, 0.4], &[0.4, 0.3, 0.2, 0.1]], &[0.0, 0.1]),
        update: affine(&[&[-0.1, 0.2, -0.3, 0.4], &[0.4, -0.3, 0.2, -0.1]], &[0.05, -0.05]),
        candidate: affine(&[&[0.2, 0.0, 0.1, 0.0], &[0.0, 0.2, 0.0, 0.1]], &[0.0, 0.0]),
    }
}

#[track_caller]
fn same(is: &Tensor, should: &[f64]) {
    let is: Vec<f64> = is.flatten_all().unwrap().to_vec1().unwrap();
    let close = is.iter().zip(should).all(|(is, should)| (is - should).abs() < 1e-6);
    assert!(close && is.len() == should.len(), "{is:?} instead of {should:?}");
}

/// The output of the head, after the rectifier that follows it.
const HEARD: [f64; 6] = [0.381293, 0.217414, 0.69236, 0.757135, 0.521202, 1.525943];

#[test]
fn a_head_attends_as_in_the_worked_example() {
    let (edges, partner_mask) = graph();
    let attended = head().forward(&members(), &edges, &partner_mask).unwrap();
    same(&attended.attention, &[0.0, 0.232759, 0.767241, 0.38472, 0.0, 0.61528, 0.525943, 0.474057, 0.0]);
    same(&attended.attended_mean().unwrap(), &HEARD);
}

#[test]
fn the_gate_mixes_as_in_the_worked_example() {
    let output = leaky_relu(&Tensor::new(&HEARD, &Device::Cpu).unwrap().reshape((3, 2)).unwrap(), SLOPE);
    let mixed = gate().forward(&output.unwrap(), &members()).unwrap();
    same(&mixed, &[0.460949, 1.071022, -0.247193, 0.664091, 0.371103, -0.913947]);
}

#[test]
fn a_member_without_partners_gets_nothing() {
    let (edges, no_partners) = (Tensor::ones((1, 2, 2), PRECISION, &Device::Cpu).unwrap(), [0.0; 4]);
    let no_partners = Tensor::new(&no_partners, &Device::Cpu).unwrap().reshape((1, 2, 2)).unwrap();
    let attended = head().forward(&members().narrow(0, 0, 2).unwrap(), &edges, &no_partners).unwrap();
    same(&attended.attended_mean().unwrap(), &[0.0; 4]);
}

#[test]
fn the_gradients_of_a_head_are_those_of_central_differences() {
    let mut parameters = Parameters::drawn(3, PRECISION);
    let head = AttentionHead::new(&mut parameters, "head", 2, 4).unwrap();
    let (edges, partner_mask) = graph();
    let attended_members =
        || head.forward(&members(), &edges, &partner_mask).unwrap().attended_mean().unwrap();
    gradients_agree(&parameters, || attended_members().sqr().unwrap().sum_all().unwrap());
}

#[test]
fn the_gradients_of_a_gate_are_those_of_central_differences() {
    let mut parameters = Parameters::drawn(4, PRECISION);
    let gate = Gate::new(&mut parameters, "gate", 2).unwrap();
    let output = tensor(&[&[0.3, -0.7], &[1.1, 0.4], &[-0.2, 0.9]]);
    let mixed = || gate.forward(&output, &members()).unwrap();
    gradients_agree(&parameters, || mixed().sqr().unwrap().sum_all().unwrap());
}

#[test]
fn dropout_keeps_the_mean() {
    use rand_chacha::rand_core::SeedableRng;

    let ones = Tensor::ones((100, 100), PRECISION, &Device::Cpu).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let kept = Mode::Training(&mut random).dropout(&ones, 0.25).unwrap();
    let values: Vec<f64> = kept.flatten_all().unwrap().to_vec1().unwrap();
    assert!(values.iter().all(|value| *value == 0.0 || (value - 4.0 / 3.0).abs() < 1e-12));
    let mean = values.iter().sum::<f64>() / 1e4;
    assert!((mean - 1.0).abs() < 0.02, "{mean}");
    same(&Mode::Inference.dropout(&ones, 0.25).unwrap().sum_all().unwrap(), &[1e4]);
}
