//! IASP compared with the completion by singular vectors that it replaces, on a synthetic corpus of full
//! profiles.
//!
//! Public tables of co-located jobs have no such profiles. The corpus has the properties of real ones: a few
//! causes behind all metrics, saturating metrics, noise, and descriptions that carry some information about
//! the causes.

use candle_core::{DType, Device, Tensor};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::{Iasp, Metrics, Parameters};
use crate::interference::ridge::{RidgeRow, ridge};
use crate::random::RandomExt;

const METRICS: usize = 12;
const DESCRIPTION: usize = 10;
/// The number of observed metrics of a new job.
const OBSERVED: usize = 4;
const JOBS: usize = 60;
const NEW: usize = 40;
const NOISE: f64 = 0.02;

/// A job's metrics and its description.
struct Profile {
    metrics: [f64; METRICS],
    description: [f64; DESCRIPTION],
}

/// The causes of a job's metrics: how much it computes, moves, reads and holds.
fn profile(random: &mut ChaCha8Rng) -> Profile {
    let family = (random.part() * 5.0) as usize;
    let cause = |at: usize, random: &mut ChaCha8Rng| {
        let of_family = ((family * 7 + at * 3) % 5) as f64 / 4.0;
        (0.5 * of_family + 0.5 * random.part()).clamp(0.0, 1.0)
    };
    let [compute, moved, read, held] = [0, 1, 2, 3].map(|at| cause(at, random));
    let busy = (0.1 + 0.9 * compute.max(0.8 * moved)).min(1.0);
    let metrics = [
        busy,
        held,
        0.7 * read,
        0.2 + 0.6 * read * busy,
        (1.3 * busy).min(1.0),
        moved * busy,
        0.3 * read + 0.1 * held,
        0.2 + 0.7 * compute * (1.0 - 0.5 * moved),
        compute * compute * busy,
        0.25 + 0.5 * busy + 0.2 * moved,
        0.1 + 0.6 * held * read,
        (read / (0.2 + compute)).min(1.0),
    ];
    let metrics = metrics.map(|metric| (metric + NOISE * random.normal()).clamp(0.0, 1.0));
    let mut description = [0.0; DESCRIPTION];
    let inputs = [compute, moved, read, held, compute * held];
    description
        .iter_mut()
        .zip(inputs)
        .for_each(|(it, cause)| *it = 2.0 * cause - 1.0 + 0.2 * random.normal());
    description[5 + family] = 1.0;
    Profile { metrics, description }
}

fn profiles(count: usize, seed: u64) -> Vec<Profile> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(|_| profile(&mut random)).collect()
}

fn tensor<const N: usize>(profiles: &[Profile], of: fn(&Profile) -> [f64; N]) -> Tensor {
    let all: Vec<f64> = profiles.iter().flat_map(of).collect();
    Tensor::from_vec(all, (profiles.len(), N), &Device::Cpu).unwrap().to_dtype(DType::F32).unwrap()
}

/// The hidden metrics of new jobs, completed by IASP.
fn by_iasp(train: &[Profile], new: &[Profile]) -> Vec<Vec<f64>> {
    let mut parameters = Parameters::drawn(1, DType::F32);
    let iasp = Iasp::new(&mut parameters, METRICS, DESCRIPTION).unwrap();
    let variables = parameters.iter().map(|(_, variable)| variable.clone()).collect();
    let how = ParamsAdamW { lr: 3e-3, weight_decay: 1e-2, ..ParamsAdamW::default() };
    let mut optimizer = AdamW::new(variables, how).unwrap();
    let values = tensor(train, |it| it.metrics);
    let full = Metrics { observed: values.ones_like().unwrap(), values };
    let inputs = tensor(train, |it| it.description);
    let mut random = ChaCha8Rng::seed_from_u64(2);
    for _ in 0..300 {
        let gradients = iasp.loss(&full, &inputs, &mut random).unwrap().backward().unwrap();
        optimizer.step(&gradients).unwrap();
    }
    let shown = |it: &Profile| {
        std::array::from_fn::<f64, METRICS, _>(|at| if at < OBSERVED { it.metrics[at] } else { 0.0 })
    };
    let observed =
        |_: &Profile| std::array::from_fn::<f64, METRICS, _>(|at| f64::from(u8::from(at < OBSERVED)));
    let query = Metrics { values: tensor(new, shown), observed: tensor(new, observed) };
    let completed = iasp.complete(&query, &tensor(new, |it| it.description)).unwrap().detach();
    completed.to_dtype(DType::F64).unwrap().to_vec2().unwrap()
}

/// The hidden metrics of new jobs, completed by low-rank factors from alternating least squares.
fn by_factors(train: &[Profile], new: &[Profile], rank: usize) -> Vec<Vec<f64>> {
    let mean = |metric: usize| train.iter().map(|it| it.metrics[metric]).sum::<f64>() / train.len() as f64;
    let means: Vec<f64> = (0..METRICS).map(mean).collect();
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let mut of_metrics: Vec<Vec<f64>> =
        (0..METRICS).map(|_| (0..rank).map(|_| random.normal()).collect()).collect();
    let solved = |rows: &[(&Vec<f64>, f64)]| {
        let rows: Vec<_> = rows
            .iter()
            .map(|(factors, value)| RidgeRow {
                terms: factors.iter().copied().enumerate().collect(),
                value: *value,
                weight: 1.0,
            })
            .collect();
        ridge(&rows, &vec![1.0; rank], 0.01)
    };
    let of_job = |of_metrics: &[Vec<f64>], job: &Profile, known: usize| {
        let rows: Vec<_> = (0..known).map(|at| (&of_metrics[at], job.metrics[at] - means[at])).collect();
        solved(&rows)
    };
    for _ in 0..50 {
        let jobs: Vec<Vec<f64>> = train.iter().map(|job| of_job(&of_metrics, job, METRICS)).collect();
        let metric = |at: usize| {
            let rows: Vec<_> =
                jobs.iter().zip(train).map(|(job, it)| (job, it.metrics[at] - means[at])).collect();
            solved(&rows)
        };
        of_metrics = (0..METRICS).map(metric).collect();
    }
    let completed = |job: &Profile| {
        let own = of_job(&of_metrics, job, OBSERVED);
        let product = |factors: &[f64]| factors.iter().zip(&own).map(|(one, other)| one * other).sum::<f64>();
        (0..METRICS).map(|at| (means[at] + product(&of_metrics[at])).clamp(0.0, 1.0)).collect()
    };
    new.iter().map(completed).collect()
}

/// Root mean square error of the hidden metrics.
fn error(predicted: &[Vec<f64>], new: &[Profile]) -> f64 {
    let of_job = |(predicted, job): (&Vec<f64>, &Profile)| -> f64 {
        (OBSERVED..METRICS).map(|at| (predicted[at] - job.metrics[at]).powi(2)).sum()
    };
    let square: f64 = predicted.iter().zip(new).map(of_job).sum();
    (square / (new.len() * (METRICS - OBSERVED)) as f64).sqrt()
}

#[test]
fn iasp_completes_profiles_better_than_singular_vectors() {
    let (train, new) = (profiles(JOBS, 11), profiles(NEW, 12));
    let factors = (1..=OBSERVED).map(|rank| error(&by_factors(&train, &new, rank), &new));
    let best = factors.fold(f64::INFINITY, f64::min);
    let iasp = error(&by_iasp(&train, &new), &new);
    assert!(best < 0.2, "the baseline completes, too: {best}");
    assert!(iasp < 0.9 * best, "IASP {iasp}, singular vectors {best}");
}
