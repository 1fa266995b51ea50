"""A SPIR-V module -> its words and instructions."""

from __future__ import annotations

import struct
from collections.abc import Iterator

HEADER_WORDS = 5

Instruction = tuple[int, tuple[int, ...]]
"""Opcode and operands."""


class MalformedSpirvError(ValueError):
    """A module that is not a sequence of instructions."""


def words_of(module: bytes) -> tuple[int, ...]:
    """The words of `module`.

    Raises:
        MalformedSpirvError: The module has no header, or ends inside a word.
    """
    if len(module) % 4 or len(module) < 4 * HEADER_WORDS:
        raise MalformedSpirvError(f"{len(module)} bytes")
    return struct.unpack(f"<{len(module) // 4}I", module)


def instructions(words: tuple[int, ...]) -> Iterator[Instruction]:
    """The instructions after the header (SPIR-V 1.6, section 2.3).

    Raises:
        MalformedSpirvError: An instruction has no words, or more than are left.
    """
    start = HEADER_WORDS
    while start < len(words):
        count, opcode = words[start] >> 16, words[start] & 0xFFFF
        if not 0 < count <= len(words) - start:
            raise MalformedSpirvError(f"an instruction of {count} words at word {start}")
        yield opcode, words[start + 1 : start + count]
        start += count
