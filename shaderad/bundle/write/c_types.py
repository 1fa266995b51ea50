"""Structs of a manifest -> C structs with the layout of buffer elements.

Padding and packing place fields where C would not; static asserts check every struct against the
manifest's sizes and offsets in the host's compiler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shaderad.bundle.format.description import Layout
from shaderad.bundle.format.type_names import TypeReader
from shaderad.bundle.write.c_names import Identifiers
from shaderad.ir.types import (
    Kind,
    LocalArray,
    Matrix,
    Pointer,
    Scalar,
    Struct,
    Type,
    Vector,
    byte_count,
)

SCALARS: dict[Kind, str] = {
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.HALF: "uint16_t",
    Kind.INT: "int32_t",
    Kind.UINT: "uint32_t",
    Kind.BOOL: "uint32_t",
}
"""The C type of each scalar of a buffer."""
_REMARKS = {Kind.HALF: "half: the bits of a 16-bit float", Kind.BOOL: "bool: 0 or 1"}


class CTypes:
    """The structs of one manifest, each under a unique name."""

    def __init__(self, layouts: Mapping[str, Layout], names: Identifiers, prefix: str) -> None:
        self._layouts = layouts
        self._types = TypeReader(layouts)
        has_pointer = any(isinstance(self._types.type(name), Pointer) for name in layouts)
        self._structs = [name for name, layout in layouts.items() if layout.fields]
        self._pointer = names.claim(prefix, "pointer") if has_pointer else ""
        self._name_by_struct = {name: names.claim(prefix, name) for name in self._structs}

    def lines(self) -> Iterator[str]:
        """The definitions of all structs, inner ones first."""
        # A double may start at any 32-bit word.
        is_packed = any(
            s.type is Kind.DOUBLE for n in self._structs for s in self._layouts[n].scalars
        )
        if is_packed:
            yield from ("#pragma pack(push, 4)", "")
        if self._pointer:
            yield from self._pointer_lines()
        for name in self._structs:
            yield from self._struct_lines(name)
        if is_packed:
            yield from ("#pragma pack(pop)", "")

    def _pointer_lines(self) -> Iterator[str]:
        yield "// Elements of the array that the manifest names as the pointer's target."
        yield f"typedef struct {self._pointer} {{"
        yield "    uint32_t base; // the first element"
        yield "    uint32_t count;"
        yield f"}} {self._pointer};"
        yield ""

    def _struct_lines(self, name: str) -> Iterator[str]:
        layout, c_name = self._layouts[name], self._name_by_struct[name]
        fields = Identifiers()
        asserts = [f'static_assert(sizeof({c_name}) == {layout.byte_count}, "size of {c_name}");']
        end = 0
        yield f"typedef struct {c_name} {{"
        for field in layout.fields:
            start = next(s.byte_offset for s in layout.scalars if s.path[0] == field.name)
            yield from _padding(start - end, fields)
            t = self._types.type(field.type)
            c_field = fields.claim(field.name)
            yield f"    {self._declared(t, c_field)};{_remark(t)}"
            asserts.append(
                f"static_assert(offsetof({c_name}, {c_field}) == {start}, "
                f'"offset of {c_name}.{c_field}");'
            )
            end = start + byte_count(t)
        yield from _padding(layout.byte_count - end, fields)
        yield f"}} {c_name};"
        yield from asserts
        yield ""

    def _declared(self, t: Type, name: str) -> str:
        """The declaration of field `name` of type `t`, such as ``float name[3]``."""
        if isinstance(t, Vector):
            return self._declared(t.element, f"{name}[{t.count}]")
        if isinstance(t, Matrix):
            return self._declared(t.element, f"{name}[{t.row_count}][{t.column_count}]")
        if isinstance(t, LocalArray):
            return self._declared(t.element, f"{name}[{t.count}]")
        if isinstance(t, Struct):
            return f"{self._name_by_struct[t.name]} {name}"
        return f"{SCALARS[t.kind] if isinstance(t, Scalar) else self._pointer} {name}"


def _padding(byte_count: int, fields: Identifiers) -> Iterator[str]:
    if byte_count:
        yield f"    uint8_t {fields.claim('padding')}[{byte_count}];"


def _remark(t: Type) -> str:
    while isinstance(t, Vector | Matrix | LocalArray):
        t = t.element
    remark = _REMARKS.get(t.kind) if isinstance(t, Scalar) else None
    return f" // {remark}" if remark else ""
