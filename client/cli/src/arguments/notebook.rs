//! Arguments of `notebook`.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use cohabit_client::types::JobRef;
use cohabit_console::DisplayArguments;
use cohabit_job_arguments::JobArguments;

use super::connection::ConnectionArguments;
use super::submission::SubmissionArguments;
use crate::completion;

/// The name of a job that is a notebook.
const NAME: &str = "notebook";

/// Starts Jupyter on a free port of the loopback address, with a token of its own in its environment. Its
/// first argument is the Python to use, or empty.
const START: &str = include_str!("notebook/start.sh");

// Arguments of `notebook`.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct NotebookArguments {
    /// Arguments for Jupyter, after --
    #[arg(value_name = "ARG", last = true)]
    pub(crate) jupyter: Vec<String>,
    /// Come back to this notebook instead of starting one: a number (12), a name, or `last`
    #[arg(long, value_name = "ID", add = ArgValueCompleter::new(completion::live_jobs))]
    #[arg(conflicts_with_all = ["JobArguments", "jupyter", "python"])]
    pub(crate) attach: Option<JobRef>,
    /// Python on the node that has JupyterLab [default: what PATH has there: jupyter-lab, jupyter-notebook or
    /// jupyter-server]
    #[arg(long, value_name = "PATH")]
    pub(crate) python: Option<String>,
    /// Port of this machine on which the notebook is opened, 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    #[command(flatten)]
    job: JobArguments,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

impl From<NotebookArguments> for SubmissionArguments {
    fn from(arguments: NotebookArguments) -> SubmissionArguments {
        let NotebookArguments { jupyter, python, mut job, connection, display, .. } = arguments;
        job.name.get_or_insert_with(|| NAME.to_owned());
        let mut command = ["/bin/sh", "-c", START, "cohabit-notebook"].map(str::to_owned).to_vec();
        command.push(python.unwrap_or_default());
        command.extend(jupyter);
        SubmissionArguments { command, job, dry_run: false, idempotency_key: None, connection, display }
    }
}
