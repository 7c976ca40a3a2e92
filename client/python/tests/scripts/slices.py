"""Trains in slices of time."""

import time

import cohabit

with cohabit.job() as job:
    done = job.load(default=0)
    print("begins at", done)
    for step in job.track(range(job.start, 100)):
        time.sleep(0.05)
        done += 1
        if job.should_checkpoint():
            job.save(step, done)
assert done == 100, done
