"""``@sad.kernel`` and ``@sad.function``: wrap a function without reading its body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from shaderad.diagnostics import error, nesting
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.frontend.kernels import KernelSignature, kernel_signature, read_kernel
from shaderad.ir.nodes import Kernel
from shaderad.language.captures import Variants
from shaderad.language.host import PythonFunction, UserFunction, caller_locals
from shaderad.language.launchable import Launchable

__all__ = ["function", "kernel"]


class KernelFunction(PythonFunction, Launchable):
    """A kernel. Calling it runs it: ``shade(triangles, face, uv, 1.5, dim=n)``."""

    def __init__(self, function: Callable[..., object], locals_: Mapping[str, object]) -> None:
        super().__init__(function, locals_)
        self._variants: Variants[Kernel] = Variants()

    @api_boundary
    def debug(
        self, *args: object, thread: int | tuple[int, ...] = 0, **kwargs: object
    ) -> dict[str, dict[Any, Any]]:
        """Runs the Python body itself for one thread: ``breakpoint()`` and ``print`` work in it.

        Takes what a call takes, and `thread`: an index, or its row-major number. Values are copied,
        floats round and ints wrap as on a device. An index out of range raises at its line, unless
        ``bounds="ignore"``. The limits of ``while sad.limit(..)`` are not enforced.

        Returns:
            For each written array the elements that the thread wrote, by index.
        """
        from shaderad.debug import debug_kernel

        return debug_kernel(self, args, kwargs, thread)

    @property
    def signature(self) -> KernelSignature:
        """Parameters and types, without compiling the body."""
        return self._signature

    @cached_property
    def _signature(self) -> KernelSignature:
        with nesting(self.name, self.source.span):
            return kernel_signature(self)

    def specialise(self, const_values: Mapping[str, object]) -> Kernel:
        """The typed kernel for these constants and the current captures.

        Raises:
            LanguageError: For code that kernels do not have, at its Python line.
        """
        with nesting(self.name, self.source.span):
            return self._variants.of(const_values, lambda: read_kernel(self, const_values))


@api_boundary
def kernel(function: Callable[..., object]) -> KernelFunction:
    """Makes a Python function a kernel: one thread runs it for each index of the launch.

    ``shade(x, dim=n)`` runs n threads and returns the arrays that the kernel writes. The parameters
    say what a thread gets: `sad.Index`, values, arrays to read (`sad.In`), to write (`sad.Out`),
    and to add to or take extremes in (`sad.Add`, `sad.Min`, `sad.Max`). Nothing is compiled before
    the first call.

    Args:
        function: A ``def`` with annotations, in the kernel language (docs/kernel_language.md).

    Raises:
        LanguageError: SR0103 for anything but a ``def``.

    Differentiable in all floats that it reads, through the transforms of `sad`. What carries no
    derivative, and what is taken at singular points: docs/conventions.md.
    """
    return KernelFunction(function, caller_locals(3))


@api_boundary
def function(function: Callable[..., object]) -> UserFunction:
    """Makes a Python function callable from kernels and other functions.

    It is specialised for the arrays and constants of each call. From Python, it computes on numbers
    in double precision, and on arrays element by element, as `sad.map` does.

    Args:
        function: A ``def`` with annotations, in the kernel language.

    Raises:
        LanguageError: SR0103 for anything but a ``def``.

    Differentiable by the rules of what it calls, or by a derivative of the user's own:
    `UserFunction.backward_derivative`, `UserFunction.forward_derivative`.
    """
    if isinstance(function, KernelFunction):
        raise error("SR0103", function.source.span, found=f"the kernel `{function.name}`")
    return UserFunction(function, caller_locals(3))
