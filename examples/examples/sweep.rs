//! Tries four learning rates as one array of jobs and prints the one with the lowest final loss.
//!
//! Run a head and a worker; then, on the machine of the head:
//!
//! ```sh
//! cargo build --release -p cohabit-examples --bins
//! cargo run --release -p cohabit-examples --example sweep -- target/release/digits --epochs 20
//! ```
//!
//! The program must accept `--learning-rate` and report a `loss`. On other machines, set
//! `COHABIT_HEAD=HOST:PORT` and `COHABIT_TOKEN_FILE=FILE`.

use std::io::{self, Write};

use anyhow::{Context, Result};
use cohabit_client::types::{JobRecord, JobState};
use cohabit_client::{Client, JobBuilder};
use futures::TryStreamExt;

/// Member 3 of the array tries 0.001: its index is the exponent.
const TRY_ONE_RATE: &str = r#"exec "$0" --learning-rate "1e-$COHABIT_ARRAY_INDEX" "$@""#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let program = std::path::absolute(arguments.next().context("no program: write it after --")?)?;
    let program =
        program.into_os_string().into_string().ok().context("the path of the program is not valid UTF-8")?;

    let client = Client::connect_from_environment().await?;
    let sweep = JobBuilder::command(["sh", "-c", TRY_ONE_RATE])
        .arg(program)
        .args(arguments)
        .name("sweep")
        .array(1..=4)
        .submit(&client)
        .await?;
    sweep.wait().await?;

    let members: Vec<JobRecord> = sweep.members().try_collect().await?;
    for member in &members {
        writeln!(io::stdout(), "1e-{}: {} {:?}", exponent(member), member.state, loss(member))?;
    }
    let completed = members.iter().filter(|member| member.state == JobState::Completed);
    let losses = completed.filter_map(|member| Some((loss(member)?, exponent(member))));
    let (loss, exponent) =
        losses.min_by(|one, two| one.0.total_cmp(&two.0)).context("no training completed")?;
    writeln!(io::stdout(), "the best learning rate is 1e-{exponent}, with a loss of {loss}")?;
    Ok(())
}

fn exponent(member: &JobRecord) -> u32 {
    member.id.index.unwrap_or_default()
}

fn loss(member: &JobRecord) -> Option<f64> {
    member.progress.as_ref()?.metrics.get("loss").map(|loss| loss.0)
}
