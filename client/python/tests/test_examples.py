"""The training scripts in `examples`: stopped in the middle they go on and end as undisturbed ones."""

from __future__ import annotations

import json
import pathlib
import re
import shlex
import signal
import subprocess
import sys

import pytest
from cluster_kit import Cluster
from kit import JobFolder, Script, environments_of_ranks, need, until

ROOT = pathlib.Path(__file__).resolve().parents[3]
PYTORCH = ROOT / "examples" / "pytorch"
SLICES = ROOT / "examples" / "scripts" / "slices.py"
ENDLESS = str(10**6)
# However slow the machine is, time alone is no reason for a checkpoint.
RARELY = ["--checkpoint-seconds", str(10**6)]

# Scripts, small trainings, and the option for their length with the number of steps that one of it has.
TRAININGS = [
    ("digits.py", ["--hidden", "8", "--batch-size", "1", *RARELY], "--epochs", 1438),
    ("charlm.py", ["--hidden", "8", "--batch-size", "1", "--sample-length", "20", *RARELY], "--steps", 1),
]


def latest(folder: pathlib.Path) -> tuple[int, pathlib.Path]:
    """The latest checkpoint: the step that was done last, and the file."""
    path = sorted(folder.glob("checkpoint-*.ckpt"))[-1]
    return int(re.fullmatch(r"checkpoint-\d+-step(\d+)\.ckpt", path.name)[1]), path


def assert_same(one: pathlib.Path, other: pathlib.Path) -> None:
    """Both directories end with the same weights, and the same state of the optimizer, bit for bit."""
    import torch

    (step, path), (other_step, other_path) = latest(one), latest(other)
    assert step == other_step
    ours, theirs = torch.load(path), torch.load(other_path)
    assert ours["options"] == theirs["options"]
    for part in ("model", "optimizer"):
        torch.testing.assert_close(ours[part], theirs[part], rtol=0.0, atol=0.0)


def completed(*ranks: Script) -> list[str]:
    """What each rank printed. All of them must succeed."""
    done = [rank.end() for rank in ranks]
    assert all(code == 0 for code, _, _ in done), done
    return [out for _, out, _ in done]


def trains(folder: JobFolder) -> bool:
    """Whether steps are reported."""
    return any(line["step"] > 5 for line in folder.lines())


