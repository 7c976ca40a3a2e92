"""The interface between a training of the zoo and the cluster, without the package `cohabit`.

Your own scripts are shorter and get more with the package: see README.md. The zoo also runs where it is not installed.
The cluster sets two environment variables and sends two signals:

COHABIT_PROGRESS        a file or FIFO for JSON lines such as {"step": 120, "total": 1000, "loss": 0.41}
COHABIT_CHECKPOINT_DIR  a directory that stays the same when the job starts again
SIGUSR1                 the job may be stopped soon: save a checkpoint and continue
SIGTERM                 the job is being stopped: save a checkpoint and exit with 143

Without these variables, nothing is reported or saved. Import this module before PyTorch.
"""

import json
import os
import signal
import sys
import time

from checkpoint_state import refuse_other_options

# PyTorch takes seconds to import. A warning in the meantime must not end the program.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)

import torch  # noqa: E402

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
        refuse_other_options(state["options"], self._options, self.path)
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


def say(line):
    print(line, flush=True)


def warn(line):
    print(f"warning: {line}", file=sys.stderr, flush=True)
