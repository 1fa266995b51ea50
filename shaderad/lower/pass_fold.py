"""The struct over which a pass of the library is generic, and what its entry point begins with.

The library's passes (shaders/reductions.slang, shaders/scans.slang) ask what an element is, how
two are combined and where results go.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice

from shaderad.ir.arrays import Ending
from shaderad.ir.nodes import Function, Kernel
from shaderad.ir.types import Tuple, Type, byte_count, leaves
from shaderad.ir.walk import all_expressions, reachable
from shaderad.lower.arrays import write_cell
from shaderad.lower.bindings import Role, Word, WordKind
from shaderad.lower.entry_needs import note_uniforms
from shaderad.lower.entry_points import send_report, write_indices
from shaderad.lower.entry_scope import INDEX, EntryScope
from shaderad.lower.operators import Operator
from shaderad.lower.piece import Piece
from shaderad.lower.slang import FunctionWriter

_GROUP_MEMORY = 16 * 1024
"""Bytes of group memory that WebGPU promises."""

_LONG = 120
"""Expressions of an element and its combination, from which on their code is not repeated."""
_FEW = 4
"""Scalars of a state, beyond which it is not either."""


def width_of(state: Type) -> int:
    """Threads of a group, each of which has a place in group memory where `has_room`."""
    places = _GROUP_MEMORY // byte_count(state)
    return next((width for width in (64, 32, 16) if width <= places), 8)


def has_room(state: Type) -> bool:
    """Whether a group can work on one chunk together."""
    return width_of(state) * byte_count(state) <= _GROUP_MEMORY


def runs_of(producer: Kernel, functions: tuple[Function, ...], state: Type) -> str:
    """How threads go through their elements: shaders/runs.slang."""
    own = (producer.body, *(f.body for f in functions))
    bodies = [*own, *(f.body for body in own for f in reachable(body))]
    found = chain.from_iterable(map(all_expressions, bodies))
    # Shared expressions count as often as they are reached, which may be very often.
    count = sum(1 for _ in islice(found, _LONG))
    is_small = len(leaves(state)) <= _FEW
    return "BlockRuns" if is_small and count < _LONG else "SingleRuns"


def result_of(ending: Ending) -> Type:
    result = ending.function.result
    return result.elements[0] if isinstance(result, Tuple) else result


def called(operator: Operator, finish: Function | None) -> tuple[Function, ...]:
    return (operator.combine,) if finish is None else (operator.combine, finish)


def stored_type(operator: Operator, finish: Function | None) -> Type:
    return operator.state if finish is None else finish.result


def note_needs(
    entry: EntryScope,
    operator: Operator,
    finish: Function | None,
    read: list[str],
    written: Mapping[str, Type],
) -> None:
    module, state = entry.module, operator.state
    module.workgroup_size = width_of(state)
    module.stored_types |= {state, *written.values()}
    note_uniforms(entry)
    for function in called(operator, finish):
        module.function(function)
    for name in read:
        module.arrays.need_elements(Role.INPUT, name, state)
    for name, t in written.items():
        module.arrays.need(Role.OUTPUT, name, t, write_cell(t))


class Fold:
    """The struct over which a pass is generic, while it is written."""

    def __init__(
        self,
        entry: EntryScope,
        operator: Operator,
        words: Mapping[str, str],
        finish: Function | None,
    ) -> None:
        self.entry = entry
        self._finish = finish
        self.state = entry.module.types.spell(operator.state)
        self.combine = entry.module.function(operator.combine)
        self._operator = operator
        self._words = words
        self._is_together = "is_together" in words
        self._width = width_of(operator.state)
        self.runs = runs_of(entry.kernel, called(operator, finish), operator.state)
        self._name = ""
        self._kept: list[tuple[str, str, str]] = []

    def open(self, head: str) -> None:
        """Group memory, and the first lines of the struct."""
        piece, bases = self.entry.piece, head
        uniforms = self.entry.kernel.uniforms
        self._kept = self.entry.uniforms.kept(uniforms, self.entry.module.names)
        for t, name, _ in self._kept:
            piece.add(f"static {t} {name};")
        if self._is_together:
            piece.add(f"groupshared {self.state} parts[{self._width}];")
            piece.add()
            bases += ", ITeam"
        self._name = head.partition(" ")[0]
        piece.open(f"struct {bases}")
        piece.add(f"typealias State = {self.state};")
        self._write_element()
        given = f"{self.state} left, {self.state} right"
        text = f"return {self.combine}(left, right);"
        piece.add(f"static {self.state} folded({given}) {{ {text} }}")
        if self._is_together:
            piece.add(f"static {self.state} partOf(uint thread) {{ return parts[thread]; }}")
            head = f"static void setPartOf(uint thread, {self.state} value)"
            piece.add(f"{head} {{ parts[thread] = value; }}")

    def _write_element(self) -> None:
        entry = self.entry
        entry.piece.open(f"static {self.state} at(uint {INDEX})")
        if entry.module.variant.checks:
            entry.piece.add(f"thread = {INDEX};")
        write_indices(entry)
        entry.call_body(entry.arguments())
        own, *kept = entry.own
        for b in kept:
            entry.store(b, f"outputs.{entry.module.output(b.name)}")
        entry.piece.add(f"return outputs.{entry.module.output(own.name)};")
        entry.piece.close()

    def close(self, function: str) -> tuple[str, Piece, Piece]:
        """The end of the struct, and the entry point, which calls `function` of the library."""
        entry, piece = self.entry, self.entry.piece
        piece.close()
        piece.add()
        name = entry.module.names.make(f"{entry.body}_{function}")
        piece.add('[shader("compute")]')
        piece.add(f"[numthreads({self._width}, 1, 1)]")
        piece.open(f"void {name}(uint3 group : SV_GroupID, uint laneIndex : SV_GroupIndex)")
        piece.add("lane = laneIndex;")
        for _, variable, text in self._kept:
            piece.add(f"{variable} = {text};")
        names = ("row_length", "chunk_length", "chunk_count", "team_count")
        groups = entry.word(WordKind.GROUP_COUNT_X, "group_count_x")
        missing = self.size("missing") if "missing" in self._words else "0"
        piece.call("Rows rows = Rows", [*map(self.size, names), groups, missing])
        if self._is_together:
            piece.add(f"if ({self.size('is_together')} != 0)")
            piece.indented(
                f"{function}Together<{self._name}, {self.runs}, {self._width}>(rows, group.x);"
            )
            piece.add("else")
            piece.indented(
                f"{function}Alone<{self._name}, {self.runs}, {self._width}>(rows, group.x);"
            )
        else:
            piece.add(f"{function}Alone<{self._name}, {self.runs}, {self._width}>(rows, group.x);")
        if entry.module.sends_reports:
            piece.add(send_report(entry))
        piece.close()
        return name, entry.tags.piece, piece

    def size(self, name: str) -> str:
        return self.entry.module.word(Word(WordKind.SIZE, self._words[name]), name)

    def read(self, array: str, number: str) -> str:
        tag = self.entry.tags.reader(Role.INPUT, array, self._operator.state)
        return f"{self.state}.read<{tag}>({self._offset(number)})"

    def store_finished(self, array: str, number: str, value: str) -> str:
        """Stores what is made of a result."""
        t = stored_type(self._operator, self._finish)
        return self.store(array, t, number, self.finished(value))

    def ended(self, ending: Ending, found: str) -> str:
        """What is computed from what a scan has found at `number`."""
        return self.call(ending.function, [self.finished(found), "int(number)"])

    def call(self, function: Function, given: list[str]) -> str:
        """A call whose further arguments are uniforms."""
        uniforms = {u.name: u for u in self.entry.kernel.uniforms}
        values = [self.entry.uniforms.value(uniforms[p.name])
                  for p in function.parameters[len(given):]]  # fmt: skip
        return f"{self.entry.module.function(function)}({', '.join([*given, *values])})"

    def store_ended(self, array: str, ending: Ending, value: str) -> str:
        number = f"({self.size('row_length')} - 1 - number)" if ending.is_mirrored else "number"
        return self.store(array, result_of(ending), number, value)

    def finished(self, value: str) -> str:
        if self._finish is None:
            return value
        return f"{self.entry.module.function(self._finish)}({value})"

    def store(self, array: str, t: Type, number: str, value: str) -> str:
        tag = self.entry.tags.writer(Role.OUTPUT, array, t)
        spelled = self.entry.module.types.spell(t)
        return f"{spelled}.write<{tag}>({number} * {spelled}.wordCount, {value});"

    def _offset(self, number: str) -> str:
        number = f"({number})" if " " in number else number
        return f"{number} * {self.state}.wordCount"

    def neutral(self) -> str:
        writer = FunctionWriter(self.entry.module, Piece(), {})
        return writer.text(self._operator.neutral)
