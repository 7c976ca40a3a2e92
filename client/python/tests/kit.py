"""What tests share: scripts as real processes with the environment of a job, and waiting with a bound."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, TypeVar

import pytest

T = TypeVar("T")

# Generous: a loaded machine must not fail a test.
BOUND_SECONDS = 120.0


def until(what: str, found: Callable[[], T]) -> T:
    """Waits until this is true, and returns it."""
    deadline = time.monotonic() + BOUND_SECONDS
    while True:
        value = found()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {BOUND_SECONDS:.0f} s: {what}"
        time.sleep(0.01)


@contextmanager
def started(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process, whose end is waited for. It is killed if the test fails before."""
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def need(*packages: str) -> None:
    """Skips a test whose packages are not installed, and does not import them: some need seconds, or a setting."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"the package {package} is not installed")


def environments_of_ranks(ranks: int) -> list[dict[str, str]]:
    """The variables by which the ranks of a job find each other, for each of them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
    return [
        {
            "COHABIT_RANK": str(rank),
            "RANK": str(rank),
            "COHABIT_WORLD_SIZE": str(ranks),
            "WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
        }
        for rank in range(ranks)
    ]


class JobFolder:
    """The files of a job."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.progress = folder / "progress"
        self.checkpoints = folder / "checkpoints"

    def environment(self, **more: str) -> dict[str, str]:
        """The variables that a worker sets."""
        self.progress.touch()
        return {
            "COHABIT_JOB_ID": "7",
            "COHABIT_ATTEMPT": "1",
            "COHABIT_RANK": "0",
            "COHABIT_WORLD_SIZE": "1",
            "COHABIT_NNODES": "1",
            "COHABIT_PROGRESS": str(self.progress),
            "COHABIT_CHECKPOINT_DIR": str(self.checkpoints),
            **more,
        }

    def lines(self) -> list[dict[str, Any]]:
        """What was reported."""
        return [json.loads(line) for line in self.progress.read_text().splitlines()]

    def names(self) -> list[str]:
        """The files in the checkpoint directory, hidden ones too."""
        return sorted(it.name for it in self.checkpoints.iterdir() if not it.name.startswith(".ranks"))

    def start(self, script: str, *, job: bool = True, **more: str) -> Script:
        """Starts a script as a process of its own group, as a worker does."""
        return self._start(["-c", textwrap.dedent(script)], job, more)

    def start_file(self, path: pathlib.Path, *arguments: str, job: bool = True, **more: str) -> Script:
        """The same with a script in a file, and its arguments."""
        return self._start([str(path), *arguments], job, more)

    def _start(self, command: list[str], job: bool, more: dict[str, str]) -> Script:
        environment = {**os.environ, **(self.environment(**more) if job else more)}
        return Script(command, environment, self.folder)


class Script:
    """A script that runs. Its lines on standard output are read one by one."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: pathlib.Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-u", *command],
            env=environment,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def line(self) -> str:
        """Its next line; empty at its end. PyTorch 2.8 prints a line of its own for each group of ranks."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return self.line() if line.startswith("[Gloo]") else line.rstrip("\n")

    def signal(self, number: int) -> None:
        """Sends the signal to the process group, as a worker does."""
        os.killpg(self.process.pid, number)

    def end(self) -> tuple[int, str, str]:
        """Waits for its end: exit code, and the rest of its output and of its messages."""
        try:
            out, err = self.process.communicate(timeout=BOUND_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            out, err = self.process.communicate()
            raise AssertionError(f"the script does not end: {out} {err}") from None
        return self.process.returncode, out, err
