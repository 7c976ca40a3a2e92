"""`cohabit.Executor` on a real cluster."""

from __future__ import annotations

import gc
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent import futures
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client as Connect

import cohabit
import pytest
from cluster_kit import Cluster
from kit import started, until

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


@pytest.fixture(params=[(True, False), (False, False), (True, True), (False, True)], ids=str)
def pool(request: pytest.FixtureRequest, client: cohabit.Client):
    """An executor: with files that are shared or sent, and with a job for each call or warm interpreters."""
    shared, warm = request.param
    with cohabit.Executor(client, gpus=0.5, shared=shared, warm=warm, max_running=3) as running:
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
    assert isinstance(error, cohabit.RemoteCallError)
    assert "left no result" in str(error) and "code 3" in str(error)
    error = pool.submit(exec, "import os, sys; print('out of luck', file=sys.stderr); os._exit(3)").exception(
        BOUND
    )
    assert str(error).endswith("; it printed last:\n    out of luck")
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
options = {"warm": True, "max_running": 1} if sys.argv[3] == "warm" else {}
pool = cohabit.Executor(cohabit.Client(state=sys.argv[1]), gpus=0.25, name="lost", **options)
assert pool.submit(pow, 2, 2).result() == 4
def slow(number):
    import os, time
    while not os.path.exists(sys_argv_go): time.sleep(0.01)
    return number + 100
sys_argv_go = sys.argv[2]
futures = [pool.submit(slow, number) for number in range(4)]
while not any(future.job for future in futures) if options else not all(future.job for future in futures):
    time.sleep(0.01)
