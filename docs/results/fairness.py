"""Makes the traces of fairness.sh, and the figures from what `cohabit simulate --jobs-csv` wrote."""

import csv
import random
import sys
from collections import defaultdict

HOUR = 3_600.0


def trace(seed):
    """Ada wants 500 GPUs at once, four users some every few hours, and zoe eight at the same time."""
    draw = random.Random(seed)
    rows = [(0.0, draw.expovariate(1 / (6 * HOUR)), 1, "ada") for _ in range(500)]
    for user in ("ben", "cyd", "dora", "eve"):
        at = 0.0
        while (at := at + draw.expovariate(1 / (5 * HOUR))) < 200 * HOUR:
            rows.append((at, draw.expovariate(1 / (2 * HOUR)), draw.choice((1, 1, 2)), user))
    rows.append((HOUR, 4 * HOUR, 8, "zoe"))
    print("submit_s,duration_s,gpus,user")
    for submit, duration, gpus, user in sorted(rows):
        print(f"{submit:.0f},{max(duration, 60):.0f},{gpus},{user}")


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else float("nan")


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def jain(values):
    values = list(values)
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


def private(jobs, gpus):
    """Completion times, first come first served, on `gpus` devices of one user alone."""
    free = [0.0] * gpus
    times = []
    for submit, run, wants in sorted(jobs):
        free.sort()
        wants = min(wants, gpus)
        start = max(submit, free[wants - 1])
        for device in range(wants):
            free[device] = start + run
        times.append(start + run - submit)
    return times


def figures(path, devices):
    """Of each run: waits, finish-time fairness, Jain's index, mean completion time, and the part of the GPUs that was busy."""
    runs = defaultdict(list)
    for row in csv.DictReader(open(path, newline="")):
        runs[row["policy"]].append(row)
    for name, rows in runs.items():
        of_user = defaultdict(list)
        for row in rows:
            of_user[row["user"]].append(row)
        share = max(1, devices // len(of_user))
        ratios = {}
        for user, own in of_user.items():
            alone = private([(float(r["submit_s"]), float(r["run_s"]), int(float(r["gpus"]))) for r in own], max(share, 1))
            ratios[user] = mean(float(r["jct_s"]) for r in own) / mean(alone)
        others = [row for row in rows if row["user"] not in ("ada", "zoe")]
        waits = [float(row["wait_s"]) / HOUR for row in others]
        zoe = [float(row["wait_s"]) / HOUR for row in rows if row["user"] == "zoe"]
        last = max(float(row["end_s"]) for row in rows if row["user"] != "zoe")
        busy = sum(float(r["run_s"]) * float(r["gpus"]) for r in rows) / (devices * last)
        stops = sum(int(row["preemptions"]) for row in rows)
        print(
            f"{name:28} others wait {mean(waits):6.2f} h, p99 {percentile(waits, 0.99):6.2f} h, zoe {mean(zoe):6.2f} h; "
            f"rho of others {mean(ratios[user] for user in ratios if user not in ('ada', 'zoe')):5.2f}, "
            f"worst {max(ratios[user] for user in ratios if user not in ('ada', 'zoe')):5.2f}; "
            f"Jain {jain(min(1 / ratio, 2) for ratio in ratios.values()):4.2f}; "
            f"mean JCT {mean(float(row['jct_s']) for row in rows) / HOUR:6.2f} h; busy {busy:4.2f}; stops {stops}"
        )


if __name__ == "__main__":
    if sys.argv[1] == "trace":
        trace(int(sys.argv[2]))
    else:
        figures(sys.argv[2], int(sys.argv[3]))
