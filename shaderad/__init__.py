"""shaderad: Python kernels, readable Slang with gradients, on wgpu and slangpy.

The names in `__all__` of the modules below are public. The kernel language is imported at once,
because kernels are decorated with it; devices, arrays and transforms on first use.
"""

# ruff: noqa: F403
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shaderad.arrays.syntax import SYNTAX, PythonSyntax
from shaderad.decorators import *
from shaderad.diagnostics import error
from shaderad.diagnostics.errors import *
from shaderad.diagnostics.foreign_names import remedy_for
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.frontend.textures import FILTERS, Filters
from shaderad.language.annotations import TYPES
from shaderad.names import FORMS, INTRINSICS

if TYPE_CHECKING:  # The names that `_LATER` imports.
    from shaderad import jax as jax
    from shaderad import optim as optim
    from shaderad import random as random
    from shaderad import torch as torch
    from shaderad.arguments.sampler import *
    from shaderad.arrays.arrays import *
    from shaderad.arrays.pointers import *
    from shaderad.arrays.textures import *
    from shaderad.bundle import *
    from shaderad.bundle.read.loading import *
    from shaderad.calls.graphs import *
    from shaderad.check.gradient import *
    from shaderad.device.devices import *
    from shaderad.differentiate.transforms import *
    from shaderad.functions.public import *
    from shaderad.language.checked import *  # Annotations as types.
    from shaderad.profiling.profile import *
    from shaderad.runtime.devices import *
    from shaderad.slang_kernels import *
    from shaderad.textures.making import *
else:
    from shaderad.language.annotations import *

__version__ = "0.1.0"

_AT_ONCE = (
    "shaderad.decorators",
    "shaderad.diagnostics.errors",
    "shaderad.language.annotations",
)
_LATER = {
    "shaderad.runtime.devices": ("DeviceInfo", "devices"),
    "shaderad.arrays.arrays": ("Array", "array", "from_dlpack"),
    "shaderad.arrays.textures": ("Texture",),
    "shaderad.arguments.sampler": ("sampler",),
    "shaderad.textures.making": ("texture",),
    "shaderad.device.devices": ("Device", "open_device"),
    "shaderad.arrays.pointers": ("pointer",),
    "shaderad.differentiate.transforms": (
        "grad",
        "hvp",
        "jacobian",
        "jvp",
        "value_and_grad",
        "vjp",
    ),
    "shaderad.calls.graphs": ("graph",),
    "shaderad.check.gradient": ("gradcheck",),
    "shaderad.profiling.profile": ("profile", "profiled"),
    "shaderad.slang_kernels": ("slang_kernel",),
    "shaderad.bundle": ("build",),
    "shaderad.bundle.read.loading": ("load",),
}
"""The `__all__` of each module, so that using one name imports no other module."""
_FUNCTIONS = "shaderad.functions.public"
_NAMESPACES = ("jax", "optim", "random", "render", "torch")
"""Modules that are public names themselves."""

# float2 ... double4x4, half, double, uint; sin, dot, lerp, ...; range, detach, fwd_diff, ...
globals().update(TYPES)
globals().update(INTRINSICS)
globals().update(FORMS)


def _array_functions() -> PythonSyntax:
    from shaderad.functions import python_syntax

    return python_syntax


def _filters() -> Filters:
    from shaderad.textures.kernels import sampling

    return sampling


SYNTAX.comes_from(_array_functions)
FILTERS.comes_from(_filters)


@api_boundary
def __getattr__(name: str) -> Any:
    """Imports names that defining kernels does not need, on first use."""
    if name in _NAMESPACES:
        return import_module(f"shaderad.{name}")
    if name == "__all__":
        return __dir__()
    if name.startswith("_"):
        raise error("SR0229", name=name, remedy="")
    modules = (module for module, names in _LATER.items() if name in names)
    module = next(modules, None)
    if module is None and name not in import_module(_FUNCTIONS).__all__:
        raise error("SR0229", name=name, remedy=remedy_for(name, __dir__()))
    public_object = globals()[name] = getattr(import_module(module or _FUNCTIONS), name)
    return public_object


def __dir__() -> list[str]:
    # Not `map`, because names of builtins mean those of `sad` here.
    listed = {name for module in _AT_ONCE for name in import_module(module).__all__}
    later = {name for names in _LATER.values() for name in names}
    functions = import_module(_FUNCTIONS).__all__
    return sorted(listed | later | {*_NAMESPACES, *functions, *TYPES, *INTRINSICS, *FORMS})
