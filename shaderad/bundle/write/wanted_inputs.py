"""``--wrt NAME,..`` -> the inputs that each kernel and graph is differentiated by.

A name is a parameter, a field of one (``mesh.colors``), or either after the name of an entry
(``shade.mesh``). Invariant: every name selects an input that holds floats; no names select all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from shaderad.diagnostics import error
from shaderad.ir.nodes import Kernel
from shaderad.ir.types import Access, is_differentiable

if TYPE_CHECKING:
    from shaderad.trace.signatures import GraphSignature

Inputs = dict[str, bool]
"""The inputs of one kernel or graph, as Python reaches them; true for those that hold floats."""


def kernel_inputs(kernel: Kernel) -> Inputs:
    """The arrays and uniforms of a kernel by path; false for written arrays."""
    arrays = {
        ".".join(b.path): b.access is Access.IN and is_differentiable(b.type.element)
        for b in kernel.buffers
    }
    return arrays | {".".join(u.path): is_differentiable(u.type) for u in kernel.uniforms}


def graph_inputs(signature: GraphSignature) -> Inputs:
    """The arrays of a graph by name."""
    pairs = zip(signature.names, signature.types, strict=True)
    return {name: is_differentiable(t.element) for name, t in pairs}


def wanted_inputs(wrt: Iterable[str], inputs: Mapping[str, Inputs]) -> dict[str, frozenset[str]]:
    """The inputs that each entry is differentiated by.

    Args:
        wrt: Names; a text may hold several with commas; empty for all inputs that hold floats.
        inputs: The inputs of each kernel and graph, by its name.

    Raises:
        LanguageError: SR0746, if a name selects nothing; SR0747, if it selects no floats.
    """
    names = [name.strip() for joined in wrt for name in joined.split(",") if name.strip()]
    floats = {
        entry: frozenset(path for path, is_float in paths.items() if is_float)
        for entry, paths in inputs.items()
    }
    if not names:
        return floats
    wanted: dict[str, frozenset[str]] = dict.fromkeys(inputs, frozenset())
    for name in names:
        chosen = {
            entry: frozenset(path for path in paths if _chooses(name, entry, path))
            for entry, paths in inputs.items()
        }
        if not any(chosen.values()):
            known = sorted({f"`{path}`" for paths in floats.values() for path in paths})
            raise error("SR0746", name=name, known=", ".join(known) or "none")
        if not any(chosen[entry] & floats[entry] for entry in inputs):
            raise error("SR0747", name=name)
        wanted = {entry: wanted[entry] | (chosen[entry] & floats[entry]) for entry in inputs}
    return wanted


def _chooses(name: str, entry: str, path: str) -> bool:
    """True if `name` is the input at `path`, or contains it."""
    prefix = re.compile(rf"{re.escape(name)}(?!\w)")
    return name != entry and any(map(prefix.match, (path, f"{entry}.{path}")))
