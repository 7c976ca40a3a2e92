"""Integrations beside the trainings of `test_cluster.py`: Optuna, tensorboardX, and what is said without a library."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import cohabit
import pytest
from kit import JobFolder, need


@pytest.mark.parametrize("package", ["transformers", "lightning", "keras", "optuna"])
def test_an_integration_names_the_package_that_is_missing(package: str) -> None:
    # None in sys.modules makes an import fail as if the package were not installed.
    script = f"""
import sys
for name in ("{package}", "pytorch_lightning"):
    sys.modules[name] = None
import cohabit
try:
    from cohabit.integrations.{package} import CohabitCallback
except cohabit.MissingPackageError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"cohabit.integrations.{package} needs the package {package} ("), (
        done.stdout
    )
    assert done.stdout.endswith(f"pip install {package}\n")


def test_the_package_of_integrations_imports_none_of_them() -> None:
    script = "import sys, cohabit.integrations.tensorboard; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"torch", "transformers", "lightning", "keras", "optuna", "tensorboardX"} & set(loaded)


def test_a_writer_takes_the_calls_of_tensorboardx(in_job: JobFolder) -> None:
    from cohabit.integrations.tensorboard import SummaryWriter

    with SummaryWriter("runs", comment="base", flush_secs=5) as writer:
        writer.add_scalar("loss/train", 0.5, 10)
        writer.add_scalars("accuracy", {"top1": 0.7, "top5": 0.9}, global_step=11)
        writer.add_histogram("weights", [1, 2, 3], 11)
        writer.add_image("sample", object(), 11, dataformats="HWC")
        writer.flush()
    with pytest.raises(AttributeError, match="no attribute 'scalar'"):
        _ = writer.scalar
    assert in_job.lines() == [
        {"step": 10, "loss/train": 0.5},
        {"step": 11, "accuracy/top1": 0.7, "accuracy/top5": 0.9},
    ]


def test_the_writer_has_the_calls_of_the_real_one(in_job: JobFolder) -> None:
    need("tensorboardX")
    import tensorboardX
    from cohabit.integrations.tensorboard import SummaryWriter

    writer = SummaryWriter()
    calls = [name for name in dir(tensorboardX.SummaryWriter) if name.startswith("add_")]
    assert len(calls) > 10 and all(callable(getattr(writer, name)) for name in calls)


def test_trials_of_optuna_are_reported_and_pruned_through_log(in_job: JobFolder) -> None:
    need("optuna")
    import optuna
    from cohabit.integrations.optuna import CohabitCallback, pruned_by

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    job = cohabit.job()

    def objective(trial: Any) -> float:
        with pruned_by(trial, "loss"):
            for step in range(5):
                job.log(loss=float(trial.number * 10 + step), step=step)
        return float(trial.number)

    pruner = optuna.pruners.MedianPruner(n_startup_trials=1, n_warmup_steps=0)
    study = optuna.create_study(pruner=pruner)
    study.optimize(objective, n_trials=3, callbacks=[CohabitCallback(total=3)])
    states = [trial.state.name for trial in study.trials]
    assert states == ["COMPLETE", "PRUNED", "PRUNED"]
    assert study.trials[0].intermediate_values == {step: float(step) for step in range(5)}
    assert job._listeners == []
    job.close()
    last = in_job.lines()[-1]
    assert (last["step"], last["total"], last["trial"], last["best"]) == (3, 3, 2, 0.0)


def test_a_study_that_is_stopped_goes_on_with_its_trials(job_folder: JobFolder) -> None:
    need("optuna")
    script = """
        import os, signal, sys, cohabit, optuna
        from cohabit.integrations.optuna import CohabitCallback
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        callback = CohabitCallback(total=6)
        def objective(trial):
            if trial.number == 2 and os.environ["COHABIT_ATTEMPT"] == "1":
                os.kill(os.getpid(), signal.SIGTERM)
            return trial.suggest_float("x", 0, 1)
        study = optuna.create_study(study_name="base", storage=callback.storage(), load_if_exists=True)
        study.optimize(objective, n_trials=6 - len(study.trials), callbacks=[callback])
        print(len(study.trials))
    """
    # The study asks whether it is to stop only after its first trial.
    code, out, err = job_folder.start(script).end()
    assert (code, out) == (143, ""), err
    code, out, err = job_folder.start(script, COHABIT_ATTEMPT="2").end()
    assert (code, out) == (0, "6\n"), err


def test_checkpoints_of_a_trainer_that_are_not_complete_are_passed_over(in_job: JobFolder) -> None:
    need("torch", "transformers")
    from cohabit.integrations import transformers

    callback = transformers.CohabitCallback()
    assert callback.latest() is None
    for step in (5, 10, 20):
        folder = in_job.checkpoints / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        (folder / "model").write_text("weights")
        if step < 20:
            transformers._mark_complete(str(folder))
    assert callback.latest() == str(in_job.checkpoints / "checkpoint-10")
    (in_job.checkpoints / "checkpoint-10" / "model").write_text("cut")
    assert callback.latest() == str(in_job.checkpoints / "checkpoint-5")


def test_checkpoints_of_lightning_that_are_not_whole_are_passed_over(in_job: JobFolder) -> None:
    need("torch", "lightning")
    import torch
    from cohabit.integrations.lightning import CohabitCallback

    callback = CohabitCallback()
    assert callback.latest() is None
    in_job.checkpoints.mkdir()
    paths = [in_job.checkpoints / f"lightning-step{step}.ckpt" for step in (9, 10, 100)]
    for path in paths:
        torch.save({"a": torch.zeros(1000)}, path)
    paths[2].write_bytes(paths[2].read_bytes()[:-100])
    damaged = bytearray(paths[1].read_bytes())
    damaged[len(damaged) // 2] ^= 1
    paths[1].write_bytes(damaged)
    assert callback.latest() == str(paths[0])


def test_a_model_with_other_variables_is_a_clear_error(
    in_job: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("torch", "keras", "numpy")
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    import keras
    import numpy
    from cohabit.integrations.keras import CohabitCallback

    def train(width: int) -> None:
        cohabit.job().close()
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(width), keras.layers.Dense(1)])
        model.compile(optimizer="sgd", loss="mse")
        model.fit(
            numpy.zeros((8, 2)), numpy.zeros((8, 1)), verbose=0, callbacks=[CohabitCallback(every=1e-9)]
        )

    train(3)
    train(3)
    with pytest.raises(cohabit.CheckpointError, match="a model or an optimizer with other variables"):
        train(4)
