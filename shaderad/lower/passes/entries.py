"""The entry points of reductions and scans around the kernel that computes their elements.

A pass of the library (shaders/reductions.slang, shaders/scans.slang) is generic over a struct that
defines how elements are computed, combined and stored; the entry point calls the pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from shaderad.bodies.reaches import END_ITEM, FIRST_ITEM, OWN, Reach
from shaderad.compiler.row_layouts import width_of
from shaderad.ir import composing as c
from shaderad.ir import ops, sizes
from shaderad.ir.arrays import Reducer
from shaderad.ir.nodes import (
    Call,
    Expr,
    Function,
    Parameter,
    Return,
)
from shaderad.ir.types import Struct, Type, is_bool, is_integer
from shaderad.ir.walk import Block
from shaderad.lower.bindings import Role, Word, WordKind
from shaderad.lower.entry.points import (
    EntryWriter,
    note_uniforms,
    open_group,
    send_report,
)
from shaderad.lower.entry.scope import INDEX, EntryScope
from shaderad.lower.entry.tiles import first_item, write_indices
from shaderad.lower.passes.runs import runs_of
from shaderad.lower.write.functions import FunctionWriter
from shaderad.lower.write.text import Piece


def result_name(stem: str, position: int) -> str:
    """The array of the results of the epilogue at `position`."""
    return f"{stem}_{position}" if position else stem


@dataclass(frozen=True, slots=True)
class Operator:
    """An associative operator on values of one type."""

    name: str
    state: Type
    """The type of elements and results."""
    combine: Function
    neutral: Expr
    """The result of an empty row; zero for functions, whose rows may not be empty."""
    is_commutative: bool = False
    """True if elements may be combined in any order."""


def operator_of(op: Reducer | Sequence[Reducer], t: Type) -> Operator:
    """`op` on elements of type `t`: one operator, or one for each field of `t`."""
    if isinstance(op, Sequence):
        assert isinstance(t, Struct)
        return _by_field(
            [operator_of(part_op, part) for part_op, (_, part) in zip(op, t.fields, strict=True)], t
        )
    if isinstance(op, Function):
        return Operator(op.name, t, op, c.zero(t))
    left, right = c.variable("left", t), c.variable("right", t)
    value = _sum(left, right) if op == ops.ADD else c.apply(op, left, right)
    combine = binary_function(op.name, t, value)
    return Operator(op.name, t, combine, c.neutral(op, t), is_commutative=True)


def _by_field(operators: Sequence[Operator], t: Struct) -> Operator:
    left, right = c.variable("left", t), c.variable("right", t)
    values = [
        Call(type=o.state, function=o.combine, args=(c.field(left, name), c.field(right, name)))
        for o, (name, _) in zip(operators, t.fields, strict=True)
    ]
    name = "_and_".join(dict.fromkeys(o.name for o in operators))
    combine = binary_function(name, t, c.construct(t, values))
    neutral = c.construct(t, [o.neutral for o in operators])
    is_commutative = all(o.is_commutative for o in operators)
    return Operator(name, t, combine, neutral, is_commutative=is_commutative)


def _sum(a: Expr, b: Expr) -> Expr:
    """The sum by field, integers included; bools give false."""
    if isinstance(a.type, Struct):
        return c.construct(
            a.type, [_sum(c.field(a, name), c.field(b, name)) for name, _ in a.type.fields]
        )
    if is_bool(a.type):
        return c.zero(a.type)
    return c.apply(ops.ADD, a, b) if is_integer(a.type) else c.added(a, b)


def binary_function(name: str, t: Type, value: Expr) -> Function:
    """The function of ``left`` and ``right``, of type `t`, that returns `value`."""
    return Function(
        name=name,
        parameters=(Parameter(name="left", type=t), Parameter(name="right", type=t)),
        result=t,
        body=(Return(value=value),),
        local_types={},
    )


@dataclass(frozen=True, kw_only=True)
class PassEntry(ABC):
    """The entry point of a pass."""

    operator: Operator
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    """The size that each word holds (compiler/row_layouts.py)."""
    is_together: bool = False
    """True if a group works on a chunk together; else each thread takes one."""
    start: str = ""
    """The array of initial values: one per row, or the prefix of each chunk; empty for none."""
    result: str
    """The array of results: one per row for a reduction, one per element for a scan."""
    epilogues: tuple[Function, ...] = ()
    """Functions of each result, its index, and uniforms by name; their values are stored in place
    of the result."""
    own_uniforms: frozenset[str] = frozenset()
    """Uniforms that the entry point reads and elements do not."""
    struct: ClassVar[str]
    """The name of the struct, which implements `interface`."""
    interface: ClassVar[str]
    function: ClassVar[str]
    """The pass of the library."""

    @property
    def writer(self) -> EntryWriter:
        """The form of the entry point."""
        return EntryWriter(
            self.note_needs, lambda e: Fold(e, self).write(), self.own_uniforms, self._after
        )

    @property
    def _after(self) -> Block:
        """The calls of the epilogues, from which the accesses of a window are derived."""
        zero = c.zero(self.operator.state)
        calls = [
            Call(type=f.result, function=f, args=(zero, *self._arguments(f.parameters[1:])))
            for f in self.epilogues
        ]
        if not calls:
            return ()
        results = Struct("results", tuple((f"result{k}", e.type) for k, e in enumerate(calls)))
        return (Return(value=c.construct(results, calls)),)

    @abstractmethod
    def _arguments(self, parameters: Sequence[Parameter]) -> list[Expr]:
        """The index and the uniforms of an epilogue, as far as the elements' kernel has them."""

    @property
    def called(self) -> tuple[Function, ...]:
        """The functions that every result goes through."""
        return (self.operator.combine, *self.epilogues)

    @property
    def stored(self) -> dict[str, Type]:
        """The arrays of results, and their types of elements."""
        if not self.epilogues:
            return {self.result: self.operator.state}
        return {result_name(self.result, k): f.result for k, f in enumerate(self.epilogues)}

    def note_needs(self, entry: EntryScope) -> None:
        """Binds the uniforms and arrays of the pass; writes its functions."""
        module, state, written = entry.module, self.operator.state, self.written(entry)
        module.workgroup_size = width_of(state)
        module.stored_types |= {state, *written.values()}
        note_uniforms(entry)
        for function in self.called:
            module.function(function)
        module.arrays.reaches |= self.reaches
        if self.start:
            module.arrays.need_elements(Role.INPUT, self.start, state)
        for name, t in written.items():
            module.arrays.need_results(name, t)

    @property
    @abstractmethod
    def reaches(self) -> dict[str, Reach | None]:
        """For each array that the pass adds, the elements that a window accesses."""

    @abstractmethod
    def written(self, entry: EntryScope) -> dict[str, Type]:
        """The arrays that the pass writes, with their types of elements."""

    @abstractmethod
    def write_results(self, fold: Fold) -> None:
        """Writes the functions of the struct that store results."""