print("submitted", flush=True)
time.sleep(1000)
"""


def test_a_driver_that_dies_leaves_its_results_to_another(
    client: cohabit.Client, shared: Cluster, tmp_path: pathlib.Path
) -> None:
    go = tmp_path / "go"
    driver = start_driver(shared, go, "cold")
    with pytest.raises(cohabit.WrongStateError, match="is alive"):
        cohabit.Executor.attach("lost", client)
    with pytest.raises(cohabit.NotFoundError, match="no executor 'lots' in .* There are: lost"):
        cohabit.Executor.attach("lots", client)
    driver.kill()
    driver.wait()
    with pytest.raises(cohabit.InvalidRequestError, match="attach"):
        cohabit.Executor(client, name="lost")
    # A program that only looks neither waits for the calls nor takes the results along.
    look = "import sys, cohabit; print(len(cohabit.Executor.attach('lost', cohabit.Client(state=sys.argv[1])).futures))"
    command = [sys.executable, "-c", look, str(shared.folder / "state")]
    assert subprocess.run(command, capture_output=True, text=True, timeout=BOUND).stdout == "5\n"
    go.touch()
    with cohabit.Executor.attach("lost", client) as pool:
        assert cohabit.Executor.attach("lost") is pool
        assert [future.result(BOUND) for future in pool.futures] == [4, 100, 101, 102, 103]
    with pytest.raises(cohabit.NotFoundError):
        cohabit.Executor.attach("lost", client)


def test_calls_of_warm_interpreters_go_with_their_driver(
    client: cohabit.Client, shared: Cluster, tmp_path: pathlib.Path
) -> None:
    driver = start_driver(shared, tmp_path / "go", "warm")
    driver.kill()
    driver.wait()
    with pytest.raises(cohabit.WrongStateError, match="its interpreters were warm: remove that folder"):
        cohabit.Executor.attach("lost", client)
    for record in client.jobs(name="lost"):
        if not record.has_ended:
            client.job(record.id).kill()
    # The name is free again for the next run of the same program.
    with cohabit.Executor(client, gpus=0.25, name="lost", warm=True, max_running=1) as pool:
        assert pool.submit(square, 3).result(BOUND) == 9


def start_driver(cluster: Cluster, go: pathlib.Path, kind: str) -> subprocess.Popen[str]:
    """A program that has read a result, and has submitted calls that wait for a file."""
    command = [sys.executable, "-c", DRIVER, str(cluster.folder / "state"), str(go), kind]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None and driver.stdout.readline() == "submitted\n"
    return driver


@pytest.mark.parametrize("warm", [False, True])
def test_a_head_that_comes_back_at_another_address_is_found(
    cluster: Cluster, tmp_path: pathlib.Path, warm: bool
) -> None:
    client = cohabit.Client(state=cluster.folder / "state")
    go = tmp_path / "go"
    wait_for = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)"
    with cohabit.Executor(client, gpus=0.5, max_running=2, warm=warm) as pool:
        futures = [pool.submit(exec, wait_for) for _ in range(2)]
        until("both run", lambda: all(future.running() for future in futures))
        before = cluster.address
        cluster.restart()
        assert cluster.address != before
        go.touch()
        assert [future.result(BOUND) for future in futures] == [None, None]
    assert client.nodes()


FORKED = """
import os, sys, cohabit
pool = cohabit.Executor(cohabit.Client(state=sys.argv[1]), gpus=0.5)
child = os.fork()
if child == 0:
    try:
        pool.submit(abs, -1)
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(pool.submit(abs, -1).result(), flush=True)
"""


def test_a_forked_process_is_told_that_it_cannot_use_the_executor(shared: Cluster) -> None:
    command = [sys.executable, "-c", FORKED, str(shared.folder / "state")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND)
    told, result = done.stdout.splitlines()
    assert "spawn" in told and result == "1", done


@pytest.mark.parametrize("warm", [False, True])
def test_a_call_that_fails_its_process_is_run_again_as_often_as_retries_say(
    client: cohabit.Client, tmp_path: pathlib.Path, warm: bool
) -> None:
    def fails_at_first(successes_after: int, trace: pathlib.Path) -> int:
        with trace.open("a") as file:
            file.write(".")
        if len(trace.read_text()) <= successes_after:
            os._exit(7)
        return len(trace.read_text())

    with cohabit.Executor(client, gpus=0.5, retries=2, warm=warm, max_running=1) as pool:
        assert pool.submit(fails_at_first, 2, tmp_path / "two").result(BOUND) == 3
    with cohabit.Executor(client, gpus=0.5, retries=2, warm=warm, max_running=1) as pool:
        error = pool.submit(fails_at_first, 9, tmp_path / "nine").exception(BOUND)
    assert isinstance(error, cohabit.RemoteCallError) and "code 7" in str(error)
    assert "cohabit logs" in str(error)
    assert len((tmp_path / "nine").read_text()) == 3


@pytest.mark.parametrize("warm", [False, True])
def test_a_call_whose_job_is_stopped_is_run_again(
    client: cohabit.Client, tmp_path: pathlib.Path, warm: bool
) -> None:
    def waits(folder: pathlib.Path) -> int:
        own = folder / f"attempt-{os.environ['COHABIT_ATTEMPT']}"
        own.touch()
        while not (folder / "go").exists():
            time.sleep(0.01)
        return len(list(folder.glob("attempt-*")))

    with cohabit.Executor(client, gpus=0.5, warm=warm, max_running=1) as pool:
        future = pool.submit(waits, tmp_path)
        until("it runs", (tmp_path / "attempt-1").exists)
        client.job(future.job).requeue()
        until("it runs again", (tmp_path / "attempt-2").exists)
        (tmp_path / "go").touch()
        assert future.result(BOUND) == 2
        assert client.job(future.job).record().attempt == 2


@pytest.mark.parametrize("warm", [False, True])
def test_a_job_that_somebody_cancels_fails_its_call(
    client: cohabit.Client, tmp_path: pathlib.Path, warm: bool
) -> None:
    def waits(started: pathlib.Path) -> None:
        started.touch()
        time.sleep(1000)

    with cohabit.Executor(client, gpus=0.5, warm=warm, max_running=1) as pool:
        future = pool.submit(waits, tmp_path / "started")
        until("it runs", (tmp_path / "started").exists)
        client.job(future.job).cancel()
        error = future.exception(BOUND)
        assert isinstance(error, cohabit.RemoteCallError) and "CANCELLED" in str(error)
        assert pool.submit(square, 4).result(BOUND) == 16


def count_calls() -> tuple[int, int]:
    """Which process this is, and how many calls it has run."""
    import cohabit

    calls = getattr(cohabit, "calls_of_this_process", 0) + 1
    cohabit.calls_of_this_process = calls
    return os.getpid(), calls


@pytest.mark.parametrize("is_shared", [True, False])
def test_warm_interpreters_take_one_call_after_the_other(client: cohabit.Client, is_shared: bool) -> None:
    with cohabit.Executor(
        client, gpus=0.5, warm=True, max_running=2, shared=is_shared, name=f"warm-{is_shared}"
    ) as pool:
        counts = [pool.submit(count_calls) for _ in range(20)]
        by_process: dict[int, list[int]] = {}
        for pid, calls in (future.result(BOUND) for future in counts):
            by_process.setdefault(pid, []).append(calls)
        assert len(by_process) <= 2 and sum(map(len, by_process.values())) == 20
        assert all(sorted(calls) == list(range(1, len(calls) + 1)) for calls in by_process.values())
        assert len({future.job for future in counts}) <= 2
        large = pool.submit(bytes, 20 << 20)
        assert len(large.result(BOUND)) == 20 << 20
    ended = client.wait(*{future.job for future in counts}, timeout=BOUND)
    assert {record.state for record in ended} == {"COMPLETED"}


def test_warm_interpreters_end_when_there_is_nothing_to_do_and_are_started_again(
    client: cohabit.Client,
) -> None:
    with cohabit.Executor(client, gpus=0.5, warm="200ms", max_running=1) as pool:
        first = pool.submit(os.getpid)
        first.result(BOUND)
        assert client.wait(first.job, timeout=BOUND)[0].state == "COMPLETED"
        second = pool.submit(os.getpid)
        assert second.result(BOUND) != first.result() and second.job != first.job


def test_warm_interpreters_that_cannot_start_fail_their_calls(client: cohabit.Client) -> None:
    with cohabit.Executor(client, gpus=0.5, warm=True, max_running=1, python="/nowhere/python") as pool:
        errors = [pool.submit(square, number).exception(BOUND) for number in range(3)]
    assert all(isinstance(it, cohabit.RemoteCallError) and "/nowhere/python" in str(it) for it in errors), (
        errors
    )


def test_an_interpreter_runs_nothing_for_who_does_not_know_its_key(tmp_path: pathlib.Path) -> None:
    from cohabit._executor import serve_calls
    from cohabit._executor.batch import Batch
    from cohabit._executor.envelope import Outcome, header

    batch = Batch.of_interpreters(str(tmp_path / "batch"), 1, True)
    assert os.stat(batch.folder).st_mode & 0o777 == 0o700
    environment = {**os.environ, "COHABIT_ARRAY_INDEX": "0", "COHABIT_ATTEMPT": "1"}
    command = [sys.executable, "-c", serve_calls.PROGRAM, batch.folder, batch.nonce, "0.2"]
    with started(command, env=environment) as interpreter:
        said = tmp_path / "batch" / "results" / "0-cohabit-port-1"
        until("it listens", said.exists)
        address = ("127.0.0.1", int(said.read_text()))
        with pytest.raises((AuthenticationError, EOFError, OSError)):
            Connect(address, authkey=b"a guess")
        with Connect(address, authkey=batch.key()) as driver:
            driver.send(header())
            assert driver.recv() is None
            call = (1, pickle.dumps(square), pickle.dumps(((3,), {})))
            driver.send(call)
            assert Outcome.read(driver.recv_bytes()).value == 9
        # A driver that lost its connection asks again, and the call does not run again.
        with Connect(address, authkey=batch.key()) as driver:
            driver.send(header())
            assert driver.recv() is None
            driver.send((1, b"unread", b"unread"))
            assert Outcome.read(driver.recv_bytes()).value == 9
    # It gives its place back: the driver has gone, without a word.
    assert interpreter.returncode == 0


def test_another_version_of_python_is_refused(client: cohabit.Client) -> None:
    other = os.environ.get("COHABIT_OTHER_PYTHON")
    if not other:
        pytest.skip("COHABIT_OTHER_PYTHON names no other version of Python with the package")
    with cohabit.Executor(client, gpus=0.5, python=other) as pool:
        error = pool.submit(square, 1).exception(BOUND)
    assert isinstance(error, cohabit.VersionMismatchError) and "give Executor(python=" in str(error)


INTERRUPTED = """
import sys, time, cohabit
client = cohabit.Client(state=sys.argv[1])
with cohabit.Executor(client, gpus=0.5, max_running=1, warm=sys.argv[2] == "warm", name="interrupted") as pool:
    running, waiting = pool.submit(time.sleep, 1000), pool.submit(time.sleep, 1000)
    while not running.running():
        time.sleep(0.01)
    print("running", flush=True)
    running.result()
