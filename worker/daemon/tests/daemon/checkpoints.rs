//! Ranks that go on from checkpoints which another worker has kept.

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use cohabit_net::context_for;
use cohabit_types::{
    Bytes, CheckpointQuery, CheckpointResult, CheckpointSource, JobId, Order, Outcome, Report, RunOrder, Span,
};

use crate::kit::{Cluster, Joined, rank, run, shell, wait_for};

/// When the oldest file of a test was written.
const LONG_AGO: u64 = 1_000_000_000;

/// The same order for the second attempt, whose job has left its checkpoints on another node.
fn carried(order: Order) -> Order {
    let Order::Run(order) = order else { unreachable!("it runs a job") };
    let checkpoints = Some(CheckpointSource { attempt: 1, node: "den".into() });
    Order::Run(Box::new(RunOrder { checkpoints, ..*order }))
}

/// The archive that another worker would make of a folder.
fn archive(folder: &Path) -> Vec<u8> {
    let packed = Command::new("tar").args(["-c", "-f", "-", "."]).current_dir(folder).output().unwrap();
    assert!(packed.status.success(), "{packed:?}");
    packed.stdout
}

/// A folder as a training program might leave it.
fn checkpoints(folder: &Path) {
    fs::create_dir(folder.join("epoch_9")).unwrap();
    fs::write(folder.join("epoch_9/model"), vec![7; 20_000]).unwrap();
    fs::set_permissions(folder.join("epoch_9/model"), PermissionsExt::from_mode(0o640)).unwrap();
    symlink("epoch_9", folder.join("latest")).unwrap();
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(LONG_AGO);
    File::open(folder.join("epoch_9/model")).unwrap().set_times(FileTimes::new().set_modified(at)).unwrap();
}

/// What the worker reports of the checkpoints of the first attempt.
async fn result(head: &mut Joined) -> CheckpointResult {
    loop {
        if let Report::Checkpoints { attempt, source, result } = head.report().await {
            assert_eq!((attempt, source.attempt), (rank(1).attempt, 1));
            return result;
        }
    }
}

fn folder_of(cluster: &Cluster, name: &str) -> PathBuf {
    cluster.state().join("checkpoints").join(name)
}

#[tokio::test]
async fn a_rank_finds_the_checkpoints_of_another_node_as_they_were() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let folder = tempfile::tempdir().unwrap();
    checkpoints(folder.path());
    *cluster.checkpoints.lock().unwrap() = Some(archive(folder.path()));
    fs::create_dir_all(folder_of(&cluster, "1/older")).unwrap();
    let script = "cd $COHABIT_CHECKPOINT_DIR; stat -L -c '%n %s %a %Y' latest/model; ls";
    head.order(carried(run(1, shell(script)))).await;
    assert!(matches!(result(&mut head).await, CheckpointResult::Carried(size) if size > Bytes(20_000)));
    assert_eq!(head.ended(rank(1)).await.outcome, Outcome::Exited(0));
    let printed = head.followed(rank(1)).await;
    let told = "[cohabit: the checkpoints of attempt 1 (30 KiB) were carried here from den]";
    assert!(printed.contains(told), "{printed}");
    assert!(printed.contains(&format!("latest/model 20000 640 {LONG_AGO}\nepoch_9\nlatest\n")), "{printed}");
    let left = || fs::read_dir(folder_of(&cluster, "")).unwrap().flatten();
    wait_for("the way of the checkpoints to be cleared", || left().all(|entry| entry.file_name() == "1"))
        .await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_rank_whose_checkpoints_cannot_be_had_starts_without_them_and_its_user_is_told() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    head.order(carried(run(1, shell("ls $COHABIT_CHECKPOINT_DIR")))).await;
    let CheckpointResult::Missing(why) = result(&mut head).await else { panic!("there are none") };
    assert_eq!(why, "node den is not connected");
    assert_eq!(head.ended(rank(1)).await.outcome, Outcome::Exited(0));
    let printed = head.followed(rank(1)).await;
    assert_eq!(
        printed,
        "[cohabit: this attempt starts without the checkpoints of attempt 1, which are on node den: node den is not \
         connected]\n"
    );
    assert!(folder_of(&cluster, "1-incomplete").exists());
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn an_archive_that_is_damaged_changes_nothing() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    *cluster.checkpoints.lock().unwrap() = Some(vec![b'x'; 9_000]);
    fs::create_dir_all(folder_of(&cluster, "1/older")).unwrap();
    head.order(carried(run(1, shell("ls $COHABIT_CHECKPOINT_DIR")))).await;
    let CheckpointResult::Missing(why) = result(&mut head).await else { panic!("it is no archive") };
    assert!(why.starts_with("tar failed"), "{why}");
    assert_eq!(head.ended(rank(1)).await.outcome, Outcome::Exited(0));
    assert!(head.followed(rank(1)).await.ends_with("]\nolder\n"));
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_worker_gives_its_checkpoints_away_up_to_the_limit() {
    let mut cluster = Cluster::new().await;
    let (daemon, head) = cluster.worker().await;
    let ask = |job, offset, limit| {
        let query = CheckpointQuery { job: JobId::new(job), node_rank: 0, offset, limit: Bytes(limit) };
        head.session.orders.read_checkpoints(context_for(Span::from_secs(60)), query)
    };
    let none = ask(1, 0, 1 << 30).await.unwrap().unwrap();
    assert_eq!((none.size, none.bytes.len()), (0, 0), "it has none of this job");
    fs::create_dir_all(folder_of(&cluster, "1")).unwrap();
    assert_eq!(ask(1, 0, 1 << 30).await.unwrap().unwrap().size, 0, "they are empty");
    checkpoints(&folder_of(&cluster, "1"));
    fs::write(folder_of(&cluster, "1/large"), vec![1; 3 << 20]).unwrap();
    let refused = ask(1, 0, 1 << 20).await.unwrap().unwrap_err();
    assert_eq!(
        refused.message,
        "they take more than 1 MiB, which is the most that is carried (checkpoint-limit of the head)"
    );
    let mut read = Vec::new();
    loop {
        let piece = ask(1, read.len() as u64, 1 << 30).await.unwrap().unwrap();
        assert_eq!(piece.offset, read.len() as u64);
        read.extend(piece.bytes);
        if read.len() as u64 == piece.size {
            break;
        }
    }
    let unpacked = tempfile::tempdir().unwrap();
    fs::write(unpacked.path().join("archive.tar"), &read).unwrap();
    let listed =
        Command::new("tar").args(["-t", "-f"]).arg(unpacked.path().join("archive.tar")).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("./epoch_9/model\n") && listed.contains("./large\n"), "{listed}");
    let late = ask(1, 5, 1 << 30).await.unwrap().unwrap_err();
    assert_eq!(late.message, "the archive of them was dropped while it was read");
    daemon.stop().await.unwrap();
}
