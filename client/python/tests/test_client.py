"""The client on a real cluster, with the native half."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from datetime import datetime, timedelta, timezone

import cohabit
import pytest
from cluster_kit import Cluster
from kit import until

pytest.importorskip("cohabit._native", reason="the native half is not built: pip install ./client/python")

REPORTS = """
import json, os
with open(os.environ["COHABIT_PROGRESS"], "a") as progress:
    for step in range(1, 4):
        progress.write(json.dumps({"step": step, "total": 3, "loss": 1 / step, "wild": float("nan")}) + "\\n")
        progress.flush()
print("out", flush=True)
import sys; print("é" * 3, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory):
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    yield running
    running.close()


@pytest.fixture
def client(shared: Cluster) -> cohabit.Client:
    return cohabit.Client(state=shared.folder / "state")


def test_a_job_runs_and_its_record_output_and_metrics_come_back(client: cohabit.Client) -> None:
    job = client.submit([sys.executable, "-c", REPORTS], name="reports", gpus=0.5, time="10m")
    record = job.wait(timeout=120, check=True)
    assert (record.state, record.name, record.exit_code) == ("COMPLETED", "reports", 0)
    assert record.submitted_at <= record.started_at <= record.ended_at <= datetime.now(timezone.utc)
    assert record.progress is not None and (record.progress.step, record.progress.total) == (3, 3)
    assert (job.logs(stream="stdout"), job.logs(stream="stderr")) == ("out\n", "ééé\n")
    assert job.logs(tail=1) in ("out\n", "ééé\n")
    metrics = job.metrics()
    assert (metrics["step"], metrics["loss"]) == ([1, 2, 3], [1.0, 0.5, pytest.approx(1 / 3)])
    assert all(value != value for value in metrics["wild"]), "NaN comes back as NaN"
    assert str(record).startswith(f"job {job.id} (reports) COMPLETED: ")
    assert client.job("reports") == job and client.jobs(name="reports")[-1].id == job.id
    assert "exited with code 0" in str(job.explain())


def test_an_array_has_members_and_a_failure_raises_where_it_is_asked_for(client: cohabit.Client) -> None:
    fails = (
        "import os, sys; print('no loss', file=sys.stderr); sys.exit(int(os.environ['COHABIT_ARRAY_INDEX']))"
    )
    job = client.submit([sys.executable, "-c", fails], array=[0, 1], gpus=0.5)
    assert job.wait(timeout=120).members == {"COMPLETED": 1, "FAILED": 1}
    assert [member.exit_code for member in job.members()] == [0, 1]
    with pytest.raises(cohabit.JobFailedError, match="FAILED.*; it printed last:\n    no loss$") as raised:
        client.job(f"{job.id}.1").wait(check=True)
    assert raised.value.record.exit_code == 1
    with pytest.raises(cohabit.InvalidRequestError, match=f"is an array, whose members report.*{job.id}.0"):
        next(job.progress())
    assert [record.id for record in client.jobs(limit=1)] == [job.id], "the newest"
    assert job.id in {record.id for record in client.jobs(states="FAILED")}


def test_options_reach_the_job(client: cohabit.Client, tmp_path) -> None:
    first = client.submit(["true"], gpus=0.5)
    begin = datetime.now() + timedelta(hours=1)
    options = {
        "env": {"SEED": "7"},
        "workdir": tmp_path,
        "begin": begin,
        "depends_on": first,
        "preemptible": True,
    }
    job = client.submit(
        [sys.executable, "-c", "import os; print(os.environ['SEED'], os.getcwd())"], gpus=0, **options
    )
    assert job.record().state == "PENDING"
    first.wait(timeout=120)
    assert job.record().reason_code in ("waiting_for_dependency", "waiting_for_begin")
    job.cancel()
    assert job.wait(timeout=120).state == "CANCELLED"
    job.cancel()
    with pytest.raises(cohabit.WrongStateError, match="already ended"):
        first.cancel()


