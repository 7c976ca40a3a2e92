"""The annotations: complete and right, for the oldest supported Python."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
from kit import need

PACKAGE = pathlib.Path(__file__).resolve().parents[1] / "python" / "cohabit"

USER = """
from __future__ import annotations
import cohabit
from datetime import timedelta

with cohabit.job(keep=2) as job:
    start: object = job.load(default=0)
    for step in job.track(range(job.start, 10)):
        number: int = step
        job.log(loss=1.0, step=number)
        job.log({"a/b": 2})
        if job.should_checkpoint(every=timedelta(minutes=10)) or job.should_stop:
            job.save(step, {"a": 1})
            raise cohabit.Preempted
held: cohabit.Job = job

client = cohabit.Client(state="/tmp/state")
handle = client.submit(["python", "train.py"], gpus=0.5, gpu_memory="20G", time=timedelta(hours=1), depends_on=[12])
state: str = handle.wait(timeout=3, check=True).state
losses: list[object] = handle.metrics()["loss"]
for progress in handle.progress():
    step_or_none: int = progress.step

def train(rate: float) -> str:
    return str(rate)

with cohabit.Executor(gpus=0.25, max_running=8) as pool:
    texts: list[str] = list(pool.map(train, [0.1]))
    text: str = pool.submit(train, 0.1).result()

async def work() -> None:
    async with cohabit.AsyncClient() as other:
        job = await other.submit(["true"])
        async for progress in job.progress():
            total: int | None = progress.total
"""
WRONG = (
    "import cohabit\\ncohabit.job().save({}, 1)\\ncohabit.job(keep='many')\\ncohabit.job().track(5)\\n"
    "cohabit.Client().submit(['true'], gpuss=1)\\ncohabit.Executor(max_running='8')\\n"
)


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_the_package_and_a_script_that_uses_it_have_no_errors(checker: str, tmp_path: pathlib.Path) -> None:
    need(checker)
    script = tmp_path / "script.py"
    script.write_text(USER)
    done = check(checker, tmp_path, str(PACKAGE), str(script))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_wrong_use_is_found(checker: str, tmp_path: pathlib.Path) -> None:
    need(checker)
    script = tmp_path / "wrong.py"
    script.write_text(WRONG.encode().decode("unicode_escape"))
    done = check(checker, tmp_path, str(script))
    assert done.returncode == 1 and all(f"wrong.py:{line}:" in done.stdout for line in (2, 3, 4, 5, 6)), (
        done.stdout
    )


def check(checker: str, folder: pathlib.Path, *paths: str) -> subprocess.CompletedProcess[str]:
    """Runs a checker. mypy checks for its own Python; pyright for the oldest one."""
    if checker == "mypy":
        command = ["mypy", "--strict", "--cache-dir", str(folder / "cache")]
        command += ["--config-file", str(PACKAGE.parents[1] / "pyproject.toml")]
    else:
        command = ["pyright", "--pythonversion", "3.9", "--pythonpath", sys.executable]
    done = subprocess.run(
        [sys.executable, "-m", *command, *paths], cwd=PACKAGE.parent, capture_output=True, text=True
    )
    if checker == "pyright" and "wheel" not in done.stdout and done.returncode not in (0, 1):
        pytest.skip(f"pyright cannot run here: {done.stderr[-300:]}")
    return done
