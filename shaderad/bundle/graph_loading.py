"""The graphs of a manifest -> graphs that are called and differentiated by their plans.

Invariant: what is read refers only to programs, buffers and sizes that are there, so that a plan
that was spoiled is refused when it is loaded.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Container, Mapping, Sequence
from typing import Any

from shaderad.bundle import graph_description as graphs
from shaderad.bundle.field_types import SizeText
from shaderad.bundle.graph_rules import check_graph
from shaderad.bundle.loaded_files import Files, bindings, reasons, sites, span_in
from shaderad.bundle.size_text import parsed
from shaderad.bundle.type_names import TypeNames
from shaderad.ir import sizes
from shaderad.ir.arrays import ArrayType, Value
from shaderad.ir.sizes import Shape, Size, product
from shaderad.ir.types import is_differentiable
from shaderad.lower.artifact import Access, Program
from shaderad.lower.bindings import Lowered, Mode, Resource, Role
from shaderad.session import schedule as to
from shaderad.session import trees
from shaderad.session.graph_annotations import Wanted
from shaderad.session.graph_signatures import GraphSignature
from shaderad.session.loaded_graphs import LoadedGraph
from shaderad.session.places import storage_bytes
from shaderad.session.prebuilt_graphs import (
    BuiltGraph,
    BuiltPlan,
    BuiltPlans,
    BuiltProgram,
    PrebuiltGraph,
)
from shaderad.session.traced_calls import Placeholder, Variant
from shaderad.session.traced_sizes import shown

DEPTH_LIMIT = 32
"""Loops, or containers, inside of each other."""


def loaded_graph(files: Files, types: TypeNames, entry: graphs.GraphEntry) -> LoadedGraph:
    """One graph.

    Raises:
        CompileError: SR0722 for a file that is missing or was changed.
        KeyError, ValueError: Where the manifest speaks of what is not there.
    """
    return _Reader(files, types, entry).graph()


class _Reader:
    def __init__(self, files: Files, types: TypeNames, entry: graphs.GraphEntry) -> None:
        self._files = files
        self._types = types
        self._entry = entry

    def graph(self) -> LoadedGraph:
        entry, folder = self._entry, str(self._files.folder)
        check_graph(entry)
        inputs, outputs = (
            tuple(
                Value(ArrayType(self._types.type(one.type), _shape(one.shape, entry.sizes)))
                for one in given
            )
            for given in (entry.inputs, entry.outputs)
        )
        by_target = {name: self._plans(name, one) for name, one in entry.targets.items()}
        wanted = {one.name: self._has_derivative(one) for one in entry.inputs}
        built = BuiltGraph(entry.name, folder, by_target, wanted)
        known = frozenset(entry.sizes)
        variant = Variant(
            graph=PrebuiltGraph(inputs, outputs, built),
            out=_tree(entry.result, len(outputs), known),
            captured=(),
            constants=(),
            equal_sizes=tuple((_size(a, known), _size(b, known)) for a, b in entry.assumes.equal),
            positive_sizes=tuple(_size(one, known) for one in entry.assumes.positive),
        )
        return LoadedGraph(self._signature(inputs), variant, folder)

    def _signature(self, inputs: Sequence[Value]) -> GraphSignature:
        entry, known = self._entry, frozenset(self._entry.sizes)
        skeleton = {p.name: _tree(p.tree, len(inputs), known) for p in entry.parameters}
        arrays = [one for one in trees.leaves(skeleton) if isinstance(one, Placeholder)]
        if [one.position for one in arrays] != [*range(len(inputs))]:
            raise ValueError("inputs other than those of its parameters")
        return GraphSignature(
            name=entry.name,
            skeleton=skeleton,
            wanted=tuple(
                Wanted(v.element, tuple(one.shape))
                for v, one in zip(inputs, entry.inputs, strict=True)
            ),
            names=tuple(one.name for one in entry.inputs),
            fixed=frozenset(p.name for p in entry.parameters if p.tree.kind == "value"),
            defaults={p.name: _tree(p.default, 0, known)
                      for p in entry.parameters if p.default is not None},
        )  # fmt: skip

    # -- plans -----------------------------------------------------------------------------

    def _plans(self, target: str, entry: graphs.PlansEntry) -> BuiltPlans:
        programs = {one.name: self._program(target, one) for one in entry.programs}
        given = {
            Mode.PRIMAL: entry.primal,
            Mode.BACKWARD: entry.backward,
            Mode.FORWARD: entry.forward,
        }
        by_mode = {mode: self._plan(programs, mode, one) for mode, one in given.items() if one}
        return BuiltPlans(by_mode, reasons(entry.no_backward, entry.no_forward))

    def _program(self, target: str, one: graphs.ProgramEntry) -> BuiltProgram:
        files = self._files
        program = Program(
            name=one.entry_point,
            slang=files.text(one.slang),
            workgroup=one.workgroup,
            bindings=bindings(one.parameters, one.resources),
            parameter_words=tuple(one.parameters.words),
            features=frozenset(one.features),
            library=files.library,
            space=files.space(target),
            code=files.code(target, one.file),
        )
        lowered = Lowered(
            program=program,
            mode=Mode.PRIMAL,
            resources=tuple(Resource(r.slot, Role.REPORT, ()) for r in one.resources
                            if r.is_report),
            words=(),
            sites=sites(one.sites),
        )  # fmt: skip
        return BuiltProgram(lowered, one.kernel)

    def _plan(
        self, programs: Mapping[str, BuiltProgram], mode: Mode, entry: graphs.PlanEntry
    ) -> BuiltPlan:
        given, made = self._arrays(mode)
        if (len(entry.inputs), len(entry.outputs)) != (len(given), len(made)):
            raise ValueError(f"a plan of `{self._entry.name}` for other arrays")
        known = {*self._entry.sizes, to.GROUP_LIMIT, to.SITE_BASE}
        known |= {to.start_of(k) for k in range(len(entry.inputs))}
        if len(entry.inputs) > len(entry.buffers):
            raise ValueError("an input without a buffer")
        commands = _Commands(self._entry.file, programs, len(entry.inputs), len(entry.buffers),
                             known)  # fmt: skip
        instructions = commands.block(entry.commands)
        found = to.Schedule(
            input_count=len(entry.inputs),
            byte_counts=tuple(commands.byte_count(one.byte_count) for one in entry.buffers),
            outputs=tuple(
                to.Output(self._types.type(o.type), _shape(o.shape, self._entry.sizes),
                          commands.buffer(o.buffer))
                for o in entry.outputs
            ),
            programs=tuple(one.lowered for one in commands.programs),
            instructions=instructions,
            aligned_inputs=frozenset(entry.aligned_inputs),
        )  # fmt: skip
        self._check_arrays(mode, found)
        inputs = frozenset(range(found.input_count))
        if not found.aligned_inputs <= inputs:
            raise ValueError("an aligned input, which is none")
        if not {one.buffer for one in found.outputs} <= inputs.union(*found.block.begins):
            raise ValueError("a result that no command writes")
        return BuiltPlan(found, commands.programs)

    def _has_derivative(self, one: graphs.GraphArray) -> bool:
        return one.is_differentiable and is_differentiable(self._types.type(one.type))

    def _arrays(self, mode: Mode) -> tuple[list[graphs.GraphArray], list[graphs.GraphArray]]:
        """What a mode's plan takes and gives."""
        given, made = self._entry.inputs, self._entry.outputs
        if mode is Mode.PRIMAL:
            return given, made
        moving = [[one for one in arrays if self._has_derivative(one)] for arrays in (given, made)]
        moving_in, moving_out = moving if mode is Mode.FORWARD else reversed(moving)
        return [*given, *moving_in], [*made, *moving_out]

    def _check_arrays(self, mode: Mode, plan: to.Schedule) -> None:
        """Inputs and results are the graph's own, and their buffers hold them whole.

        Where a graph assumes sizes to be equal, a result may be as long as its buffer in other
        words; `check_results` compares them once sizes are known.
        """
        given, made = self._arrays(mode)
        types, names = self._types, self._entry.sizes
        counts = plan.byte_counts
        for one, found in zip(given, counts, strict=False):
            if found != storage_bytes(types.type(one.type), product(_shape(one.shape, names))):
                raise ValueError(f"an input `{one.name}` of {found} bytes")
        for one, out in zip(made, plan.outputs, strict=True):
            if (out.element, out.shape) != (types.type(one.type), _shape(one.shape, names)):
                raise ValueError(f"a result `{one.name}` of another type or shape")
            is_open = bool(self._entry.assumes.equal)
            if counts[out.buffer] != storage_bytes(out.element, product(out.shape)) and not is_open:
                raise ValueError(f"a result `{one.name}` of {counts[out.buffer]} bytes")


