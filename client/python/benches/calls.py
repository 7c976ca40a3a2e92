"""Measures how many trivial calls an executor runs in a second, and beside it, in the same run, others.

    cohabit up --state /tmp/bench --devices host:4 --listen 127.0.0.1:0
    python client/python/benches/calls.py /tmp/bench

Rows: `python -c pass` one after the other and four at once (what the start of interpreters allows); `pool.map` with a
job for each call; with warm interpreters; submitit's local executor and Ray's tasks where they are installed. Each row
is the best of a few runs, since others may use the machine.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable

CALLS = 200
SLOTS = 4
REPEATS = 3


def call(number: int) -> int:
    return number + 1


def rate(work: Callable[[], Any], calls: int = CALLS) -> float:
    """Calls in a second, of the best run."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return calls / min(times)


def interpreters() -> Iterator[tuple[str, float]]:
    """Four processes at once that do nothing, without a cluster: the bound for a job for each call."""

    def starts(program: str) -> float:
        def start(_: int) -> None:
            subprocess.run([sys.executable, "-c", program], check=True)

        return rate(lambda: list(threads.map(start, range(CALLS))))

    with ThreadPoolExecutor(SLOTS) as threads:
        yield "python -c pass, 4 at once", starts("pass")
        yield "the same with the imports of a call", starts("import cohabit._executor.run_call")
        # A function of the driver's program travels by value, and is made by cloudpickle.
        yield "the same for a function by value", starts("import cohabit._executor.run_call, cloudpickle")


def executors(state: str) -> Iterator[tuple[str, float]]:
    import cohabit

    client = cohabit.Client(state=state)
    expected = list(map(call, range(CALLS)))
    for name, options in [("a job for each call", {}), ("warm interpreters", {"warm": True})]:
        with cohabit.Executor(client, gpus=1, max_running=SLOTS, **options) as pool:  # type: ignore[arg-type]
            assert list(pool.map(call, range(SLOTS))) == expected[:SLOTS]

            def mapped() -> None:
                assert list(pool.map(call, range(CALLS))) == expected

            yield f"pool.map, {name}", rate(mapped)
            yield f"the same of a function by name, {name}", rate(lambda: list(pool.map(abs, range(CALLS))))


def submitit() -> Iterator[tuple[str, float]]:
    try:
        import submitit
    except ImportError:
        return
    # It starts as many processes at once as there are jobs, so they come in fours.
    few = 20
    with tempfile.TemporaryDirectory() as folder:
        executor = submitit.LocalExecutor(folder=folder)

        def run() -> None:
            for first in range(0, few, SLOTS):
                jobs = [executor.submit(call, number) for number in range(first, first + SLOTS)]
                assert [job.result() for job in jobs] == list(range(first + 1, first + SLOTS + 1))

        yield "submitit's local executor, 4 at once", rate(run, few)


def ray() -> Iterator[tuple[str, float]]:
    try:
        import ray as ray_module
    except ImportError:
        return
    ray_module.init(num_cpus=SLOTS, include_dashboard=False, log_to_driver=False)
    task = ray_module.remote(call)
    ray_module.get([task.remote(number) for number in range(SLOTS)])
    yield "Ray's tasks, warm workers", rate(lambda: ray_module.get([task.remote(it) for it in range(CALLS)]))
    ray_module.shutdown()


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: calls.py STATE, of a running cluster with four free devices")
    for row in (interpreters(), executors(sys.argv[1]), submitit(), ray()):
        for name, calls in row:
            print(f"{name:40} {calls:8.1f} calls/s", flush=True)


if __name__ == "__main__":
    main()
