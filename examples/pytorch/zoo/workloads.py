"""Writes the workload file for `cohabit profile` and a description file for each workload.

    python -m zoo.workloads --out zoo-workloads

Each model is measured with small batches in fp32 and with large batches in bf16: two very different configurations.
"""

import argparse
import dataclasses
import math
import os
import pathlib
import sys

from . import registry
from .anatomy import anatomy
from .describe import description

# Memory of a process beyond its tensors: the CUDA context, libraries, and slack of the allocator.
CONTEXT_BYTES = 3 << 30
# Weights, gradients, and up to two moments of the optimizer, in fp32.
BYTES_PER_PARAMETER = 16
# The backward pass also holds gradients of activations, and kernels need workspace.
ACTIVATIONS_HELD = 2
ENDLESS = 1_000_000_000


@dataclasses.dataclass(frozen=True)
class Workload:
    """One configuration of a model."""

    model: str
    batch: int
    precision: str

    @property
    def name(self):
        return f"{self.model}-b{self.batch}-{self.precision}"


def main():
    parser = argparse.ArgumentParser(prog="python -m zoo.workloads", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=pathlib.Path, required=True, metavar="DIR",
        help="directory to write to; created if it does not exist",
    )
    parser.add_argument(
        "--model", action="append", choices=registry.MODELS, help="write only this model; may be repeated"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    chosen = [it for it in workloads() if not options.model or it.model in options.model]
    entries = []
    for workload in chosen:
        found = anatomy(registry.MODELS[workload.model].build, workload.batch, workload.precision)
        text = description(workload.model, workload.batch, workload.precision, found)
        (options.out / f"{workload.name}.toml").write_text(text)
        entries.append(entry(workload, found))
    (options.out / "workloads.toml").write_text("\n".join(entries))
    print(f"{len(chosen)} workloads in {options.out / 'workloads.toml'}")


def workloads():
    """The smallest batch in fp32 and the largest in bf16 of every model."""
    for name, model in registry.MODELS.items():
        yield Workload(name, min(model.batches), "fp32")
        yield Workload(name, max(model.batches), "bf16")


def entry(workload, found):
    """The entry of the workload file."""
    folder = pathlib.Path(__file__).resolve().parent.parent
    arguments = ["--model", workload.model, "--batch", str(workload.batch), "--precision", workload.precision]
    command = [sys.executable, "-m", "zoo.train", *arguments, "--steps", str(ENDLESS)]
    quoted = ", ".join(f'"{word}"' for word in command)
    return f"""\
[[workloads]]
name = "{workload.name}"
model = "{workload.model}"
batch = {workload.batch}
precision = "{workload.precision}"
command = [{quoted}]
description = "{workload.name}.toml"
memory = "{memory_gib(found)}G"
env = {{ PYTHONPATH = "{os.fspath(folder)}" }}
"""


def memory_gib(found):
    """A memory limit for a workload with this cost, by a rough estimate."""
    tensors = BYTES_PER_PARAMETER * found.parameters + ACTIVATIONS_HELD * found.activation_bytes
    return math.ceil((CONTEXT_BYTES + tensors) / (1 << 30))


if __name__ == "__main__":
    main()
