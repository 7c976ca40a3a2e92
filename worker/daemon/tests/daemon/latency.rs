//! Measures the time from an order to a process; asserts nothing: `cargo test … -- --ignored
//! --nocapture`.

use std::time::{Duration, Instant};

use cohabit_types::Outcome;

use crate::kit::{Cluster, rank, run, shell};

#[tokio::test]
#[ignore = "a measurement"]
async fn from_an_order_to_a_process() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let (mut starts, mut ends) = (Vec::new(), Vec::new());
    for job in 1..=50 {
        let ordered_at = Instant::now();
        head.order(run(job, shell("exit 0"))).await;
        head.started(rank(job)).await;
        starts.push(ordered_at.elapsed());
        assert_eq!(head.ended(rank(job)).await.outcome, Outcome::Exited(0));
        ends.push(ordered_at.elapsed());
    }
    println!("order → started: {:?}; order → ended: {:?} (median of 50)", median(starts), median(ends));
    daemon.stop().await.unwrap();
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
