"""The plans of a manifest -> schedules and their programs.

Invariant: a loaded plan refers only to existing programs, buffers and sizes; an invalid plan is
refused when it is loaded.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from shaderad.bundle.format import plans
from shaderad.bundle.format.description import NoDerivative, SiteEntry, SizeText
from shaderad.bundle.format.entries import ARRAY, GraphEntry, KernelEntry
from shaderad.bundle.format.plan_names import plan_name
from shaderad.bundle.format.size_text import parsed
from shaderad.bundle.format.type_names import TypeReader
from shaderad.bundle.read.loaded_files import Files, span_in
from shaderad.compiler.artifact import BindingAccess, Program
from shaderad.execute import schedule as to
from shaderad.execute.prebuilt import BuiltEntry, BuiltPlan, BuiltPlans, BuiltProgram
from shaderad.execute.schedule import Key, LaunchPlan, storage_bytes
from shaderad.ir import sizes
from shaderad.ir.sizes import Shape, Size, product
from shaderad.ir.types import Kind, Type, is_differentiable, leaves
from shaderad.lower.bindings import Lowered, Mode, Resource, Role, Site

DEPTH_LIMIT = 32
"""The maximum nesting of loops and of containers."""


def built_entry(files: Files, types: TypeReader, entry: KernelEntry | GraphEntry) -> BuiltEntry:
    """The plans of `entry`.

    Raises:
        CompileError: SR0722, if a file is missing or was changed.
        KeyError, ValueError: The manifest contradicts itself.
    """
    return _PlanReader(files, types, entry).built()


class _PlanReader:
    """Reads the plans of one entry of a manifest."""

    def __init__(self, files: Files, types: TypeReader, entry: KernelEntry | GraphEntry) -> None:
        self._files = files
        self._types = types
        self._entry = entry
        self._uniforms = entry.uniforms if isinstance(entry, KernelEntry) else []
        self._arrays: dict[str, tuple[Type, Shape]] = {
            each.name: (types.type(each.type), shape_in(each.shape, entry.sizes))
            for each in (*entry.inputs, *entry.outputs)
        }
        self._resources = {each.name for each in entry.inputs if each.resource != ARRAY}
        self._arrays |= {each.name: (types.type(each.type), ()) for each in self._uniforms}
        inputs = (*entry.inputs, *self._uniforms)
        self._wanted = {each.name: self._has_derivative(each.name, each.is_differentiable)
                        for each in inputs}  # fmt: skip

    def _has_derivative(self, name: str, is_built: bool) -> bool:
        return is_built and is_differentiable(self._arrays[name][0])

    def built(self) -> BuiltEntry:
        entry = self._entry
        by_target = {name: self._plans(name, each) for name, each in entry.targets.items()}
        return BuiltEntry(entry.name, str(self._files.folder), by_target, self._wanted)

    def _plans(self, target: str, entry: plans.PlansEntry) -> BuiltPlans:
        programs = {program.name: self._program(target, program) for program in entry.programs}
        plan_by_mode = {
            Mode.PRIMAL: entry.primal,
            Mode.BACKWARD: entry.backward,
            Mode.FORWARD: entry.forward,
        }
        by_mode = {
            mode: self._plan(programs, mode, plan) for mode, plan in plan_by_mode.items() if plan
        }
        return BuiltPlans(by_mode, _reasons(entry.no_backward, entry.no_forward))

    def _program(self, target: str, entry: plans.ProgramEntry) -> BuiltProgram:
        lowered = Lowered(
            program=self._files.program(target, entry),
            mode=Mode.PRIMAL,
            resources=tuple(
                Resource(r.slot, r.role, ()) for r in entry.resources if r.role is Role.REPORT
            ),
            words=(),
            sites=_sites(entry.sites),
        )
        return BuiltProgram(lowered, entry.kernel)

    def _plan(
        self, programs: Mapping[str, BuiltProgram], mode: Mode, entry: plans.PlanEntry
    ) -> BuiltPlan:
        inputs, outputs = self._keys(mode, entry)
        input_count, buffer_count = len(inputs), len(entry.buffers)
        if input_count > buffer_count:
            raise ValueError("an input without a buffer")
        size_names = {*self._entry.sizes, to.GROUP_LIMIT, to.SITE_BASE}
        size_names |= {to.start_of(k) for k in range(input_count)}
        word_counts = {each.name: _word_count(self._arrays[each.name][0])
                       for each in self._uniforms}  # fmt: skip
        commands = _Commands(self._entry.file, programs, input_count, buffer_count, size_names,
                             word_counts)  # fmt: skip
        instructions = commands.block(entry.commands)
        if isinstance(self._entry, KernelEntry) and not all(
            isinstance(instruction, to.KernelInstruction) for instruction in instructions
        ):
            raise ValueError(f"a command of a graph in kernel `{self._entry.name}`")
        schedule = to.Schedule(
            input_count=input_count,
            byte_counts=tuple(commands.byte_count(buffer.byte_count) for buffer in entry.buffers),
            outputs=tuple(
                to.Output(
                    self._types.type(o.type),
                    shape_in(o.shape, self._entry.sizes),
                    commands.buffer(o.buffer),
                )
                for o in entry.outputs
            ),
            programs=tuple(program.lowered for program in commands.programs),
            instructions=instructions,
            aligned_inputs=frozenset(entry.aligned_inputs),
        )
        self._check_arrays(inputs, outputs, schedule)
        input_buffers = frozenset(range(input_count))
        if not schedule.aligned_inputs <= input_buffers:
            raise ValueError("an aligned input, which is none")
        if not {o.buffer for o in schedule.outputs} <= input_buffers.union(*schedule.block.begins):
            raise ValueError("a result that no command writes")
        return BuiltPlan(LaunchPlan(schedule, inputs, outputs), commands.programs)

    def _keys(self, mode: Mode, entry: plans.PlanEntry) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
        """The inputs and outputs of the plan of a mode.

        Raises:
            ValueError: The entry lists other inputs or outputs.
        """
        inputs, outputs = self._expected(mode)
        for key in ((Role.RESULT, each.name) for each in self._entry.outputs):
            # The primal result of a Min or Max array.
            if isinstance(self._entry, KernelEntry) and plan_name(key) in entry.inputs:
                inputs.append(key)
        names = [output.name for output in entry.outputs]
        if (entry.inputs, names) != ([*map(plan_name, inputs)], [*map(plan_name, outputs)]):
            raise ValueError(f"a plan of `{self._entry.name}` for other arrays")
        return tuple(inputs), tuple(outputs)

    def _expected(self, mode: Mode) -> tuple[list[Key], list[Key]]:
        entry = self._entry
        inputs: list[Key] = [(Role.INPUT, each.name) for each in entry.inputs]
        primal: list[Key] = [(Role.OUTPUT, each.name) for each in entry.outputs]
        if mode is Mode.PRIMAL:
            return inputs, primal
        variables = [name for name, is_wanted in self._wanted.items() if is_wanted]
        results = [each.name for each in entry.outputs
                   if self._has_derivative(each.name, each.is_differentiable)]  # fmt: skip
        # The derivative plans of a graph also return its outputs.
        outputs = [] if isinstance(entry, KernelEntry) else primal
        if mode is Mode.FORWARD:
            inputs += [(Role.TANGENT, name) for name in variables]
            return inputs, [*outputs, *((Role.OUTPUT_TANGENT, name) for name in results)]
        inputs += [(Role.COTANGENT, name) for name in results]
        return inputs, [*outputs, *((Role.GRADIENT, name) for name in variables)]

    def _check_arrays(
        self, inputs: Sequence[Key], outputs: Sequence[Key], schedule: to.Schedule
    ) -> None:
        """Checks that inputs and results match the entry, and that they fill their buffers.

        If a graph assumes that sizes are equal, the lengths of a result and its buffer may be equal
        but written differently; `check_results` compares them once sizes are known.
        """
        counts = schedule.byte_counts
        for key, count in zip(inputs, counts, strict=False):
            element, shape = self._arrays[key[1]]
            if key[0] is Role.INPUT and key[1] in self._resources:
                shape = (0,)  # a texture or sampler
            if count != storage_bytes(element, product(shape)):
                raise ValueError(f"an input `{plan_name(key)}` of {count} bytes")
        is_open = isinstance(self._entry, GraphEntry) and bool(self._entry.assumes.equal)
        for key, out in zip(outputs, schedule.outputs, strict=True):
            if (out.element, out.shape) != self._arrays[key[1]]:
                raise ValueError(f"a result `{plan_name(key)}` of another type or shape")
            if counts[out.buffer] != storage_bytes(out.element, product(out.shape)) and not is_open:
                raise ValueError(f"a result `{plan_name(key)}` of {counts[out.buffer]} bytes")


class _Commands:
    """Reads the commands of one plan in order."""

    def __init__(
        self,
        file: str,
        programs: Mapping[str, BuiltProgram],
        input_count: int,
        buffer_count: int,
        size_names: set[str],
        word_counts: Mapping[str, int],
    ) -> None:
        self._file = file
        self._programs = programs
        self._numbers: dict[str, int] = {}
        """The index of each program that a command names."""
        self._input_count = input_count
        self._buffer_count = buffer_count
        self._word_counts = word_counts
        """The number of words of each uniform."""
        self._depth = 0
        self._in_scope = size_names
        """The sizes that are set at the current command."""
        self._mentioned = {*size_names}
        """The sizes that any command has set."""

    @property
    def programs(self) -> tuple[BuiltProgram, ...]:
        """The programs that commands name, in the order of their numbers."""
        return tuple(self._programs[name] for name in self._numbers)

    def block(self, commands: Sequence[plans.Command]) -> tuple[to.Instruction, ...]:
        """The instructions of a block."""
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise ValueError(f"a loop inside of {DEPTH_LIMIT} others")
        instructions = tuple(map(self._command, commands))
        self._depth -= 1
        self._mentioned |= self._in_scope
        return instructions

    def size(self, text: SizeText) -> Size:
        return size_in(text, self._in_scope)

    def byte_count(self, text: SizeText) -> Size:
        """The size of a buffer, which may belong to the scope of a loop."""
        return size_in(text, self._mentioned)

    def buffer(self, number: int) -> int:
        if not 0 <= number < self._buffer_count:
            raise ValueError(f"a buffer {number}, which is none")
        return number

    def own(self, number: int) -> int:
        """A buffer that a command may write, which excludes those of the caller."""
        if number < self._input_count:
            raise ValueError(f"a command that writes input {number}")
        return self.buffer(number)

    def _command(self, command: plans.Command) -> to.Instruction:
        match command:
            case plans.RunCommand():
                return self._run(command)
            case plans.CopyCommand():
                return self._copy(command)
            case plans.FillCommand():
                return to.Set(self.own(command.target), command.word, self.size(command.byte_count))
            case plans.RepeatCommand():
                return self._repeat(command)
            case plans.WhileCommand():
                return to.RepeatBlockWhile(
                    carries=self._pairs(command.carries),
                    body=self.block(command.body),
                    goes_on=self.buffer(command.goes_on),
                    wants=self.buffer(command.wants),
                    limit=command.limit,
                    span=span_in(self._file, command.line),
                )

    def _run(self, command: plans.RunCommand) -> to.Run:
        lowered = self._programs[command.program].lowered
        reports = {r.slot for r in lowered.resources}
        slots = {
            b.name: b.slot for b in lowered.program.bindings if b.access != BindingAccess.UNIFORM
        }
        wanted = {name for name, slot in slots.items() if slot not in reports}
        if set(command.bind) != wanted or len(command.words) != len(
            lowered.program.parameter_words
        ):
            raise ValueError(f"a dispatch of `{command.program}` that does not fit it")
        self._check_written(command, lowered.program)
        return to.Run(
            program=self._numbers.setdefault(command.program, len(self._numbers)),
            bindings=tuple((slots[name], self.buffer(k)) for name, k in command.bind.items()),
            words=tuple(map(self._word, command.words)),
            group_count=self.size(command.groups),
            is_needed=self.size(command.if_positive),
        )

    def _word(self, word: SizeText | plans.UniformWordEntry) -> Size | to.UniformWord:
        if not isinstance(word, plans.UniformWordEntry):
            return self.size(word)
        if word.index >= self._word_counts.get(word.uniform, 0):
            raise ValueError(f"a word {word.index} of uniform `{word.uniform}`")
        return to.UniformWord(word.uniform, word.index)

    def _check_written(self, command: plans.RunCommand, program: Program) -> None:
        """Checks that no written buffer is bound twice or belongs to the caller."""
        written = [b.name for b in program.bindings if b.access is BindingAccess.WRITE]
        numbers = [self.own(command.bind[name]) for name in written if name in command.bind]
        if sum(number in numbers for number in command.bind.values()) != len(numbers):
            raise ValueError(f"a dispatch of `{command.program}` that writes what it binds twice")

    def _copy(self, command: plans.CopyCommand) -> to.Move:
        if command.source == command.target:
            raise ValueError(f"a copy of buffer {command.source} to itself")
        return to.Move(
            source=self.buffer(command.source),
            source_offset=self.size(command.source_offset),
            target=self.own(command.target),
            target_offset=self.size(command.target_offset),
            byte_count=self.size(command.byte_count),
        )

    def _repeat(self, command: plans.RepeatCommand) -> to.RepeatBlock:
        count = self.size(command.count)
        start = tuple(map(self._copy, command.start))
        outer, self._in_scope = self._in_scope, {*self._in_scope, command.symbol}
        body = self.block(command.body)
        self._in_scope = outer
        return to.RepeatBlock(
            symbol=command.symbol,
            count=count,
            is_reversed=command.is_reversed,
            carries=self._pairs(command.carries),
            rows=tuple(map(self.buffer, command.rows)),
            start=start,
            body=body,
        )

    def _pairs(self, carries: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        return tuple((self.own(left), self.own(right)) for left, right in carries)


def size_in(text: SizeText, in_scope: Container[str]) -> Size:
    """The size that `text` denotes; ValueError if it names a size that is not in scope."""
    size = parsed(text)
    for name in sizes.symbols(size):
        if name not in in_scope:
            raise ValueError(f"a size `{name}`, which nothing sets")
    return size


def shape_in(extents: Sequence[SizeText], in_scope: Container[str]) -> Shape:
    """The shape of `extents`; ValueError as above."""
    return tuple(size_in(extent, in_scope) for extent in extents)


def _word_count(t: Type) -> int:
    """The number of 32-bit words of a uniform in a constant buffer."""
    kinds = [leaf.scalar.kind for leaf in leaves(t)]
    return len(kinds) + kinds.count(Kind.DOUBLE)


def _sites(entries: Sequence[SiteEntry]) -> tuple[Site, ...]:
    """The places in the source that a program may report."""
    return tuple(Site(s.kind, span_in(s.file, s.line), s.name) for s in entries)


def _reasons(no_backward: NoDerivative | None, no_forward: NoDerivative | None) -> dict[Mode, str]:
    """Why modes were not built."""
    reason_by_mode = {Mode.FORWARD: "it was built without `--jvp`"}
    for mode, entry in ((Mode.BACKWARD, no_backward), (Mode.FORWARD, no_forward)):
        if entry is not None:
            reason_by_mode[mode] = entry.reason
    return reason_by_mode