def test_a_file_of_a_job_is_read_while_it_runs_and_afterwards(client: cohabit.Client, tmp_path) -> None:
    script = "import time; open('result.bin', 'wb').write(bytes(range(256)) * 4096); time.sleep(1000)"
    job = client.submit([sys.executable, "-c", script], gpus=0.5, workdir=tmp_path)
    whole = bytes(range(256)) * 4096
    until(
        "the file is there",
        lambda: (tmp_path / "result.bin").exists() and len(job.read("result.bin")) == len(whole),
    )
    assert job.read(tmp_path / "result.bin") == whole
    with pytest.raises(cohabit.NotFoundError, match="missing"):
        job.read("missing")
    with pytest.raises(cohabit.InvalidRequestError):
        job.read("result.bin", limit=1000)
    job.kill()
    assert job.wait(timeout=120).state == "CANCELLED"
    assert job.read("result.bin") == whole


def test_waiting_has_a_limit_and_other_threads_go_on(client: cohabit.Client) -> None:
    job = client.submit(["sleep", "1000"], gpus=0.5)
    done = threading.Event()
    waiting = threading.Thread(target=lambda: (job.wait(), done.set()))
    waiting.start()
    for span in (0, 0.2, "200ms"):
        with pytest.raises(TimeoutError, match=f"job {job.id} goes on"):
            job.wait(timeout=span)
    for no_span in ("soon", -1, [5]):
        with pytest.raises(cohabit.InvalidRequestError, match="timeout: .* is not a span of time"):
            job.wait(timeout=no_span)  # type: ignore[arg-type]
    with pytest.raises(cohabit.InvalidRequestError, match="tail=-1: expected a whole number, at least 0"):
        job.logs(tail=-1)
    progress = list(client.job(job.id).watch().__next__().nodes)
    assert isinstance(progress, list) and not done.is_set()
    job.cancel()
    assert done.wait(120)
    waiting.join()


def test_bad_requests_are_told_in_the_words_of_the_command_line(
    client: cohabit.Client, shared: Cluster
) -> None:
    for options, words in [
        ({"gpuss": 1}, "did you mean gpus"),
        ({"bogus": 1}, "no option 'bogus': use one of array"),
        ({"array": [1, "2"]}, "expected at least one index, each a whole number"),
        ({"gpu_mem": "20G"}, "did you mean gpu_memory"),
        ({"gpu_memory": "20Q"}, "20Q"),
        ({"memory": 20.5}, "memory=20.5: expected bytes"),
        ({"gpu_memory": 20}, "gpu_memory=20: a number counts bytes: for gigabytes give the text '20G'"),
        ({"exclusive": "yes"}, "expected True or False"),
        ({"array": 0}, "at least 1 member"),
        ({"depends_on": 99999}, "99999"),
        ({"gpus": 64}, "64"),
        ({"time": "tomorrow"}, "tomorrow"),
    ]:
        with pytest.raises(cohabit.CohabitError, match=re.escape(words)):
            client.submit(["true"], **options)
    with pytest.raises(cohabit.InvalidRequestError, match="give a list"):
        client.submit("python train.py")
    with pytest.raises(cohabit.NotFoundError) as raised:
        client.job("nobody")
    told = shared.run("show", "nobody").stderr
    assert str(raised.value) in told and raised.value.code == "not_found"


