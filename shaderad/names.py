"""The primitives and forms of kernels as names of ``sad``, which Python may call, too.

Invariant: every ``sad`` name that a kernel can call is one of these objects, a type object, or a
user function.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from shaderad.diagnostics import error
from shaderad.diagnostics.call_errors import bound_arguments
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir import ops
from shaderad.language import help_texts
from shaderad.language.annotations import HostVector
from shaderad.language.intrinsics import (
    Intrinsic,
    KernelForm,
    by_element,
    is_device_array,
    is_traced_size,
)


class CallableIntrinsic(Intrinsic):
    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The text of ``help(sad.sin)``."""
        return self.op.documentation

    @api_boundary
    def __call__(self, *args: object, **keywords: object) -> object:
        """Calls the operator on device arrays, and NumPy's function on numbers and NumPy arrays.

        `min`, `max`, `any` and `all` of one array reduce it, over ``axis=``.
        """
        is_test = self.op in (ops.ANY_OF, ops.ALL_OF)
        is_reduction = (len(args), self.op.arity) == ((2, 1) if is_test else (1, 2))
        if len(args) == 2 and self.op in (ops.MIN, ops.MAX) and _is_axis(*args):
            from shaderad.device.lines import user_span

            name, by_element = self.op.name, f"sad.{self.op.name}imum"
            raise error("SR0831", user_span(), name=name, by_element=by_element, axis=args[1])
        if keywords or is_reduction or any(map(is_device_array, args)):
            from shaderad.functions.kernel_names import intrinsic

            return intrinsic(self.op, args, keywords)
        if len(args) != self.op.arity:
            raise error("SR0231", None, name=self.op.name, found=len(args), wanted=self.op.arity)
        return self._of(args)

    def _of(self, args: tuple[object, ...]) -> object:
        """Applies the primitive to as many operands as it takes, by element."""
        if any(map(is_device_array, args)):
            from shaderad.functions.kernel_names import intrinsic

            return intrinsic(self.op, args, {})
        try:
            return self.op.numpy(*(self._as_data(a) for a in args))
        except TypeError:
            type_names = ", ".join(f"`{type(a).__name__}`" for a in args)
            wanted = "outside of kernels it takes numbers and NumPy arrays"
            raise error("SR0312", None, name=self.op.name, found=type_names, help=wanted) from None

    def _as_data(self, value: object) -> object:
        """The object converted by its ``__array__``; numbers and NumPy arrays stay as they are."""
        own = np.ndarray | np.generic | int | float
        if isinstance(cast("Any", value), own) or not hasattr(value, "__array__"):
            return value
        try:
            return np.asarray(value)
        except Exception as failure:
            reason = f"its conversion to NumPy raised `{type(failure).__name__}: {failure}`"
            raise error("SR0312", None, name=self.op.name, found=f"`{type(value).__name__}`",
                        help=reason) from failure  # fmt: skip


class CallableForm(KernelForm):
    # Outside of kernels, forms are defined only on arrays.

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The text of ``help(sad.range)``."""
        return help_texts.FORMS[self.name]

    @api_boundary
    def __call__(self, *args: object, **kwargs: object) -> object:
        if self.name == "detach" and len(args) == 1 and is_device_array(args[0]):
            from shaderad.functions.kernel_names import detached

            return detached(args[0])
        raise error("SR0230", None, name=self.name)


@dataclass(frozen=True, repr=False)
class Synonym(CallableIntrinsic):
    """``sad.maximum``: another name of a primitive, under which it never reduces an array."""

    name: str

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        _, _, rules = self.op.documentation.removeprefix(f"{self.op.signature}\n\n").partition(
            "\n\n"
        )
        head = ops.synonym_signature(self.name)
        return f"{head}\n\n{ops.synonym_value(self.name)}\n\n{rules}"

    def __repr__(self) -> str:
        return f"shaderad.{self.name}"

    @api_boundary
    def __call__(self, *args: object, **keywords: object) -> object:
        """The operator on arrays, NumPy arrays, vectors or numbers."""
        if self.op == ops.CLAMP:
            form = inspect.signature(_bounded)
            op, operands = _bounded(**bound_arguments(self, form, args, keywords).arguments)
            return operands[0] if op is None else CallableIntrinsic(op)._of(operands)
        for keyword in keywords:
            raise error("SR0233", None, found=f"`{keyword}=`")
        if len(args) != self.op.arity:
            raise error("SR0231", None, name=self.name, found=len(args), wanted=self.op.arity)
        return self._of(args)


def _bounded(
    x: object,
    min: object = None,  # noqa: A002 - as NumPy and JAX call the bounds
    max: object = None,  # noqa: A002
) -> tuple[ops.Op | None, tuple[object, ...]]:
    """The primitive that clamps `x` to the bounds that are not `None`, and its operands."""
    if min is None or max is None:
        bound = max if min is None else min
        return (None if bound is None else ops.MIN if min is None else ops.MAX), (x, bound)
    return ops.CLAMP, (x, min, max)


def _is_axis(x: Any, axis: object) -> bool:
    """True if the second argument of ``max(x, axis)`` may be an axis rather than an operand."""
    if by_element.get() or isinstance(x, HostVector) or isinstance(axis, bool):
        return False
    has_axes = isinstance(x, list | tuple) or bool(getattr(x, "shape", ()))
    return has_axes and (isinstance(axis, int | np.integer) or is_traced_size(axis))


INTRINSICS: Mapping[str, CallableIntrinsic] = types.MappingProxyType(
    {name: CallableIntrinsic(op) for name, op in ops.PUBLIC.items()}
    | {name: Synonym(op, name) for name, op in ops.SYNONYMS.items()}
)
"""Every public primitive by its ``sad`` name."""

FORMS: Mapping[str, CallableForm] = types.MappingProxyType(
    {
        name: CallableForm(name)
        for name in (
            "range static_range limit unique detach diff_pair fwd_diff bwd_diff bitcast".split()
        )
    }
)
"""Everything else that kernels call by a ``sad`` name."""
