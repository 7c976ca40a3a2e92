"""Options that the programs here share, and what follows from them: the device, and the random numbers of a seed."""

import argparse

import torch


def add_run_options(parser):
    """Adds the options that do not say what is trained."""
    parser.add_argument("--seed", type=int, default=1, help="seed of the initial weights and the order of the data")
    parser.add_argument("--threads", type=count, default=1, help="CPU threads to use")
    parser.add_argument(
        "--checkpoint", metavar="DIR", help="directory to save in and to resume from (default: that of the job)"
    )
    parser.add_argument("--checkpoint-seconds", type=count, default=30, help="seconds between checkpoints")


def count(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("expected a whole number from 1")
    return number


def positive_number(text):
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("expected a number above zero, such as 0.001")
    return number


def random_generator(seed, number):
    """A generator that depends only on the seed and the number of its purpose."""
    return torch.Generator().manual_seed(seed * 1_000_003 + number)


def device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
