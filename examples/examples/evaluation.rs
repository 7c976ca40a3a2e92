//! A service that evaluates models: a detached actor with a name, which outlives the program that starts it,
//! and which later programs find and use.
//!
//! The first launch starts the application. Each further launch of the same file joins it with a `main` of
//! its own, as long as the service lives. Run it, with a cluster on this machine:
//!
//! ```sh
//! cohabit up --devices sim:1xH100-80G                  # or without --devices, on a machine with GPUs
//! cargo build --release -p cohabit-examples --example evaluation
//! target/release/examples/evaluation start
//! target/release/examples/evaluation train 0.1         # trains a model, and has it evaluated
//! target/release/examples/evaluation train 0.01
//! target/release/examples/evaluation results           # prints what the service has evaluated so far
//! target/release/examples/evaluation stop
//! ```
#![expect(clippy::print_stdout, reason = "the results")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use candle_core::Device;
use cohabit::{Buffer, Context, Result};
use cohabit_training::DigitsModel;

/// The name by which other launches find the service.
const SERVICE: &str = "evaluator";

/// Evaluates models, and keeps the results.
struct Evaluator {
    model: DigitsModel,
    accuracies: BTreeMap<String, f32>,
    file: PathBuf,
}

#[cohabit::actor(gpus = 0.25, gpu_memory = "2G", restarts = 3)]
impl Evaluator {
    /// It begins with the results in its checkpoint directory: it may be a restart after its process was
    /// killed.
    fn new(context: &Context) -> Result<Self> {
        let file = context.checkpoint_folder().join("accuracies.json");
        let accuracies = match file.exists() {
            true => serde_json::from_slice(&std::fs::read(&file)?)?,
            false => BTreeMap::new(),
        };
        Ok(Evaluator { model: network()?, accuracies, file })
    }

    /// The accuracy of the network with these weights. A restart may have it run twice, with the same result.
    #[retry]
    fn evaluate(&mut self, name: String, weights: Buffer<f32>) -> Result<f32> {
        self.model.set_weights(&weights)?;
        let accuracy = self.model.accuracy()?;
        self.accuracies.insert(name, accuracy);
        std::fs::write(&self.file, serde_json::to_vec(&self.accuracies)?)?;
        Ok(accuracy)
    }

    #[retry]
    fn results(&self) -> BTreeMap<String, f32> {
        self.accuracies.clone()
    }
}

/// The weights of a network that is trained with this learning rate.
#[cohabit::task]
fn train(rate: f32) -> Result<Buffer<f32>> {
    let model = network()?;
    for step in 0..200 {
        model.descend(&model.batch(step, 64), rate)?;
    }
    Ok(model.weights()?.into())
}

#[cohabit::main(name = "evaluation")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["start"] => {
            let service = Evaluator::remote().name(SERVICE).detached().start().await?;
            // The first answer says that it was constructed.
            println!("ready, with {} results", service.results().await?.len());
        }
        ["train", rate] => {
            let service = Evaluator::named(SERVICE).await?;
            let number: f32 = rate.parse().map_err(|_| format!("the rate '{rate}' is not a number"))?;
            // The weights go from the process that trains to the service; `main` has only the reference.
            let weights = train::remote(number).start().await?;
            println!("accuracy {:.4}", service.evaluate(format!("rate {rate}"), weights).await?);
        }
        ["results"] => {
            for (name, accuracy) in Evaluator::named(SERVICE).await?.results().await? {
                println!("{name}: accuracy {accuracy:.4}");
            }
        }
        ["stop"] => Evaluator::named(SERVICE).await?.stop().await?,
        _ => Err("use: start, train RATE, results, or stop")?,
    }
    Ok(())
}

/// The network before its training.
fn network() -> Result<DigitsModel> {
    Ok(DigitsModel::new(1, 128, &Device::cuda_if_available(0)?)?)
}
