//! Arguments of `submit` and `run`: the flags of the job and of its submission, and the command.

use clap::Args;
use cohabit_console::DisplayArguments;
use cohabit_job_arguments::{COMMON, JobArguments, ORDER};

use super::connection::ConnectionArguments;

// Arguments of `submit`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct SubmitArguments {
    #[command(flatten)]
    pub(crate) following: WaitFlag,
    #[command(flatten)]
    pub(crate) submission: SubmissionArguments,
}

// Arguments of `run`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct RunArguments {
    /// Give the job a terminal, and use it here: for programs that a person types into
    #[arg(help_heading = COMMON, long)]
    pub(crate) pty: bool,
    #[command(flatten)]
    pub(crate) submission: SubmissionArguments,
}

// What `submit` does after the submission.
#[derive(Debug, Args)]
pub(crate) struct WaitFlag {
    /// Wait until the job has ended and exit with its exit code
    #[arg(help_heading = COMMON, long)]
    pub(crate) wait: bool,
}

// The arguments that `submit` and `run` have in common.
#[derive(Debug, Args)]
pub(crate) struct SubmissionArguments {
    /// Program and arguments; a script that starts with #! is copied into the job
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) job: JobArguments,
    /// Check the job, show where it would run, and submit nothing
    #[arg(help_heading = COMMON, long)]
    pub(crate) dry_run: bool,
    /// Key of this submission; submitting again with the same key creates no second job
    #[arg(help_heading = ORDER, long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}
