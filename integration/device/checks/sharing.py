"""Jobs share a GPU under MPS with limits that are enforced, and go on when their worker crashes."""

import getpass
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import rates
from cluster import processes_with
from report import Skipped, Unmet

NOBODY = 65534
WINDOW_SECONDS = 10.0
SETTLE_SECONDS = 5.0
# An idle MPS daemon is kept for a while, then stopped.
IDLE_SECONDS = 40.0
SHARE = ("--gpus", "0.3", "--gpu-mem", "8G")


class Sharing:
    """The claims, in order: each begins with the jobs that the one before has left running."""

    def __init__(self, run, cluster):
        self._run, self._clock, self.cluster, self.jobs = run, run.clock, cluster, []

    def mps_starts_without_root(self):
        """As the user who runs this, or as nobody where that is root; a fake GPU is its maker's alone."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="cohabit-probe-", dir="/tmp"))
        try:
            ran, user = self._doctor(folder)
        finally:
            shutil.rmtree(folder)
        try:
            findings = json.loads(ran.stdout)["findings"]
        except (ValueError, KeyError):
            raise Unmet(f"cohabit doctor said {ran.stdout[-500:]!r} and {ran.stderr[-500:]!r}") from None
        evidence = {"user": user, "exit_code": ran.returncode, "findings": findings}
        probes = [it for it in findings if it["matter"] == "mps probe"]
        if not probes or any(it["judgement"] != "good" for it in probes):
            told = "; ".join(f"{it['seen']}: {it['advice']}" for it in probes)
            raise Unmet(told or "cohabit doctor --probe tried no GPU", evidence)
        return evidence

    def _doctor(self, folder):
        program = shutil.copy(self._run.program, folder / "cohabit")
        identity = {}
        if os.getuid() == 0 and not self._run.is_fake:
            os.chown(folder, NOBODY, NOBODY)
            identity = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        environment = {**os.environ, **self._run.environment, "HOME": str(folder), "TMPDIR": str(folder)}
        ran = subprocess.run(
            [program, "doctor", "--probe", "--state", str(folder / "state"), "--output", "json"],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=self._clock.left(),
            **identity,
        )
        return ran, "nobody" if identity else getpass.getuser()

    def the_gpu_is_offered(self):
        self.cluster.start()
        node = self.cluster.node()
        devices = [it for it in node["devices"] if it["kind"] == "gpu"]
        if not devices:
            raise Unmet("the worker found no GPU", node)
        self._run.report.learn(gpu=devices[0]["model"], driver=devices[0]["gpu"]["driver"])
        return node

    def two_jobs_share(self):
        return self._together(self._run.workloads.small[:2])

    def three_jobs_share(self):
        if len(self.jobs) != 2:
            raise Skipped("two jobs do not share the GPU yet")
        return self._together(self._run.workloads.small[2:])

    def _together(self, more):
        """Starts these beside those that run, and waits until all are known to be enforced."""
        started = [self.cluster.submit(it, self._run.workloads.environment, *SHARE) for it in more]
        try:
            for job in started:
                job.begin()
        except Unmet:
            self.cluster.cancel([job.id for job in started if not job.has_ended()])
            raise
        self.jobs += started
        known = self._clock.until("it is known of all jobs whether they are enforced", self._all_known, 30.0)
        measured = rates.of_jobs(self._clock, self.jobs, WINDOW_SECONDS)
        self._run.report.rates[f"mps_{len(self.jobs)}"] = measured
        evidence = {"jobs": known, "rates": measured, "gpu": self.cluster.gpu()}
        self._all_enforced(known, evidence)
        return evidence

    def _all_known(self):
        told = [job.brief() for job in self.jobs]
        return told if all(it["sharing"] for it in told) else None

    def _all_enforced(self, told, evidence):
        bad = [it for it in told if it["sharing"] != "enforced"]
        if bad:
            raise Unmet(f"job {bad[0]['job']} is not enforced: {bad[0]['sharing_reason']}", evidence)
        lonely = [it["job"] for it in told if len(it["sharing_with"]) != len(told) - 1]
        if lonely:
            raise Unmet(f"not all others share a GPU with jobs {', '.join(lonely)}", evidence)

    def jobs_outlive_their_worker(self):
        if not self.jobs:
            raise Skipped("no jobs share the GPU")
        pids = {job.id: job.pids() for job in self.jobs}
        before = {job.id: job.position() for job in self.jobs}
        killed = self.cluster.kill_worker()
        self._clock.wait(SETTLE_SECONDS)
        alive = {job.id: job.pids() for job in self.jobs}
        self.cluster.start_worker()
        for job in self.jobs:
            job.steps_on(before[job.id])
        # Time for the new worker to tell what it thinks of the jobs that it found.
        self._clock.wait(SETTLE_SECONDS)
        told = [job.brief() for job in self.jobs]
        evidence = {"killed_worker": killed, "pids": pids, "pids_without_worker": alive, "jobs": told}
        if alive != pids:
            raise Unmet("processes of the jobs ended with their worker", evidence)
        if any(it["state"] != "RUNNING" or it["attempt"] != 1 for it in told):
            raise Unmet("not every job goes on in its first attempt", evidence)
        self._all_enforced(told, evidence)
        return evidence

    def nothing_is_left(self):
        """Once the jobs are gone, no process uses the pipes of an MPS daemon of ours."""
        if not self.cluster.folder.exists():
            raise Skipped("the cluster under MPS did not start")
        self.cluster.clear()
        pipes = f"CUDA_MPS_PIPE_DIRECTORY={self.cluster.folder}"
        self._clock.until("the MPS daemon has ended", lambda: not processes_with(pipes), IDLE_SECONDS)
        self.cluster.stop()
        return {}
