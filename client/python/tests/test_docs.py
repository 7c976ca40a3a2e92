"""The steps of docs/PYTHON.md run as they are printed: outside, in a job, and stopped in the middle."""

from __future__ import annotations

import pathlib
import re
import signal

import pytest
from kit import JobFolder, need, until

DOCUMENT = pathlib.Path(__file__).resolve().parents[3] / "docs" / "PYTHON.md"
STEPS = re.findall(r"^```python\n(.*?)^```$", DOCUMENT.read_text(encoding="utf-8"), re.S | re.M)


def test_there_are_four_steps() -> None:
    assert len(STEPS) == 4


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("is_job", [False, True])
def test_a_step_runs_as_it_is(job_folder: JobFolder, number: int, is_job: bool) -> None:
    if "torch" in STEPS[number]:
        need("torch")
    code, out, err = job_folder.start(STEPS[number], job=is_job).end()
    assert code == 0 and re.fullmatch(r"loss \S+\n", out), (out, err)
    if is_job and number > 0:
        last = job_folder.lines()[-1]
        assert last["step"] == last["total"] in (200, 1000)


@pytest.mark.parametrize("number", [2, 3])
def test_a_step_that_is_stopped_goes_on(job_folder: JobFolder, number: int) -> None:
    if "torch" in STEPS[number]:
        need("torch")
    # A step takes long enough to be stopped in the middle of the training.
    slow = STEPS[number].replace(
        "        job.log(", "        __import__('time').sleep(0.02)\n        job.log("
    )
    script = job_folder.start(slow)
    until("it trains", lambda: any(line["step"] > 5 for line in job_folder.lines()))
    script.signal(signal.SIGTERM)
    code, out, err = script.end()
    assert code == 143 and out in ("", "asked to stop: saving\n") and err == "", (out, err)
    stopped = job_folder.lines()[-1]["step"]
    assert len(job_folder.names()) == 1
    job_folder.progress.unlink()
    code, out, err = job_folder.start(STEPS[number]).end()
    assert code == 0, err
    assert job_folder.lines()[0]["step"] == stopped
    # As if it had not been stopped, and so does one more attempt.
    undisturbed = job_folder.start(STEPS[number], job=False).end()
    again = job_folder.start(STEPS[number]).end()
    assert (code, out, err) == undisturbed == again
