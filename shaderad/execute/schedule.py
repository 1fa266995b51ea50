"""A plan as a device takes it: programs, numbered buffers, and what to do with them in order.

Everything that depends on sizes is an expression of `ir.sizes`; the one thing left to whoever runs
it is where buffers lie. Invariant: no buffer is bound for reading and writing in one dispatch, and
one that is not an input is written before it is read.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from shaderad.diagnostics import Span
from shaderad.ir import sizes, types
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import Type
from shaderad.lower.bindings import Lowered, Role
from shaderad.plan.literals import literal_words
from shaderad.runtime.buffers import WORD_BYTES

if TYPE_CHECKING:
    from shaderad.bodies.reaches import Reach
    from shaderad.ir.arrays import Value
    from shaderad.ir.nodes import Kernel


S = TypeVar("S")

# Sizes that whoever runs a schedule knows. No user's size has a name with a dollar sign.
GROUP_LIMIT = "$group_limit"
"""The most workgroups that the device takes along one axis."""
SITE_BASE = "$site_base"
"""The first report site of the program in the device's table."""


def start_of(k: int) -> str:
    """The name of the bytes before input `k` in its buffer."""
    return f"$start_{k}"


def number_of(k: int) -> str:
    """The name of the words of input `k`, a number of the host."""
    return f"$number_{k}"


def base_of(slot: int) -> str:
    """The name of the byte of a buffer at which a window's binding in `slot` begins."""
    return f"$base_{slot}"


@dataclass(frozen=True, slots=True)
class BoundPart:
    """An array that a windowed dispatch binds as far as a window accesses it."""

    slot: int
    start: Size
    """The bytes before it in its buffer."""
    element_bytes: int
    count: Size
    reach: Reach | None
    """In symbols of the schedule and of a window; `None` for any element."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The items of a dispatch, and which elements of its arrays they access."""

    item_count: Size
    step: Size
    """Windows begin at multiples of it."""
    dim: Shape
    """The extents of the launch, or of the elements of a reduction or scan."""
    first_number: Size
    """The number of the thread or element with which item `FIRST_ITEM` begins."""
    parts: tuple[BoundPart, ...]


@dataclass(frozen=True, slots=True)
class UniformWord:
    """Word `index` of a number that whoever runs the schedule passes with its inputs."""

    name: str
    index: int


Words = tuple[Size | UniformWord, ...]
"""The words of a uniform."""


@dataclass(frozen=True, slots=True)
class Run:
    """One dispatch, left out where `is_needed` or `group_count` is not positive."""

    program: int
    """In `Schedule.programs`."""
    bindings: tuple[tuple[int, int], ...]
    """Slots of the program and buffers; the report buffer is the device's."""
    words: tuple[Size | UniformWord, ...]
    """The constant buffer."""
    group_count: Size
    is_needed: Size = 1
    windows: Windows | None = None
    """Its parts, if it runs by windows; words and groups then have the symbols of a window."""


@dataclass(frozen=True, slots=True)
class Move:
    """Bytes of one buffer to another."""

    source: int
    source_offset: Size
    target: int
    target_offset: Size
    byte_count: Size


@dataclass(frozen=True, slots=True)
class Set:
    """The first bytes of a buffer to one repeated 32-bit word."""

    target: int
    word: int
    byte_count: Size


@dataclass(frozen=True, slots=True)
class RepeatBlock:
    """`body` again and again, with `symbol` as the number of the iteration.

    `carries` are pairs of buffers that trade places after each iteration. In `start`, which comes
    before the first, and in that iteration they have done so already where `count` is odd: so the
    first of each pair holds what the last iteration wrote to the second.
    """

    symbol: str
    count: Size
    is_reversed: bool
    """True if the numbers run from ``count - 1`` down to 0."""
    carries: tuple[tuple[int, int], ...]
    rows: tuple[int, ...]
    """Buffers of which each iteration writes a part."""
    start: tuple[Move, ...]
    body: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class RepeatBlockWhile:
    """`body` an even number of times, at least until the first word of `goes_on` is 0.

    `carries` trade places after each iteration; one that runs when `goes_on` is 0 changes nothing.
    """

    carries: tuple[tuple[int, int], ...]
    body: tuple[Instruction, ...]
    goes_on: int
    wants: int
    """The buffer whose first word is not 0 at the end where only the limit has ended the loop."""
    limit: int
    span: Span


