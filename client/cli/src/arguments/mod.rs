//! What may be written on the command line.
//!
//! One file for each group of flags; `clap` reads them, completes them and names the nearest when one is
//! unknown. Nothing here acts: `commands` does.
//!
//! What is said of a group of flags or verbs is no doc comment: clap would say it of the verb that has them.

mod cluster;
mod connection;
mod daemons;
mod job;
mod jobs;
mod models;
mod submission;
mod tokens;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
#[cfg(feature = "predict")]
use cohabit_lab::predict::PredictArguments;
#[cfg(feature = "worker")]
use cohabit_lab::profile::ProfileArguments;
#[cfg(feature = "simulate")]
use cohabit_lab::simulate::SimulateArguments;

pub(crate) use self::cluster::{DoctorArguments, NodesArguments, TopArguments};
pub(crate) use self::connection::ConnectionArguments;
pub(crate) use self::daemons::*;
pub(crate) use self::job::JobArguments;
pub(crate) use self::jobs::*;
pub(crate) use self::models::ModelsArguments;
pub(crate) use self::submission::{RunArguments, SubmissionArguments, SubmitArguments};
pub(crate) use self::tokens::{
    TokenArguments, TokenCreateArguments, TokenListArguments, TokenRevokeArguments, TokenVerb,
};
pub(crate) use cohabit_console::OutputFormat;

/// Shown below the list of commands.
const AFTER_HELP: &str = "\
Settings come from flags, then COHABIT_* variables, then ./cohabit.toml, ~/.config/cohabit/config.toml and \
/etc/cohabit/config.toml. The keys of a file are head, token-file, state, listen, policy, interference, max-slowdown, lost-after, retention, \
history-retention, node-failures, join, name, devices, max-sharing, gpu-reserve, mps, nvml-library, network, \
interconnect, no-root-jobs, orphan-grace, log-limit, log-retention, log-level and log-format; a variable is the key in capitals \
with underscores (COHABIT_TOKEN_FILE), and COHABIT_LOG for log-level.

With --output json, stdout carries one JSON document (`logs`: one on each line; `run`: what the job prints), and \
errors are JSON on stderr.

Exit codes: `run` and `wait` pass on the job's own; 128+n ended by signal n; 124 time limit; 125 could not be \
started; 126 not executable; 127 not found; 130 interrupted or cancelled; 141 nobody reads our output. Our own \
trouble: 2 usage, 65 not possible as asked, 66 not found, 69 head not reachable, 70 our fault, 74 input or output, \
75 try again later, 76 not understood by the head, 77 not allowed, 78 bad configuration.";

/// Share the GPUs of a few machines between many training jobs
#[derive(Debug, Parser)]
#[command(name = "cohabit", version, after_help = AFTER_HELP, disable_help_subcommand = true)]
#[command(arg_required_else_help = true, subcommand_required = true, max_term_width = 100)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do. Only the flags of the verb that is typed are put together: all of them would be a good part of
/// the time that a command takes.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Verb {
    /// Run real training jobs side by side on this machine and show what sharing gains
    #[cfg(feature = "demo")]
    Demo(DemoArguments),
    /// Run a head and a worker on this machine
    #[cfg(all(feature = "head", feature = "worker"))]
    Up(UpArguments),
    /// Run the head of a cluster
    #[cfg(feature = "head")]
    Head(HeadArguments),
    /// Run a worker, or drain one
    Worker(WorkerArguments),
    /// Create, list and revoke tokens
    Token(TokenArguments),
    /// Submit a job and print its number
    Submit(SubmitArguments),
    /// Submit a job, follow it, and exit with its code
    Run(RunArguments),
    /// List jobs: those that are live, and those that ended within a day
    #[command(visible_aliases = ["ls", "queue"])]
    List(ListArguments),
    /// Show all there is to tell about jobs
    Show(ShowArguments),
    /// Show what a job printed
    Logs(LogsArguments),
    /// Wait until jobs have ended; exit with the first code that is not 0
    Wait(WaitArguments),
    /// End jobs
    Cancel(ChangeArguments),
    /// Do not start these jobs
    Hold(ChangeArguments),
    /// Start held jobs after all
    Release(ChangeArguments),
    /// Queue jobs again; those that run are stopped first
    Requeue(ChangeArguments),
    /// Say why a job waits, or why it ended as it did
    Explain(ExplainArguments),
    /// List nodes and their devices
    Nodes(NodesArguments),
    /// List the models of what sharing costs that the head has learned, or choose another
    Models(ModelsArguments),
    /// Show nodes, devices and live jobs on a screen of their own
    Top(TopArguments),
    /// Run a trace on a made-up cluster under several policies and compare them
    #[cfg(feature = "simulate")]
    Simulate(SimulateArguments),
    /// Train models of what sharing costs on measurements, ask them, and show what they are
    #[cfg(feature = "predict")]
    Predict(PredictArguments),
    /// Measure on a real GPU what sharing costs: workloads alone, in pairs and in triples
    #[cfg(feature = "worker")]
    Profile(ProfileArguments),
    /// Check this machine: folders, permissions, port, clock, GPUs
    Doctor(DoctorArguments),
    /// Print completions for a shell
    Completions(CompletionsArguments),
    /// Hold one rank: started by the worker, not by people
    #[cfg(feature = "worker")]
    #[command(hide = true)]
    Executor(ExecutorArguments),
    /// Train one of the built-in programs: started by `demo`
    #[cfg(feature = "demo")]
    #[command(hide = true)]
    Train(TrainArguments),
}

// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// For which shell
    pub(crate) shell: Shell,
}

// Arguments of `executor`.
#[cfg(feature = "worker")]
#[derive(Debug, Args)]
pub(crate) struct ExecutorArguments {
    /// The state folder of the worker
    pub(crate) state: std::path::PathBuf,
}

// Arguments of `train`.
#[cfg(feature = "demo")]
#[derive(Debug, Args)]
pub(crate) struct TrainArguments {
    #[command(subcommand)]
    pub(crate) program: cohabit_training::TrainingProgram,
}

impl Verb {
    /// The job to submit, if one is.
    pub(crate) fn submission(&self) -> Option<&SubmissionArguments> {
        if let Verb::Submit(SubmitArguments { submission, .. }) | Verb::Run(RunArguments { submission, .. }) =
            self
        {
            return Some(submission);
        }
        None
    }

    /// How results, and failures, are shown.
    pub(crate) fn format(&self) -> OutputFormat {
        let display = match self {
            Verb::Worker(arguments) => arguments.verb.display(),
            Verb::Token(arguments) => Some(arguments.verb.display()),
            Verb::Submit(arguments) => Some(&arguments.submission.display),
            Verb::Run(arguments) => Some(&arguments.submission.display),
            Verb::List(arguments) => Some(&arguments.display),
            Verb::Show(arguments) => Some(&arguments.display),
            Verb::Logs(arguments) => Some(&arguments.display),
            Verb::Wait(arguments) => Some(&arguments.display),
            Verb::Cancel(arguments)
            | Verb::Hold(arguments)
            | Verb::Release(arguments)
            | Verb::Requeue(arguments) => Some(&arguments.display),
            Verb::Explain(arguments) => Some(&arguments.display),
            Verb::Nodes(arguments) => Some(&arguments.display),
            Verb::Models(arguments) => Some(arguments.display()),
            Verb::Doctor(arguments) => Some(&arguments.display),
            #[cfg(feature = "simulate")]
            Verb::Simulate(arguments) => Some(&arguments.display),
            #[cfg(feature = "predict")]
            Verb::Predict(arguments) => Some(arguments.display()),
            #[cfg(feature = "worker")]
            Verb::Profile(arguments) => Some(&arguments.display),
            Verb::Top(_) | Verb::Completions(_) => None,
            #[cfg(feature = "head")]
            Verb::Head(_) => None,
            #[cfg(all(feature = "head", feature = "worker"))]
            Verb::Up(_) => None,
            #[cfg(feature = "worker")]
            Verb::Executor(_) => None,
            #[cfg(feature = "demo")]
            Verb::Demo(_) | Verb::Train(_) => None,
        };
        display.map_or(OutputFormat::Table, |display| display.output)
    }
}

#[cfg(test)]
mod tests;
