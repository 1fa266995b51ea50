"""Removes shaderad's own frames from tracebacks.

The frames between a user's call and the `raise` add nothing to the message. `api_boundary` removes
them when an `Error` leaves a public function. ``SHADERAD_TRACEBACK=full`` keeps them.
"""

from __future__ import annotations

import functools
import os
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, TracebackType
from typing import ParamSpec, TypeVar

from shaderad.diagnostics.call_errors import call_error
from shaderad.diagnostics.errors import Error

PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep
"""The folder of shaderad's code, with a final separator."""
_STANDARD_LIBRARY = sysconfig.get_path("stdlib") + os.sep
_NOT_CALLED = frozenset(
    "__init__ __new__ __class_getitem__ __init_subclass__ __del__ __repr__".split()
)

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)


def api_boundary(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a public function, so that an `Error` leaves it with only the user's frames.

    A call that does not fit the parameters raises a `CallError` instead of Python's TypeError.
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            # Not through `fitting_call`, as some functions count the frames up to their caller.
            try:
                return function(*args, **kwargs)
            except TypeError as failure:
                misfit = call_error(failure, function, args, kwargs)
                if misfit is None:
                    raise
                raise misfit from None
        except Error as failure:
            failure.__traceback__ = folded(failure.__traceback__)
            # A bare `raise` adds no frame, so the next frame is the caller's.
            raise

    return called


def api_class(cls: C) -> C:
    """Decorates a class: each of its public methods and operators becomes an `api_boundary`."""
    for name, member in list(vars(cls).items()):
        is_operator = name.startswith("__") and name.endswith("__") and name not in _NOT_CALLED
        if isinstance(member, FunctionType) and (is_operator or not name.startswith("_")):
            setattr(cls, name, api_boundary(member))
    return cls


def folded(traceback: TracebackType | None) -> TracebackType | None:
    """`traceback` without shaderad's frames and those of the standard library between them."""
    if os.environ.get("SHADERAD_TRACEBACK") == "full":
        return traceback
    kept: list[TracebackType] = []
    is_within = False
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        is_within = file.startswith(PACKAGE) or (is_within and _is_standard(file))
        if not is_within:
            kept.append(traceback)
        traceback = traceback.tb_next
    rest: TracebackType | None = None
    for entry in reversed(kept):
        rest = TracebackType(rest, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return rest


def _is_standard(file: str) -> bool:
    return file.startswith(_STANDARD_LIBRARY) and "-packages" not in file
