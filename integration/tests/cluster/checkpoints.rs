//! Checkpoints follow a job to another node, or its user is told why they do not.

use std::os::unix::fs::PermissionsExt;

use crate::kit::*;

/// Says with what it begins, saves, and runs until it is stopped.
const TRAINING: &str = r#"cd "$COHABIT_CHECKPOINT_DIR"
echo "attempt $COHABIT_ATTEMPT begins with" $(cat state 2>/dev/null)
echo "attempt-$COHABIT_ATTEMPT" >> state
touch "$COHABIT_SUBMIT_DIR/saved-$COHABIT_ATTEMPT"
sleep 600"#;

/// A head with these flags, and two workers with a slot each.
fn two_nodes(flags: &[&str]) -> Cluster {
    let mut cluster = Cluster::with_head(flags, &[]);
    cluster.add_worker("host:1");
    cluster.add_worker("host:1");
    cluster
}

impl Cluster {
    /// The node of the latest attempt of a job.
    fn node_of(&self, job: &str) -> String {
        self.show(job)["nodes"][0].as_str().unwrap().to_owned()
    }

    /// Moves the job, which has saved in this attempt, away from its node, which it returns.
    fn move_away(&self, job: &str, attempt: u32) -> String {
        self.until_file(&format!("saved-{attempt}"));
        let node = self.node_of(job);
        self.ok(&["worker", "drain", &node]);
        self.ok(&["requeue", job]);
        self.until_file(&format!("saved-{}", attempt + 1));
        self.ok(&["worker", "resume", &node]);
        node
    }

    fn printed_in(&self, attempt: u32, job: &str) -> String {
        let read = self.run(&["logs", "--attempt", &attempt.to_string(), job]);
        read.stdout + &read.stderr
    }
}

#[test]
fn checkpoints_are_carried_to_the_node_of_the_next_attempt_and_back() {
    let cluster = two_nodes(&[]);
    let job = cluster.submit(&[], TRAINING);
    let first = cluster.move_away(&job, 1);
    let second = cluster.node_of(&job);
    assert_ne!(first, second);
    let printed = cluster.printed_in(2, &job);
    assert!(printed.contains("attempt 2 begins with attempt-1\n"), "{printed}");
    let explained = cluster.ok(&["explain", &job]);
    assert!(explained.contains("the checkpoints of attempt 1 ("), "{explained}");
    assert!(explained.contains(&format!("were carried from node {first} to {second}")), "{explained}");
    let shown = cluster.ok(&["show", &job]);
    assert!(shown.contains(&format!("checkpoints: on {second}, until its log-retention is over")), "{shown}");
    cluster.move_away(&job, 2);
    assert!(cluster.printed_in(3, &job).contains("attempt 3 begins with attempt-1 attempt-2\n"));
    cluster.ok(&["cancel", &job]);
    cluster.end(&job);
}

#[test]
fn a_job_whose_checkpoints_are_out_of_reach_says_so_and_none_are_lost() {
    let mut cluster = two_nodes(&[]);
    let job = cluster.submit(&[], TRAINING);
    cluster.until_file("saved-1");
    let first = cluster.node_of(&job);
    let number = if first == "node0" { 0 } else { 1 };
    let nodes = ["node0", "node1"];
    nodes.iter().for_each(|node| drop(cluster.ok(&["worker", "drain", node])));
    cluster.ok(&["requeue", &job]);
    cluster.until_state(&job, "PENDING");
    cluster.stop_worker(number);
    cluster.until_node(&first, "UNREACHABLE");
    nodes.iter().for_each(|node| drop(cluster.ok(&["worker", "resume", node])));
    cluster.until_file("saved-2");
    let printed = cluster.printed_in(2, &job);
    let told = format!(
        "[cohabit: this attempt starts without the checkpoints of attempt 1, which are on node {first}:"
    );
    assert!(printed.contains(&told) && printed.contains("attempt 2 begins with\n"), "{printed}");
    let explained = cluster.ok(&["explain", &job]);
    assert!(explained.contains("starts without the checkpoints of attempt 1"), "{explained}");
    cluster.restart_worker(number);
    cluster.until_node(&first, "UP");
    cluster.move_away(&job, 2);
    let printed = cluster.printed_in(3, &job);
    assert!(printed.contains("attempt 3 begins with attempt-2\n"), "{printed}");
    let kept = printed.split("which is in ").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    assert_eq!(std::fs::read_to_string(format!("{kept}/state")).unwrap(), "attempt-1\n");
    cluster.ok(&["cancel", &job]);
    cluster.end(&job);
}

#[test]
fn checkpoints_over_the_limit_stay_where_they_are() {
    let cluster = two_nodes(&["--checkpoint-limit", "100K"]);
    let large = TRAINING.replace("touch", "head -c 200000 /dev/zero > large\ntouch");
    let job = cluster.submit(&[], &large);
    cluster.move_away(&job, 1);
    let printed = cluster.printed_in(2, &job);
    assert!(printed.contains("they take more than 100 K"), "{printed}");
    cluster.ok(&["cancel", &job]);
    cluster.end(&job);
}

#[test]
fn a_shared_directory_is_where_every_attempt_looks() {
    let shared = tempfile::tempdir().unwrap();
    std::fs::set_permissions(shared.path(), PermissionsExt::from_mode(0o1777)).unwrap();
    let cluster = two_nodes(&["--checkpoint-dir", shared.path().to_str().unwrap()]);
    let job = cluster.submit(&[], TRAINING);
    cluster.move_away(&job, 1);
    let printed = cluster.printed_in(2, &job);
    assert_eq!(printed, "attempt 2 begins with attempt-1\n");
    let folder = cluster.show(&job)["checkpoint"].as_str().unwrap().to_owned();
    assert!(folder.starts_with(&format!("{}/{job}-", shared.path().display())), "{folder}");
    let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o700, "other users cannot read it");
    cluster.ok(&["cancel", &job]);
    cluster.end(&job);
    let refused = cluster.run(&["submit", "--checkpoint", "relative/%j", "--", "sh", "-c", "pwd > where"]);
    assert_eq!(refused.code, 0, "{}", refused.stderr);
    let other = cluster.submit(&["--checkpoint", &cluster.path("of-%j")], "echo $COHABIT_CHECKPOINT_DIR");
    cluster.end(&other);
    assert_eq!(cluster.printed_in(1, &other), format!("{}\n", cluster.path(&format!("of-{other}"))));
}
