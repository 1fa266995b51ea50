"""Decorated kernels, and functions that are called from Python -> IR."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shaderad.diagnostics import Span
from shaderad.frontend import expressions, statements
from shaderad.frontend.body import BodyReader, Readers, Scope, Unit
from shaderad.frontend.user_functions import ConstSlot, Slot, constant_of, specialise
from shaderad.ir.nodes import Buffer, Kernel, Uniform, Var
from shaderad.ir.pointers import POINTED, comes_apart, pointers_in, with_targets
from shaderad.ir.types import (
    INT,
    Access,
    BufferType,
    Pointer,
    ResourceType,
    Struct,
    Type,
)
from shaderad.language.annotations import ConstType, IndexType
from shaderad.language.host import PythonFunction, Standalone, UserFunction
from shaderad.language.signatures import kernel_signature, signature_of
from shaderad.language.values import (
    ArrayRef,
    Captures,
    ResourceRef,
    StructRef,
    Value,
)

_READERS = Readers(expression=expressions.read, block=statements.read_block)


def read_kernel(
    function: PythonFunction, const_values: Mapping[str, object]
) -> tuple[Kernel, Captures]:
    """The kernel for the given constants, and its captures."""
    own, signature = kernel_signature(function), signature_of(function)
    unit = Unit(_READERS)
    unit.register(signature.structs, function.def_span)
    body = BodyReader(unit, function)
    body.is_kernel = True
    body.index_names = own.index_names
    binder = _ParameterBinder(unit, body.scope)
    for name in own.index_names:
        body.scope.parameters[name] = Var(type=INT, name=name)
    for (name, t), span in zip(signature.parameters, signature.spans, strict=True):
        if isinstance(t, ConstType):
            body.scope.parameters[name] = constant_of(name, t, const_values, span)
        elif not isinstance(t, IndexType):
            body.scope.parameters[name] = binder.bind(name, (name,), t, span)
    read_body = body.read_body()
    kernel = Kernel(
        name=function.name,
        index_names=own.index_names,
        parameters=own.parameters,
        buffers=tuple(binder.buffers),
        uniforms=tuple(binder.uniforms),
        body=read_body,
        local_types=dict(body.scope.types),
        span=function.def_span,
    )
    return kernel, unit.captures


class _ParameterBinder:
    """Makes the buffers and uniforms of parameters; structs of arrays split into their fields."""

    def __init__(self, unit: Unit, scope: Scope) -> None:
        self._unit = unit
        self._scope = scope
        self.buffers: list[Buffer] = []
        self.uniforms: list[Uniform] = []

    def bind(self, name: str, path: tuple[str, ...], t: Type, span: Span) -> Value:
        """The value of a parameter, or of the part of it at `path`."""
        if isinstance(t, ResourceType):
            self._add_buffer(name, path, t, span)
            number = self._scope.reserve(f"{name}_{t.number_name}")
            own_path = (*path, t.number_name)
            return ResourceRef(
                ArrayRef(name, t), self._add_uniform(number, own_path, t.number, span)
            )
        if isinstance(t, BufferType):
            t = replace(t, element=self._with_targets(t.element, path))
            self._add_buffer(name, path, t, span)
            self._add_targets(t.element, path, span)
            return ArrayRef(name, t)
        if isinstance(t, Struct) and comes_apart(t):
            parts = tuple(
                (field, self.bind(self._scope.reserve(f"{name}_{field}"), (*path, field), f, span))
                for field, f in t.fields
            )
            return StructRef(t, parts)
        if isinstance(t, Pointer):
            t = self._with_targets(t, path)
            self._add_targets(t, path, span)
        return self._add_uniform(name, path, t, span)

    def _add_uniform(self, name: str, path: tuple[str, ...], t: Type, span: Span) -> Var:
        self.uniforms.append(Uniform(name=name, path=path, type=t, span=span))
        return Var(type=t, name=name)

    def _with_targets(self, t: Type, path: tuple[str, ...]) -> Type:
        """`t` with a new target array for each of its pointers."""

        def name(path: tuple[str, ...]) -> str:
            return self._scope.reserve("_".join([*(p for p in path if p != POINTED), "target"]))

        return with_targets(t, path, name)

    def _add_targets(self, t: Type, path: tuple[str, ...], span: Span) -> None:
        for pointer_path, pointer in pointers_in(t, path):
            target = BufferType(Access.IN, pointer.element)
            self._add_buffer(pointer.target, (*pointer_path, POINTED), target, span)

    def _add_buffer(self, name: str, path: tuple[str, ...], t: BufferType, span: Span) -> None:
        self.buffers.append(Buffer(name=name, path=path, type=t, span=span))
        self._unit.arrays[name] = t


def standalone(function: UserFunction, constants: Mapping[str, object]) -> Standalone:
    """The function without a kernel, for these constants and the current captures.

    Raises:
        LanguageError: For code that kernels do not have, at its Python line.
    """

    def fresh() -> tuple[Standalone, Captures]:
        unit, span = Unit(_READERS), function.def_span
        slots: list[Slot] = []
        for name, t in signature_of(function).parameters:
            if isinstance(t, ConstType):
                constant = constant_of(name, t, constants, span)
                slots.append(ConstSlot(constant, repr(constant.value)))
            else:
                slots.append(t)
        specialised = specialise(unit, function, tuple(slots), span)
        return Standalone(specialised, unit.structs), unit.captures

    return function.variants.of(constants, fresh)
