//! What a user submits: the job specification.
//!
//! A specification is checked once, at the edge that wrote it (`JobSpec::check`), and never changed
//! afterwards.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::job_name::{check_name, default_name};
use crate::notify_request::check_requests;
use crate::{
    Array, CodeSnapshot, Command, Demand, Entrypoint, JobId, JobInput, ModelDescription, NotifyRequest,
    OutputFiles, Qos, RetryPolicy, Span, Spread, StallPolicy, Stop, Sweep, Time,
};

/// Everything the cluster needs to know to run a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// For people; need not be unique.
    pub name: String,
    /// What is run.
    #[serde(rename = "work")]
    pub entrypoint: Entrypoint,
    /// What it needs.
    pub demand: Demand,
    /// How its ranks are started.
    pub launch: LaunchMode,
    /// Absolute path of the directory it starts in, on the worker.
    pub workdir: String,
    /// Variables added to the clean environment that a worker gives to jobs.
    pub environment: BTreeMap<String, String>,
    /// Members, if this is an array.
    pub array: Option<Array>,
    /// Jobs that have to end first.
    pub depends_on: Vec<Dependency>,
    /// Not before this time.
    pub begin: Option<Time>,
    /// The larger, the earlier; 0 unless said.
    pub priority: i32,
    /// How long one attempt may run.
    pub time_limit: Option<Span>,
    /// What happens after a failure.
    pub retry: RetryPolicy,
    /// Whether a job that reaches its time limit is queued again, with the same checkpoints.
    #[serde(default)]
    pub requeue_on_timeout: bool,
    /// When it counts as stalled; never without.
    #[serde(default)]
    pub stall: Option<StallPolicy>,
    /// How an attempt is stopped.
    pub stop: Stop,
    /// Jobs that recur carry the same group; estimates learn from earlier members.
    pub group: Option<String>,
    /// What is trained.
    pub model: Option<ModelDescription>,
    /// Training iterations, where the user knows them.
    pub iterations: Option<u64>,
    /// Directory for checkpoints, where [`CHECKPOINT_JOB`] stands for the job; without it each worker keeps
    /// one for the job, and they are carried to the node of its next attempt.
    pub checkpoint: Option<String>,
    /// Whether it waits for a release before it may run.
    pub held: bool,
    /// Whether ranks also get `SLURM_*` names for what `COHABIT_*` says.
    pub slurm_environment: bool,
    /// Whether the scheduler may stop it to let a more urgent job run, and continue it later from its
    /// checkpoint. What its user or an admin asks for (cancel, requeue, priority) does not depend on it.
    #[serde(default)]
    pub preemptible: bool,
    /// Its code as it was at submission, in which it runs; without, it runs in its working directory itself.
    #[serde(default)]
    pub code: Option<CodeSnapshot>,
    /// Files that its output is written to, besides its log.
    #[serde(default)]
    pub output: OutputFiles,
    /// The partition that a script for Slurm names: a label for people, which no rule depends on.
    #[serde(default)]
    pub partition: Option<String>,
    /// A text for each member, if it is an array from a file; empty otherwise.
    #[serde(default)]
    pub entries: Vec<String>,
    /// What its user wants to be told about it.
    #[serde(default)]
    pub notify: Vec<NotifyRequest>,
    /// What its first rank reads from its standard input.
    #[serde(default)]
    pub input: JobInput,
    /// When its user's turn comes for it, and what it costs.
    #[serde(default)]
    pub qos: Qos,
    /// The project that its user says it is for; it must be the one that the user belongs to.
    #[serde(default)]
    pub project: Option<String>,
    /// How its members are compared, if it is a sweep: an array with parameters for each member.
    #[serde(default)]
    pub sweep: Option<Sweep>,
    /// Whether somebody works in it, as in a shell or a notebook: one that does nothing for long gives its
    /// place to jobs that wait.
    #[serde(default)]
    pub interactive: bool,
}

/// How the ranks of an attempt are started.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LaunchMode {
    /// One rank on each node, holding all devices there; the command is its own launcher.
    #[default]
    PerNode,
    /// One rank for each device.
    PerGpu,
}

/// A job that has to end before another may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// The earlier job; an array as a whole, if it is one.
    pub job: JobId,
    /// How it has to end.
    pub when: DependencyKind,
}

/// How an earlier job has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DependencyKind {
    /// COMPLETED.
    AfterOk,
    /// In any way.
    AfterAny,
    /// In any way but COMPLETED.
    AfterNotOk,
}

/// A job with a time limit of this or less is given back in time for others.
pub const GIVEN_BACK_WITHIN: Span = Span::from_secs(8 * 3_600);

/// What stands for the number of the job in the path of its directory for checkpoints, with the index of a
/// member of an array: `12` or `12.5`.
pub const CHECKPOINT_JOB: &str = "%j";