KernelInstruction = Run | Move | Set
"""The instructions of a schedule of one kernel."""
Instruction = KernelInstruction | RepeatBlock | RepeatBlockWhile


@dataclass(frozen=True, slots=True)
class Output:
    """A result, which is all of a buffer."""

    element: Type
    shape: Shape
    buffer: int


@dataclass(frozen=True, eq=False)
class Schedule:
    """Instructions over programs and numbered buffers."""

    input_count: int
    byte_counts: tuple[Size, ...]
    """Sizes of all buffers, the inputs first; inside a loop they may differ between iterations."""
    outputs: tuple[Output, ...]
    programs: tuple[Lowered, ...]
    instructions: tuple[Instruction, ...]
    aligned_inputs: frozenset[int]
    """Inputs that some program can only read from the start of their buffer."""

    @property
    def read_inputs(self) -> frozenset[int]:
        """The inputs that some instruction reads, or that are outputs."""
        used = frozenset(output.buffer for output in self.outputs)
        return used.union(*map(_used, self.instructions)) & frozenset(range(self.input_count))

    @cached_property
    def block(self) -> Block:
        """The instructions with the lifetimes of buffers."""
        return block_of(self.instructions, frozenset(range(self.input_count)))


DIM = "dim"
"""The name of a launch's extents; no array has it."""


def extent_names(name: str, rank: int) -> list[str]:
    """The names of the extents of a kernel's array, or of its launch: ``x.0``, ``dim.0``."""
    return [f"{name}.{axis}" for axis in range(rank)]


def launch_shapes(kernel: Kernel, launch_shaped: Container[str]) -> tuple[Shape, dict[str, Shape]]:
    """The extents of a launch and the shapes of its arrays, as symbols."""

    def shape(name: str, rank: int) -> Shape:
        return tuple(map(sizes.symbol, extent_names(name, rank)))

    dim = shape(DIM, len(kernel.index_names))
    return dim, {
        b.name: dim if b.name in launch_shaped else shape(b.name, b.type.rank)
        for b in kernel.buffers
    }


def launch_sizes(dim: Sequence[S], shapes: Mapping[str, Sequence[S]]) -> dict[str, S]:
    """The sizes of one launch by the names of their symbols."""
    return {
        extent_name: extent
        for name, shape in ((DIM, dim), *shapes.items())
        for extent_name, extent in zip(extent_names(name, len(shape)), shape, strict=True)
    }


