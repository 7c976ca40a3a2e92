//! What a daemon keeps of ranks whose end the head knows.

use std::fs;

use cohabit_types::{FollowMode, LogPosition, Order, RefusalCode, Span};

use crate::kit::{Cluster, rank, run, shell, wait_for};

#[tokio::test]
async fn the_directory_of_a_rank_that_printed_nothing_is_removed_and_its_output_is_known_to_be_empty() {
    let mut cluster = Cluster::new().await;
    let mut options = cluster.options();
    options.retention.delay = Span::from_millis(1);
    let (daemon, mut head) = cluster.worker_with(options).await;
    for job in 1..=30 {
        head.order(run(job, shell(if job == 30 { "echo last" } else { "exit 3" }))).await;
    }
    head.all_ended((1..=30).map(rank)).await;
    for job in 1..=30 {
        head.order(Order::Acknowledge(rank(job))).await;
    }
    let (ranks, checkpoints) = (cluster.state().join("ranks"), cluster.state().join("checkpoints"));
    let count = |folder: &std::path::Path| fs::read_dir(folder).unwrap().count();
    // Each of the others holds the files of an executor that waits for its next rank.
    wait_for("the directories to be removed", || count(&ranks) < 15 && count(&checkpoints) < 15).await;
    let removed: Vec<u64> = (1..30).filter(|job| !cluster.folder_of(rank(*job)).exists()).collect();
    let text = fs::read_to_string(cluster.state().join("removed-ranks")).unwrap();
    for job in removed {
        assert!(text.contains(&format!("\n{job}/1/0 empty")), "{text}");
        let chunk = head.read_log(rank(job), LogPosition::Start, FollowMode::Wait).await.unwrap();
        assert!(chunk.complete && chunk.records.is_empty());
    }
    assert_eq!(head.followed(rank(30)).await, "last\n");
    let refusal = head.read_log(rank(31), LogPosition::Start, FollowMode::Wait).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::NotFound);
    daemon.stop().await.unwrap();
}
