"""Checks that every model trains, has the published size, and resumes where it was stopped.

python -m zoo.check --device cpu --model pointnet
"""

import argparse
import sys
import tempfile

import job_protocol  # Before PyTorch, whose import takes a while: see there.

import run_options
import torch

from . import registry
from .anatomy import anatomy
from .train import Training

BATCH = 2
# Published parameters, and multiply-additions of the forward pass in millions where the papers report them.
PUBLISHED = {
    "resnet-18": (11_689_512, 1_814),
    "resnet-50": (25_557_032, 4_089),
    "vgg-11": (132_863_336, 7_609),
    "mobilenet-v2": (3_504_872, 301),
    "efficientnet-b0": (5_288_548, 386),
    "vit-small": (22_050_664, 4_600),
    "gpt-small": (124_439_808, None),
}
TOLERANCE = 0.02


def main():
    parser = argparse.ArgumentParser(prog="python -m zoo.check", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--device", type=torch.device, default=run_options.device(), help="device: cuda or cpu"
    )
    parser.add_argument(
        "--model", action="append", choices=registry.MODELS, help="check only this model; may be repeated"
    )
    options = parser.parse_args()
    failed = 0
    for name in options.model or registry.MODELS:
        for claim in (is_counted_as_published, trains_in_both_precisions, goes_on_where_it_stopped):
            fault = claim(name, options.device)
            failed += fault is not None
            verdict = "ok" if fault is None else f"FAILED: {fault}"
            job_protocol.say(f"{name:16} {claim.__name__.replace('_', ' '):28} {verdict}")
    sys.exit(1 if failed else 0)


def is_counted_as_published(name, _device):
    found = anatomy(registry.MODELS[name].build, BATCH, "fp32")
    if not (found.flops > 0 and found.activation_bytes > 0 and found.operators):
        return f"nothing was counted: {found}"
    parameters, products = PUBLISHED.get(name, (None, None))
    if parameters and found.parameters != parameters:
        return f"{found.parameters} parameters, not {parameters}"
    counted = found.flops / BATCH / 3 / 2 / 1e6
    if products and abs(counted / products - 1) > TOLERANCE:
        return f"{counted:.0f} million multiply-additions, not {products}"
    return None


def trains_in_both_precisions(name, device):
    for precision in ("fp32", "bf16"):
        training, batches = start(name, device, precision)
        before = [parameter.detach().clone() for parameter in training.task.parameters()]
        losses = training.advance(batches[0])
        if not all(torch.isfinite(loss) for loss in losses):
            return f"the losses are {losses} in {precision}"
        untouched = sum(map(torch.equal, before, training.task.parameters()))
        if untouched:
            return f"a step in {precision} left {untouched} of {len(before)} parameters as they were"
    return None


def goes_on_where_it_stopped(name, device):
    """Exact on the CPU; a GPU may add in another order."""
    through, batches = start(name, device, "fp32")
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = job_protocol.Checkpoints(folder, name, {})
        through.advance(batches[0])
        through.save(checkpoints)
        through.advance(batches[1])
        resumed, _ = start(name, device, "fp32")
        resumed.resume(checkpoints)
    if resumed.step != 1:
        return f"resumed at step {resumed.step}, not 1"
    resumed.advance(batches[1])
    tolerance = 0.0 if device.type == "cpu" else 1e-2
    for ours, theirs in zip(through.task.parameters(), resumed.task.parameters(), strict=True):
        if not torch.allclose(ours, theirs, rtol=tolerance, atol=tolerance):
            return "its weights differ from those of a training that was not stopped"
    return None


def start(name, device, precision):
    torch.manual_seed(1)
    task = registry.MODELS[name].build().to(device)
    generator = run_options.random_generator(1, 0)
    return Training(task, device, precision), [task.batch(BATCH, generator) for _ in range(2)]


if __name__ == "__main__":
    main()