Key = tuple[Role, str]
"""The role and name of an array of a kernel."""


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """The schedule of a kernel in one mode, for all sizes."""

    schedule: Schedule
    inputs: tuple[Key, ...]
    outputs: tuple[Key, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Instructions with the buffers that nothing outside of them uses."""

    instructions: tuple[Instruction, ...]
    begins: tuple[tuple[int, ...], ...]
    """By instruction: buffers that it is the first to use."""
    ends: tuple[tuple[int, ...], ...]
    """By instruction: those that it is the last to use."""
    inner: tuple[Block | None, ...]
    """By instruction: the body of a loop."""


def block_of(instructions: tuple[Instruction, ...], outer: frozenset[int]) -> Block:
    """`instructions` with the lifetimes of buffers that are not among `outer`."""
    here = [_used_here(one) - outer for one in instructions]
    uses = [_used(one) - outer for one in instructions]
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for k, used in enumerate(uses):
        for buffer in sorted(used):
            first.setdefault(buffer, k)
            last[buffer] = k
    # What one loop alone uses, and only inside, lives there.
    owned = {b for b in first if first[b] != last[b] or b in here[first[b]]}
    inner = [
        block_of(one.body, outer | owned)
        if isinstance(one, RepeatBlock | RepeatBlockWhile)
        else None
        for one in instructions
    ]
    begins = [
        tuple(b for b in sorted(used & owned) if first[b] == k) for k, used in enumerate(uses)
    ]
    ends = [tuple(b for b in sorted(used & owned) if last[b] == k) for k, used in enumerate(uses)]
    return Block(instructions, tuple(begins), tuple(ends), tuple(inner))


def _used_here(one: Instruction) -> frozenset[int]:
    """The buffers that an instruction names, those in the body of a loop left out."""
    if isinstance(one, Run):
        return frozenset(buffer for _, buffer in one.bindings)
    if isinstance(one, Move):
        return frozenset((one.source, one.target))
    if isinstance(one, Set):
        return frozenset((one.target,))
    if isinstance(one, RepeatBlock):
        return frozenset((*chain(*one.carries), *one.rows)).union(*map(_used_here, one.start))
    return frozenset((*chain(*one.carries), one.goes_on, one.wants))


def _used(one: Instruction) -> frozenset[int]:
    body = one.body if isinstance(one, RepeatBlock | RepeatBlockWhile) else ()
    return _used_here(one).union(*map(_used, body))


def _words_of_input(k: int, value: Value) -> Words:
    """The words of input `k`, a number of the host: see `device/words.py`."""
    leaves = types.leaves(value.element)
    count = sum(2 if leaf.scalar.kind is types.Kind.DOUBLE else 1 for leaf in leaves)
    return tuple(UniformWord(number_of(k), n) for n in range(count))


def storage_bytes(t: types.Type, count: Size) -> Size:
    """Bytes of `count` elements, up to whole words: see `runtime.buffers.byte_count`."""
    size = sizes.multiply(types.byte_count(t), count)
    if types.byte_count(t) % WORD_BYTES == 0:
        return size
    return aligned(size, WORD_BYTES)


def aligned(size: Size, step: int) -> Size:
    """The next multiple of `step`."""
    return sizes.multiply(step, sizes.divide_up(size, step))


class Places:
    """The buffers of one plan."""

    def __init__(self, inputs: Sequence[Value], host_inputs: Iterable[int] = ()) -> None:
        """`host_inputs` are the positions of inputs that are numbers of the host."""
        self.byte_counts = [self.byte_count(v) for v in inputs]
        """Sizes of all buffers, the inputs first."""
        self.aligned_inputs: set[int] = set()
        self._input_count = len(inputs)
        self._number_by_value = {v: k for k, v in enumerate(inputs)}
        self._start_by_value = {v: sizes.symbol(start_of(k)) for k, v in enumerate(inputs)}
        self._known_words = {inputs[k]: _words_of_input(k, inputs[k]) for k in host_inputs}
        """The words of numbers of the host, and of values that are other names of numbers."""

    def number(self, value: Value) -> int:
        """The buffer of `value`."""
        return self._number_by_value[value]

    def known_words(self, value: Value) -> Words | None:
        """The words of a number that needs no memory; `None` for an array."""
        return self._known_words.get(value) or literal_words(value)

    def start(self, value: Value) -> Size:
        """The bytes before `value` in its buffer."""
        return self._start_by_value.get(value, 0)

    def byte_count(self, value: Value) -> Size:
        return storage_bytes(value.element, sizes.product(value.shape))

    def make(self, value: Value) -> None:
        """Gives a value that a step writes a buffer."""
        self._number_by_value[value] = self.scratch(self.byte_count(value))

    def hold(self, value: Value, number: int, start: Size = 0) -> None:
        """Notes what a buffer holds."""
        self._number_by_value[value] = number
        self._start_by_value[value] = start

    def share(self, value: Value, other: Value) -> None:
        """Notes that `value` is another name of `other`."""
        self._number_by_value[value] = self._number_by_value[other]
        self._start_by_value[value] = self.start(other)
        words = self.known_words(other)
        if words is not None:
            self._known_words[value] = words

    def bind_whole(self, value: Value) -> None:
        """Notes that `value` is a texture or sampler, which no program takes for a buffer."""
        self.byte_counts[self.number(value)] = 0

    def scratch(self, byte_count: Size) -> int:
        """A new buffer."""
        self.byte_counts.append(byte_count)
        return len(self.byte_counts) - 1

    def align(self, number: int) -> None:
        """Notes that a program reads a buffer from its start, whatever it is."""
        if number < self._input_count:
            self.aligned_inputs.add(number)

    def schedule(
        self,
        outputs: Iterable[tuple[Value, Shape]],
        programs: Sequence[Lowered],
        instructions: Sequence[Instruction],
    ) -> Schedule:
        """All that was decided; `outputs` are values, each with the shape that it shows."""
        return Schedule(
            input_count=self._input_count,
            byte_counts=tuple(self.byte_counts),
            outputs=tuple(Output(v.element, shape, self.number(v)) for v, shape in outputs),
            programs=tuple(programs),
            instructions=tuple(instructions),
            aligned_inputs=frozenset(self.aligned_inputs),
        )
