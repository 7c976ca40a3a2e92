//! A cgroup for each worker, where the machine has some for tests: the virtual machine of
//! `integration/kernel/run`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Names the cgroup, delegated to the tests and without processes, in which each worker gets one of its own.
const VARIABLE: &str = "COHABIT_TEST_CGROUP";

/// What version 2 of cgroups must limit.
const CONTROLLERS: &str = "+cpu +memory +pids";

/// Enters the cgroup as service managers do, then runs the rest. A cgroup whose ranks live takes no process
/// itself, only the daemon's leaf in it does.
const ENTER: &str = "for leaf in \"$0/daemon\" \"$0\"; do \
                     { echo 0 > \"$leaf/cgroup.procs\"; } 2>/dev/null && exec \"$@\"; done; exit 1";

/// Numbers the cgroups of this process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The cgroup of one worker.
#[derive(Debug)]
pub(crate) struct Cgroup(PathBuf);

impl Cgroup {
    /// Whether a test that needs cgroups must be skipped, and says so.
    #[expect(clippy::print_stderr, reason = "whoever runs the tests should know what they could not try")]
    pub(crate) fn is_skipped() -> bool {
        let skipped = std::env::var_os(VARIABLE).is_none();
        if skipped {
            eprintln!("skipped: this machine has no cgroups for tests; run integration/kernel/run");
        }
        skipped
    }

    /// Creates one, if this machine has cgroups for tests.
    pub(crate) fn create() -> Option<Cgroup> {
        let around = PathBuf::from(std::env::var_os(VARIABLE)?);
        fs::write(around.join("cgroup.subtree_control"), CONTROLLERS).unwrap();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = around.join(format!("worker-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        Some(Cgroup(path))
    }

    /// The command that runs this one inside.
    pub(crate) fn wrap(&self, program: &Path, arguments: Vec<String>) -> (PathBuf, Vec<String>) {
        let program = program.display().to_string();
        let start = ["-c".to_owned(), ENTER.to_owned(), self.0.display().to_string(), program];
        ("/bin/sh".into(), start.into_iter().chain(arguments).collect())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The cgroup of an attempt of a job.
    pub(crate) fn attempt(&self, attempt: &str) -> PathBuf {
        self.0.join("ranks").join(attempt)
    }
}

/// Ends what is left in it.
impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
    }
}
