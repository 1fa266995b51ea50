"""A schedule whose sizes are known: buffers and commands, ready to be recorded.

Runtimes fill buffers outside of compute passes, so that a fill between dispatches ends a pass, and
those of a gradient of many small steps cost as much as its dispatches. What begins with being
filled therefore lies alone in its memory where it is small, and is filled at the start of a run.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING

from shaderad.arrays.arrays import Array
from shaderad.diagnostics import Error, error
from shaderad.execute import schedule as to
from shaderad.execute.commands import (
    Command,
    Copy,
    Dispatch,
    Fill,
    FramePlan,
    LateWords,
    LoopCommand,
    Recorded,
    joined,
)
from shaderad.execute.schedule import GROUP_LIMIT, SITE_BASE, UniformWord, start_of
from shaderad.execute.windows import windows_of
from shaderad.ir import sizes, types
from shaderad.lower.bindings import Role, WordKind, in_rows
from shaderad.runtime.buffers import WORD_BYTES
from shaderad.runtime.capabilities import check_bytes
from shaderad.runtime.command_runs import Frame, LateWord
from shaderad.runtime.fill import FILL

if TYPE_CHECKING:
    from shaderad.device.devices import Device
    from shaderad.device.stages import Stage
    from shaderad.execute.schedule import Block, Instruction, Schedule
    from shaderad.ir.sizes import Size
    from shaderad.lower.bindings import Lowered
    from shaderad.runtime import DeviceBuffer, Pipeline, Ranges

Shape = tuple[int, ...]
Place = tuple["DeviceBuffer", int]
"""A buffer, and the bytes before the content in it."""
ITERATIONS_PER_LOOK = 8
"""Iterations of a while loop between two looks at whether it goes on."""
STEP_LIMIT = 1 << 22
"""Steps of a run: loops around dispatches are written out."""
_NO_UNIFORMS: Mapping[str, bytes] = MappingProxyType({})
EARLY_BYTES = 1 << 16
"""The bytes that a run may fill at its start: next to nothing beside arrays of a megabyte."""


@dataclass(eq=False, slots=True)
class Prepared:
    """Commands over a frame of buffers."""

    device: Device
    commands: list[Command]
    kept_bytes: Sequence[int]
    """Sizes of the buffers of results, which stand behind the inputs in the frame."""
    scratch_bytes: Sequence[int]
    """Sizes of the buffers behind those, which serve again after the run."""
    own_buffers: Sequence[DeviceBuffer]
    """Buffers of what kernels report and print, the device's own, at the end of the frame."""
    outputs: list[tuple[types.Type, Shape, int]]
    """Element, shape, and position in the frame."""
    dispatch_count: int
    may_report: bool
    may_print: bool
    live_bytes: int
    """The most that is needed at one time, inputs left out."""
    _joined: dict[bool, list[Recorded]] = field(default_factory=dict[bool, list[Recorded]])
    """The commands as runs, for frames that are shifted and for others."""
    _made_bytes: list[int] = field(init=False)
    """Sizes of the buffers that a run makes."""

    def __post_init__(self) -> None:
        self._made_bytes = [*self.kept_bytes, *self.scratch_bytes]

    def _join(self, frame: Frame) -> list[Recorded]:
        runtime, is_shifted = self.device.runtime, frame.is_shifted
        runs = joined(self.commands, runtime, len(frame.starts), is_shifted=is_shifted)
        self._joined[is_shifted] = runs
        return runs

    def run(
        self, places: Sequence[Place], uniforms: Mapping[str, bytes] = _NO_UNIFORMS
    ) -> tuple[Array, ...]:
        """The results, for inputs at `places`."""
        device = self.device
        buffers = [buffer for buffer, _ in places]
        starts = [start for _, start in places]
        frame = Frame(buffers, starts, any(starts), uniforms)
        device.runtime.together(self._record, frame)
        return tuple(
            [Array(device, t, shape, buffers[k], frame.start(k)) for t, shape, k in self.outputs]
        )

    def _record(self, frame: Frame) -> None:
        """Adds the buffers that the run makes to the frame, and records the commands."""
        runtime = self.device.runtime
        # Before, because an interrupt may end a loop between its dispatches; after, because a read
        # in the meantime looks at what was recorded so far.
        self._expect()
        runs = self._joined.get(frame.is_shifted) or self._join(frame)
        frame.buffers += runtime.allocate_unset(self._made_bytes)
        frame.buffers += self.own_buffers
        for run in runs:
            run.record(runtime, frame)
        self._expect()
        runtime.recorded(self.dispatch_count)

    def _expect(self) -> None:
        if self.may_report or self.may_print:
            self.device.expect(reports=self.may_report, prints=self.may_print)


