//! Trains one network in four processes: each computes the gradient of its part of every batch, and a task
//! moves the weights against their mean. The processes are a gang: all of them have a place, or none, and if
//! one ends, all start again.
//!
//! Weights and gradients are objects in shared memory. `main` only passes references, so it is through with
//! its loop long before the training is; every call waits for the values that it needs. At the end the loss
//! is that of the same training in one process. Run it, with a cluster on this machine that has four devices:
//!
//! ```sh
//! cohabit up --devices host:4
//! cargo run --release -p cohabit-examples --example data_parallel
//! ```
#![expect(clippy::print_stdout, reason = "the losses that it compares")]

use candle_core::Device;
use cohabit::{Buffer, Gang, GangMember, Ref, Result};
use cohabit_training::DigitsModel;
use futures::future::try_join_all;
use serde::{Deserialize, Serialize};

const PROCESSES: usize = 4;
const STEPS: u64 = 60;
const BATCH: usize = 64;
const RATE: f32 = 0.1;

/// The weights after some steps. The numbers of a buffer are read where they lie.
#[derive(Serialize, Deserialize)]
struct Weights {
    values: Buffer<f32>,
}

/// The mean gradient of some images.
#[derive(Serialize, Deserialize)]
struct Gradient {
    images: usize,
    values: Buffer<f32>,
}

/// One of the processes that train together.
struct Shard {
    member: GangMember,
    model: DigitsModel,
}

#[cohabit::actor(gpus = 1, restarts = 3)]
impl Shard {
    fn new(member: GangMember) -> Result<Self> {
        Ok(Shard { member, model: network()? })
    }

    /// The gradient of this member's part of a batch. It follows from the arguments alone, so the call may be
    /// sent again after a restart.
    #[retry]
    fn gradient(&mut self, weights: Weights, step: u64) -> Result<Gradient> {
        let batch = self.model.batch(step, BATCH);
        let GangMember { rank, size } = self.member;
        let edge = |rank: usize| batch.len() * rank / size;
        let part = &batch[edge(rank)..edge(rank + 1)];
        self.model.set_weights(&weights.values)?;
        let (_, values) = self.model.gradient(part)?;
        Ok(Gradient { images: part.len(), values: values.into() })
    }
}

/// The weights after a step against the average of the gradients.
#[cohabit::task]
fn average(weights: Weights, parts: Vec<Gradient>) -> Weights {
    let images: usize = parts.iter().map(|part| part.images).sum();
    let mut values = weights.values.to_vec();
    for part in parts {
        let scale = RATE * part.images as f32 / images as f32;
        for (value, slope) in values.iter_mut().zip(&part.values[..]) {
            *value -= scale * slope;
        }
    }
    Weights { values: values.into() }
}

#[cohabit::main(name = "data-parallel")]
async fn main() -> Result<()> {
    let model = network()?;
    let shards = Gang::of(PROCESSES).spawn(Shard::remote).await?;
    let mut weights: Ref<Weights> = cohabit::put(&Weights { values: model.weights()?.into() }).await?;
    for step in 0..STEPS {
        let gradients = shards.iter().map(|shard| shard.gradient(&weights, step).start());
        let gradients: Vec<Ref<Gradient>> = try_join_all(gradients).await?;
        weights = average::remote(&weights, gradients).start().await?;
    }
    model.set_weights(&weights.await?.values)?;
    println!("{PROCESSES} processes: loss {:.7}", model.test_loss()?);

    let alone = network()?;
    for step in 0..STEPS {
        alone.descend(&alone.batch(step, BATCH), RATE)?;
    }
    println!("one process: loss {:.7}", alone.test_loss()?);
    Ok(())
}

/// The network before its training, the same in each process. It computes on the GPU of the process, or on
/// the CPU where candle was built without CUDA.
fn network() -> Result<DigitsModel> {
    Ok(DigitsModel::new(1, 128, &Device::cuda_if_available(0)?)?)
}
