"""Warnings and stops in one process, with real signals."""

from __future__ import annotations

import signal

import cohabit
import pytest
from cohabit._job import spans
from kit import JobFolder

LOOP = """
    import cohabit, time
    with cohabit.job() as job:
        job.load()
        for step in job.track(range(job.start, 10**9)):
            if step == job.start:
                print("training")
            time.sleep(0.001)
            if job.should_checkpoint():
                job.save(step, step)
                print("saved", job.should_stop)
"""


def test_a_warning_saves_once_and_the_training_goes_on_until_a_stop_saves_and_leaves(
    job_folder: JobFolder,
) -> None:
    script = job_folder.start(LOOP)
    assert script.line() == "training"
    script.signal(signal.SIGUSR1)
    assert script.line() == "saved False"
    script.signal(signal.SIGTERM)
    # The loop needs not ask: `track` lets the body save once, and leaves.
    assert script.line() == "saved True"
    assert script.end() == (143, "", "")
    first = job_folder.lines()[-1]["step"]
    script = job_folder.start("import cohabit\nwith cohabit.job() as job: print(job.load(), job.start)")
    _, out, _ = script.end()
    step, start = map(int, out.split())
    assert start == step + 1 == first


def test_a_loop_that_asks_leaves_by_itself(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import cohabit, time
        job = cohabit.job()
        print(job.should_stop)
        step = 0
        while True:
            time.sleep(0.001)
            step += 1
            if job.should_stop:
                job.save(step, "state")
                try:
                    raise cohabit.Preempted
                except Exception:
                    print("swallowed")
                finally:
                    print("cleaned up")
    """)
    assert script.line() == "False"
    script.signal(signal.SIGTERM)
    assert script.end() == (143, "cleaned up\n", "")
    assert len(job_folder.names()) == 1


def test_functions_for_a_stop_are_called_once_between_two_steps(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import cohabit, threading, time
        with cohabit.job() as job:
            @job.on_stop
            def save():
                print("called", threading.current_thread() is threading.main_thread(), in_step)
            in_step = False
            for step in job.track(range(10**9)):
                in_step = True
                if step == 0: print("training")
                time.sleep(0.001)
                in_step = False
    """)
    assert script.line() == "training"
    script.signal(signal.SIGTERM)
    assert script.end() == (143, "called True False\n", "")


def test_a_function_for_a_stop_that_fails_costs_neither_the_others_nor_the_checkpoint(
    job_folder: JobFolder,
) -> None:
    script = job_folder.start("""
        import cohabit, os, signal
        with cohabit.job() as job:
            job.on_stop(lambda: 1 / 0)
            job.on_stop(lambda needed: print("not called"))
            job.on_stop(lambda: print("third"))
            for step in job.track(range(1000)):
                if step == 5:
                    os.kill(os.getpid(), signal.SIGTERM)
                if job.should_checkpoint():
                    job.save(step, step)
    """)
    code, out, err = script.end()
    assert (code, out) == (143, "third\n") and err.count("a function of job.on_stop failed") == 2
    assert "ZeroDivisionError: division by zero" in err and "missing 1 required positional argument" in err
    assert len(job_folder.names()) == 1


def test_a_loop_that_asks_for_both_saves_before_it_leaves(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import cohabit, os, signal
        with cohabit.job() as job:
            for step in job.track(range(1000)):
                if job.should_checkpoint():
                    job.save(step, step)
                if step == 5:
                    os.kill(os.getpid(), signal.SIGTERM)
                job.should_stop
    """)
    assert script.end() == (143, "", "")
    assert len(job_folder.names()) == 1


def test_an_evaluation_is_not_left_before_the_training_could_save(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import cohabit, os, signal
        def evaluate():
            with cohabit.job() as job:
                for batch in job.track(range(100)):
                    if batch == 5:
                        os.kill(os.getpid(), signal.SIGTERM)
        with cohabit.job() as job:
            for step in job.track(range(1000)):
                if job.should_checkpoint():
                    job.save(step, step)
                if step == 5:
                    evaluate()
    """)
    assert script.end() == (143, "", "")
    assert len(job_folder.names()) == 1


