//! Check 1 of the specification.

use candle_core::{DType, Device, Tensor};

use crate::maifs::attention::Attention;
use crate::networks::Affine;

fn tensor(rows: &[&[f64]]) -> Tensor {
    Tensor::from_vec(rows.concat(), (rows.len(), rows[0].len()), &Device::Cpu).unwrap()
}

#[track_caller]
fn same(is: &Tensor, should: &[f64]) {
    let is: Vec<f64> = is.flatten_all().unwrap().to_vec1().unwrap();
    let close = is.iter().zip(should).all(|(is, should)| (is - should).abs() < 1e-6);
    assert!(close && is.len() == should.len(), "{is:?} instead of {should:?}");
}

fn attention() -> Attention {
    let identity = || Affine { weight: Tensor::eye(2, DType::F64, &Device::Cpu).unwrap(), bias: None };
    let value = Affine { weight: tensor(&[&[1.0, 0.0], &[0.0, 2.0]]), bias: None };
    Attention { heads: 1, query: identity(), key: identity(), value }
}

#[test]
fn agents_attend_as_in_the_worked_example() {
    let agents = tensor(&[&[1.0, 0.0], &[0.0, 1.0], &[1.0, 1.0]]);
    let others = tensor(&[&[0.0, 1.0, 1.0], &[1.0, 0.0, 1.0], &[1.0, 1.0, 0.0]]).unsqueeze(0).unwrap();
    let attended = attention().forward(&agents, &agents, &others).unwrap();
    let weights = [0.0, 0.330_238, 0.669_762, 0.330_238, 0.0, 0.669_762, 0.5, 0.5, 0.0];
    same(&attended.weights, &weights);
    same(&attended.values, &[0.669_762, 2.0, 1.0, 1.339_523, 0.5, 1.0]);
}

#[test]
fn an_agent_without_others_gets_nothing() {
    let agent = tensor(&[&[1.0, 2.0]]);
    let nobody = tensor(&[&[0.0]]).unsqueeze(0).unwrap();
    same(&attention().forward(&agent, &agent, &nobody).unwrap().values, &[0.0, 0.0]);
}
