"""Trains the network of `digits.py` on several ranks, with PyTorch's DistributedDataParallel over gloo.

The ranks find each other through the variables that torchrun and Cohabit set: RANK, WORLD_SIZE, MASTER_ADDR and
MASTER_PORT. Each rank processes its part of the images of every step. Only the first rank reports and saves; all ranks
resume from its checkpoint.
"""

import math
import sys

import digits  # Before PyTorch, because it imports cohabit, or says that it is missing.

import checkpoint_state
import cohabit
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    options = digits.parse_options()
    dist.init_process_group("gloo")
    try:
        train(options)
    finally:
        dist.destroy_process_group()


def train(options):
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    (pixels, labels), test = digits.split_images(options.seed, torch.device("cpu"))
    model = DistributedDataParallel(digits.network(options.hidden))
    optimizer = torch.optim.Adam(model.parameters(), options.learning_rate)
    chosen = digits.options_by_flag(options)
    steps_per_epoch = math.ceil(len(labels) / options.batch_size)
    steps = options.epochs * steps_per_epoch

    # All ranks take the same steps, and save and stop after the same one, whichever of them was told to.
    with cohabit.job(folder=options.checkpoint) as job:
        job.on_stop(lambda: print("asked to stop: saving", flush=True))
        checkpoint_state.resume(job, model.module, optimizer, chosen)
        for step in job.track(range(job.start, steps)):
            loss = part_of_loss(model, pixels, labels, digits.batch_of(step, len(labels), options), job)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            whole = mean_of(loss)
            if not math.isfinite(whole):
                sys.exit(f"error: the loss at step {step + 1} is {whole}: try a lower --learning-rate")
            job.log(loss=whole)
            if job.rank == 0 and (step + 1) % steps_per_epoch == 0:
                epoch = (step + 1) // steps_per_epoch
                print(f"epoch {epoch:>3}/{options.epochs}  step {step + 1:>5}/{steps}  loss {whole:.4f}", flush=True)
            if job.should_checkpoint(every=options.checkpoint_seconds) or step + 1 == steps:
                job.save(step, checkpoint_state.state_of(model.module, optimizer, chosen))
    if job.rank == 0:
        part, images = digits.accuracy(model.module, test), len(test[1])
        print(f"accuracy {100 * part:.1f}% on {images} images never seen in training", flush=True)


def part_of_loss(model, pixels, labels, numbers, job):
    """This rank's loss, weighted so that the mean over the ranks is the mean over all images of the step."""
    rank, ranks = job.rank, job.world_size
    own = numbers[len(numbers) * rank // ranks : len(numbers) * (rank + 1) // ranks]
    weight = ranks * len(own) / len(numbers)
    # A rank without images uses one with weight 0, because all ranks must take part in the exchange.
    own = own if len(own) else numbers[:1]
    return weight * nn.functional.cross_entropy(model(pixels[own]), labels[own])


def mean_of(loss):
    total = loss.detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


if __name__ == "__main__":
    main()
