//! What a launcher has launched, or why it has not.

use cohabit_client::Error;
use cohabit_types::JobId;

/// The exit code of a launcher that failed itself.
pub(super) const FAILED: i32 = 1;

/// The exit code where another build of the program runs: sysexits' EX_CONFIG.
pub(super) const ANOTHER_BUILD: i32 = 78;

/// Why a launcher cannot go on.
#[derive(Debug)]
pub(super) struct LaunchFailure {
    pub(super) code: i32,
    pub(super) text: String,
}

impl From<Error> for LaunchFailure {
    fn from(error: Error) -> LaunchFailure {
        LaunchFailure { code: FAILED, text: error.to_string() }
    }
}

/// What was launched.
#[derive(Debug, Clone, Copy)]
pub(super) enum Launched {
    /// The root job of an application: its first main is to be followed.
    Root(JobId),
    /// A main in an application that runs already.
    Main(JobId),
}

/// How what was launched has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LaunchEnd {
    /// With the exit code of its main.
    Ended(i32),
    /// The application that it joined was about to end, and did not let its main in.
    NotBegun,
}

impl Launched {
    /// The job that ends all that was launched.
    pub(super) fn to_cancel(self) -> JobId {
        let (Launched::Root(job) | Launched::Main(job)) = self;
        job
    }
}
