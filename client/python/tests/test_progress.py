"""Progress and metrics: what is written, how often, and what never happens to the training."""

from __future__ import annotations

import json
import math
import os
import pathlib
import pty
import subprocess
import sys
import time
from typing import Any

import cohabit
import pytest
from cohabit._job.bar import bar_text
from kit import JobFolder, until

BENCH = pathlib.Path(__file__).resolve().parents[1] / "benches" / "track.py"


def test_steps_of_a_range_are_its_numbers_and_metrics_have_the_step_of_the_loop(in_job: JobFolder) -> None:
    with cohabit.job() as job:
        for step in job.track(range(500, 1000)):
            job.log(loss=step / 1000, lr=1e-3)
    lines = in_job.lines()
    assert lines[0] == {"step": 500, "total": 1000, "loss": 0.5, "lr": 1e-3}
    assert lines[-2:] == [
        {"step": 999, "total": 1000, "loss": 0.999, "lr": 1e-3},
        {"step": 1000, "total": 1000},
    ]


def test_at_most_ten_lines_a_second_are_written_and_always_the_last(in_job: JobFolder) -> None:
    began = time.monotonic()
    with cohabit.job() as job:
        for step in job.track(range(20_000)):
            job.log(loss=float(step))
    most = 4 + (time.monotonic() - began) / 0.1
    lines = in_job.lines()
    assert len(lines) <= most
    assert lines[-2]["loss"] == 19_999.0 and lines[-1]["step"] == 20_000


def test_several_epochs_continue_each_other(in_job: JobFolder) -> None:
    with cohabit.job() as job:
        for epoch in range(3):
            for _ in job.track([1, 2, 3, 4]):
                job.log(epoch=epoch)
    lines = in_job.lines()
    assert [line["step"] for line in lines] == sorted(line["step"] for line in lines)
    assert lines[-1] == {"step": 12, "total": 12}


def test_a_loop_that_was_left_is_over_and_may_begin_anew(in_job: JobFolder) -> None:
    with cohabit.job() as job:
        items = job.track([1, 2, 3])
        assert next(items) == 1 and list(items) == [2, 3]
        for _ in items:
            break
        with cohabit.job() as again:
            assert again is job
        assert list(job.track(range(10, 20))) == list(range(10, 20))
    assert in_job.lines()[-1] == {"step": 20, "total": 20}


def test_what_is_tracked_has_the_length_of_its_items() -> None:
    with cohabit.job() as job:
        assert len(job.track(range(7))) == 7
        with pytest.raises(TypeError, match="no len"):
            len(job.track(iter([1])))


def test_what_has_no_length_is_tracked_without_a_total(in_job: JobFolder) -> None:
    class Loader:
        def __iter__(self):
            return iter("abc")

        def __len__(self) -> int:
            raise TypeError("object of type 'Stream' has no len()")

    with cohabit.job() as job:
        assert [*job.track(iter("abc"))] + [item for item in job.track(Loader())] == list("abcabc")
    assert in_job.lines()[-1] == {"step": 6}


def test_a_standard_error_that_can_only_write_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tee:
        def write(self, text: str) -> int:
            raise AssertionError(text)

    monkeypatch.setattr("sys.stderr", Tee())
    with cohabit.job() as job:
        assert len(list(job.track(range(3)))) == 3


def test_of_nested_loops_the_outermost_reports(in_job: JobFolder) -> None:
    with cohabit.job() as job:
        for _ in job.track(range(2)):
            for _ in job.track(range(50)):
                pass
    assert all(line["total"] == 2 for line in in_job.lines())
    assert in_job.lines()[-1] == {"step": 2, "total": 2}


def test_an_iterator_without_a_length_has_no_total(in_job: JobFolder) -> None:
    with cohabit.job() as job:
        assert list(job.track(iter("abc"))) == ["a", "b", "c"]
    assert in_job.lines()[-1] == {"step": 3}


@pytest.mark.parametrize(("steps", "last"), [(range(1, 11), 11), (range(0, 10, 3), 10), (range(0), None)])
def test_ranges_of_other_forms(in_job: JobFolder, steps: range, last: int | None) -> None:
    with cohabit.job() as job:
        assert list(job.track(steps)) == list(steps)
    assert in_job.lines()[-1].get("step") == (last or 0)


def test_without_track_a_call_of_log_is_a_step(in_job: JobFolder) -> None:
    with cohabit.job() as job:
        for loss in (3.0, 2.0, 1.0):
            job.log(loss=loss)
    assert in_job.lines()[0] == {"step": 0, "loss": 3.0} and in_job.lines()[-1] == {"step": 2, "loss": 1.0}


def test_a_given_step_counts_and_may_go_back(in_job: JobFolder) -> None:
    with cohabit.job() as job:
        job.log(loss=1, step=100, total=200)
        time.sleep(0.11)
        job.log({"eval/loss": 2}, step=50)
        assert job.step == 50
    assert in_job.lines() == [
        {"step": 100, "total": 200, "loss": 1},
        {"step": 50, "total": 200, "eval/loss": 2},
    ]


