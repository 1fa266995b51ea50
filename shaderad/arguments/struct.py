"""Structs as arguments: one uniform, or the arguments of their fields if they hold arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shaderad.arguments.kinds import ArgumentPart, ArgumentParts, kind_of_resource, register
from shaderad.arguments.number import NumberKind
from shaderad.arrays.containers import Structs, struct_class, struct_fields
from shaderad.diagnostics import error
from shaderad.ir.pointers import comes_apart
from shaderad.ir.types import Struct
from shaderad.language.structs import check_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shaderad.ir.types import Type


class StructKind(NumberKind):
    """Structs, and dicts that stand for them."""

    def parts(self, value: Any, t: Type) -> ArgumentParts | None:
        assert isinstance(t, Struct)
        if not comes_apart(t):
            return None
        fields = struct_fields(value) or {}
        parts = [ArgumentPart((name,), fields[name], part) for name, part in t.fields]
        return ArgumentParts(Structs, (struct_class(value), tuple(t.type_by_field)), parts)


register(StructKind(), Struct)


def at_path(values: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The value of a parameter, of a field of a struct parameter, or the number of a resource.

    Raises:
        ShapeError: SR0369, where a field is missing.
    """
    value = values[path[0]]
    for depth, field in enumerate(path[1:], start=1):
        kind = kind_of_resource(value)
        if kind is not None:
            return kind.number(value)
        fields = struct_fields(value) or {}
        if field not in fields:
            what = f"a `{type(value).__name__}`"
            raise error("SR0369", name=".".join(path[:depth]), field=field, found=what)
        value = fields[field]
    return value


def check_struct(value: Any, t: Struct, name: str) -> None:
    """Raises SR0355 if the class of `value`, or of a struct in it, has other fields than `t`."""
    check_fields(value, t, name)
    fields = struct_fields(value) or {}
    for field, part in t.fields:
        if isinstance(part, Struct) and field in fields:
            check_struct(fields[field], part, f"{name}.{field}")
