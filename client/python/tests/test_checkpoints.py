"""Checkpoints: durable, checked, few; and what happens to them when everything goes wrong."""

from __future__ import annotations

import os
import pathlib
import pickle
import random
import signal
import sys
import threading
import time
from typing import Any

import cohabit
import pytest
from kit import JobFolder, until


def saved(folder: JobFolder) -> list[pathlib.Path]:
    return [folder.checkpoints / name for name in folder.names()]


def reopened() -> cohabit.Job:
    cohabit.job().close()
    return cohabit.job()


def test_the_latest_state_is_loaded_and_the_training_goes_on_after_its_step(in_job: JobFolder) -> None:
    job = cohabit.job()
    assert job.load(default="nothing") == "nothing" and job.start == 0 and job.step is None
    for step in (10, 20):
        job.save(step, {"weights": [1.5, step]})
    job = reopened()
    assert job.load() == {"weights": [1.5, 20]}
    assert (job.start, job.step) == (21, 20)


def test_the_last_three_are_kept_or_as_many_as_asked_for(in_job: JobFolder) -> None:
    for step in range(5):
        cohabit.job().save(step, step)
    assert [name.split("-")[-1] for name in in_job.names()] == ["step2.ckpt", "step3.ckpt", "step4.ckpt"]
    cohabit.job().close()
    cohabit.job(keep=1).save(9, 9)
    assert len(in_job.names()) == 1
    with pytest.raises(cohabit.CohabitError, match="keep=0: so many checkpoints are kept"):
        cohabit.job(keep=0)


def test_a_step_that_goes_back_is_the_latest_all_the_same(in_job: JobFolder) -> None:
    for step in (100, 200, 50):
        cohabit.job().save(step, f"state {step}")
    assert reopened().load() == "state 50"


def test_a_checkpoint_can_be_read_without_cohabit(in_job: JobFolder) -> None:
    cohabit.job().save(1, {"a": 1})
    with open(saved(in_job)[0], "rb") as file:
        assert pickle.load(file) == {"a": 1}


def test_tensors_are_loaded_onto_the_cpu_and_can_be_read_without_cohabit(in_job: JobFolder) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(3)).sum().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    cohabit.job().save(5, state)
    loaded = reopened().load()
    assert loaded["epoch"] == 3 and torch.equal(loaded["model"]["weight"], model.weight)
    optimizer.load_state_dict(loaded["optimizer"])
    plain = torch.load(saved(in_job)[0], map_location="cpu", weights_only=True)
    assert torch.equal(plain["model"]["bias"], model.bias)
    meta = reopened().load(map_location="meta")
    assert meta["model"]["weight"].device.type == "meta"


