"""The signature of a graph that is built before it is called: a tree of arrays with named sizes.

It comes from annotations when the graph is built, and from the manifest when it is loaded.
Invariant: a call that binds has the element types, ranks and equal extents of the trace.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, get_args, get_origin, is_typeddict

from shaderad.arguments.kinds import Opened, resource_kind
from shaderad.arrays import trees
from shaderad.arrays.arrays import Array
from shaderad.arrays.containers import Container, Tuples, container_of, rebuilt
from shaderad.arrays.dtypes import ArrayAnnotation, element_type
from shaderad.arrays.numbers import host_number
from shaderad.calls.annotations import Annotations, Wanted, converted
from shaderad.calls.arguments import Arguments
from shaderad.device.devices import Device
from shaderad.diagnostics import Span, error
from shaderad.ir import sizes
from shaderad.ir.arrays import ArrayType
from shaderad.ir.types import (
    BOOL,
    FLOAT,
    INT,
    Matrix,
    ResourceType,
    Scalar,
    Struct,
    Type,
    Vector,
)
from shaderad.language.annotations import TypeObject, resource_type
from shaderad.language.structs import StructInfo, info_of
from shaderad.trace.calls import Form, Placeholder
from shaderad.trace.primitives import as_number


@dataclass(frozen=True, slots=True)
class GraphSignature:
    """The parameters of a graph."""

    name: str
    skeleton: dict[str, Any]
    """For each parameter, a tree with a `Placeholder` for each array."""
    wanted: tuple[Wanted, ...]
    """The required type of each array; all of them have extents."""
    names: tuple[str, ...]
    """The name of each array in messages."""
    fixed: frozenset[str] = frozenset()
    """Parameters whose values are part of the graph; a call does not pass them."""
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Numbers that are used for parameters that a call leaves out."""

    @property
    def types(self) -> tuple[ArrayType, ...]:
        """The types of the arrays, with symbols for named sizes."""
        return tuple(
            ArrayType(wanted.element, tuple(sizes.symbol(n) if isinstance(n, str) else n
                                            for n in wanted.extents or ()))
            for wanted in self.wanted
        )  # fmt: skip

    @property
    def size_names(self) -> tuple[str, ...]:
        """The names of sizes, in order of first use."""
        extents = (n for wanted in self.wanted for n in wanted.extents or ())
        return tuple(dict.fromkeys(n for n in extents if isinstance(n, str)))

    def given(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call in the order of the parameters.

        Raises:
            ShapeError: SR0363 to SR0366, where they do not match the parameters.
        """
        names = [name for name in self.skeleton if name not in self.fixed]
        if len(args) > len(names):
            raise error("SR0363", name=self.name, count=len(args), wanted=", ".join(names))
        argument_by_name = dict(zip(names, args, strict=False))
        for name, x in keywords.items():
            if name in argument_by_name:
                raise error("SR0366", name=self.name, parameter=name)
            if name not in names:
                raise error("SR0365", name=self.name, found=name, wanted=", ".join(names))
            argument_by_name[name] = x
        argument_by_name = {**self.defaults, **argument_by_name}
        missing = [name for name in names if name not in argument_by_name]
        if missing:
            raise error("SR0364", name=self.name, missing=", ".join(missing))
        return tuple(argument_by_name[name] for name in names)

    def arguments(self, arguments: Sequence[Any], device: Device) -> Arguments:
        """The arrays among the arguments of a call, of the wanted element types.

        Raises:
            ShapeError: SR0345 for the number of axes, SR0346 for a size, SR0350 to SR0367 for the
                elements, SR0333 for a container of another structure.
        """
        arrays: list[Array] = []
        structures: list[trees.Structure] = []
        leaves: list[Any] = []
        own = [tree for name, tree in self.skeleton.items() if name not in self.fixed]
        for tree, argument in zip(own, arguments, strict=True):
            places, structure = trees.flatten(tree, _kind_of)
            parts = trees.matched(structure, argument, f"an argument of `{self.name}`")
            placed = [
                self._placed(cast("Placeholder", place), part, arrays, device)
                for place, part in zip(places, parts, strict=True)
            ]
            own, inner = trees.flatten(structure.unflatten(placed))
            leaves += own
            structures.append(inner)
        return Arguments(trees.Structure(Tuples, None, tuple(structures)), leaves, tuple(arrays))

    def _placed(
        self,
        place: Placeholder | Opened,
        x: Any,
        arrays: list[Array],
        device: Device,
    ) -> Any:
        """Adds the arrays of the part `x` of an argument; its place in the skeleton of the call."""
        if isinstance(place, Opened):
            arrays.extend(self._resource(place, x, device))
            return place.kind.placed(place, x)
        name, wanted = self.names[place.position], self.wanted[place.position]
        arrays.append(converted(name, x, wanted, device))
        return place

    def _resource(self, leaf: Opened, x: Any, device: Device) -> tuple[Array, Array]:
        """The array of a texture or sampler, and its number."""
        content, _ = cast("Iterable[Placeholder]", (trees.children(leaf) or {}).values())
        t, name = self.wanted[content.position].resource, self.names[content.position]
        assert t is not None
        array = leaf.kind.bound(x, t, name, device)
        return array, host_number(leaf.kind.number(x), t.number, name, device)

    def form(self, arguments: Arguments) -> Form:
        """The named sizes of a call.

        Raises:
            ShapeError: SR0347, where two arguments disagree on one.
        """
        use_by_name: dict[str, tuple[int, str]] = {}
        for name, wanted, x in zip(self.names, self.wanted, arguments.arrays, strict=True):
            for extent, number in zip(wanted.extents or (), x.shape, strict=True):
                if isinstance(extent, int):
                    continue
                first, argument = use_by_name.setdefault(extent, (number, name))
                if first != number:
                    raise error("SR0347", name=extent, left=argument, first=first, right=name,
                                second=number)  # fmt: skip
        return Form(self.types, {name: number for name, (number, _) in use_by_name.items()})


def _kind_of(tree: Any) -> type[Container] | None:
    return None if isinstance(tree, Opened) else container_of(tree)


def signature_of(
    name: str, function: Callable[..., Any], annotations: Annotations
) -> GraphSignature:
    """The signature from the annotations of `function`, or from defaults where there are none.

    Raises:
        LanguageError: SR0730 if a parameter has neither; SR0731 if the name of a size cannot
            be used in an expression.
    """
    reader = _Reader(name, annotations)
    hints = inspect.get_annotations(function)
    skeleton: dict[str, Any] = {}
    fixed: set[str] = set()
    defaults: dict[str, Any] = {}
    for parameter in inspect.signature(function).parameters.values():
        key = parameter.name
        is_one = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        tree = reader.tree(hints[key], key) if is_one and key in hints else None
        if tree is None and parameter.default is not parameter.empty:
            tree = parameter.default
            fixed.add(key)
        elif all(as_number(leaf) is not None for leaf in trees.leaves(parameter.default)):
            defaults[key] = parameter.default
        if tree is None:
            raise error("SR0730", span_of(function), graph=name, name=key)
        skeleton[key] = tree
    return GraphSignature(name, skeleton, tuple(reader.wanted), tuple(reader.names),
                          frozenset(fixed), defaults)  # fmt: skip


class _Reader:
    """The arrays of a signature, numbered while its annotations are read."""

    def __init__(self, graph: str, annotations: Annotations) -> None:
        self.wanted: list[Wanted] = []
        self.names: list[str] = []
        self._graph = graph
        self._annotations = annotations

    def tree(
        self, annotation: object, name: str, space: Mapping[str, Any] | None = None
    ) -> Any | None:
        """A tree with a `Placeholder` for each array; `None` if the annotation holds none."""
        meaning = self._annotations.evaluated(annotation, space)
        if isinstance(meaning, ArrayAnnotation):
            return self._array(Wanted(element_type(meaning.element), meaning.extents), name)
        if isinstance(meaning, type) and meaning in _NUMBERS:
            return self._array(Wanted(_NUMBERS[meaning], ()), name)
        if isinstance(meaning, TypeObject):
            return self._array(Wanted(meaning.ir_type, ()), name)
        resource = resource_type(meaning)
        if resource is not None:
            return self._resource(resource, name)
        if get_origin(meaning) is tuple:
            parts = [self.tree(item, f"{name}[{k}]") for k, item in enumerate(get_args(meaning))]
            return None if None in parts else tuple(parts)
        return self._of_class(meaning, name) if isinstance(meaning, type) else None

    def _of_struct(self, info: StructInfo, name: str) -> Any | None:
        """One value of a struct, with an array without axes for each field."""
        parts: dict[str, Any] = {}
        for key, t in info.ir_type.fields:
            place = f"{name}.{key}"
            inner = info_of(info.nested[t]) if isinstance(t, Struct) else None
            if inner is not None:
                parts[key] = self._of_struct(inner, place)
            elif isinstance(t, ResourceType):
                parts[key] = self._resource(t, place)
            elif isinstance(t, Scalar | Vector | Matrix):
                parts[key] = self._array(Wanted(t, ()), place)
            else:
                return None
        return None if None in parts.values() else rebuilt(info.cls, parts)

    def _of_class(self, class_: type[Any], name: str) -> Any | None:
        """A struct, named tuple or typed dict."""
        info = info_of(class_)
        if info is not None:
            return self._of_struct(info, name)
        if not is_typeddict(class_) and not hasattr(class_, "_fields"):
            return None
        space = vars(sys.modules[class_.__module__])
        hints: dict[str, object] = inspect.get_annotations(class_)
        parts = {key: self.tree(hint, f"{name}.{key}", space) for key, hint in hints.items()}
        if None in parts.values():
            return None
        return parts if is_typeddict(class_) else class_(**parts)

    def _resource(self, t: ResourceType, name: str) -> Opened:
        """A texture or sampler, then the number that kernels read beside it."""
        kind = resource_kind(t)
        content = Wanted(t.element, kind.open_extents(len(self.wanted)), t)
        place = self._placeholder(content, name)
        number = self._placeholder(Wanted(t.number, ()), f"{name}.{t.number_name}")
        return kind.opened(t, place, number)

    def _array(self, wanted: Wanted, name: str) -> Placeholder | None:
        if wanted.extents is None:
            return None
        for extent in wanted.extents:
            if isinstance(extent, str) and not (extent.isidentifier() and extent.isascii()):
                raise error("SR0731", graph=self._graph, name=name, found=extent)
        return self._placeholder(wanted, name)

    def _placeholder(self, wanted: Wanted, name: str) -> Placeholder:
        self.wanted.append(wanted)
        self.names.append(name)
        return Placeholder(len(self.wanted) - 1)


def span_of(function: Callable[..., Any]) -> Span:
    """The line where a function is defined."""
    code = function.__code__
    return Span(code.co_filename, code.co_firstlineno)


_NUMBERS: dict[type, Type] = {float: FLOAT, int: INT, bool: BOOL}
