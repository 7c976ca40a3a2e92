"""Looks on this machine at what is promised of GPU sharing, and writes a report: see README.md.

Needs Python 3.10 and nothing else; the trainings need PyTorch. With --fake the GPU is made up, and so are the
trainings.
"""

import argparse
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys

import workloads
from checks.sharing import Sharing
from checks.speed import Speed
from checks.trouble import Trouble
from cluster import Cluster, temporary_folder
from fake_world import FakeWorld
from report import Clock, OutOfTime, Report, complain, say

ROOT = workloads.ROOT
EXIT_UNMET, EXIT_USAGE = 1, 2
# Kept back for the end: jobs and daemons want a moment to go.
ENDING_SECONDS = 15


class Run:
    """What the checks have in common."""

    def __init__(self, options, program, folder):
        self.program, self.folder, self.is_fake = program, folder, options.fake
        self._account = options.account
        world = FakeWorld.made(folder / "world", program) if options.fake else None
        self.environment = world.environment if world else {}
        self.workloads = workloads.of_the_fakes(world) if world else workloads.of_the_zoo()
        self.clock = Clock(options.limit - ENDING_SECONDS)
        self.report = Report(options.out, self.clock, "fake" if world else "real", facts(program))

    def cluster(self, name, *worker_flags):
        folder = self.folder / name
        return Cluster(self.program, folder, self.clock, self.environment, worker_flags, self._account)


def main():
    options = parse_options()
    program = find_cohabit(options)
    with temporary_folder(options.keep) as folder:
        run = Run(options, program, folder)
        signal.signal(signal.SIGALRM, over)
        signal.alarm(options.limit - ENDING_SECONDS)
        look(run)
        signal.alarm(0)
        run.report.write()
        say(f"{'all held' if run.report.held() else 'not all held'}: {options.out}")
        if options.keep:
            say(f"kept: {folder}")
    sys.exit(0 if run.report.held() else EXIT_UNMET)


def look(run):
    """Every claim, in an order in which what is left of one serves the next."""
    sharing = Sharing(run, run.cluster("mps", "--devices", "auto"))
    trouble = Trouble(run, sharing)
    speed = Speed(run, run.cluster("off", "--devices", "auto", "--mps", "off"))
    for name, claim, seconds, check in (
        ("probe", "MPS starts without root", 60, sharing.mps_starts_without_root),
        ("offered", "a worker offers the GPU", 40, sharing.the_gpu_is_offered),
        ("two_share", "two jobs share the GPU, enforced", 100, sharing.two_jobs_share),
        ("three_share", "three jobs share the GPU, enforced", 70, sharing.three_jobs_share),
        ("worker_killed", "jobs outlive their worker, still enforced", 50, sharing.jobs_outlive_their_worker),
        ("gpu_oom", "a job beyond its limit ends, its neighbors go on", 60, trouble.a_greedy_job_ends_alone),
        ("killed_client", "what a killed client does to others is seen", 45, trouble.a_client_is_killed),
        ("nothing_left", "the MPS daemon ends when nobody needs it", 60, sharing.nothing_is_left),
        ("time_sliced", "without MPS jobs take turns, and are told so", 100, speed.jobs_take_turns),
        ("alone", "each workload is measured alone", 90, speed.each_is_measured_alone),
        ("overhead", "a job steps as fast as the bare program", 200, speed.cohabit_costs_next_to_nothing),
    ):
        run.report.check(name, claim, seconds, check)
    speed.end()


def over(_signal, _frame):
    raise OutOfTime("the time of the run is over")


def find_cohabit(options):
    """The program to try; built first where it is missing and Rust is there."""
    program = options.cohabit or ROOT / "target" / ("debug" if options.fake else "release") / "cohabit"
    if not options.cohabit and not program.exists() and shutil.which("cargo"):
        say(f"{program} is missing: building it")
        profile = [] if options.fake else ["--release"]
        build = ["cargo", "build", *profile, "-p", "cohabit", "--no-default-features"]
        subprocess.run([*build, "--features", "head,worker"], cwd=ROOT, check=True)
    if not os.access(program, os.X_OK):
        complain(f"there is no {program}: build it by 'cargo build --release', or name one by --cohabit")
        sys.exit(EXIT_USAGE)
    return program.resolve()


def facts(program):
    """What a reader wants to know of the machine."""
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    torch = subprocess.run(
        [sys.executable, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True
    )
    return {
        "command": sys.argv,
        "cohabit": version.stdout.strip(),
        "gpu": None,
        "driver": None,
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "user": os.getuid(),
        "python": platform.python_version(),
        "torch": torch.stdout.strip() or None,
    }


def parse_options():
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("sharing.json"), help="the report")
    parser.add_argument("--cohabit", type=pathlib.Path, metavar="FILE", help="the program to try")
    parser.add_argument("--limit", type=int, default=480, metavar="SECONDS", help="the run ends by then")
    parser.add_argument("--account", metavar="NAME", help="whose jobs run; only where this is root")
    parser.add_argument("--fake", action="store_true", help="try the checks themselves, without a GPU")
    parser.add_argument("--keep", action="store_true", help="leave logs and states where they are")
    return parser.parse_args()


if __name__ == "__main__":
    main()
