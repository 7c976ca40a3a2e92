"""`cohabit.Executor` on a real cluster."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import threading
import time
from concurrent import futures

import cohabit
import pytest
from cluster_kit import Cluster
from kit import until

pytest.importorskip("cohabit._native", reason="the native half is not built: pip install ./client/python")
pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")

BOUND = 120


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory):
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    yield running
    running.close()


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("COHABIT_EXECUTOR_DIR", str(tmp_path / "executors"))
    return tmp_path / "executors"


@pytest.fixture
def client(shared: Cluster) -> cohabit.Client:
    return cohabit.Client(state=shared.folder / "state")


@pytest.fixture(params=[True, False], ids=["shared disk", "sent"])
def pool(request: pytest.FixtureRequest, client: cohabit.Client):
    with cohabit.Executor(client, gpus=0.5, shared=request.param) as running:
        yield running


def square(number: int) -> int:
    return number * number


def test_calls_run_and_results_come_back_in_order(pool: cohabit.Executor) -> None:
    factor = 3
    assert list(pool.map(lambda number: number * factor, range(6))) == [0, 3, 6, 9, 12, 15]
    assert list(pool.map(square, range(6), chunksize=4)) == [0, 1, 4, 9, 16, 25]
    assert pool.submit(dict, one=1).result(BOUND) == {"one": 1}
    assert pool.submit(os.getcwd).result(BOUND) == os.getcwd()
    assert len(pool.submit(bytes, 3 << 20).result(BOUND)) == 3 << 20


def test_an_exception_comes_back_with_the_traceback_of_the_job(pool: cohabit.Executor) -> None:
    def fails(key: str) -> int:
        return {"other": 1}[key]

    with pytest.raises(KeyError, match="missing") as raised:
        pool.submit(fails, "missing").result(BOUND)
    assert "in fails" in str(raised.value.__cause__) and "KeyError: 'missing'" in str(raised.value.__cause__)

    class Own(Exception):
        def __init__(self, one: int, two: int) -> None:
            super().__init__(one)

    def raises_own() -> None:
        raise Own(1, 2)

    error = pool.submit(raises_own).exception(BOUND)
    assert "Own" in repr(error) and error is not None and "in raises_own" in str(error.__cause__)


def test_what_cannot_be_pickled_is_named(pool: cohabit.Executor) -> None:
    lock = threading.Lock()
    for error, words in [
        (pool.submit(lambda: lock).exception(BOUND), "the variable 'lock' of the function"),
        (pool.submit(square, {"a": [1, lock]}).exception(BOUND), "argument 1['a'][1] (a _thread.lock)"),
        (pool.submit(square, number=lock).exception(BOUND), "argument 'number' (a _thread.lock)"),
        (pool.submit(threading.Lock).exception(BOUND), "the result, a lock, cannot be pickled"),
    ]:
        assert isinstance(error, cohabit.UnpicklableError) and words in str(error), error


def test_a_job_that_dies_and_a_module_that_is_missing_are_told(pool: cohabit.Executor) -> None:
    error = pool.submit(os._exit, 3).exception(BOUND)
    assert (
        isinstance(error, cohabit.RemoteCallError)
        and "left no result" in str(error)
        and "code 3" in str(error)
    )
    with pytest.raises(SystemExit):
        pool.submit(sys.exit, 4).result(BOUND)


def test_calls_that_wait_are_cancelled_in_the_cluster_and_those_that_run_are_not(
    client: cohabit.Client, tmp_path: pathlib.Path
) -> None:
    go = tmp_path / "go"

    def waits() -> str:
        while not go.exists():
            time.sleep(0.01)
        return "went"

    with cohabit.Executor(client, gpus=0.5, max_running=1) as pool:
        first = pool.submit(waits)
        until("it runs", first.running)
        others = [pool.submit(waits) for _ in range(3)]
        assert not first.cancel() and all(other.cancel() for other in others)
        done, _ = futures.wait([first, *others], timeout=0.1)
        assert done == set(others) and all(other.cancelled() for other in others)
        called = []
        others[0].add_done_callback(called.append)
        assert called == [others[0]]
        go.touch()
        assert first.result(BOUND) == "went"
        assert pool.submit(square, 3).result(BOUND) == 9
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(square, 1)


def test_no_more_run_at_once_than_asked_for_and_an_array_is_submitted_at_once(
    client: cohabit.Client, tmp_path: pathlib.Path
) -> None:
    def crowd(number: int) -> int:
        own = tmp_path / f"running-{number}"
        own.touch()
        count = sum(1 for _ in tmp_path.glob("running-*"))
        time.sleep(0.05)
        own.unlink()
        return count

    with cohabit.Executor(client, gpus=0.25, max_running=2, name="crowd") as pool:
        counts = list(pool.map(crowd, range(10)))
    assert max(counts) <= 2
    assert sum(1 for record in client.jobs(name="crowd")) <= 10


def test_shutdown_cancels_what_waits_and_removes_its_files(
    client: cohabit.Client, folder: pathlib.Path
) -> None:
    pool = cohabit.Executor(client, gpus=0.5, max_running=1)
    first = pool.submit(time.sleep, 0.2)
    until("it runs", first.running)
    waiting = [pool.submit(time.sleep, 1000) for _ in range(5)]
    pool.shutdown(cancel_futures=True)
    assert first.result() is None and all(it.cancelled() for it in waiting)
    assert list(folder.iterdir()) == []
    ended = all(record.has_ended for record in client.jobs(name=pool.name))
    assert ended


DRIVER = """
import sys, time, cohabit
pool = cohabit.Executor(cohabit.Client(state=sys.argv[1]), gpus=0.25, name="lost")
def slow(number):
    import os, time
    while not os.path.exists(sys_argv_go): time.sleep(0.01)
    return number + 100
