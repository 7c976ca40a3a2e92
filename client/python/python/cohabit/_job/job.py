"""The job of this process: what a training script reports, saves and is told.

`Job` joins three parts: progress (`progress.py`, `bar.py`), checkpoints (`checkpoints.py`) and stops (`stops.py`, on
which ranks agree by `agreement.py`).
"""

from __future__ import annotations

import atexit
import operator
import os
import sys
import threading
import time

from ..errors import CheckpointError, CohabitError, MetricError, Preempted
from . import metrics as metric
from . import signals
from .agreement import Gang
from .bar import Bar
from .checkpoints import CheckpointDirectory
from .environment import Environment, rank_and_world_size
from .messages import warn_once
from .progress import ProgressFile
from .spans import seconds
from .stops import NEVER, Stops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import timedelta
    from types import TracebackType
    from typing import Any, Callable, TypeVar
    from typing import Generic as _Generic

    from .checkpoint_file import Trailer
    from .checkpoints import Saved

    T = TypeVar("T")
    F = TypeVar("F", bound=Callable[[], object])

else:

    class _Generic:
        """`typing` takes longer to import than everything else here."""

        def __class_getitem__(cls, _: object) -> type:
            return cls

    T = None

DEFAULT_KEEP = 3
SHORTEST_REPORT_INTERVAL_SECONDS = 0.1

# Looked up at every step.
_monotonic = time.monotonic
_PLAIN = metric.PLAIN


