//! The networks in plain Rust against those that are trained.

use candle_core::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::RowBatch;
use crate::interference::networks::batch::{NetworkInput, SetBatch};
use crate::interference::networks::e_ggat_plus::EGgatPlus;
use crate::interference::networks::feature_encoder::FeatureEncoder;
use crate::interference::networks::network::Network;
use crate::interference::networks::row_network::MemberOutput;
use crate::interference::networks::synthetic::{JOBS, drawn, estimates_alone, with_usage};
use crate::interference::networks::training::TrainedNetwork;
use crate::interference::networks::usage_outputs::UsageOutputs;
use crate::networks::{PRECISION, Parameters};
use crate::random::RandomExt;

const TOLERANCE: f64 = 1e-4;

/// Both networks with the same random parameters, on sets of two to five, some with measured edges. Returns
/// the outputs.
fn assert_equal_outputs<N: Network>(width: usize, seed: u64, learns_usage: bool) -> Vec<f64> {
    let sizes = [2, 3, 4, 5];
    let measured: Vec<_> = sizes.into_iter().flat_map(|size| drawn(&JOBS, size, 7, size as u64)).collect();
    let measured: Vec<_> = measured.into_iter().map(with_usage).collect();
    let base: Vec<_> = measured.iter().map(|it| estimates_alone(&it.set)).collect();
    let expected: Vec<_> = base.iter().map(Vec::as_slice).zip(&measured).collect();
    // Jobs that are in no measurement are in the sets too.
    let mut encoder = FeatureEncoder::learn(&measured[..20], N::SCALING);
    if learns_usage {
        encoder.usage = UsageOutputs::learn(&expected);
    }
    let mut parameters = Parameters::drawn(1, PRECISION);
    let network = N::new(&mut parameters, &encoder, width).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for (_, variable) in parameters.iter() {
        let numbers: Vec<f32> = (0..variable.elem_count()).map(|_| 0.3 * random.normal() as f32).collect();
        variable.set(&Tensor::from_vec(numbers, variable.shape(), &Device::Cpu).unwrap()).unwrap();
    }
    let rows = N::rows(&parameters, &encoder, width).unwrap();
    let trained = TrainedNetwork { network, parameters, rows };
    let sets = measured.iter().zip(base);
    let mut inputs: Vec<_> = sets.map(|(it, base)| NetworkInput { set: &it.set, base }).collect();
    for (at, input) in inputs.iter_mut().enumerate() {
        for estimate in &mut input.base {
            (estimate.slowdown, estimate.uncertainty) = (1.0 + 0.1 * at as f64, 0.01 * at as f64);
        }
    }
    let batch = SetBatch::of(&encoder, &inputs, N::EDGES, PRECISION).unwrap();
    let reference = trained.predict(&batch, &inputs).unwrap();
    let fast = trained.rows.as_ref().unwrap().predict(&RowBatch::of(&encoder, &inputs, N::EDGES));
    let all = |outputs: &[MemberOutput]| -> Vec<f64> {
        outputs.iter().flat_map(|it| [it.ln_slowdown].into_iter().chain(it.usage.iter().copied())).collect()
    };
    let (reference, fast) = (all(&reference), all(&fast));
    assert_eq!(reference.len(), fast.len());
    for (reference, fast) in reference.iter().zip(&fast) {
        assert!((reference - fast).abs() < TOLERANCE, "{fast} instead of {reference}");
    }
    reference
}

#[test]
fn e_ggat_plus_is_the_same_in_plain_rust() {
    let mut outputs = Vec::new();
    for (width, seed) in [4, 24, 27].into_iter().flat_map(|width| (1..=6).map(move |seed| (width, seed))) {
        outputs.extend(assert_equal_outputs::<EGgatPlus>(width, seed, true));
        outputs.extend(assert_equal_outputs::<EGgatPlus>(width, seed, false));
    }
    let positive = outputs.iter().filter(|it| **it > 0.1).count();
    assert!(positive > outputs.len() / 10, "{positive} of {}", outputs.len());
}

#[test]
fn a_set_has_the_same_outputs_alone_and_in_a_batch() {
    let measured = drawn(&JOBS, 3, 9, 1);
    let encoder = FeatureEncoder::learn(&measured, EGgatPlus::SCALING);
    let mut parameters = Parameters::drawn(1, PRECISION);
    EGgatPlus::new(&mut parameters, &encoder, 24).unwrap();
    let rows = EGgatPlus::rows(&parameters, &encoder, 24).unwrap().unwrap();
    let inputs: Vec<_> =
        measured.iter().map(|it| NetworkInput { set: &it.set, base: estimates_alone(&it.set) }).collect();
    let outputs = |inputs: &[NetworkInput<'_>]| -> Vec<f64> {
        let outputs = rows.predict(&RowBatch::of(&encoder, inputs, EGgatPlus::EDGES));
        outputs.iter().map(|it| it.ln_slowdown).collect()
    };
    let alone: Vec<f64> = inputs.iter().flat_map(|input| outputs(std::slice::from_ref(input))).collect();
    assert_eq!(outputs(&inputs), alone);
    assert_eq!(outputs(&[]), [0.0; 0]);
}
