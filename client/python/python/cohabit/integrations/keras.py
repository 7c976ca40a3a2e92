"""A callback for Keras 3, with any backend.

    from cohabit.integrations.keras import CohabitCallback

    model.fit(..., callbacks=[CohabitCallback()])

It saves and resumes by itself: variables of model, optimizer and metrics, the epoch and the batch. A resumed epoch
passes over the batches that were trained on. With the backends torch and tensorflow they are not computed again.
"""

from __future__ import annotations

import random
import sys

import cohabit

from . import missing
from ._numbers import numeric

try:
    import keras  # type: ignore[import-untyped, import-not-found, unused-ignore]
except ImportError as error:
    raise missing("keras", "keras", error) from error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any


class CohabitCallback(keras.callbacks.Callback):  # type: ignore[misc, unused-ignore]
    """Reports progress and metrics, saves when the job is warned, saves and leaves when it is stopped, and resumes.

    With `shuffle=True` a resumed epoch has the order that it had, where that comes from the random numbers of Python,
    NumPy or PyTorch.

    Args:
        every: Also save when this span has passed, such as "10m". Default: only when the job may soon end.
    """

    def __init__(self, every: float | str | timedelta | None = None) -> None:
        super().__init__()
        self._every = every
        self._job = cohabit.job()
        self._step = 0
        self._epoch = 0
        self._batch = 0
        self._epoch_random: dict[str, Any] = {}
        self._resumed: dict[str, Any] | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        state = self._job.load()
        if not isinstance(state, dict) or "keras" not in state:
            return
        self._resumed = state
        self._step = self._job.start
        _restore(self._variables(), state["keras"])
        # Keras's own BackupAndRestore does the same.
        model: Any = self.model
        model._initial_epoch = state["epoch"]
        if state["batches"]:
            self._pass_over(state["batches"])

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch, self._batch = epoch, 0
        if self._resumed is not None:
            _set_random(self._resumed["epoch_random"])
            if not self._resumed["batches"]:
                self._go_on()
        self._epoch_random = _random()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        # One call may stand for several batches (`steps_per_execution`).
        done, self._batch = batch + 1 - self._batch, batch + 1
        if self._resumed is not None:
            if self._batch >= self._resumed["batches"]:
                self._go_on()
            elif self._job.should_stop:
                raise cohabit.Preempted  # The checkpoint has not been reached again.
            return
        self._step += done
        self._job.log(numeric(logs), step=self._step, total=self._total())
        self._save_if_due(self._epoch, self._batch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._job.log(numeric(logs), step=self._step)

    def on_train_end(self, logs: Any = None) -> None:
        self._job.flush()

    def _save_if_due(self, epoch: int, batches: int) -> None:
        is_due = self._job.should_checkpoint(every=self._every)
        is_leaving = self._job.should_stop
        if is_due or is_leaving:
            state = {
                "keras": [keras.ops.convert_to_numpy(variable.value) for variable in self._variables()],
                "epoch": epoch,
                "batches": batches,
                "epoch_random": self._epoch_random,
                "random": _random(),
            }
            self._job.save(self._step - 1, state)
        if is_leaving:
            raise cohabit.Preempted

    def _variables(self) -> list[Any]:
        """All that training changes: weights, seeds, moments of the optimizer, and sums of metrics."""
        model: Any = self.model
        found = [*model.variables, *model.metrics_variables]
        if model.optimizer is not None:
            found += model.optimizer.variables
        return list({id(variable): variable for variable in found}.values())

    def _pass_over(self, batches: int) -> None:
        """Has the first batches of the epoch read and not trained on."""
        model: Any = self.model
        left, function = batches, model.train_function
        if keras.backend.backend() == "jax" or function is None or (model.steps_per_execution or 1) > 1:
            return  # They are computed, and what they change is put back.

        def passing(data: Any) -> Any:
            nonlocal left
            left -= 1
            if left >= 0:
                if keras.backend.backend() == "tensorflow":
                    next(data)
                return {}
            model.train_function = function
            return function(data)

        model.train_function = passing

    def _go_on(self) -> None:
        assert self._resumed is not None
        _restore(self._variables(), self._resumed["keras"])
        _set_random(self._resumed["random"])
        self._resumed = None

    def _total(self) -> int | None:
        params: dict[str, Any] = self.params or {}
        steps, epochs = params.get("steps"), params.get("epochs")
        return steps * epochs if steps and epochs else None


def _restore(variables: list[Any], values: list[Any]) -> None:
    if [tuple(variable.shape) for variable in variables] != [value.shape for value in values]:
        raise cohabit.CheckpointError(
            "the checkpoint is of a model or an optimizer with other variables: run the program that saved it, or "
            "remove the checkpoint directory"
        )
    for variable, value in zip(variables, values):
        variable.assign(value)


def _random() -> dict[str, Any]:
    """The states of the random numbers that decide on the order of the data."""
    states: dict[str, Any] = {"python": random.getstate()}
    if "numpy" in sys.modules:
        states["numpy"] = sys.modules["numpy"].random.get_state()
    if "torch" in sys.modules:
        states["torch"] = sys.modules["torch"].get_rng_state()
    return states


def _set_random(states: dict[str, Any]) -> None:
    random.setstate(states["python"])
    if "numpy" in states and "numpy" in sys.modules:
        sys.modules["numpy"].random.set_state(states["numpy"])
    if "torch" in states and "torch" in sys.modules:
        sys.modules["torch"].set_rng_state(states["torch"])
