"""Trains in slices of time: saves when it is warned or stopped, and goes on from what it saved.

    cohabit submit --time 4h --requeue-on-timeout --stop-signal SIGUSR1@60s -- python examples/scripts/slices.py

Cohabit sends SIGUSR1 a minute before the time limit, stops the job at the limit, and queues it again. The last slice
ends by itself. The "training" here moves a number towards zero; a real one would save its model and optimizer.
"""

import argparse
import sys
import time

try:
    import cohabit
except ModuleNotFoundError:
    print("error: the package cohabit is missing: run pip install ./client/python in the repository", file=sys.stderr)
    sys.exit(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--step-seconds", type=float, default=0.1)
    arguments = parser.parse_args()

    with cohabit.job() as job:
        weight = job.load(default=5.0)
        print(f"begins at step {job.start}", flush=True)
        for step in job.track(range(job.start, arguments.steps)):
            time.sleep(arguments.step_seconds)
            weight -= 0.01 * weight
            job.log(loss=weight**2)
            # The last step, too: a slice that was warned and then ends is followed by another one.
            if job.should_checkpoint(every="10m") or step + 1 == arguments.steps:
                job.save(step, weight)
                print(f"saved, to go on at step {step + 1}", flush=True)
    print(f"ended after {arguments.steps} steps, with a loss of {weight**2}")


if __name__ == "__main__":
    main()
