"""Greatest and Lists arrays (`language/own_arrays.py`) as Slang: their tags, and writes to them.

Where the device has no 64-bit atomics, a kernel with a Greatest array runs twice. A word of the
constant buffer, `PASS`, tells the dispatches of its one program apart.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shaderad.ir.nodes import Buffer
from shaderad.ir.types import Access
from shaderad.lower.bindings import Lowered, Role, Word, WordKind

if TYPE_CHECKING:
    from shaderad.lower.write.module import Module
    from shaderad.lower.write.text import Piece

PASS = Word(WordKind.BITS, "pass", 0)
"""The number of the pass: 0, then 1."""


def pass_number(module: Module) -> str:
    """The text of the number of the pass."""
    return module.word(PASS, "pass_number")


def passes(lowered: Lowered) -> tuple[Lowered, ...]:
    """The dispatches of a program: one, or two that differ in `PASS`."""
    if PASS not in lowered.words:
        return (lowered,)
    words = tuple(replace(word, index=1) if word == PASS else word for word in lowered.words)
    filled = tuple(replace(resource, fill_word=None) for resource in lowered.resources)
    return lowered, replace(lowered, words=words, resources=filled)


def write_own_tag(piece: Piece, module: Module, b: Buffer, extent_lines: list[str]) -> None:
    """Writes the tag of a Greatest or Lists array."""
    is_list = b.access is Access.LISTS
    piece.open(f"struct {module.arrays.tag(b.name)} : {'ILists' if is_list else 'IGreatest'}")
    piece.add(*extent_lines)
    if is_list:
        head = "static void push(uint offset, uint list, uint item)"
        piece.block(head, _push_lines(module, b.name))
    else:
        piece.block("static void keep(uint index, uint2 pair)", _keep_lines(module, b.name))
    piece.close()


def _push_lines(module: Module, name: str) -> list[str]:
    start, item = (
        module.arrays.words(Role.OUTPUT, name, offset)
        for offset in ("offset", "offset - list + item")
    )
    guards = ["isThere"] if module.goes_past_end else []
    guards += [f"{pass_number(module)} == 0"] if module.runs_twice else []
    guard = f"if ({' && '.join(guards)}) " if guards else ""
    return [f"{guard}{item}.store(exchanged({start}, item));"]


def _keep_lines(module: Module, name: str) -> list[str]:
    if not module.runs_twice:
        word = module.arrays.words(Role.OUTPUT, name, "index")
        return [f"{word}.max((uint64_t(pair.y) << 32) | uint64_t(pair.x));"]
    low, high = (
        module.arrays.words(Role.OUTPUT, name, offset) for offset in ("2 * index", "2 * index + 1")
    )
    return [
        f"if ({pass_number(module)} == 0)",
        f"    {high}.max(pair.y);",
        f"else if ({high}.load() == pair.y)",
        f"    {low}.max(pair.x);",
    ]
