"""Copies, in the memory of a group, of the arrays to which its threads add.

A group clears its copies, its threads add to them in a loop over its tile, and then it adds them to
memory. All threads reach the barriers between, because a `return` of the user ends the body alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from shaderad.ir.types import WORD_BYTES, byte_count
from shaderad.lower.bindings import Mode, Role
from shaderad.lower.write.module import Module
from shaderad.lower.write.text import Piece

_ROLES = {Mode.PRIMAL: Role.OUTPUT, Mode.BACKWARD: Role.GRADIENT}


def write_copies(module: Module, piece: Piece, added: Collection[str], own_bytes: int) -> None:
    """Declares copies of as many arrays as fit, the smallest ones first.

    Where the elements are few, most additions wait for others, and there is the least to add to
    memory in the end.

    Args:
        module: The module, whose buffers are bound.
        piece: Where copies are declared.
        added: Arrays to which threads add by themselves.
        own_bytes: Group memory that the entry point needs besides.
    """
    if module.variant.is_one_group or module.has_barriers:
        return
    arrays, role, left = module.arrays, _ROLES.get(module.mode), _words(module, own_bytes)
    if role is None:
        return
    words_by_copy = {
        copy: copy.room * byte_count(arrays.type_of(role, copy.array)) // WORD_BYTES
        for copy in module.variant.copies
        if copy.array in added and arrays.is_summed(role, copy.array)
    }
    for copy, words in sorted(words_by_copy.items(), key=lambda item: item[1]):
        if words <= left:
            left -= words
            arrays.add_copy(piece, role, copy)


def _words(module: Module, own_bytes: int) -> int:
    """The words of group memory that copies may take."""
    left = (module.variant.group_bytes - own_bytes) // WORD_BYTES
    return min(left, module.variant.shape.copied_words)


def clearing(module: Module) -> Iterator[str]:
    """The statements before the loop over a tile."""
    copies = module.arrays.copies.values()
    yield from (f"clearCopy<{c.tag}>({c.word_count});" for c in copies)
    if copies:
        yield "GroupMemoryBarrierWithGroupSync();"


def releasing(module: Module) -> Iterator[str]:
    """The statements after it."""
    copies = module.arrays.copies.values()
    if copies:
        yield "GroupMemoryBarrierWithGroupSync();"
    yield from (f"releaseCopy<{c.tag}>({c.word_count});" for c in copies)