def test_no_head_and_no_token_are_told_at_once(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    token.write_text("x")
    with pytest.raises(cohabit.ConfigurationError, match="token"):
        cohabit.Client(head="127.0.0.1:1", token_file=tmp_path / "missing")
    with pytest.raises(cohabit.CohabitError):
        cohabit.Client(head="127.0.0.1:1", token_file=token)


@pytest.mark.parametrize("waits", ["wait", "watch", "follow_logs"])
def test_ctrl_c_ends_the_waiting_and_says_how_to_come_back(
    client: cohabit.Client, shared: Cluster, waits: str
) -> None:
    job = client.submit(["sleep", "1000"], gpus=0.5)
    state = str(shared.folder / "state")
    body = "job.wait()" if waits == "wait" else f"for _ in job.{waits}(): pass"
    # Python calls handlers within a wait: then the frame is there.
    script = f"""
import cohabit, signal, traceback
def tell(number, frame):
    if any(entry.filename.endswith("operation.py") for entry in traceback.extract_stack(frame)):
        print("waits", flush=True)
signal.signal(signal.SIGUSR1, tell)
job = cohabit.Client(state={state!r}).job("{job.id}")
print("begins", flush=True)
{body}
"""
    waiting = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert waiting.stdout is not None and waiting.stdout.readline() == "begins\n"
    os.set_blocking(waiting.stdout.fileno(), False)

    def is_waiting() -> bool:
        waiting.send_signal(signal.SIGUSR1)
        return waiting.stdout is not None and waiting.stdout.readline() == "waits\n"

    until("the script waits", is_waiting)
    waiting.send_signal(signal.SIGINT)
    waiting.wait(timeout=120)
    assert waiting.stderr is not None and f"job {job.id} goes on: come back with" in waiting.stderr.read()
    assert not job.record().has_ended
    job.cancel()


def test_a_forked_process_is_refused_instead_of_waiting_for_ever(
    client: cohabit.Client, shared: Cluster
) -> None:
    state = str(shared.folder / "state")
    script = (
        f"import cohabit, os; client = cohabit.Client(state={state!r})\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try: client.nodes()\n"
        "    except RuntimeError as error: print(error, flush=True)\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert "forked" in done.stdout and "spawn" in done.stdout, done


def test_the_client_for_asyncio_has_the_same_answers(shared: Cluster) -> None:
    async def work() -> None:
        async with cohabit.AsyncClient(state=shared.folder / "state") as client:
            jobs = await asyncio.gather(
                *(client.submit([sys.executable, "-c", REPORTS], gpus=0.5) for _ in range(2))
            )
            steps = [progress.step async for progress in jobs[0].progress()]
            assert steps[-1] == 3
            assert [record.state for record in await client.wait(*jobs, timeout=120)] == ["COMPLETED"] * 2
            assert (await jobs[1].logs(stream="stdout")) == "out\n"
            assert len(await jobs[1].metrics()) == 3
            endless = await client.submit(["sleep", "1000"], gpus=0.5)
            with pytest.raises(TimeoutError):
                await endless.wait(timeout=0.2)
            watching = asyncio.create_task(endless.wait())
            await asyncio.sleep(0)
            watching.cancel()
            with pytest.raises(asyncio.CancelledError):
                await watching
            await endless.cancel()
            assert (await endless.wait(timeout=120)).state == "CANCELLED"
            with pytest.raises(cohabit.NotFoundError):
                await client.job("nobody")

    asyncio.run(work())


def test_the_methods_of_both_clients_are_the_same() -> None:
    from cohabit import aio
    from cohabit import client as sync

    def public(kind: type) -> set[str]:
        return {name for name in vars(kind) if not name.startswith("_")}

    assert public(sync.Client) - {"head", "user"} == public(aio.AsyncClient)
    assert public(sync.JobHandle) == public(aio.AsyncJobHandle)


def test_every_flag_of_submit_is_a_keyword_and_the_other_way_round(shared: Cluster) -> None:
    from cohabit._client.options import _WRITERS, JobOptions, _flag

    help_text = shared.ok("submit", "--help")
    flags = set(re.findall(r"^\s+(?:-\w, )?(--[a-z-]+)", help_text, re.M))
    others = {"--wait", "--dry-run", "--head", "--token-file", "--state", "--output", "--no-color", "--help"}
    assert {_flag(keyword) for keyword in _WRITERS} == flags - others - {"--no-preemptible"}
    assert set(JobOptions.__annotations__) == set(_WRITERS)


def test_tables_of_notebooks_show_text_of_others_as_text() -> None:
    from cohabit._client.html import table

    assert table(["<b>"], [["<script>", 0.5]]) == (
        "<table><thead><tr><th>&lt;b&gt;</th></tr></thead><tbody><tr><td>&lt;script&gt;</td><td>0.5</td></tr></tbody></table>"
    )


def test_metrics_become_tables_of_pandas_and_polars(client: cohabit.Client) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    polars = pytest.importorskip("polars", reason="polars is not installed")
    job = client.submit([sys.executable, "-c", REPORTS], gpus=0.5)
    job.wait(timeout=120)
    metrics = job.metrics()
    assert isinstance(metrics.to_pandas(), pandas.DataFrame) and isinstance(
        metrics.to_polars(), polars.DataFrame
    )
    assert list(metrics.to_pandas()["step"]) == list(metrics.to_polars()["step"]) == [1, 2, 3]
    json.dumps(metrics.document)
