"""How fast trainings are: alone, taking turns, and with Cohabit around them or not."""

import contextlib

import rates
from report import OutOfTime, Skipped, Unmet

WINDOW_SECONDS = 10.0
SETTLE_SECONDS = 3.0
REPEATS, FEWEST_REPEATS = 4, 2
LARGEST_OVERHEAD = 0.01
SHARE = ("--gpus", "0.3", "--gpu-mem", "8G")


class Speed:
    """Measures in a cluster whose worker leaves MPS alone."""

    def __init__(self, run, cluster):
        self._run, self._clock, self._cluster = run, run.clock, cluster

    def jobs_take_turns(self):
        """Two jobs, then three; each is told that nothing is enforced."""
        self._cluster.start()
        jobs, measured = [], {}
        with self._jobs() as started:
            for workload in self._run.workloads.small:
                jobs.append(started(workload, *SHARE))
                if len(jobs) > 1:
                    together = rates.of_jobs(self._clock, jobs, WINDOW_SECONDS)
                    measured[f"time_sliced_{len(jobs)}"] = together
            told = [job.brief() for job in jobs]
        self._run.report.rates.update(measured)
        evidence = {"jobs": told, "rates": measured}
        wrong = [it["job"] for it in told if it["sharing"] != "unenforced"]
        if wrong:
            raise Unmet(f"jobs {', '.join(wrong)} are not told that nothing is enforced", evidence)
        return evidence

    def each_is_measured_alone(self):
        """With the whole GPU to itself: what sharing is compared with."""
        self._needs_cluster()
        measured = {}
        for workload in self._run.workloads.small:
            with self._jobs() as started:
                job = started(workload, "--gpus", "1")
                measured.update(rates.of_jobs(self._clock, [job], WINDOW_SECONDS))
        self._run.report.rates["alone"] = measured
        self._run.report.rates["relative"] = relative(self._run.report.rates)
        return {"rates": measured}

    def cohabit_costs_next_to_nothing(self):
        """The same program bare and as a job, in turns, so that what drifts drifts for both."""
        self._needs_cluster()
        bare, jobs = [], []
        try:
            for _ in range(REPEATS):
                bare.append(self._bare())
                jobs.append(self._as_job())
        except OutOfTime:
            if len(jobs) < FEWEST_REPEATS:
                raise
        without, within = rates.summary(bare[: len(jobs)]), rates.summary(jobs)
        overhead = 1 - within["mean"] / without["mean"]
        evidence = {
            "workload": self._run.workloads.busy.name,
            "bare": without,
            "job": within,
            "overhead": round(overhead, 5),
            "goal": LARGEST_OVERHEAD,
        }
        self._run.report.rates["overhead"] = evidence["overhead"]
        # The pace of a fake program is a sleep: it says nothing of ours.
        if overhead > LARGEST_OVERHEAD and not self._run.is_fake:
            raise Unmet(f"a step takes {overhead:.1%} longer, more than {LARGEST_OVERHEAD:.0%}", evidence)
        return evidence

    def end(self):
        if self._cluster.folder.exists():
            self._cluster.stop()

    def _bare(self):
        workloads, folder = self._run.workloads, self._cluster.folder
        gpu = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": self._cluster.gpu()["id"]}
        environment = {**workloads.environment, **gpu}
        return rates.without_cohabit(
            self._clock, workloads.busy, environment, folder, SETTLE_SECONDS, WINDOW_SECONDS
        )

    def _as_job(self):
        with self._jobs() as started:
            job = started(self._run.workloads.busy, "--gpus", "1")
            self._clock.wait(SETTLE_SECONDS)
            return rates.of_jobs(self._clock, [job], WINDOW_SECONDS)[job.workload.name]

    @contextlib.contextmanager
    def _jobs(self):
        """A way to start jobs that step; all of them are gone afterwards, so that the next ones are alone."""

        def started(workload, *flags):
            job = self._cluster.submit(workload, self._run.workloads.environment, *flags)
            job.begin()
            return job

        try:
            yield started
        finally:
            self._cluster.clear()

    def _needs_cluster(self):
        if not self._cluster.folder.exists():
            raise Skipped("the cluster without MPS did not start")


def relative(measured):
    """Each rate as a part of that of the same workload alone."""
    alone = measured["alone"]
    return {
        name: {workload: round(rate / alone[workload], 4) for workload, rate in together.items()}
        for name, together in measured.items()
        if name.startswith(("mps_", "time_sliced_"))
    }
