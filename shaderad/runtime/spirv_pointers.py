"""Rewrites SPIR-V so that every pointer is computed in the block that uses it.

naga stores values that other blocks use in local variables, and refuses modules where such a value
is a pointer: the optimiser computes a pointer in the condition of a loop and uses it after the loop
as well. Invariant: the module computes the same.
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
"""The position of the pointer operand, by opcode; calls are treated separately."""
_FIRST_ARGUMENT = 3


def with_pointers_in_place(module: bytes) -> bytes:
    """`module` with a copy of each access chain in each block that uses it.

    A malformed module is returned unchanged.
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
        self._chains: dict[int, tuple[int, Instruction]] = {}
        """Each access chain by id, with its block."""
        self._block = 0
        self._copies: dict[int, int] = {}
        """The copies in the current block, by the id of the original."""

    def run(self) -> bytes:
        for opcode, operands in instructions(self._words):
            if opcode == _LABEL:
                self._block, self._copies = operands[0], {}
            local_operands = self._localised(opcode, operands)
            if opcode in _CHAINS:
                self._chains[operands[1]] = (self._block, (opcode, operands))
            self._add(opcode, local_operands)
        self._out[BOUND] = self._bound
        return struct.pack(f"<{len(self._out)}I", *self._out)

    def _localised(self, opcode: int, operands: tuple[int, ...]) -> tuple[int, ...]:
        """The operands, with pointers replaced by those of the current block."""
        if opcode == _CALL:
            return (*operands[:_FIRST_ARGUMENT], *map(self._pointer, operands[_FIRST_ARGUMENT:]))
        at = _POINTER_AT.get(opcode)
        if at is None:
            return operands
        return (*operands[:at], self._pointer(operands[at]), *operands[at + 1 :])

    def _pointer(self, name: int) -> int:
        """A copy of `name` in this block if it is an access chain of another, else `name`."""
        block, (opcode, operands) = self._chains.get(name, (self._block, (0, ())))
        if block == self._block:
            return name
        if name not in self._copies:
            if self._bound >= LAST_ID:
                raise MalformedSpirvError("no id is left")
            self._copies[name] = self._bound
            self._bound += 1
            result_type, _, *rest = self._localised(opcode, operands)
            self._add(opcode, (result_type, self._copies[name], *rest))
        return self._copies[name]

    def _add(self, opcode: int, operands: tuple[int, ...]) -> None:
        self._out += [(len(operands) + 1) << 16 | opcode, *operands]
