"""joblib on the cluster, also as scikit-learn uses it.

import joblib
import cohabit.integrations.joblib as backend

backend.register()
with joblib.parallel_config(backend="cohabit", n_jobs=8, gpus=0.25):
    results = joblib.Parallel()(joblib.delayed(train)(lr) for lr in rates)
"""

from __future__ import annotations

import cohabit

from . import missing

try:
    import joblib  # type: ignore[import-untyped, unused-ignore]
    from joblib._parallel_backends import (  # type: ignore[import-untyped, unused-ignore]
        ParallelBackendBase,
        ThreadingBackend,
    )
except ImportError as error:
    raise missing("joblib", "joblib", error) from error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future
    from typing import Any, Callable

EVERYTHING = 1_000
"""How many calls `n_jobs=-1` submits at once: the cluster decides how many of them run."""


def register() -> None:
    """Makes the backend `"cohabit"` known to joblib."""
    joblib.register_parallel_backend("cohabit", CohabitBackend)


class CohabitBackend(ParallelBackendBase):  # type: ignore[misc, unused-ignore]
    """Runs each batch of joblib as a call of `cohabit.Executor`, which has the other keywords.

    `n_jobs` calls run at once.
    """

    supports_retrieve_callback = True

    def __init__(self, nesting_level: int | None = None, **options: Any) -> None:
        super().__init__(nesting_level=nesting_level or 0)
        self._options = options
        self._pool: cohabit.Executor | None = None

    def effective_n_jobs(self, n_jobs: int | None) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        return 1 if n_jobs is None else EVERYTHING if n_jobs < 0 else n_jobs

    def configure(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, n_jobs: int | None = 1, parallel: Any = None, **_: Any
    ) -> int:
        self.parallel = parallel
        count = self.effective_n_jobs(n_jobs)
        max_running = None if count == EVERYTHING else count
        self._pool = cohabit.Executor(max_running=max_running, **self._options)
        return count

    def submit(self, func: Callable[[], Any], callback: Callable[[Any], Any] | None = None) -> Future[Any]:
        if self._pool is None:
            raise RuntimeError("the backend is not configured: use it through joblib.Parallel")
        future = self._pool.submit(func)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        return out.result()

    def terminate(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def abort_everything(self, ensure_ready: bool = True) -> None:
        self.terminate()
        if ensure_ready:
            self.configure(n_jobs=self.parallel.n_jobs, parallel=self.parallel)

    def get_nested_backend(self) -> tuple[Any, None]:
        return ThreadingBackend(nesting_level=(self.nesting_level or 0) + 1), None
