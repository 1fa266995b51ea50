"""One case said as a shaderad program.

Invariant: a program's parameters bear the names of the case's inputs, and its results those of the
case's outputs, so that inputs are listed nowhere else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import shaderad as sad

if TYPE_CHECKING:
    from tests.conformance.cases import Case


@dataclass(frozen=True)
class Program:
    """A kernel, or a function over kernels that returns its results by name."""

    function: Callable[..., Any]
    call: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Call keywords: ``dim`` and ``shapes``."""
    outputs: Sequence[str] = ()
    """A kernel's results in order; empty where the function returns them by name."""
    needs: str = ""
    """A feature that the device must have."""
    dtype: str = "f32"
    """The column of the case's tolerances that holds for this program's arithmetic."""

    def inputs(self, case: Case) -> list[str]:
        """The case's inputs in the order of the program's parameters."""
        return [name for name in inspect.signature(self.function).parameters if name in case.inputs]

    takes_arrays: bool = False
    """Whether it is a plain function: NumPy's own operators would compute with NumPy's arrays."""

    def arguments(self, case: Case) -> list[Any]:
        return [case.inputs[name] for name in self.inputs(case)]

    def call_plainly(self, case: Case) -> Any:
        """The result outside of any transform."""
        given = self.arguments(case)
        if self.takes_arrays:
            given = [sad.array(one) for one in given]
        return self.function(*given, **self.call)

    def by_name(self, out: Any) -> dict[str, Any]:
        """The program's result, or its tangent, by the names of the case's outputs."""
        if not self.outputs:
            return out
        return dict(zip(self.outputs, out if len(self.outputs) > 1 else (out,), strict=True))

    def structured(self, by_name: dict[str, Any]) -> Any:
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


def over_arrays(
    function: Callable[..., Any], outputs: str = "y", *, needs: str = "", dtype: str = "f32"
) -> Program:
    """A program that is a function over arrays: a graph, or a function that is traced."""
    takes_arrays = inspect.isfunction(function)
    return Program(function, {}, outputs.split(), needs, dtype, takes_arrays)