class _Commands:
    """The commands of one plan, while they are read in order."""

    def __init__(
        self,
        file: str,
        programs: Mapping[str, BuiltProgram],
        input_count: int,
        buffer_count: int,
        known: set[str],
    ) -> None:
        self._file = file
        self._programs = programs
        self._numbers: dict[str, int] = {}
        """Of the programs that are used."""
        self._input_count = input_count
        self._buffer_count = buffer_count
        self._depth = 0
        self._known = known
        """Names of sizes that are set by now."""
        self._mentioned = {*known}
        """Those that any command sets."""

    @property
    def programs(self) -> tuple[BuiltProgram, ...]:
        """Those that the commands name, as they number them."""
        return tuple(self._programs[name] for name in self._numbers)

    def block(self, given: Sequence[graphs.Command]) -> tuple[to.Instruction, ...]:
        """The commands of a block; names that it sets end with it."""
        outer, self._known = self._known, {*self._known}
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise ValueError(f"a loop inside of {DEPTH_LIMIT} others")
        found = tuple(self._command(one) for one in given)
        self._depth -= 1
        self._mentioned |= self._known
        self._known = outer
        return found

    def size(self, text: SizeText) -> Size:
        return _size(text, self._known)

    def byte_count(self, text: SizeText) -> Size:
        """Of a buffer, which may live inside of a loop."""
        return _size(text, self._mentioned)

    def buffer(self, number: int) -> int:
        if not 0 <= number < self._buffer_count:
            raise ValueError(f"a buffer {number}, which is none")
        return number

    def own(self, number: int) -> int:
        """A buffer that is written: the caller's are not."""
        if number < self._input_count:
            raise ValueError(f"a command that writes input {number}")
        return self.buffer(number)

    def _command(self, one: graphs.Command) -> to.Instruction:
        match one:
            case graphs.LetCommand():
                found = to.Let(one.name, self.size(one.size))
                self._known.add(one.name)
                return found
            case graphs.RunCommand():
                return self._run(one)
            case graphs.CopyCommand():
                return self._copy(one)
            case graphs.FillCommand():
                return to.Set(self.own(one.target), one.word, self.size(one.byte_count))
            case graphs.RepeatCommand():
                return self._repeat(one)
            case graphs.WhileCommand():
                return to.RepeatWhile(
                    carries=self._pairs(one.carries),
                    body=self.block(one.body),
                    goes_on=self.buffer(one.goes_on),
                    wants=self.buffer(one.wants),
                    limit=one.limit,
                    span=span_in(self._file, one.line),
                )

    def _run(self, one: graphs.RunCommand) -> to.Run:
        lowered = self._programs[one.program].lowered
        reports = {r.slot for r in lowered.resources}
        slots = {b.name: b.slot for b in lowered.program.bindings if b.access != Access.UNIFORM}
        wanted = {name for name, slot in slots.items() if slot not in reports}
        if set(one.bind) != wanted or len(one.words) != len(lowered.program.parameter_words):
            raise ValueError(f"a dispatch of `{one.program}` that does not fit it")
        self._check_written(one, lowered.program)
        return to.Run(
            program=self._numbers.setdefault(one.program, len(self._numbers)),
            bindings=tuple((slots[name], self.buffer(k)) for name, k in one.bind.items()),
            words=tuple(map(self.size, one.words)),
            group_count=self.size(one.groups),
            is_needed=self.size(one.if_positive),
        )

    def _check_written(self, one: graphs.RunCommand, program: Program) -> None:
        """What is written is bound once, and not the caller's."""
        written = [b.name for b in program.bindings if b.access is Access.WRITE]
        numbers = [self.own(one.bind[name]) for name in written if name in one.bind]
        if sum(number in numbers for number in one.bind.values()) != len(numbers):
            raise ValueError(f"a dispatch of `{one.program}` that writes what it binds twice")

    def _copy(self, one: graphs.CopyCommand) -> to.Move:
        if one.source == one.target:
            raise ValueError(f"a copy of buffer {one.source} to itself")
        return to.Move(
            source=self.buffer(one.source),
            source_offset=self.size(one.source_offset),
            target=self.own(one.target),
            target_offset=self.size(one.target_offset),
            byte_count=self.size(one.byte_count),
        )

    def _repeat(self, one: graphs.RepeatCommand) -> to.Repeat:
        count = self.size(one.count)
        start = tuple(map(self._copy, one.start))
        outer, self._known = self._known, {*self._known, one.symbol}
        body = self.block(one.body)
        self._known = outer
        return to.Repeat(
            symbol=one.symbol,
            count=count,
            is_reversed=one.is_reversed,
            carries=self._pairs(one.carries),
            rows=tuple(map(self.buffer, one.rows)),
            start=start,
            body=body,
        )

    def _pairs(self, given: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        return tuple((self.own(left), self.own(right)) for left, right in given)


def _size(text: SizeText, known: Container[str]) -> Size:
    found = parsed(text)
    for name in sizes.symbols(found):
        if name not in known:
            raise ValueError(f"a size `{name}`, which nothing sets")
    return found


def _shape(given: Sequence[SizeText], known: Container[str]) -> Shape:
    return tuple(_size(one, known) for one in given)


def _tree(entry: graphs.TreeEntry, count: int, known: Container[str], depth: int = 0) -> Any:
    """The tree, with a `Placeholder` below `count` for each array."""
    if depth > DEPTH_LIMIT:
        raise ValueError(f"a container inside of {DEPTH_LIMIT} others")
    if entry.kind == "array":
        if not 0 <= entry.index < count:
            raise ValueError(f"an array {entry.index}, which is none")
        return Placeholder(entry.index)
    if entry.kind == "size":
        return shown(_size(entry.size, known))
    if entry.kind == "number":
        return _number(str(entry.value))
    if entry.kind == "value":
        return entry.value
    parts = [_tree(part, count, known, depth + 1) for part in entry.parts]
    if entry.kind == "dict":
        return dict(zip(entry.names, parts, strict=True))
    if entry.kind == "named tuple":
        return _named_tuple(entry.name, entry.names, parts)
    return tuple(parts) if entry.kind == "tuple" else parts


def _number(text: str) -> int | float:
    return int(text) if text.removeprefix("-").isdecimal() else float(text)


def _named_tuple(name: str, names: Sequence[str], parts: Sequence[Any]) -> Any:
    """A tuple as the source has it; its class is made anew."""
    if len(names) != len(parts):
        raise ValueError(f"a `{name}` of {len(parts)} fields")
    made: Any = namedtuple(name, names)  # pyright: ignore[reportUntypedNamedTuple]
    return made(*parts)
