"""A callback for the Trainer of Transformers.

    from cohabit.integrations.transformers import CohabitCallback

    callback = CohabitCallback()
    trainer = Trainer(..., callbacks=[callback])
    trainer.train(resume_from_checkpoint=callback.latest())

The Trainer's own checkpoints are used, and its own way to go on: it skips the batches that were seen. In the middle of
an epoch it goes on exactly from version 5 on; version 4 shuffles the rest of the epoch anew.
"""

from __future__ import annotations

import json
import os
import re

import cohabit

from . import missing
from ._numbers import numeric

try:
    from transformers import TrainerCallback  # type: ignore[import-not-found, unused-ignore]
except ImportError as error:
    raise missing("transformers", "transformers", error) from error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any

# Written when a checkpoint is complete and durable; has the sizes of its files.
_COMPLETE = "cohabit.json"
_KEEP = 3


class CohabitCallback(TrainerCallback):  # type: ignore[misc, unused-ignore]
    """Reports progress and metrics, saves when the job is warned, and saves and leaves when it is stopped.

    In a job, and where a folder was given to `cohabit.job`, checkpoints are saved there, and not to `output_dir`, so
    that they follow the job to other nodes. The last three are kept, unless `save_total_limit` says otherwise. What
    you save after the training goes to `output_dir`.

    Args:
        every: Also save when this span has passed, such as "10m". Default: as the arguments of the Trainer say.
    """

    def __init__(self, every: float | str | timedelta | None = None) -> None:
        self._every = every
        self._job = cohabit.job()
        self._before: tuple[Any, Any] | None = None
        self._is_leaving = False

    def latest(self) -> str | None:
        """The latest complete checkpoint, for `resume_from_checkpoint`; none if there is none."""
        folder = self._job.folder
        if folder is None or not os.path.isdir(folder):
            return None
        steps = [
            int(match[1])
            for match in map(re.compile(r"checkpoint-(\d+)").fullmatch, os.listdir(folder))
            if match
        ]
        paths = [os.path.join(folder, f"checkpoint-{step}") for step in sorted(steps, reverse=True)]
        return next(filter(_is_complete, paths), None)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._job.log(step=state.global_step, total=state.max_steps)
        if self._job.folder is not None:
            self._before = args.output_dir, args.save_total_limit
            args.output_dir = self._job.folder
            args.save_total_limit = args.save_total_limit or _KEEP

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._job.log(step=state.global_step, total=state.max_steps)
        is_due = self._job.should_checkpoint(every=self._every)
        self._is_leaving = self._job.should_stop
        control.should_save |= is_due or self._is_leaving

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        self._job.log(numeric(logs), step=state.global_step)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            _mark_complete(os.path.join(args.output_dir, f"checkpoint-{state.global_step}"))
        if self._is_leaving:
            self._put_back(args)
            raise cohabit.Preempted

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._put_back(args)
        self._job.flush()

    def _put_back(self, args: Any) -> None:
        if self._before is not None:
            args.output_dir, args.save_total_limit = self._before
            self._before = None


def _mark_complete(checkpoint: str) -> None:
    if not os.path.isdir(checkpoint):
        return
    names = [name for name in os.listdir(checkpoint) if name != _COMPLETE]
    files = [name for name in names if os.path.isfile(os.path.join(checkpoint, name))]
    for name in files:
        _sync(os.path.join(checkpoint, name))
    sizes = {name: os.path.getsize(os.path.join(checkpoint, name)) for name in files}
    partial = os.path.join(checkpoint, f"{_COMPLETE}.partial")
    with open(partial, "w", encoding="utf-8") as file:
        json.dump(sizes, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, os.path.join(checkpoint, _COMPLETE))
    _sync(checkpoint)
    _sync(os.path.dirname(checkpoint))


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_complete(checkpoint: str) -> bool:
    try:
        with open(os.path.join(checkpoint, _COMPLETE), encoding="utf-8") as file:
            sizes: dict[str, int] = json.load(file)
        return all(os.path.getsize(os.path.join(checkpoint, name)) == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False
