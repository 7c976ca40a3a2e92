"""Studies of Optuna in a job.

from cohabit.integrations.optuna import CohabitCallback, pruned_by

def objective(trial):
    with pruned_by(trial, "loss"):
        for step in range(100):
            job.log(loss=train_step(), step=step)      # also reports to the trial, which may be pruned here
    return loss

with cohabit.job() as job:
    callback = CohabitCallback()
    study = optuna.create_study(study_name="base", storage=callback.storage(), load_if_exists=True)
    study.optimize(objective, n_trials=100, callbacks=[callback])
"""

from __future__ import annotations

import contextlib
import os

import cohabit

from . import missing

try:
    import optuna  # type: ignore[import-not-found, unused-ignore]
except ImportError as error:
    raise missing("optuna", "optuna", error) from error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class CohabitCallback:
    """Reports finished trials: their number, their value and the best one. When the job is being stopped, the study
    is left after a trial through `cohabit.Preempted`; with `storage`, the next attempt goes on with it.

    Args:
        total: How many trials there will be, for the progress. Default: unknown.
    """

    def __init__(self, total: int | None = None) -> None:
        self._total = total
        self._job = cohabit.job()

    def storage(self) -> str | None:
        """A database in the folder of the job, for `create_study`; none, which means memory, without a folder."""
        if self._job.folder is None:
            return None
        os.makedirs(self._job.folder, exist_ok=True)
        return f"sqlite:///{self._job.folder}/optuna.db"

    def __call__(self, study: Any, trial: Any) -> None:
        done = sum(1 for it in study.get_trials(deepcopy=False) if it.state.is_finished())
        metrics = {"trial": trial.number}
        if trial.values is not None and len(trial.values) == 1:
            metrics["value"] = trial.value
        if len(study.directions) == 1:
            with contextlib.suppress(ValueError):  # There is none yet.
                metrics["best"] = study.best_value
        self._job.log(metrics, step=done, total=self._total)
        if self._job.should_stop:
            raise cohabit.Preempted


@contextlib.contextmanager
def pruned_by(trial: Any, metric: str) -> Iterator[None]:
    """Within, `Job.log` also reports this metric to the trial, with its step, and raises `optuna.TrialPruned` when the
    study gives the trial up. The steps of a trial count from its first one."""
    job = cohabit.job()
    reports = 0

    def report(step: int | None, metrics: dict[str, Any]) -> None:
        nonlocal reports
        if metric in metrics:
            trial.report(float(metrics[metric]), step=reports if step is None else step)
            reports += 1
            if trial.should_prune():
                raise optuna.TrialPruned(f"{metric} is {float(metrics[metric]):.4g}")

    job._listeners.append(report)
    try:
        yield
    finally:
        job._listeners.remove(report)
