"""The IR struct and the methods of a class that ``@sad.struct`` decorates."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cached_property
from typing import Any, cast

import numpy as np

from shaderad.diagnostics import LanguageError, Span, error
from shaderad.ir.types import BufferType, Pair, Struct, Tuple, Type, Void, is_float
from shaderad.language.annotations import STRUCT_ATTRIBUTE, ConstType, IndexType, resolve
from shaderad.language.host import UserFunction, named_in_annotations


class StructInfo:
    """Fields and methods of a struct class."""

    def __init__(
        self, cls: type, globals_: Mapping[str, object], locals_: Mapping[str, object]
    ) -> None:
        self.cls = cls
        self.name = cls.__name__
        self.annotations: dict[str, object] = inspect.get_annotations(cls)
        self._globals = globals_
        self._locals = named_in_annotations(self.annotations, locals_)
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
            # The span of a field is found by a search of the file, which only errors need.
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


def info_of(thing: object) -> StructInfo | None:
    """The struct of a class or an instance; `None` for other objects."""
    cls = thing if isinstance(thing, type) else type(thing)
    info = cls.__dict__.get(STRUCT_ATTRIBUTE)
    return info if isinstance(info, StructInfo) else None


def as_declared(value: Any, t: Type) -> Any:
    """The content of a field, with floats for the ints of the host where `t` declares floats.

    So it has derivatives, as it has where a kernel reads it.
    """
    t = t.element if isinstance(t, BufferType) else t
    if isinstance(t, Struct) and isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        types = t.type_by_field
        return {key: as_declared(x, types[key]) if key in types else x for key, x in fields}
    if type(value) is float or not is_float(t):
        return value
    if type(value) is int:
        return float(value)
    if class_of(value) in (list, tuple):
        return class_of(value)([as_declared(part, t) for part in value])
    is_numpy = issubclass(class_of(value), np.ndarray | np.generic)
    return np.asarray(value, np.float64) if is_numpy and value.dtype.kind in "iu" else value


def class_of(value: Any) -> Any:
    """The class of `value`."""
    return cast("Any", type(value))


def check_fields(value: object, t: Struct, name: str) -> None:
    """Raises SR0355 where the struct class of `value` has other fields than `t`.

    That happens if a class is defined again after the kernel that takes it was read.
    """
    info = None if isinstance(value, type) else info_of(value)
    if info is not None and set(info.annotations) != set(t.type_by_field):
        own_fields = f"`{info.name}` with {', '.join(info.annotations) or 'none'}"
        raise error("SR0355", None, name=name, type=t, wanted=", ".join(t.type_by_field),
                    found=own_fields)  # fmt: skip
