"""The build backend of the package: builds the program `cohabit`, then has maturin build the wheel around it.

A wheel holds one extension module or one program; this one holds both, so that `pip install` is all that a
machine needs. The program is built by cargo in the same target directory, and maturin takes it from there as a
script of the environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import maturin

PACKAGE = Path(__file__).resolve().parent.parent
WORKSPACE = PACKAGE.parent.parent
SCRIPTS = PACKAGE / "build" / "data" / "scripts"
# maturin looks for it whatever it is asked for.
SCRIPTS.mkdir(parents=True, exist_ok=True)

get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    _build_program()
    settings = dict(config_settings or {})
    settings["build-args"] = f"--compression-level 9 {settings.get('build-args', '')}"
    return maturin.build_wheel(wheel_directory, settings, metadata_directory)


def build_editable(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    _build_program()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    raise NotImplementedError(
        "the package is built from a clone of the whole repository: pip wheel --no-deps ./client/python"
    )


def _build_program() -> None:
    """Builds `cohabit` and puts it where maturin looks for scripts."""
    cargo = os.environ.get("CARGO", "cargo")
    command = [cargo, "build", "--release", "--locked", "--package", "cohabit-cli", "--bin", "cohabit"]
    if subprocess.run(command, cwd=WORKSPACE, check=False).returncode != 0:
        raise SystemExit("cargo could not build the program: see its messages above")
    target = Path(os.environ.get("CARGO_TARGET_DIR", WORKSPACE / "target"))
    shutil.copy2(WORKSPACE / target / "release" / "cohabit", SCRIPTS / "cohabit")
