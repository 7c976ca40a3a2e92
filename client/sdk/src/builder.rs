//! Describes a job step by step. Fields that are not set have the defaults of [`JobSpec::command`].
//!
//! The setters refuse nothing: `build` checks the whole description, so that calls can be chained.

use std::path::PathBuf;
use std::time::Duration;

use cohabit_types::{
    Array, Bytes, CodeSnapshot, Command, ComputeLimit, Dependency, DependencyKind, EnforcementRequirement,
    Entrypoint, FeedKind, GpuRequest, JobId, JobInput, JobSpec, LaunchMode, ModelDescription, NotifyRequest,
    Sharing, Signal, Slowdown, StallAction, StallPolicy, Time, WarningSignal,
};

use crate::{Client, Error, JobHandle, Submission};

/// Describes a job.
///
/// ```
/// # use cohabit_client::JobBuilder;
/// # use std::time::Duration;
/// let submission = JobBuilder::new("python")
///     .args(["train.py", "--epochs", "3"])
///     .gpus(0.5)
///     .gpu_memory("20G".parse()?)
///     .time_limit(Duration::from_secs(3600))
///     .env("SEED", "7")
///     .build()?;
/// assert_eq!(submission.spec().name, "train");
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "a description does nothing until it is submitted"]
pub struct JobBuilder {
    spec: JobSpec,
    command: Command,
    name: Option<String>,
    workdir: Option<PathBuf>,
    gpus: Option<f64>,
    most_cpus: Option<u32>,
    most_memory: Option<Bytes>,
    at_once: Option<u32>,
    preemptible: Option<bool>,
    key: Option<String>,
}

impl JobBuilder {
    /// A job that runs this program, found on the worker.
    pub fn new(program: impl Into<String>) -> JobBuilder {
        JobBuilder::command([program])
    }

