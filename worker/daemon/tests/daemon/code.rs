//! Ranks that run in a copy of their code.

use std::path::PathBuf;

use cohabit_store::{FileContent, FileSelection, Manifest, ManifestFile, hash_of};
use cohabit_types::{
    CodeSnapshot, ContentHash, ContentPiece, JobSpec, Order, Outcome, PIECE_BYTES, StartFailure, StopReason,
};

use crate::kit::{Cluster, rank, run, shell, until, wait_for};

/// A file in pieces, one at least.
fn pieces(content: &[u8]) -> Vec<ContentPiece> {
    let (file, size) = (hash_of(content), content.len() as u64);
    let offsets = (0..content.len().max(1)).step_by(PIECE_BYTES);
    let piece = |offset: usize| {
        let bytes = content[offset..content.len().min(offset + PIECE_BYTES)].into();
        ContentPiece { file, size, offset: offset as u64, bytes }
    };
    offsets.map(piece).collect()
}

impl Cluster {
    /// A folder with these files, stored at the head.
    pub(crate) fn snapshot(&self, files: &[(&str, &[u8])]) -> CodeSnapshot {
        let listed = files.iter().map(|(path, content)| {
            let (hash, size) = (hash_of(content), content.len() as u64);
            let content = FileContent::Stored { hash, size, is_executable: path.ends_with(".sh") };
            ManifestFile { path: (*path).into(), content }
        });
        let manifest = Manifest::new(FileSelection::Git, listed.collect()).unwrap();
        let (hash, bytes) = manifest.encode();
        let contents = files.iter().map(|(_, content)| *content).chain([&bytes[..]]);
        self.code.put(&contents.flat_map(pieces).collect::<Vec<_>>()).unwrap();
        CodeSnapshot {
            manifest: hash,
            folder: "/no/such/folder".into(),
            files: files.len() as u64,
            bytes: manifest.bytes(),
        }
    }

    fn copy_of(&self, job: u64) -> PathBuf {
        self.state().join(format!("code/{job}/1/files"))
    }
}

/// A job that runs this script in a snapshot, in the directory `src`.
fn job(script: &str, code: &CodeSnapshot) -> JobSpec {
    JobSpec { code: Some(code.clone()), workdir: "/no/such/folder/src".into(), ..shell(script) }
}

#[tokio::test]
async fn a_rank_runs_in_a_copy_of_its_code_that_goes_away_with_it() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let code = cluster.snapshot(&[("src/run.sh", b"#!/bin/sh\ncat ../data.txt"), ("data.txt", b"12\n")]);
    head.order(run(1, job("./run.sh; pwd; echo $COHABIT_CODE_DIR; echo $COHABIT_SUBMIT_DIR", &code))).await;
    assert_eq!(head.ended(rank(1)).await.outcome, Outcome::Exited(0));
    let expected = format!("12\n{0}/src\n{0}\n/no/such/folder/src\n", cluster.copy_of(1).display());
    assert_eq!(head.followed(rank(1)).await, expected);
    wait_for("the copy to be removed", || !cluster.state().join("code/1").exists()).await;
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn what_a_rank_wrote_into_its_copy_stays() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let code = cluster.snapshot(&[("src/a.py", b"1"), ("b.py", b"2")]);
    head.order(run(1, job("echo 0.5 > loss.csv; echo 3 > ../b.py", &code))).await;
    assert_eq!(head.ended(rank(1)).await.outcome, Outcome::Exited(0));
    let copy = cluster.copy_of(1);
    wait_for("the rest of the copy to be removed", || !copy.join("src/a.py").exists()).await;
    assert_eq!(std::fs::read_to_string(copy.join("src/loss.csv")).unwrap(), "0.5\n");
    assert_eq!(std::fs::read_to_string(copy.join("b.py")).unwrap(), "3\n");
    daemon.stop().await.unwrap();
}

/// The second job fetches only what the first did not have.
#[tokio::test]
async fn files_are_fetched_once() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let large = vec![7; 3 << 20];
    let code = cluster.snapshot(&[("src/a.py", b"1"), ("large", &large)]);
    head.order(run(1, job("stat -c %s ../large", &code))).await;
    assert_eq!(head.ended(rank(1)).await.outcome, Outcome::Exited(0));
    assert_eq!(head.followed(rank(1)).await, format!("{}\n", large.len()));
    let fetched = cluster.pieces_read();
    let code = cluster.snapshot(&[("src/a.py", b"9"), ("large", &large)]);
    head.order(run(2, job("cat a.py", &code))).await;
    assert_eq!(head.ended(rank(2)).await.outcome, Outcome::Exited(0));
    assert_eq!(head.followed(rank(2)).await, "9");
    assert_eq!(cluster.pieces_read() - fetched, 2, "the manifest and the file that changed");
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn code_that_the_head_no_longer_has_is_named() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let code = CodeSnapshot { manifest: ContentHash([9; 32]), ..cluster.snapshot(&[]) };
    head.order(run(1, job("true", &code))).await;
    let Outcome::NotStarted(StartFailure::Other(why)) = head.ended(rank(1)).await.outcome else { panic!() };
    assert!(why.contains("code snapshot cannot be used") && why.contains("is not stored"), "{why}");
    daemon.stop().await.unwrap();
}

#[tokio::test]
async fn a_copy_outlives_the_daemon_and_the_next_one_removes_it() {
    let mut cluster = Cluster::new().await;
    let (daemon, mut head) = cluster.worker().await;
    let code = cluster.snapshot(&[("src/a.py", b"1")]);
    let go = cluster.path().join("go");
    head.order(run(1, job(&format!("{}; cat a.py", until(&go)), &code))).await;
    head.started(rank(1)).await;
    head.order(run(2, job(&until(&go), &code))).await;
    head.started(rank(2)).await;
    daemon.stop().await.unwrap();
    let (daemon, mut head) = cluster.worker().await;
    assert!(cluster.copy_of(1).exists() && cluster.copy_of(2).exists());
    head.order(Order::Stop { attempt: rank(2).attempt, why: StopReason::Killed }).await;
    assert_eq!(head.ended(rank(2)).await.stopped, Some(StopReason::Killed));
    wait_for("the copy of a stopped rank to go", || !cluster.copy_of(2).exists()).await;
    daemon.stop().await.unwrap();
    std::fs::write(&go, "").unwrap();
    let outcome = cluster.folder_of(rank(1)).join("outcome.json");
    wait_for("the end of the rank", || outcome.exists()).await;
    assert!(cluster.copy_of(1).exists(), "without a daemon it stays");
    let (daemon, mut head) = cluster.worker().await;
    assert_eq!(head.ended(rank(1)).await.outcome, Outcome::Exited(0));
    assert_eq!(head.followed(rank(1)).await, "1");
    wait_for("the copy to be removed", || !cluster.state().join("code/1").exists()).await;
    daemon.stop().await.unwrap();
}
