//! Searches for a learning rate: of eight trials that train side by side, the better half goes on, until one
//! is left (successive halving).
//!
//! Each trial is an actor, a process of its own with a quarter of a GPU. What ends early gives its quarter
//! back. Run it, with a cluster on this machine whose GPUs four processes may share:
//!
//! ```sh
//! cohabit up --max-sharing 4 --devices sim:2xH100-80G  # or without --devices, on a machine with two GPUs
//! cargo run --release -p cohabit-examples --example search
//! ```
#![expect(clippy::print_stdout, reason = "what it finds")]

use std::iter::zip;

use candle_core::Device;
use cohabit::Result;
use cohabit_training::DigitsModel;
use futures::future::try_join_all;

const RATES: [f32; 8] = [3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001];
const FIRST_STEPS: u64 = 25;

/// A network that is trained with one learning rate.
struct Trial {
    rate: f32,
    model: DigitsModel,
    steps: u64,
}

#[cohabit::actor(gpus = 0.25, gpu_memory = "2G", restarts = 2)]
impl Trial {
    fn new(rate: f32) -> Result<Self> {
        // The GPU of a process is always its device 0. Candle without CUDA computes on the CPU.
        let model = DigitsModel::new(1, 32, &Device::cuda_if_available(0)?)?;
        Ok(Trial { rate, model, steps: 0 })
    }

    /// Trains up to this many steps in all; returns the loss of images that are not trained with.
    ///
    /// If the process is killed, the trial begins anew in another one, with no steps done. The call is then
    /// sent again and makes up for all of them: its result is the same.
    #[retry]
    fn train_to(&mut self, steps: u64) -> Result<f32> {
        while self.steps < steps {
            let batch = self.model.batch(self.steps, 64);
            self.model.descend(&batch, self.rate)?;
            self.steps += 1;
        }
        let loss = self.model.test_loss()?;
        // A rate that is far too high ends with numbers that are none.
        Ok(if loss.is_finite() { loss } else { f32::INFINITY })
    }
}

#[cohabit::main(name = "search")]
async fn main() -> Result<()> {
    let started = try_join_all(RATES.map(|rate| Trial::remote(rate).start())).await?;
    let mut trials: Vec<(f32, TrialHandle)> = zip(RATES, started).collect();
    let mut steps = FIRST_STEPS;
    loop {
        let losses = try_join_all(trials.iter().map(|(_, trial)| trial.train_to(steps))).await?;
        let mut ranked: Vec<_> = zip(losses, trials).collect();
        ranked.sort_by(|one, other| one.0.total_cmp(&other.0));
        for (loss, (rate, _)) in &ranked {
            println!("{steps} steps: rate {rate}, loss {loss:.4}");
        }
        if let [(_, (rate, _))] = &ranked[..] {
            println!("best: rate {rate}");
            return Ok(());
        }
        // A handle that is dropped ends its actor.
        ranked.truncate(ranked.len().div_ceil(2));
        trials = ranked.into_iter().map(|(_, trial)| trial).collect();
        steps *= 2;
    }
}
