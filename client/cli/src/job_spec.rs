//! From flags and a command to a job specification.
//!
//! What depends on where and when it is submitted (folder, variables, clock) comes in as [`SubmitContext`];
//! dependencies stay as written, because only the head knows which jobs they mean.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use cohabit_client::proto::{
    Command, ComputeLimit, Demand, EnforcementRequirement, Entrypoint, GpuRequest, JobSpec, LaunchMode,
    RetryPolicy, Sharing, Stop,
};
use cohabit_console::CommandError;
use cohabit_console::model_description::read_model_description;
use jiff::Zoned;

use crate::arguments::JobArguments;
use crate::script::Script;
use crate::values::{EnvArgument, NodeCount, on_each_node};

/// Variables that a job takes over from its submitter: what finds the same programs and speaks the same
/// language.
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

/// Where and when a job is submitted.
pub(crate) struct SubmitContext {
    folder: PathBuf,
    variables: BTreeMap<OsString, OsString>,
    now: Zoned,
}

impl SubmitContext {
    /// Those of this process.
    pub(crate) fn current() -> Result<SubmitContext, CommandError> {
        let folder = env::current_dir().map_err(|error| {
            CommandError::invalid(format!(
                "the present folder is gone ({error}): change to another one or give --workdir"
            ))
        })?;
        Ok(SubmitContext { folder, variables: env::vars_os().collect(), now: Zoned::now() })
    }

    /// The folder in which the job starts.
    fn workdir(&self, job: &JobArguments) -> Result<String, CommandError> {
        self.absolute(job.workdir.as_deref().unwrap_or(Path::new(".")), "--workdir")
    }

    fn absolute(&self, path: &Path, flag: &str) -> Result<String, CommandError> {
        let path: PathBuf = self.folder.join(path).components().collect();
        path.into_os_string().into_string().map_err(|path| {
            CommandError::invalid(format!("{flag} {} is not text: rename it", path.display()))
        })
    }

    fn variable(&self, name: &str) -> Result<Option<String>, CommandError> {
        let value = self.variables.get(OsString::from(name).as_os_str());
        value.map(|value| value.clone().into_string()).transpose().map_err(|value| {
            CommandError::invalid(format!("the variable {name} is not text: {}", value.display()))
        })
    }
}

/// The job that was described.
pub(crate) fn specify(
    job: &JobArguments,
    command: Vec<String>,
    script: Option<Script>,
    surroundings: &SubmitContext,
) -> Result<JobSpec, CommandError> {
    let plain = JobSpec::command(command.clone(), surroundings.workdir(job)?);
    let checkpoint = job.checkpoint.as_deref().map(|folder| surroundings.absolute(folder, "--checkpoint"));
    let begin =
        job.begin.map(|begin| begin.resolve(&surroundings.now)).transpose().map_err(CommandError::invalid)?;
    Ok(JobSpec {
        name: job.name.clone().unwrap_or(plain.name),
        work: Entrypoint::Command(Command { argv: command, script: script.map(Script::into_text) }),
        demand: demand(job)?,
        launch: launch(job)?,
        workdir: plain.workdir,
        environment: environment(job, surroundings)?,
        array: job.array.clone(),
        depends_on: Vec::new(),
        begin,
        priority: job.priority.unwrap_or(0),
        time_limit: job.time,
        retry: RetryPolicy { limit: job.retries.unwrap_or(0), ..RetryPolicy::default() },
        stop: Stop { warning: job.stop_signal, grace: job.grace.unwrap_or_else(|| Stop::default().grace) },
        group: job.group.clone(),
        model: job
            .model
            .as_deref()
            .map(|file| read_model_description(&surroundings.folder.join(file)))
            .transpose()?,
        iterations: job.iterations,
        checkpoint: checkpoint.transpose()?,
        held: job.hold,
        slurm_environment: job.slurm_env,
    })
}

/// Devices on whatever nodes only make sense to ranks of their own: another launcher would want to know in
/// advance how many there are on each node.
fn launch(job: &JobArguments) -> Result<LaunchMode, CommandError> {
    match (job.nodes, job.launch.map(Into::into)) {
        (Some(NodeCount::Any), Some(LaunchMode::PerNode)) => Err(CommandError::invalid(
            "--nodes any needs a rank for each GPU: leave out --launch per-node, or ask for a number of nodes",
        )),
        (Some(NodeCount::Any), Some(LaunchMode::PerGpu) | None) => Ok(LaunchMode::PerGpu),
        (Some(NodeCount::Exactly(_)) | None, launch) => Ok(launch.unwrap_or_default()),
    }
}

fn demand(job: &JobArguments) -> Result<Demand, CommandError> {
    let wanted = job.nodes.unwrap_or(NodeCount::Exactly(1));
    let nodes = wanted.count();
    let gpus = match (job.gpus, job.gpus_per_node) {
        (None, Some(count)) => GpuRequest::Whole(count),
        (total, _) => on_each_node(total, nodes).map_err(CommandError::invalid)?,
    };
    Ok(Demand {
        nodes,
        gpus,
        gpu_memory: job.gpu_mem,
        cpus: job.cpus.unwrap_or(0),
        memory: job.mem.unwrap_or_default(),
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
    })
}

fn environment(
    job: &JobArguments,
    surroundings: &SubmitContext,
) -> Result<BTreeMap<String, String>, CommandError> {
    let mut environment = BTreeMap::new();
    for name in INHERITED_VARIABLES {
        if let Some(value) = surroundings.variable(name)? {
            environment.insert(name.to_owned(), value);
        }
    }
    for variable in &job.env {
        let (name, value) = match variable {
            EnvArgument::Set(name, value) => (name, value.clone()),
            EnvArgument::Inherit(name) => (name, inherited_value(name, surroundings)?),
        };
        environment.insert(name.clone(), value);
    }
    Ok(environment)
}

fn inherited_value(name: &str, surroundings: &SubmitContext) -> Result<String, CommandError> {
    surroundings.variable(name)?.ok_or_else(|| {
        CommandError::invalid(format!(
            "--env {name} takes over a variable that is not set here: write --env {name}=VALUE"
        ))
    })
}

#[cfg(test)]
mod tests;
