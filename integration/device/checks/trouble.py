"""What one job does to the others: runs out of memory, or is killed as no client of MPS should be."""

import os
import signal

from report import Skipped, Unmet

WATCHED_SECONDS = 15.0
GREEDY_SHARE = ("--gpus", "0.3", "--gpu-mem", "4G")


class Trouble:
    """Looks at the jobs that `Sharing` has left running."""

    def __init__(self, run, sharing):
        self._run, self._clock, self._sharing = run, run.clock, sharing
        self._cluster = sharing.cluster

    def a_greedy_job_ends_alone(self):
        """Under MPS its limit ends it, though the GPU has memory left, and its neighbors do not notice."""
        jobs = self._sharing.jobs
        if len(jobs) < 2:
            raise Skipped("no jobs share the GPU")
        while len(jobs) > 2:
            self._cluster.cancel([jobs.pop().id])
        before = [job.position() for job in jobs]
        workloads = self._run.workloads
        greedy = self._cluster.submit(workloads.greedy, workloads.environment, *GREEDY_SHARE)
        self._clock.until("the greedy job has ended", greedy.has_ended)
        after = [job.steps_on(position) for job, position in zip(jobs, before, strict=True)]
        told = greedy.brief()
        evidence = {
            "greedy": {**told, "exit_code": greedy.show()["exit_code"], "printed": greedy.printed()},
            "neighbours": [
                {**job.brief(), "steps": [first.step, last.step], "loss": [first.loss, last.loss]}
                for job, first, last in zip(jobs, before, after, strict=True)
            ],
        }
        if (told["state"], told["reason_code"]) != ("OUT_OF_MEMORY", "gpu_oom"):
            raise Unmet(f"the greedy job is {told['state']} by {told['reason_code']}", evidence)
        if any(it["state"] != "RUNNING" or it["attempt"] != 1 for it in evidence["neighbours"]):
            raise Unmet("a neighbor did not simply go on", evidence)
        return evidence

    def a_client_is_killed(self):
        """Whatever happens is written down: NVIDIA promises nothing for this case."""
        jobs = self._sharing.jobs
        if len(jobs) < 2:
            raise Skipped("no jobs share the GPU")
        killed, others = jobs[0], jobs[1:]
        before = [job.position() for job in others]
        pids = killed.pids()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self._clock.until("the killed job has ended", killed.has_ended)
        self._clock.wait(WATCHED_SECONDS)
        after = [job.position() for job in others]
        return {
            "killed": {**killed.brief(), "pids": pids},
            "others": [
                {**job.brief(), "steps": [first.step, last.step], "went_on": last.step > first.step}
                for job, first, last in zip(others, before, after, strict=True)
            ],
            "gpu": self._cluster.gpu(),
            "daemons_log": self._cluster.log_tail(),
        }
