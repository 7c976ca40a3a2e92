"""Jobs of several ranks: real processes that agree, through files and through torch.distributed."""

from __future__ import annotations

import json
import shutil
import signal
from typing import Any

import pytest
from kit import JobFolder, Script, environments_of_ranks, until

WAYS = ["files", "torch"]
JOIN = """
    import cohabit, json, os, sys, time
    if os.environ["WAY"] == "torch":
        import torch.distributed
        torch.distributed.init_process_group("gloo")
"""


def start(folder: JobFolder, way: str, script: str, ranks: int = 2, **more: str) -> list[Script]:
    """Starts the ranks, as a worker does."""
    if way == "torch":
        pytest.importorskip("torch")
    return [folder.start(JOIN + script, WAY=way, **it, **more) for it in environments_of_ranks(ranks)]


def ends(ranks: list[Script]) -> list[Any]:
    """The exit codes of the ranks, and the JSON that each printed last."""
    done = [rank.end() for rank in ranks]
    return [(code, json.loads(out.splitlines()[-1]) if out else err) for code, out, err in done]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stopped", [0, 1])
def test_what_one_rank_receives_all_do_at_the_same_step(
    job_folder: JobFolder, way: str, stopped: int
) -> None:
    ranks = start(
        job_folder,
        way,
        """
    with cohabit.job() as job:
        saved = []
        for step in job.track(range(10**9)):
            if step == 3: print("training")
            time.sleep(0.002 * (1 + job.rank))
            if job.should_checkpoint():
                saved.append(step)
                job.save(step, step)
                print(json.dumps(saved))
    """,
    )
    assert [rank.line() for rank in ranks] == ["training"] * 2
    ranks[stopped].signal(signal.SIGUSR1)
    warned = [rank.line() for rank in ranks]
    assert warned[0] == warned[1]
    ranks[stopped].signal(signal.SIGTERM)
    first, second = ends(ranks)
    assert first == second and first[0] == 143 and len(first[1]) == 2
    # Only the first rank reports and saves.
    assert len(job_folder.names()) == 2
    steps = [line["step"] for line in job_folder.lines()]
    assert steps == sorted(set(steps)) and steps[-1] == first[1][-1] + 1


@pytest.mark.parametrize("way", WAYS)
def test_time_alone_is_a_reason_for_all_ranks_at_the_same_step(job_folder: JobFolder, way: str) -> None:
    ranks = start(
        job_folder,
        way,
        """
    import random
    with cohabit.job() as job:
        saved = []
        for step in job.track(range(10**9)):
            time.sleep(random.random() / 100)
            if job.should_checkpoint(every=0.5):
                saved.append(step)
            if len(saved) == 3:
                break
        print(json.dumps(saved))
    """,
    )
    first, second = ends(ranks)
    assert first == second and first[0] == 0


def test_exchanges_do_not_cost_every_step_one(job_folder: JobFolder) -> None:
    ranks = start(
        job_folder,
        "files",
        """
    from cohabit._job import agreement
    exchanges = 0
    exchange = agreement.FileExchange.largest
    def counted(self, numbers):
        global exchanges
        exchanges += 1
        return exchange(self, numbers)
    agreement.FileExchange.largest = counted
    with cohabit.job() as job:
        for step in job.track(range(200_000)):
            pass
    print(json.dumps(exchanges))
    """,
    )
    first, second = ends(ranks)
    assert first == second and first[0] == 0 and first[1] < 100


def test_without_track_each_question_is_asked_together(job_folder: JobFolder) -> None:
    ranks = start(
        job_folder,
        "files",
        """
    with cohabit.job() as job:
        step = 0
        while not job.should_stop:
            step += 1
            if step == 3: print("training")
            time.sleep(0.002 * (1 + job.rank))
        print(json.dumps(step))
        raise cohabit.Preempted
    """,
    )
    assert [rank.line() for rank in ranks] == ["training"] * 2
    ranks[1].signal(signal.SIGTERM)
    first, second = ends(ranks)
    assert first == second and first[0] == 143


