"""``@sad.struct``: a Python class with annotated fields -> an IR struct with methods.

Invariant: the class stays an ordinary Python class whose instances hold the fields; its
`StructInfo` has what kernels need.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from functools import cached_property
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from shaderad.diagnostics import Error, LanguageError, Span, error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.ir.types import Pair, Struct, Tuple, Type, Void
from shaderad.language.annotations import STRUCT_ATTRIBUTE, ConstType, IndexType, resolve
from shaderad.language.device_arrays import is_device_array
from shaderad.language.host import (
    PythonFunction,
    UserFunction,
    caller_globals,
    caller_locals,
    names_in_annotations,
)
from shaderad.language.source import source_of

__all__ = ["struct"]

C = TypeVar("C", bound=type)
_REFUSED_MEMBERS: tuple[type, ...] = (staticmethod, classmethod, property)
_DATACLASS_METHODS = frozenset({"__init__", "__repr__", "__eq__", "__hash__", "__post_init__"})


class StructInfo:
    """Fields and methods of a struct class."""

    def __init__(
        self, cls: type, globals_: Mapping[str, object], locals_: Mapping[str, object]
    ) -> None:
        self.cls = cls
        self.name = cls.__name__
        self.annotations: dict[str, object] = inspect.get_annotations(cls)
        named = names_in_annotations(self.annotations)
        self._globals = globals_
        self._locals = {name: locals_[name] for name in named if name in locals_}
        self.methods: dict[str, UserFunction] = {}
        self.nested: dict[Struct, type] = {}
        """The classes of structs in the fields, at any depth."""
        self._is_resolving = False

    @cached_property
    def ir_type(self) -> Struct:
        """The struct's type; resolved at first use, so fields may name later classes.

        Raises:
            LanguageError: SR0301 for an annotation that is no field type, SR0247 for a struct
                that contains itself.
        """
        if self._is_resolving:
            raise error("SR0247", self.span(), name=self.name)
        self._is_resolving = True
        try:
            fields = tuple((n, self._field_type(n, a)) for n, a in self.annotations.items())
        finally:
            self._is_resolving = False
        return Struct(self.name, fields)

    @property
    def defaults(self) -> dict[str, object]:
        return {n: self.cls.__dict__[n] for n in self.annotations if n in self.cls.__dict__}

    def _field_type(self, field: str, annotation: object) -> Type:
        namespace = {**self._globals, **self._locals, self.name: self.cls}
        try:
            t = resolve(annotation, namespace, None, self.nested)
        except LanguageError as failure:
            if failure.span is not None:
                raise
            # The span of a field takes a search of the file: only errors need it.
            t = resolve(annotation, namespace, self.span(field), self.nested)
        if isinstance(t, Void | Tuple | Pair | ConstType | IndexType):
            raise error("SR0301", self.span(field), found=str(t), why="it is no field type")
        return t

    def span(self, field: str = "") -> Span | None:
        """The position of the class, or of one of its fields; `None` without source text."""
        try:
            lines, start = inspect.findsource(self.cls)
            file = inspect.getsourcefile(self.cls) or ""
        except (OSError, TypeError):
            return None
        wanted = (f"{field}:", f"{field} :") if field else f"class {self.name}"
        for number in range(start, len(lines)):
            text = lines[number]
            column = len(text) - len(text.lstrip())
            if text.lstrip().startswith(wanted):
                return Span(file, number + 1, column, len(text.rstrip()))
        return None


@api_boundary
def struct(cls: C) -> C:
    """Makes a class with annotated fields a struct of the kernel language.

    Fields are value types or arrays (``vertices: sad.In[float3]``); methods are functions that
    kernels may call. In Python the class gets a constructor by fields, ``repr`` and ``==``.

    Raises:
        LanguageError: SR0103 for anything but a class, SR0104 for base classes, and for members
            that kernels do not have.
    """
    if not isinstance(cls, type):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise error("SR0103", None, found=f"`{cls!r}`")
    locals_ = caller_locals(3)
    info = StructInfo(cls, caller_globals(3), locals_)
    if cls.__bases__ != (object,):
        raise _refused(info.span(), cls, "base classes",
                       "repeat the fields, or hold the other struct as a field")  # fmt: skip
    for name, member in list(vars(cls).items()):
        method = _method(cls, name, member, locals_)
        if method is not None:
            info.methods[name] = method
            setattr(cls, name, method)
    cls = _with_constructor(cls, info)
    members = {"__eq__": _equal, "__hash__": None, "__new__": _new, STRUCT_ATTRIBUTE: info}
    for name, member in members.items():
        setattr(cls, name, member)
    return cls


def info_of(thing: object) -> StructInfo | None:
    """The struct of a class or an instance; `None` for other objects."""
    cls = thing if isinstance(thing, type) else type(thing)
    info = cls.__dict__.get(STRUCT_ATTRIBUTE)
    return info if isinstance(info, StructInfo) else None


def check_fields(value: object, t: Struct, name: str) -> None:
    """Raises SR0355 where the struct class of `value` has other fields than `t`.

    That happens if a class is defined again after the kernel that takes it was read.
    """
    info = None if isinstance(value, type) else info_of(value)
    if info is not None and set(info.annotations) != set(t.type_by_field):
        found = f"`{info.name}` with {', '.join(info.annotations) or 'none'}"
        raise error("SR0355", None, name=name, type=t, wanted=", ".join(t.type_by_field),
                    found=found)  # fmt: skip


def _method(
    cls: type, name: str, member: object, locals_: Mapping[str, object]
) -> UserFunction | None:
    if isinstance(member, _REFUSED_MEMBERS):
        inner: object = getattr(member, "fget", None) or getattr(member, "__func__", None)
        raise _refused(_span_of(inner), cls, f"a {type(member).__name__}: `{name}`",
                       "write a method, or a `@sad.function` outside of the class")  # fmt: skip
    if name in _DATACLASS_METHODS and isinstance(member, FunctionType):
        raise _refused(_span_of(member), cls, f"its own `{name}`",
                       "structs are made from their fields; "
                       "write a `@sad.function` that returns one")  # fmt: skip
    if not isinstance(member, FunctionType | PythonFunction):
        return None
    method = UserFunction(member, locals_) if isinstance(member, FunctionType) else member
    if not isinstance(method, UserFunction):
        return None
    method.owner = cls
    return method


def _refused(span: Span | None, cls: type, found: str, help_: str) -> Error:
    return error("SR0104", span, name=cls.__name__, found=found, help=help_)


def _span_of(function: object) -> Span | None:
    return source_of(function).span if isinstance(function, FunctionType) else None


def _with_constructor(cls: C, info: StructInfo) -> C:
    # dataclass would resolve annotations itself, in other namespaces than `resolve`.
    cls.__annotations__ = dict.fromkeys(info.annotations, object)
    try:
        return cast("C", dataclasses.dataclass(eq=False)(cls))
    except (TypeError, ValueError) as failure:
        raise _refused(info.span(), cls, str(failure),
                       "give defaults to the last fields only, "
                       "and only numbers") from failure  # fmt: skip
    finally:
        cls.__annotations__ = info.annotations


def _new(cls: Any, *args: object, **fields: object) -> object:
    """An object of the class; from device arrays, an array of structs."""
    if not any(map(is_device_array, (*args, *fields.values()))):
        return object.__new__(cls)
    from shaderad.functions.kernel_names import struct_array

    info = info_of(cls)
    assert info is not None
    named = dict(zip(info.annotations, args, strict=False)) | fields
    array = struct_array(info, {**info.defaults, **named})
    return object.__new__(cls) if array is None else array


def _equal(self: object, other: object) -> bool:
    if type(self) is not type(other):
        return NotImplemented
    info = info_of(self)
    assert info is not None
    return all(np.array_equal(getattr(self, n), getattr(other, n)) for n in info.annotations)
