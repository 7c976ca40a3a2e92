"""Measures what `job.track` and `job.log` cost for each step when no report is due: at most 2 µs together.

    python client/python/benches/track.py

Prints the microseconds of processor time of a step with both, less those of an empty loop, in a job and outside of one.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import timeit

STEPS = 200_000
REPEATS = 7
LIMIT_MICROSECONDS = 2.0


def bare() -> None:
    for _ in range(STEPS):
        pass


def measured() -> float:
    import cohabit

    with cohabit.job() as job:

        def tracked() -> None:
            for _ in job.track(range(STEPS)):
                job.log(loss=0.5, lr=1e-3)

        def least(function: object) -> float:
            return min(timeit.repeat(function, timer=time.process_time, number=1, repeat=REPEATS))  # type: ignore[call-overload, no-any-return]

        return float((least(tracked) - least(bare)) / STEPS * 1e6)


def main() -> int:
    outside = measured()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            COHABIT_JOB_ID="1",
            COHABIT_PROGRESS=os.path.join(folder, "progress"),
            COHABIT_CHECKPOINT_DIR=folder,
        )
        inside = measured()
    print(
        f"outside of a job {outside:.2f} µs a step, in a job {inside:.2f} µs (limit {LIMIT_MICROSECONDS} µs)"
    )
    return 0 if max(outside, inside) <= LIMIT_MICROSECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
