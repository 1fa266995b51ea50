"""The graphs of a manifest -> callable graphs whose calls and derivatives run plans."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Container, Sequence
from typing import Any

from shaderad.arguments.kinds import Opened, resource_kind
from shaderad.arrays import trees
from shaderad.arrays.traced_sizes import shown
from shaderad.bundle.format.entries import ArrayEntry, GraphEntry, TreeEntry, resource_type
from shaderad.bundle.format.entry_rules import check_graph
from shaderad.bundle.format.type_names import TypeReader
from shaderad.bundle.read.loaded_files import Files
from shaderad.bundle.read.plan_loading import DEPTH_LIMIT, built_entry, shape_in, size_in
from shaderad.calls.annotations import Wanted
from shaderad.calls.signatures import GraphSignature
from shaderad.differentiate.loaded_graphs import LoadedGraph
from shaderad.execute.prebuilt import PrebuiltGraph
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.sizes import Shape
from shaderad.ir.types import ResourceType, Type
from shaderad.trace.calls import Placeholder, TracedFunction


def loaded_graph(files: Files, types: TypeReader, entry: GraphEntry) -> LoadedGraph:
    """The graph that `entry` describes.

    Raises:
        CompileError: SR0722, if a file is missing or was changed.
        KeyError, ValueError: The manifest contradicts itself.
    """
    return _GraphReader(files, types, entry).graph()


Resources = Sequence[ResourceType | None]
"""For each input, its type if it is a texture or sampler."""


class _GraphReader:
    """Reads one graph of a manifest."""

    def __init__(self, files: Files, types: TypeReader, entry: GraphEntry) -> None:
        self._files = files
        self._types = types
        self._entry = entry

    def graph(self) -> LoadedGraph:
        entry, folder = self._entry, str(self._files.folder)
        check_graph(entry)
        inputs, outputs = (
            tuple(Value(ArrayType(*self._array(array))) for array in arrays)
            for arrays in (entry.inputs, entry.outputs)
        )
        built = built_entry(self._files, self._types, entry)
        size_names = frozenset(entry.sizes)
        variant = TracedFunction(
            graph=PrebuiltGraph(inputs, outputs, built),
            out=_tree(entry.result, len(outputs), size_names),
            captured=(),
            constants=(),
            looked_at=(),
            numbers=(),
            equal_sizes=tuple(
                (size_in(a, size_names), size_in(b, size_names)) for a, b in entry.assumes.equal
            ),
            positive_sizes=shape_in(entry.assumes.positive, size_names),
        )
        return LoadedGraph(self._signature(inputs), variant, folder)

    def _signature(self, inputs: Sequence[Value]) -> GraphSignature:
        entry, size_names = self._entry, frozenset(self._entry.sizes)
        resources = [self._resource(array) for array in entry.inputs]
        skeleton = {
            p.name: _tree(p.tree, len(inputs), size_names, resources) for p in entry.parameters
        }
        arrays = [leaf for leaf in trees.leaves(skeleton) if isinstance(leaf, Placeholder)]
        if [leaf.position for leaf in arrays] != [*range(len(inputs))]:
            raise ValueError("inputs other than those of its parameters")
        return GraphSignature(
            name=entry.name,
            skeleton=skeleton,
            wanted=tuple(
                Wanted(v.element, tuple(array.shape), resource)
                for v, array, resource in zip(inputs, entry.inputs, resources, strict=True)
            ),
            names=tuple(array.name for array in entry.inputs),
            fixed=frozenset(p.name for p in entry.parameters if p.tree.kind == "value"),
            defaults={
                p.name: _tree(p.default, 0, size_names)
                for p in entry.parameters
                if p.default is not None
            },
        )

    def _resource(self, array: ArrayEntry) -> ResourceType | None:
        element = self._types.type(array.type)
        t = resource_type(array.resource, array.access, element, len(array.shape))
        return t if isinstance(t, ResourceType) else None

    def _array(self, array: ArrayEntry) -> tuple[Type, Shape]:
        return self._types.type(array.type), shape_in(array.shape, self._entry.sizes)


def _tree(
    entry: TreeEntry,
    count: int,
    in_scope: Container[str],
    resources: Resources = (),
    depth: int = 0,
) -> Any:
    """The tree of `entry`, with a `Placeholder` for each of at most `count` arrays."""
    if depth > DEPTH_LIMIT:
        raise ValueError(f"a container inside of {DEPTH_LIMIT} others")
    if entry.kind == "array":
        if not 0 <= entry.index < count:
            raise ValueError(f"an array {entry.index}, which is none")
        return Placeholder(entry.index)
    if entry.kind in ("texture", "sampler"):
        return _resource(entry, resources)
    if entry.kind == "size":
        return shown(size_in(entry.size, in_scope))
    if entry.kind == "number":
        return _number(str(entry.value))
    if entry.kind == "value":
        return entry.value
    parts = [_tree(part, count, in_scope, resources, depth + 1) for part in entry.parts]
    if entry.kind == "dict":
        return dict(zip(entry.names, parts, strict=True))
    if entry.kind == "named tuple":
        return _named_tuple(entry.name, entry.names, parts)
    return tuple(parts) if entry.kind == "tuple" else parts


def _resource(entry: TreeEntry, resources: Resources) -> Opened:
    """A texture or sampler of the inputs, and the number beside it."""
    content, number = (Placeholder(part.index) for part in entry.parts)
    t = resources[content.position] if 0 <= content.position < len(resources) else None
    if number.position != content.position + 1:
        raise ValueError(f"a {entry.kind} without its number")
    if t is not None and entry.kind == resource_kind(t).noun:
        return resource_kind(t).opened(t, content, number)
    raise ValueError(f"a {entry.kind}, which is none")


def _number(text: str) -> int | float:
    return int(text) if text.removeprefix("-").isdecimal() else float(text)


def _named_tuple(name: str, names: Sequence[str], parts: Sequence[Any]) -> Any:
    """A named tuple of a new class with the name and fields of the original class."""
    if len(names) != len(parts):
        raise ValueError(f"a `{name}` of {len(parts)} fields")
    tuple_class: Any = namedtuple(name, names)  # pyright: ignore[reportUntypedNamedTuple]
    return tuple_class(*parts)
