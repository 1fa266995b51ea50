"""Built graphs -> their entries in the manifest.

Invariant: entries hold only names, numbers and expressions; the same build gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from shaderad.arguments.kinds import Opened
from shaderad.arrays import trees
from shaderad.arrays.pointers import HostPointer
from shaderad.arrays.textures import Texture
from shaderad.arrays.traced_sizes import TracedSize
from shaderad.bundle.format import entries as to
from shaderad.bundle.format.plan_names import result_names
from shaderad.bundle.format.size_text import spelled
from shaderad.bundle.format.type_names import TypeTable
from shaderad.bundle.write.plans import FileNames, plans_entries
from shaderad.bundle.write.programs import GraphBuild
from shaderad.calls.signatures import GraphSignature
from shaderad.diagnostics import error
from shaderad.ir.arrays import ArrayType
from shaderad.ir.types import is_differentiable
from shaderad.trace.calls import Placeholder

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""The part of a function's ``repr`` that differs between processes."""


def graph_entry(build: GraphBuild, file_of: FileNames, types: TypeTable) -> to.GraphEntry:
    """Everything that a host needs in order to run one graph."""
    graph = build.source
    signature, variant = graph.signature, graph.variant
    values = variant.graph.outputs
    outputs = result_names(signature.names, len(values))
    return to.GraphEntry(
        name=graph.name,
        file=graph.span.file_name,
        line=graph.span.line,
        bounds=build.bounds,
        sizes=[*signature.size_names],
        assumes=to.Assumptions(
            equal=[(spelled(a), spelled(b)) for a, b in variant.equal_sizes],
            positive=[spelled(size) for size in variant.positive_sizes],
        ),
        parameters=[
            _parameter(name, tree, signature, graph.name)
            for name, tree in signature.skeleton.items()
        ],
        inputs=_inputs(signature, graph.wanted, types),
        outputs=[
            _array(name, v.type, is_differentiable(v.element), types)
            for name, v in zip(outputs, values, strict=True)
        ],
        result=_tree(variant.out, graph.name, is_result=True),
        targets=plans_entries(build, file_of, types),
    )


def _inputs(
    signature: GraphSignature, differentiated: Sequence[bool], types: TypeTable
) -> list[to.ArrayEntry]:
    rows = zip(signature.names, signature.types, differentiated, strict=True)
    inputs = [_array(*row, types) for row in rows]
    for entry, wanted in zip(inputs, signature.wanted, strict=True):
        if wanted.resource is not None:
            entry.resource = to.resource_name(wanted.resource)
    return inputs


def _parameter(name: str, tree: Any, signature: GraphSignature, graph: str) -> to.GraphParameter:
    parameter = to.GraphParameter(name, _tree(tree, graph, is_fixed=name in signature.fixed))
    if name in signature.defaults:
        parameter.default = _tree(signature.defaults[name], graph)
    return parameter


def _array(name: str, t: ArrayType, has_derivative: bool, types: TypeTable) -> to.ArrayEntry:
    shape = [spelled(extent) for extent in t.shape]
    return to.ArrayEntry(name, types.name(t.element), shape, has_derivative)


def _tree(
    tree: Any, graph: str, *, is_fixed: bool = False, is_result: bool = False
) -> to.TreeEntry:
    """A tree of arrays; a fixed parameter is written as the text of its value."""
    if is_fixed:
        return to.TreeEntry("value", value=_ADDRESS.sub("", repr(tree)))
    parts = trees.children(tree)
    if parts is None:
        return _leaf(tree, graph)
    # No plan writes a texture or pointer.
    if is_result and isinstance(tree, HostPointer | Texture | Opened):
        raise error("SR0735", graph=graph, found=trees.described(tree))
    if isinstance(tree, Opened):
        return to.TreeEntry(
            cast("Any", tree.kind.noun), parts=[_leaf(part, graph) for part in parts.values()]
        )
    inner = [_tree(part, graph, is_result=is_result) for part in parts.values()]
    kind = cast("type[Any]", type(tree))
    if hasattr(kind, "_fields"):
        names = [*kind._fields]
        return to.TreeEntry("named tuple", name=kind.__name__, names=names, parts=inner)
    if isinstance(tree, tuple | list):
        return to.TreeEntry("list" if isinstance(tree, list) else "tuple", parts=inner)
    return to.TreeEntry("dict", names=[*map(str, parts)], parts=inner)


def _leaf(leaf: Any, graph: str) -> to.TreeEntry:
    if isinstance(leaf, Placeholder):
        return to.TreeEntry("array", index=leaf.position)
    if isinstance(leaf, TracedSize):
        return to.TreeEntry("size", size=spelled(leaf.size))
    if leaf is None or isinstance(leaf, bool | str):
        return to.TreeEntry("value", value=leaf)
    if isinstance(leaf, int | float):
        # JSON has no infinities, and some of its readers turn integers into floats.
        plain = int(leaf) if isinstance(leaf, int) else float(leaf)
        return to.TreeEntry("number", value=repr(plain))
    raise error("SR0735", graph=graph, found=trees.described(leaf))
