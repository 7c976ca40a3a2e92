"""What is trained: models of the zoo, or on a machine without a GPU the fake CUDA program."""

import dataclasses
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENDLESS = "1000000000"


@dataclasses.dataclass(frozen=True)
class Workload:
    """A training program: its command, and whether it keeps a timeline of its own."""

    name: str
    command: tuple[str, ...]
    keeps_timeline: bool

    def started(self, timeline):
        """The command, told where its timeline goes."""
        return [*self.command, "--timeline", str(timeline)] if self.keeps_timeline else list(self.command)


@dataclasses.dataclass(frozen=True)
class Workloads:
    """One for each role in the checks."""

    # Three that leave much of a large GPU idle.
    small: tuple[Workload, Workload, Workload]
    # One that keeps it busy, and computes in the same way each time: for the overhead.
    busy: Workload
    # One that takes more memory again and again.
    greedy: Workload
    # What jobs need in their environment.
    environment: dict[str, str]


def of_the_zoo():
    environment = {"PYTHONPATH": str(ROOT / "examples" / "pytorch"), "PYTHONDONTWRITEBYTECODE": "1"}
    if "LD_LIBRARY_PATH" in os.environ:
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    greedy = (sys.executable, str(ROOT / "integration" / "device" / "greedy.py"), "torch")
    return Workloads(
        small=(_zoo("gpt-mini", 8, "fp32"), _zoo("resnet-18", 32, "fp32"), _zoo("lstm-lm", 20, "fp32")),
        busy=_zoo("bert-base", 32, "bf16"),
        greedy=Workload("greedy", greedy, keeps_timeline=False),
        environment=environment,
    )


def _zoo(model, batch, precision):
    arguments = ("--model", model, "--batch", str(batch), "--precision", precision, "--steps", ENDLESS)
    command = (sys.executable, "-m", "zoo.train", *arguments, "--device", "cuda")
    return Workload(f"{model}-b{batch}-{precision}", command, keeps_timeline=True)


def of_the_fakes(world):
    def fake(name, *arguments):
        command = (world.client, "--steps", ENDLESS, "--checkpoint", *arguments)
        return Workload(f"fake-{name}", command, keeps_timeline=False)

    return Workloads(
        small=(
            fake("brisk", "--rate", "50", "--alloc", "2G"),
            fake("steady", "--rate", "20", "--alloc", "3G"),
            fake("slow", "--rate", "10", "--alloc", "1G"),
        ),
        busy=fake("busy", "--rate", "25", "--alloc", "4G"),
        greedy=fake("greedy", "--rate", "20", "--alloc", "1G", "--alloc-after", "20=16G"),
        environment={},
    )