@pytest.mark.parametrize(("name", "options", "length", "steps"), TRAININGS)
def test_a_training_that_was_stopped_ends_with_the_weights_of_an_undisturbed_one(
    job_folder: JobFolder, name: str, options: list[str], length: str, steps: int
) -> None:
    need("torch")
    script = job_folder.start_file(PYTORCH / name, *options, length, ENDLESS)
    until("it trains", lambda: trains(job_folder))
    script.signal(signal.SIGUSR1)
    until("a warning is answered by a checkpoint", lambda: list(job_folder.checkpoints.glob("*.ckpt")))
    warned, _ = latest(job_folder.checkpoints)
    until("it goes on", lambda: job_folder.lines()[-1]["step"] > warned + 1)
    script.signal(signal.SIGTERM)
    code, out, err = script.end()
    assert (code, err) == (143, "") and "asked to stop: saving\n" in out, (code, out, err)
    stopped, _ = latest(job_folder.checkpoints)
    assert stopped > warned

    enough = str((stopped + 1) // steps + 2)
    (resumed,) = completed(job_folder.start_file(PYTORCH / name, *options, length, enough))
    assert f"resumed at step {stopped + 1}\n" in resumed
    apart = job_folder.folder / "undisturbed"
    arguments = [*options, length, enough, "--checkpoint", str(apart)]
    (undisturbed,) = completed(job_folder.start_file(PYTORCH / name, *arguments, job=False))
    assert resumed.splitlines()[-1] == undisturbed.splitlines()[-1]
    assert_same(job_folder.checkpoints, apart)


def test_a_checkpoint_of_a_training_with_other_options_is_refused(job_folder: JobFolder) -> None:
    need("torch")
    digits = PYTORCH / "digits.py"
    (printed,) = completed(job_folder.start_file(digits, "--epochs", "1", "--hidden", "8"))
    assert "accuracy " in printed
    code, _, err = job_folder.start_file(digits, "--epochs", "1", "--hidden", "9", "--seed", "2").end()
    assert code == 2 and "--hidden was 8, is now 9, --seed was 1, is now 2" in err
    assert str(job_folder.checkpoints) in err and "Traceback" not in err
    (resumed,) = completed(job_folder.start_file(digits, "--epochs", "2", "--hidden", "8"))
    assert "resumed at step 45\n" in resumed, "a training may become longer"


def ranks_of_ddp(folder: JobFolder, epochs: str) -> list[Script]:
    """Two ranks of `digits_ddp.py`."""
    options = ["--hidden", "8", "--batch-size", "2", *RARELY, "--epochs", epochs]
    environments = environments_of_ranks(2)
    return [folder.start_file(PYTORCH / "digits_ddp.py", *options, **it) for it in environments]


def test_ranks_save_and_leave_together_although_one_of_them_is_told(
    job_folder: JobFolder, tmp_path: pathlib.Path
) -> None:
    need("torch")
    ranks = ranks_of_ddp(job_folder, ENDLESS)
    until("they train", lambda: trains(job_folder))
    ranks[1].signal(signal.SIGTERM)
    for rank in ranks:
        code, out, err = rank.end()
        # A rank that left at another step would break the exchange of the other one.
        assert code == 143 and "asked to stop: saving\n" in out and "Traceback" not in err, (out, err)
    assert len(job_folder.names()) == 1, "only the first rank saves"
    stopped, _ = latest(job_folder.checkpoints)

    enough = str((stopped + 1) // 719 + 2)
    resumed = completed(*ranks_of_ddp(job_folder, enough))
    assert f"resumed at step {stopped + 1}\n" in resumed[0]
    apart = tmp_path / "undisturbed"
    apart.mkdir()
    undisturbed = completed(*ranks_of_ddp(JobFolder(apart), enough))
    # The loss of the last epoch, and the accuracy.
    assert resumed[0].splitlines()[-2:] == undisturbed[0].splitlines()[-2:]
    assert_same(job_folder.checkpoints, apart / "checkpoints")


def test_slices_go_on_where_they_were(job_folder: JobFolder) -> None:
    script = job_folder.start_file(SLICES, "--steps", ENDLESS, "--step-seconds", "0.001")
    assert script.line() == "begins at step 0"
    script.signal(signal.SIGUSR1)
    warned = re.fullmatch(r"saved, to go on at step (\d+)", script.line())
    script.signal(signal.SIGTERM)
    code, out, err = script.end()
    stopped = re.fullmatch(r"saved, to go on at step (\d+)\n", out)
    assert (code, err) == (143, "") and int(stopped[1]) > int(warned[1])

    short = ["--steps", str(int(stopped[1]) + 5), "--step-seconds", "0"]
    (resumed,) = completed(job_folder.start_file(SLICES, *short))
    (undisturbed,) = completed(job_folder.start_file(SLICES, *short, job=False))
    assert resumed.startswith(f"begins at step {stopped[1]}\n")
    assert resumed.splitlines()[1:] == undisturbed.splitlines()[1:]
    assert json.loads(job_folder.progress.read_text().splitlines()[-1])["step"] == int(short[1])


def test_slices_run_as_documented(cluster: Cluster) -> None:
    documents = [SLICES, ROOT / "docs" / "OPERATIONS.md"]
    pattern = r"^    cohabit (submit .*--requeue-on-timeout.*slices\.py)$"
    texts = [re.search(pattern, it.read_text(encoding="utf-8"), re.M) for it in documents]
    assert texts[0] and texts[1] and texts[0][1] == texts[1][1]
    submit, *flags = shlex.split(texts[0][1])
    at = flags.index("--")
    assert flags[at:] == ["--", "python", "examples/scripts/slices.py"]
    environment = f"--env=PYTHONPATH={':'.join(sys.path)}"
    command = [sys.executable, str(SLICES), "--steps", "20", "--step-seconds", "0.01"]
    job = cluster.ok(submit, "--output", "quiet", environment, *flags[:at], "--", *command).strip()
    shown = cluster.ended(job)
    assert shown["state"] == "COMPLETED", (shown["reason"], cluster.ok("logs", job))
    printed = cluster.logs(job, 1)
    lines = r"begins at step 0\nsaved, to go on at step 20\nended after 20 steps, with a loss of \S+\n"
    assert re.fullmatch(lines, printed), printed
    assert shown["progress"]["step"] == shown["progress"]["total"] == 20


@pytest.mark.parametrize(
    "script",
    [SLICES, *(PYTORCH / it for it in ("digits.py", "charlm.py", "digits_ddp.py"))],
    ids=lambda it: it.name,
)
def test_without_the_package_a_sentence_says_what_to_do(script: pathlib.Path) -> None:
    # Without `site` and the environment, nothing is installed.
    done = subprocess.run([sys.executable, "-SEB", str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: .* pip install \./client/python .*\n", done.stderr), done.stderr