"""


@pytest.mark.parametrize("kind", ["cold", "warm"])
def test_an_interrupt_cancels_all_calls_and_says_so(
    shared: Cluster, client: cohabit.Client, kind: str
) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(shared.folder / "state"), kind]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as driver:
        assert driver.stdout is not None and driver.stdout.readline() == "running\n"
        driver.send_signal(signal.SIGINT)
        _, err = driver.communicate(timeout=BOUND)
    assert driver.returncode == -signal.SIGINT
    assert "the calls of executor 'interrupted' are being cancelled" in err and "KeyboardInterrupt" in err
    states = {job.state for job in client.jobs(name="interrupted")}
    assert states == {"CANCELLED"}


def test_who_is_impatient_leaves_what_runs_for_another_driver(
    shared: Cluster, client: cohabit.Client
) -> None:
    stubborn = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); "
        "time.sleep(1000)"
    )
    script = INTERRUPTED.replace("time.sleep, 1000)", f"exec, {stubborn!r})").replace("interrupted", "left")
    command = [sys.executable, "-c", script, str(shared.folder / "state"), "cold"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as driver:
        assert driver.stdout is not None and driver.stdout.readline() == "running\n"
        (left,) = client.jobs(name="left")
        until("the call ignores SIGTERM", lambda: "ready" in client.job(f"{left.id}.0").logs())
        driver.send_signal(signal.SIGINT)
        assert driver.stderr is not None and "Press Ctrl-C again" in driver.stderr.readline()
        driver.send_signal(signal.SIGINT)
        driver.communicate(timeout=BOUND)
    client.job(left.id).kill()
    with cohabit.Executor.attach("left", client) as attached:
        assert any(isinstance(it.exception(BOUND), cohabit.RemoteCallError) for it in attached.futures)


def test_bad_options_are_told_at_once(client: cohabit.Client) -> None:
    for options, words in [
        ({"client": 4}, "how many calls run is max_running="),
        ({"max_running": 0}, "at least 1"),
        ({"max_running": "3"}, "expected a whole number"),
        ({"array": 3}, "sets array itself"),
        ({"max_workers": 3}, "did you mean max_running"),
        ({"warm": True}, "say how many with max_running"),
        ({"warm": "soon", "max_running": 1}, "not a span"),
    ]:
        with pytest.raises(cohabit.InvalidRequestError, match=words):
            cohabit.Executor(**{"client": client, **options})
    with cohabit.Executor(client, name="mine"):
        with pytest.raises(cohabit.InvalidRequestError, match="this program has an executor 'mine' already"):
            cohabit.Executor(client, name="mine")
        with pytest.raises(cohabit.WrongStateError, match="is one of this program"):
            cohabit.Executor.attach("mine", client)
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


def test_results_come_in_order_and_what_nobody_waits_for_is_cancelled(
    client: cohabit.Client, tmp_path: pathlib.Path
) -> None:
    def inverse(number: int) -> float:
        (tmp_path / str(number)).touch()
        return 1 / number

    with cohabit.Executor(client, gpus=0.5, max_running=1, warm=True) as pool:
        results = pool.map(inverse, [1, 2, 0, 4, 5], buffersize=1)
        assert [next(results), next(results)] == [1, 0.5]
        with pytest.raises(ZeroDivisionError):
            next(results)
        assert list(results) == [] and not (tmp_path / "5").exists()
        asked = []
        numbers = pool.map(square, (asked.append(it) or it for it in range(9)), chunksize=2, buffersize=2)
        assert asked == [0, 1, 2, 3] and [next(numbers) for _ in range(3)] == [0, 1, 4]
        assert len(asked) < 9 and list(numbers) == [9, 16, 25, 36, 49, 64]
        with pytest.raises(futures.TimeoutError):
            next(pool.map(time.sleep, [1000], timeout=0))
        for bad in ({"chunksize": 0}, {"buffersize": 0}):
            with pytest.raises(ValueError):
                pool.map(square, [1], **bad)


def test_calls_may_have_keywords_of_any_name_and_errors_that_are_false(pool: cohabit.Executor) -> None:
    def keywords(**names: int) -> dict[str, int]:
        return names

    assert pool.submit(keywords, self=7, fn=8, future=9).result(BOUND) == {"self": 7, "fn": 8, "future": 9}

    class Falsey(Exception):
        def __bool__(self) -> bool:
            return False

        def __len__(self) -> int:
            return 0

    def raises() -> None:
        raise Falsey("message")

    # Older versions of Python lose such an error in `result`.
    assert isinstance(pool.submit(raises).exception(BOUND), Falsey)


def test_arguments_are_not_kept_longer_than_needed(pool: cohabit.Executor) -> None:
    class Large:
        pass

    argument = Large()
    gone = threading.Event()
    watched = weakref.ref(argument, lambda _: gone.set())
    future = pool.submit(type, argument)
    del argument
    gc.collect()
    assert watched() is None and gone.is_set()
    future.result(BOUND)


LAST_CALLS = """
import sys, cohabit
client, kind = cohabit.Client(state=sys.argv[1]), sys.argv[2]
options = {"warm": {"warm": True}, "cold": {}, "sent": {"shared": False}}[kind]
pool = cohabit.Executor(client, gpus=0.5, max_running=1, **options)
for number in range(3):
    pool.submit(pow, number, 2).add_done_callback(lambda it: print(it.result(), flush=True))
