"""The graphs of a manifest -> graphs that are called and differentiated by their plans.

Invariant: a loaded plan refers only to existing programs, buffers and sizes; a spoiled plan is
refused when it is loaded.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Container, Mapping, Sequence
from typing import Any

from shaderad.arrays import trees
from shaderad.arrays.traced_sizes import shown
from shaderad.bundle.format import graph_description as graphs
from shaderad.bundle.format.description import SizeText
from shaderad.bundle.format.graph_rules import check_graph
from shaderad.bundle.format.size_text import parsed
from shaderad.bundle.format.type_names import TypeReader
from shaderad.bundle.read.loaded_files import Files, reasons, sites, span_in
from shaderad.compiler.artifact import BindingAccess, Program
from shaderad.differentiate.loaded_graphs import LoadedGraph
from shaderad.execute import schedule as to
from shaderad.execute.prebuilt_graphs import (
    BuiltGraph,
    BuiltPlan,
    BuiltPlans,
    BuiltProgram,
    PrebuiltGraph,
)
from shaderad.execute.schedule import storage_bytes
from shaderad.ir import sizes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.sizes import Shape, Size, product
from shaderad.ir.types import Type, is_differentiable
from shaderad.lower.bindings import Lowered, Mode, Resource, Role
from shaderad.trace.annotations import Wanted
from shaderad.trace.calls import Placeholder, TracedFunction
from shaderad.trace.signatures import GraphSignature

DEPTH_LIMIT = 32
"""The maximum nesting of loops and of containers."""


def loaded_graph(files: Files, types: TypeReader, entry: graphs.GraphEntry) -> LoadedGraph:
    """The graph that `entry` describes.

    Raises:
        CompileError: SR0722, if a file is missing or was changed.
        KeyError, ValueError: The manifest contradicts itself.
    """
    return _GraphReader(files, types, entry).graph()


class _GraphReader:
    """Reads one graph of a manifest."""

    def __init__(self, files: Files, types: TypeReader, entry: graphs.GraphEntry) -> None:
        self._files = files
        self._types = types
        self._entry = entry

    def graph(self) -> LoadedGraph:
        entry, folder = self._entry, str(self._files.folder)
        check_graph(entry)
        inputs, outputs = (
            tuple(Value(ArrayType(*self._array(array))) for array in arrays)
            for arrays in (entry.inputs, entry.outputs)
        )
        by_target = {name: self._plans(name, plans) for name, plans in entry.targets.items()}
        wanted = {array.name: self._has_derivative(array) for array in entry.inputs}
        built = BuiltGraph(entry.name, folder, by_target, wanted)
        size_names = frozenset(entry.sizes)
        variant = TracedFunction(
            graph=PrebuiltGraph(inputs, outputs, built),
            out=_tree(entry.result, len(outputs), size_names),
            captured=(),
            constants=(),
            equal_sizes=tuple(
                (_size(a, size_names), _size(b, size_names)) for a, b in entry.assumes.equal
            ),
            positive_sizes=_shape(entry.assumes.positive, size_names),
        )
        return LoadedGraph(self._signature(inputs), variant, folder)

    def _signature(self, inputs: Sequence[Value]) -> GraphSignature:
        entry, size_names = self._entry, frozenset(self._entry.sizes)
        skeleton = {p.name: _tree(p.tree, len(inputs), size_names) for p in entry.parameters}
        arrays = [leaf for leaf in trees.leaves(skeleton) if isinstance(leaf, Placeholder)]
        if [leaf.position for leaf in arrays] != [*range(len(inputs))]:
            raise ValueError("inputs other than those of its parameters")
        return GraphSignature(
            name=entry.name,
            skeleton=skeleton,
            wanted=tuple(
                Wanted(v.element, tuple(array.shape))
                for v, array in zip(inputs, entry.inputs, strict=True)
            ),
            names=tuple(array.name for array in entry.inputs),
            fixed=frozenset(p.name for p in entry.parameters if p.tree.kind == "value"),
            defaults={
                p.name: _tree(p.default, 0, size_names)
                for p in entry.parameters
                if p.default is not None
            },
        )

    def _array(self, array: graphs.GraphArray) -> tuple[Type, Shape]:
        return self._types.type(array.type), _shape(array.shape, self._entry.sizes)

    def _has_derivative(self, array: graphs.GraphArray) -> bool:
        return array.is_differentiable and is_differentiable(self._types.type(array.type))

    # -- plans -----------------------------------------------------------------------------

    def _plans(self, target: str, entry: graphs.PlansEntry) -> BuiltPlans:
        programs = {program.name: self._program(target, program) for program in entry.programs}
        plans = {
            Mode.PRIMAL: entry.primal,
            Mode.BACKWARD: entry.backward,
            Mode.FORWARD: entry.forward,
        }
        by_mode = {mode: self._plan(programs, mode, plan) for mode, plan in plans.items() if plan}
        return BuiltPlans(by_mode, reasons(entry.no_backward, entry.no_forward))

    def _program(self, target: str, entry: graphs.ProgramEntry) -> BuiltProgram:
        lowered = Lowered(
            program=self._files.program(target, entry, entry.parameters.words),
            mode=Mode.PRIMAL,
            resources=tuple(
                Resource(r.slot, Role.REPORT, ()) for r in entry.resources if r.is_report
            ),
            words=(),
            sites=sites(entry.sites),
        )
        return BuiltProgram(lowered, entry.kernel)

    def _plan(
        self, programs: Mapping[str, BuiltProgram], mode: Mode, entry: graphs.PlanEntry
    ) -> BuiltPlan:
        inputs, outputs = self._arrays(mode)
        input_count, buffer_count = len(inputs), len(entry.buffers)
        if (len(entry.inputs), len(entry.outputs)) != (input_count, len(outputs)):
            raise ValueError(f"a plan of `{self._entry.name}` for other arrays")
        if input_count > buffer_count:
            raise ValueError("an input without a buffer")
        size_names = {*self._entry.sizes, to.GROUP_LIMIT, to.SITE_BASE}
        size_names |= {to.start_of(k) for k in range(input_count)}
        commands = _Commands(self._entry.file, programs, input_count, buffer_count, size_names)
        instructions = commands.block(entry.commands)
        plan = to.Schedule(
            input_count=input_count,
            byte_counts=tuple(commands.byte_count(buffer.byte_count) for buffer in entry.buffers),
            outputs=tuple(
                to.Output(
                    self._types.type(o.type),
                    _shape(o.shape, self._entry.sizes),
                    commands.buffer(o.buffer),
                )
                for o in entry.outputs
            ),
            programs=tuple(program.lowered for program in commands.programs),
            instructions=instructions,
            aligned_inputs=frozenset(entry.aligned_inputs),
        )
        self._check_arrays(inputs, outputs, plan)
        input_buffers = frozenset(range(input_count))
        if not plan.aligned_inputs <= input_buffers:
            raise ValueError("an aligned input, which is none")
        if not {o.buffer for o in plan.outputs} <= input_buffers.union(*plan.block.begins):
            raise ValueError("a result that no command writes")
        return BuiltPlan(plan, commands.programs)

    def _arrays(self, mode: Mode) -> tuple[list[graphs.GraphArray], list[graphs.GraphArray]]:
        """The inputs and outputs of the plan of a mode."""
        inputs, outputs = self._entry.inputs, self._entry.outputs
        if mode is Mode.PRIMAL:
            return inputs, outputs
        variables, results = (
            [array for array in arrays if self._has_derivative(array)]
            for arrays in (inputs, outputs)
        )
        if mode is Mode.FORWARD:
            return [*inputs, *variables], [*outputs, *results]
        return [*inputs, *results], [*outputs, *variables]

    def _check_arrays(
        self,
        inputs: Sequence[graphs.GraphArray],
        outputs: Sequence[graphs.GraphArray],
        plan: to.Schedule,
    ) -> None:
        """Checks that inputs and results are those of the graph, and fill their buffers.

        If a graph assumes that sizes are equal, a result and its buffer may have the same length
        in other terms; `check_results` compares them once sizes are known.
        """
        counts = plan.byte_counts
        for array, count in zip(inputs, counts, strict=False):
            element, shape = self._array(array)
            if count != storage_bytes(element, product(shape)):
                raise ValueError(f"an input `{array.name}` of {count} bytes")
        for array, out in zip(outputs, plan.outputs, strict=True):
            if (out.element, out.shape) != self._array(array):
                raise ValueError(f"a result `{array.name}` of another type or shape")
            is_open = bool(self._entry.assumes.equal)
            if counts[out.buffer] != storage_bytes(out.element, product(out.shape)) and not is_open:
                raise ValueError(f"a result `{array.name}` of {counts[out.buffer]} bytes")


class _Commands:
    """Reads the commands of one plan in order."""

    def __init__(
        self,
        file: str,
        programs: Mapping[str, BuiltProgram],
        input_count: int,
        buffer_count: int,
        size_names: set[str],
    ) -> None:
        self._file = file
        self._programs = programs
        self._numbers: dict[str, int] = {}
        """The position of each program that a command names."""
        self._input_count = input_count
        self._buffer_count = buffer_count
        self._depth = 0
        self._in_scope = size_names
        """The sizes that are set at the current command."""
        self._mentioned = {*size_names}
        """The sizes that any command sets."""

    @property
    def programs(self) -> tuple[BuiltProgram, ...]:
        """The programs that commands name, in the order of their numbers."""
        return tuple(self._programs[name] for name in self._numbers)

    def block(self, commands: Sequence[graphs.Command]) -> tuple[to.Instruction, ...]:
        """The instructions of a block, which is the scope of the sizes that it sets."""
        outer, self._in_scope = self._in_scope, {*self._in_scope}
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise ValueError(f"a loop inside of {DEPTH_LIMIT} others")
        instructions = tuple(map(self._command, commands))
        self._depth -= 1
        self._mentioned |= self._in_scope
        self._in_scope = outer
        return instructions

    def size(self, text: SizeText) -> Size:
        return _size(text, self._in_scope)

    def byte_count(self, text: SizeText) -> Size:
        """The size of a buffer, which may belong to the scope of a loop."""
        return _size(text, self._mentioned)

    def buffer(self, number: int) -> int:
        if not 0 <= number < self._buffer_count:
            raise ValueError(f"a buffer {number}, which is none")
        return number

    def own(self, number: int) -> int:
        """A buffer that a command may write: none of the caller's."""
        if number < self._input_count:
            raise ValueError(f"a command that writes input {number}")
        return self.buffer(number)

    def _command(self, command: graphs.Command) -> to.Instruction:
        match command:
            case graphs.LetCommand():
                let = to.Let(command.name, self.size(command.size))
                self._in_scope.add(command.name)
                return let
            case graphs.RunCommand():
                return self._run(command)
            case graphs.CopyCommand():
                return self._copy(command)
            case graphs.FillCommand():
                return to.Set(self.own(command.target), command.word, self.size(command.byte_count))
            case graphs.RepeatCommand():
                return self._repeat(command)
            case graphs.WhileCommand():
                return to.RepeatBlockWhile(
                    carries=self._pairs(command.carries),
                    body=self.block(command.body),
                    goes_on=self.buffer(command.goes_on),
                    wants=self.buffer(command.wants),
                    limit=command.limit,
                    span=span_in(self._file, command.line),
                )

    def _run(self, command: graphs.RunCommand) -> to.Run:
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
            words=tuple(map(self.size, command.words)),
            group_count=self.size(command.groups),
            is_needed=self.size(command.if_positive),
        )

    def _check_written(self, command: graphs.RunCommand, program: Program) -> None:
        """Checks that no written buffer is bound twice or belongs to the caller."""
        written = [b.name for b in program.bindings if b.access is BindingAccess.WRITE]
        numbers = [self.own(command.bind[name]) for name in written if name in command.bind]
        if sum(number in numbers for number in command.bind.values()) != len(numbers):
            raise ValueError(f"a dispatch of `{command.program}` that writes what it binds twice")

    def _copy(self, command: graphs.CopyCommand) -> to.Move:
        if command.source == command.target:
            raise ValueError(f"a copy of buffer {command.source} to itself")
        return to.Move(
            source=self.buffer(command.source),
            source_offset=self.size(command.source_offset),
            target=self.own(command.target),
            target_offset=self.size(command.target_offset),
            byte_count=self.size(command.byte_count),
        )

    def _repeat(self, command: graphs.RepeatCommand) -> to.RepeatBlock:
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


