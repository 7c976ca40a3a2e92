"""Importing the package: cheap, without other packages, and safe in a job that is warned early."""

from __future__ import annotations

import signal
import sys

import cohabit
import pytest
from kit import JobFolder

# `import cohabit` has to take less than 10 ms (benches/track.py measures it): each of these takes a millisecond or more.
SLOW = (
    "enum",
    "functools",
    "hashlib",
    "json",
    "pickle",
    "re",
    "signal",
    "threading",
    "typing",
    "numpy",
    "torch",
)
LATER = ("cohabit._job.job", "cohabit._native", "cohabit.aio", "cohabit.client")


@pytest.mark.parametrize("is_job", [False, True])
def test_import_loads_nothing_slow_and_not_the_parts_that_are_used_later(
    job_folder: JobFolder, is_job: bool
) -> None:
    # Without `site`, which loads some of them in some environments.
    inner = f"import sys; sys.path[:0] = {sys.path!r}; import cohabit; print(*sorted(sys.modules))"
    script = job_folder.start(
        f"import subprocess, sys; subprocess.run([sys.executable, '-SE', '-c', {inner!r}])", job=is_job
    )
    code, out, err = script.end()
    assert code == 0 and "cohabit" in out.split(), err
    assert set(out.split()) & {*SLOW, *LATER} == set()


def test_unknown_names_are_refused_and_known_ones_are_listed() -> None:
    with pytest.raises(AttributeError, match="no attribute 'jobs'"):
        _ = cohabit.jobs  # type: ignore[attr-defined]
    assert {"AsyncClient", "Client", "Job", "job"} <= set(dir(cohabit))
    assert cohabit.Job.__name__ == "Job"


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
