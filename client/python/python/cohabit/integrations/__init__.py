"""Cohabit beside other libraries: progress, metrics, checkpoints and stops without other code in a script.

Each module needs its library and is imported by itself: `from cohabit.integrations.keras import CohabitCallback`.
"""

from __future__ import annotations

from ..errors import MissingPackageError


def missing(module: str, package: str, error: ImportError) -> MissingPackageError:
    """The error of an integration without its library."""
    return MissingPackageError(
        f"cohabit.integrations.{module} needs the package {package} ({error}): pip install {package}"
    )
