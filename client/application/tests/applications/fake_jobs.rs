//! The jobs of the fake head: their processes, their records, and what they print.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use cohabit_client::types::{
    ApplicationAccess, ApplicationCredentials, ApplicationRecord, ApplicationRole, ApplicationSecret,
    AttemptId, AttemptRecord, Entrypoint, JobId, JobLabels, JobRecord, JobSpec, JobState, LogRecord,
    LogStream, ReasonCode, Refusal, RefusalCode, Rendezvous, RunnerRole, Share, Signal, Time,
};
use nix::sys::signal::{Signal as Kill, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

/// A job with the process of its latest attempt.
pub(crate) struct FakeJob {
    pub(crate) record: JobRecord,
    pub(crate) spec: JobSpec,
    /// The attempt of the root of its application.
    pub(crate) application: AttemptId,
    pub(crate) pid: Option<u32>,
    pub(crate) printed: Vec<LogRecord>,
    pub(crate) is_cancelled: bool,
}

/// Where the processes of applications find things.
pub(crate) struct Places {
    pub(crate) head: String,
    pub(crate) token: String,
    /// For sockets, checkpoints and programs.
    pub(crate) folder: PathBuf,
    /// The ports of the application on the nodes of its coordinator and of its children, if those are two.
    pub(crate) ports: Option<[u16; 2]>,
}

impl FakeJob {
    pub(crate) fn new(id: JobId, spec: JobSpec) -> FakeJob {
        let application = spec.entrypoint.parent().unwrap_or(id.attempt(1));
        let record = JobRecord {
            id,
            name: spec.name.clone(),
            user: "ada".into(),
            group: None,
            state: JobState::Pending,
            reason_code: ReasonCode::WaitingForTurn,
            reason: "waits for its turn".into(),
            work: spec.entrypoint.title(),
            shell_command: None,
            demand: spec.demand,
            priority: 0,
            time_limit: None,
            workdir: spec.workdir.clone(),
            code: spec.code.clone(),
            application: spec.entrypoint.parent().map(|parent| parent.job),
            attempt: 0,
            attempts: Vec::new(),
            exit_code: None,
            signal: None,
            submitted_at: Time::EPOCH,
            started_at: None,
            ended_at: None,
            sharing_with: Vec::new(),
            trained: Default::default(),
            predicted: None,
            slowdown_measured: None,
            progress: None,
            array: None,
            revision: 1,
            labels: JobLabels::default(),
        };
        FakeJob { record, spec, application, pid: None, printed: Vec::new(), is_cancelled: false }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.spec.entrypoint.parent().is_none()
    }

    /// Whether it runs `main` for this attempt of an application.
    pub(crate) fn is_main_of(&self, root: AttemptId) -> bool {
        let is_main = self.spec.entrypoint.role() == Some(ApplicationRole::Runner(RunnerRole::Main));
        is_main && self.spec.entrypoint.parent() == Some(root)
    }

    pub(crate) fn is_of_tasks(&self) -> bool {
        self.spec.entrypoint.role() == Some(ApplicationRole::Runner(RunnerRole::Tasks))
    }

    /// It ends at once if it waits for its first attempt, and as cancelled else.
    pub(crate) fn cancel(&mut self) {
        self.is_cancelled = true;
        if self.record.attempt == 0 {
            self.change(JobState::Cancelled, ReasonCode::CancelledByUser, "its user cancelled it");
        }
    }

    /// Starts the next attempt, as a worker does.
    pub(crate) fn start(&mut self, places: &Places, secret: ApplicationSecret) -> Child {
        let attempt = self.record.attempt + 1;
        let member = self.record.id.attempt(attempt).rank(0);
        let role = self.spec.entrypoint.role().expect("a part of an application");
        let (root, child) = places.nodes();
        let is_root = role == ApplicationRole::Coordinator;
        let node = if is_root { root } else { child };
        let (root_port, child_port) = places.ports.map(|[root, child]| (at(root), at(child))).unzip();
        let port = match role {
            ApplicationRole::Coordinator => root_port.clone(),
            ApplicationRole::Runner(RunnerRole::Store) => child_port,
            ApplicationRole::Runner(RunnerRole::Main | RunnerRole::Actor | RunnerRole::Tasks) => None,
        };
        let access = ApplicationAccess {
            application: self.application,
            member,
            credentials: ApplicationCredentials {
                secret,
                token: (role == ApplicationRole::Coordinator).then(|| places.token.clone()),
            },
            code: self.spec.code.clone().expect("its program"),
            head: places.head.clone(),
            directory: places.sockets(node, self.application),
            gpus: 4,
            node: node.into(),
            port,
            coordinator: root_port.filter(|_| !is_root),
            coordinator_node: root.into(),
        };
        let (program, arguments) = match &self.spec.entrypoint {
            Entrypoint::Application(work) => (&work.program, &work.arguments),
            Entrypoint::Runner(work) => (&work.program, &work.arguments),
            Entrypoint::Command(command) => panic!("{command:?} is no part of an application"),
        };
        let mut command = Command::new(places.program(program));
        command
            .args(arguments)
            .current_dir(&self.spec.workdir)
            .env_clear()
            .envs(&self.spec.environment)
            .env(ApplicationRole::VARIABLE, role.as_str())
            .env("COHABIT_CHECKPOINT_DIR", &places.folder)
            .env("RUST_BACKTRACE", "0")
            .stdin(document(&access))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let child = spawn(&mut command);
        self.pid = child.id();
        self.record.attempt = attempt;
        self.record.attempts.push(AttemptRecord {
            attempt,
            started_at: Time::EPOCH,
            ended_at: None,
            stopped: None,
            ranks: Vec::new(),
            host: Vec::new(),
            idle: None,
        });
        self.change(JobState::Running, ReasonCode::Running, "runs");
        child
    }

    /// Its process has ended. Whether another attempt is due.
    pub(crate) fn exited(&mut self, status: ExitStatus) -> bool {
        self.pid = None;
        self.record.attempts.last_mut().expect("an attempt ran").ended_at = Some(Time::EPOCH);
        self.record.exit_code = status.code();
        self.record.signal = status.signal().map(Signal);
        let retries = self.record.attempt - 1;
        if self.is_cancelled {
            self.change(JobState::Cancelled, ReasonCode::CancelledByUser, "its user cancelled it");
        } else if status.success() {
            self.change(JobState::Completed, ReasonCode::Completed, "exited with code 0");
        } else if retries < self.spec.retry.limit {
            self.change(JobState::Pending, ReasonCode::WaitingForRetry, "waits for its next attempt");
            return true;
        } else {
            self.change(JobState::Failed, ReasonCode::ExitCode, &format!("{status}"));
        }
        false
    }

    /// It ends because its application has ended.
    pub(crate) fn end_with_application(&mut self) {
        self.signal(Kill::SIGKILL);
        self.change(JobState::Cancelled, ReasonCode::ApplicationEnded, "its application ended");
    }

    pub(crate) fn signal(&self, signal: Kill) {
        if let Some(pid) = self.pid {
            // It may have ended by itself.
            let _sent = kill(Pid::from_raw(pid as i32), signal);
        }
    }

    pub(crate) fn print(&mut self, stream: LogStream, bytes: &[u8]) {
        self.printed.push(LogRecord { stream, at: Time::EPOCH, bytes: bytes.to_vec() });
    }

    /// What it printed there, as text.
    pub(crate) fn text(&self, stream: LogStream) -> String {
        let of_stream = self.printed.iter().filter(|record| record.stream == stream);
        let bytes: Vec<u8> = of_stream.flat_map(|record| record.bytes.clone()).collect();
        String::from_utf8(bytes).expect("tests print text")
    }

    fn change(&mut self, state: JobState, code: ReasonCode, reason: &str) {
        self.record.state = state;
        self.record.reason_code = code;
        self.record.reason = reason.to_owned();
        self.record.revision += 1;
    }
}

impl Places {
    /// The nodes of the coordinators and of their children.
    const fn nodes(&self) -> (&'static str, &'static str) {
        ("n0", if self.ports.is_some() { "n1" } else { "n0" })
    }

    /// The directory of the sockets of an application on a node. Its path is longer than the address of a
    /// socket may be.
    pub(crate) fn sockets(&self, node: &str, application: AttemptId) -> PathBuf {
        let long = "sockets-".repeat(16);
        let directory = self.folder.join(long).join(node).join(application.to_string());
        std::fs::create_dir_all(&directory).expect("a directory");
        directory
    }

    fn program(&self, name: &str) -> PathBuf {
        self.folder.join("programs").join(name)
    }

    /// Puts a program where its jobs find it.
    pub(crate) fn install(&self, program: &Path) {
        let name = program.file_name().expect("a program");
        let place = self.program(name.to_str().expect("a plain name"));
        std::fs::create_dir_all(place.parent().expect("a directory")).expect("a directory");
        std::fs::hard_link(program, &place)
            .or_else(|_| std::fs::copy(program, &place).map(drop))
            .expect("room");
    }
}

/// Another thread that starts a process may have a copy of the file of the program, open for writing, for a
/// moment.
fn spawn(command: &mut Command) -> Child {
    loop {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            spawned => return spawned.expect("the program starts"),
        }
    }
}

