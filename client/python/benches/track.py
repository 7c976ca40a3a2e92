"""Measures what the helper costs: `job.track` with `job.log` at most 2 µs a step when no report is due, and
`import cohabit` at most 10 ms.

    python client/python/benches/track.py

Prints the microseconds of processor time of a step with both, less those of an empty loop, and the milliseconds of the
import, in a job and outside of one; of each the least of several runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import timeit

STEPS = 200_000
REPEATS = 7
LIMIT_MICROSECONDS = 2.0
LIMIT_MILLISECONDS = 10.0


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


def imported() -> float:
    script = "import time; begun = time.perf_counter(); import cohabit; print(time.perf_counter() - begun)"
    runs = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
        for _ in range(REPEATS)
    ]
    return min(float(run.stdout) for run in runs) * 1e3


def main() -> int:
    outside, import_outside = measured(), imported()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            COHABIT_JOB_ID="1",
            COHABIT_PROGRESS=os.path.join(folder, "progress"),
            COHABIT_CHECKPOINT_DIR=folder,
        )
        inside, import_inside = measured(), imported()
    print(
        f"a step: outside of a job {outside:.2f} µs, in a job {inside:.2f} µs (limit {LIMIT_MICROSECONDS} µs)"
    )
    print(f"import: {import_outside:.1f} ms, in a job {import_inside:.1f} ms (limit {LIMIT_MILLISECONDS} ms)")
    is_quick = max(import_outside, import_inside) <= LIMIT_MILLISECONDS
    return 0 if is_quick and max(outside, inside) <= LIMIT_MICROSECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
