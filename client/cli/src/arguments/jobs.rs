//! Arguments of commands on existing jobs.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use cohabit_client::types::{JobRef, JobState};
use cohabit_console::DisplayArguments;

use super::connection::{AddressArguments, ConnectionArguments};
use crate::completion;

// Arguments of `list`.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Also list jobs that ended more than a day ago, of all users; `history` shows your newest jobs only,
    /// with their commands and exit codes
    #[arg(long)]
    pub(crate) all: bool,
    /// List jobs in these states: PENDING, RUNNING, FAILED, …; a path such as ./state names the state
    /// directory of the head
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state_or_folder)]
    pub(crate) state: Vec<StateOrFolder>,
    /// List jobs of this user
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// List jobs with this name
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// List the members of this array: a number (12), a name, or `last`
    #[arg(long, value_name = "ID", add = ArgValueCompleter::new(completion::recent_jobs))]
    pub(crate) members_of: Option<JobRef>,
    #[command(flatten)]
    pub(crate) connection: AddressArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

/// A value of `--state` of commands that select jobs: a state of jobs or, as in other commands, the state
/// directory of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StateOrFolder {
    /// A state of jobs.
    State(JobState),
    /// The state directory of a head.
    Folder(PathBuf),
}

/// States are single words, so a value with a slash is a path.
fn state_or_folder(text: &str) -> Result<StateOrFolder, String> {
    if text.contains('/') {
        return Ok(StateOrFolder::Folder(text.into()));
    }
    text.parse().map(StateOrFolder::State).map_err(|error| format!("{error}, or a path like ./{text}"))
}

fn states_of(given: &[StateOrFolder]) -> Vec<JobState> {
    given
        .iter()
        .filter_map(|either| match either {
            StateOrFolder::State(state) => Some(*state),
            StateOrFolder::Folder(_) => None,
        })
        .collect()
}

fn folder_of(given: &[StateOrFolder]) -> Option<PathBuf> {
    given.iter().find_map(|either| match either {
        StateOrFolder::State(_) => None,
        StateOrFolder::Folder(folder) => Some(folder.clone()),
    })
}

impl ListArguments {
    /// The states to list; empty for all.
    pub(crate) fn states(&self) -> Vec<JobState> {
        states_of(&self.state)
    }

    /// The head to ask.
    pub(crate) fn connection(&self) -> ConnectionArguments {
        self.connection.with_state(folder_of(&self.state))
    }
}

// Arguments of `show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    pub(crate) jobs: JobReferences,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `logs`.
#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    /// Jobs: numbers (12), array members (12.5), ranges (3-7), names, `last`, or @~1 (the one before the
    /// last). The output of several jobs, or of an array, is merged in order of time, each line with its job.
    /// A live application (its name, or the number of its root job): the output of all its jobs
    #[arg(value_name = "ID", required = true, add = ArgValueCompleter::new(completion::recent_jobs))]
    pub(crate) jobs: Vec<JobRef>,
    /// Keep printing new output until the jobs have ended
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Start this many lines before the end
    #[arg(long, value_name = "COUNT")]
    pub(crate) tail: Option<u64>,
    /// Rank whose output to print [default: 0]
    #[arg(long)]
    pub(crate) rank: Option<u32>,
    /// Attempt whose output to print [default: the latest]. With --rank or --attempt the output of the root
    /// job of an application is that of its coordinator alone
    #[arg(long)]
    pub(crate) attempt: Option<u32>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `wait`.
#[derive(Debug, Args)]
pub(crate) struct WaitArguments {
    #[command(flatten)]
    pub(crate) jobs: JobReferences,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `cancel`, `hold`, `release` and `requeue`.
#[derive(Debug, Args)]
pub(crate) struct ChangeArguments {
    /// Jobs: numbers (12), array members (12.5), ranges (3-7), names, `last`, or @~1 (the one before the
    /// last)
    #[arg(value_name = "ID", add = ArgValueCompleter::new(completion::live_jobs))]
    pub(crate) references: Vec<JobRef>,
    #[command(flatten)]
    pub(crate) selection: JobSelection,
    #[command(flatten)]
    connection: AddressArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Flags that select jobs instead of naming them. All of them hold at once.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Instead of IDs")]
pub(crate) struct JobSelection {
    /// Select your jobs in these states: PENDING, RUNNING, HELD, …; a path such as ./state names the state
    /// directory of the head
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state_or_folder)]
    state: Vec<StateOrFolder>,
    /// Select the jobs of this user; admins only, unless it is your own name
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// Select your jobs with this name
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Select all your jobs that the command has an effect on
    #[arg(long)]
    pub(crate) all: bool,
}

impl JobSelection {
    /// Whether it selects nothing.
    pub(crate) fn is_empty(&self) -> bool {
        !self.all && self.user.is_none() && self.name.is_none() && self.states().is_empty()
    }

    /// The states that are given.
    pub(crate) fn states(&self) -> Vec<JobState> {
        states_of(&self.state)
    }
}

impl ChangeArguments {
    /// The head to ask.
    pub(crate) fn connection(&self) -> ConnectionArguments {
        self.connection.with_state(folder_of(&self.selection.state))
    }
}

// Arguments of `cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelArguments {
    /// End running jobs at once: send SIGKILL, without warning signal, SIGTERM and grace period
    ///
    /// Jobs that are already being stopped are killed too.
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) change: ChangeArguments,
}

// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// Job: a number (12), an array member (12.5), a name, `last`, or @~1 (the one before the last). A live
    /// application (its name, or the number of its root job): also why parts of it wait
    #[arg(value_name = "ID", add = ArgValueCompleter::new(completion::recent_jobs))]
    pub(crate) job: JobRef,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `code`.
#[derive(Debug, Args)]
pub(crate) struct CodeArguments {
    /// Job: a number (12), an array member (12.5), a name, `last`, or @~1 (the one before the last)
    #[arg(value_name = "ID", add = ArgValueCompleter::new(completion::recent_jobs))]
    pub(crate) job: JobRef,
    /// Print how many lines of each file differ, not which
    #[arg(long)]
    pub(crate) stat: bool,
    /// Compare with this directory [default: the one that the job was submitted from]
    #[arg(long, value_name = "DIR")]
    pub(crate) against: Option<PathBuf>,
    /// Write the files of the job into this directory, which must be new or empty, and compare nothing
    #[arg(long, value_name = "DIR", conflicts_with_all = ["stat", "against"])]
    pub(crate) extract: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// One or more jobs.
#[derive(Debug, Args)]
pub(crate) struct JobReferences {
    /// Jobs: numbers (12), array members (12.5), ranges (3-7), names, `last`, or @~1 (the one before the
    /// last)
    #[arg(value_name = "ID", required = true, add = ArgValueCompleter::new(completion::recent_jobs))]
    pub(crate) references: Vec<JobRef>,
}