    /// A job that runs this program with these arguments.
    pub fn command(argv: impl IntoIterator<Item = impl Into<String>>) -> JobBuilder {
        let argv = argv.into_iter().map(Into::into).collect();
        JobBuilder {
            spec: JobSpec::command(Vec::new(), String::new()),
            command: Command { argv, script: None },
            name: None,
            workdir: None,
            gpus: None,
            most_cpus: None,
            most_memory: None,
            at_once: None,
            preemptible: None,
            key: None,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<String>) -> JobBuilder {
        self.command.argv.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> JobBuilder {
        self.command.argv.extend(args.into_iter().map(Into::into));
        self
    }

    /// The text of the script that the program names, as it is now: later edits do not change the job.
    pub fn script(mut self, text: impl Into<String>) -> JobBuilder {
        self.command.script = Some(text.into());
        self
    }

    /// A name for people; by default that of the script or module in the command, or of the program.
    pub fn name(mut self, name: impl Into<String>) -> JobBuilder {
        self.name = Some(name.into());
        self
    }

    /// Devices on each node: a part of one (0.5), whole ones (4), or a [`GpuRequest`]; one whole device
    /// by default.
    pub fn gpus(mut self, gpus: impl Into<f64>) -> JobBuilder {
        self.gpus = Some(gpus.into());
        self
    }

    /// Memory on each device; not limited by default.
    pub fn gpu_memory(mut self, memory: Bytes) -> JobBuilder {
        self.spec.demand.gpu_memory = Some(memory);
        self
    }

    /// Lets no other job join its device, although it asks for a part of it only.
    pub fn exclusive(mut self) -> JobBuilder {
        self.spec.demand.sharing = Sharing::Exclusive;
        self
    }

    /// Shares a device only where the limits of its share are enforced.
    pub fn enforced(mut self) -> JobBuilder {
        self.spec.demand.limits = EnforcementRequirement::Enforced;
        self
    }

    /// Computes on no more of its device than its share, even where neighbors leave some idle.
    pub fn cap_compute(mut self) -> JobBuilder {
        self.spec.demand.compute = ComputeLimit::Capped;
        self
    }

    /// The largest slowdown factor that its neighbors on the device may cause; by default what the cluster
    /// allows.
    pub fn max_slowdown(mut self, factor: Slowdown) -> JobBuilder {
        self.spec.demand.max_slowdown = Some(factor);
        self
    }

    /// How many processes of a rank use its device, each with an equal part of the memory; 1 by default.
    pub fn gpu_processes(mut self, count: u32) -> JobBuilder {
        self.spec.demand.gpu_processes = count;
        self
    }

    /// Processor cores on each node; claims none by default.
    pub fn cpus(mut self, cpus: u32) -> JobBuilder {
        self.spec.demand.cpus = cpus;
        self
    }

    /// Host memory on each node; claims none by default.
    pub fn memory(mut self, memory: Bytes) -> JobBuilder {
        self.spec.demand.memory = memory;
        self
    }

    /// The most processor cores on each node: with it, [`cpus`](JobBuilder::cpus) is the least. On one node
    /// they may change while the job runs.
    pub fn cpus_up_to(mut self, cpus: u32) -> JobBuilder {
        self.most_cpus = Some(cpus);
        self
    }

    /// The most host memory on each node: with it, [`memory`](JobBuilder::memory) is the least. On one node
    /// it may change while the job runs.
    pub fn memory_up_to(mut self, memory: Bytes) -> JobBuilder {
        self.most_memory = Some(memory);
        self
    }

    /// How many nodes, all at once; 1 by default.
    pub fn nodes(mut self, nodes: u32) -> JobBuilder {
        self.spec.demand.nodes = nodes;
        self
    }

    /// How ranks are started: one for each node, by default.
    pub fn launch(mut self, launch: LaunchMode) -> JobBuilder {
        self.spec.launch = launch;
        self
    }

    /// The directory it starts in, on the worker; this program's by default.
    pub fn workdir(mut self, workdir: impl Into<PathBuf>) -> JobBuilder {
        self.workdir = Some(workdir.into());
        self
    }

    /// Runs in this snapshot of its code, which was uploaded before.
    pub fn code(mut self, code: CodeSnapshot) -> JobBuilder {
        self.spec.code = Some(code);
        self
    }

    /// Adds an environment variable. Not for secrets: whoever may see the job may see it.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> JobBuilder {
        self.spec.environment.insert(name.into(), value.into());
        self
    }

    /// Makes it an array with these members, each of which finds its index in `COHABIT_ARRAY_INDEX`.
    pub fn array(mut self, members: impl Into<Array>) -> JobBuilder {
        self.spec.array = Some(members.into());
        self
    }

    /// Makes it an array with a member for each of these texts, from index 0 on. A member finds its own in
    /// `COHABIT_ENTRY`, and in place of each argument `{}`.
    pub fn entries(mut self, entries: impl IntoIterator<Item = impl Into<String>>) -> JobBuilder {
        self.spec.entries = entries.into_iter().map(Into::into).collect();
        let members = u32::try_from(self.spec.entries.len()).unwrap_or(u32::MAX);
        self.spec.array = members.checked_sub(1).map(|last| Array::from(0..=last));
        self
    }

    /// At most this many members of the array run at once.
    pub fn at_once(mut self, limit: u32) -> JobBuilder {
        self.at_once = Some(limit);
        self
    }

    /// Starts only after that job has ended so.
    pub fn depends_on(mut self, job: JobId, when: DependencyKind) -> JobBuilder {
        self.spec.depends_on.push(Dependency { job, when });
        self
    }

    /// Starts not before this time, for one a [`std::time::SystemTime`].
    pub fn begin(mut self, at: impl Into<Time>) -> JobBuilder {
        self.spec.begin = Some(at.into());
        self
    }

    /// Jobs with a larger priority start earlier; 0 by default.
    pub fn priority(mut self, priority: i32) -> JobBuilder {
        self.spec.priority = priority;
        self
    }

    /// How long one attempt may run; without limit by default.
    pub fn time_limit(mut self, limit: Duration) -> JobBuilder {
        self.spec.time_limit = Some(limit.into());
        self
    }

    /// Queue it again when it reaches its time limit: it runs in slices, each of which goes on from the
    /// checkpoint of the last.
    pub fn requeue_on_timeout(mut self) -> JobBuilder {
        self.spec.requeue_on_timeout = true;
        self
    }

    /// Somebody works in it: when it does nothing for long (`idle-stop` of the head), its place goes to jobs
    /// that wait.
    pub fn interactive(mut self) -> JobBuilder {
        self.spec.interactive = true;
        self
    }

    /// When it counts as stalled because it reports no step, and what happens then; never by default.
    pub fn stall_timeout(mut self, timeout: Duration, action: StallAction) -> JobBuilder {
        self.spec.stall = Some(StallPolicy { timeout: timeout.into(), action });
        self
    }

    /// How many more attempts it gets when it fails; none by default.
    pub fn retries(mut self, limit: u32) -> JobBuilder {
        self.spec.retry.limit = limit;
        self
    }

    /// Announces a stop by this signal, this long before SIGTERM. The job is preemptible then, unless
    /// [`JobBuilder::preemptible`] says otherwise.
    pub fn stop_signal(mut self, signal: Signal, before: Duration) -> JobBuilder {
        self.spec.stop.warning = Some(WarningSignal { signal, before: before.into() });
        self
    }

    /// Whether the scheduler may stop the job to let a more urgent one run, and continue it later from its
    /// checkpoint; by default only with [`JobBuilder::stop_signal`].
    pub fn preemptible(mut self, preemptible: bool) -> JobBuilder {
        self.preemptible = Some(preemptible);
        self
    }

    /// How long it may take to end after SIGTERM, before it is killed; 30 seconds by default.
    pub fn grace(mut self, grace: Duration) -> JobBuilder {
        self.spec.stop.grace = grace.into();
        self
    }

    /// Jobs that recur carry the same group: predictions learn from the earlier ones.
    pub fn group(mut self, group: impl Into<String>) -> JobBuilder {
        self.spec.group = Some(group.into());
        self
    }

    /// The model that is trained: the fuller the description, the better the predictions.
    pub fn model(mut self, model: ModelDescription) -> JobBuilder {
        self.spec.model = Some(model);
        self
    }

    /// Training iterations.
    pub fn iterations(mut self, iterations: u64) -> JobBuilder {
        self.spec.iterations = Some(iterations);
        self
    }

    /// The directory for checkpoints, on the worker; without it the worker makes one that all attempts on it
    /// share.
    pub fn checkpoint(mut self, folder: impl Into<String>) -> JobBuilder {
        self.spec.checkpoint = Some(folder.into());
        self
    }

    /// Tells its user of this event, by the channel of this name, which the admins have set up, or by the
    /// default one. Can be given several times.
    pub fn notify(mut self, event: FeedKind, channel: Option<&str>) -> JobBuilder {
        self.spec.notify.push(NotifyRequest { event, channel: channel.map(str::to_owned) });
        self
    }

    /// Lets its first rank read what [`Client::write_input`] sends as its standard input; otherwise it reads
    /// nothing.
    pub fn sent_input(mut self) -> JobBuilder {
        self.spec.input = JobInput::Sent;
        self
    }

    /// Waits for a release before it may run.
    pub fn hold(mut self) -> JobBuilder {
        self.spec.held = true;
        self
    }

    /// Also gives ranks `SLURM_*` names for what `COHABIT_*` says.
    pub fn slurm_environment(mut self) -> JobBuilder {
        self.spec.slurm_environment = true;
        self
    }

    /// Two submissions of one user with the same key are one job. A fresh key is drawn unless one is given.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> JobBuilder {
        self.key = Some(key.into());
        self
    }

