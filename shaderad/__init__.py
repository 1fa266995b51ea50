"""shaderad: Python kernels, readable Slang with gradients, on wgpu and slangpy.

Public is what the modules below list in `__all__`. The kernel language is imported at once, because
kernels are decorated with it; devices, arrays and transforms when they are first used.
"""

# ruff: noqa: F403
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shaderad.diagnostics import error
from shaderad.diagnostics.errors import *
from shaderad.diagnostics.foreign_names import remedy_for
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.frontend.annotations import *
from shaderad.frontend.annotations import TYPES
from shaderad.frontend.decorators import *
from shaderad.frontend.intrinsics import FORMS, INTRINSICS
from shaderad.frontend.structs import *

if TYPE_CHECKING:  # What `_LATER` imports.
    from shaderad import optim as optim
    from shaderad.bundle import *
    from shaderad.bundle.loading import *
    from shaderad.check.gradient import *
    from shaderad.runtime.choice import *
    from shaderad.runtime.devices import *
    from shaderad.session.array_functions.public import *
    from shaderad.session.arrays import *
    from shaderad.session.devices import *
    from shaderad.session.graphs import *
    from shaderad.session.pointers import *
    from shaderad.transforms import *

# The folder `shaderad.graph` is loaded first, and its name freed: here `graph` is the decorator.
import_module("shaderad.graph")
globals().pop("graph", None)

__version__ = "0.1.0"

_AT_ONCE = (
    "shaderad.diagnostics.errors",
    "shaderad.frontend.annotations",
    "shaderad.frontend.decorators",
    "shaderad.frontend.structs",
)
_LATER = {
    "shaderad.runtime.choice": ("DeviceInfo",),
    "shaderad.runtime.devices": ("devices",),
    "shaderad.session.arrays": ("Array", "array"),
    "shaderad.session.devices": ("Device", "open_device"),
    "shaderad.session.pointers": ("pointer",),
    "shaderad.transforms": ("grad", "hvp", "jacobian", "jvp", "value_and_grad", "vjp"),
    "shaderad.session.graphs": ("graph",),
    "shaderad.check.gradient": ("gradcheck",),
    "shaderad.bundle": ("build",),
    "shaderad.bundle.loading": ("load",),
}
"""Modules by what they list in `__all__`: one name imports no other module."""
_FUNCTIONS = "shaderad.session.array_functions.public"

# float2 .. double4x4, half, double, uint; sin, dot, lerp, ..; range, detach, fwd_diff, ..
globals().update(TYPES)
globals().update(INTRINSICS)
globals().update(FORMS)


@api_boundary
def __getattr__(name: str) -> Any:
    """Imports what is not needed to define kernels, at its first use."""
    if name == "optim":
        return import_module("shaderad.optim")
    if name == "__all__":
        return __dir__()
    if name.startswith("_"):
        raise error("SR0229", name=name, remedy="")
    known = (module for module, names in _LATER.items() if name in names)
    module = next(known, None)
    if module is None and name not in import_module(_FUNCTIONS).__all__:
        raise error("SR0229", name=name, remedy=remedy_for(name, __dir__()))
    found = globals()[name] = getattr(import_module(module or _FUNCTIONS), name)
    return found


def __dir__() -> list[str]:
    # Not by `map`: names of builtins are those of `sad` here.
    listed = {name for module in _AT_ONCE for name in import_module(module).__all__}
    later = {name for names in _LATER.values() for name in names}
    functions = import_module(_FUNCTIONS).__all__
    return sorted(listed | later | {"optim", *functions, *TYPES, *INTRINSICS, *FORMS})
