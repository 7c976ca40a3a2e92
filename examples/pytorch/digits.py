"""Trains a small network on handwritten digits with PyTorch, on the GPU if there is one.

The network, the data, the options and the behaviour are those of the Rust program `digits`. The random numbers are
PyTorch's, so the results differ slightly.
"""

import argparse
import math
import pathlib

import job_protocol  # Before PyTorch, whose import is slow: see job_protocol.py.

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
    device = job_protocol.device()
    (pixels, labels), test = split_images(options.seed, device)
    model = network(options.hidden).to(device)
    steps_per_epoch = math.ceil(len(labels) / options.batch_size)
    total_steps = options.epochs * steps_per_epoch
    job_protocol.say(f"{len(labels)} images, {parameter_count(model)} parameters, on {device}")

    def loss_of_step(step):
        epoch, batch = divmod(step, steps_per_epoch)
        generator = job_protocol.random_generator(options.seed, FOR_FIRST_EPOCH + epoch)
        order = torch.randperm(len(labels), generator=generator)
        numbers = order[batch * options.batch_size :][: options.batch_size].to(device)
        return nn.functional.cross_entropy(model(pixels[numbers]), labels[numbers])

    def line_after(step, loss):
        if step % steps_per_epoch == 0:
            epoch, part = step // steps_per_epoch, accuracy(model, test)
            job_protocol.say(
                f"epoch {epoch:>3}/{options.epochs}  step {step:>5}/{total_steps}  "
                f"loss {loss.item():.4f}  test accuracy {100 * part:.1f}%"
            )

    job_protocol.train(
        model,
        torch.optim.Adam(model.parameters(), options.learning_rate),
        loss_of_step,
        total_steps,
        job_protocol.Checkpoints(options.checkpoint, "digits", options_by_flag(options)),
        device,
        options.checkpoint_seconds,
        line_after,
    )
    part, images = accuracy(model, test), len(test[1])
    job_protocol.say(f"accuracy {100 * part:.1f}% on {images} images never seen in training")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--epochs", type=job_protocol.count, default=100,
        help="number of epochs; may be increased when resuming",
    )
    parser.add_argument("--learning-rate", type=job_protocol.positive_number, default=0.001)
    parser.add_argument("--hidden", type=job_protocol.count, default=256, help="width of both hidden layers")
    parser.add_argument("--batch-size", type=job_protocol.count, default=32, help="images per step")
    job_protocol.add_run_options(parser)
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
    order = torch.randperm(len(records), generator=job_protocol.random_generator(seed, FOR_SPLIT))
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
