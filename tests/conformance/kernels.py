"""The kernels of the conformance programs."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from shaderad.decorators import KernelFunction
from shaderad.diagnostics import Error
from shaderad.ir.nodes import Kernel
from tests.conformance import programs


def kernels() -> Iterator[Kernel]:
    """Those that take no constants."""
    for found in pkgutil.iter_modules(programs.__path__):
        module = importlib.import_module(f"{programs.__name__}.{found.name}")
        for value in vars(module).values():
            if isinstance(value, KernelFunction) and value.__module__ == module.__name__:
                try:
                    yield value.specialise({})
                except Error:
                    continue
