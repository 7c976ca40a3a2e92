//! IASP: completes the contention metrics of a briefly profiled job from those of other jobs.
//!
//! Neural collaborative filtering with jobs as rows and metrics as columns. A job has no embedding of its
//! own: its row is computed from its observed metrics and its description, so that new jobs have one at once.
//! A metric has two embeddings, one for the product of both and one for dense layers.

use candle_core::{Result, Tensor};
use candle_nn::ops::sigmoid;
use rand_chacha::ChaCha8Rng;

use crate::networks::{Affine, Parameters};
use crate::random::RandomExt;

/// The network.
#[derive(Debug)]
pub(super) struct Iasp {
    job: [Affine; 2],
    job_product: Affine,
    job_dense: Affine,
    metric_product: Tensor,
    metric_dense: Tensor,
    dense: [Affine; 3],
    answer: Affine,
}

/// The metrics of jobs, all `[rows, metrics]`.
#[derive(Debug, Clone)]
pub(super) struct Metrics {
    /// From 0 to 1; 0 if not observed.
    pub(super) values: Tensor,
    /// 1 if observed.
    pub(super) observed: Tensor,
}

const JOB: [usize; 2] = [64, 32];
const PRODUCT: usize = 8;
const DENSE: usize = 16;
const NARROWING: [usize; 3] = [32, 16, 8];
/// The number of leading metrics that every profile has: half of the time only these are shown in training.
const CHEAP_METRICS: usize = 2;
/// The other half of the time each metric is shown with this probability.
const SHOWN_PART: f64 = 0.5;
/// Initial standard deviation of the embeddings.
const INITIAL_DEVIATION: f64 = 0.3;

impl Iasp {
    pub(super) fn new(parameters: &mut Parameters, metrics: usize, inputs: usize) -> Result<Iasp> {
        let mut affine = |name: &str, from, to| Affine::new(parameters, &format!("iasp.{name}"), from, to);
        let job = [affine("job1", 2 * metrics + inputs, JOB[0])?, affine("job2", JOB[0], JOB[1])?];
        let (job_product, job_dense) =
            (affine("job_product", JOB[1], PRODUCT)?, affine("job_dense", JOB[1], DENSE)?);
        let dense = [
            affine("dense1", 2 * DENSE, NARROWING[0])?,
            affine("dense2", NARROWING[0], NARROWING[1])?,
            affine("dense3", NARROWING[1], NARROWING[2])?,
        ];
        let answer = affine("answer", PRODUCT + NARROWING[2], 1)?;
        let metric_product =
            parameters.normal("iasp.metric_product", (metrics, PRODUCT), INITIAL_DEVIATION)?;
        let metric_dense = parameters.normal("iasp.metric_dense", (metrics, DENSE), INITIAL_DEVIATION)?;
        Ok(Iasp { job, job_product, job_dense, metric_product, metric_dense, dense, answer })
    }

    /// The observed metrics, and predictions of the others. `inputs` are the other inputs of the jobs,
    /// `[rows, numbers]`.
    pub(super) fn complete(&self, metrics: &Metrics, inputs: &Tensor) -> Result<Tensor> {
        let Metrics { values, observed } = metrics;
        values + (self.predict(metrics, inputs)? * observed.affine(-1.0, 1.0)?)?
    }

    /// Mean square error of observed metrics that were hidden from the network.
    pub(super) fn loss(&self, metrics: &Metrics, inputs: &Tensor, random: &mut ChaCha8Rng) -> Result<Tensor> {
        let shown = metrics.draw_subset(random)?;
        let error = ((self.predict(&shown, inputs)? - &metrics.values)?.sqr()?
            * (&metrics.observed - &shown.observed)?)?;
        let hidden = (&metrics.observed - &shown.observed)?.sum_all()?.maximum(1.0)?;
        error.sum_all()? / hidden
    }

    fn predict(&self, metrics: &Metrics, inputs: &Tensor) -> Result<Tensor> {
        let (rows, columns) = metrics.values.dims2()?;
        let mut job = Tensor::cat(&[&metrics.values, &metrics.observed, inputs], 1)?;
        for layer in &self.job {
            job = layer.forward(&job)?.relu()?;
        }
        let each = |of_job: Tensor, width| of_job.unsqueeze(1)?.broadcast_as((rows, columns, width));
        let product = each(self.job_product.forward(&job)?, PRODUCT)?;
        let product = product.broadcast_mul(&self.metric_product.unsqueeze(0)?)?;
        let of_metric = self.metric_dense.unsqueeze(0)?.broadcast_as((rows, columns, DENSE))?;
        let dense = each(self.job_dense.forward(&job)?, DENSE)?;
        let mut dense = Tensor::cat(&[dense, of_metric], 2)?.flatten(0, 1)?;
        for layer in &self.dense {
            dense = layer.forward(&dense)?.relu()?;
        }
        let both = Tensor::cat(&[product.flatten(0, 1)?, dense], 1)?;
        sigmoid(&self.answer.forward(&both)?)?.reshape((rows, columns))
    }
}

impl Metrics {
    /// A random subset of the observed metrics of each job.
    fn draw_subset(&self, random: &mut ChaCha8Rng) -> Result<Metrics> {
        let (rows, columns) = self.values.dims2()?;
        let mut mask = Vec::with_capacity(rows * columns);
        for _ in 0..rows {
            let only_cheap = random.part() < 0.5;
            mask.extend((0..columns).map(|column| {
                let shown = if only_cheap { column < CHEAP_METRICS } else { random.part() < SHOWN_PART };
                if shown { 1.0 } else { 0.0 }
            }));
        }
        let mask: Vec<f64> = mask;
        let mask = Tensor::from_vec(mask, (rows, columns), self.values.device())?;
        let mask = mask.to_dtype(self.values.dtype())?;
        Ok(Metrics { values: (&self.values * &mask)?, observed: (&self.observed * mask)? })
    }
}

#[cfg(test)]
#[path = "iasp_tests.rs"]
mod tests;
