"""A SPIR-V module of one entry point -> the words that a thread loads and stores, and its barriers.

The compiler inlines all functions, and writes the blocks of a loop between its header and its merge
block. So an instruction repeats with each loop whose merge block is still to come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import prod

from shaderad.compiler.spirv import Instruction, instructions, words_of


class _Op(IntEnum):
    TYPE_INT = 21
    TYPE_FLOAT = 22
    TYPE_VECTOR = 23
    TYPE_POINTER = 32
    FUNCTION = 54
    VARIABLE = 59
    LOAD = 61
    STORE = 62
    ACCESS_CHAIN = 65
    DECORATE = 71
    CONTROL_BARRIER = 224
    ATOMIC_ADD = 234
    LOOP_MERGE = 246
    LABEL = 248
    ATOMIC_FLOAT_ADD = 6035


_STORAGE_BUFFER = 12
_BINDING = 33
_WORD_BITS = 32


@dataclass
class Traffic:
    """The instructions that a thread runs if it takes every branch.

    Attributes:
        loaded: The words that it loads from the buffer of each binding.
        stored: The words that it stores.
        added: The words that it adds atomically.
        barriers: The barriers of its workgroup.
    """

    loaded: Counter[int] = field(default_factory=Counter[int])
    stored: Counter[int] = field(default_factory=Counter[int])
    added: Counter[int] = field(default_factory=Counter[int])
    barriers: int = 0


def traffic_of(module: bytes, trips: Sequence[int] = ()) -> Traffic:
    """Counts the accesses of storage buffers, and the barriers.

    Args:
        module: The code of one entry point.
        trips: The iterations of each loop, in the order of their headers.

    Raises:
        ValueError: The module calls functions, or has another number of loops.
    """
    counter = _Counter(trips)
    for instruction in instructions(words_of(module)):
        counter.count(instruction)
    if counter.function_count != 1 or counter.loop_count != len(trips):
        found = f"{counter.function_count} functions and {counter.loop_count} loops"
        raise ValueError(f"{found}, but there are trip counts for {len(trips)} loops")
    return counter.traffic


class _Counter:
    def __init__(self, trips: Sequence[int]) -> None:
        self.traffic = Traffic()
        self.function_count = self.loop_count = 0
        self._trips = trips
        self._words_by_type: dict[int, int] = {}
        """The words of numbers and vectors."""
        self._pointees: dict[int, int] = {}
        """The types to which types of pointers point."""
        self._bindings: dict[int, int] = {}
        self._binding_of: dict[int, int] = {}
        """The binding of each storage buffer, and of each pointer into one."""
        self._pointee_of: dict[int, int] = {}
        """The type to which each pointer points."""
        self._open: dict[int, int] = {}
        """The iterations of each loop around an instruction, by its merge block."""

    def count(self, instruction: Instruction) -> None:
        """Counts the next instruction of the module."""
        match instruction:
            case (_Op.FUNCTION, _):
                self.function_count += 1
            case (_Op.LOOP_MERGE, (merge, *_)):
                # A loop without a number counts once; `traffic_of` raises.
                own = self._trips[self.loop_count : self.loop_count + 1]
                self._open[merge] = own[0] if own else 1
                self.loop_count += 1
            case (_Op.LABEL, (block,)):
                self._open.pop(block, None)
            case (_Op.CONTROL_BARRIER, _):
                self.traffic.barriers += self._repeats
            case _:
                self._declare(instruction)
                self._access(instruction)

    @property
    def _repeats(self) -> int:
        return prod(self._open.values())

    def _declare(self, instruction: Instruction) -> None:
        match instruction:
            case (_Op.DECORATE, (target, decoration, binding)) if decoration == _BINDING:
                self._bindings[target] = binding
            case (opcode, (result, bits, *_)) if opcode in (_Op.TYPE_INT, _Op.TYPE_FLOAT):
                self._words_by_type[result] = bits // _WORD_BITS
            case (_Op.TYPE_VECTOR, (result, element, count)):
                self._words_by_type[result] = count * self._words_by_type[element]
            case (_Op.TYPE_POINTER, (result, _, pointee)):
                self._pointees[result] = pointee
            case (_Op.VARIABLE, (_, result, storage, *_)) if storage == _STORAGE_BUFFER:
                self._binding_of[result] = self._bindings[result]
            case _:
                pass

    def _access(self, instruction: Instruction) -> None:
        traffic = self.traffic
        match instruction:
            case (_Op.ACCESS_CHAIN, (pointer, result, base, *_)) if base in self._binding_of:
                self._binding_of[result] = self._binding_of[base]
                self._pointee_of[result] = self._pointees[pointer]
            case (_Op.LOAD, (_, _, pointer, *_)) if pointer in self._binding_of:
                self._add(traffic.loaded, pointer)
            case (_Op.STORE, (pointer, *_)) if pointer in self._binding_of:
                self._add(traffic.stored, pointer)
            case (_Op.ATOMIC_ADD | _Op.ATOMIC_FLOAT_ADD, (_, _, pointer, *_)):
                self._add(traffic.added, pointer)
            case _:
                pass

    def _add(self, words: Counter[int], pointer: int) -> None:
        own = self._words_by_type[self._pointee_of[pointer]]
        words[self._binding_of[pointer]] += self._repeats * own
