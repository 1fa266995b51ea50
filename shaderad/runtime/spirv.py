"""A SPIR-V module -> a module that wgpu reads correctly; detects one form that naga must not see.

naga has four faults. It misreads unordered comparisons and refuses pointers from another block. It
ends the process at texels of layers if a type that it expects is missing. It translates some
branches out of a switch into endless loops. Constant buffers become push constants if a device has
room for them. Invariant: a rewritten module computes the same; a malformed one, which naga refuses,
is returned unchanged.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from shaderad.compiler.spirv import HEADER_WORDS, MalformedSpirvError, words_of

BOUND = 3
"""The index in the header of the exclusive upper bound of result ids."""
LAST_ID = 0xFFFFFFFF

Operands = tuple[int, ...]

_TYPE_INT, _TYPE_VECTOR, _TYPE_IMAGE = 21, 23, 25
_CALL, _LOGICAL_NOT = 57, 168
_LOOP_MERGE, _SELECTION_MERGE, _LABEL = 246, 247, 248
_BRANCH, _BRANCH_CONDITIONAL, _SWITCH = 249, 250, 251

# FUnordEqual, NotEqual, LessThan, GreaterThan, LessThanEqual, GreaterThanEqual -> the opposite
# ordered comparison.
_OPPOSITES = {181: 182, 183: 180, 185: 190, 187: 188, 189: 186, 191: 184}

_VARIABLE, _DECORATE = 59, 71
_UNIFORM, _PUSH_CONSTANT = 2, 9
_TYPE_POINTER = 32
_STORAGE_CLASS_INDEX = {_TYPE_POINTER: 1, _VARIABLE: 2}
"""The operand index of the storage class, by opcode."""
_PLACES = frozenset({33, 34})
"""Binding, DescriptorSet."""

_CHAINS = frozenset({65, 66})
"""OpAccessChain, OpInBoundsAccessChain."""
_POINTER_INDEX = {
    61: 2,  # OpLoad
    62: 0,  # OpStore
    65: 2,
    66: 2,
    **dict.fromkeys(range(227, 243), 2),  # OpAtomicLoad to OpAtomicXor
    228: 0,  # OpAtomicStore
    6035: 2,  # OpAtomicFAddEXT
}
"""The operand index of the pointer, by opcode; calls are treated separately."""
_FIRST_ARGUMENT = 3

_SIGNED_32 = (32, 1)
"""The width and sign of an int, which follow its id."""
_ARRAYED_INDEX = 4
"""The operand index of the flag of image types that is 1 for layers."""


@dataclass(frozen=True, slots=True)
class RewrittenCode:
    """A module that was rewritten for naga."""

    content: bytes
    leaves_loop_from_switch: bool
    """True if a branch inside a switch goes to the merge block of a loop around the switch.

    Slang writes `continue` and early returns as branches out of an `OpSwitch` with one case. If
    such a branch also leaves a loop around the switch, naga translates it to a `break` of the
    switch, and the loop never ends on the device. Such a module needs another route.
    """


def readable_spirv(module: bytes, *, with_immediates: bool = False) -> RewrittenCode:
    """`module` rewritten for naga, with push constants for its constant buffer if asked."""
    try:
        return _Rewriting(words_of(module), with_immediates=with_immediates).run()
    except (ValueError, IndexError):  # not a sequence of instructions, or too few operands
        return RewrittenCode(module, leaves_loop_from_switch=False)


@dataclass(slots=True)
class _Block:
    """A basic block."""

    merge: int = 0
    """The merge block, if the block is a header."""
    next_by_loop: int = 0
    """The continue target, if the block is the header of a loop."""
    successors: list[int] = field(default_factory=list[int])
    is_switch: bool = False


@dataclass(frozen=True, slots=True)
class _Edit:
    """A replacement for part of a module; edits at the same index keep their order."""

    start: int
    stop: int
    words: list[int]


class _Rewriting:
    """One pass over a module, which collects edits and the branches between blocks.

    Modules have tens of thousands of instructions, most of which are unchanged. Only those in the
    table of handlers cost a call.
    """

    def __init__(self, words: Operands, *, with_immediates: bool) -> None:
        self._words = words
        self._bound = words[BOUND]
        self._edits: list[_Edit] = []
        self._start = self._stop = HEADER_WORDS
        """The words of the current instruction: first index, and index after the last."""
        self._handlers: dict[int, Callable[[int, Operands], None]] = {
            **dict.fromkeys(_OPPOSITES, self._comparison),
            **dict.fromkeys(_POINTER_INDEX, self._pointer_use),
            _CALL: self._call,
            _TYPE_INT: self._type_int,
            _TYPE_VECTOR: self._type_vector,
            _TYPE_IMAGE: self._type_image,
            _LABEL: self._label,
            _LOOP_MERGE: self._loop_merge,
            _SELECTION_MERGE: self._selection_merge,
            _BRANCH: self._branch,
            _BRANCH_CONDITIONAL: self._branch_conditional,
            _SWITCH: self._switch,
        }
        if with_immediates:
            self._handlers |= {
                _DECORATE: self._decorate,
                _TYPE_POINTER: self._uniform,
                _VARIABLE: self._uniform,
            }
        self._chains: dict[int, tuple[int, int, Operands]] = {}
        """Each access chain by id: its block, opcode and operands."""
        self._label_id = 0
        self._copies: dict[int, int] = {}
        """The copies of chains in the current block, by the id of the original."""
        self._integers: dict[int, int] = {}
        """The ids of signed integer types, with the word index after each declaration."""
        self._has_layers = self._has_pair = False
        self._places: dict[int, list[_Edit]] = {}
        """The edits that remove the binding decorations of each variable, by id."""
        self._blocks: dict[int, _Block] = {}
        self._block = _Block()

    def run(self) -> RewrittenCode:
        words, handlers, end = self._words, self._handlers, len(self._words)
        start = HEADER_WORDS
        while start < end:
            count, opcode = words[start] >> 16, words[start] & 0xFFFF
            if not 0 < count <= end - start:
                raise MalformedSpirvError(f"an instruction of {count} words at word {start}")
            if opcode in handlers:
                self._start, self._stop = start, start + count
                handlers[opcode](opcode, words[start + 1 : start + count])
            start += count
        self._add_texel_coordinates()
        return RewrittenCode(self._edited(), _leaves_loop_from_switch(self._blocks))

    def _edited(self) -> bytes:
        edited: list[int] = []
        kept_from = 0
        for edit in sorted(self._edits, key=lambda edit: edit.start):
            edited += self._words[kept_from : edit.start]
            edited += edit.words
            kept_from = edit.stop
        edited += self._words[kept_from:]
        edited[BOUND] = self._bound
        return struct.pack(f"<{len(edited)}I", *edited)

    def _new_id(self) -> int:
        if self._bound >= LAST_ID:
            raise MalformedSpirvError("no id is left")
        self._bound += 1
        return self._bound - 1

    def _replace(self, *instructions: list[int]) -> None:
        """Replaces the current instruction."""
        words = [word for instruction in instructions for word in instruction]
        self._edits.append(_Edit(self._start, self._stop, words))

    # -- comparisons -------------------------------------------------------------------------------

    def _comparison(self, opcode: int, operands: Operands) -> None:
        """Makes an unordered comparison the negation of the opposite ordered one.

        The optimiser writes ``!(a >= b)`` and ``a != b`` as unordered comparisons, which are true
        for NaN. naga reads them as ordered comparisons, which are false. The negation is the same
        for every pair of floats.
        """
        if len(operands) != 4:
            raise MalformedSpirvError(f"a comparison of {len(operands)} operands")
        result_type, result, left, right = operands
        negated = self._new_id()
        self._replace(
            _instruction(_OPPOSITES[opcode], result_type, negated, left, right),
            _instruction(_LOGICAL_NOT, result_type, result, negated),
        )

    # -- pointers ----------------------------------------------------------------------------------

    def _pointer_use(self, opcode: int, operands: Operands) -> None:
        """Copies the access chain that an instruction uses into its block.

        naga stores a value that other blocks use in a local variable, and refuses the module if
        the value is a pointer. The optimiser produces such pointers: it computes one in the
        condition of a loop and uses it after the loop as well.
        """
        index = _POINTER_INDEX[opcode]
        copies: list[list[int]] = []
        pointer = self._local(operands[index], copies)
        if pointer != operands[index]:
            local_operands = (*operands[:index], pointer, *operands[index + 1 :])
            self._replace(*copies, _instruction(opcode, *local_operands))
        if opcode in _CHAINS:
            self._chains[operands[1]] = (self._label_id, opcode, operands)

    def _call(self, opcode: int, operands: Operands) -> None:
        copies: list[list[int]] = []
        arguments = [self._local(name, copies) for name in operands[_FIRST_ARGUMENT:]]
        if tuple(arguments) != operands[_FIRST_ARGUMENT:]:
            call = _instruction(opcode, *operands[:_FIRST_ARGUMENT], *arguments)
            self._replace(*copies, call)

    def _local(self, name: int, copies: list[list[int]]) -> int:
        """A copy of `name` in this block if it is an access chain of another block, else `name`.

        New copies are appended to `copies`, in the order in which they must be emitted.
        """
        chain = self._chains.get(name)
        if chain is None or chain[0] == self._label_id:
            return name
        if name not in self._copies:
            _, opcode, (result_type, _, base, *indices) = chain
            self._copies[name] = self._new_id()
            base = self._local(base, copies)
            copies.append(_instruction(opcode, result_type, self._copies[name], base, *indices))
        return self._copies[name]

    # -- texels ------------------------------------------------------------------------------------

    def _type_int(self, _opcode: int, operands: Operands) -> None:
        if operands[1:] == _SIGNED_32:
            self._integers[operands[0]] = self._stop

    def _type_vector(self, _opcode: int, operands: Operands) -> None:
        _, element, count = operands
        self._has_pair = self._has_pair or (element in self._integers and count == 2)

    def _type_image(self, _opcode: int, operands: Operands) -> None:
        self._has_layers = self._has_layers or operands[_ARRAYED_INDEX] == 1

    def _add_texel_coordinates(self) -> None:
        """Adds the vector type of two ints if a module with layered textures lacks it.

        naga splits the three ints that address a texel into two coordinates and a layer, and
        panics if the module has no type for the two.
        """
        if self._has_layers and not self._has_pair:
            for integer, behind in self._integers.items():
                pair = _instruction(_TYPE_VECTOR, self._new_id(), integer, 2)
                self._edits.append(_Edit(behind, behind, pair))

    # -- constant buffers --------------------------------------------------------------------------

    def _decorate(self, _opcode: int, operands: Operands) -> None:
        if operands[1] in _PLACES:
            removal = _Edit(self._start, self._stop, [])
            self._places.setdefault(operands[0], []).append(removal)

    def _uniform(self, opcode: int, operands: Operands) -> None:
        """Moves a constant buffer, or a pointer into one, to the push constants."""
        index = _STORAGE_CLASS_INDEX[opcode]
        if operands[index] != _UNIFORM:
            return
        moved = (*operands[:index], _PUSH_CONSTANT, *operands[index + 1 :])
        self._replace(_instruction(opcode, *moved))
        if opcode == _VARIABLE:
            self._edits += self._places.pop(operands[1], [])

    # -- blocks ------------------------------------------------------------------------------------

    def _label(self, _opcode: int, operands: Operands) -> None:
        self._label_id, self._copies = operands[0], {}
        self._block = self._blocks[operands[0]] = _Block()

    def _loop_merge(self, _opcode: int, operands: Operands) -> None:
        self._block.merge, self._block.next_by_loop = operands[0], operands[1]

    def _selection_merge(self, _opcode: int, operands: Operands) -> None:
        self._block.merge = operands[0]

    def _branch(self, _opcode: int, operands: Operands) -> None:
        self._block.successors = [operands[0]]

    def _branch_conditional(self, _opcode: int, operands: Operands) -> None:
        self._block.successors = [operands[1], operands[2]]

    def _switch(self, _opcode: int, operands: Operands) -> None:
        # Selector, default, then pairs of a 32-bit literal and a label.
        self._block.successors = [operands[1], *operands[3::2]]
        self._block.is_switch = True


def _instruction(opcode: int, *operands: int) -> list[int]:
    return [(len(operands) + 1) << 16 | opcode, *operands]


# -- loops -----------------------------------------------------------------------------------------


def _leaves_loop_from_switch(blocks: dict[int, _Block]) -> bool:
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
    """True if a block between `switch` and its merge block leaves a loop around the switch."""
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
