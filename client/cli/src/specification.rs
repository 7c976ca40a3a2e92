//! From flags and a command to a job specification.
//!
//! What depends on where and when it is submitted (folder, variables, clock) comes in as [`Surroundings`];
//! dependencies stay as written, because only the head knows which jobs they mean.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use cohabit_client::proto::{
    Command, Compute, Demand, Gpus, JobSpec, Launch, Limits, ModelDescription, Retry, Sharing, Stop, Work,
};
use jiff::Zoned;

use crate::arguments::JobArguments;
use crate::failure::Failure;
use crate::place::line_of;
use crate::script::Script;
use crate::values::{Nodes, Variable, on_each_node};

/// Variables that a job takes over from its submitter: what finds the same programs and speaks the same
/// language.
const TAKEN_OVER: [&str; 8] = [
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
pub(crate) struct Surroundings {
    folder: PathBuf,
    variables: BTreeMap<OsString, OsString>,
    now: Zoned,
}

impl Surroundings {
    /// Those of this process.
    pub(crate) fn here() -> Result<Surroundings, Failure> {
        let folder = env::current_dir().map_err(|error| {
            Failure::invalid(format!(
                "the present folder is gone ({error}): change to another one or give --workdir"
            ))
        })?;
        Ok(Surroundings { folder, variables: env::vars_os().collect(), now: Zoned::now() })
    }

    /// The folder in which the job starts.
    fn workdir(&self, job: &JobArguments) -> Result<String, Failure> {
        self.absolute(job.workdir.as_deref().unwrap_or(Path::new(".")), "--workdir")
    }

    fn absolute(&self, path: &Path, flag: &str) -> Result<String, Failure> {
        let path: PathBuf = self.folder.join(path).components().collect();
        path.into_os_string()
            .into_string()
            .map_err(|path| Failure::invalid(format!("{flag} {} is not text: rename it", path.display())))
    }

    fn variable(&self, name: &str) -> Result<Option<String>, Failure> {
        let value = self.variables.get(OsString::from(name).as_os_str());
        value.map(|value| value.clone().into_string()).transpose().map_err(|value| {
            Failure::invalid(format!("the variable {name} is not text: {}", value.display()))
        })
    }
}

/// The job that was described.
pub(crate) fn specify(
    job: &JobArguments,
    command: Vec<String>,
    script: Option<Script>,
    surroundings: &Surroundings,
) -> Result<JobSpec, Failure> {
    let plain = JobSpec::command(command.clone(), surroundings.workdir(job)?);
    let checkpoint = job.checkpoint.as_deref().map(|folder| surroundings.absolute(folder, "--checkpoint"));
    let begin =
        job.begin.map(|begin| begin.resolve(&surroundings.now)).transpose().map_err(Failure::invalid)?;
    Ok(JobSpec {
        name: job.name.clone().unwrap_or(plain.name),
        work: Work::Command(Command { argv: command, script: script.map(Script::into_text) }),
        demand: demand(job)?,
        launch: launch(job)?,
        workdir: plain.workdir,
        environment: environment(job, surroundings)?,
        array: job.array.clone(),
        depends_on: Vec::new(),
        begin,
        priority: job.priority.unwrap_or(0),
        time_limit: job.time,
        retry: Retry { limit: job.retries.unwrap_or(0), ..Retry::default() },
        stop: Stop { warning: job.stop_signal, grace: job.grace.unwrap_or_else(|| Stop::default().grace) },
        group: job.group.clone(),
        model: job.model.as_deref().map(|file| description(&surroundings.folder.join(file))).transpose()?,
        iterations: job.iterations,
        checkpoint: checkpoint.transpose()?,
        held: job.hold,
        slurm_environment: job.slurm_env,
    })
}

/// Devices on whatever nodes only make sense to ranks of their own: another launcher would want to know in
/// advance how many there are on each node.
fn launch(job: &JobArguments) -> Result<Launch, Failure> {
    match (job.nodes, job.launch.map(Into::into)) {
        (Some(Nodes::Any), Some(Launch::PerNode)) => Err(Failure::invalid(
            "--nodes any needs a rank for each GPU: leave out --launch per-node, or ask for a number of nodes",
        )),
        (Some(Nodes::Any), Some(Launch::PerGpu) | None) => Ok(Launch::PerGpu),
        (Some(Nodes::Exactly(_)) | None, launch) => Ok(launch.unwrap_or_default()),
    }
}

fn demand(job: &JobArguments) -> Result<Demand, Failure> {
    let wanted = job.nodes.unwrap_or(Nodes::Exactly(1));
    let nodes = wanted.count();
    let gpus = match (job.gpus, job.gpus_per_node) {
        (None, Some(count)) => Gpus::Whole(count),
        (total, _) => on_each_node(total, nodes).map_err(Failure::invalid)?,
    };
    Ok(Demand {
        nodes,
        gpus,
        gpu_memory: job.gpu_mem,
        cpus: job.cpus.unwrap_or(0),
        memory: job.mem.unwrap_or_default(),
        sharing: if job.exclusive { Sharing::Exclusive } else { Sharing::Shared },
        spread: wanted.spread(),
        limits: if job.enforced { Limits::Enforced } else { Limits::BestEffort },
        compute: if job.cap_compute { Compute::Capped } else { Compute::Open },
        gpu_processes: job.gpu_processes.unwrap_or(1),
        max_slowdown: job.max_slowdown,
    })
}

fn environment(job: &JobArguments, surroundings: &Surroundings) -> Result<BTreeMap<String, String>, Failure> {
    let mut environment = BTreeMap::new();
    for name in TAKEN_OVER {
        if let Some(value) = surroundings.variable(name)? {
            environment.insert(name.to_owned(), value);
        }
    }
    for variable in &job.env {
        let (name, value) = match variable {
            Variable::Set(name, value) => (name, value.clone()),
            Variable::TakeOver(name) => (name, taken_over(name, surroundings)?),
        };
        environment.insert(name.clone(), value);
    }
    Ok(environment)
}

fn taken_over(name: &str, surroundings: &Surroundings) -> Result<String, Failure> {
    surroundings.variable(name)?.ok_or_else(|| {
        Failure::invalid(format!(
            "--env {name} takes over a variable that is not set here: write --env {name}=VALUE"
        ))
    })
}

/// Reads a description of what is trained; an error names the line.
pub(crate) fn description(file: &Path) -> Result<ModelDescription, Failure> {
    let text = fs::read_to_string(file).map_err(|error| {
        Failure::invalid(format!("the description {} cannot be read: {error}", file.display()))
    })?;
    understood(file, &text)
}

/// What this text, which lies in the file, says of a model.
pub(crate) fn understood(file: &Path, text: &str) -> Result<ModelDescription, Failure> {
    toml::from_str(text).map_err(|error| {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        Failure::invalid(format!("{}:{line}: {}", file.display(), error.message()))
    })
}

#[cfg(test)]
mod tests;