def test_only_functions_are_called_at_a_stop() -> None:
    with (
        cohabit.job() as job,
        pytest.raises(cohabit.CohabitError, match="on_stop takes a function.*not None"),
    ):
        job.on_stop(None)  # type: ignore[type-var]


@pytest.mark.parametrize(
    "before", ["job = cohabit.job()", "job = cohabit.job()\n[None for _ in job.track(range(3))]"]
)
def test_where_no_loop_would_notice_a_stop_ends_the_script_at_once(
    job_folder: JobFolder, before: str
) -> None:
    script = job_folder.start(
        "import cohabit, time\n" + before + "\n"
        "job.on_stop(lambda: print('stopping'))\n"
        "try:\n    print('ready'); time.sleep(600)\nfinally:\n    print('cleaned up')"
    )
    assert script.line() == "ready"
    script.signal(signal.SIGTERM)
    assert script.end() == (143, "stopping\ncleaned up\n", "")


def test_a_stop_during_a_save_waits_for_it(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import cohabit, os, signal
        class Stopping:
            def __reduce__(self):
                # In the middle of writing.
                os.kill(os.getpid(), signal.SIGTERM)
                return (str, ("state",))
        job = cohabit.job()
        job.save(3, Stopping())
        print("not reached")
    """)
    assert script.end() == (143, "", "")
    script = job_folder.start("import cohabit; print(cohabit.job().load())")
    assert script.end() == (0, "state\n", "")


def test_earlier_handlers_are_called_too_and_are_back_after_the_job(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import signal, os
        got = []
        def mine(number, frame): got.append(number)
        for number in (signal.SIGTERM, signal.SIGUSR1): signal.signal(number, mine)
        import cohabit
        with cohabit.job() as job:
            job.should_stop
            os.kill(os.getpid(), signal.SIGUSR1)
            os.kill(os.getpid(), signal.SIGTERM)
            print(job.should_checkpoint(), job.should_stop)
        print(got == [signal.SIGUSR1, signal.SIGTERM], signal.getsignal(signal.SIGTERM) is mine)
    """)
    assert script.end() == (0, "True True\nTrue True\n", "")


def test_handlers_that_are_installed_later_work_beside_the_job(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import signal, os, cohabit
        job = cohabit.job()
        before = signal.getsignal(signal.SIGTERM)
        def later(number, frame):
            print("later")
            before(number, frame)
        signal.signal(signal.SIGTERM, later)
        job.should_stop
        os.kill(os.getpid(), signal.SIGTERM)
        print(job.should_stop)
        job.close()
        # Not ours to remove.
        print(signal.getsignal(signal.SIGTERM) is later)
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            print("left")
    """)
    assert script.end() == (143, "later\nTrue\nTrue\nlater\nleft\n", "")


def test_a_handler_from_outside_of_python_is_left_alone(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import faulthandler, signal, os, cohabit
        faulthandler.register(signal.SIGUSR2)
        with cohabit.job() as job:
            os.kill(os.getpid(), signal.SIGUSR2)
            print(job.should_checkpoint())
    """)
    code, out, err = script.end()
    assert (code, out) == (0, "False\n") and "most recent call first" in err


def test_in_another_thread_the_job_says_that_it_notices_nothing(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import threading, cohabit
        def train():
            with cohabit.job() as job:
                for step in job.track(range(5)):
                    job.log(loss=1.0)
                job.save(4, "state")
        thread = threading.Thread(target=train)
        thread.start(); thread.join()
    """)
    code, _, err = script.end()
    assert code == 0 and "not called in the main thread" in err
    assert job_folder.lines()[-1]["step"] == 5 and len(job_folder.names()) == 1


def test_a_training_thread_gets_the_stop_that_the_main_thread_receives(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import threading, time, cohabit
        job = cohabit.job()
        def train():
            for step in job.track(range(10**9)):
                if step == 0: print("training")
                time.sleep(0.001)
                if job.should_checkpoint():
                    job.save(step, step)
                    print("saved")
        thread = threading.Thread(target=train)
        thread.start(); thread.join()
        print("joined")
    """)
    assert script.line() == "training"
    script.signal(signal.SIGTERM)
    # Only the thread ends.
    code, out, err = script.end()
    assert (code, out) == (0, "saved\njoined\n") and "Preempted" in err


