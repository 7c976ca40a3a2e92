"""Trains a small network on handwritten digits with PyTorch, on the GPU if there is one.

The network, the data, the options and the behaviour are those of the Rust program `digits`. The random numbers are
PyTorch's, so the results differ slightly.
"""

import argparse
import math
import pathlib
import sys

try:
    import cohabit  # Before PyTorch: from here on, a warning signal does not end the script.
except ModuleNotFoundError:
    print("error: the package cohabit is missing: run pip install ./client/python in the repository", file=sys.stderr)
    sys.exit(2)

import checkpoint_state
import run_options
import torch
from torch import nn

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "client" / "training" / "data" / "digits.bin"
PIXELS, CLASSES, BRIGHTEST = 64, 10, 16
TEST_PART = 5  # One image in five is in the test set.
FOR_SPLIT, FOR_FIRST_EPOCH = 0, 1


def main():
    options = parse_options()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    device = run_options.device()
    (pixels, labels), test = split_images(options.seed, device)
    model = network(options.hidden).to(device)
    optimizer = torch.optim.Adam(model.parameters(), options.learning_rate)
    chosen = options_by_flag(options)
    steps_per_epoch = math.ceil(len(labels) / options.batch_size)
    steps = options.epochs * steps_per_epoch
    print(f"{len(labels)} images, {parameter_count(model)} parameters, on {device}", flush=True)

    with cohabit.job(folder=options.checkpoint) as job:
        job.on_stop(lambda: print("asked to stop: saving", flush=True))
        checkpoint_state.resume(job, model, optimizer, chosen)
        for step in job.track(range(job.start, steps)):
            numbers = batch_of(step, len(labels), options).to(device)
            loss = nn.functional.cross_entropy(model(pixels[numbers]), labels[numbers])
            if not torch.isfinite(loss):
                sys.exit(f"error: the loss at step {step + 1} is {loss.item()}: try a lower --learning-rate")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            job.log(loss=loss)
            if (step + 1) % steps_per_epoch == 0:
                print(
                    f"epoch {(step + 1) // steps_per_epoch:>3}/{options.epochs}  step {step + 1:>5}/{steps}  "
                    f"loss {loss.item():.4f}  test accuracy {100 * accuracy(model, test):.1f}%",
                    flush=True,
                )
            if job.should_checkpoint(every=options.checkpoint_seconds) or step + 1 == steps:
                job.save(step, checkpoint_state.state_of(model, optimizer, chosen))
    print(f"accuracy {100 * accuracy(model, test):.1f}% on {len(test[1])} images never seen in training", flush=True)


def batch_of(step, images, options):
    """The numbers of the images of a step. They depend only on the step, so that a resumed training sees the same."""
    epoch, batch = divmod(step, math.ceil(images / options.batch_size))
    generator = run_options.random_generator(options.seed, FOR_FIRST_EPOCH + epoch)
    return torch.randperm(images, generator=generator)[batch * options.batch_size :][: options.batch_size]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--epochs", type=run_options.count, default=100,
        help="number of epochs; may be increased when resuming",
    )
    parser.add_argument("--learning-rate", type=run_options.positive_number, default=0.001)
    parser.add_argument("--hidden", type=run_options.count, default=256, help="width of both hidden layers")
    parser.add_argument("--batch-size", type=run_options.count, default=32, help="images per step")
    run_options.add_run_options(parser)
    return parser.parse_args()


def options_by_flag(options):
    """The options that must equal those of a checkpoint. The number of epochs may differ."""
    return {
        "--batch-size": options.batch_size,
        "--hidden": options.hidden,
        "--learning-rate": options.learning_rate,
        "--seed": options.seed,
    }


def split_images(seed, device):
    """Pixels and labels of the training set and of the test set."""
    records = torch.frombuffer(bytearray(DIGITS.read_bytes()), dtype=torch.uint8).view(-1, PIXELS + 1)
    order = torch.randperm(len(records), generator=run_options.random_generator(seed, FOR_SPLIT))
    records = records[order].to(device)
    pixels, labels = records[:, :PIXELS].float() / BRIGHTEST, records[:, PIXELS].long()
    tested = len(records) // TEST_PART
    return (pixels[tested:], labels[tested:]), (pixels[:tested], labels[:tested])


def network(hidden):
    return nn.Sequential(
        nn.Linear(PIXELS, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, CLASSES),
    )


def parameter_count(model):
    return sum(parameter.numel() for parameter in model.parameters())


@torch.no_grad()
def accuracy(model, images):
    pixels, labels = images
    return (model(pixels).argmax(dim=1) == labels).float().mean().item()


if __name__ == "__main__":
    main()
