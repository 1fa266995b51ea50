"""``--wrt NAME,..`` -> the inputs of each kernel and graph by which it is differentiated.

A name is that of a parameter, of a field in one (``mesh.colors``), or either after the entry's own
(``shade.mesh``). Invariant: every name chooses an input that holds floats; without names all do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from shaderad.diagnostics import error
from shaderad.ir.nodes import Kernel
from shaderad.ir.types import Access, is_differentiable

if TYPE_CHECKING:
    from shaderad.session.graph_signatures import GraphSignature

Inputs = dict[str, bool]
"""Of one kernel or graph: whether each input, as Python reaches it, holds floats."""


def kernel_inputs(kernel: Kernel) -> Inputs:
    """Inputs and uniforms by their path; written arrays are known and hold nothing to choose."""
    found = {
        ".".join(b.path): b.access is Access.IN and is_differentiable(b.type.element)
        for b in kernel.buffers
    }
    return found | {".".join(u.path): is_differentiable(u.type) for u in kernel.uniforms}


def graph_inputs(signature: GraphSignature) -> Inputs:
    """Arrays by their name."""
    pairs = zip(signature.names, signature.types, strict=True)
    return {name: is_differentiable(t.element) for name, t in pairs}


def wanted_inputs(wrt: Iterable[str], inputs: Mapping[str, Inputs]) -> dict[str, frozenset[str]]:
    """The inputs of each entry by which it is differentiated.

    Args:
        wrt: Names, several with commas; none: everything that holds floats.
        inputs: By kernel and graph.

    Raises:
        LanguageError: SR0746, where a name fits nothing; SR0747, where it fits no float.
    """
    names = [name.strip() for each in wrt for name in each.split(",") if name.strip()]
    floats = {
        entry: frozenset(path for path, is_float in known.items() if is_float)
        for entry, known in inputs.items()
    }
    if not names:
        return floats
    found: dict[str, frozenset[str]] = dict.fromkeys(inputs, frozenset())
    for name in names:
        chosen = {
            entry: frozenset(path for path in known if _chooses(name, entry, path))
            for entry, known in inputs.items()
        }
        if not any(chosen.values()):
            known = sorted({f"`{path}`" for paths in floats.values() for path in paths})
            raise error("SR0746", name=name, known=", ".join(known) or "none")
        if not any(chosen[entry] & floats[entry] for entry in inputs):
            raise error("SR0747", name=name)
        found = {entry: found[entry] | (chosen[entry] & floats[entry]) for entry in inputs}
    return found


def _chooses(name: str, entry: str, path: str) -> bool:
    """Whether `name` is the input, or holds it."""
    return (
        any(
            re.match(rf"{re.escape(name)}(?!\w)", text) is not None
            for text in (path, f"{entry}.{path}")
        )
        and name != entry
    )