class Job:
    """The job that this process is a part of: `cohabit.job()`.

    Outside of a job it does nothing: `load` gives the default, `should_stop` is false, nothing is reported, and
    nothing is saved unless a folder is given. `track` shows a progress bar if standard error is a terminal.

    Attributes:
        start: The step to go on with: one more than the step of the checkpoint that `load` found, else 0.
        rank: The rank of this process, from 0.
        world_size: How many ranks the job has.
    """

    def __init__(self, folder: str | None, keep: int, all_ranks: bool, *, inert: bool = False) -> None:
        self._environment = environment = Environment()
        self.is_active = environment.is_job and not inert
        self.rank, self.world_size = rank_and_world_size()
        self.start = 0
        self._folder = folder if folder is not None else environment.checkpoints
        self._folder = None if inert else self._folder
        self._keep = keep
        self._all_ranks = all_ranks
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._is_closed = False
        self._entered = 0
        self._directory: CheckpointDirectory | None = None
        self._begin_progress()
        gang, is_gang = self._new_gang()
        has_folder = self._folder is not None
        self._stops = Stops(gang, is_gang=is_gang, is_active=self.is_active, has_folder=has_folder)
        if self.is_active:
            self._stops.listen(environment.stop_at)

    # Progress and metrics

    def _begin_progress(self) -> None:
        self._progress: ProgressFile | None = None
        self._bar: Bar | None = None
        self._step: int | None = None
        self._loaded_step: int | None = None
        self._total: int | None = None
        self._counts_logs = True
        self._pending: dict[str, Any] = {}
        self._pending_step: int | None = None
        self._shown: dict[str, float] = {}
        # Called with each step and its metrics, for integrations.
        self._listeners: list[Callable[[int | None, dict[str, Any]], None]] = []
        self._written: tuple[int | None, int | None] = (None, None)
        path = self._environment.progress
        if self.is_active and path is not None and self.rank == 0:
            self._progress = ProgressFile(path)
        self._report_at = -NEVER if self._progress is not None else NEVER

    @property
    def step(self) -> int | None:
        """The latest step that is known: of `track` or `log`, or before them, that of the loaded checkpoint."""
        return self._loaded_step if self._step is None else self._step

    def track(self, iterable: Iterable[T], total: int | None = None) -> Track[T]:
        """Passes on the items of `iterable`, and reports how many there were, how fast, and how long the rest takes.

        Steps of a `range` are its numbers: `range(500, 1000)` begins at step 500 of 1000. Steps of anything else are
        counted from the last known step on, so that several epochs continue each other. Of nested loops, only the
        outermost reports.

        When the job is being stopped, the loop body runs once more, to save; then the loop is left through
        `cohabit.Preempted`. A loop in another one, such as that of an evaluation, is left only after the script has
        been told by `should_checkpoint`, if it ever asks for that.

        Args:
            iterable: What to iterate over.
            total: The number of steps of the whole training. Default: what the iterable says.

        Raises:
            MetricError: `total` is no whole number.
        """
        return Track(self, iterable, None if total is None else _whole("total", total))

    def _track(self, iterable: Iterable[T], total: int | None) -> Iterator[T]:
        position, stride, total = self._steps_of(iterable, total)
        stops, received = self._stops, signals.received
        is_outermost = stops.loops == 0
        stops.loops += 1
        has_had_time = False
        if is_outermost:
            self._open_track(position, total)
        try:
            for item in signals.iterate(iterable) if self.is_active else iterable:
                if received.stop or received.warnings or stops.is_gang:
                    stops.pass_boundary()
                    if stops.may_leave(has_had_time and (is_outermost or not stops.asks_to_save)):
                        raise Preempted
                    has_had_time = stops.agreed.stop
                yield item
                if is_outermost:
                    position += stride
                    self._step = position
                    if _monotonic() >= self._report_at:
                        self._report()
            if is_outermost and total is not None and self._step is not None:
                self._step = min(self._step, total)
        finally:
            stops.loops -= 1
            if is_outermost:
                self._close_track()

    def log(
        self,
        metrics: Mapping[str, Any] | None = None,
        /,
        *,
        step: int | None = None,
        total: int | None = None,
        **values: Any,
    ) -> None:
        """Reports metrics: `job.log(loss=0.41, lr=1e-3)`, or `job.log({"eval/loss": 0.39}, step=120)`.

        Values are numbers, also NaN and infinite ones, or tensors and arrays with one element. At most ten reports a
        second are written, and always the last one; what is left out costs nothing. A tensor on a GPU is only waited
        for when its report is written.

        Args:
            metrics: Metrics whose names are not Python names.
            step: The step that they belong to. Default: the step of `track`; without `track` and without any step
                given before, each call counts as one step.
            total: The number of steps of the whole training, where there is no `track`.
            values: The metrics by name.

        Raises:
            MetricError: A value is not a number.
        """
        if metrics is not None:
            if not hasattr(metrics, "keys"):
                raise MetricError(f"job.log takes metrics by name, as in job.log(loss=0.41), not {metrics!r}")
            values = {**metrics, **values}
            for name in values:
                metric.check_name(name)
        plain = _PLAIN
        for value in values.values():
            if type(value) not in plain:
                values = metric.check(values)
                break
        if not self._stops.loops or step is not None:
            self._count(step, total)
        if self._pending:
            self._pending.update(values)
        else:
            self._pending = values
        self._pending_step = self._step
        for listener in self._listeners:
            listener(self._step, values)
        if _monotonic() >= self._report_at:
            self._report()

    def flush(self) -> None:
        """Writes what is pending now."""
        self._report()

    def print(self, *values: object, sep: str = " ", end: str = "\n") -> None:
        """Prints to standard output as `print` does, above the progress bar where `track` draws one."""
        with self._lock:
            if self._bar is not None:
                self._bar.clear()
            print(*values, sep=sep, end=end, flush=self._bar is not None)
            if self._bar is not None:
                self._bar.redraw()

    def _count(self, step: int | None, total: int | None) -> None:
        """Takes the step of a call of `log` outside of `track`, or with a step."""
        self._total = self._total if total is None else _whole("total", total)
        if step is not None:
            self._step = _whole("step", step)
            self._counts_logs = False
        elif self._counts_logs and not self._stops.loops:
            self._step = self.start if self._step is None else self._step + 1

    def _steps_of(self, iterable: Iterable[T], total: int | None) -> tuple[int, int, int | None]:
        """The first step, the distance between two, and the total number."""
        if isinstance(iterable, range) and iterable.start >= 0 and iterable.step > 0:
            return iterable.start, iterable.step, max(iterable.stop, 0) if total is None else total
        position = self.start if self._step is None else self._step
        if total is None:
            try:
                total = position + len(iterable)  # type: ignore[arg-type]
            except (TypeError, AttributeError, NotImplementedError):
                pass  # A loader of PyTorch has a length that may raise.
        return position, 1, total

    def _open_track(self, position: int, total: int | None) -> None:
        self._step, self._total = position, total
        self._counts_logs = False
        self._refresh_gang()
        if self.rank == 0 and not self.is_active and _is_terminal():
            self._bar = Bar(position)
            self._report_at = -NEVER

    def _close_track(self) -> None:
        # Metrics have the step in which they were logged; the number of steps done is a line of its own.
        self._report()
        self._report()
        if self._bar is not None:
            self._bar.close()
            self._bar = None
            self._report_at = NEVER

    def _report(self) -> None:
        """Writes what is pending. Metrics are written with the step in which they were logged."""
        if self._progress is None and self._bar is None or os.getpid() != self._pid:
            self._pending.clear()
            return
        with self._lock:
            pending, self._pending = self._pending, {}
            found = metric.numbers(pending)
            if self._progress is not None and not self._write(self._progress, found):
                self._pending = {**pending, **self._pending}
            if self._bar is not None:
                self._shown.update(found)
                self._bar.draw(self._step or 0, self._total, self._shown)
            self._report_at = _monotonic() + SHORTEST_REPORT_INTERVAL_SECONDS

    def _write(self, progress: ProgressFile, found: dict[str, float]) -> bool:
        step = self._pending_step if found else self._step
        is_new = found or (self._step, self._total) != self._written
        if is_new and not progress.write(_countable(step), _countable(self._total), found):
            return False
        self._written = (step, self._total)
        return True

    # Checkpoints

    def load(self, default: Any = None, *, map_location: Any = "cpu") -> Any:
        """The state that was saved last, or `default` if there is none.

        It is what was given to `save`, and sets `start`, the step to go on with. A damaged checkpoint is passed over
        with a warning, and the one before is taken. With several ranks, all of them must call it.

        Args:
            default: What to return without a checkpoint.
            map_location: Where PyTorch puts tensors: a device, or what `torch.load` takes. Default: the CPU, which
                `load_state_dict` copies from.

        Raises:
            CheckpointError: There is a checkpoint, but this program cannot read it.
        """
        with self._lock:
            directory = self._checkpoints()
            if directory is None:
                return default
            gang = self._stops.gang
            if gang.is_alone:
                found = directory.load_latest(map_location)
                loaded = None if found is None else (found[1].step, found[2])
                if found is not None and self._all_ranks:
                    self._refuse_other_ranks(found[1])
            elif self._all_ranks:
                loaded = self._load_own_part(directory, gang, map_location)
            else:
                loaded = self._load_of_first(directory, gang, map_location)
            if loaded is None:
                return default
            self._step, self._loaded_step = None, loaded[0]
            self.start = loaded[0] + 1
            return loaded[1]

    def save(self, step: int, state: object) -> None:
        """Saves a state durably, so that `load` finds it in the next attempt, and removes old ones.

        Args:
            step: The step that was done last: `load` goes on with `step + 1`.
            state: What `load` returns then: anything that can be pickled, such as
                `{"model": model.state_dict(), "optimizer": optimizer.state_dict()}`.

        Only rank 0 saves, unless the job was opened with `all_ranks=True`; all ranks may call it.

        Raises:
            CheckpointError: It cannot be saved. Earlier checkpoints stay.
        """
        try:
            step = operator.index(step)
        except TypeError:
            raise CheckpointError(f"job.save takes the step first, a whole number, not {step!r}") from None
        with self._lock:
            directory = self._checkpoints()
            self._stops.note_save()
            if directory is None or os.getpid() != self._pid:
                return
            if self.rank == 0 or self._all_ranks:
                self._stops.saves += 1
                try:
                    directory.save(step, state, self.world_size)
                finally:
                    self._stops.saves -= 1
        self._stops.leave_if_unnoticed()

    @property
    def folder(self) -> str | None:
        """Where checkpoints are saved; none outside of a job without a folder."""
        return self._folder

    def _checkpoints(self) -> CheckpointDirectory | None:
        if self._folder is None:
            return None
        self._refresh_gang()
        if self._directory is None:
            rank = self.rank if self._all_ranks else None
            self._directory = CheckpointDirectory(self._folder, self._keep, rank)
        return self._directory

    def _load_of_first(self, directory: CheckpointDirectory, gang: Gang, map_location: Any) -> Any:
        """What the first rank saved, on all ranks: from the directory where all see the same, else by broadcast."""
        saved = directory.saved()
        latest = float(saved[-1].number if saved else 0)
        highest, lowest = gang.largest([latest, -latest])
        # Another rank may save before this one reads: what counts is what was there when they agreed.
        found = directory.load_latest(map_location, saved) if highest == -lowest or self.rank == 0 else None
        own = None if found is None else (found[1].step, found[2])
        if highest == -lowest:
            return own
        if self.rank == 0:
            warn_once("the ranks share no checkpoint directory: rank 0 sends its checkpoint to the others")
        return gang.broadcast(own)

    def _load_own_part(self, directory: CheckpointDirectory, gang: Gang, map_location: Any) -> Any:
        """The latest checkpoint of which every rank has its part."""
        below = NEVER
        while True:
            parts = {it.number: it for it in directory.saved() if it.number < below}
            agreed = -gang.largest([-float(max(parts, default=0))])[0]
            part: Saved | None = parts.get(int(agreed))
            found = directory.load(part, map_location) if part is not None else None
            if found is not None:
                self._refuse_other_ranks(found[0])
            is_missing = gang.largest([found is None])[0] > 0
            if not is_missing or not agreed:
                directory.forget_later_than(part)
                return None if found is None else (found[0].step, found[1])
            below = agreed

    def _refuse_other_ranks(self, trailer: Trailer) -> None:
        if trailer.world_size != self.world_size:
            raise CheckpointError(
                f"the checkpoint of step {trailer.step} was saved by {trailer.world_size} ranks, and these are "
                f"{self.world_size}: run as many, or start with another checkpoint directory"
            )

    # Stops

    @property
    def should_stop(self) -> bool:
        """Whether the job is being stopped: save and `raise cohabit.Preempted`, or just leave the program.

        With several ranks it becomes true on all of them at the same step.
        """
        self._refresh_gang_before_question()
        return self._stops.should_stop()

    def should_checkpoint(self, every: float | str | timedelta | None = None) -> bool:
        """Whether to save now: this span has passed since the last save, or the job may soon end.

        The latter is the case after a warning (`--stop-signal`), shortly before the time limit, and when the job is
        being stopped: true once for each. With several ranks, all get the same answer at the same step. Outside of
        a job it is false unless a folder was given.

        Args:
            every: Seconds, a timedelta, or a text such as "10m" or "1h30m". Default: never by time alone.

        Raises:
            ValueError: `every` is not a span.
        """
        span = NEVER if every is None else seconds(every)
        self._refresh_gang_before_question()
        return self._stops.should_checkpoint(span)

    def on_stop(self, function: F) -> F:
        """Has this function called once, in the main thread between two steps, when the job is being stopped.

        Without a loop that asks (`track`, `should_stop`, `should_checkpoint`) it is called in the signal handler.
        An exception of it is printed, and the stop goes on, so that a checkpoint can be saved.
        Returns the function, so that it can decorate one.

        Raises:
            CohabitError: It is no function.
        """
        return self._stops.call_at_stop(function)

    # Ranks

    def _refresh_gang_before_question(self) -> None:
        if self._stops.is_first_question():
            self._refresh_gang()

    def _refresh_gang(self) -> None:
        """There may be more ranks once torch.distributed is initialized."""
        rank, world_size = rank_and_world_size()
        if (rank, world_size) == (self.rank, self.world_size):
            return
        self.rank, self.world_size = rank, world_size
        self._directory = None
        self._stops.join(*self._new_gang())
        if rank != 0 and self._progress is not None:
            self._progress.close()
            self._progress, self._report_at = None, NEVER

    def _new_gang(self) -> tuple[Gang, bool]:
        """The present ranks, and whether they decide together."""
        is_gang = self.world_size > 1 and (self.is_active or self._folder is not None)
        shared = self._folder if self._environment.nodes == 1 else None
        # On one node, all ranks see the checkpoint directory.
        place = None if shared is None else os.path.join(shared, f".ranks-{self._environment.job or 'local'}")
        return Gang(self.rank, self.world_size if is_gang else 1, place), is_gang

    # Life

    def close(self) -> None:
        """Reports what is pending, and gives the signals back. `with cohabit.job()` and the end of the script do it."""
        global _present
        if self._is_closed or os.getpid() != self._pid:
            return
        self._is_closed = True
        if _present is self:
            _present = None
        self._report()
        if self._progress is not None:
            self._progress.close()
            self._progress = None
        self._stops.close()
        atexit.unregister(self.close)

    def __enter__(self) -> Job:
        self._entered += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A function that the script calls may open the same job with a block of its own.
        self._entered -= 1
        if self._entered <= 0:
            self.close()

    def __repr__(self) -> str:
        name = self._environment.job if self.is_active else "none"
        return f"<cohabit.Job {name}, rank {self.rank} of {self.world_size}, step {self._step}>"

    def __copy__(self) -> Job:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Job:
        return self

    def __reduce__(self) -> tuple[Callable[[], Job], tuple[()]]:
        # Another process is not this job: it must neither report nor save.
        return _inert_job, ()