@pytest.mark.parametrize("way", WAYS)
def test_a_rank_that_is_gone_is_waited_for_with_a_bound(job_folder: JobFolder, way: str) -> None:
    first, second = start(
        job_folder,
        way,
        """
    from cohabit._job import agreement
    agreement.TIMEOUT_SECONDS = 1.0
    with cohabit.job() as job:
        for step in job.track(range(10**9)):
            if step == 3: print("training")
            time.sleep(0.002)
            if job.should_checkpoint():
                job.save(step, step)
    """,
    )
    assert (first.line(), second.line()) == ("training", "training")
    second.signal(signal.SIGKILL)
    second.end()
    # It goes on, and is stopped by itself.
    known = job_folder.lines()[-1]["step"]
    until("the first rank goes on", lambda: job_folder.lines()[-1]["step"] > known + 1000)
    first.signal(signal.SIGTERM)
    code, _, err = first.end()
    assert code == 143 and "the ranks do not agree on stops and checkpoints any more" in err
    assert len(job_folder.names()) == 1


def test_a_rank_that_has_ended_is_not_waited_for(job_folder: JobFolder) -> None:
    ranks = start(
        job_folder,
        "files",
        """
    with cohabit.job() as job:
        for step in job.track(range(10 if job.rank else 2000)):
            time.sleep(0.001)
    print(json.dumps("done"))
    """,
    )
    assert ends(ranks) == [(0, "done")] * 2


def test_files_of_an_earlier_program_are_no_answers(job_folder: JobFolder) -> None:
    for _ in range(2):
        test_without_track_each_question_is_asked_together(job_folder)


@pytest.mark.parametrize("way", WAYS)
def test_all_ranks_load_what_the_first_saved(job_folder: JobFolder, way: str) -> None:
    train = """
    with cohabit.job() as job:
        state = job.load()
        if state is None:
            job.save(5, {"rank": job.rank})
        print(json.dumps([state, job.start]))
    """
    assert ends(start(job_folder, way, train)) == [(0, [None, 0])] * 2
    assert ends(start(job_folder, way, train)) == [(0, [{"rank": 0}, 6])] * 2


def test_ranks_that_share_no_directory_get_the_checkpoint_of_the_first(job_folder: JobFolder) -> None:
    train = """
    os.environ["COHABIT_CHECKPOINT_DIR"] += os.environ["RANK"]
    with cohabit.job() as job:
        state = job.load()
        job.save(5, {"rank": job.rank})
        print(json.dumps([state, job.start]))
    """
    nodes = {"COHABIT_NNODES": "2"}
    assert ends(start(job_folder, "torch", train, **nodes)) == [(0, [None, 0])] * 2
    assert ends(start(job_folder, "torch", train, **nodes)) == [(0, [{"rank": 0}, 6])] * 2


@pytest.mark.parametrize("way", WAYS)
def test_each_rank_has_its_part_of_the_latest_state_that_is_complete(job_folder: JobFolder, way: str) -> None:
    train = """
    with cohabit.job(all_ranks=True) as job:
        state = job.load()
        for step in range(job.start, job.start + 2):
            job.save(step, [job.rank, step])
        print(json.dumps(state))
    """
    assert ends(start(job_folder, way, train)) == [(0, None)] * 2
    assert ends(start(job_folder, way, train)) == [(0, [0, 1]), (0, [1, 1])]
    # One rank was killed before it had saved its part, and a part of the one before is damaged.
    latest = sorted(name for name in job_folder.names() if name.endswith("rank1.ckpt"))
    (job_folder.checkpoints / latest[-1]).unlink()
    (job_folder.checkpoints / latest[-2]).write_bytes(b"")
    assert ends(start(job_folder, way, train)) == [(0, [0, 1]), (0, [1, 1])]
    assert ends(start(job_folder, way, train)) == [(0, [0, 3]), (0, [1, 3])]


def test_another_number_of_ranks_is_a_clear_error(job_folder: JobFolder) -> None:
    train = "    cohabit.job(all_ranks=True).save(1, 1) if not cohabit.job(all_ranks=True).load() else None\n"
    [script.end() for script in start(job_folder, "files", train, ranks=2)]
    (alone,) = start(job_folder, "files", train, ranks=1)
    code, _, err = alone.end()
    assert code == 1 and "was saved by 2 ranks, and these are 1" in err
    shutil.rmtree(job_folder.checkpoints)


def test_ranks_without_a_way_to_each_other_say_so(job_folder: JobFolder) -> None:
    ranks = start(
        job_folder,
        "files",
        """
    with cohabit.job() as job:
        for step in job.track(range(100)):
            pass
    """,
        COHABIT_NNODES="2",
    )
    (_, _, first), (_, _, second) = [rank.end() for rank in ranks]
    assert "each rank decides by itself" in first and second == ""
