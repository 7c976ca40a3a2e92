"""A writer with the calls of tensorboardX and `torch.utils.tensorboard`: scalars become metrics of the job.

    from cohabit.integrations.tensorboard import SummaryWriter

Needs no other package. Images, histograms and the like are accepted and left out.
"""

from __future__ import annotations

import cohabit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Any, Callable


class SummaryWriter:
    """Takes the place of tensorboardX's. `log_dir` and other arguments are accepted and have no effect."""

    def __init__(self, log_dir: object = None, *arguments: object, **options: object) -> None:
        self.logdir = log_dir
        self._job = cohabit.job()

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, *rest: object, **more: object
    ) -> None:
        """Logs one metric."""
        self._job.log({tag: scalar_value}, step=global_step)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        *rest: object,
        **more: object,
    ) -> None:
        """Logs several metrics, with the names `main_tag/tag`."""
        self._job.log(
            {f"{main_tag}/{tag}": value for tag, value in tag_scalar_dict.items()}, step=global_step
        )

    def flush(self) -> None:
        """Writes what is pending."""
        self._job.flush()

    def close(self) -> None:
        """Writes what is pending. The job stays open."""
        self.flush()

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getattr__(self, name: str) -> Callable[..., None]:
        if not name.startswith("add_"):
            raise AttributeError(f"SummaryWriter has no attribute {name!r}")
        return _ignore


def _ignore(*arguments: object, **options: object) -> None:
    """What is no number is no metric."""
