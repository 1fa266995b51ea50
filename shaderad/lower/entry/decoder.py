"""The last pass of the primal of a Min or Max array: order-preserving words become values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shaderad.ir.nodes import Buffer
from shaderad.ir.types import Kind, scalars
from shaderad.lower.bindings import Role, Word, WordKind
from shaderad.lower.entry.points import open_entry_point
from shaderad.lower.write.arrays import SlangBuffer, extreme_fill
from shaderad.lower.write.piece import Piece

if TYPE_CHECKING:
    from shaderad.lower.write.module import Module

_INDEX = "index"


def write_decoder(module: Module, b: Buffer, *, is_first: bool) -> tuple[Piece, Piece, str]:
    """Declarations, entry point and its name; decodes in place.

    Args:
        module: The module of the pass.
        b: The Min or Max array.
        is_first: True if no earlier dispatch binds the array, since the kernel never writes it.
    """
    t = b.type.element
    scalar = next(iter(scalars(t)))
    fill = extreme_fill(b) if is_first else None
    module.arrays.need(Role.OUTPUT, b.name, t, SlangBuffer.WRITE, fill_word=fill)
    declarations = module.arrays.bind()
    piece = Piece()
    name = module.names.make(f"{b.name}_decode")
    count = module.word(Word(WordKind.THREAD_COUNT), "thread_count")
    row = module.word(Word(WordKind.GROUP_COUNT_X), "group_count_x")
    text = module.arrays.words(Role.OUTPUT, b.name, _INDEX)
    decoded = f"{scalar}.decode({text})"
    bits = decoded if scalar.kind is Kind.UINT else f"asuint({decoded})"
    open_entry_point(module, piece, name)
    piece.add(f"uint {_INDEX} = threadNumber(group, {row});")
    piece.add(f"if ({_INDEX} < {count})")
    piece.indented(f"{text} = {bits};")
    piece.close()
    return declarations, piece, name
