"""Pickles functions and arguments, and says which object cannot be."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any, Callable

from ..errors import UnpicklableError

_DEPTH = 4


def pickled(value: Any, name: str) -> bytes:
    """The pickle of a value.

    Raises:
        UnpicklableError: It cannot be pickled; the message names the object in it that cannot.
    """
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(value, protocol=5))
    except Exception as error:
        raise UnpicklableError(f"{_culprit(value, name)} cannot be pickled: {error}") from error


def pickled_function(function: Callable[..., Any]) -> bytes:
    """The pickle of a function; a function of a module travels as its name."""
    name = getattr(function, "__qualname__", None) or type(function).__name__
    return pickled(function, f"the function {name}")


def pickled_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """The pickle of the arguments of a call."""
    import cloudpickle

    try:
        # Without cloudpickle in the job, if it is plain data.
        data = pickle.dumps((args, kwargs), protocol=5)
    except Exception:
        data = b""
    if data and b"__main__" not in data and not cloudpickle.list_registry_pickle_by_value():
        return data
    for position, value in enumerate(args):
        pickled(value, f"argument {position + 1}")
    for keyword, value in kwargs.items():
        pickled(value, f"argument {keyword!r}")
    return pickled((args, kwargs), "the arguments")


def _culprit(value: Any, name: str, depth: int = _DEPTH) -> str:
    """The innermost part that cannot be pickled, and the way to it."""
    if depth > 0:
        for part, part_name in _parts(value, name):
            if not _can_be_pickled(part):
                return _culprit(part, part_name, depth - 1)
    return f"{name} (a {type(value).__module__}.{type(value).__qualname__})"


def _parts(value: Any, name: str) -> list[tuple[Any, str]]:
    if isinstance(value, Mapping):
        return [(part, f"{name}[{key!r}]") for key, part in value.items()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [(part, f"{name}[{position}]") for position, part in enumerate(value)]
    code, cells = getattr(value, "__code__", None), getattr(value, "__closure__", None)
    if code is not None:
        closed = [
            (cell.cell_contents, f"the variable {variable!r} of {name}")
            for variable, cell in zip(code.co_freevars, cells or ())
        ]
        seen = [
            (value.__globals__[variable], f"the global {variable!r} of {name}")
            for variable in code.co_names
            if variable in value.__globals__
        ]
        defaults = [(part, f"a default of {name}") for part in value.__defaults__ or ()]
        return closed + seen + defaults
    return [(part, f"{name}.{attribute}") for attribute, part in getattr(value, "__dict__", {}).items()]


def _can_be_pickled(value: Any) -> bool:
    import cloudpickle

    try:
        cloudpickle.dumps(value, protocol=5)
    except Exception:
        return False
    return True
