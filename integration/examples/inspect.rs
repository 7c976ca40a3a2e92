//! The application of the tests that look at applications: it does a bit of everything, and waits.

use std::path::Path;
use std::time::Duration;

use cohabit::{Error, Result};

/// Holds half of a GPU. The application may use one, so two of them fit.
struct Half {
    name: String,
}

#[cohabit::actor(gpus = 0.5, gpu_memory = "8G")]
impl Half {
    fn new(name: String) -> Self {
        say(&format!("{name} is constructed"));
        Half { name }
    }

    /// Waits until a file is there.
    async fn hold(&self, file: String) -> String {
        until(&file).await;
        self.name.clone()
    }

    fn process(&self) -> u32 {
        std::process::id()
    }
}

#[cohabit::task]
fn square(number: u64) -> u64 {
    number * number
}

#[cohabit::task(retries = 0)]
fn fails(text: String) -> Result<()> {
    Err(text.into())
}

#[cohabit::task(cpus = 0)]
async fn waits(file: String) {
    until(&file).await;
}

#[cohabit::task(gpus = 1)]
fn needs_a_gpu() -> u64 {
    1
}

#[cohabit::main(name = "inspect", max_gpus = 1)]
async fn main() -> Result<()> {
    let go = std::env::args().nth(1).ok_or("give the file to wait for")?;
    let half = |name: &str| Half::remote(name.to_owned()).name(name).start();
    // One after the other, so that what they print has an order.
    let first = half("first").await?;
    let process = first.process().await?;
    let second = half("second").await?;
    second.process().await?;
    let third = half("third").await?;
    let held = first.hold(go.clone()).start().await?;
    square::remote(3).await?;
    if let Err(Error::Failed(text)) = fails::remote("no such model".to_owned()).await {
        say(&text);
    }
    let waiting = waits::remote(go.clone()).start().await?;
    let needing = needs_a_gpu::remote().start().await?;
    say(&format!("process {process}"));
    until(&go).await;
    say(&held.await?);
    waiting.await?;
    // Whatever waits for the GPU is given up.
    drop((needing, first, second, third));
    say("done");
    Ok(())
}

async fn until(file: &str) {
    while !Path::new(file).exists() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[expect(clippy::print_stdout, reason = "it is what the tests read")]
fn say(text: &str) {
    println!("{text}");
}
