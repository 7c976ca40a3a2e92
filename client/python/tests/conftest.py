"""Fixtures of all tests. The package is the installed one, or else that of the source tree."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import signal
import sys

import pytest

# What a shell starts in the background ignores Ctrl-C, and so would the programs that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

SOURCE = pathlib.Path(__file__).resolve().parents[1] / "python"

if importlib.util.find_spec("cohabit") is None:
    sys.path.insert(0, str(SOURCE))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))

from cluster_kit import Cluster  # noqa: E402
from kit import JobFolder  # noqa: E402


@pytest.fixture
def job_folder(tmp_path: pathlib.Path) -> JobFolder:
    """What a worker prepares for a job, for scripts that run as processes of the test."""
    return JobFolder(tmp_path)


@pytest.fixture
def in_job(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    """This process, as if it were a job; the job is closed at the end, and the signals are put back."""
    import cohabit
    from cohabit._job import signals

    folder = JobFolder(tmp_path)
    for name, value in folder.environment().items():
        monkeypatch.setenv(name, value)
    before = {number: signal.getsignal(number) for number in (*signals.WARNINGS, signals.STOP)}
    yield folder
    cohabit.job().close()
    for number, handler in before.items():
        signal.signal(number, handler)
    signals.received.stop, signals.received.warnings = False, 0
    signals._earlier.clear()


@pytest.fixture
def cluster(tmp_path: pathlib.Path):
    """A real cluster with one worker; skips without the binary."""
    running = Cluster(tmp_path)
    yield running
    running.close()