def test_saving_and_loading_never_import_pytorch(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import sys, cohabit
        with cohabit.job() as job:
            job.save(1, {"a": [1, 2]})
            assert job.load() == {"a": [1, 2]}
        print("torch" in sys.modules)
    """)
    assert script.end() == (0, "False\n", "")


def test_tensors_hidden_in_objects_are_found() -> None:
    torch = pytest.importorskip("torch")
    from cohabit._job.checkpoint_file import has_tensors

    class Holder:
        def __init__(self, value: Any) -> None:
            self.value = value

    ring: list[Any] = []
    ring.append(ring)
    assert has_tensors([(Holder({"a": {torch.zeros(1)}}),)])
    assert not has_tensors([Holder(1), "text", ring])


@pytest.mark.parametrize("damage", ["empty", "short", "cut", "no end", "flipped", "trailer", "extended"])
def test_a_damaged_checkpoint_is_passed_over_and_named(
    in_job: JobFolder, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    job = cohabit.job()
    job.save(1, list(range(1000)))
    job.save(2, list(range(2000)))
    latest = saved(in_job)[-1]
    whole = latest.read_bytes()
    middle, trailer = len(whole) // 2, whole.rindex(b'{"step"')
    damaged = {
        "empty": b"",
        "short": whole[:5],
        "cut": whole[: len(whole) // 2],
        "no end": whole[:-1],
        "flipped": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
        "trailer": whole[:trailer] + b"[" + whole[trailer + 1 :],
        "extended": whole + b"x",
    }[damage]
    latest.write_bytes(damaged)
    job = reopened()
    assert job.load() == list(range(1000)) and job.start == 2
    messages = capsys.readouterr().err
    assert messages.count("ignoring the damaged checkpoint") == 1 and latest.name in messages
    # The next one is saved after it, and is the latest.
    job.save(3, "new")
    assert reopened().load() == "new"


def test_every_flipped_bit_and_every_truncation_is_noticed(in_job: JobFolder) -> None:
    from cohabit._job import checkpoint_file

    cohabit.job().save(7, {"a": 1.5})
    path = saved(in_job)[0]
    whole = path.read_bytes()
    for position in range(len(whole)):
        for content in (
            whole[:position] + bytes([whole[position] ^ 4]) + whole[position + 1 :],
            whole[:position],
        ):
            path.write_bytes(content)
            try:
                trailer, state = checkpoint_file.read(str(path))
            except cohabit.CheckpointDamaged:
                continue
            # A flipped bit in the step or the world size would be seen nowhere else.
            assert (trailer.step, trailer.world_size, state) == (7, 1, {"a": 1.5}), position


def test_without_any_whole_checkpoint_the_default_is_taken(
    in_job: JobFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    cohabit.job().save(1, "state")
    saved(in_job)[0].write_bytes(b"")
    job = reopened()
    assert job.load(default=0) == 0 and job.start == 0
    assert "it is empty" in capsys.readouterr().err


def test_a_state_of_a_class_that_is_gone_is_an_error_and_no_damage(
    in_job: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import types

    module = types.ModuleType("gone")
    exec("class Model: pass", module.__dict__)
    monkeypatch.setitem(sys.modules, "gone", module)
    cohabit.job().save(4, module.Model())
    monkeypatch.delitem(sys.modules, "gone")
    with pytest.raises(
        cohabit.CheckpointError, match="of step 4 is whole, but this program cannot read it.*gone"
    ):
        reopened().load()


def test_what_cannot_be_pickled_is_a_clear_error_and_leaves_no_file(in_job: JobFolder) -> None:
    job = cohabit.job()
    job.save(1, "good")
    for state in (lambda: None, threading.Lock(), (number for number in [1])):
        with pytest.raises(
            cohabit.CheckpointError, match=r"the state of step 2 cannot be saved.*state_dict\(\)"
        ):
            job.save(2, state)
    assert len(in_job.names()) == 1 and reopened().load() == "good"


def test_a_step_that_is_no_whole_number_is_refused() -> None:
    with pytest.raises(cohabit.CheckpointError, match=r"takes the step first, a whole number, not \{\}"):
        cohabit.job().save({}, 5)  # type: ignore[arg-type]


def test_outside_of_a_job_nothing_is_saved_without_a_folder(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with cohabit.job() as job:
        job.save(1, "state")
        assert job.load(default=5) == 5 and job.folder is None
        assert not job.should_checkpoint(every=1e-9) and not job.should_stop
    assert list(tmp_path.iterdir()) == []
    with cohabit.job(folder="mine") as job:
        assert job.should_checkpoint(every=1e-9)
        job.save(1, "state")
    with cohabit.job(folder=tmp_path / "mine") as job:
        assert job.load() == "state" and job.start == 2


def test_an_open_job_is_the_same_everywhere_and_refuses_other_arguments(in_job: JobFolder) -> None:
    job = cohabit.job(keep=2)
    assert cohabit.job() is job and cohabit.job(keep=2) is job
    with pytest.raises(cohabit.CohabitError, match="the job is open with keep=2"):
        cohabit.job(keep=5)
    with pytest.raises(cohabit.CohabitError, match=r"asks for another"):
        cohabit.job(folder="elsewhere")


def test_arguments_of_another_kind_are_one_clear_error() -> None:
    with pytest.raises(cohabit.CohabitError, match="keep='x': so many checkpoints are kept"):
        cohabit.job(keep="x")  # type: ignore[arg-type]
    with pytest.raises(cohabit.CohabitError, match="folder=3: the checkpoint directory is a path"):
        cohabit.job(folder=3)  # type: ignore[arg-type]


KILLED = """
    import os, sys, cohabit
    with cohabit.job() as job:
        done = job.load(default=0)
        assert done == job.start, (done, job.start)
        print("at", done, flush=True)
        for step in job.track(range(job.start, 10**9)):
            # Large enough to be killed in the middle of.
            job.save(step, step + 1 if step % 2 else Padded(step + 1))
"""
SAVED_ONCE_MORE = """
    import cohabit
    with cohabit.job() as job:
        job.load()
        job.save(job.start, 0)
"""
PADDED = """
    class Padded(int):
        def __reduce__(self):
            return pad, (int(self), b"x" * (4 << 20))
    def pad(value, padding):
        return value
"""


def test_sigkill_in_the_middle_of_saving_loses_nothing(job_folder: JobFolder) -> None:
    chance, last = random.Random(5), -1
    for _ in range(12):
        script = job_folder.start(PADDED + KILLED)
        begun = script.line()
        assert begun.startswith("at "), script.end()
        at = int(begun.split()[1])
        assert at >= last
        last = at
        here = {it.name for it in saved(job_folder)} if job_folder.checkpoints.exists() else set()
        until(
            "it has saved more",
            lambda here=here: job_folder.checkpoints.exists() and set(job_folder.names()) - here,
        )
        # At any moment of writing, syncing and renaming.
        time.sleep(chance.random() / 50)
        script.signal(signal.SIGKILL)
        assert script.end()[0] == -signal.SIGKILL
    assert last > 0
    # What was left by the killed ones is removed by the next one that saves.
    script = job_folder.start(PADDED + SAVED_ONCE_MORE)
    assert script.end() == (0, "", "")
    assert all(it.suffix == ".ckpt" for it in saved(job_folder)) and len(saved(job_folder)) == 3


def test_a_full_disk_is_a_clear_error_and_keeps_the_earlier_one(job_folder: JobFolder) -> None:
    script = job_folder.start("""
        import resource, signal, cohabit
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        job = cohabit.job()
        job.save(1, "small")
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        try:
            job.save(2, b"x" * 1_000_000)
        except cohabit.CheckpointError as error:
            print(error)
        print(job.load())
    """)
    code, out, err = script.end()
    error, loaded = out.splitlines()
    assert code == 0 and loaded == "small", err
    assert error.startswith("cannot save the checkpoint of step 2 in ") and "that of step 1 stays" in error
    assert len(job_folder.names()) == 1


def test_a_full_disk_with_tensors_says_so(job_folder: JobFolder) -> None:
    pytest.importorskip("torch")
    script = job_folder.start("""
        import resource, signal, cohabit, torch
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        job = cohabit.job()
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        try:
            job.save(2, torch.zeros(1_000_000))
        except cohabit.CheckpointError as error:
            print(error)
    """)
    code, out, err = script.end()
    assert code == 0 and "cannot save the checkpoint of step 2" in out and "File too large" in out, (out, err)
    assert job_folder.names() == []


def test_when_the_disk_is_full_older_checkpoints_make_room(
    in_job: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    from cohabit._job import checkpoint_file

    job = cohabit.job()
    for step in range(3):
        job.save(step, step)
    write = checkpoint_file.write

    def write_where_there_is_room(*arguments: Any) -> None:
        if len(in_job.names()) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(*arguments)

    monkeypatch.setattr(checkpoint_file, "write", write_where_there_is_room)
    job.save(3, 3)
    assert [it.name.split("-")[-1] for it in saved(in_job)] == ["step2.ckpt", "step3.ckpt"]


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small file system needs root")
def test_a_small_file_system(job_folder: JobFolder) -> None:
    import subprocess

    place = job_folder.folder / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr!r}")
    try:
        script = job_folder.start(
            """
            import cohabit
            job = cohabit.job()
            for step in range(4):
                job.save(step, bytes([step]) * 400_000)
            try:
                job.save(4, b"x" * 2_000_000)
            except cohabit.CheckpointError as error:
                print("No space left on device" in str(error))
            print(job.load()[0])
            """,
            COHABIT_CHECKPOINT_DIR=str(place),
        )
        code, out, err = script.end()
        assert (code, out) == (0, "True\n3\n"), err
        assert "earlier checkpoints were removed to save another one" in err
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_directory_that_cannot_be_written_or_read_is_named(job_folder: JobFolder) -> None:
    place = job_folder.folder / "file"
    place.write_text("no directory")
    script = job_folder.start(
        """
        import cohabit
        job = cohabit.job()
        for act in (lambda: job.save(1, 1), job.load):
            try:
                act()
            except cohabit.CheckpointError as error:
                print(error)
        """,
        COHABIT_CHECKPOINT_DIR=str(place / "below"),
    )
    code, out, err = script.end()
    assert code == 0 and out.count(str(place / "below")) == 2, (out, err)


def test_without_permission_the_error_says_so(job_folder: JobFolder) -> None:
    job_folder.checkpoints.mkdir(mode=0o555)
    script = job_folder.start("""
        import os, cohabit
        job = cohabit.job()
        job.load()
        # Root may write everywhere.
        os.seteuid(65534) if os.geteuid() == 0 else None
        try:
            job.save(1, 1)
        except cohabit.CheckpointError as error:
            print(error)
    """)
    code, out, err = script.end()
    assert code == 0 and "Permission denied" in out and str(job_folder.checkpoints) in out, (out, err)


def test_two_jobs_in_one_directory_are_told_and_damage_nothing(job_folder: JobFolder) -> None:
    save_many = """
        import cohabit
        job = cohabit.job()
        for step in range(60):
            job.save(step, {"state": [step] * 1000})
        print(len(job.load()["state"]))
    """
    both = [job_folder.start(save_many) for _ in range(2)]
    ends = [script.end() for script in both]
    assert [(code, out) for code, out, _ in ends] == [(0, "1000\n")] * 2, ends
    assert "another process saves checkpoints" in "".join(err for _, _, err in ends)


def test_threads_may_save_at_the_same_time(in_job: JobFolder) -> None:
    job = cohabit.job()
    threads = [threading.Thread(target=job.save, args=(step, step)) for step in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(in_job.names()) == 3 and isinstance(reopened().load(), int)
