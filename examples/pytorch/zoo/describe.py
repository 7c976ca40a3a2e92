"""Describes a model of the zoo for `cohabit submit --model FILE.toml`.

    python -m zoo.describe --model resnet-50 --batch 64 --precision bf16 > resnet-50.toml

The description is derived from the model itself: `anatomy.py` documents what is counted, and how.
"""

import argparse

from . import registry
from .anatomy import anatomy
from .train import add_workload_options


def main():
    parser = argparse.ArgumentParser(prog="python -m zoo.describe", description=__doc__.splitlines()[0])
    add_workload_options(parser)
    options = parser.parse_args()
    found = anatomy(registry.MODELS[options.model].build, options.batch, options.precision)
    print(description(options.model, options.batch, options.precision, found), end="")


def description(name, batch, precision, found):
    """The description as TOML; `found` is the cost of this model with this batch size and precision."""
    operators = ", ".join(f"{operator} = {count}" for operator, count in found.operators.items())
    return f"""\
# FLOPs: forward pass times three, multiplication and addition count as two.
name = "{name}"
family = "{registry.MODELS[name].family}"
batch-size = {batch}
precision = "{precision}"
parameters = {found.parameters}
flops-per-sample = {found.flops / batch:.4e}
activation-bytes = {found.activation_bytes:.4e}
input-bytes = {found.input_bytes // batch}
operators = {{ {operators} }}
"""


if __name__ == "__main__":
    main()