def test_shortly_before_the_time_limit_the_job_is_told_to_save_once(
    in_job: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    began = time.monotonic()
    monkeypatch.setenv("COHABIT_STOP_AT", str(time.time() + 1000))
    with cohabit.job() as job:
        assert not job.should_checkpoint()
        monkeypatch.setattr("cohabit._job.stops._monotonic", lambda: began + 939)
        assert not job.should_checkpoint()
        monkeypatch.setattr("cohabit._job.stops._monotonic", lambda: began + 941)
        assert job.should_checkpoint() and not job.should_checkpoint() and not job.should_stop


def test_a_span_that_has_passed_since_the_last_save_is_a_reason(
    in_job: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("cohabit._job.stops._monotonic", lambda: now[0])
    with cohabit.job() as job:
        assert not job.should_checkpoint(every="10m")
        now[0] += 601
        assert job.should_checkpoint(every="10m") and not job.should_checkpoint(every="10m")
        now[0] += 500
        job.save(1, "state")
        now[0] += 500
        assert not job.should_checkpoint(every=600)
        now[0] += 101
        assert job.should_checkpoint(every=600)


@pytest.mark.parametrize(
    ("span", "length"),
    [
        ("10m", 600),
        ("1h30m", 5400),
        ("90 s", 90),
        (" 2d ", 172_800),
        ("1.5h", 5400),
        (5, 5),
        ("7", 7),
        (0.5, 0.5),
        ("250ms", 0.25),
    ],
)
def test_spans(span: str | float, length: float) -> None:
    from datetime import timedelta

    assert spans.seconds(span) == length == spans.seconds(timedelta(seconds=length))


@pytest.mark.parametrize(
    "span",
    ["", "10 parsecs", "m", "-5s", 0, -1, True, None, "1h x", float("nan"), float("inf"), "1h30", [10]],
)
def test_what_is_no_span_is_a_clear_error(span: object) -> None:
    with pytest.raises(
        ValueError, match="is not a span of time above zero: give seconds, a timedelta, or a text"
    ):
        spans.seconds(span)  # type: ignore[arg-type]


def test_a_forked_child_ends_when_it_is_told_to(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import multiprocessing, time, cohabit
        if __name__ == "__main__":
            with cohabit.job() as job:
                child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
                child.start()
                child.terminate()
                child.join()
                print(child.exitcode)
    """)
    assert script.end() == (0, "-15\n", "")


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_processes_that_load_data_for_pytorch_outlive_the_stop(job_folder: JobFolder, how: str) -> None:
    pytest.importorskip("torch")
    (job_folder.folder / "train.py").write_text("""
import sys, time
import cohabit
import torch

class Numbers(torch.utils.data.Dataset):
    def __len__(self): return 10**9
    def __getitem__(self, number):
        time.sleep(0.001)
        return number

def main(how):
    loader = torch.utils.data.DataLoader(Numbers(), num_workers=2, multiprocessing_context=how)
    with cohabit.job() as job:
        for batch in job.track(loader):
            if job.step == 0: print("training")
            if job.should_checkpoint():
                # The loaders are needed for longer than the signals take.
                time.sleep(0.5)
                job.save(job.step, "state")
                print("saved", job.should_stop)

if __name__ == "__main__":
    main(sys.argv[1])
""")
    script = job_folder.start(
        f"import os, sys; os.execv(sys.executable, [sys.executable, '-u', 'train.py', '{how}'])"
    )
    assert script.line() == "training"
    script.signal(signal.SIGUSR1)
    assert script.line() == "saved False"
    script.signal(signal.SIGTERM)
    assert script.line() == "saved True"
    assert script.end() == (143, "", "")
    assert job_folder.lines()[-1]["total"] == 10**9


def test_preempted_is_no_error() -> None:
    import pickle

    assert not issubclass(cohabit.Preempted, (cohabit.CohabitError, Exception))
    assert cohabit.Preempted().code == pickle.loads(pickle.dumps(cohabit.Preempted())).code == 143
