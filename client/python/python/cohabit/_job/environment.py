"""What Cohabit tells a job through its environment."""

from __future__ import annotations

import os
import sys

from .messages import warn_once


class Environment:
    """The variables of this process, read once."""

    def __init__(self) -> None:
        self.is_job = "COHABIT_JOB_ID" in os.environ and not is_helper_process()
        self.job = os.environ.get("COHABIT_JOB_ID", "")
        self.nodes = _number("COHABIT_NNODES", 1)
        self.progress = self._path("COHABIT_PROGRESS")
        self.checkpoints = self._path("COHABIT_CHECKPOINT_DIR")
        self.stop_at = _seconds("COHABIT_STOP_AT") if self.is_job else None

    def _path(self, name: str) -> str | None:
        return (os.environ.get(name) or None) if self.is_job else None


def is_helper_process() -> bool:
    """Whether this is a process of `multiprocessing` that ends with its parent, such as one that loads data.

    Such a process is not the job: it must neither report nor save. Processes that are not daemons may be ranks.
    """
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return False
    return bool(process.current_process().daemon)


def rank_and_world_size() -> tuple[int, int]:
    """The rank of this process, and how many ranks there are.

    torch.distributed knows best. The ranks of torchrun have its variables; those of Cohabit name the process that
    Cohabit started, which is one rank unless it is a launcher.
    """
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()), int(distributed.get_world_size())
    for prefix in ("", "COHABIT_"):
        if f"{prefix}RANK" in os.environ and f"{prefix}WORLD_SIZE" in os.environ:
            return _number(f"{prefix}RANK", 0), max(_number(f"{prefix}WORLD_SIZE", 1), 1)
    return 0, 1


def _number(name: str, default: int) -> int:
    text = os.environ.get(name)
    try:
        return default if text is None else int(text)
    except ValueError:
        warn_once(f"{name} is {text!r}, which is no whole number: {default} is taken")
        return default


def _seconds(name: str) -> float | None:
    text = os.environ.get(name)
    try:
        return None if text is None else float(text)
    except ValueError:
        warn_once(f"{name} is {text!r}, which is no time in seconds since 1970: it is ignored")
        return None
