//! The first command of the README: `cohabit demo`.

use crate::kit::*;

#[test]
fn the_demo_trains_six_jobs_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let output = cohabit(folder.path()).arg("demo").env("TMPDIR", &temporary).output().unwrap();
    let ran = CommandOutput::from(output);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.matches("COMPLETED").count() >= 6, "{}", ran.stdout);
    assert!(ran.stdout.contains("accuracy"), "{}", ran.stdout);
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "files are left");
    // An executor that waited for work ends when it sees that nobody is there to bring it any.
    let others = |pid: &i32| *pid != std::process::id() as i32;
    let left = || processes_with(&folder.path().display().to_string()).into_iter().filter(others).count();
    until("no process is left", || left() == 0);
}