class Fold:
    """Writes the struct and the entry point of a pass."""

    def __init__(self, entry: EntryScope, around: PassEntry) -> None:
        self.entry = entry
        self._around = around
        state = around.operator.state
        self.state = entry.module.types.spell(state)
        self.combine = entry.module.function(around.operator.combine)
        self._is_together = around.is_together
        self._width = width_of(state)
        self.runs = runs_of(
            entry.kernel,
            around.operator.combine,
            around.epilogues,
            is_built_in=around.operator.is_commutative,
            is_scan=isinstance(around, ScanEntry),
        )

    def write(self) -> tuple[str, Piece, Piece]:
        """The entry point's name, its tags and its text."""
        piece = self.entry.piece
        variables = self.entry.read_uniforms(self.entry.module.names)
        piece.add(*(f"static {t} {name};" for t, name, _ in variables))
        bases = self._around.interface
        if self._is_together:
            piece.add(f"groupshared {self.state} parts[{self._width}];", "")
            bases += ", ITeam"
        piece.open(f"struct {self._around.struct} : {bases}")
        self._write_element()
        self._around.write_results(self)
        piece.close()
        piece.add("")
        way = "_together" if self._is_together else ""
        name = self.entry.module.names.make(f"{self.entry.body}_{self._around.function}{way}")
        open_group(self.entry.module, piece, name, self._width)
        piece.add(*(f"{variable} = {text};" for _, variable, text in variables))
        self._call()
        if self.entry.module.sends_reports:
            piece.add(send_report(self.entry))
        piece.close()
        return name, self.entry.tags.piece, piece

    def _write_element(self) -> None:
        """Writes how elements are computed and combined."""
        entry, piece, state = self.entry, self.entry.piece, self.state
        piece.add(f"typealias State = {state};")
        piece.open(f"static {state} at(uint {INDEX})")
        if entry.module.variant.checks:
            piece.add(f"thread = {INDEX};")
        write_indices(entry)
        entry.call_body()
        element, *stored = entry.own
        for b in stored:
            entry.store(b, f"outputs.{entry.module.output(b.name)}")
        piece.add(f"return outputs.{entry.module.output(element.name)};", "}")
        head = f"static {state} folded({state} left, {state} right)"
        piece.add(f"{head} {{ return {self.combine}(left, right); }}")
        if self._is_together:
            head = f"static void setPartOf(uint thread, {state} value)"
            piece.add(
                f"static {state} partOf(uint thread) {{ return parts[thread]; }}",
                f"{head} {{ parts[thread] = value; }}",
            )

    def _call(self) -> None:
        piece, function = self.entry.piece, self._around.function
        names = ("row_length", "chunk_length", "chunk_count", "team_count")
        groups = self.entry.word(WordKind.GROUP_COUNT_X, "group_count_x")
        piece.call("Rows rows = Rows", [*map(self.size, names), groups])
        way, team_width = ("Together", 1) if self._is_together else ("Alone", self._width)
        types = f"{self._around.struct}, {self.runs}, {self._width}"
        piece.add(f"{function}{way}<{types}>(rows, {self._group(team_width)});")

    def _group(self, width: int) -> str:
        """The number of the group, each of which has `width` teams."""
        if not self.entry.module.variant.is_windowed:
            return "group.x"
        first = first_item(self.entry)
        return f"group.x + {first}" if width == 1 else f"group.x + {first} / {width}"

    def size(self, name: str) -> str:
        """The text of the size in the word `name`."""
        return self.entry.module.word(Word(WordKind.SIZE, self._around.words[name]), name)

    def start(self, number: str) -> str:
        """The text of an initial value."""
        number = f"({number})" if " " in number else number
        state = self._around.operator.state
        return self.entry.loaded(Role.INPUT, self._around.start, state, number)

    def store_results(self, place: str, value: str, number: str) -> list[str]:
        """The statements that store at `place` the result `value` of `number`, or its epilogues."""
        stored, epilogues = self._around.stored, self._around.epilogues
        values = [self._after(f, value, number) for f in epilogues] or [value]
        return [
            self.store(*array, place, v) for array, v in zip(stored.items(), values, strict=True)
        ]

    def _after(self, epilogue: Function, value: str, number: str) -> str:
        """The text of an epilogue of a result."""
        uniforms = {u.name: u for u in self.entry.kernel.uniforms}
        arguments = [
            self.entry.uniform(uniforms[p.name]) if p.name in uniforms else f"int({number})"
            for p in epilogue.parameters[1:]
        ]
        return f"{self.entry.module.function(epilogue)}({', '.join([value, *arguments])})"

    def store(self, array: str, t: Type, number: str, value: str) -> str:
        """The statement that stores an element."""
        return self.entry.stored(Role.OUTPUT, array, t, number, value)


