"""Lets a script stop where a test wants it: it waits in the first attempt until the job is stopped."""

from __future__ import annotations

import os
import time

from cohabit._job import signals


def hold() -> None:
    """Returns when this job is being stopped; at once in a later attempt, and outside of a job."""
    if os.environ.get("COHABIT_ATTEMPT") == "1":
        print("holding", flush=True)
        while not signals.received.stop:
            time.sleep(0.01)