def test_a_rare_metric_is_not_lost_between_two_reports(in_job: JobFolder) -> None:
    with cohabit.job() as job:
        for step in job.track(range(1000)):
            job.log(loss=1.0)
            if step == 500:
                job.log(accuracy=0.75)
    assert sum("accuracy" in line for line in in_job.lines()) == 1


def test_numbers_of_all_kinds_are_accepted(in_job: JobFolder) -> None:
    from decimal import Decimal
    from fractions import Fraction

    values: dict[str, Any] = {
        "nan": math.nan,
        "inf": -math.inf,
        "flag": True,
        "decimal": Decimal("0.5"),
        "part": Fraction(1, 4),
        "big": 2**80,
    }
    with cohabit.job() as job:
        job.log(values)
    line = in_job.lines()[0]
    assert math.isnan(line.pop("nan"))
    assert line == {
        "step": 0,
        "inf": -math.inf,
        "flag": 1.0,
        "decimal": 0.5,
        "part": 0.25,
        "big": float(2**80),
    }


def test_numbers_of_numpy_are_accepted(in_job: JobFolder) -> None:
    numpy = pytest.importorskip("numpy")
    with cohabit.job() as job:
        job.log(a=numpy.float32(0.5), b=numpy.array([2]), c=numpy.int64(3), d=numpy.bool_(True))
        with pytest.raises(cohabit.MetricError, match="it has 2 values"):
            job.log(a=numpy.zeros(2))
    assert in_job.lines()[0] == {"step": 0, "a": 0.5, "b": 2.0, "c": 3.0, "d": 1.0}


def test_tensors_are_accepted_and_keep_no_graph(in_job: JobFolder) -> None:
    torch = pytest.importorskip("torch")
    with cohabit.job() as job:
        job.log(loss=0.0)
        weight = torch.ones(3, requires_grad=True)
        loss = (weight * 2).sum()
        job.log(loss=loss)
        assert loss.requires_grad and not job._pending["loss"].requires_grad
        with pytest.raises(cohabit.MetricError, match="it has 3 values"):
            job.log(loss=weight)
    assert in_job.lines()[-1]["loss"] == 6.0


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("0.5", "it is a str"),
        (None, "it is a NoneType"),
        ([1], "it is a list"),
        (b"1", "it is a bytes"),
        (1j, "it is a complex"),
    ],
)
def test_what_is_no_number_is_one_clear_error_in_a_job_and_outside(value: object, why: str) -> None:
    with cohabit.job() as job, pytest.raises(cohabit.MetricError, match=f"'loss' must be one number.*{why}"):
        job.log(loss=value)


def test_names_that_a_report_uses_itself_are_refused() -> None:
    with cohabit.job() as job:
        for name in ("step", "total"):
            with pytest.raises(cohabit.MetricError, match=rf"'{name}' is not a metric: give it by its name"):
                job.log({name: 3})
        with pytest.raises(cohabit.MetricError, match="step='x': a whole number is wanted"):
            job.log(loss=1, step="x")  # type: ignore[arg-type]
        with pytest.raises(cohabit.MetricError, match="the name of a metric is a text"):
            job.log({3: 4})  # type: ignore[dict-item]
        with pytest.raises(cohabit.MetricError, match=r"takes metrics by name.*not 3"):
            job.log(3)  # type: ignore[arg-type]
        with pytest.raises(cohabit.MetricError, match="total='x': a whole number is wanted"):
            job.log(loss=1, total="x")  # type: ignore[arg-type]
        with pytest.raises(cohabit.MetricError, match="total='x': a whole number is wanted"):
            list(job.track([1], total="x"))  # type: ignore[arg-type]