class Track(_Generic[T]):
    """The items of one call of `Job.track`. Each loop over it begins anew, and ends when it is left."""

    def __init__(self, job: Job, iterable: Iterable[T], total: int | None) -> None:
        self._job = job
        self._iterable = iterable
        self._total = total
        self._items: Iterator[T] | None = None

    def __iter__(self) -> Iterator[T]:
        # Nothing else holds it, so that a loop that is left with `break` is closed at once.
        items, self._items = self._items, None
        return self._job._track(self._iterable, self._total) if items is None else items

    def __len__(self) -> int:
        return len(self._iterable)  # type: ignore[arg-type]

    def __next__(self) -> T:
        if self._items is None:
            self._items = self._job._track(self._iterable, self._total)
        return next(self._items)


_present: Job | None = None


def open_job(folder: str | os.PathLike[str] | None, keep: int | None, all_ranks: bool | None) -> Job:
    """The job that is open, or a new one."""
    global _present
    if folder is not None and not isinstance(folder, (str, os.PathLike)):
        raise CohabitError(f"folder={folder!r}: the checkpoint directory is a path")
    place = None if folder is None else os.path.abspath(os.fspath(folder))
    if keep is not None and (not isinstance(keep, int) or keep < 1):
        raise CohabitError(f"keep={keep!r}: so many checkpoints are kept, a whole number of at least 1")
    if _present is not None and _present._pid == os.getpid():
        _refuse_differences(_present, place, keep, all_ranks)
        return _present
    is_child = _present is not None
    _present = Job(place, keep or DEFAULT_KEEP, bool(all_ranks), inert=is_child)
    atexit.register(_present.close)
    return _present


def _refuse_differences(job: Job, folder: str | None, keep: int | None, all_ranks: bool | None) -> None:
    present = {"folder": job._folder, "keep": job._keep, "all_ranks": job._all_ranks}
    for name, value in {"folder": folder, "keep": keep, "all_ranks": all_ranks}.items():
        if value is not None and value != present[name]:
            raise CohabitError(
                f"the job is open with {name}={present[name]!r}, and cohabit.job({name}={value!r}) asks for another: "
                "give it in the first call, or close the job before"
            )


def close_present() -> None:
    """Closes the job that is open, if there is one: the next call of the process has one of its own."""
    if _present is not None:
        _present.close()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False  # None, closed, or replaced by something that can only write.


def _inert_job() -> Job:
    return _present if _present is not None else Job(None, DEFAULT_KEEP, False, inert=True)


def _whole(name: str, number: object) -> int:
    try:
        return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise MetricError(f"{name}={number!r}: a whole number is wanted") from None


def _countable(number: int | None) -> int | None:
    """The cluster counts steps from zero."""
    return None if number is None or number < 0 else number
