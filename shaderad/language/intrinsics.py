"""The functions of ``sad.*`` that kernels call: one object each, from the table of primitives.

Invariant: what is callable in a kernel by a ``sad`` name is one of these objects, a type object,
or a user function. Called from Python, a primitive computes with NumPy.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir import ops


def is_device_array(x: object) -> bool:
    """True if `x` is an array on a device or a traced one: it turns NumPy's ufuncs off."""
    return getattr(type(x), "__array_ufunc__", False) is None


@dataclass(frozen=True)
class Intrinsic:
    op: ops.Op

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The text of ``help(sad.sin)``."""
        return self.op.documentation

    @property
    def __name__(self) -> str:
        return self.op.name

    def __repr__(self) -> str:
        return f"shaderad.{self.op.name}"

    @api_boundary
    def __call__(self, *args: object, **keywords: object) -> object:
        """On device arrays the operator on arrays; on numbers and NumPy arrays NumPy's function.

        `min`, `max`, `any` and `all` of one array reduce it, over ``axis=``.
        """
        is_reduction = len(args) == 1 and self.op.arity == 2
        if keywords or is_reduction or any(map(is_device_array, args)):
            from shaderad.functions.kernel_names import intrinsic

            return intrinsic(self.op, args, keywords)
        if len(args) != self.op.arity:
            raise error("SR0231", None, name=self.op.name, found=len(args), wanted=self.op.arity)
        try:
            return self.op.numpy(*(self._as_data(a) for a in args))
        except TypeError:
            found = ", ".join(f"`{type(a).__name__}`" for a in args)
            wanted = "outside of kernels it takes numbers and NumPy arrays"
            raise error("SR0312", None, name=self.op.name, found=found, help=wanted) from None

    def _as_data(self, value: object) -> object:
        """The object converted by its ``__array__``; numbers and NumPy's own as they are."""
        own = np.ndarray | np.generic | int | float
        if isinstance(cast("Any", value), own) or not hasattr(value, "__array__"):
            return value
        try:
            return np.asarray(value)
        except Exception as failure:
            reason = f"its conversion to NumPy raised `{type(failure).__name__}: {failure}`"
            raise error("SR0312", None, name=self.op.name, found=f"`{type(value).__name__}`",
                        help=reason) from failure  # fmt: skip


@dataclass(frozen=True)
class KernelForm:
    """A name with a meaning of its own in kernels: ``sad.range``, ``sad.detach``."""

    name: str

    def __repr__(self) -> str:
        return f"shaderad.{self.name}"

    @api_boundary
    def __call__(self, *args: object, **kwargs: object) -> object:
        if self.name == "detach" and len(args) == 1 and is_device_array(args[0]):
            from shaderad.functions.kernel_names import detached

            return detached(args[0])
        raise error("SR0230", None, name=self.name)


INTRINSICS: Mapping[str, Intrinsic] = types.MappingProxyType(
    {name: Intrinsic(op) for name, op in ops.PUBLIC.items()}
)
"""Every public primitive by its ``sad`` name."""

FORMS: Mapping[str, KernelForm] = types.MappingProxyType(
    {
        name: KernelForm(name)
        for name in (
            "range static_range limit unique detach diff_pair fwd_diff bwd_diff bitcast".split()
        )
    }
)
"""Everything else that kernels call by a ``sad`` name."""
