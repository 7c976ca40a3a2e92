"""A callback for Lightning.

    from cohabit.integrations.lightning import CohabitCallback

    callback = CohabitCallback()
    trainer = Trainer(..., callbacks=[callback])
    trainer.fit(model, ckpt_path=callback.latest())

Lightning's own checkpoints are used. In the middle of an epoch, Lightning goes on exactly where it was only if the
data loader can: if it has `state_dict` and `load_state_dict`, as torchdata's `StatefulDataLoader` does.
"""

from __future__ import annotations

import os
import re
import zipfile

import cohabit

from . import missing
from ._numbers import numeric

try:
    from lightning.pytorch.callbacks import Callback  # type: ignore[import-not-found, unused-ignore]
except ImportError:
    try:
        from pytorch_lightning.callbacks import Callback  # type: ignore[assignment, import-not-found, unused-ignore]
    except ImportError as error:
        raise missing("lightning", "lightning", error) from error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta
    from typing import Any

_KEEP = 3
_NAME = re.compile(r"lightning-step(\d+)\.ckpt")


class CohabitCallback(Callback):  # type: ignore[misc, unused-ignore]
    """Reports progress and metrics, saves when the job is warned, and saves and leaves when it is stopped.

    Checkpoints are saved to the folder of the job, beside those of other callbacks; the last three are kept. Outside
    of a job nothing is saved, unless a folder was given to `cohabit.job`.

    Args:
        every: Also save when this span has passed, such as "10m". Default: only when the job may soon end.
    """

    def __init__(self, every: float | str | timedelta | None = None) -> None:
        self._every = every
        self._job = cohabit.job()
        self._saved_step = -1

    def latest(self) -> str | None:
        """The latest checkpoint that is whole, for `ckpt_path`; none if there is none."""
        return next(filter(_is_whole, reversed(self._saved())), None)

    def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
        self._job.log(numeric(trainer.callback_metrics), step=trainer.global_step, total=_total(trainer))
        if self._job.should_checkpoint(every=self._every):
            self._save(trainer)
        if self._job.should_stop:
            self._save(trainer)
            raise cohabit.Preempted

    def on_validation_end(self, trainer: Any, *_: Any) -> None:
        if not trainer.sanity_checking:
            self._job.log(numeric(trainer.callback_metrics), step=trainer.global_step)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        # Lightning may notice SIGTERM first, between two batches, and would leave with the code 0.
        is_of_lightning = isinstance(exception, SystemExit) and not isinstance(exception, cohabit.Preempted)
        if is_of_lightning and getattr(trainer, "received_sigterm", False) and self._job.is_active:
            self._save(trainer)
            raise cohabit.Preempted

    def on_fit_end(self, *_: Any) -> None:
        self._job.flush()

    def _save(self, trainer: Any) -> None:
        """Saves once for a step, on all ranks: some strategies need all of them."""
        folder, step = self._job.folder, int(trainer.global_step)
        if folder is None or step == self._saved_step:
            return
        self._saved_step = step
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"lightning-step{step}.ckpt")
        partial = os.path.join(folder, f".lightning-step{step}.partial.ckpt")
        trainer.save_checkpoint(partial)
        if trainer.is_global_zero and os.path.isfile(partial):
            _sync(partial)
            os.replace(partial, path)
            _sync(folder)
            for old in self._saved()[:-_KEEP]:
                os.unlink(old)
        elif trainer.is_global_zero:
            # A strategy that shards its states makes a directory.
            os.replace(partial, path)

    def _saved(self) -> list[str]:
        folder = self._job.folder
        if folder is None or not os.path.isdir(folder):
            return []
        matches = sorted(
            (int(match[1]), match[0]) for match in map(_NAME.fullmatch, os.listdir(folder)) if match
        )
        return [os.path.join(folder, name) for _, name in matches]


def _total(trainer: Any) -> int | None:
    total = trainer.estimated_stepping_batches
    return int(total) if 0 < total < float("inf") else None


def _is_whole(path: str) -> bool:
    """An archive has checksums. Directories are what the strategy has made."""
    if os.path.isdir(path):
        return True
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
