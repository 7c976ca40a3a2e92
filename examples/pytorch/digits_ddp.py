"""Trains the network of `digits.py` on several ranks, with PyTorch's DistributedDataParallel over gloo.

The ranks find each other through the variables that torchrun and Cohabit set: RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT. Each rank processes its part of the images of every step. Only the first rank prints, reports and saves;
all ranks resume from its checkpoint.
"""

import math
import sys
import time

import job_protocol  # Before PyTorch, whose import is slow: see job_protocol.py.

import digits
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    options = digits.parse_options()
    dist.init_process_group("gloo")
    try:
        train(options, dist.get_rank(), dist.get_world_size())
    finally:
        dist.destroy_process_group()


def train(options, rank, ranks):
    first = rank == 0
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    device = torch.device("cpu")
    (pixels, labels), test = digits.split_images(options.seed, device)
    model = DistributedDataParallel(digits.network(options.hidden))
    optimizer = torch.optim.Adam(model.parameters(), options.learning_rate)
    checkpoints = job_protocol.Checkpoints(
        options.checkpoint if first else None, "digits-ddp", digits.options_by_flag(options)
    )
    steps_per_epoch = math.ceil(len(labels) / options.batch_size)
    total_steps = options.epochs * steps_per_epoch
    signals = job_protocol.StopSignals()
    progress = job_protocol.Progress() if first else None
    step = resume(model, optimizer, checkpoints, device, first)
    save_at = time.monotonic() + options.checkpoint_seconds

    def save():
        state = {"step": step, "model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
        checkpoints.save(state)

    while step < total_steps:
        end, warned = agree(signals.terminated, signals.take_warning())
        if end or warned or time.monotonic() >= save_at:
            save()
            save_at = time.monotonic() + options.checkpoint_seconds
        if end:
            if first:
                job_protocol.say(f"asked to end after step {step}")
            sys.exit(job_protocol.EXIT_TERMINATED)
        loss = part_of_loss(model, pixels, labels, options, step, steps_per_epoch, rank, ranks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        whole = mean_of(loss)
        if not math.isfinite(whole):
            sys.exit(f"error: the loss at step {step} is {whole}: try a lower --learning-rate")
        if first:
            progress.report(step, total_steps, whole)
            if step % steps_per_epoch == 0:
                epoch = step // steps_per_epoch
                job_protocol.say(
                    f"epoch {epoch:>3}/{options.epochs}  step {step:>5}/{total_steps}  loss {whole:.4f}"
                )
    save()
    if first:
        part, images = digits.accuracy(model.module, test), len(test[1])
        job_protocol.say(f"accuracy {100 * part:.1f}% on {images} images never seen in training")


def part_of_loss(model, pixels, labels, options, step, steps_per_epoch, rank, ranks):
    """This rank's loss, weighted so that the mean over the ranks is the mean over all images of the step."""
    epoch, batch = divmod(step, steps_per_epoch)
    generator = job_protocol.random_generator(options.seed, digits.FOR_FIRST_EPOCH + epoch)
    order = torch.randperm(len(labels), generator=generator)
    numbers = order[batch * options.batch_size :][: options.batch_size]
    own = numbers[len(numbers) * rank // ranks : len(numbers) * (rank + 1) // ranks]
    weight = ranks * len(own) / len(numbers)
    # A rank without images uses one with weight 0, because all ranks must take part in the exchange.
    own = own if len(own) else numbers[:1]
    return weight * nn.functional.cross_entropy(model(pixels[own]), labels[own])


def resume(model, optimizer, checkpoints, device, first):
    """Loads the checkpoint of the first rank, if there is one, on all ranks; returns the step to resume at."""
    state = [checkpoints.load(device) if first else None]
    dist.broadcast_object_list(state)
    if state[0] is None:
        return 0
    model.module.load_state_dict(state[0]["model"])
    optimizer.load_state_dict(state[0]["optimizer"])
    if first:
        job_protocol.say(f"resumed at step {state[0]['step']}")
    return state[0]["step"]


def agree(*requests):
    """Combines the requests of all ranks: what one rank requests, all ranks do after the same step."""
    votes = torch.tensor([float(request) for request in requests])
    dist.all_reduce(votes, dist.ReduceOp.MAX)
    return [vote > 0 for vote in votes.tolist()]


def mean_of(loss):
    total = loss.detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


if __name__ == "__main__":
    main()
