"""Detects the one form of loop in SPIR-V that naga accepts and translates wrong.

Slang writes `continue` and early returns as branches out of an `OpSwitch` with one case. If such a
branch also leaves a loop around the switch, naga translates it to a `break` of the switch, and the
loop never ends on the device. Such a module needs another route.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shaderad.runtime.spirv import MalformedSpirvError, instructions, words_of

_LOOP_MERGE, _SELECTION_MERGE, _LABEL = 246, 247, 248
_BRANCH, _BRANCH_CONDITIONAL, _SWITCH = 249, 250, 251


@dataclass(slots=True)
class _Block:
    """A basic block."""

    merge: int = 0
    """The merge block, if the block is a header."""
    is_loop: bool = False
    next_by_loop: int = 0
    """The continue target of a loop."""
    successors: list[int] = field(default_factory=list[int])
    is_switch: bool = False


def leaves_loop_from_switch(module: bytes) -> bool:
    """True if a branch inside a switch goes to the merge block of a loop around the switch.

    False for malformed modules, which naga refuses.
    """
    try:
        blocks = _blocks(module)
    except (MalformedSpirvError, IndexError):
        return False
    header_by_merge = {block.merge: label for label, block in blocks.items() if block.is_loop}
    loop_steps = {block.next_by_loop for block in blocks.values() if block.is_loop}
    return any(
        _leaves(blocks, block, header_by_merge, loop_steps)
        for block in blocks.values()
        if block.is_switch
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
        block = blocks[label]
        is_outer_step = label in loop_steps and not _steps_inside(blocks, label, inside)
        if not is_outer_step:
            waiting += block.successors
    return False


def _steps_inside(blocks: dict[int, _Block], step: int, inside: set[int]) -> bool:
    """True if `step` is the continue target of a loop whose header is `inside`."""
    return any(blocks[label].next_by_loop == step for label in inside)


def _blocks(module: bytes) -> dict[int, _Block]:
    blocks: dict[int, _Block] = {}
    block = _Block()
    for opcode, operands in instructions(words_of(module)):
        if opcode == _LABEL:
            block = blocks[operands[0]] = _Block()
        elif opcode == _LOOP_MERGE:
            block.merge, block.next_by_loop, block.is_loop = operands[0], operands[1], True
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