impl JobSpec {
    /// The directory for the checkpoints of this job, if the specification names one.
    #[must_use]
    pub fn checkpoint_of(&self, job: JobId) -> Option<String> {
        self.checkpoint.as_ref().map(|folder| folder.replace(CHECKPOINT_JOB, &job.to_string()))
    }

    /// Whether it gives its devices back in time for others: it may be stopped, or ends within
    /// [`GIVEN_BACK_WITHIN`].
    #[must_use]
    pub fn can_be_given_back(&self) -> bool {
        self.preemptible || self.time_limit.is_some_and(|limit| limit <= GIVEN_BACK_WITHIN)
    }

    /// How many jobs it stands for: the members of an array, or one.
    #[must_use]
    pub fn members(&self) -> u64 {
        self.array.as_ref().map_or(1, Array::len)
    }

    /// How many ranks an attempt of it has.
    #[must_use]
    pub const fn ranks(&self) -> u32 {
        match (self.launch, self.demand.devices()) {
            (_, 0) => self.demand.nodes.saturating_mul(self.ranks_without_devices()),
            (LaunchMode::PerNode, _) => self.demand.nodes,
            (LaunchMode::PerGpu, devices) => devices.saturating_mul(self.demand.nodes),
        }
    }

    /// How many ranks it has on a node where it holds no devices.
    #[must_use]
    pub const fn ranks_without_devices(&self) -> u32 {
        match &self.entrypoint {
            Entrypoint::Runner(work) if self.demand.nodes == 1 => work.ranks,
            Entrypoint::Command(_) | Entrypoint::Application(_) | Entrypoint::Runner(_) => 1,
        }
    }

    /// A job that runs this command with default settings: one device, one node, no retries. Its name
    /// is that of the script or module in the command, or of the program.
    #[must_use]
    pub fn command(argv: Vec<String>, workdir: String) -> JobSpec {
        JobSpec {
            name: default_name(&argv),
            entrypoint: Entrypoint::Command(Command { argv, script: None }),
            demand: Demand::default(),
            launch: LaunchMode::default(),
            workdir,
            environment: BTreeMap::new(),
            array: None,
            depends_on: Vec::new(),
            begin: None,
            priority: 0,
            time_limit: None,
            retry: RetryPolicy::default(),
            requeue_on_timeout: false,
            stall: None,
            stop: Stop::default(),
            group: None,
            model: None,
            iterations: None,
            checkpoint: None,
            held: false,
            slurm_environment: false,
            preemptible: false,
            code: None,
            output: OutputFiles::default(),
            partition: None,
            entries: Vec::new(),
            notify: Vec::new(),
            input: JobInput::default(),
            qos: Qos::default(),
            project: None,
            sweep: None,
            interactive: false,
        }
    }

    /// Refuses what can never be run, in words for the person who wrote it.
    ///
    /// # Errors
    /// What is wrong and what to do.
    pub fn check(&self) -> Result<(), String> {
        self.check_work()?;
        self.demand.check()?;
        if !self.workdir.starts_with('/') {
            return Err(format!(
                "the working directory '{}' is not absolute: give the full path",
                self.workdir
            ));
        }
        // The snapshot of a part of an application is its program, in which it does not start.
        if let (Entrypoint::Command(_), Some(code)) = (&self.entrypoint, &self.code) {
            code.check(&self.workdir)?;
        }
        if let Some(name) = self.environment.keys().find(|name| name.is_empty() || name.contains(['=', '\0']))
        {
            return Err(format!("'{name}' cannot be the name of an environment variable"));
        }
        self.check_time_rules()?;
        if self.qos == Qos::Low && !self.preemptible {
            return Err(
                "a job of low quality of service gives its place to others: remove --no-preemptible, or \
                        leave --qos out"
                    .into(),
            );
        }
        self.output.check()?;
        self.array.as_ref().map_or(Ok(()), Array::check)?;
        check_requests(&self.notify)?;
        self.check_input()?;
        self.check_entries()?;
        self.check_sweep()
    }

    /// Refuses an input that nobody could send, or nothing would read.
    fn check_input(&self) -> Result<(), String> {
        match (self.input, &self.entrypoint, &self.array) {
            (JobInput::Empty, ..) | (JobInput::Sent, Entrypoint::Command(_), None) => Ok(()),
            (JobInput::Sent, _, Some(_)) => {
                Err("the members of an array read no input: let each read a file of its own".into())
            }
            (JobInput::Terminal(_), _, Some(_)) => {
                Err("the members of an array have no terminal: leave out --array".into())
            }
            (
                JobInput::Sent | JobInput::Terminal(_),
                Entrypoint::Application(_) | Entrypoint::Runner(_),
                _,
            ) => Err("a part of an application reads no input: pass what it needs as arguments".into()),
            (JobInput::Terminal(_), Entrypoint::Command(_), None) => match self.ranks() {
                1 => Ok(()),
                ranks => Err(format!(
                    "a job with a terminal has one rank, not {ranks}: leave out --pty, or --nodes and --launch"
                )),
            },
        }
    }