    /// Checks the description.
    ///
    /// # Errors
    /// [`Error::InvalidJob`] says what is wrong with it, and what to do.
    pub fn build(self) -> Result<Submission, Error> {
        let key = self.key.clone();
        let submission = Submission::new(self.into_spec().map_err(Error::InvalidJob)?)?;
        Ok(match key {
            Some(key) => submission.with_key(key),
            None => submission,
        })
    }

    /// Checks the description and submits it.
    ///
    /// # Errors
    /// Those of [`JobBuilder::build`] and [`Client::submit`].
    pub async fn submit(self, client: &Client) -> Result<JobHandle, Error> {
        client.submit(&self.build()?).await
    }

    fn into_spec(self) -> Result<JobSpec, String> {
        let plain = JobSpec::command(self.command.argv.clone(), starting_folder(self.workdir)?);
        let mut spec = JobSpec {
            name: self.name.unwrap_or(plain.name),
            workdir: plain.workdir,
            entrypoint: Entrypoint::Command(self.command),
            preemptible: self.preemptible.unwrap_or(self.spec.stop.warning.is_some()),
            ..self.spec
        };
        if let Some(gpus) = self.gpus {
            spec.demand.gpus = GpuRequest::try_from(gpus)?;
        }
        spec.demand.up_to = spec.demand.least_host().up_to(self.most_cpus, self.most_memory);
        if self.at_once.is_some() {
            let array = spec
                .array
                .as_mut()
                .ok_or("only an array can limit how many members run at once: give the job an array")?;
            array.at_once = self.at_once;
        }
        Ok(spec)
    }
}

/// The given directory as an absolute path, or else the working directory of this program.
fn starting_folder(given: Option<PathBuf>) -> Result<String, String> {
    let folder = std::path::absolute(given.unwrap_or_else(|| PathBuf::from(".")))
        .map_err(|error| format!("cannot determine the working directory ({error}): give its full path"))?;
    folder
        .into_os_string()
        .into_string()
        .map_err(|folder| format!("the working directory {folder:?} is not valid UTF-8: use a path that is"))
}

#[cfg(test)]
mod tests;
