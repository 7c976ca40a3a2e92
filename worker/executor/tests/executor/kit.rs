//! A rank in a directory of its own with a real executor; the test takes the role of the daemon.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, IoSlice, Write};
use std::iter::once;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use cohabit_gpu::mps::ClientRemoval;
use cohabit_host::LogLimits;
use cohabit_host::format::VersionedFile;
use cohabit_host::records::StartRecord;
use cohabit_types::{Entrypoint, JobId, JobSpec, Role, Share, Span};
use cohabit_worker_core::{GpuAccess, RankStart};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sendmsg,
    socketpair,
};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Far more time than anything here takes; reaching it is a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a result.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "still waiting for {what}");
        sleep(Duration::from_millis(10));
    }
}

/// A rank to be started.
pub(crate) struct Plan {
    folder: TempDir,
    pub(crate) spec: JobSpec,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) orphan_grace: Span,
    pub(crate) lease_term: Option<Span>,
    pub(crate) log: LogLimits,
    /// How it is removed from an MPS server.
    pub(crate) removal: Option<ClientRemoval>,
}

/// An executor, and the channel that assigns its ranks.
pub(crate) struct Executor {
    pub(crate) process: Child,
    line: OwnedFd,
    /// The directory with its own files, once it has had a rank.
    folder: RefCell<Option<PathBuf>>,
}

/// A started rank, whose executor gets no other.
pub(crate) struct Rank {
    folder: TempDir,
    executor: Child,
    connection: Option<BufReader<UnixStream>>,
}

impl Executor {
    /// Started as the daemon does.
    pub(crate) fn start() -> Executor {
        Executor::started_by(Command::new(env!("CARGO_BIN_EXE_cohabit-test-executor")))
    }

    /// Started by a shell that runs these commands first.
    pub(crate) fn start_after(commands: &str) -> Executor {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{commands}; exec \"$0\" \"$@\"")]);
        shell.arg(env!("CARGO_BIN_EXE_cohabit-test-executor"));
        Executor::started_by(shell)
    }

    fn started_by(mut program: Command) -> Executor {
        let (line, end) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
        let process = program
            .args(["executor", "/state"])
            .env("SECRET_OF_THE_DAEMON", "1")
            .stdin(end)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Executor { process, line, folder: RefCell::default() }
    }

    /// Assigns it a rank with a connection. Fails if it refuses.
    pub(crate) fn try_hold(&self, plan: &Plan) -> std::io::Result<BufReader<UnixStream>> {
        plan.prepare();
        let listener = match self.folder.replace(Some(plan.path().to_owned())).filter(|last| last.exists()) {
            Some(last) => {
                for name in ["socket", "executor.json", "executor.log"] {
                    fs::rename(last.join(name), plan.path().join(name)).unwrap();
                }
                None
            }
            None => Some(UnixListener::bind(plan.path().join("socket")).unwrap()),
        };
        let (connection, of_executor) = UnixStream::pair().unwrap();
        self.assign(plan, &of_executor, listener.as_ref()).map(|()| words(connection))
    }

    /// Assigns it a rank, and waits until the rank has ended.
    pub(crate) fn run(&self, plan: &Plan) -> Value {
        // Unread messages break the connection instead of ending it.
        self.try_hold(plan).unwrap().lines().take_while(Result::is_ok).for_each(drop);
        serde_json::from_slice(&fs::read(plan.path().join("outcome.json")).unwrap()).unwrap()
    }

    /// Its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.borrow().as_ref().expect("it has had a rank").join("socket")
    }

    /// Closes the channel, as a daemon that stops.
    pub(crate) fn hang_up(self) -> Child {
        self.process
    }

    fn assign(
        &self,
        plan: &Plan,
        connection: &UnixStream,
        listener: Option<&UnixListener>,
    ) -> std::io::Result<()> {
        let sockets: Vec<_> = once(connection.as_fd()).chain(listener.map(AsFd::as_fd)).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut attached = SendAncillaryBuffer::new(&mut space);
        attached.push(SendAncillaryMessage::ScmRights(&sockets));
        let folder = [IoSlice::new(plan.path().as_os_str().as_encoded_bytes())];
        sendmsg(&self.line, &folder, &mut attached, SendFlags::NOSIGNAL)?;
        Ok(())
    }
}

impl Plan {
    pub(crate) fn argv(argv: &[&str]) -> Plan {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        let environment = BTreeMap::from([
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("COHABIT_PROGRESS".to_owned(), format!("{path}/progress")),
            ("DIR".to_owned(), path.clone()),
        ]);
        let spec = JobSpec::command(argv.iter().map(ToString::to_string).collect(), path);
        let orphan_grace = Span::from_secs(3600);
        let (log, removal) = (LogLimits::default(), None);
        Plan { folder, spec, environment, orphan_grace, lease_term: None, log, removal }
    }

    pub(crate) fn shell(script: &str) -> Plan {
        Plan::argv(&["sh", "-c", script])
    }

    /// A job with its own script.
    pub(crate) fn script(text: &str) -> Plan {
        let mut plan = Plan::argv(&["train.sh", "one", "two"]);
        let Entrypoint::Command(command) = &mut plan.spec.entrypoint else { unreachable!("it is a command") };
        command.script = Some(text.to_owned());
        plan
    }

    pub(crate) fn change(mut self, change: impl FnOnce(&mut Plan)) -> Plan {
        change(&mut self);
        self
    }