    /// Refuses rules about time that cannot take effect.
    fn check_time_rules(&self) -> Result<(), String> {
        match (self.time_limit, self.stall) {
            (Some(Span::ZERO), _) => {
                Err("a time limit of zero would stop the job at once: leave it out for no limit".into())
            }
            (None, _) if self.requeue_on_timeout => {
                Err("--requeue-on-timeout needs a time limit: add --time, such as --time 4h".into())
            }
            (_, Some(StallPolicy { timeout: Span::ZERO, .. })) => {
                Err("a stall timeout of zero would count every job as stalled: leave it out for none".into())
            }
            _ => Ok(()),
        }
    }

    /// Refuses a name that is empty or has control characters. A journal may hold jobs with such names, which
    /// have to stay: so this is checked where a job is submitted, and not by [`JobSpec::check`].
    ///
    /// # Errors
    /// What is wrong and what to do.
    pub fn check_name(&self) -> Result<(), String> {
        check_name(&self.name)
    }

    fn check_work(&self) -> Result<(), String> {
        let command = match &self.entrypoint {
            Entrypoint::Command(command) => command,
            Entrypoint::Application(work) => {
                return self.check_application_part("an application").and_then(|()| work.check(&self.name));
            }
            Entrypoint::Runner(work) => {
                return self
                    .check_application_part("a runner of an application")
                    .and_then(|()| work.check(&self.demand, self.ranks()));
            }
        };
        match command.argv.first() {
            None => Err("there is no command to run: write it after the flags".into()),
            Some(program) if program.is_empty() => Err("the command's name is empty".into()),
            Some(_) if command.argv.iter().any(|arg| arg.contains('\0')) => {
                Err("a command cannot contain a NUL character".into())
            }
            Some(_) => Ok(()),
        }
    }
}

impl JobSpec {
    /// Refuses what a part of an application cannot be besides.
    fn check_application_part(&self, part: &str) -> Result<(), String> {
        let is_gang = matches!(&self.entrypoint, Entrypoint::Runner(work) if work.ranks > 1);
        match () {
            () if self.array.is_some() => Err(format!("{part} cannot be an array: submit it by itself")),
            () if self.code.as_ref().is_none_or(|code| code.files != 1) => {
                Err(format!("{part} needs its program as a code snapshot of one file"))
            }
            () if !is_gang && (self.demand.nodes != 1 || self.demand.spread == Spread::Free) => {
                Err(format!("{part} runs on one node: leave the number of nodes out"))
            }
            () if !is_gang && self.launch != LaunchMode::PerNode => {
                Err(format!("{part} has one rank: leave the launch mode out"))
            }
            () => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{StallAction, TerminalSize};

    fn sleeper() -> JobSpec {
        JobSpec::command(vec!["/bin/sleep".into(), "1".into()], "/tmp".into())
    }

    #[test]
    fn a_job_that_can_never_run_is_refused_with_a_message() {
        let refused = |change: fn(&mut JobSpec)| {
            let mut spec = sleeper();
            change(&mut spec);
            spec.check().unwrap_err()
        };
        assert_eq!(sleeper().check(), Ok(()));
        let named = JobSpec { name: "a\nb".into(), ..sleeper() };
        assert_eq!(named.check(), Ok(()), "a journal may hold it");
        assert!(named.check_name().is_err());
        assert!(refused(|spec| spec.workdir = "here".into()).contains("not absolute"));
        assert!(refused(|spec| spec.time_limit = Some(Span::ZERO)).contains("zero"));
        assert!(refused(|spec| spec.requeue_on_timeout = true).contains("--time"));
        let read = JobSpec { input: JobInput::Sent, ..sleeper() };
        assert_eq!(read.check(), Ok(()));
        assert!(JobSpec { array: Some(Array::from(0..=1)), ..read }.check().unwrap_err().contains("input"));
        let input = JobInput::Terminal(TerminalSize::default());
        let shell = JobSpec { input, ..sleeper() };
        assert_eq!(shell.check(), Ok(()));
        let of_array = JobSpec { array: Some(Array::from(0..=1)), ..shell.clone() };
        assert!(of_array.check().unwrap_err().contains("terminal"));
        let of_gang = JobSpec { demand: Demand { nodes: 2, ..shell.demand }, ..shell };
        assert!(of_gang.check().unwrap_err().contains("one rank, not 2"));
        let at_once = StallPolicy { timeout: Span::ZERO, action: StallAction::Warn };
        let stall_refusal = JobSpec { stall: Some(at_once), ..sleeper() }.check().unwrap_err();
        assert!(stall_refusal.contains("zero"));
        assert!(
            refused(|spec| spec.entrypoint = JobSpec::command(vec![], "/".into()).entrypoint)
                .contains("no command")
        );
    }
}
