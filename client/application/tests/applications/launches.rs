//! The program started by hand, as its launcher.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use cohabit_client::types::{JobId, JobState};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::fake_head::FakeHead;
use crate::fake_jobs::end_of;
use crate::program;

/// The program with what it needs to reach the head.
fn launcher(head: &FakeHead, program: &Path, arguments: &[&str]) -> Command {
    let token = head.folder().join("ada.token");
    head.connect_options().token.write_file(&token).unwrap();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(head.folder())
        .env("COHABIT_HEAD", head.connect_options().head)
        .env("COHABIT_TOKEN_FILE", token)
        .env_remove("RUST_BACKTRACE")
        .kill_on_drop(true);
    command
}

/// Runs a launcher to its end: its exit code, and what it printed.
async fn launch(head: &FakeHead, program: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = launcher(head, program, arguments).output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The program with one byte more.
fn another_build(head: &FakeHead) -> PathBuf {
    let folder = head.folder().join("other");
    std::fs::create_dir_all(&folder).unwrap();
    let other = folder.join("actors");
    // By another process: what this one has open for writing, processes of other tests inherit, and as long
    // as they hold it, it cannot be executed.
    let mut copying = std::process::Command::new("sh");
    copying.args(["-c", r#"cp "$0" "$1" && printf ! >> "$1""#]).arg(program()).arg(&other);
    assert!(copying.status().unwrap().success());
    other
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launcher_shows_what_main_prints_and_exits_with_its_code() {
    let head = FakeHead::start().await;
    let (code, out, err) = launch(&head, &program(), &["count"]).await;
    assert_eq!((code, out.as_str()), (Some(0), "total 7\n"), "{err}");
    assert_eq!(err, "cohabit: application 'actors' is job 1\ncounted\n");
    let manifests: Vec<_> =
        head.jobs().values().map(|job| job.spec.code.as_ref().unwrap().manifest).collect();
    assert_eq!(manifests, [manifests[0]; 3], "root, main and actor run the same program");
    let (code, _, err) = launch(&head, &program(), &["fail"]).await;
    assert_eq!(code, Some(1));
    assert!(err.contains("main failed: nothing to do"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_launch_joins_and_another_build_is_refused() {
    let head = FakeHead::start().await;
    let (code, _, err) = launch(&head, &program(), &["leave_a_detached_actor"]).await;
    assert_eq!(code, Some(0), "{err}");
    let root = head.jobs()[&JobId::new(1)].record.clone();
    assert_eq!(root.state, JobState::Running);

    let (code, _, err) = launch(&head, &another_build(&head), &["count"]).await;
    assert_eq!(code, Some(78), "{err}");
    let hash = root.code.unwrap().manifest.to_string();
    assert!(err.contains("runs another build") && err.contains(&hash), "{err}");

    let (code, _, err) = launch(&head, &program(), &["stop_the_detached_actor"]).await;
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("joins application 'actors', job 1, as job 4"), "{err}");
    assert_eq!(end_of(&head.ended(JobId::new(1)).await), (JobState::Completed, Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_cancels_the_application() {
    let head = FakeHead::start().await;
    let mut launcher = launcher(&head, &program(), &["wait"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(launcher.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("waits with 1"));
    kill(Pid::from_raw(launcher.id().unwrap() as i32), Signal::SIGINT).unwrap();
    let status = launcher.wait().await.unwrap();
    assert_eq!(status.code(), Some(130));
    assert_eq!(head.ended(JobId::new(1)).await.state, JobState::Cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_without_a_head_says_what_to_set() {
    let head = FakeHead::start().await;
    let mut command = launcher(&head, &program(), &["count"]);
    let output =
        command.env_remove("COHABIT_HEAD").env("COHABIT_STATE", head.folder()).output().await.unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(err.contains("set COHABIT_HEAD=HOST:PORT"), "{err}");
}
