"""Notices a stop, and never comes to the next step."""

import time

import cohabit

with cohabit.job() as job:
    for step in job.track(range(10)):
        print("hanging", flush=True)
        while True:
            time.sleep(0.1)
