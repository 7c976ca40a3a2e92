"""The interface between a training program and the cluster. Copy this file into your own project.

The cluster sets two environment variables and sends two signals:

COHABIT_PROGRESS        a file or FIFO for JSON lines such as {"step": 120, "total": 1000, "loss": 0.41}
COHABIT_CHECKPOINT_DIR  a directory that stays the same when the job starts again
SIGUSR1                 the job may be stopped soon: save a checkpoint and continue
SIGTERM                 the job is being stopped: save a checkpoint and exit with 143

Without these variables, nothing is reported or saved, so a program that uses this module runs anywhere. Import this
module before PyTorch.
"""

import argparse
import json
import os
import signal
import sys
import time

# PyTorch takes seconds to import. A warning in the meantime must not end the program.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)

import torch  # noqa: E402

EXIT_USAGE = 2
EXIT_TERMINATED = 128 + signal.SIGTERM
SHORTEST_REPORT_INTERVAL_SECONDS = 0.1


class Progress:
    """Writes at most ten lines per second, and always the last one; never waits for a reader."""

    def __init__(self):
        self._file = None
        self._written_at = -SHORTEST_REPORT_INTERVAL_SECONDS
        path = os.environ.get("COHABIT_PROGRESS")
        if path:
            # Linux opens a FIFO for reading and writing immediately, even if it has no reader yet.
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
            try:
                self._file = os.open(path, flags, 0o644)
            except OSError as error:
                warn(f"progress is not reported: {error}")

    def report(self, step, total, loss):
        now = time.monotonic()
        too_soon = now - self._written_at < SHORTEST_REPORT_INTERVAL_SECONDS
        if self._file is None or (too_soon and step < total):
            return
        line = json.dumps({"step": step, "total": total, "loss": loss}) + "\n"
        try:
            os.write(self._file, line.encode())
        except BlockingIOError:
            pass  # The pipe is full: the line is dropped and the training continues.
        self._written_at = now


class StopSignals:
    """Records signals; the training checks them between steps."""

    def __init__(self):
        self.terminated = False
        self._warned = False
        signal.signal(signal.SIGTERM, self._terminate)
        signal.signal(signal.SIGUSR1, self._warn)

    def take_warning(self):
        """Whether a warning has been received since the last call."""
        warned, self._warned = self._warned, False
        return warned

    def _terminate(self, _signal, _frame):
        self.terminated = True

    def _warn(self, _signal, _frame):
        self._warned = True


class Checkpoints:
    """One file with everything that is needed to resume, replaced atomically."""

    def __init__(self, folder, program, options):
        self.path = folder and os.path.join(folder, f"{program}.pt")
        self._folder = folder
        self._options = options
        if folder:
            os.makedirs(folder, exist_ok=True)

    def load(self, device):
        """The last saved state, or None. A checkpoint with other options ends the program."""
        if not self.path or not os.path.exists(self.path):
            return None
        try:
            state = torch.load(self.path, map_location=device, weights_only=True)
            missing = {"step", "model", "optimizer", "options"} - set(state)
            if missing:
                raise KeyError(", ".join(sorted(missing)))
        except Exception as error:  # Damage has many symptoms: a bad archive, a bad pickle, a missing key.
            warn(f"ignoring the damaged checkpoint {self.path} ({type(error).__name__}): starting at step 0")
            return None
        self._refuse_differences(state["options"])
        return state

    def save(self, state):
        if not self.path:
            return
        unfinished = self.path + ".unfinished"
        with open(unfinished, "wb") as file:
            torch.save({**state, "options": self._options}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, self.path)
        folder = os.open(self._folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def _refuse_differences(self, saved):
        flags = sorted(set(saved) | set(self._options))
        differences = [
            f"{flag} was {saved.get(flag, 'unset')}, is now {self._options.get(flag, 'unset')}"
            for flag in flags
            if saved.get(flag) != self._options.get(flag)
        ]
        if differences:
            print(
                f"error: the checkpoint {self.path} is of a training with other options "
                f"({', '.join(differences)}): give the old options or another --checkpoint directory, "
                "or remove the file",
                file=sys.stderr,
            )
            sys.exit(EXIT_USAGE)


def train(
    model, optimizer, loss_of_step, total_steps, checkpoints, device, save_interval_seconds, line_after
):
    """Resumes, trains until the end, reports and saves; exits with 143 on SIGTERM.

    `loss_of_step(step)` must depend only on the step and the model, so that a resumed training sees the same
    examples as an uninterrupted one.
    """
    signals, progress = StopSignals(), Progress()
    step = _resume(model, optimizer, checkpoints, device)

    def save():
        state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        checkpoints.save(state)

    save_at = time.monotonic() + save_interval_seconds
    while step < total_steps:
        if signals.terminated:
            save()
            say(f"asked to end after step {step}: {_what_is_saved(checkpoints, step)}")
            sys.exit(EXIT_TERMINATED)
        if signals.take_warning():
            save()
            say(f"warned after step {step}: {_what_is_saved(checkpoints, step)}, going on")
        if time.monotonic() >= save_at:
            save()
            save_at = time.monotonic() + save_interval_seconds
        loss = loss_of_step(step)
        if not torch.isfinite(loss):
            sys.exit(f"error: the loss at step {step + 1} is {loss.item()}: try a lower --learning-rate")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        progress.report(step, total_steps, loss.item())
        line_after(step, loss)
    save()


def _resume(model, optimizer, checkpoints, device):
    state = checkpoints.load(device)
    if state is None:
        return 0
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    say(f"resumed at step {state['step']}")
    return state["step"]


def _what_is_saved(checkpoints, step):
    return f"checkpoint of step {step}" if checkpoints.path else "no --checkpoint directory, nothing saved"


def add_run_options(parser):
    """Adds the options that all programs have."""
    parser.add_argument("--seed", type=int, default=1, help="seed of the initial weights and the order of the data")
    parser.add_argument("--threads", type=count, default=1, help="CPU threads to use")
    parser.add_argument(
        "--checkpoint",
        metavar="DIR",
        default=os.environ.get("COHABIT_CHECKPOINT_DIR"),
        help="directory to save in and to resume from (default: $COHABIT_CHECKPOINT_DIR)",
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


def say(line):
    print(line, flush=True)


def warn(line):
    print(f"warning: {line}", file=sys.stderr, flush=True)
