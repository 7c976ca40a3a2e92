//! Builds a job specification from flags and a command.
//!
//! The directory, environment and time of the submission come in as a [`SubmitContext`]. Dependencies are
//! resolved later, because only the head knows which jobs they name; so is the snapshot of the code taken.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cohabit_client::types::{
    Bytes, Command, ComputeLimit, Demand, EnforcementRequirement, Entrypoint, GpuRequest, HeldFor, HostShare,
    JobInput, JobSpec, LaunchMode, OutputFiles, ReservationTerms, RetryPolicy, Sharing, StallAction,
    StallPolicy, Stop,
};
use cohabit_console::CommandError;
use cohabit_console::model_description::read_model_description;
use jiff::Zoned;
use nix::unistd::gethostname;

use crate::arguments::JobArguments;
use crate::array_file;
use crate::values::{EnvArgument, ExportBase, NodeCount, divide_among_nodes};

/// Environment variables that a job inherits from its submitter, so that it finds the same programs and uses
/// the same locale.
const INHERITED_VARIABLES: [&str; 8] = [
    "PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYTHONPATH",
    "LD_LIBRARY_PATH",
    "LANG",
    "LC_ALL",
];

/// The begins of names that `--export ALL` leaves out.
const NEVER_EXPORTED: [&str; 3] = ["COHABIT_", "SLURM_", "SLURMD_"];

/// The directory, environment, host and time of a submission.
pub struct SubmitContext {
    folder: PathBuf,
    variables: BTreeMap<OsString, OsString>,
    host: String,
    now: Zoned,
}

impl SubmitContext {
    /// The context of this process.
    pub fn current() -> Result<SubmitContext, CommandError> {
        let folder = env::current_dir().map_err(|error| {
            CommandError::invalid(format!(
                "the current directory is not available ({error}): change to another one or give --workdir"
            ))
        })?;
        let host = gethostname().unwrap_or_default().to_string_lossy().into_owned();
        Ok(SubmitContext { folder, variables: env::vars_os().collect(), host, now: Zoned::now() })
    }

    /// The working directory of the job.
    fn workdir(&self, job: &JobArguments) -> Result<String, CommandError> {
        self.absolute(job.workdir.as_deref().unwrap_or(Path::new(".")), "--workdir")
    }

    fn absolute(&self, path: &Path, flag: &str) -> Result<String, CommandError> {
        let path: PathBuf = self.folder.join(path).components().collect();
        path.into_os_string().into_string().map_err(|path| {
            CommandError::invalid(format!("{flag} {} is not valid UTF-8: use a path that is", path.display()))
        })
    }

    /// The path of a file for output: relative to the job's working directory, as with sbatch.
    fn output_file(&self, path: &Path, workdir: &str, flag: &str) -> Result<String, CommandError> {
        Path::new(workdir).join(path).into_os_string().into_string().map_err(|path| {
            CommandError::invalid(format!("{flag} {} is not valid UTF-8: use a path that is", path.display()))
        })
    }

    /// All variables that are text, without those that describe this shell's own job, or how it finds the
    /// head.
    fn exported_variables(&self) -> impl Iterator<Item = (String, String)> {
        let is_own = |name: &str| NEVER_EXPORTED.iter().any(|prefix| name.starts_with(prefix)) || name == "_";
        let texts = self.variables.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
        let exported = texts.filter(move |(name, _)| !name.is_empty() && !is_own(name));
        exported.map(|(name, value)| (name.to_owned(), value.to_owned()))
    }

    fn variable(&self, name: &str) -> Result<Option<String>, CommandError> {
        let value = self.variables.get(OsString::from(name).as_os_str());
        value.map(|value| value.clone().into_string()).transpose().map_err(|value| {
            CommandError::invalid(format!(
                "the environment variable {name} is not valid UTF-8: {}",
                value.display()
            ))
        })
    }
}

/// Builds the specification; `script` is the text of a script that the command runs.
pub fn specify(
    job: &JobArguments,
    command: Vec<String>,
    script: Option<String>,
    context: &SubmitContext,
) -> Result<JobSpec, CommandError> {
    let plain = JobSpec::command(command.clone(), context.workdir(job)?);
    let checkpoint = job.checkpoint.as_deref().map(|folder| context.absolute(folder, "--checkpoint"));
    let begin =
        job.begin.map(|begin| begin.resolve(&context.now)).transpose().map_err(CommandError::invalid)?;
    let (array, entries) = array_file::array(job, &context.folder)?;
    let output = output_files(job, &plain.workdir, context)?;
    Ok(JobSpec {
        name: job.name.clone().unwrap_or(plain.name),
        entrypoint: Entrypoint::Command(Command { argv: command, script }),
        demand: demand(job)?,
        launch: launch(job)?,
        workdir: plain.workdir,
        environment: environment(job, context)?,
        array,
        depends_on: Vec::new(),
        begin,
        priority: job.priority.unwrap_or(0),
        time_limit: job.time,
        retry: RetryPolicy { limit: job.retries.unwrap_or(0), ..RetryPolicy::default() },
        requeue_on_timeout: job.requeue_on_timeout,
        stall: stall(job)?,
        stop: Stop { warning: job.stop_signal, grace: job.grace.unwrap_or_else(|| Stop::default().grace) },
        group: job.group.clone(),
        model: job
            .model
            .as_deref()
            .map(|file| read_model_description(&context.folder.join(file)))
            .transpose()?,
        iterations: job.iterations,
        checkpoint: checkpoint.transpose()?,
        held: job.hold,
        slurm_environment: job.slurm_env,
        preemptible: job.is_preemptible(),
        code: None,
        output,
        partition: job.partition.clone(),
        entries,
        notify: job.notify.iter().flat_map(|argument| argument.0.clone()).collect(),
        input: JobInput::Empty,
        qos: job.qos.map(Into::into).unwrap_or_default(),
        project: job.project.clone(),
        sweep: None,
        interactive: false,
    })
}

