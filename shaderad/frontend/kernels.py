"""A decorated kernel -> IR: parameters bound, body read, functions specialised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shaderad.diagnostics import Span, error
from shaderad.frontend import expressions, statements, user_calls
from shaderad.frontend.body import BodyReader, Readers, Unit
from shaderad.frontend.constants import constant_of
from shaderad.frontend.scope import Scope
from shaderad.ir.nodes import Buffer, Kernel, KernelParameter, Uniform, Var
from shaderad.ir.pointers import POINTED, comes_apart, pointers_in, with_targets
from shaderad.ir.types import (
    INT,
    Access,
    BufferType,
    Pair,
    Pointer,
    Struct,
    Tuple,
    Type,
    Void,
)
from shaderad.language.annotations import ConstType, IndexType
from shaderad.language.captures import Captures
from shaderad.language.host import PythonFunction
from shaderad.language.signatures import RESERVED, signature_of
from shaderad.language.values import ArrayRef, StructRef, Value

READERS = Readers(
    expression=expressions.read, block=statements.read_block, specialise=user_calls.specialise
)


@dataclass(frozen=True)
class KernelSignature:
    """The parameters of a kernel, known without its body."""

    index_names: tuple[str, ...]
    parameters: tuple[KernelParameter, ...]
    spans: tuple[Span, ...]
    """Source position of each parameter."""


def kernel_signature(function: PythonFunction) -> KernelSignature:
    """The parameters of a kernel.

    Raises:
        LanguageError: SR0215 for reserved names, SR0225 for an Index after other parameters,
            SR0226 for a result annotation, SR0301 for types that are no kernel parameters.
    """
    signature = signature_of(function)
    index_names: list[str] = []
    parameters: list[KernelParameter] = []
    spans: list[Span] = []
    for (name, t), span in zip(signature.parameters, _spans(function), strict=True):
        if name in RESERVED:
            raise error("SR0215", span, name=name)
        if isinstance(t, IndexType):
            if parameters:
                raise error("SR0225", span, name=name)
            index_names.append(name)
            continue
        parameters.append(_parameter(name, t, span))
        spans.append(span)
    if signature.result is not None and not isinstance(signature.result, Void):
        where = function.tree.returns or function.tree
        raise error("SR0226", function.source.of(where), found=signature.result)
    return KernelSignature(tuple(index_names), tuple(parameters), tuple(spans))


def _spans(function: PythonFunction) -> list[Span]:
    arguments = function.tree.args
    return [function.source.of(node) for node in (*arguments.posonlyargs, *arguments.args)]


def _parameter(name: str, t: Type, span: Span) -> KernelParameter:
    if isinstance(t, ConstType):
        return KernelParameter(name=name, type=t.value, is_const=True)
    if isinstance(t, Void | Tuple | Pair):
        raise error("SR0301", span, found=str(t), why="no kernel takes it as a parameter")
    return KernelParameter(name=name, type=t)


def read_kernel(
    function: PythonFunction, const_values: Mapping[str, object]
) -> tuple[Kernel, Captures]:
    """The kernel for the given constants, and its captures."""
    signature = kernel_signature(function)
    unit = Unit(READERS)
    unit.register(signature_of(function).structs, function.def_span)
    scope = Scope(function.names, {})
    binder = _ParameterBinder(unit, scope, function)
    for name in signature.index_names:
        scope.parameters[name] = Var(type=INT, name=name)
    for (name, t), span in zip(signature_of(function).parameters, _spans(function), strict=True):
        if isinstance(t, ConstType):
            scope.parameters[name] = constant_of(name, t, const_values, span)
        elif not isinstance(t, IndexType):
            scope.parameters[name] = binder.bind(name, (name,), t)
    body = BodyReader(unit, function, scope)
    body.is_kernel = True
    body.index_names = signature.index_names
    read_body = user_calls.read_statements(body, function)
    kernel = Kernel(
        name=function.name,
        index_names=signature.index_names,
        parameters=signature.parameters,
        buffers=tuple(binder.buffers),
        uniforms=tuple(binder.uniforms),
        body=read_body,
        local_types=dict(scope.types),
        span=function.def_span,
    )
    return kernel, unit.captures


@dataclass
class _ParameterBinder:
    """Makes the buffers and uniforms of parameters; structs of arrays split into their fields."""

    unit: Unit
    scope: Scope
    function: PythonFunction

    def __post_init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.uniforms: list[Uniform] = []
        names = (name for name, _ in signature_of(self.function).parameters)
        self._spans = dict(zip(names, _spans(self.function), strict=True))

    def bind(self, name: str, path: tuple[str, ...], t: Type) -> Value:
        """The value of a parameter, or of the part of it at `path`."""
        if isinstance(t, BufferType):
            t = BufferType(t.access, self._targets(t.element, path), t.rank)
            self._add_buffer(name, path, t)
            self._add_targets(t.element, path)
            return ArrayRef(name, t)
        if isinstance(t, Struct) and comes_apart(t):
            parts = tuple(
                (field, self.bind(self.scope.reserve(f"{name}_{field}"), (*path, field), inner))
                for field, inner in t.fields
            )
            return StructRef(t, parts)
        if isinstance(t, Pointer):
            t = self._targets(t, path)
            self._add_targets(t, path)
        self.uniforms.append(Uniform(name=name, path=path, type=t, span=self._spans[path[0]]))
        return Var(type=t, name=name)

    def _targets(self, t: Type, path: tuple[str, ...]) -> Type:
        """`t` with a new target array for each of its pointers."""

        def name(path: tuple[str, ...]) -> str:
            return self.scope.reserve("_".join([*(p for p in path if p != POINTED), "target"]))

        return with_targets(t, path, name)

    def _add_targets(self, t: Type, path: tuple[str, ...]) -> None:
        for at, pointer in pointers_in(t, path):
            target = BufferType(Access.IN, pointer.element)
            self._add_buffer(pointer.target, (*at, POINTED), target)

    def _add_buffer(self, name: str, path: tuple[str, ...], t: BufferType) -> None:
        self.buffers.append(Buffer(name=name, path=path, type=t, span=self._spans[path[0]]))
        self.unit.arrays[name] = t
