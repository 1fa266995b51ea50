"""SPIR-V modules as wgpu takes them: four rewritings, and one form that naga must not see.

naga misreads unordered comparisons, refuses pointers that another block computed, ends the process
at texels of layers without a type that it expects, and translates some branches out of a switch
into loops that never end. Constant buffers become push constants where a device has room for them.
Invariant: a rewritten module computes the same; a malformed one, which naga refuses, is returned
unchanged.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from shaderad.compiler.spirv import (
    HEADER_WORDS,
    Instruction,
    MalformedSpirvError,
    instructions,
    words_of,
)

BOUND = 3
"""The position in the header of the exclusive limit of result ids."""
LAST_ID = 0xFFFFFFFF

_TYPE_INT, _TYPE_VECTOR, _TYPE_IMAGE = 21, 23, 25
_FUNCTION, _CALL, _LOGICAL_NOT = 54, 57, 168
_LOOP_MERGE, _SELECTION_MERGE, _LABEL = 246, 247, 248
_BRANCH, _BRANCH_CONDITIONAL, _SWITCH = 249, 250, 251

# FUnordEqual, NotEqual, LessThan, GreaterThan, LessThanEqual, GreaterThanEqual -> the opposite
# ordered comparison.
_OPPOSITES = {181: 182, 183: 180, 185: 190, 187: 188, 189: 186, 191: 184}

_VARIABLE, _DECORATE = 59, 71
_UNIFORM, _PUSH_CONSTANT = 2, 9
_STORAGE_CLASS_AT = {32: 1, _VARIABLE: 2}
"""The position of the storage class, by opcode; 32 is OpTypePointer."""
_PLACES = frozenset({33, 34})
"""Binding, DescriptorSet."""

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

_SIGNED_32 = (32, 1)
"""The width and sign of an int, behind its id."""
_ARRAYED_AT = 4
"""The position among the operands of a type of images that says whether they have layers."""


class _Rewriting(ABC):
    """Writes a module anew, instruction by instruction."""

    def __init__(self, words: tuple[int, ...]) -> None:
        self._words = words
        self._bound = words[BOUND]
        self._out = list(words[:HEADER_WORDS])

    def run(self) -> bytes:
        for opcode, operands in instructions(self._words):
            self.rewrite(opcode, operands)
        self._out[BOUND] = self._bound
        return struct.pack(f"<{len(self._out)}I", *self._out)

    @abstractmethod
    def rewrite(self, opcode: int, operands: tuple[int, ...]) -> None:
        """Adds the instructions that replace one."""

    def add(self, opcode: int, *operands: int) -> None:
        self._out += [(len(operands) + 1) << 16 | opcode, *operands]

    def new_id(self) -> int:
        if self._bound >= LAST_ID:
            raise MalformedSpirvError("no id is left")
        self._bound += 1
        return self._bound - 1


def _declarations(words: tuple[int, ...]) -> Iterator[Instruction]:
    """The instructions before the first function: decorations, types and global variables."""
    return takewhile(lambda one: one[0] != _FUNCTION, instructions(words))


# -- comparisons -----------------------------------------------------------------------------------


def with_ordered_comparisons(module: bytes) -> bytes:
    """`module` without unordered comparisons, which naga misreads for NaN operands.

    The optimiser writes ``!(a >= b)`` and ``a != b`` as unordered comparisons, which are true for
    NaN. naga reads them as ordered comparisons, which are false. Each becomes the negation of the
    opposite ordered comparison, which is the same for every pair of floats.
    """
    try:
        return _Comparisons(words_of(module)).run()
    except MalformedSpirvError:
        return module


class _Comparisons(_Rewriting):
    def rewrite(self, opcode: int, operands: tuple[int, ...]) -> None:
        opposite = _OPPOSITES.get(opcode)
        if opposite is None:
            self.add(opcode, *operands)
            return
        if len(operands) != 4:
            raise MalformedSpirvError(f"a comparison of {len(operands)} operands")
        result_type, result, left, right = operands
        negated = self.new_id()
        self.add(opposite, result_type, negated, left, right)
        self.add(_LOGICAL_NOT, result_type, result, negated)


# -- pointers --------------------------------------------------------------------------------------


def with_pointers_in_place(module: bytes) -> bytes:
    """`module` with a copy of each access chain in each block that uses it.

    naga stores values that other blocks use in local variables, and refuses modules where such a
    value is a pointer: the optimiser computes a pointer in the condition of a loop and uses it
    after the loop as well.
    """
    try:
        return _Pointers(words_of(module)).run()
    except (MalformedSpirvError, IndexError):
        return module


class _Pointers(_Rewriting):
    def __init__(self, words: tuple[int, ...]) -> None:
        super().__init__(words)
        self._chains: dict[int, tuple[int, Instruction]] = {}
        """Each access chain by id, with its block."""
        self._block = 0
        self._copies: dict[int, int] = {}
        """The copies in the current block, by the id of the original."""

    def rewrite(self, opcode: int, operands: tuple[int, ...]) -> None:
        if opcode == _LABEL:
            self._block, self._copies = operands[0], {}
        local_operands = self._localised(opcode, operands)
        if opcode in _CHAINS:
            self._chains[operands[1]] = (self._block, (opcode, operands))
        self.add(opcode, *local_operands)

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
            self._copies[name] = self.new_id()
            result_type, _, *rest = self._localised(opcode, operands)
            self.add(opcode, result_type, self._copies[name], *rest)
        return self._copies[name]


# -- texels ----------------------------------------------------------------------------------------


def with_texel_coordinates(module: bytes) -> bytes:
    """`module` with the type of two ints, if it has textures of layers.

    naga splits the coordinates of a texel, three ints, into two and a layer, and panics where the
    module has no such type.
    """
    try:
        words = words_of(module)
        return _TexelCoordinates(words).run() if _lacks_texel_coordinates(words) else module
    except (MalformedSpirvError, IndexError):
        return module


def _lacks_texel_coordinates(words: tuple[int, ...]) -> bool:
    """True for a module with textures of layers, but without the type of two ints."""
    has_layers, integers = False, set[int]()
    for opcode, operands in _declarations(words):
        if opcode == _TYPE_INT and operands[1:] == _SIGNED_32:
            integers.add(operands[0])
        elif opcode == _TYPE_VECTOR and operands[1] in integers and operands[2] == 2:
            return False
        elif opcode == _TYPE_IMAGE:
            has_layers = has_layers or operands[_ARRAYED_AT] == 1
    return has_layers


class _TexelCoordinates(_Rewriting):
    def rewrite(self, opcode: int, operands: tuple[int, ...]) -> None:
        self.add(opcode, *operands)
        if opcode == _TYPE_INT and operands[1:] == _SIGNED_32:
            self.add(_TYPE_VECTOR, self.new_id(), operands[0], 2)


# -- constant buffers ------------------------------------------------------------------------------


def with_immediates(module: bytes) -> bytes:
    """`module` with push constants in place of its constant buffer."""
    try:
        words = words_of(module)
        buffers = frozenset(
            operands[1]
            for opcode, operands in _declarations(words)
            if opcode == _VARIABLE and operands[2] == _UNIFORM
        )
        return _Immediates(words, buffers).run()
    except (MalformedSpirvError, IndexError):
        return module


class _Immediates(_Rewriting):
    def __init__(self, words: tuple[int, ...], buffers: frozenset[int]) -> None:
        super().__init__(words)
        self._buffers = buffers

    def rewrite(self, opcode: int, operands: tuple[int, ...]) -> None:
        if opcode == _DECORATE and operands[0] in self._buffers and operands[1] in _PLACES:
            return
        at = _STORAGE_CLASS_AT.get(opcode)
        if at is not None and operands[at] == _UNIFORM:
            operands = (*operands[:at], _PUSH_CONSTANT, *operands[at + 1 :])
        self.add(opcode, *operands)


# -- loops -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Block:
    """A basic block."""

    merge: int = 0
    """The merge block, if the block is a header."""
    next_by_loop: int = 0
    """The continue target, if the block is the header of a loop."""
    successors: list[int] = field(default_factory=list[int])
    is_switch: bool = False


def leaves_loop_from_switch(module: bytes) -> bool:
    """True if a branch inside a switch goes to the merge block of a loop around the switch.

    Slang writes `continue` and early returns as branches out of an `OpSwitch` with one case. If
    such a branch also leaves a loop around the switch, naga translates it to a `break` of the
    switch, and the loop never ends on the device. Such a module needs another route. False for
    malformed modules.
    """
    try:
        blocks = _blocks(module)
    except (MalformedSpirvError, IndexError):
        return False
    loops = {label: block for label, block in blocks.items() if block.next_by_loop}
    header_by_merge = {loop.merge: label for label, loop in loops.items()}
    loop_steps = {loop.next_by_loop for loop in loops.values()}
    return any(
        block.is_switch and _leaves(blocks, block, header_by_merge, loop_steps)
        for block in blocks.values()
    )


def _leaves(
    blocks: dict[int, _Block],
    switch: _Block,
    header_by_merge: dict[int, int],
    loop_steps: set[int],
) -> bool:
    """True if a block between `switch` and its merge block leaves a loop around it."""
    inside: set[int] = set()
    waiting = list(switch.successors)
    while waiting:
        label = waiting.pop()
        if label in inside or label == switch.merge or label not in blocks:
            continue
        # The header dominates the merge block, so a header not visited is outside the switch.
        if label in header_by_merge and header_by_merge[label] not in inside:
            return True
        inside.add(label)
        # The continue target of a loop around the switch leads out of the switch.
        if label not in loop_steps or any(blocks[k].next_by_loop == label for k in inside):
            waiting += blocks[label].successors
    return False


def _blocks(module: bytes) -> dict[int, _Block]:
    blocks: dict[int, _Block] = {}
    block = _Block()
    for opcode, operands in instructions(words_of(module)):
        if opcode == _LABEL:
            block = blocks[operands[0]] = _Block()
        elif opcode == _LOOP_MERGE:
            block.merge, block.next_by_loop = operands[0], operands[1]
        elif opcode == _SELECTION_MERGE:
            block.merge = operands[0]
        elif opcode == _BRANCH:
            block.successors = [operands[0]]
        elif opcode == _BRANCH_CONDITIONAL:
            block.successors = [operands[1], operands[2]]
        elif opcode == _SWITCH:
            # Selector, default, then pairs of a 32-bit literal and a label.
            block.successors = [operands[1], *operands[3::2]]
            block.is_switch = True
    return blocks