"""


@pytest.mark.parametrize("kind", ["warm", "cold", "sent"])
def test_the_end_of_a_program_waits_for_its_calls(client: cohabit.Client, shared: Cluster, kind: str) -> None:
    command = [sys.executable, "-c", LAST_CALLS, str(shared.folder / "state"), kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND)
    assert (done.returncode, sorted(done.stdout.split())) == (0, ["0", "1", "4"]), done


def test_an_executor_that_is_dropped_runs_its_calls(shared: Cluster, folder: pathlib.Path) -> None:
    script = """
import sys, cohabit
cohabit.Executor(cohabit.Client(state=sys.argv[1]), gpus=0.5).submit(open, sys.argv[2], "w")
"""
    command = [sys.executable, "-c", script, str(shared.folder / "state"), str(folder / "file")]
    folder.mkdir(parents=True)
    subprocess.run(command, timeout=BOUND, check=True)
    assert [it.name for it in folder.iterdir()] == ["file"]


def train(goal: int) -> int:
    """The third step of docs/PYTHON.md: it goes on from its checkpoint."""
    with cohabit.job() as job:
        total = job.load(default=0)
        for step in job.track(range(job.start, 5)):
            total += goal
            job.save(step, total)
    return int(total)


@pytest.mark.parametrize("options", [{"warm": True}, {}], ids=["warm", "chunk"])
def test_calls_that_share_a_process_share_no_checkpoint(
    client: cohabit.Client, options: dict[str, bool]
) -> None:
    with cohabit.Executor(client, gpus=0.5, max_running=1, **options) as pool:  # type: ignore[arg-type]
        assert list(pool.map(train, [1, 2, 3], chunksize=1 if options else 3)) == [5, 10, 15]


def meet(folder: pathlib.Path, number: int) -> None:
    (folder / str(number)).touch()
    until("three calls run at once", lambda: len(list(folder.iterdir())) >= 3)


def test_free_places_are_taken_as_they_come(client: cohabit.Client, tmp_path: pathlib.Path) -> None:
    (tmp_path / "meeting").mkdir()
    go = tmp_path / "go"
    with cohabit.Executor(client, gpus=0.25, max_running=3, shared=True) as pool:
        first = [pool.submit(square, 1), *[pool.submit(until, "it may end", go.exists) for _ in range(2)]]
        # Of these, only one is free to begin at once.
        others = [pool.submit(meet, tmp_path / "meeting", number) for number in range(3)]
        first[0].result(BOUND)
        until("the next one runs", lambda: len(list((tmp_path / "meeting").iterdir())) == 1)
        go.touch()
        for future in others:
            future.result(BOUND)


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