def prepare(
    device: Device,
    schedule: Schedule,
    stages: Sequence[Stage],
    known: Mapping[str, int],
    shifted: Collection[int] = (),
    starts: Sequence[int] = (),
) -> Prepared:
    """`schedule` on `device`.

    Args:
        device: Where it runs.
        schedule: What runs.
        stages: Its programs.
        known: Sizes by name.
        shifted: The inputs among `schedule.aligned_inputs` that start behind their buffer's first
            byte: they are copied.
        starts: Where inputs start in their buffers, if programs run by windows, which are cut for
            these alone.

    Raises:
        DeviceError: SR0606, an array is larger than a binding, and its program runs as a whole.
    """
    return _Preparation(device, schedule, stages, known, shifted, starts).run()


class _Preparation:
    """The commands of a schedule, while they are written."""

    def __init__(
        self,
        device: Device,
        schedule: Schedule,
        stages: Sequence[Stage],
        known: Mapping[str, int],
        shifted: Collection[int],
        starts: Sequence[int],
    ) -> None:
        self._device = device
        self._schedule = schedule
        self._stages = stages
        self._shifted = sorted(shifted)
        self._known = {**known, GROUP_LIMIT: device.capabilities.workgroup_count_limit}
        self._known |= {start_of(k): 0 for k in range(schedule.input_count)}
        self._input_by_start = {
            start_of(k): k for k in range(schedule.input_count) if k not in shifted
        }
        """The inputs that are bound where they lie, by the symbol of their start."""
        self._starts = {
            name: starts[k] for name, k in self._input_by_start.items() if k < len(starts)
        }
        self._large: set[int] = set()
        """Buffers that are larger than a binding."""
        self._results = frozenset(one.buffer for one in schedule.outputs)
        self._frame = FramePlan(schedule.input_count)
        self._number_by_buffer = {k: k for k in range(schedule.input_count)}
        self._commands: list[Command] = []
        self._early: list[Command] = []
        """Commands before all others."""
        self._early_room = EARLY_BYTES
        self._is_repeated = False
        """True if what is added is recorded again and again."""
        self._pipelines: dict[Pipeline, None] = {}
        """The pipelines that the commands dispatch."""
        self._may_report = False
        self._may_print = False
        self._own_buffers: list[DeviceBuffer] = []
        """Buffers of the device, the last in the frame first."""
        self._step_count = 0

    def run(self) -> Prepared:
        schedule = self._schedule
        for k in range(schedule.input_count):
            self._bytes(k)
        copies = self._aligned_inputs()
        self._add_block(schedule.block)
        for copy in copies:
            self._frame.give(copy)
        results = dict.fromkeys(one.buffer for one in schedule.outputs)
        made = [self._number_by_buffer[b] for b in results if b >= schedule.input_count]
        layout = self._frame.layout(made)
        outputs = [
            (one.element, tuple(map(self._size, one.shape)), layout.numbers[self._number(one)])
            for one in schedule.outputs
        ]
        commands = [command.placed(layout.numbers) for command in (*self._early, *self._commands)]
        count = sum(isinstance(command, Dispatch) for command in commands)
        # Only programs that run at these sizes are worth the time of the driver.
        self._device.runtime.warm_up(self._pipelines)
        return Prepared(self._device, commands, layout.kept_bytes, layout.scratch_bytes,
                        self._own_buffers[::-1], outputs, count, self._may_report,
                        self._may_print, self._frame.peak_live_bytes)  # fmt: skip

    def _aligned_inputs(self) -> list[int]:
        """Copies of inputs that do not start where their programs read them."""
        copies: list[int] = []
        for k in self._shifted:
            copy = self._frame.take(self._bytes(k))
            if self._bytes(k):
                self._commands.append(Copy(k, 0, copy, 0, self._bytes(k)))
            self._number_by_buffer[k] = copy
            copies.append(copy)
        return copies

    def _number(self, result: to.Output) -> int:
        """The frame number of a result; an input that is one is returned as it was given."""
        is_input = result.buffer < self._schedule.input_count
        return result.buffer if is_input else self._number_by_buffer[result.buffer]

    def _size(self, size: Size) -> int:
        return sizes.evaluate(size, self._known)

    def _bytes(self, buffer: int) -> int:
        size = self._size(self._schedule.byte_counts[buffer])
        if size > self._device.capabilities.binding_bytes_limit:
            self._large.add(buffer)
        return size

    # -- blocks ----------------------------------------------------------------------------

    def _add_block(self, block: Block) -> None:
        for one, inner, begins, ends in zip(
            block.instructions, block.inner, block.begins, block.ends, strict=True
        ):
            if begins and isinstance(one, to.Set) and self._may_be_early(one):
                self._add_early(one)
            else:
                for buffer in begins:
                    self._number_by_buffer[buffer] = self._frame.take(self._bytes(buffer))
                self._add(one, inner)
            for buffer in ends:
                if buffer not in self._results:
                    self._frame.give(self._number_by_buffer[buffer])

    def _may_be_early(self, one: to.Set) -> bool:
        is_filled = self._size(one.byte_count) > 0
        return not self._is_repeated and is_filled and self._bytes(one.target) <= self._early_room

    def _add_early(self, one: to.Set) -> None:
        """Adds the first thing that is done to a buffer."""
        size = self._bytes(one.target)
        self._early_room -= size
        number = self._frame.take(size, since_start=True)
        self._number_by_buffer[one.target] = number
        self._early.append(self._fill(number, one.word, self._size(one.byte_count)))

    def _fill(self, target: int, word: int, size: int) -> Fill:
        if word:
            self._device.runtime.pipeline(FILL)  # runs must not compile
        return Fill(target, word, size)

    def _count(self) -> None:
        self._step_count += 1
        if self._step_count > STEP_LIMIT:
            raise error("SR0678", limit=STEP_LIMIT)

    def _add(self, one: Instruction, inner: Block | None) -> None:
        self._count()
        match one:
            case to.Run():
                self._add_run(one)
            case to.Move():
                self._add_move(one)
            case to.Set():
                if size := self._size(one.byte_count):
                    target = self._number_by_buffer[one.target]
                    self._commands.append(self._fill(target, one.word, size))
            case to.RepeatBlock():
                assert inner is not None
                self._add_repeat(one, inner)
            case to.RepeatBlockWhile():
                assert inner is not None
                self._add_while(one, inner)

    def _add_run(self, one: to.Run) -> None:
        if self._size(one.is_needed) <= 0:
            return
        if one.windows is not None:
            self._add_windows(one, one.windows)
            return
        for _, buffer in one.bindings if self._large else ():
            if buffer in self._large:
                capabilities = self._device.capabilities
                check_bytes(capabilities, self._bytes(buffer), capabilities.binding_bytes_limit)
        self._add_dispatch(one, self._shifted_words(one.words))

    def _add_windows(self, one: to.Run, windows: to.Windows) -> None:
        """A dispatch for each window."""
        outer = self._known
        known = {**outer, **self._starts}
        for window in windows_of(windows, known, self._device.capabilities):
            self._known = {**known, **window.sizes}
            self._add_dispatch(one, (), window.ranges)
        self._known = outer

    def _add_dispatch(self, one: to.Run, shifted: LateWords, ranges: Ranges | None = None) -> None:
        groups = self._size(one.group_count)
        if groups <= 0:
            return
        stage = self._stages[one.program]
        self._known[SITE_BASE] = stage.site_base
        number_by_slot = {slot: self._number_by_buffer[buffer] for slot, buffer in one.bindings}
        number_by_slot.update(self._own(stage.lowered))
        rows = in_rows(groups, self._known[GROUP_LIMIT])
        words = self._words(one, stage.lowered)
        late = (*self._launch_number(stage.lowered), *_uniform_words(one.words))
        pipeline = stage.pipeline
        self._pipelines[pipeline] = None
        self._device.runtime.check_dispatch(pipeline, number_by_slot, words, rows)
        numbers = tuple(number_by_slot[slot] for slot in pipeline.storage_slots)
        self._commands.append(Dispatch(pipeline, numbers, words, rows, late, shifted, ranges))

    def _own(self, lowered: Lowered) -> Iterator[tuple[int, int]]:
        """Slots and buffer numbers of what a program reports and prints."""
        for resource in lowered.resources:
            if resource.role is Role.REPORT:
                self._may_report = True
                yield resource.slot, self._own_number(self._device.report_buffer())
            elif resource.role is Role.PRINT:
                self._may_print = True
                yield resource.slot, self._own_number(self._device.print_buffer())

    def _own_number(self, buffer: DeviceBuffer) -> int:
        """The number of a buffer of the device, from the end of the frame: -1 is the last."""
        if buffer not in self._own_buffers:
            self._own_buffers.append(buffer)
        return -1 - self._own_buffers.index(buffer)

    def _words(self, one: to.Run, lowered: Lowered) -> bytes:
        """The words that sizes decide, 0 in place of others."""
        names = lowered.program.parameter_words
        return b"".join(
            _packed(0 if isinstance(word, UniformWord) else self._word(name, word))
            for name, word in zip(names, one.words, strict=True)
        )

    def _word(self, name: str, size: Size) -> int:
        value = self._size(size)
        if not -(1 << 31) <= value < 1 << 32:
            raise error("SR0354", name=name, type=types.INT, value=value)
        return value

    def _launch_number(self, lowered: Lowered) -> LateWords:
        """The number of a dispatch on its device."""
        device = self._device
        return tuple(
            (WORD_BYTES * k, lambda _: _packed(device.next_launch()))
            for k, word in enumerate(lowered.words)
            if word.kind is WordKind.LAUNCH
        )

    def _shifted_words(self, words: Sequence[Size | UniformWord]) -> LateWords:
        """The words that depend on where inputs start."""
        return tuple(
            (WORD_BYTES * k, self._shifted_word(word))
            for k, word in enumerate(words)
            if not isinstance(word, int | UniformWord)
            and not self._input_by_start.keys().isdisjoint(sizes.symbols(word))
        )

    def _shifted_word(self, word: Size) -> Callable[[Frame], bytes]:
        inputs = {
            name: k for name, k in self._input_by_start.items() if name in sizes.symbols(word)
        }
        known = {name: size for name, size in self._known.items() if name not in inputs}
        word = sizes.substituted(word, known)

        def content(frame: Frame) -> bytes:
            starts = {name: frame.starts[k] for name, k in inputs.items()}
            return _packed(sizes.evaluate(word, starts))

        return content

    def _add_move(self, one: to.Move) -> None:
        source, target = (self._number_by_buffer[b] for b in (one.source, one.target))
        size = self._size(one.byte_count)
        if size and source != target:
            start, end = self._size(one.source_offset), self._size(one.target_offset)
            self._commands.append(Copy(source, start, target, end, size))

    # -- loops -----------------------------------------------------------------------------

    def _add_repeat(self, one: to.RepeatBlock, body: Block) -> None:
        count = self._size(one.count)
        if count % 2:
            self._trade(one.carries)
        for each in one.start:
            self._add(each, None)
        for k in range(count):
            self._count()
            self._known[one.symbol] = count - 1 - k if one.is_reversed else k
            self._add_block(body)
            self._trade(one.carries)

    def _add_while(self, one: to.RepeatBlockWhile, body: Block) -> None:
        outer, self._commands = self._commands, []
        was_repeated, self._is_repeated = self._is_repeated, True
        for _ in range(2):
            self._add_block(body)
            self._trade(one.carries)
        self._is_repeated = was_repeated
        block, self._commands = self._commands, outer
        goes_on, wants = (self._number_by_buffer[b] for b in (one.goes_on, one.wants))
        self._commands.append(
            LoopCommand(
                commands=tuple(block),
                times=ITERATIONS_PER_LOOK // 2,
                look_limit=one.limit // ITERATIONS_PER_LOOK + 2,
                goes_on=goes_on,
                wants=wants,
                ran_over=lambda: self._device.note(_limit_error(one)),
            )
        )

    def _trade(self, pairs: Sequence[tuple[int, int]]) -> None:
        numbers = self._number_by_buffer
        for left, right in pairs:
            numbers[left], numbers[right] = numbers[right], numbers[left]


def _packed(word: int) -> bytes:
    return struct.pack("<I", word & 0xFFFFFFFF)


def _uniform_words(words: Sequence[Size | UniformWord]) -> Iterator[LateWord]:
    """The numbers that the host passes; neighbouring words of one are copied together."""
    by_number = groupby(
        ((k, word) for k, word in enumerate(words) if isinstance(word, UniformWord)),
        # Words follow each other in the constant buffer and in the number.
        lambda item: (item[1].name, item[0] - item[1].index),
    )
    for (name, _), group in by_number:
        (k, first), *rest = group
        start, stop = first.index * WORD_BYTES, (first.index + 1 + len(rest)) * WORD_BYTES
        yield k * WORD_BYTES, _part_of(name, slice(start, stop))


def _part_of(name: str, part: slice) -> Callable[[Frame], bytes]:
    return lambda frame: frame.uniforms[name][part]


def _limit_error(loop: to.RepeatBlockWhile) -> Error:
    """The error of a loop past its limit, raised at the next look at the device."""
    return error("SR0661", loop.span, place=" of `sad.while_loop`", length=loop.limit, count=1)
