//! What the head says of a runner's job: its present state, so that a later report replaces an earlier one.

/// The record of a job, as far as the coordinator needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerReport {
    /// So many of its attempts have ended for certain: no process of them runs.
    pub ended_attempts: u32,
    /// What the job does now.
    pub state: RunnerState,
}

/// Of what there is too little for a job that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunnerShortage {
    /// GPUs, or their memory.
    Gpus,
    /// Cores, or memory of nodes.
    Host,
    /// Its user may run no more jobs.
    Jobs,
}

/// What a runner's job does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerState {
    /// It waits, for the first time or to be tried again.
    Waiting {
        /// Why, as the head says.
        why: String,
        /// What it waits for, if others of the application may hold that.
        shortage: Option<RunnerShortage>,
    },
    /// An attempt is live.
    Live,
    /// All is over, and with it every attempt.
    Ended {
        /// The exit code; of a process that a signal ended, 128 and the signal.
        code: i32,
        /// How it ended, as the head says.
        text: String,
    },
}