def test_too_many_metrics_and_too_long_names_are_said_once(
    in_job: JobFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    with cohabit.job() as job:
        job.log({f"m{number}": number for number in range(100)})
        job.log({"x" * 101: 1.0, "y": 1.0}, step=5)
    first, last = in_job.lines()
    assert len(first) == 1 + 64 and last == {"step": 5, "y": 1.0}
    assert "100 metrics were logged together" in capsys.readouterr().err


def test_a_full_fifo_does_not_block_and_the_next_line_is_whole(job_folder: JobFolder) -> None:
    fifo = job_folder.folder / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    script = job_folder.start(
        """
        import os, time, cohabit
        with cohabit.job() as job:
            # Fills the pipe, as a reader that is gone would.
            filler = os.open(os.environ["COHABIT_PROGRESS"], os.O_WRONLY | os.O_NONBLOCK)
            try:
                while True:
                    os.write(filler, b"x" * 4096)
            except BlockingIOError:
                pass
            job.log(loss=1.0)
            job.log(accuracy=0.5)
            print("full")
            while not os.path.exists("emptied"):
                time.sleep(0.01)
            time.sleep(0.11)
            job.log(loss=2.0)
        """,
        COHABIT_PROGRESS=str(fifo),
    )
    assert script.line() == "full"
    filled = os.read(reader, 1 << 20)
    (job_folder.folder / "emptied").touch()
    assert script.end()[0] == 0
    rest = os.read(reader, 1 << 20)
    assert set(filled) == {ord("x")}
    # What did not fit was kept.
    assert json.loads(rest) == {"step": 2, "loss": 2.0, "accuracy": 0.5}


@pytest.mark.parametrize("place", ["/no/such/folder/progress", "/proc/version"])
def test_a_progress_file_that_cannot_be_written_is_a_warning(job_folder: JobFolder, place: str) -> None:
    script = job_folder.start(
        "import cohabit\nwith cohabit.job() as job:\n    for i in job.track(range(3)): job.log(x=i)",
        COHABIT_PROGRESS=place,
    )
    code, _, err = script.end()
    assert code == 0 and err.count("cohabit: warning: ") == 1 and place in err


def test_a_full_disk_does_not_stop_the_training(job_folder: JobFolder) -> None:
    script = job_folder.start(
        """
        import resource, signal, time, cohabit
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        with cohabit.job() as job:
            for step in job.track(range(15)):
                job.log(loss=float(step))
                time.sleep(0.11)
        print("done")
        """
    )
    code, out, err = script.end()
    assert (code, out) == (0, "done\n") and err.count("was not written to") == 1


def test_the_last_line_is_written_without_with_and_after_an_exception(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import cohabit
        job = cohabit.job()
        for step in job.track(range(10)):
            job.log(loss=float(step))
            if step == 7:
                raise ValueError("stop")
    """)
    assert script.end()[0] == 1
    assert job_folder.lines()[-1]["loss"] == 7.0


def test_processes_that_load_data_do_not_report(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import multiprocessing, os, cohabit
        def load(job):
            job.log(child=1.0)
            again = cohabit.job()
            again.log(child=1.0)
            again.save(1, "child")
            os._exit(0)
        with cohabit.job() as job:
            job.log(loss=1.0)
            process = multiprocessing.get_context("fork").Process(target=load, args=(job,))
            process.start(); process.join()
            print(process.exitcode)
    """)
    assert script.end() == (0, "0\n", "")
    assert job_folder.lines() == [{"step": 0, "loss": 1.0}]
    assert not job_folder.checkpoints.exists()


def test_a_job_that_travels_to_a_spawned_process_does_nothing_there(job_folder: JobFolder) -> None:
    (job_folder.folder / "loader.py").write_text(
        "def load(job):\n    job.log(child=1.0)\n    job.save(1, 'child')\n"
        "    assert list(job.track(range(3))) == [0, 1, 2]\n"
    )
    script = job_folder.start("""
        import multiprocessing, sys, cohabit
        sys.path.insert(0, ".")
        from loader import load
        if __name__ == "__main__":
            with cohabit.job() as job:
                process = multiprocessing.get_context("spawn").Process(target=load, args=(job,))
                process.start(); process.join()
                sys.exit(process.exitcode)
    """)
    assert script.end()[0] == 0
    assert job_folder.lines() == [] and not job_folder.checkpoints.exists()


def test_a_bar_is_drawn_on_a_terminal_and_nothing_else() -> None:
    script = """
import time, cohabit
with cohabit.job() as job:
    for step in job.track(range(3)):
        job.log(loss=0.5)
        time.sleep(0.11)
"""
    main, side = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", script], stderr=side, stdout=subprocess.PIPE)
    assert process.communicate()[0] == b"" and process.returncode == 0
    os.close(side)
    shown = os.read(main, 1 << 16).decode()
    os.close(main)
    assert "100% |####################| 3/3 [" in shown and "loss=0.5]" in shown and shown.endswith("\n")


def test_what_a_job_prints_stands_above_its_bar() -> None:
    script = """
import time, cohabit
with cohabit.job() as job:
    for step in job.track(range(3)):
        time.sleep(0.11)
        job.print("epoch", step, sep="=")
    job.print("end")
"""
    main, side = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", script], stderr=side, stdout=side)
    assert process.wait() == 0
    os.close(side)
    shown = os.read(main, 1 << 16).decode()
    os.close(main)
    # What was drawn over is not on the screen any more.
    lines = [line.split("\r")[-1] for line in shown.split("\r\n")]
    assert lines[:3] == ["epoch=0", "epoch=1", "epoch=2"] and "3/3 [" in lines[3] and lines[4:] == ["end", ""]


def test_without_a_terminal_nothing_is_printed() -> None:
    script = "import cohabit\nwith cohabit.job() as job:\n    for i in job.track(range(9)): job.log(x=i)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_texts_of_bars() -> None:
    assert bar_text(120, 1000, 120, 12.0, {"loss": 0.4123456}) == (
        " 12% |##                  | 120/1000 [00:12<01:28, 10 steps/s, loss=0.4123]"
    )
    assert bar_text(5, None, 5, 4000.0, {}) == "5 steps [1:06:40, 800 s/step]"
    assert bar_text(0, 10, 0, 0.0, {}) == "  0% |                    | 0/10 [00:00<?, 0 steps/s]"


def test_a_step_costs_at_most_two_microseconds() -> None:
    def measure() -> bool:
        done = subprocess.run([sys.executable, str(BENCH)], capture_output=True, text=True)
        print(done.stdout)
        return done.returncode == 0

    # Other programs run on the same machine.
    until("a step is cheap", measure)
