"""Trainings in a real cluster: stopped in the middle, moved to another worker, and ending as if nothing had been."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cluster_kit import SCRIPTS, Cluster
from kit import need, until


def final(output: str) -> str:
    """The line with the final loss."""
    return next(line for line in output.splitlines() if line.startswith("final loss"))


def undisturbed(script: str, *arguments: str) -> str:
    """The final loss of a run outside of the cluster."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COHABIT_")}
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / script), *arguments],
        env={**environment, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return final(done.stdout)


def moved(cluster: Cluster, job: str) -> dict:
    """Stops the job where it waits, has it go on elsewhere, and returns its record."""
    holding = until(
        "the job waits to be stopped", lambda: "holding" in cluster.logs(job, 1) and cluster.show(job)
    )
    assert holding["state"] == "RUNNING", cluster.logs(job, 1)
    (node,) = holding["nodes"]
    other = "second" if node != "second" else next(name for name in cluster.nodes() if name != "second")
    cluster.ok("worker", "drain", node)
    cluster.ok("requeue", job)
    shown = cluster.ended(job)
    assert shown["state"] == "COMPLETED", (shown["reason"], cluster.ok("logs", job))
    ranks = [attempt["ranks"][0] for attempt in shown["attempts"]]
    assert [rank["node"] for rank in ranks] == [node, other]
    assert [rank["exit_code"] for rank in ranks] == [143, 0], cluster.logs(job, 1)
    assert "Traceback" not in cluster.logs(job, 1)
    return shown


@pytest.mark.parametrize(
    ("script", "packages"),
    [
        ("plain.py", []),
        ("pytorch.py", ["torch"]),
        ("transformers_train.py", ["torch", "transformers", "accelerate"]),
        ("lightning_train.py", ["torch", "lightning"]),
        ("keras_train.py", ["torch", "keras"]),
    ],
)
def test_a_training_that_is_moved_ends_as_an_undisturbed_one(
    cluster: Cluster, script: str, packages: list[str]
) -> None:
    need(*packages)
    cluster.add_worker("second")
    job = cluster.submit(script, "--retries", "0")
    shown = moved(cluster, job)
    assert final(cluster.logs(job, 2)) == undisturbed(script)
    progress = shown["progress"]
    assert progress["step"] == progress["total"] and "loss" in progress["metrics"]


def test_a_warning_before_the_time_limit_saves_and_the_next_slice_goes_on(cluster: Cluster) -> None:
    job = cluster.submit("slices.py", "--time", "4s", "--requeue-on-timeout", "--stop-signal", "SIGUSR2@2s")
    shown = cluster.ended(job)
    assert shown["state"] == "COMPLETED", (shown["reason"], cluster.ok("logs", job))
    attempts = len(shown["attempts"])
    assert attempts >= 2
    begins = [int(cluster.logs(job, attempt).split()[2]) for attempt in range(1, attempts + 1)]
    assert begins == sorted(begins) and begins[-1] > 0


def test_a_cancelled_job_saves_and_ends_and_a_job_that_hangs_is_killed(cluster: Cluster) -> None:
    job = cluster.submit("plain.py", "--grace", "60s")
    until("the job waits to be stopped", lambda: "holding" in cluster.logs(job, 1))
    cluster.ok("cancel", job)
    shown = cluster.ended(job)
    assert shown["state"] == "CANCELLED" and shown["attempts"][0]["ranks"][0]["exit_code"] == 143
    hanging = cluster.submit("hanging.py", "--grace", "1s")
    until("the job hangs", lambda: "hanging" in cluster.logs(hanging, 1))
    cluster.ok("cancel", hanging)
    shown = cluster.ended(hanging)
    assert shown["state"] == "CANCELLED" and shown["attempts"][0]["ranks"][0]["signal"] == 9, shown[
        "attempts"
    ]


def test_the_ranks_of_a_gang_are_stopped_at_the_same_step(cluster: Cluster) -> None:
    need("torch")
    job = cluster.submit("gang.py", "--gpus", "2", "--launch", "per-gpu", "--retries", "0")
    until("the ranks train", lambda: (cluster.show(job)["progress"] or {}).get("step", 0) > 20)
    cluster.ok("requeue", job)
    shown = cluster.ended(job)
    assert shown["state"] == "COMPLETED", (shown["reason"], cluster.ok("logs", job))

    def printed(attempt: int, rank: int) -> list[str]:
        lines = cluster.ok("logs", "--attempt", str(attempt), "--rank", str(rank), job).splitlines()
        return [line for line in lines if line.isdecimal()]

    saved = [printed(1, rank) for rank in range(2)]
    assert saved[0] == saved[1] and len(saved[0]) == 1
    resumed = [printed(2, rank) for rank in range(2)]
    assert resumed[0] == resumed[1] == [str(int(saved[0][0]) + 1)]