@dataclass(frozen=True, kw_only=True)
class ReductionEntry(PassEntry):
    """A reduction of rows, or of the totals of their chunks."""

    struct, interface, function = "Reduction", "IReduction", "reduce"
    totals: str = ""
    """The array of chunk totals, for rows of several chunks."""
    is_commutative: bool = False
    """True if elements may be combined in any order."""

    @property
    def reaches(self) -> dict[str, Reach | None]:
        # If rows have several chunks, only the totals are stored.
        teams = Reach(sizes.symbol(FIRST_ITEM), sizes.subtract(sizes.symbol(END_ITEM), 1))
        return dict.fromkeys((*self.stored, self.totals, self.start), teams)

    def _arguments(self, parameters: Sequence[Parameter]) -> list[Expr]:
        # The number of a row is no index of elements, so an epilogue may read any element.
        return [c.variable(f"any {p.name}", p.type) for p in parameters]

    def written(self, entry: EntryScope) -> dict[str, Type]:
        totals = {self.totals: self.operator.state} if self.totals else {}
        return self.stored | totals | {b.name: b.type.element for b in entry.own[1:]}

    def write_results(self, fold: Fold) -> None:
        piece = fold.entry.piece
        if self.is_commutative:
            piece.add("override static bool isCommutative() { return true; }")
        value = f"{fold.combine}({fold.start('team')}, total)" if self.start else "total"
        stores = fold.store_results("team", value, "team")
        piece.open(f"static void write(uint team, {fold.state} total)")
        if self.totals:
            store_total = fold.store(self.totals, self.operator.state, "team", "total")
            piece.guarded(f"if ({fold.size('chunk_count')} > 1)", store_total)
            piece.guarded("else", *stores)
        else:
            piece.add(*stores)
        piece.close()
        stores = fold.store_results("team", self._start(fold), "team")
        piece.add(f"static void writeEmpty(uint team) {{ {' '.join(stores)} }}")

    def _start(self, fold: Fold) -> str:
        if self.start:
            return fold.start("team")
        return FunctionWriter(fold.entry.module, Piece(), {}).text(self.operator.neutral)


@dataclass(frozen=True, kw_only=True)
class ScanEntry(PassEntry):
    """A scan of rows."""

    struct, interface, function = "Scan", "IScan", "scan"
    is_mirrored: bool = False
    """True if the only row is stored from its end."""
    is_exclusive: bool = False
    """True if the epilogue for an index takes the result before it, undefined at index 0."""

    @property
    def reaches(self) -> dict[str, Reach | None]:
        last = sizes.subtract(sizes.symbol(f"{self.result}.0"), 1)
        mirrored = Reach(sizes.subtract(last, OWN.high), sizes.subtract(last, OWN.low))
        return dict.fromkeys(self.stored, mirrored if self.is_mirrored else OWN)

    def _arguments(self, parameters: Sequence[Parameter]) -> list[Expr]:
        return [c.variable(p.name, p.type) for p in parameters]

    def written(self, entry: EntryScope) -> dict[str, Type]:
        return self.stored

    def write_results(self, fold: Fold) -> None:
        piece = fold.entry.piece
        if self.start:
            head = f"override static {fold.state} beforeTeam(uint team)"
            piece.add(f"{head} {{ return {fold.start('max(team, 1) - 1')}; }}")
        if self.is_exclusive:
            fold.runs = "ExclusiveRuns"
        number = f"({fold.size('row_length')} - 1 - number)" if self.is_mirrored else "number"
        stores = fold.store_results(number, "value", "number")
        piece.add(f"static void write(uint number, {fold.state} value) {{ {' '.join(stores)} }}")
