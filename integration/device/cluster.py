"""A head and a worker on loopback, in a directory of their own, and the jobs that run there."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

from report import OutOfTime, Unmet

PATIENCE_SECONDS = 60.0
TOLD_OF_JOBS = (
    *("state", "reason_code", "reason", "attempt"),
    *("share", "sharing", "sharing_reason", "sharing_with"),
)
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"}


@dataclasses.dataclass(frozen=True)
class Position:
    """How far a training was, and when."""

    at: float
    step: int
    loss: float | None = None


class Cluster:
    """Daemons of one directory; `worker_flags` go to the worker each time that it is started. A worker that is root
    runs the jobs as `account`, or as a user of their own."""

    def __init__(self, program, folder, clock, environment, worker_flags, account=None):
        self.folder = pathlib.Path(folder)
        self.clock = clock
        self._program, self._worker_flags = str(program), list(worker_flags)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("COHABIT_")}
        self._environment = {**clean, **environment, "HOME": str(self.folder)}
        self._account = account
        self._head = self._worker = None

    def start(self):
        self.folder.mkdir()
        # Where this is root, jobs run as another user, who passes through to paths that they know.
        self.folder.chmod(0o711)
        self._head, ready = self._daemon("head", "start", "--listen", "127.0.0.1:0", "--state", "head")
        self._address = re.search(r"listening on (\S+?);", ready).group(1)
        self._token = self._token_of_a_user()
        self.start_worker()

    def _token_of_a_user(self):
        """Jobs are submitted by a user, as in a lab, and not by an administrator."""
        account = ["--account", self._account] if self._account else []
        environment = {**self._environment, "COHABIT_STATE": str(self.folder / "head")}
        made = subprocess.run(
            [self._program, "token", "create", "--role", "user", "--name", "tester", *account],
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        if made.returncode != 0:
            raise Unmet(f"cohabit token create ended with {made.returncode}: {made.stderr.strip()}")
        token = self.folder / "user.token"
        token.touch(mode=0o600)
        token.write_text(made.stdout)
        return token

    def start_worker(self):
        join = ["--join", self._address, "--token-file", "head/worker.token", "--state", "worker"]
        self._worker, _ = self._daemon("worker", "start", *join, "--name", "here", *self._worker_flags)

    def kill_worker(self):
        """As if it had crashed; the pid that it had."""
        pid = self._worker.pid
        self._worker.kill()
        self._worker.wait()
        return pid

    def stop(self):
        """Ends the daemons as an operator would."""
        for daemon in (self._worker, self._head):
            if daemon is not None and daemon.poll() is None:
                daemon.terminate()
        for daemon in (self._worker, self._head):
            if daemon is not None:
                daemon.wait(PATIENCE_SECONDS)

    def run(self, *arguments):
        """A command of Cohabit, connected to this head."""
        left = self.clock.left()
        if left <= 0:
            raise OutOfTime("the time for this check is over")
        connection = {"COHABIT_HEAD": self._address, "COHABIT_TOKEN_FILE": str(self._token)}
        environment = {**self._environment, **connection}
        try:
            return subprocess.run(
                [self._program, *arguments],
                env=environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=min(left, PATIENCE_SECONDS),
            )
        except subprocess.TimeoutExpired:
            raise Unmet(f"cohabit {' '.join(arguments)} did not answer") from None

    def ok(self, *arguments):
        """What a command that must succeed prints."""
        ran = self.run(*arguments)
        if ran.returncode != 0:
            raise Unmet(f"cohabit {' '.join(arguments)} ended with {ran.returncode}: {ran.stderr.strip()}")
        return ran.stdout

    def json(self, *arguments):
        return json.loads(self.ok(*arguments, "--output", "json"))

    def node(self):
        """The only node, as `cohabit nodes` shows it."""
        return self.json("nodes")["nodes"][0]

    def gpu(self):
        """Its only device, or the first of them."""
        return self.node()["devices"][0]

    def submit(self, workload, environment, *flags):
        number = len(list(self.folder.glob("*.timeline"))) + 1
        timeline = self.folder / f"{workload.name}-{number}.timeline"
        timeline.touch()
        timeline.chmod(0o666)
        variables = [word for name, value in environment.items() for word in ("--env", f"{name}={value}")]
        command = workload.started(timeline)
        name = ["--name", f"{workload.name}-{number}"]
        job = self.ok("submit", "--output", "quiet", *name, *flags, *variables, "--", *command).strip()
        return Job(self, job, workload, timeline)

    def cancel(self, jobs):
        """Ends these jobs, by their numbers, and waits until they have."""
        if jobs:
            self.ok("cancel", *jobs)
            self.clock.until(f"jobs {', '.join(jobs)} have ended", lambda: not set(jobs) & set(self.live()))

    def clear(self):
        """Ends all jobs that have not ended yet."""
        self.cancel(self.live())

    def live(self):
        """The numbers of jobs that have not ended."""
        return [job["id"] for job in self.json("list")["jobs"] if job["state"] not in ENDED]

    def log_tail(self, characters=4000):
        log = self.folder / "daemons.log"
        return log.read_text(errors="replace")[-characters:] if log.exists() else ""

    def _daemon(self, *arguments):
        with open(self.folder / "daemons.log", "ab") as log:
            process = subprocess.Popen(
                [self._program, *arguments],
                env=self._environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        patience = min(max(self.clock.left(), 0.0), PATIENCE_SECONDS)
        answered, _, _ = select.select([process.stdout], [], [], patience)
        ready = process.stdout.readline() if answered else "nothing"
        if not ready.startswith("ready"):
            raise Unmet(f"cohabit {' '.join(arguments)} said {ready!r} and logged: {self.log_tail()}")
        return process, ready


@dataclasses.dataclass(frozen=True)
class Job:
    """A submitted training."""

    cluster: Cluster
    id: str
    workload: object
    timeline: pathlib.Path

    def show(self):
        return self.cluster.json("show", self.id)

    def brief(self):
        """What matters of it here."""
        shown = self.show()
        told = {key: shown.get(key) for key in TOLD_OF_JOBS}
        return {"job": self.id, "workload": self.workload.name, **told}

    def has_ended(self):
        return self.show()["state"] in ENDED

    def printed(self, lines=20):
        return self.cluster.run("logs", "--tail", str(lines), self.id).stdout

    def position(self):
        """Where it is: from its own timeline where it keeps one, else as the head knows it."""
        if self.workload.keeps_timeline:
            known = positions(self.timeline)
            return known[-1] if known else None
        progress = self.show()["progress"]
        return progress and Position(time.time(), progress["step"], progress["metrics"].get("loss"))

    def begin(self):
        """Until it steps; it is unmet at once if the job ends instead."""
        self.cluster.clock.until(f"job {self.id} ({self.workload.name}) steps", self._steps, 120.0)

    def steps_on(self, beyond):
        """Until it is further than it was; that position."""
        return self.cluster.clock.until(
            f"job {self.id} ({self.workload.name}) steps on", lambda: self._position_beyond(beyond)
        )

    def pids(self):
        """The processes that belong to it."""
        job, folder = f"COHABIT_JOB_ID={self.id}", f"COHABIT_PROGRESS={self.cluster.folder}/"
        return sorted(
            pid
            for pid, variables in environments()
            if job in variables and any(it.startswith(folder) for it in variables)
        )

    def _steps(self):
        if self.has_ended():
            raise Unmet(f"job {self.id} ({self.workload.name}) ended early", [self.brief(), self.printed()])
        position = self.position()
        return position and position.step > 0

    def _position_beyond(self, before):
        position = self.position()
        return position if position and position.step > before.step else None


@contextlib.contextmanager
def temporary_folder(keep=False):
    """A directory that users pass through; what was started in it is ended."""
    # Short: the path of a socket has to fit into a hundred bytes.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cohabit-", dir="/tmp"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        end_processes_of(folder)
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def positions(timeline):
    """All that a timeline tells; its last line may be unfinished."""
    lines = timeline.read_text().splitlines(keepends=True)
    told = [json.loads(line) for line in lines if line.endswith("\n")]
    return [Position(it["at"], it["step"], it["loss"]) for it in told]


def environments():
    """The environment of each process that we may look at."""
    yield from _told_of_processes("environ")


def processes_with(beginning):
    """Processes with a variable that begins like this, `NAME=value`."""
    return [pid for pid, variables in environments() if any(it.startswith(beginning) for it in variables)]


def end_processes_of(folder):
    """Ends what was started there: such a process names the folder in its environment or its command."""
    for how, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 2.0)):
        for pid in _processes_naming(folder):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, how)
        end = time.monotonic() + patience
        while _processes_naming(folder) and time.monotonic() < end:
            time.sleep(0.1)


def _processes_naming(folder):
    told = [*_told_of_processes("environ"), *_told_of_processes("cmdline")]
    naming = {pid for pid, texts in told if any(str(folder) in text for text in texts)}
    return naming - {os.getpid()}


def _told_of_processes(what):
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                told = pathlib.Path("/proc", entry, what).read_bytes()
                yield int(entry), told.decode(errors="replace").split("\0")