/// Where a port of this machine is.
fn at(port: u16) -> Rendezvous {
    Rendezvous { address: "127.0.0.1".into(), port }
}

/// A file with the access, which has no name.
fn document(access: &ApplicationAccess) -> File {
    let mut file = tempfile::tempfile().expect("a file");
    serde_json::to_writer(&mut file, access).expect("the access is JSON");
    file.flush().and_then(|()| file.rewind()).expect("a file can be rewound");
    file
}

/// All jobs by their ids.
pub(crate) type Jobs = BTreeMap<JobId, FakeJob>;

/// The state in which a job ended, with its exit code.
pub(crate) fn end_of(record: &JobRecord) -> (JobState, Option<i32>) {
    (record.state, record.shell_code())
}

/// An error of a library, as a client hears it.
pub(crate) fn invalid<T>(result: Result<T, impl ToString>) -> Result<T, Refusal> {
    result.map_err(|error| Refusal::new(RefusalCode::Invalid, error.to_string()))
}

/// The applications that have not ended.
pub(crate) fn live_applications(jobs: &Jobs) -> Vec<ApplicationRecord> {
    let record = |job: &FakeJob| {
        let children = || jobs.values().filter(|it| it.record.application == Some(job.record.id));
        let live = children().filter(|it| !it.record.state.is_terminal());
        let root = job.record.id.attempt(job.record.attempt);
        let mains = children().filter(|it| it.is_main_of(root)).map(|it| it.record.id);
        ApplicationRecord {
            job: job.record.id,
            name: job.spec.name.clone(),
            user: "ada".into(),
            state: job.record.state,
            attempt: (!job.is_cancelled).then(|| job.record.id.attempt(job.record.attempt)),
            code: job.spec.code.clone(),
            program: "actors".into(),
            runners: live.map(|it| it.record.id).collect(),
            mains: mains.collect(),
            counts: Vec::new(),
            submitted_at: Time::EPOCH,
            started_at: None,
            node: None,
            gpus: Share(0),
            max_gpus: None,
        }
    };
    let roots = jobs.values().filter(|job| job.is_root() && !job.record.state.is_terminal());
    roots.map(record).collect()
}
