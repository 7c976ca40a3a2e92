"""Step rates: of jobs, and of programs without Cohabit, between two looks at where they are."""

import os
import signal
import statistics
import subprocess
import time

from cluster import Position, positions
from report import Unmet


def of_jobs(clock, jobs, seconds):
    """Steps a second of each by its workload's name, all over the same time."""
    first = [job.position() for job in jobs]
    clock.wait(seconds)
    last = [job.position() for job in jobs]
    return {job.workload.name: between(*looks) for job, *looks in zip(jobs, first, last, strict=True)}


def without_cohabit(clock, workload, environment, folder, settle, seconds):
    """The rate of the bare program, once it has settled."""
    told = folder / f"bare-{time.monotonic_ns()}.jsonl"
    told.touch()
    clean = {name: value for name, value in os.environ.items() if not name.startswith("COHABIT_")}
    if not workload.keeps_timeline:
        clean["COHABIT_PROGRESS"] = str(told)
    command = workload.started(told)
    with open(folder / "bare.log", "ab") as log:
        process = subprocess.Popen(
            command, env={**clean, **environment}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        clock.until("the bare program steps", lambda: told.stat().st_size or process.poll() is not None)
        clock.wait(settle)
        first = last_told(workload, told)
        clock.wait(seconds)
        if process.poll() is not None:
            raise Unmet(f"the bare program ended with {process.returncode}; what it said is in bare.log")
        return between(first, last_told(workload, told))
    finally:
        end(process)


def last_told(workload, file):
    """Where the program is: by its timeline, or by the lines that it would write for Cohabit."""
    if workload.keeps_timeline:
        known = positions(file)
        return known[-1] if known else None
    return Position(time.time(), file.read_text().count("\n"))


def between(first, last):
    """Steps a second from one position to a later one."""
    if first is None or last is None or last.step <= first.step:
        raise Unmet("no step was made while the rate was measured")
    return round((last.step - first.step) / (last.at - first.at), 4)


def summary(values):
    """The mean of rates, and how far apart they are, as a part of it."""
    mean = statistics.fmean(values)
    spread = (max(values) - min(values)) / mean
    return {"values": values, "mean": round(mean, 4), "spread": round(spread, 5)}


def end(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
