"""The primitives and forms of kernels as names of ``sad``, which Python may call, too.

Invariant: what is callable in a kernel by a ``sad`` name is one of these objects, a type object,
or a user function.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir import ops
from shaderad.language.intrinsics import Intrinsic, KernelForm, is_device_array


class CallableIntrinsic(Intrinsic):
    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """The text of ``help(sad.sin)``."""
        return self.op.documentation

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


class CallableForm(KernelForm):
    """A form that has a meaning outside of kernels only on arrays."""

    @api_boundary
    def __call__(self, *args: object, **kwargs: object) -> object:
        if self.name == "detach" and len(args) == 1 and is_device_array(args[0]):
            from shaderad.functions.kernel_names import detached

            return detached(args[0])
        raise error("SR0230", None, name=self.name)


INTRINSICS: Mapping[str, CallableIntrinsic] = types.MappingProxyType(
    {name: CallableIntrinsic(op) for name, op in ops.PUBLIC.items()}
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
