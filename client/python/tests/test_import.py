"""Importing the package: cheap, without other packages, and safe in a job that is warned early."""

from __future__ import annotations

import signal
import subprocess
import sys

import cohabit
import pytest
from kit import JobFolder

LIMIT_MICROSECONDS = 10_000


@pytest.mark.parametrize("is_job", [False, True])
def test_import_takes_less_than_ten_milliseconds(job_folder: JobFolder, is_job: bool) -> None:
    def measure() -> int:
        script = job_folder.start(
            "import subprocess, sys\n"
            "sys.exit(subprocess.run([sys.executable, '-X', 'importtime', '-c', 'import cohabit']).returncode)",
            job=is_job,
        )
        code, _, err = script.end()
        assert code == 0, err
        return int(err.splitlines()[-1].split("|")[1])

    # The least of some runs: other programs run on the same machine.
    assert min(measure() for _ in range(15)) < LIMIT_MICROSECONDS


def test_import_loads_no_other_package_and_not_the_parts_that_are_used_later() -> None:
    script = "import sys, cohabit; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    for name in (
        "json",
        "threading",
        "hashlib",
        "pickle",
        "torch",
        "numpy",
        "cohabit._job.job",
        "cohabit.client",
    ):
        assert name not in loaded


def test_unknown_names_are_refused_and_known_ones_are_listed() -> None:
    with pytest.raises(AttributeError, match="no attribute 'jobs'"):
        _ = cohabit.jobs  # type: ignore[attr-defined]
    assert {"Client", "Executor", "Job", "job"} <= set(dir(cohabit))
    assert cohabit.Job.__name__ == "Job"


def test_names_of_the_client_load_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    import types

    module = types.ModuleType("cohabit.client")
    module.AsyncClient = "the client"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cohabit.client", module)
    monkeypatch.delitem(cohabit.__dict__, "AsyncClient", raising=False)
    assert cohabit.AsyncClient == "the client"  # type: ignore[attr-defined, comparison-overlap]
    monkeypatch.delitem(cohabit.__dict__, "AsyncClient")


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_a_warning_before_the_job_is_opened_is_kept(job_folder: JobFolder, number: int) -> None:
    script = job_folder.start("""
        import sys, cohabit
        print("imported")
        import os, time
        while not os.path.exists("go"):
            time.sleep(0.01)
        with cohabit.job() as job:
            print(job.should_checkpoint(), job.should_checkpoint(), job.should_stop)
    """)
    assert script.line() == "imported"
    script.signal(number)
    (job_folder.folder / "go").touch()
    assert script.end() == (0, "True False False\n", "")


def test_outside_of_a_job_a_signal_does_what_it_always_does(job_folder: JobFolder) -> None:
    script = job_folder.start(
        "import cohabit, time; cohabit.job(); print('open'); time.sleep(600)", job=False
    )
    assert script.line() == "open"
    script.signal(signal.SIGTERM)
    assert script.end()[0] == -signal.SIGTERM


def test_without_an_open_job_sigterm_ends_a_script(job_folder: JobFolder) -> None:
    script = job_folder.start("import cohabit, time; print('imported'); time.sleep(600)")
    assert script.line() == "imported"
    script.signal(signal.SIGTERM)
    assert script.end()[0] == -signal.SIGTERM
