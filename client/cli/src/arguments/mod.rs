//! The command line: subcommands, flags and their help texts.
//!
//! One file for each group of flags. `clap` parses and completes them, and suggests the closest name for an
//! unknown one. Nothing here acts; `commands` does.
//!
//! Comments on structs of flags are plain comments: clap would print a doc comment as the help of the command
//! that uses them.

mod applications;
mod catalog;
mod cluster;
mod connection;
mod cp;
mod daemons;
#[cfg(feature = "export")]
mod export;
mod forward;
mod history;
mod jobs;
mod metrics;
mod models;
mod notebook;
#[cfg(feature = "notify")]
mod notify;
mod report;
mod reserve;
#[cfg(all(feature = "head", feature = "worker"))]
mod service;
mod share;
mod shell;
mod slurm;
mod submission;
mod sweep;
#[cfg(any(feature = "web", feature = "export"))]
mod tls;
mod tokens;
mod update;
#[cfg(feature = "web")]
mod web;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
#[cfg(all(feature = "simulate", feature = "predict"))]
use cohabit_lab::policy::PolicyArguments;
#[cfg(feature = "predict")]
use cohabit_lab::predict::PredictArguments;
#[cfg(feature = "worker")]
use cohabit_lab::profile::ProfileArguments;
#[cfg(feature = "simulate")]
use cohabit_lab::simulate::SimulateArguments;

pub(crate) use self::applications::{ApplicationArguments, ApplicationsArguments, TasksArguments};
pub(crate) use self::catalog::help_command;
pub(crate) use self::cluster::{DoctorArguments, NodesArguments, TopArguments};
pub(crate) use self::connection::ConnectionArguments;
pub(crate) use self::cp::{CpArguments, JobPath, NO_UPLOAD};
pub(crate) use self::daemons::*;
#[cfg(feature = "export")]
pub(crate) use self::export::ExportArguments;
pub(crate) use self::forward::ForwardArguments;
pub(crate) use self::history::{HistoryArguments, LastArguments};
pub(crate) use self::jobs::*;
pub(crate) use self::metrics::MetricsArguments;
pub(crate) use self::models::ModelsArguments;
pub(crate) use self::notebook::NotebookArguments;
#[cfg(feature = "notify")]
pub(crate) use self::notify::NotifyArguments;
pub(crate) use self::report::{
    ReportArguments, ReportIdleArguments, ReportJobArguments, ReportOutput, ReportSumsArguments, ReportVerb,
};
pub(crate) use self::reserve::{ReserveArguments, ReserveVerb};
#[cfg(all(feature = "head", feature = "worker"))]
pub(crate) use self::service::{ServiceArguments, ServiceDaemon, ServiceInstallArguments, ServiceVerb};
pub(crate) use self::share::{ShareArguments, ShareVerb};
pub(crate) use self::shell::{AttachArguments, ExecArguments, ShellArguments};
pub(crate) use self::slurm::{SlurmArguments, SlurmProgram, SlurmShimsArguments};
pub(crate) use self::submission::{RunArguments, SubmissionArguments, SubmitArguments};
pub(crate) use self::sweep::{
    SweepArguments, SweepOutput, SweepResumeArguments, SweepShowArguments, SweepSubmitArguments, SweepVerb,
};
pub(crate) use self::tokens::{
    TokenArguments, TokenCreateArguments, TokenListArguments, TokenRevokeArguments, TokenVerb,
};
pub(crate) use self::update::UpdateArguments;
#[cfg(feature = "web")]
pub(crate) use self::web::WebArguments;
use crate::config::SettingKey;
pub(crate) use cohabit_console::OutputFormat;
pub(crate) use cohabit_job_arguments::{JobArguments, SnapshotArgument};