    pub(crate) fn grace(self, grace: Span) -> Plan {
        self.change(|plan| plan.spec.stop.grace = grace)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it as the daemon does: the connection exists before the executor gets the rank.
    pub(crate) fn start(self) -> Rank {
        let executor = Executor::start();
        let connection = executor.try_hold(&self).unwrap();
        Rank { folder: self.folder, executor: executor.hang_up(), connection: Some(connection) }
    }

    /// Writes `start.json`.
    fn prepare(&self) {
        let rank = RankStart {
            rank: JobId::new(1).attempt(1).rank(0),
            spec: self.spec.clone().into(),
            user: "ada".into(),
            account: "ada".into(),
            role: Role::User,
            private_uid: None,
            devices: Vec::new(),
            share: Share::WHOLE,
            access: GpuAccess::None,
            rendezvous_port: None,
            application: None,
            place: None,
            node_rank: 0,
            checkpoints: None,
            note: None,
            idle_after: None,
            environment: BTreeMap::new(),
        };
        let start = StartRecord {
            workdir: None,
            program: None,
            rank,
            environment: self.environment.clone(),
            orphan_grace: self.orphan_grace,
            lease_term: self.lease_term,
            leased_at: None,
            log: self.log,
            booted_at: None,
            removal: self.removal.clone(),
            account: None,
            cgroup: None,
        };
        fs::write(self.path().join("start.json"), start.encode()).unwrap();
    }

    /// The outcome of the rank if nothing is done.
    pub(crate) fn outcome(self) -> Value {
        self.start().ended()["ending"]["outcome"].clone()
    }
}

impl Rank {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The process id of its executor.
    pub(crate) fn executor(&self) -> i32 {
        let executor = identity(self.folder.path())["pid"].as_i64().unwrap();
        executor.try_into().unwrap()
    }

    /// The process id of the watchdog of its executor: the process that was started.
    pub(crate) fn watchdog(&self) -> i32 {
        self.executor.id().cast_signed()
    }

    pub(crate) fn connect(&mut self) {
        self.connection = Some(connect(self.folder.path()));
    }

    pub(crate) fn disconnect(&mut self) {
        self.connection = None;
    }

    pub(crate) fn say(&mut self, command: &Value) {
        let stream = self.connection.as_mut().expect("connected");
        stream.get_mut().write_all(format!("{command}\n").as_bytes()).unwrap();
    }

    pub(crate) fn signal(&mut self, signal: i32, target: &str) {
        self.say(&json!({ "signal": [signal, target] }));
    }

    /// Reads messages of the executor until one matches.
    pub(crate) fn hear<T>(&mut self, mut look: impl FnMut(&Value) -> Option<T>) -> T {
        let words = self.connection.as_mut().expect("connected").lines();
        let mut words = words.map(|line| serde_json::from_str(&line.unwrap()).unwrap());
        words.find_map(|word| look(&word)).expect("the executor says it before it goes")
    }

    /// The line that the rank wrote to this file of its directory, once it is complete.
    pub(crate) fn line_of(&self, name: &str) -> String {
        wait_for(name, || fs::read_to_string(self.path(name)).ok().filter(|text| text.ends_with('\n')))
            .trim()
            .to_owned()
    }

    /// A process id that the rank wrote to a file.
    pub(crate) fn pid_of(&self, name: &str) -> i32 {
        self.line_of(name).parse().unwrap()
    }

    /// `outcome.json`, after the executor has exited.
    pub(crate) fn ended(&mut self) -> Value {
        let code = wait_for("the end of the executor", || self.executor.try_wait().unwrap());
        assert!(code.success(), "the executor failed: {code}");
        serde_json::from_slice(&fs::read(self.path("outcome.json")).unwrap()).unwrap()
    }

    /// Waits until its watchdog has exited.
    pub(crate) fn exits(&mut self, well: bool) {
        let code = wait_for("the end of the watchdog", || self.executor.try_wait().unwrap());
        assert_eq!(code.success(), well, "{code}");
    }

    pub(crate) fn outcome(&mut self) -> Value {
        self.ended()["ending"]["outcome"].clone()
    }

    /// The output: the segments without their 13-byte headers.
    pub(crate) fn printed(&self) -> Vec<u8> {
        let mut segments: Vec<_> =
            fs::read_dir(self.path("log")).unwrap().map(|e| e.unwrap().path()).collect();
        segments.sort();
        segments.iter().flat_map(|segment| payload(&fs::read(segment).unwrap())).collect()
    }

    pub(crate) fn printed_text(&self) -> String {
        String::from_utf8(self.printed()).unwrap()
    }
}

/// The output in a segment, without headers.
pub(crate) fn payload(mut segment: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some((header, rest)) = segment.split_at_checked(13) {
        let length = u32::from_le_bytes(header[9..].try_into().unwrap()) as usize;
        all.extend(&rest[..length]);
        segment = &rest[length..];
    }
    all
}

/// Whether a process runs; zombies do not.
/// What the executor wrote of itself.
pub(crate) fn identity(folder: &Path) -> Value {
    let text = wait_for("executor.json", || fs::read(folder.join("executor.json")).ok());
    serde_json::from_slice(&text).unwrap()
}

pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

fn connect(folder: &Path) -> BufReader<UnixStream> {
    words(UnixStream::connect(folder.join("socket")).unwrap())
}

fn words(stream: UnixStream) -> BufReader<UnixStream> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    BufReader::new(stream)
}

/// Kills a rank that still runs, as a worker would.
impl Drop for Rank {
    fn drop(&mut self) {
        if let Ok(mut stream) = UnixStream::connect(self.path("socket")) {
            let _ = stream.write_all(b"{\"signal\": [9, \"everything\"]}\n");
            let _ = self.executor.wait();
        }
    }
}
