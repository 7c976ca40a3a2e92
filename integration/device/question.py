"""Answers one question about this machine's GPU by an experiment, in words and as JSON: see README.md.

Each experiment is a job that shares the GPU under a limit of 4 GiB, or has it whole. With --fake the GPU is made up,
and so is the answer.
"""

import argparse
import contextlib
import dataclasses
import json
import pathlib
import re
import sys
import time

import workloads
from cluster import Cluster, temporary_folder
from fake_world import FakeWorld
from measure import find_cohabit
from report import Clock, say

LIMIT_MIB = 4096
SHARE = ("--gpus", "0.3", "--gpu-mem", f"{LIMIT_MIB}M")
DEVICE = pathlib.Path(__file__).resolve().parent
LONGEST_SECONDS = 240
WATCHED_SECONDS = 30.0

NUMBERS = """
import os, torch
print("CUDA_VISIBLE_DEVICES", os.environ["CUDA_VISIBLE_DEVICES"])
print("expected", os.environ["COHABIT_GPU_UUIDS"])
for number in range(torch.cuda.device_count()):
    print("seen GPU-" + str(torch.cuda.get_device_properties(number).uuid))
"""


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A question, and the job whose fate answers it."""

    question: str
    command: tuple[str, ...]
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    flags: tuple[str, ...] = SHARE


def greedy(way="torch", *arguments):
    return (sys.executable, str(DEVICE / "greedy.py"), way, *arguments)


def shell(script):
    return ("bash", "-c", script)


TWO = " & ".join([" ".join(greedy("torch", "3072"))] * 2)
QUESTIONS = {
    "limit": Experiment("does the limit hold for PyTorch's usual allocator?", greedy()),
    "expandable-segments": Experiment(
        "does it hold for expandable_segments?", greedy(), {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    ),
    "malloc-async": Experiment(
        "does it hold for cudaMallocAsync?", greedy(), {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
    ),
    "managed": Experiment("does it hold for managed memory?", greedy("managed")),
    "second-process": Experiment("do two processes together keep to the limit?", shell(f"{TWO} & wait")),
    "dropped-variable": Experiment(
        "does the server's limit hold for a process without the variable?",
        shell(f"unset CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; exec {' '.join(greedy())}"),
    ),
    "context": Experiment(
        "how much of the GPU is in use when a process takes 2 GiB?", greedy("torch", "2048")
    ),
    "numbers-shared": Experiment("which GPU does a sharing job see?", (sys.executable, "-c", NUMBERS)),
    "numbers-whole": Experiment(
        "which GPU does a job with a whole GPU see?", (sys.executable, "-c", NUMBERS), flags=("--gpus", "1")
    ),
}


class Answer:
    """What a job did until it ended, or until it had been watched for long enough."""

    def __init__(self, cluster, job):
        self._cluster, self._job = cluster, job
        self.most_used_mib = 0

    def watch(self):
        end = time.monotonic() + WATCHED_SECONDS + 60.0
        taken, since = None, time.monotonic()
        while time.monotonic() < end:
            shown = self._cluster.json("show", self._job)
            self._note_memory()
            if shown["ended_at"]:
                break
            now_taken = self._taken()
            if now_taken != taken:
                taken, since = now_taken, time.monotonic()
            elif taken and time.monotonic() - since > WATCHED_SECONDS:
                break
            time.sleep(0.5)
        return self._cluster.json("show", self._job)

    def _note_memory(self):
        telemetry = self._cluster.gpu().get("telemetry") or {}
        self.most_used_mib = max(self.most_used_mib, (telemetry.get("memory_used") or 0) >> 20)

    def _taken(self):
        found = re.findall(r"(\d+) MiB taken", self.printed())
        return int(found[-1]) if found else 0

    def printed(self):
        return self._cluster.run("logs", "--tail", "30", self._job).stdout

    def document(self, experiment):
        shown = self.watch()
        taken = self._taken()
        told = ("state", "exit_code", "signal", "reason_code", "reason", "sharing", "sharing_reason")
        return {
            "question": experiment.question,
            "answer": verdict(shown, taken),
            "limit_mib": LIMIT_MIB if experiment.flags == SHARE else None,
            "taken_mib": taken,
            "most_used_mib": self.most_used_mib,
            **{key: shown.get(key) for key in told},
            "printed": self.printed().splitlines(),
        }


def verdict(shown, taken):
    """Who ended the job: its own error, the worker, or nobody."""
    if shown["ended_at"] is None:
        return f"nothing ended it; it took {taken} MiB"
    if shown["state"] == "COMPLETED":
        return "it ended by itself; see what it printed"
    if shown["reason_code"] == "gpu_oom" and shown["signal"] is not None:
        return f"the watchdog ended it; it had taken {taken} MiB"
    if shown["reason_code"] == "gpu_oom":
        return f"it got an out-of-memory error after {taken} MiB"
    return f"it ended as {shown['state']} ({shown['reason']})"


def main():
    options = parse_options()
    program = find_cohabit(options)
    experiment = QUESTIONS[options.question]
    with temporary_folder() as folder:
        variables, command = workloads.of_the_zoo().environment, experiment.command
        world = FakeWorld.made(folder / "world", program) if options.fake else None
        if world:
            variables, command = {}, workloads.of_the_fakes(world).greedy.command
        clock = Clock(LONGEST_SECONDS)
        environment = world.environment if world else {}
        cluster = Cluster(program, folder / "c", clock, environment, ["--devices", "auto"], options.account)
        cluster.start()
        variables = {**variables, **experiment.environment}
        flags = [word for name, value in variables.items() for word in ("--env", f"{name}={value}")]
        job = cluster.ok("submit", "--output", "quiet", *experiment.flags, *flags, "--", *command).strip()
        say(json.dumps({"fake": options.fake, **Answer(cluster, job).document(experiment)}, indent=2))
        with contextlib.suppress(Exception):
            cluster.clear()
        cluster.stop()


def parse_options():
    parser = argparse.ArgumentParser(prog="question.sh", description=__doc__.splitlines()[0])
    parser.add_argument("question", choices=sorted(QUESTIONS))
    parser.add_argument("--cohabit", type=pathlib.Path, metavar="FILE", help="the program to try")
    parser.add_argument("--account", metavar="NAME", help="whose jobs run; only where this is root")
    parser.add_argument("--fake", action="store_true", help="try the experiment itself, without a GPU")
    return parser.parse_args()


if __name__ == "__main__":
    main()