sys_argv_go = sys.argv[2]
futures = [pool.submit(slow, number) for number in range(4)]
while any(future.job is None for future in futures): time.sleep(0.01)
print("submitted", flush=True)
time.sleep(1000)
"""


def test_a_driver_that_dies_leaves_its_results_to_another(
    client: cohabit.Client, shared: Cluster, tmp_path: pathlib.Path
) -> None:
    go = tmp_path / "go"
    command = [sys.executable, "-c", DRIVER, str(shared.folder / "state"), str(go)]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None and driver.stdout.readline() == "submitted\n"
    driver.kill()
    driver.wait()
    with pytest.raises(cohabit.InvalidRequestError, match="attach"):
        cohabit.Executor(client, name="lost")
    go.touch()
    with cohabit.Executor.attach("lost", client) as pool:
        assert [future.result(BOUND) for future in pool.futures] == [100, 101, 102, 103]
    with pytest.raises(cohabit.NotFoundError):
        cohabit.Executor.attach("lost", client)


def test_another_version_of_python_is_refused(client: cohabit.Client) -> None:
    other = os.environ.get("COHABIT_OTHER_PYTHON")
    if not other:
        pytest.skip("COHABIT_OTHER_PYTHON names no other version of Python with the package")
    with cohabit.Executor(client, gpus=0.5, python=other) as pool:
        error = pool.submit(square, 1).exception(BOUND)
    assert isinstance(error, cohabit.VersionMismatchError) and "give Executor(python=" in str(error)


def test_bad_options_are_told_at_once(client: cohabit.Client) -> None:
    for options, words in [
        ({"max_running": 0}, "at least 1"),
        ({"array": 3}, "sets array itself"),
    ]:
        with pytest.raises(cohabit.InvalidRequestError, match=words):
            cohabit.Executor(client, **options)
    with cohabit.Executor(client, gpuss=1) as pool:
        for _ in range(2):
            assert isinstance(pool.submit(square, 1).exception(BOUND), cohabit.InvalidRequestError)


@pytest.mark.parametrize("name", ["..", "/etc", "a/b", "", ".hidden", "-flag", "a" * 101])
def test_a_name_leads_to_no_other_folder(client: cohabit.Client, name: str) -> None:
    with pytest.raises(cohabit.InvalidRequestError, match="use up to 100 letters"):
        cohabit.Executor.attach(name, client)
    if name:
        with pytest.raises(cohabit.InvalidRequestError, match="use up to 100 letters"):
            cohabit.Executor(client, name=name)


def test_futures_work_with_as_completed(pool: cohabit.Executor) -> None:
    waiting = {pool.submit(square, number): number for number in range(5)}
    assert {waiting[done]: done.result() for done in futures.as_completed(waiting, timeout=BOUND)} == {
        number: number * number for number in range(5)
    }


def test_joblib_runs_on_the_cluster(client: cohabit.Client) -> None:
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    from cohabit.integrations import joblib as backend

    backend.register()
    with joblib.parallel_config(backend="cohabit", n_jobs=2, client=client, gpus=0.5):
        assert joblib.Parallel()(joblib.delayed(square)(number) for number in range(5)) == [0, 1, 4, 9, 16]
        with pytest.raises(ZeroDivisionError):
            joblib.Parallel()(joblib.delayed(lambda number: 1 // number)(number) for number in (1, 0))