fn output_files(
    job: &JobArguments,
    workdir: &str,
    context: &SubmitContext,
) -> Result<OutputFiles, CommandError> {
    let file = |path: &Option<PathBuf>, flag| {
        path.as_deref().map(|path| context.output_file(path, workdir, flag)).transpose()
    };
    Ok(OutputFiles { stdout: file(&job.stdout, "--stdout")?, stderr: file(&job.stderr, "--stderr")? })
}

/// `--nodes any` needs a rank per GPU: a launcher of the user's own has to know the number of GPUs per node
/// in advance.
fn launch(job: &JobArguments) -> Result<LaunchMode, CommandError> {
    match (job.nodes, job.launch.map(Into::into)) {
        (Some(NodeCount::Any), Some(LaunchMode::PerNode)) => Err(CommandError::invalid(
            "--nodes any starts one rank per GPU: remove --launch per-node, or give a number of nodes",
        )),
        (Some(NodeCount::Any), Some(LaunchMode::PerGpu) | None) => Ok(LaunchMode::PerGpu),
        (Some(NodeCount::Exactly(_)) | None, launch) => Ok(launch.unwrap_or_default()),
    }
}

fn stall(job: &JobArguments) -> Result<Option<StallPolicy>, CommandError> {
    match (job.stall_timeout, job.on_stall) {
        (Some(timeout), action) => {
            Ok(Some(StallPolicy { timeout, action: action.map_or_else(StallAction::default, Into::into) }))
        }
        (None, Some(_)) => Err(CommandError::invalid(
            "--on-stall needs the time after which the job counts as stalled: add --stall-timeout, such as \
             --stall-timeout 10m",
        )),
        (None, None) => Ok(None),
    }
}

fn demand(job: &JobArguments) -> Result<Demand, CommandError> {
    let wanted = job.nodes.unwrap_or(NodeCount::Exactly(1));
    let nodes = wanted.count();
    let gpus = match (job.gpus, job.gpus_per_node) {
        (None, Some(count)) => GpuRequest::Whole(count),
        (total, _) => divide_among_nodes(total, nodes).map_err(CommandError::invalid)?,
    };
    let (least, up_to) = host_range(job);
    Ok(Demand {
        nodes,
        gpus,
        gpu_memory: job.gpu_mem,
        cpus: least.cpus,
        memory: least.memory,
        up_to,
        sharing: if job.exclusive { Sharing::Exclusive } else { Sharing::Shared },
        spread: wanted.spread(),
        limits: if job.enforced {
            EnforcementRequirement::Enforced
        } else {
            EnforcementRequirement::BestEffort
        },
        compute: if job.cap_compute { ComputeLimit::Capped } else { ComputeLimit::Open },
        gpu_processes: job.gpu_processes.unwrap_or(1),
        max_slowdown: job.max_slowdown,
        account: None,
        has_code: false,
        spans_nodes: false,
        held_for: HeldFor::Unasked,
        reservations: ReservationTerms::default(),
        node: None,
    })
}

/// The least cores and host memory, and the most where one of both is a range.
fn host_range(job: &JobArguments) -> (HostShare, Option<HostShare>) {
    let (cpus, memory) = (job.cpus, job.mem);
    let least = HostShare {
        cpus: cpus.map_or(0, |range| range.least),
        memory: memory.map_or(Bytes::ZERO, |range| range.least),
    };
    (least, least.up_to(cpus.and_then(|range| range.most), memory.and_then(|range| range.most)))
}

fn environment(
    job: &JobArguments,
    context: &SubmitContext,
) -> Result<BTreeMap<String, String>, CommandError> {
    let mut environment = copied_variables(job, context)?;
    if job.slurm_env {
        environment.insert("SLURM_SUBMIT_HOST".to_owned(), context.host.clone());
    }
    for variable in &job.env {
        let (name, value) = match variable {
            EnvArgument::Set(name, value) => (name, value.clone()),
            EnvArgument::Inherit(name) => (name, inherited_value(name, context)?),
        };
        environment.insert(name.clone(), value);
    }
    Ok(environment)
}

/// What is copied from the submitter's environment: some variables, or what `--export` says.
fn copied_variables(
    job: &JobArguments,
    context: &SubmitContext,
) -> Result<BTreeMap<String, String>, CommandError> {
    let mut copied = BTreeMap::new();
    let Some(export) = &job.export else {
        for name in INHERITED_VARIABLES {
            copied.extend(context.variable(name)?.map(|value| (name.to_owned(), value)));
        }
        return Ok(copied);
    };
    if export.base == ExportBase::All {
        copied.extend(context.exported_variables());
    }
    for variable in &export.variables {
        match variable {
            EnvArgument::Set(name, value) => drop(copied.insert(name.clone(), value.clone())),
            EnvArgument::Inherit(name) => {
                copied.extend(context.variable(name)?.map(|value| (name.clone(), value)));
            }
        }
    }
    Ok(copied)
}

fn inherited_value(name: &str, context: &SubmitContext) -> Result<String, CommandError> {
    context.variable(name)?.ok_or_else(|| {
        CommandError::invalid(format!(
            "--env {name} copies a variable that is not set in this environment: write --env {name}=VALUE"
        ))
    })
}

#[cfg(test)]
mod tests;