def _size(text: SizeText, in_scope: Container[str]) -> Size:
    size = parsed(text)
    for name in sizes.symbols(size):
        if name not in in_scope:
            raise ValueError(f"a size `{name}`, which nothing sets")
    return size


def _shape(extents: Sequence[SizeText], in_scope: Container[str]) -> Shape:
    return tuple(_size(extent, in_scope) for extent in extents)


def _tree(entry: graphs.TreeEntry, count: int, in_scope: Container[str], depth: int = 0) -> Any:
    """The tree of `entry`, with a `Placeholder` for each of at most `count` arrays."""
    if depth > DEPTH_LIMIT:
        raise ValueError(f"a container inside of {DEPTH_LIMIT} others")
    if entry.kind == "array":
        if not 0 <= entry.index < count:
            raise ValueError(f"an array {entry.index}, which is none")
        return Placeholder(entry.index)
    if entry.kind == "size":
        return shown(_size(entry.size, in_scope))
    if entry.kind == "number":
        return _number(str(entry.value))
    if entry.kind == "value":
        return entry.value
    parts = [_tree(part, count, in_scope, depth + 1) for part in entry.parts]
    if entry.kind == "dict":
        return dict(zip(entry.names, parts, strict=True))
    if entry.kind == "named tuple":
        return _named_tuple(entry.name, entry.names, parts)
    return tuple(parts) if entry.kind == "tuple" else parts


def _number(text: str) -> int | float:
    return int(text) if text.removeprefix("-").isdecimal() else float(text)


def _named_tuple(name: str, names: Sequence[str], parts: Sequence[Any]) -> Any:
    """A named tuple of a new class with the name and fields of the source's."""
    if len(names) != len(parts):
        raise ValueError(f"a `{name}` of {len(parts)} fields")
    tuple_class: Any = namedtuple(name, names)  # pyright: ignore[reportUntypedNamedTuple]
    return tuple_class(*parts)
