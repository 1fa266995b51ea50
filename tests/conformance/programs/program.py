"""One case said as a shaderad program.

Invariant: a program's parameters bear the names of the case's inputs, and its results those of the
case's outputs, so that neither is listed again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Values = dict[str, Any]


@dataclass(frozen=True)
class Program:
    """A kernel, or a function over kernels that returns its results by name."""

    function: Callable[..., Any]
    call: Values = field(default_factory=Values)
    """Call keywords: ``dim`` and ``shapes``."""
    outputs: Sequence[str] = ()
    """A kernel's results in order; empty where the function returns them by name."""
    needs: str = ""
    """A feature that the device must have."""
    dtype: str = "f32"
    """The column of the case's tolerances that holds for this program's arithmetic."""

    def arguments(self, inputs: Values) -> list[Any]:
        """The case's inputs in the order of the program's parameters."""
        return [inputs[name] for name in self.inputs if name in inputs]

    @property
    def inputs(self) -> list[str]:
        return list(inspect.signature(self.function).parameters)

    def by_name(self, out: Any) -> Values:
        """The program's result, or its tangent, by the names of the case's outputs."""
        if not self.outputs:
            return out
        return dict(zip(self.outputs, out if len(self.outputs) > 1 else (out,), strict=True))

    def structured(self, by_name: Values) -> Any:
        """Cotangents by name -> the structure of the program's result; inverse of `by_name`."""
        if not self.outputs:
            return by_name
        found = tuple(by_name[name] for name in self.outputs)
        return found if len(found) > 1 else found[0]


def over_kernel(
    kernel: Callable[..., Any],
    outputs: str = "y",
    *,
    needs: str = "",
    dtype: str = "f32",
    **call: Any,
) -> Program:
    """A program that is one kernel, called with the keywords `call`."""
    return Program(kernel, call, outputs.split(), needs, dtype)
