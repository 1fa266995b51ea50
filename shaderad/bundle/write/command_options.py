"""``--define`` and ``--wrt`` -> constants and differentiated inputs of each kernel and graph.

``N=3`` sets the parameter `N` of every kernel; ``blur.N=3`` takes precedence and sets that of
`blur`. A name in ``--wrt`` is a parameter or a field of one (``mesh.colors``), optionally after the
name of an entry (``shade.mesh``). Invariant: every such name selects an input that holds floats;
without names, all are selected.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from shaderad.diagnostics import error
from shaderad.ir.nodes import Kernel
from shaderad.ir.types import Access, is_differentiable

if TYPE_CHECKING:
    from shaderad.calls.signatures import GraphSignature
    from shaderad.language.signatures import Launchable


def parse_defines(texts: Iterable[str]) -> dict[str, object]:
    """``["N=3"]`` -> ``{"N": 3}``; values are Python numbers, bools or tuples of them.

    Raises:
        LanguageError: SR0706, if a text does not have this form.
    """
    defines: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        try:
            defines[name.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            equals = ""
        if not equals or not all(part.isidentifier() for part in name.strip().split(".")):
            raise error("SR0706", text=text)
    return defines


def constants_of(
    kernels: Mapping[str, Launchable], defines: Mapping[str, object]
) -> dict[str, dict[str, object]]:
    """The constants of each kernel, by kernel and parameter.

    Raises:
        LanguageError: SR0705, if a parameter has no value; SR0707, if no parameter has the name of
            a define.
    """
    used: set[str] = set()
    constants: dict[str, dict[str, object]] = {}
    for kernel_name, function in kernels.items():
        values = constants.setdefault(kernel_name, {})
        signature = function.signature
        for parameter, span in zip(signature.parameters, signature.spans, strict=True):
            if not parameter.is_const:
                continue
            keys = {f"{kernel_name}.{parameter.name}", parameter.name} & defines.keys()
            if not keys:
                raise error("SR0705", span, kernel=kernel_name, name=parameter.name)
            used |= keys
            values[parameter.name] = defines[max(keys, key=len)]
    for name in defines:
        if name not in used:
            raise error("SR0707", name=name, kernels=", ".join(f"`{k}`" for k in kernels))
    return constants


Inputs = dict[str, bool]
"""The inputs of one kernel or graph by their Python paths; true for those that hold floats."""


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


NOTHING = "none"
"""Replaces the inputs to differentiate by, to build without derivatives."""


def wanted_inputs(wrt: Iterable[str], inputs: Mapping[str, Inputs]) -> dict[str, frozenset[str]]:
    """For each entry, the inputs that it is differentiated by.

    Args:
        wrt: Names, several of which may share a text with commas. Empty for all inputs that hold
            floats, `NOTHING` alone for none.
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
    if names == [NOTHING]:
        return wanted
    for name in names:
        chosen = {
            entry: frozenset(path for path in paths if _chooses(name, entry, path))
            for entry, paths in inputs.items()
        }
        if not any(chosen.values()):
            choices = sorted({f"`{path}`" for paths in floats.values() for path in paths})
            raise error("SR0746", name=name, known=", ".join(choices) or "none")
        if not any(chosen[entry] & floats[entry] for entry in inputs):
            raise error("SR0747", name=name)
        wanted = {entry: wanted[entry] | (chosen[entry] & floats[entry]) for entry in inputs}
    return wanted


def _chooses(name: str, entry: str, path: str) -> bool:
    """True if `name` is the input at `path`, or contains it."""
    prefix = re.compile(rf"{re.escape(name)}(?!\w)")
    return name != entry and any(map(prefix.match, (path, f"{entry}.{path}")))
