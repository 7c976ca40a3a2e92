//! What `#[cohabit::test]` makes of a test: an application of its own, all of it in the process of the tests.

use std::fs::{DirBuilder, File, remove_dir_all};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use cohabit_types::{
    ApplicationAccess, ApplicationCredentials, ApplicationSecret, Bytes, CodeSnapshot, ContentHash, JobId,
};
use futures::future::LocalBoxFuture;

use super::thread_jobs::{ThreadJobs, on_this_thread};
use crate::coordinator::coordinate_threads;
use crate::error::Error;
use crate::process::MemberProcess;
use crate::start_entry::MainEntry;
use crate::{registry, runner};

/// So many GPUs may the application of a test claim if nothing else is said. None is used.
const MOST_GPUS: u32 = 1_000;

/// How long threads of a test that is over have to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a test may return.
pub trait TestReturn {
    /// Whether it went well.
    ///
    /// # Errors
    /// Why not, in words.
    fn outcome(self) -> Result<(), String>;
}

impl TestReturn for () {
    fn outcome(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Into<Error>> TestReturn for Result<(), E> {
    fn outcome(self) -> Result<(), String> {
        self.map_err(|error| error.into().to_string())
    }
}

/// Runs a test as the `main` of an application.
///
/// # Panics
/// If the test does or returns an error, or if the application cannot run.
pub fn run_test(entry: MainEntry, test: fn() -> LocalBoxFuture<'static, Result<(), String>>) {
    registry::check();
    let ended = TestFolder::create().and_then(|folder| {
        let access = access(&folder.0, entry)?;
        run_in(entry, access, test)
    });
    let ended = ended.unwrap_or_else(|error| Err(format!("the test cannot run: {error}")));
    assert!(ended.is_ok(), "{}", ended.err().unwrap_or_default());
}

/// Runs the application in a folder.
fn run_in(
    entry: MainEntry,
    access: ApplicationAccess,
    test: fn() -> LocalBoxFuture<'static, Result<(), String>>,
) -> io::Result<Result<(), String>> {
    let jobs = ThreadJobs::new(access.clone());
    let (main, surroundings) = jobs.main()?;
    let followed = jobs.clone();
    let coordinate = move || on_this_thread(coordinate_threads(access, entry, followed));
    let coordinator = thread::Builder::new().name("coordinator".into()).spawn(coordinate)?;
    let run_main = || on_this_thread(runner::run_main(main, &surroundings, test));
    let ended = catch_unwind(AssertUnwindSafe(run_main));
    let went_well = matches!(ended, Ok(Ok(Ok(Ok(())))));
    jobs.main_ended(i32::from(!went_well));
    let coordinated = coordinator.join();
    jobs.end(PATIENCE);
    MemberProcess::leave_thread();
    let ended = ended.unwrap_or_else(|panic| resume_unwind(panic))?.flatten();
    let coordinated = coordinated.unwrap_or_else(|panic| resume_unwind(panic))?;
    Ok(ended.and(coordinated.map(drop)))
}

fn access(folder: &Path, entry: MainEntry) -> io::Result<ApplicationAccess> {
    let mut secret = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut secret)?;
    let root = JobId::new(1).attempt(1).rank(0);
    Ok(ApplicationAccess {
        application: root.attempt,
        member: root,
        credentials: ApplicationCredentials { secret: ApplicationSecret(secret), token: None },
        // It is here already.
        code: CodeSnapshot {
            manifest: ContentHash([0; 32]),
            folder: String::new(),
            files: 0,
            bytes: Bytes(0),
        },
        head: String::new(),
        directory: folder.to_owned(),
        gpus: entry.max_gpus.unwrap_or(MOST_GPUS),
        node: "test".into(),
        port: None,
        coordinator: None,
        coordinator_node: "test".into(),
    })
}

/// A folder for the sockets and checkpoints of a test, which only its account enters.
struct TestFolder(PathBuf);

impl TestFolder {
    fn create() -> io::Result<TestFolder> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let folder = std::env::temp_dir().join(format!("cohabit-test-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(TestFolder(folder)),
                // Of an earlier process with this number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        // A thread that did not end may still use it.
        let _removed = remove_dir_all(&self.0);
    }
}
