"""What was found, and the time that finding it may take."""

import contextlib
import json
import os
import sys
import time

POLL_SECONDS = 0.2


class Unmet(Exception):
    """A claim does not hold: why, and what shows it."""

    def __init__(self, why, evidence=None):
        super().__init__(why)
        self.evidence = evidence


class Skipped(Exception):
    """A claim could not be looked at: why."""


class OutOfTime(Skipped):
    """The run has used up its time."""


class Clock:
    """The end of the run, and within it the end of the check at hand."""

    def __init__(self, seconds):
        self._began = time.monotonic()
        self._end = self._check_end = self._began + seconds

    def passed(self):
        return time.monotonic() - self._began

    def left(self):
        return min(self._end, self._check_end) - time.monotonic()

    @contextlib.contextmanager
    def check(self, seconds):
        """What happens inside has so many seconds; it is not begun where not even half of them are left."""
        if self._end - time.monotonic() < seconds / 2:
            raise OutOfTime(f"it may take {seconds} s, and the run has {self.left():.0f} s left")
        self._check_end = time.monotonic() + seconds
        try:
            yield
        finally:
            self._check_end = self._end

    def wait(self, seconds):
        """Lets time pass, for something to be measured meanwhile."""
        if self.left() < seconds:
            raise OutOfTime(f"{seconds:.0f} s are needed to measure, and {self.left():.0f} s are left")
        time.sleep(seconds)

    def until(self, what, holds, seconds=60.0):
        """What `holds` answers as soon as it is true."""
        end = time.monotonic() + min(seconds, max(self.left(), 0.0))
        while True:
            answer = holds()
            if answer:
                return answer
            if time.monotonic() >= end:
                raise Unmet(f"not in time: {what}")
            time.sleep(POLL_SECONDS)


class Report:
    """Checks as they end, on the disk after each one: whoever stops the run still has what was found."""

    def __init__(self, path, clock, kind, head):
        self.rates = {}
        self._path, self._clock, self._kind = path, clock, kind
        self._head = {"schema": 1, "fake": kind == "fake", **head, "started_at": now()}
        self._checks = []

    def check(self, name, claim, seconds, look):
        """Looks whether the claim holds; `look()` answers with the evidence, or raises."""
        began, evidence, why = time.monotonic(), None, None
        try:
            with self._clock.check(seconds):
                evidence, status = look(), "ok"
        except Skipped as skipped:
            status, why = "skipped", str(skipped)
        except Unmet as unmet:
            status, why, evidence = "failed", str(unmet), unmet.evidence
        except Exception as error:  # One broken check must not keep the others from being looked at.
            status, why = "failed", f"{type(error).__name__}: {error}"
        claim = f"{self._kind}: {claim}" if self._kind == "fake" else claim
        entry = {"name": name, "claim": claim, "status": status, "why": why}
        entry["seconds"] = round(time.monotonic() - began, 1)
        self._checks.append({**entry, "evidence": evidence})
        say(f"{status:8} {entry['seconds']:6.1f} s  {claim}" + (f": {why}" if why else ""))
        self.write()
        return status == "ok"

    def held(self):
        """Whether every claim was looked at and holds."""
        return bool(self._checks) and all(check["status"] == "ok" for check in self._checks)

    def write(self):
        document = {
            **self._head,
            "seconds": round(self._clock.passed(), 1),
            "held": self.held(),
            "rates": self.rates,
            "checks": self._checks,
        }
        unfinished = f"{self._path}.unfinished"
        with open(unfinished, "w") as file:
            json.dump(document, file, indent=2)
            file.write("\n")
        os.replace(unfinished, self._path)

    def learn(self, **facts):
        """Adds to what stands above the checks."""
        self._head.update(facts)


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def say(line):
    print(line, flush=True)


def complain(line):
    print(f"error: {line}", file=sys.stderr, flush=True)
