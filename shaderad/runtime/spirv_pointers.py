"""SPIR-V that makes each pointer in the block that uses it.

naga keeps what a block made for blocks outside of it in a local variable, and refuses the module
where that is a pointer: the optimiser makes a pointer once, in the condition of a loop, and uses
it after the loop as well. Invariant: the module does the same.
"""

from __future__ import annotations

import struct

from shaderad.runtime.spirv import (
    BOUND,
    HEADER_WORDS,
    LAST_ID,
    Instruction,
    MalformedSpirvError,
    instructions,
    words_of,
)

_CALL = 57
_LABEL = 248
_CHAINS = frozenset({65, 66})
"""OpAccessChain, OpInBoundsAccessChain."""
_POINTER_AT = {
    61: 2,  # OpLoad
    62: 0,  # OpStore
    65: 2,
    66: 2,
    **dict.fromkeys(range(227, 243), 2),  # OpAtomicLoad to OpAtomicXor
    228: 0,  # OpAtomicStore
    6035: 2,  # OpAtomicFAddEXT
}
"""Where among the operands of an instruction a pointer is; arguments of calls are others."""
_FIRST_ARGUMENT = 3


def with_pointers_in_place(module: bytes) -> bytes:
    """The module with a copy of each access chain in each block that uses it.

    One that is malformed stays as it is.
    """
    try:
        return _Rewriting(words_of(module)).run()
    except (MalformedSpirvError, IndexError):
        return module


class _Rewriting:
    def __init__(self, words: tuple[int, ...]) -> None:
        self._words = words
        self._bound = words[BOUND]
        self._out = list(words[:HEADER_WORDS])
        self._made: dict[int, tuple[int, Instruction]] = {}
        """Each access chain, and the block that makes it."""
        self._block = 0
        self._here: dict[int, int] = {}
        """The copies in this block."""

    def run(self) -> bytes:
        for opcode, operands in instructions(self._words):
            if opcode == _LABEL:
                self._block, self._here = operands[0], {}
            moved = self._moved(opcode, operands)
            if opcode in _CHAINS:
                self._made[operands[1]] = (self._block, (opcode, operands))
            self._add(opcode, moved)
        self._out[BOUND] = self._bound
        return struct.pack(f"<{len(self._out)}I", *self._out)

    def _moved(self, opcode: int, operands: tuple[int, ...]) -> tuple[int, ...]:
        """The operands, with pointers that this block has."""
        if opcode == _CALL:
            arguments = (self._pointer(one) for one in operands[_FIRST_ARGUMENT:])
            return (*operands[:_FIRST_ARGUMENT], *arguments)
        at = _POINTER_AT.get(opcode)
        if at is None:
            return operands
        return (*operands[:at], self._pointer(operands[at]), *operands[at + 1 :])

    def _pointer(self, name: int) -> int:
        """`name` where it is no access chain of another block, else a copy of it."""
        block, (opcode, operands) = self._made.get(name, (self._block, (0, ())))
        if block == self._block:
            return name
        if name not in self._here:
            if self._bound >= LAST_ID:
                raise MalformedSpirvError("no number is left")
            self._here[name] = self._bound
            self._bound += 1
            moved = self._moved(opcode, operands)
            self._add(opcode, (moved[0], self._here[name], *moved[2:]))
        return self._here[name]

    def _add(self, opcode: int, operands: tuple[int, ...]) -> None:
        self._out += [(len(operands) + 1) << 16 | opcode, *operands]
