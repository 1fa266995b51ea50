"""shaderad: Python kernels, readable Slang with gradients, on wgpu and slangpy.

Every public name stands here. The kernel language is imported at once, because kernels are
decorated with it; devices, arrays and transforms when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shaderad.diagnostics import (
    BoundsError,
    CompileError,
    DerivativeError,
    DeviceError,
    Error,
    GradientError,
    LanguageError,
    LimitError,
    NoAxesError,
    ShapeError,
    UnknownNameError,
    error,
)
from shaderad.diagnostics.foreign_names import remedy_for
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.frontend.annotations import (
    TYPES,
    Add,
    Const,
    DifferentialPair,
    In,
    Index,
    LocalArray,
    Max,
    Min,
    Out,
    Pointer,
)
from shaderad.frontend.decorators import function, kernel
from shaderad.frontend.intrinsics import FORMS, INTRINSICS
from shaderad.frontend.structs import struct

if TYPE_CHECKING:
    from shaderad import optim
    from shaderad.bundle import build
    from shaderad.bundle.loading import load
    from shaderad.check import gradcheck
    from shaderad.runtime.choice import DeviceInfo
    from shaderad.runtime.devices import devices
    from shaderad.session.array_functions.public import (
        argmax,
        argmin,
        argsort,
        associative_scan,
        broadcast_to,
        cast,
        checkpoint,
        compact,
        concatenate,
        custom_vjp,
        fori_loop,
        full,
        gather,
        histogram,
        iota,
        loop,
        map,  # noqa: A004 - the public name
        mean,
        prod,
        reduce,
        reshape,
        reverse,
        roll,
        rotate,
        scan,
        scatter,
        scatter_add,
        segment_reduce,
        sort,
        stack,
        sum,  # noqa: A004 - the public name
        where,
        while_loop,
        zeros,
    )
    from shaderad.session.arrays import Array, array
    from shaderad.session.devices import Device, open_device
    from shaderad.session.graphs import graph
    from shaderad.session.pointers import pointer
    from shaderad.transforms import grad, hvp, jacobian, jvp, value_and_grad, vjp

# The folder `shaderad.graph` is loaded first, and its name freed: here `graph` is the decorator.
import_module("shaderad.graph")
globals().pop("graph", None)

__version__ = "0.1.0"

_MODULE_BY_NAME = {
    "Array": "shaderad.session.arrays",
    "array": "shaderad.session.arrays",
    "Device": "shaderad.session.devices",
    "open_device": "shaderad.session.devices",
    "DeviceInfo": "shaderad.runtime.choice",
    "devices": "shaderad.runtime.devices",
    "grad": "shaderad.transforms",
    "jacobian": "shaderad.transforms",
    "jvp": "shaderad.transforms",
    "value_and_grad": "shaderad.transforms",
    "vjp": "shaderad.transforms",
    "gradcheck": "shaderad.check",
    "build": "shaderad.bundle",
    "load": "shaderad.bundle.loading",
    "pointer": "shaderad.session.pointers",
    "graph": "shaderad.session.graphs",
    "hvp": "shaderad.transforms",
    **dict.fromkeys(
        (
            "argmax argmin argsort associative_scan broadcast_to cast checkpoint compact "
            "concatenate custom_vjp fori_loop full gather histogram iota loop map mean prod reduce "
            "reshape reverse roll rotate scan scatter scatter_add segment_reduce sort stack sum "
            "where while_loop zeros"
        ).split(),
        "shaderad.session.array_functions.public",
    ),
}

__all__ = [
    "Add",
    "Array",
    "BoundsError",
    "CompileError",
    "Const",
    "DerivativeError",
    "Device",
    "DeviceError",
    "DeviceInfo",
    "DifferentialPair",
    "Error",
    "GradientError",
    "In",
    "Index",
    "LanguageError",
    "LimitError",
    "LocalArray",
    "Max",
    "Min",
    "NoAxesError",
    "Out",
    "Pointer",
    "ShapeError",
    "UnknownNameError",
    "argmax",
    "argmin",
    "argsort",
    "array",
    "associative_scan",
    "broadcast_to",
    "build",
    "cast",
    "checkpoint",
    "compact",
    "concatenate",
    "custom_vjp",
    "devices",
    "fori_loop",
    "full",
    "function",
    "gather",
    "grad",
    "gradcheck",
    "graph",
    "histogram",
    "hvp",
    "iota",
    "jacobian",
    "jvp",
    "kernel",
    "load",
    "loop",
    "map",
    "mean",
    "open_device",
    "optim",
    "pointer",
    "prod",
    "reduce",
    "reshape",
    "reverse",
    "roll",
    "rotate",
    "scan",
    "scatter",
    "scatter_add",
    "segment_reduce",
    "sort",
    "stack",
    "struct",
    "sum",
    "value_and_grad",
    "vjp",
    "where",
    "while_loop",
    "zeros",
]

# float2 .. double4x4, half, double, uint; sin, dot, lerp, ..; range, detach, fwd_diff, ..
globals().update(TYPES)
globals().update(INTRINSICS)
globals().update(FORMS)
__all__ += list(TYPES) + list(INTRINSICS) + list(FORMS)  # pyright: ignore[reportUnsupportedDunderAll]


@api_boundary
def __getattr__(name: str) -> Any:
    """Imports what is not needed to define kernels, at its first use."""
    if name == "optim":
        return import_module("shaderad.optim")
    module = _MODULE_BY_NAME.get(name)
    if module is None:
        raise error("SR0229", name=name, remedy=remedy_for(name, __all__))
    found = getattr(import_module(module), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
