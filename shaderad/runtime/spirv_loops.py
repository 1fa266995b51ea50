"""Finds the one loop form that naga accepts from SPIR-V and gets wrong without a word.

Slang writes `continue`, and an early return, as leaving an `OpSwitch` of one trip. Where a loop
around that switch is left from inside it, naga makes the exit a `break` of the switch, and the
loop runs for ever on the device. Such a module must go to the device another way.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shaderad.runtime.spirv import MalformedSpirvError, instructions, words_of

_LOOP_MERGE, _SELECTION_MERGE, _LABEL = 246, 247, 248
_BRANCH, _BRANCH_CONDITIONAL, _SWITCH = 249, 250, 251


@dataclass(slots=True)
class _Block:
    """A basic block: what it merges to, if it heads a construct, and where it goes next."""

    merge: int = 0
    is_loop: bool = False
    next_by_loop: int = 0
    """The continue target of a loop."""
    successors: list[int] = field(default_factory=list[int])
    is_switch: bool = False


def leaves_loop_from_switch(module: bytes) -> bool:
    """Whether a branch inside a switch goes to the end of a loop around that switch.

    A malformed module does not: naga refuses it.
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
    """Walks what lies between `switch` and its merge block."""
    inside: set[int] = set()
    waiting = list(switch.successors)
    while waiting:
        label = waiting.pop()
        if label in inside or label == switch.merge or label not in blocks:
            continue
        # A loop's header dominates its merge block: one not met before lies outside the switch.
        if label in header_by_merge and header_by_merge[label] not in inside:
            return True
        inside.add(label)
        block = blocks[label]
        is_outer_step = label in loop_steps and not _steps_inside(blocks, label, inside)
        if not is_outer_step:
            waiting += block.successors
    return False


def _steps_inside(blocks: dict[int, _Block], step: int, inside: set[int]) -> bool:
    """Whether `step` is the continue target of a loop whose header is `inside`."""
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