/// The text below the list of commands.
fn after_help() -> String {
    let keys = SettingKey::ALL.iter().map(|key| key.name()).collect::<Vec<_>>().join(", ");
    format!(
        "\
Settings are taken from flags, then from COHABIT_* environment variables, then from ./cohabit.toml, \
~/.config/cohabit/config.toml and /etc/cohabit/config.toml. The keys of a file are {keys}. The environment \
variable for a key is COHABIT_ followed by its name in capitals with underscores, such as COHABIT_TOKEN_FILE; \
the one for log-level is COHABIT_LOG.

With --output json, stdout carries one JSON document (`logs`: one per line; `run`: the output of the job), and \
errors are JSON on stderr.

Exit codes: `run` and `wait` return the exit code of the job; 128+N: killed by signal N; 124: time limit reached; \
125: could not be started; 126: not executable; 127: command not found; 130: interrupted or cancelled; 141: the \
reader closed the output. Errors of cohabit itself: 2: usage error; 65: request cannot be satisfied; 66: not found; \
69: head unreachable; 70: internal error; 74: input or output error; 75: try again later; 76: protocol error; \
77: not permitted; 78: configuration error."
    )
}

/// Share the GPUs of a few machines between many training jobs
#[derive(Debug, Parser)]
#[command(name = "cohabit", version, after_help = after_help(), disable_help_subcommand = true)]
#[command(arg_required_else_help = true, subcommand_required = true, max_term_width = 100)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The subcommands. Only the flags of the subcommand that is used are built: building all of them would take
/// a large part of the run time of a command.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Verb {
    /// Run real training jobs that share this machine and show what sharing gains
    #[cfg(feature = "demo")]
    Demo(DemoArguments),
    /// Run a head and a worker on this machine, in the foreground
    #[cfg(all(feature = "head", feature = "worker"))]
    Up(UpArguments),
    /// Run the head of a cluster
    #[cfg(feature = "head")]
    Head(HeadArguments),
    /// Run a worker, or drain and resume a node
    Worker(WorkerArguments),
    /// Create, list and revoke tokens
    Token(TokenArguments),
    /// Submit a job and print its number
    Submit(SubmitArguments),
    /// Submit a job, print its output, and exit with its exit code
    Run(RunArguments),
    /// Train with many parameters as one array, stop members early, and compare them
    Sweep(Box<SweepArguments>),
    /// Submit a job with a terminal, a shell if there is no command, and use it here
    Shell(ShellArguments),
    /// Start Jupyter as a job, and print the address to open in a browser here
    Notebook(Box<NotebookArguments>),
    /// Use the terminal of a job that was started with `shell` or `run --pty`
    Attach(AttachArguments),
    /// Run a further process in the environment of a running job
    Exec(ExecArguments),
    /// Copy files of jobs to this machine, while they run and after they have ended
    Cp(CpArguments),
    /// Connect a port of this machine with one on which a running job listens
    Forward(ForwardArguments),
    /// List jobs that are pending or running, or ended within the last day
    #[command(visible_aliases = ["ls", "queue"])]
    List(ListArguments),
    /// Show your newest job in one line: id, name and state
    Last(LastArguments),
    /// List your newest jobs with their commands, times and exit codes, however long ago they ended
    History(HistoryArguments),
    /// Show jobs in full
    Show(ShowArguments),
    /// Print the output of a job, or of all jobs of an application
    Logs(LogsArguments),
    /// Show the metrics that jobs have reported: a summary, as CSV, or a plot
    Metrics(MetricsArguments),
    /// Wait until jobs have ended and exit with the first exit code other than 0
    Wait(WaitArguments),
    /// Cancel jobs
    Cancel(CancelArguments),
    /// Hold pending jobs, so that they do not start
    Hold(ChangeArguments),
    /// Release held jobs
    Release(ChangeArguments),
    /// Queue jobs again; running jobs are stopped first
    Requeue(ChangeArguments),
    /// Change the priority, time limit, retries or begin time of jobs that wait
    Update(UpdateArguments),
    /// Explain why a job or a part of an application is waiting, or how a job ended
    Explain(ExplainArguments),
    /// List live applications with their processes
    Applications(ApplicationsArguments),
    /// List the actors of an application
    Actors(ApplicationArguments),
    /// List the tasks of an application and the processes that run them
    Tasks(TasksArguments),
    /// List the objects of an application: values of more than 64 KiB
    Objects(ApplicationArguments),
    /// Show how files have changed since a job was submitted with --snapshot, or extract its files
    Code(CodeArguments),
    /// List nodes and their devices
    Nodes(NodesArguments),
    /// Show who holds and is entitled to which share of the GPUs, or apply a table of projects
    Share(ShareArguments),
    /// Reserve nodes for maintenance or for some users, and list or cancel reservations
    Reserve(ReserveArguments),
    /// Report what users and projects had over some days, what a job did, or which jobs do nothing
    Report(Box<ReportArguments>),
    /// List the slowdown models that the head has learned, or choose one
    Models(ModelsArguments),
    /// Show nodes, devices and jobs on a live screen
    Top(TopArguments),
    /// Serve pages about the cluster to a browser on this machine
    #[cfg(feature = "web")]
    Web(WebArguments),
    /// Serve metrics of the cluster for Prometheus
    #[cfg(feature = "export")]
    Export(ExportArguments),
    /// Tell people what happens on the cluster: by mail, chats and webhooks
    #[cfg(feature = "notify")]
    Notify(NotifyArguments),
    /// Replay a trace on a simulated cluster and compare scheduling policies
    #[cfg(feature = "simulate")]
    Simulate(SimulateArguments),
    /// Train agents for the policy maifs in the simulator, and show them
    #[cfg(all(feature = "simulate", feature = "predict"))]
    Policy(PolicyArguments),
    /// Train, evaluate and show models that predict the slowdown of jobs sharing a GPU
    #[cfg(feature = "predict")]
    Predict(PredictArguments),
    /// Measure the slowdown of workloads that share a real GPU, in pairs and triples
    #[cfg(feature = "worker")]
    Profile(ProfileArguments),
    /// Check this machine (directories, permissions, port, clock, GPUs) or the cluster
    Doctor(DoctorArguments),
    /// Print a completion script for a shell
    Completions(CompletionsArguments),
    /// Make the head or a worker a service of systemd
    #[cfg(all(feature = "head", feature = "worker"))]
    Service(ServiceArguments),
    /// Write programs sbatch, squeue, scancel and sinfo that call cohabit, for scripts written for Slurm
    SlurmShims(SlurmShimsArguments),
    /// Do what a program of Slurm does; the programs that slurm-shims writes start this command
    #[command(hide = true, disable_help_flag = true)]
    Slurm(SlurmArguments),
    /// Run ranks for the worker, which starts this command
    #[cfg(feature = "worker")]
    #[command(hide = true)]
    Executor(ExecutorArguments),
    /// Read files of a job for the worker, which starts this command
    #[cfg(feature = "worker")]
    #[command(hide = true)]
    CopyReader,
    /// Run a built-in training program for `demo`, which starts this command
    #[cfg(feature = "demo")]
    #[command(hide = true)]
    Train(TrainArguments),
}

// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// Shell that the script is for
    pub(crate) shell: Shell,
}

// Arguments of `executor`.
#[cfg(feature = "worker")]
#[derive(Debug, Args)]
pub(crate) struct ExecutorArguments {
    /// State directory of the worker
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
    /// The flags and the command of the job to submit, if there is one.
    pub(crate) fn submitted(&self) -> Option<(&JobArguments, &[String])> {
        if let Verb::Submit(SubmitArguments { submission, .. }) | Verb::Run(RunArguments { submission, .. }) =
            self
        {
            return Some((&submission.job, &submission.command));
        }
        let submission = self.submitted_sweep()?;
        Some((&submission.job, &submission.command))
    }

    /// The sweep to submit, if this is one.
    pub(crate) fn submitted_sweep(&self) -> Option<&SweepSubmitArguments> {
        if let Verb::Sweep(arguments) = self
            && arguments.verb.is_none()
        {
            return Some(&arguments.submission);
        }
        None
    }

    /// The output format of results and errors.
    pub(crate) fn format(&self) -> OutputFormat {
        let display = match self {
            Verb::Worker(arguments) => arguments.verb.display(),
            Verb::Token(arguments) => Some(arguments.verb.display()),
            Verb::Submit(arguments) => Some(&arguments.submission.display),
            Verb::Run(arguments) => Some(&arguments.submission.display),
            Verb::Sweep(arguments) => return arguments.format(),
            Verb::Shell(arguments) => Some(&arguments.display),
            Verb::Exec(arguments) => Some(&arguments.display),
            Verb::Notebook(arguments) => Some(&arguments.display),
            Verb::Cp(arguments) => Some(&arguments.display),
            Verb::Forward(arguments) => Some(&arguments.display),
            Verb::Attach(arguments) => Some(&arguments.display),
            Verb::List(arguments) => Some(&arguments.display),
            Verb::Last(arguments) => Some(&arguments.display),
            Verb::History(arguments) => Some(&arguments.display),
            Verb::Show(arguments) => Some(&arguments.display),
            Verb::Logs(arguments) => Some(&arguments.display),
            Verb::Metrics(arguments) => Some(&arguments.display),
            Verb::Update(arguments) => Some(&arguments.display),
            Verb::Wait(arguments) => Some(&arguments.display),
            Verb::Cancel(arguments) => Some(&arguments.change.display),
            Verb::Hold(arguments) | Verb::Release(arguments) | Verb::Requeue(arguments) => {
                Some(&arguments.display)
            }
            Verb::Explain(arguments) => Some(&arguments.display),
            Verb::Applications(arguments) => Some(&arguments.display),
            Verb::Actors(arguments) | Verb::Objects(arguments) => Some(&arguments.display),
            Verb::Tasks(arguments) => Some(&arguments.application.display),
            Verb::Code(arguments) => Some(&arguments.display),
            Verb::Nodes(arguments) => Some(&arguments.display),
            Verb::Models(arguments) => Some(arguments.display()),
            Verb::Report(arguments) => return arguments.format(),
            Verb::Share(arguments) => Some(arguments.display()),
            Verb::Reserve(arguments) => Some(arguments.display()),
            Verb::Doctor(arguments) => Some(&arguments.display),
            #[cfg(feature = "simulate")]
            Verb::Simulate(arguments) => Some(&arguments.display),
            #[cfg(all(feature = "simulate", feature = "predict"))]
            Verb::Policy(arguments) => Some(arguments.display()),
            #[cfg(feature = "predict")]
            Verb::Predict(arguments) => Some(arguments.display()),
            #[cfg(feature = "worker")]
            Verb::Profile(arguments) => Some(&arguments.display),
            Verb::Top(_) | Verb::Completions(_) | Verb::SlurmShims(_) | Verb::Slurm(_) => None,
            #[cfg(all(feature = "head", feature = "worker"))]
            Verb::Service(_) => None,
            #[cfg(feature = "web")]
            Verb::Web(_) => None,
            #[cfg(feature = "export")]
            Verb::Export(_) => None,
            #[cfg(feature = "notify")]
            Verb::Notify(_) => None,
            #[cfg(feature = "head")]
            Verb::Head(arguments) => arguments.verb.display(),
            #[cfg(all(feature = "head", feature = "worker"))]
            Verb::Up(_) => None,
            #[cfg(feature = "worker")]
            Verb::Executor(_) | Verb::CopyReader => None,
            #[cfg(feature = "demo")]
            Verb::Demo(_) | Verb::Train(_) => None,
        };
        display.map_or(OutputFormat::Table, |display| display.output)
    }
}

#[cfg(test)]
mod tests;
