"""Trains a character-level language model with PyTorch, on the GPU if there is one.

The text, the options and the behaviour are those of the Rust program `charlm`. The network is PyTorch's GRU with an
embedding, and the random numbers are PyTorch's, so the results differ slightly.
"""

import argparse
import collections
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

TEXT = pathlib.Path(__file__).resolve().parents[2] / "client" / "training" / "data" / "alice.txt"
TEST_PART = 10  # The last tenth of the text is the test part.
PASSAGE_LENGTH = 48
STEPS_PER_LINE = 20
FOR_SAMPLE, FOR_FIRST_STEP = 0, 1


class Network(nn.Module):
    """An embedding, one layer of gated recurrent units, and an output layer."""

    def __init__(self, alphabet_size, hidden):
        super().__init__()
        self.embedding = nn.Embedding(alphabet_size, hidden)
        self.recurrent = nn.GRU(hidden, hidden, batch_first=True)
        self.output = nn.Linear(hidden, alphabet_size)

    def forward(self, characters, state=None):
        states, state = self.recurrent(self.embedding(characters), state)
        return self.output(states), state


def main():
    options = parse_options()
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    device = run_options.device()
    text = TEXT.read_text()
    alphabet = sorted(set(text))
    numbers = torch.tensor([alphabet.index(letter) for letter in text], device=device)
    training, test = numbers[: -(len(text) // TEST_PART)], numbers[-(len(text) // TEST_PART) :]
    model = Network(len(alphabet), options.hidden).to(device)
    optimizer = torch.optim.Adam(model.parameters(), options.learning_rate)
    chosen = options_by_flag(options)
    describe(training, model, device)

    with cohabit.job(folder=options.checkpoint) as job:
        job.on_stop(lambda: print("asked to stop: saving", flush=True))
        checkpoint_state.resume(job, model, optimizer, chosen)
        for step in job.track(range(job.start, options.steps)):
            loss = passage_loss(model, training, starts_of(step, len(training), options).to(device))
            if not torch.isfinite(loss):
                sys.exit(f"error: the loss at step {step + 1} is {loss.item()}: try a lower --learning-rate")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            job.log(loss=loss)
            is_last = step + 1 == options.steps
            if (step + 1) % STEPS_PER_LINE == 0 or is_last:
                print(f"step {step + 1:>5}/{options.steps}  loss {loss.item():.4f}", flush=True)
            if job.should_checkpoint(every=options.checkpoint_seconds) or is_last:
                job.save(step, checkpoint_state.state_of(model, optimizer, chosen))
    print(f"loss {test_loss(model, test):.3f} nats per character on text never seen in training")
    print(f"---\n{sample(model, alphabet, options, device)}\n---")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--steps", type=run_options.count, default=300,
        help="number of steps; may be increased when resuming",
    )
    parser.add_argument("--learning-rate", type=run_options.positive_number, default=0.005)
    parser.add_argument("--hidden", type=run_options.count, default=128, help="width of the recurrent layer")
    parser.add_argument("--batch-size", type=run_options.count, default=32, help="passages per step")
    parser.add_argument("--sample-length", type=run_options.count, default=300, help="characters to sample")
    parser.add_argument(
        "--temperature", type=run_options.positive_number, default=0.7, help="temperature of the sampling"
    )
    run_options.add_run_options(parser)
    return parser.parse_args()


def options_by_flag(options):
    """The options that must equal those of a checkpoint. The number of steps and the sampling may differ."""
    return {
        "--batch-size": options.batch_size,
        "--hidden": options.hidden,
        "--learning-rate": options.learning_rate,
        "--seed": options.seed,
    }


def describe(training, model, device):
    parameters = sum(parameter.numel() for parameter in model.parameters())
    parts = [count / len(training) for count in collections.Counter(training.tolist()).values()]
    entropy = -sum(part * math.log(part) for part in parts)
    print(f"{len(training)} characters, {parameters} parameters, on {device}")
    print(f"guessing by letter frequency alone has a loss of {entropy:.3f} nats per character")


def starts_of(step, length, options):
    """Where the passages of a step begin. It depends only on the step, so that a resumed training sees the same."""
    generator = run_options.random_generator(options.seed, FOR_FIRST_STEP + step)
    return torch.randint(length - PASSAGE_LENGTH, (options.batch_size,), generator=generator)


def passage_loss(model, text, starts):
    """The mean loss over passages that start with a zero state, in nats per character."""
    passages = text[starts[:, None] + torch.arange(PASSAGE_LENGTH + 1, device=text.device)]
    scores, _ = model(passages[:, :-1])
    return nn.functional.cross_entropy(scores.flatten(0, 1), passages[:, 1:].flatten())


@torch.no_grad()
def test_loss(model, test):
    starts = torch.arange(0, len(test) - PASSAGE_LENGTH, PASSAGE_LENGTH, device=test.device)
    return passage_loss(model, test, starts).item()


@torch.no_grad()
def sample(model, alphabet, options, device):
    generator = run_options.random_generator(options.seed, FOR_SAMPLE)
    number, state, letters = alphabet.index("\n"), None, []
    for _ in range(options.sample_length):
        scores, state = model(torch.tensor([[number]], device=device), state)
        odds = torch.softmax(scores[0, -1].cpu() / options.temperature, dim=0)
        number = torch.multinomial(odds, 1, generator=generator).item()
        letters.append(alphabet[number])
    return "".join(letters)


if __name__ == "__main__":
    main()
