"""Greatest, Lists (`language/own_arrays.py`), and States arrays as Slang: their tags.

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
    """Writes the tag of a Greatest, Lists, or States array."""
    interface, functions = {
        Access.LISTS: ("ILists", _push_functions),
        Access.STATES: ("IStates", _state_functions),
        Access.GREATEST: ("IGreatest", _keep_functions),
    }[b.access]
    piece.open(f"struct {module.arrays.tag(b.name)} : {interface}")
    piece.add(*extent_lines)
    for head, lines in functions(module, b.name).items():
        piece.block(head, lines)
    piece.close()


def _state_functions(module: Module, name: str) -> dict[str, list[str]]:
    word = module.arrays.words(Role.OUTPUT, name, "index")
    return {
        "static void keep(uint index, uint2 state)": [_raised(word, "state")],
        "static uint2 latest(uint index)": [
            f"let word = latestOf({word});",
            "return uint2(uint(word), uint(word >> 32));",
        ],
    }


def _raised(word: str, pair: str) -> str:
    """A maximum of 64 bits, in which the second word of `pair` is the more significant one."""
    return f"{word}.max((uint64_t({pair}.y) << 32) | uint64_t({pair}.x));"


def _push_functions(module: Module, name: str) -> dict[str, list[str]]:
    start, item = (
        module.arrays.words(Role.OUTPUT, name, offset)
        for offset in ("offset", "offset - list + item")
    )
    guards = ["isThere"] if module.goes_past_end else []
    guards += [f"{pass_number(module)} == 0"] if module.runs_twice else []
    guard = f"if ({' && '.join(guards)}) " if guards else ""
    lines = [f"{guard}{item}.store(exchanged({start}, item));"]
    return {"static void push(uint offset, uint list, uint item)": lines}


def _keep_functions(module: Module, name: str) -> dict[str, list[str]]:
    head = "static void keep(uint index, uint2 pair)"
    if not module.runs_twice:
        return {head: [_raised(module.arrays.words(Role.OUTPUT, name, "index"), "pair")]}
    low, high = (
        module.arrays.words(Role.OUTPUT, name, offset) for offset in ("2 * index", "2 * index + 1")
    )
    lines = [
        f"if ({pass_number(module)} == 0)",
        f"    {high}.max(pair.y);",
        f"else if ({high}.load() == pair.y)",
        f"    {low}.max(pair.x);",
    ]
    return {head: lines}
