"""A real cluster on this machine for tests: the binary in `$COHABIT_BINARY`."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest
from kit import BOUND_SECONDS, until

SCRIPTS = pathlib.Path(__file__).resolve().parent / "scripts"


def binary() -> str:
    """The program, or the reason to skip."""
    path = os.environ.get("COHABIT_BINARY")
    if not path:
        pytest.skip("COHABIT_BINARY does not name the program `cohabit`")
    return path


class Cluster:
    """A head with a worker, and further workers."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._program = binary()
        self._environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("COHABIT_", "SLURM_"))
        }
        self._environment["COHABIT_STATE"] = str(folder / "state")
        self._processes: list[subprocess.Popen[str]] = []
        self.address = self._up()

    def _up(self) -> str:
        state = str(self.folder / "state")
        self._start("up", "--state", state, "--devices", "host:2", "--listen", "127.0.0.1:0")
        log = self.folder / f"daemon{len(self._processes) - 1}.log"
        ready = until(
            "the cluster is ready", lambda: re.search(r"^ready: .* --join (\S+) ", log.read_text(), re.M)
        )
        return ready[1]

    def restart(self) -> None:
        """Starts the head and its worker again, at another address. Jobs go on meanwhile."""
        first = self._processes[0]
        first.terminate()
        first.wait(timeout=BOUND_SECONDS)
        self.address = self._up()

    def _start(self, *arguments: str) -> None:
        log = (self.folder / f"daemon{len(self._processes)}.log").open("w")
        process = subprocess.Popen(
            [self._program, *arguments],
            env=self._environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._processes.append(process)

    def add_worker(self, name: str) -> None:
        """Starts another worker, and waits until it has joined."""
        token, state = self.folder / "state" / "worker.token", self.folder / name
        self._start(
            "worker",
            "start",
            "--join",
            self.address,
            "--token-file",
            str(token),
            "--state",
            str(state),
            "--devices",
            "host:2",
            "--name",
            name,
        )
        until(f"the worker {name} has joined", lambda: name in self.nodes())

    def nodes(self) -> list[str]:
        """The names of the nodes."""
        return [node["name"] for node in json.loads(self.ok("nodes", "--output", "json"))["nodes"]]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs a command."""
        return subprocess.run(
            [self._program, *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=BOUND_SECONDS,
            stdin=subprocess.DEVNULL,
        )

    def ok(self, *arguments: str) -> str:
        """What a command prints that must succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def submit(self, script: str | pathlib.Path, *flags: str, arguments: tuple[str, ...] = ()) -> str:
        """Submits a script of Python."""
        environment = [f"--env=PYTHONPATH={os.environ.get('PYTHONPATH', '')}", "--env=OMP_NUM_THREADS=1"]
        command = [sys.executable, "-u", str(SCRIPTS / script), *arguments]
        return self.ok("submit", "--output", "quiet", *environment, *flags, "--", *command).strip()

    def show(self, job: str) -> dict[str, Any]:
        """The record of a job."""
        shown: dict[str, Any] = json.loads(self.ok("show", "--output", "json", job))
        return shown

    def ended(self, job: str) -> dict[str, Any]:
        """The record of a job that has ended."""
        ends = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED")
        return until(f"job {job} ends", lambda: (it := self.show(job))["state"] in ends and it)

    def logs(self, job: str, attempt: int) -> str:
        """What an attempt printed."""
        return self.ok("logs", "--attempt", str(attempt), job)

    def close(self) -> None:
        """Ends everything."""
        self.run("cancel", "--all", "--force")
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(timeout=BOUND_SECONDS)
