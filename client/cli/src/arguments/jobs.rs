//! Commands on jobs and nodes that exist.

use std::path::PathBuf;

use clap::Args;
use cohabit_client::proto::{JobRef, JobState};
use cohabit_console::DisplayArguments;

use super::connection::{AddressArguments, ConnectionArguments};

// Arguments of `list`.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Jobs that ended more than a day ago as well
    #[arg(long)]
    pub(crate) all: bool,
    /// Only in these states: PENDING, RUNNING, FAILED, …; a path (./state) names the state folder instead
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state_or_folder)]
    pub(crate) state: Vec<StateOrFolder>,
    /// Only of this user
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// Only with this name
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Only the members of this array
    #[arg(long, value_name = "ID")]
    pub(crate) members_of: Option<u64>,
    #[command(flatten)]
    pub(crate) connection: AddressArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

/// What `list --state` names: a state of jobs, or, as for every other command, the state folder of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StateOrFolder {
    /// Jobs in this state.
    State(JobState),
    /// The head with this folder.
    Folder(PathBuf),
}

/// States are single words, so whatever has a slash is a path.
fn state_or_folder(text: &str) -> Result<StateOrFolder, String> {
    if text.contains('/') {
        return Ok(StateOrFolder::Folder(text.into()));
    }
    text.parse().map(StateOrFolder::State).map_err(|error| format!("{error}, or a path like ./{text}"))
}

impl ListArguments {
    /// The states to list; none for all.
    pub(crate) fn states(&self) -> Vec<JobState> {
        self.state
            .iter()
            .filter_map(|either| match either {
                StateOrFolder::State(state) => Some(*state),
                StateOrFolder::Folder(_) => None,
            })
            .collect()
    }

    /// Where the head is.
    pub(crate) fn connection(&self) -> ConnectionArguments {
        let folder = self.state.iter().find_map(|either| match either {
            StateOrFolder::State(_) => None,
            StateOrFolder::Folder(folder) => Some(folder.clone()),
        });
        self.connection.with_state(folder)
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
    /// The job: a number (12), a member (12.5), last, @~1 or a name
    #[arg(value_name = "ID")]
    pub(crate) job: JobRef,
    /// Go on until the job has ended
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Begin this many lines before the end
    #[arg(long, value_name = "COUNT")]
    pub(crate) tail: Option<u64>,
    /// Of this rank
    #[arg(long, default_value_t = 0)]
    pub(crate) rank: u32,
    /// Of this attempt; the latest without it
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
    #[command(flatten)]
    pub(crate) jobs: JobReferences,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// Arguments of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// The job: a number (12), a member (12.5), last, @~1 or a name
    #[arg(value_name = "ID")]
    pub(crate) job: JobRef,
    #[command(flatten)]
    pub(crate) connection: ConnectionArguments,
    #[command(flatten)]
    pub(crate) display: DisplayArguments,
}

// One or more jobs.
#[derive(Debug, Args)]
pub(crate) struct JobReferences {
    /// Jobs: numbers (12), members (12.5), ranges (3-7), last, @~1 or names
    #[arg(value_name = "ID", required = true)]
    pub(crate) references: Vec<JobRef>,
}
