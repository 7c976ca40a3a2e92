"""Trains in slices of time: saves when it is warned, and goes on from what it saved.

    cohabit submit --time 4h --requeue-on-timeout --stop-signal SIGUSR1@60s -- python examples/scripts/slices.py

Cohabit sends SIGUSR1 a minute before the time limit and queues the job again. The last slice ends by itself. The
"training" here only counts; a real one would save its model and optimizer in the same place.
"""

import argparse
import json
import os
import pathlib
import signal
import sys
import time

warned = False


def warn(*_):
    global warned
    warned = True


def report(step, total):
    """Tells Cohabit the progress, where it asks for it."""
    if path := os.environ.get("COHABIT_PROGRESS"):
        with open(path, "a") as progress:
            progress.write(json.dumps({"step": step, "total": total, "loss": 1 / (1 + step)}) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--step-seconds", type=float, default=0.1)
    arguments = parser.parse_args()
    signal.signal(signal.SIGUSR1, warn)
    signal.signal(signal.SIGTERM, warn)

    saved = pathlib.Path(os.environ.get("COHABIT_CHECKPOINT_DIR", ".")) / "step.json"
    step = json.loads(saved.read_text())["step"] if saved.exists() else 0
    print(f"begins at step {step}", flush=True)
    while step < arguments.steps and not warned:
        time.sleep(arguments.step_seconds)
        step += 1
        report(step, arguments.steps)

    # The file appears whole or not at all, whatever happens meanwhile.
    partial = saved.with_suffix(".partial")
    partial.write_text(json.dumps({"step": step}))
    partial.replace(saved)
    print(f"saved step {step}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
