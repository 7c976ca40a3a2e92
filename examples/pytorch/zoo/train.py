"""Trains one model on random tensors, in a job of the cluster or by hand.

    python -m zoo.train --model gpt-small --batch 16 --precision bf16 --steps 1000

The program waits for the GPU only before each report, every 0.2 s. So reporting costs almost nothing, and each reported
step has really been computed.
"""

import argparse
import json
import math
import os
import sys
import time

import job_protocol  # Before PyTorch, whose import takes a while: see there.

import run_options
import torch

from . import registry
from .task import train_step

BATCHES_KEPT = 4  # Made before the training, so that making them costs no step anything.
REPORT_INTERVAL_SECONDS = 0.2
LINE_INTERVAL_SECONDS = 5.0


def main():
    options = parse_options()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    torch.backends.cudnn.benchmark = True
    device = options.device
    task = registry.MODELS[options.model].build().to(device)
    training = Training(task, device, options.precision)
    checkpoints = job_protocol.Checkpoints(options.checkpoint, options.model, options_by_flag(options))
    batches = random_batches(task, options, device)
    parameters = sum(parameter.numel() for parameter in task.parameters())
    how = f"batches of {options.batch}, {options.precision}, on {device}"
    job_protocol.say(f"{options.model}, {parameters} parameters, {how}")
    training.resume(checkpoints)
    if training.step:
        job_protocol.say(f"resumed at step {training.step}")
    run(training, batches, options.steps, checkpoints, Reports(options))


class Training:
    """The state of a training, which a step changes and a checkpoint contains."""

    def __init__(self, task, device, precision):
        self.task, self.device, self.step = task, device, 0
        self.optimizers = [task.optimizer(part) for part in task.parts()]
        self.precision = torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")

    def advance(self, batch):
        """Starts one step; the losses may still be being computed when this returns."""
        on_device = [tensor.to(self.device, non_blocking=True) for tensor in batch]
        losses = train_step(self.task, self.optimizers, on_device, self.precision)
        self.step += 1
        return losses

    def wait(self):
        """Waits until the device has finished all work."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def save(self, checkpoints):
        self.wait()
        checkpoints.save(
            {
                "step": self.step,
                "model": self.task.state_dict(),
                "optimizer": [optimizer.state_dict() for optimizer in self.optimizers],
                "random": random_states(self.device),
            }
        )

    def resume(self, checkpoints):
        state = checkpoints.load(self.device)
        if state is None:
            return
        self.step = state["step"]
        self.task.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizer"], strict=True):
            optimizer.load_state_dict(saved)
        torch.set_rng_state(state["random"][0].cpu())
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(state["random"][1].cpu(), self.device)


def run(training, batches, total_steps, checkpoints, reports):
    """Trains until the end; saves on SIGUSR1; saves and exits with 143 on SIGTERM."""
    signals = job_protocol.StopSignals()
    while training.step < total_steps:
        if signals.terminated:
            training.save(checkpoints)
            job_protocol.say(f"asked to end after step {training.step}: {where(checkpoints)}")
            sys.exit(job_protocol.EXIT_TERMINATED)
        if signals.take_warning():
            training.save(checkpoints)
            job_protocol.say(f"warned after step {training.step}: {where(checkpoints)}, going on")
        losses = training.advance(batches[training.step % len(batches)])
        if reports.are_due() or training.step == total_steps:
            training.wait()
            reports.report(training.step, total_steps, sum(loss.item() for loss in losses))
    training.wait()


class Reports:
    """Reports to the cluster with progress lines, to a timeline file, and to the user with printed lines."""

    def __init__(self, options):
        self._progress = job_protocol.Progress()
        self._timeline = options.timeline and open(options.timeline, "a", buffering=1)
        self._given_at = time.monotonic()
        self._line_at = self._line_step = None

    def are_due(self):
        return time.monotonic() - self._given_at >= REPORT_INTERVAL_SECONDS

    def report(self, step, total, loss):
        """Reports that all steps up to this one have been computed."""
        if not math.isfinite(loss):
            sys.exit(f"error: the loss at step {step} is {loss}: try a larger --batch, or --precision fp32")
        now = self._given_at = time.monotonic()
        self._progress.report(step, total, loss)
        if self._timeline:
            self._timeline.write(json.dumps({"at": time.time(), "step": step, "loss": loss}) + "\n")
        if self._line_at is None or now - self._line_at >= LINE_INTERVAL_SECONDS or step == total:
            self._print_line(now, step, total, loss)

    def _print_line(self, now, step, total, loss):
        rate = ""
        if self._line_at is not None:
            rate = f"  {(step - self._line_step) / (now - self._line_at):.2f} steps/s"
        job_protocol.say(f"step {step}/{total}  loss {loss:.4f}{rate}")
        self._line_at, self._line_step = now, step


def random_batches(task, options, device):
    """Random batches that depend only on the seed, in pinned memory that the GPU can copy from while it computes."""
    generator = run_options.random_generator(options.seed, 0)
    batches = [task.batch(options.batch, generator) for _ in range(BATCHES_KEPT)]
    if device.type == "cuda":
        return [[tensor.pin_memory() for tensor in batch] for batch in batches]
    return batches


def random_states(device):
    states = [torch.get_rng_state()]
    return states + ([torch.cuda.get_rng_state(device)] if device.type == "cuda" else [])


def where(checkpoints):
    return f"saved to {checkpoints.path}" if checkpoints.path else "no --checkpoint directory, nothing saved"


def parse_options():
    parser = argparse.ArgumentParser(prog="python -m zoo.train", description=__doc__.splitlines()[0])
    add_workload_options(parser)
    parser.add_argument(
        "--steps", type=run_options.count, default=1000,
        help="number of steps; may be increased when resuming",
    )
    parser.add_argument(
        "--device", type=torch.device, default=run_options.device(), help="device: cuda or cpu"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the initial weights and the batches")
    parser.add_argument("--threads", type=run_options.count, default=1, help="CPU threads to use")
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        default=os.environ.get("COHABIT_CHECKPOINT_DIR"),
        help="directory to save in and to resume from (default: $COHABIT_CHECKPOINT_DIR)",
    )
    parser.add_argument(
        "--timeline", metavar="FILE", help="file to which each report appends a JSON line with the time of day"
    )
    return parser.parse_args()


def add_workload_options(parser):
    """Adds the options that select a model, for training and for describing."""
    parser.add_argument("--model", required=True, choices=registry.MODELS, metavar="NAME", help="see --help")
    parser.add_argument("--batch", type=run_options.count, required=True, help="samples per step")
    parser.add_argument(
        "--precision", choices=["fp32", "bf16"], default="fp32", help="precision; bf16 uses autocast"
    )
    parser.epilog = f"Models: {', '.join(registry.MODELS)}."


def options_by_flag(options):
    """The options that must equal those of a checkpoint."""
    return {
        "--model": options.model,
        "--batch": options.batch,
        "--precision": options.precision,
        "--seed": options.seed,
    }


if __name__ == "__main__":
    main()
