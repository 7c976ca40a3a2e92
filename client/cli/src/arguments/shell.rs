//! Arguments of `shell`, `attach` and `exec`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use cohabit_client::types::JobRef;
use cohabit_console::DisplayArguments;
use cohabit_job_arguments::JobArguments;

use super::connection::ConnectionArguments;
use super::submission::SubmissionArguments;
use crate::completion;

/// The name of a job that is a shell.
const NAME: &str = "shell";

/// Runs the login shell of the account on the node, unless that is none.
const LOGIN_SHELL: &str = r#"shell=${SHELL:-$(getent passwd "$(id -u)" 2> /dev/null | cut -d : -f 7)}
case $shell in */nologin | */false) shell= ;; esac
for shell in "$shell" /bin/bash; do [ -x "$shell" ] && export SHELL="$shell" && exec "$shell"; done
exec /bin/sh"#;

// Arguments of `shell`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct ShellArguments {
    /// Program and arguments [default: your login shell on the node, or else bash or sh]
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    command: Vec<String>,
    #[command(flatten)]
    job: JobArguments,
    #[command(flatten)]
    connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

impl From<ShellArguments> for SubmissionArguments {
    fn from(arguments: ShellArguments) -> SubmissionArguments {
        let ShellArguments { mut command, mut job, connection, display } = arguments;
        if command.is_empty() {
            command = ["/bin/sh", "-c", LOGIN_SHELL].map(str::to_owned).into();
            job.name.get_or_insert_with(|| NAME.to_owned());
        }
        SubmissionArguments { command, job, dry_run: false, idempotency_key: None, connection, display }
    }
}

// Arguments of `attach`.
#[derive(Debug, Args)]
pub(crate) struct AttachArguments {
    /// Job with a terminal: a number (12), a name, `last`, or @~1 (the one before the last)
    #[arg(value_name = "ID", add = ArgValueCompleter::new(completion::live_jobs))]
    pub(crate) job: JobRef,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `exec`.
#[derive(Debug, Args)]
pub(crate) struct ExecArguments {
    /// Running job: a number (12), an array member (12.5), a name, `last`, or @~1 (the one before the last)
    #[arg(value_name = "ID", add = ArgValueCompleter::new(completion::live_jobs))]
    pub(crate) job: JobRef,
    /// Program and arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<String>,
    /// Rank beside which it runs [default: 0]
    #[arg(long)]
    pub(crate) rank: Option<u32>,
    /// Give it a terminal, and use it here: for programs that a person types into
    #[arg(long)]
    pub(crate) pty: bool,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}
