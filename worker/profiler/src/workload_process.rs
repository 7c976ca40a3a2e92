//! A workload as a process: started in a process group of its own, monitored, and stopped with all its
//! descendants.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use cohabit_gpu::mps::{self, ClientRemoval};
use cohabit_types::{LogStream, Outcome, Signal as SignalNumber, Span, Time};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::rates::StepMarks;
use crate::workload::ProfileWorkload;
use cohabit_host::files::{FileError, create};
use cohabit_host::oom_detector::OutOfMemoryDetector;
use cohabit_host::process::{LiveProcess, send, variable_of, with_environment};
use cohabit_host::progress::{ProgressFile, ProgressTracker};

/// Where a program reports its steps. The variable also marks its processes.
const PROGRESS: &str = "COHABIT_PROGRESS";

/// The checkpoints of a job; not passed on, because workloads start from scratch.
const CHECKPOINTS: &str = "COHABIT_CHECKPOINT_DIR";

/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(10);

/// How long the MPS server may take to remove processes before they are killed.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(5);

/// How long killing is repeated: a process may have started another one just before it was killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// The time between two polls for remaining processes.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The most characters of the last line of a failed program that are reported.
const MAX_MESSAGE: usize = 200;

/// A running workload.
pub(super) struct WorkloadProcess {
    pub(super) name: String,
    pub(super) pace: StepMarks,
    child: Child,
    ended: Option<ExitStatus>,
    /// Its progress file, which marks its processes.
    mark: PathBuf,
    progress: ProgressFile,
    tracker: ProgressTracker,
    output: PathBuf,
}

impl WorkloadProcess {
    /// Starts a workload, with its files in this directory under this number.
    pub(super) fn start(
        workload: &ProfileWorkload,
        folder: &Path,
        number: usize,
        environment: &BTreeMap<String, String>,
    ) -> Result<WorkloadProcess, StartError> {
        let (program, arguments) = workload.command.split_first().ok_or(StartError::NoCommand)?;
        let (mark, output) =
            (folder.join(format!("{number}.progress")), folder.join(format!("{number}.output")));
        let progress = ProgressFile::create(mark.clone(), None)?;
        let log = create(&output, 0o600)?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&workload.workdir).process_group(0);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_for_others(name)) {
            command.env_remove(name);
        }
        command.envs(&workload.environment).envs(environment).env(PROGRESS, &mark);
        let child = command.spawn()?;
        let name = workload.name.clone();
        Ok(WorkloadProcess {
            name,
            pace: StepMarks::default(),
            child,
            ended: None,
            mark,
            progress,
            tracker: ProgressTracker::default(),
            output,
        })
    }

    /// Reads its progress; `now` is the time since the set started.
    pub(super) fn read_progress(&mut self, now: Duration) {
        if let Some(new) = self.progress.read_new() {
            self.tracker.line(Time::EPOCH + Span::from(now), new.entry);
        }
        if let Some(progress) = self.tracker.progress() {
            self.pace.saw(now, progress.step);
        }
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> io::Result<Option<Outcome>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
        }
        Ok(self.ended.map(|status| match (status.code(), status.signal()) {
            (Some(code), _) => Outcome::Exited(code),
            (None, signal) => Outcome::Signalled(SignalNumber(signal.unwrap_or_default())),
        }))
    }

    /// The mark of its processes.
    pub(super) fn mark(&self) -> PathBuf {
        self.mark.clone()
    }

    /// Its message that the GPU has no memory left, if there is one.
    pub(super) fn out_of_gpu_memory(&self) -> Option<String> {
        let mut printed = OutOfMemoryDetector::default();
        printed.append(LogStream::Stderr, &fs::read(&self.output).ok()?);
        printed.out_of_gpu_memory()
    }

    /// The last line that it printed.
    pub(super) fn last_words(&self) -> String {
        let text = fs::read(&self.output).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
        last.unwrap_or("it printed nothing").chars().take(MAX_MESSAGE).collect()
    }

    /// Its living processes.
    fn living(&self) -> Vec<LiveProcess> {
        with_environment(PROGRESS, self.mark.as_os_str())
    }

    /// Sends SIGTERM to its process group; if its first process has ended, to all processes that it left.
    fn ask_to_end(&self) {
        match self.ended {
            None => self.signal_group(Signal::SIGTERM),
            Some(_) => self.living().iter().for_each(|process| send(process.pid, Signal::SIGTERM)),
        }
    }

    fn signal_group(&self, signal: Signal) {
        // The process id is not used again until the process is reaped.
        if self.ended.is_none() {
            _ = killpg(Pid::from_raw(self.child.id().cast_signed()), signal);
        }
    }
}

/// Why a workload did not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error("there is no command")]
    NoCommand,
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Whether a variable of the profiler's own environment must not reach workloads: it would lead them to
/// another MPS daemon, or to the checkpoint of a job in which the profiler runs.
fn is_for_others(name: &OsStr) -> bool {
    name == CHECKPOINTS || name.as_encoded_bytes().starts_with(b"CUDA_MPS_")
}

/// Whether this process belongs to the member with this mark.
pub(super) fn belongs(pid: i32, mark: &Path) -> bool {
    variable_of(pid, PROGRESS).is_some_and(|value| value == mark.as_os_str())
}

/// Ends all members: SIGTERM first; what remains is removed from the MPS server and killed.
pub(super) fn stop(mut members: Vec<WorkloadProcess>, removal: Option<&ClientRemoval>) -> io::Result<()> {
    members.iter().for_each(WorkloadProcess::ask_to_end);
    if !gone(&mut members, GRACE)? {
        let left: Vec<i32> = living(&members).iter().map(|process| process.pid.as_raw()).collect();
        if let Some(removal) = removal
            && let Err(error) = mps::terminate_clients(removal, &left, REMOVAL_TIMEOUT)
        {
            tracing::warn!(%error, "killing workloads without confirmation from their MPS server");
        }
        let begin = Instant::now();
        while begin.elapsed() < KILL_TIMEOUT {
            members.iter().for_each(|member| member.signal_group(Signal::SIGKILL));
            living(&members).iter().for_each(|process| send(process.pid, Signal::SIGKILL));
            if gone(&mut members, POLL_INTERVAL)? {
                break;
            }
        }
    }
    members.iter_mut().try_for_each(|member| member.ended().map(|_| ()))
}

/// Waits until all members have ended.
fn gone(members: &mut [WorkloadProcess], patience: Duration) -> io::Result<bool> {
    let begin = Instant::now();
    loop {
        let mut all = true;
        for member in &mut *members {
            all &= member.ended()?.is_some();
        }
        if all && living(members).is_empty() {
            return Ok(true);
        }
        if begin.elapsed() >= patience {
            return Ok(false);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn living(members: &[WorkloadProcess]) -> Vec<LiveProcess> {
    members.iter().flat_map(WorkloadProcess::living).collect()
}
