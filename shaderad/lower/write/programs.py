"""The parts of a module -> its program: head, structs, constant buffer, and the parts in order."""

from __future__ import annotations

from shaderad.compiler.artifact import Binding, BindingAccess, Program
from shaderad.diagnostics import Span
from shaderad.ir.pointers import without_targets
from shaderad.ir.types import LocalArray, Struct, Type
from shaderad.lower.write.module import Module
from shaderad.lower.write.names import imported_modules
from shaderad.lower.write.structs import write_layout, write_struct
from shaderad.lower.write.text import Piece
from shaderad.rules.nodes import primal_name


def assemble(
    module: Module, entry: str, parts: list[Piece | None], imports: tuple[str, ...] | None = None
) -> Program:
    """The program of a module: head, types, constant buffer, and the parts in order.

    Args:
        module: Whose text is complete.
        entry: The name of its entry point.
        parts: Its text.
        imports: Modules of the library beside `shaderad`; `None` for those whose names it uses.
    """
    parameters = Binding(module.variant.first_binding, "parameters", BindingAccess.UNIFORM)
    types = [*_struct_pieces(module), _parameters(module, parameters)]
    pieces = [*types, *(part for part in parts if part is not None)]
    head = Piece()
    source = f"`{primal_name(module.kernel)}` in {module.kernel.span.file_name}"
    head.add(f"// {entry}: made by shaderad from {source}", "import shaderad;")
    further = imports
    if further is None:
        further = imported_modules(text for piece in pieces for text, _ in piece.lines)
    head.add(*(f"import {name};" for name in further))
    lines: list[tuple[str, Span | None]] = []
    for part in (head, *pieces):
        if not part.lines:
            continue
        first = 0 if part.lines[0][0] else 1
        lines += [*([("", None)] if lines else []), *part.lines[first:]]
    return Program(
        name=entry,
        slang="\n".join(text for text, _ in lines) + "\n",
        workgroup=(module.workgroup_size, 1, 1),
        bindings=(parameters, *module.arrays.bindings),
        parameter_words=tuple(module.word_types),
        features=frozenset(module.features | module.types.features),
        spans=tuple(span for _, span in lines),
        space=module.variant.space,
    )


def _parameters(module: Module, binding: Binding) -> Piece:
    """The constant buffer."""
    piece = Piece()
    words = [f"{spelled} {name};" for name, spelled in module.word_types.items()]
    piece.block("struct Parameters", words)
    module.declare(piece, binding, f"ConstantBuffer<Parameters> {binding.name}")
    if module.holds_parameters:
        piece.add("static Parameters heldParameters;")
    return piece


def _struct_pieces(module: Module) -> list[Piece]:
    names = module.types.structs
    stored = [b.type.element for b in module.kernel.buffers]
    stored += [*(u.type for u in module.kernel.uniforms), *module.stored_types]
    elements = {inner for t in stored for inner in _inside(t)}
    return [
        *(write_struct(module, t, names[t]) for t in list(names)),
        *(write_layout(module, t, names[t]) for t in list(names) if t in elements),
        *(write_struct(module, t, n) for t, n in list(module.types.tuples.items())),
    ]


def _inside(t: Type) -> list[Type]:
    """`t` and the types of its parts."""
    if isinstance(t, Struct):
        return [without_targets(t), *(inner for _, f in t.fields for inner in _inside(f))]
    if isinstance(t, LocalArray):
        return [t, *_inside(t.element)]
    return [t]
