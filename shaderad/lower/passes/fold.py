"""The struct over which a pass of the library is generic, and the entry point that calls the pass.

The struct tells passes (shaders/reductions.slang, shaders/scans.slang) how elements are computed,
combined and stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, islice

from shaderad.ir.arrays import RowEpilogue
from shaderad.ir.nodes import Function, Kernel
from shaderad.ir.types import Tuple, Type, byte_count, leaves
from shaderad.ir.walk import all_expressions, reachable
from shaderad.lower.bindings import Role, Word, WordKind
from shaderad.lower.entry.needs import note_uniforms
from shaderad.lower.entry.points import send_report, write_indices
from shaderad.lower.entry.scope import INDEX, EntryScope
from shaderad.lower.passes.operators import Operator
from shaderad.lower.write.arrays import write_buffer
from shaderad.lower.write.piece import Piece
from shaderad.lower.write.slang import FunctionWriter

_GROUP_MEMORY = 16 * 1024
"""Bytes of group memory that WebGPU promises."""

_LONG = 120
"""Code is not repeated for elements and combinations of so many expressions."""
_FEW = 4
"""Code is not repeated for states of more scalars."""


def width_of(state: Type) -> int:
    """Threads of a group; each has a state in group memory if `has_room`."""
    places = _GROUP_MEMORY // byte_count(state)
    return next((width for width in (64, 32, 16) if width <= places), 8)


def has_room(state: Type) -> bool:
    """True if group memory has room for a state a thread."""
    return width_of(state) * byte_count(state) <= _GROUP_MEMORY


def runs_of(producer: Kernel, functions: tuple[Function, ...], state: Type) -> str:
    """The type of shaders/runs.slang by which threads iterate over their elements."""
    own = (producer.body, *(f.body for f in functions))
    bodies = [*own, *(f.body for body in own for f in reachable(body))]
    # Shared expressions count at each use, which may be very often: stop at the limit.
    count = sum(1 for _ in islice(chain.from_iterable(map(all_expressions, bodies)), _LONG))
    is_small = len(leaves(state)) <= _FEW
    return "BlockRuns" if is_small and count < _LONG else "SingleRuns"


def result_of(epilogue: RowEpilogue) -> Type:
    """The type that a scan with `epilogue` stores."""
    result = epilogue.function.result
    return result.elements[0] if isinstance(result, Tuple) else result


def stored_type(operator: Operator, epilogue: Function | None) -> Type:
    return operator.state if epilogue is None else epilogue.result


def _called(operator: Operator, epilogue: Function | None) -> tuple[Function, ...]:
    return (operator.combine,) if epilogue is None else (operator.combine, epilogue)


def note_needs(
    entry: EntryScope,
    operator: Operator,
    epilogue: Function | None,
    read: list[str],
    written: Mapping[str, Type],
) -> None:
    """Binds the uniforms of a pass and the arrays `read` and `written`; writes its functions."""
    module, state = entry.module, operator.state
    module.workgroup_size = width_of(state)
    module.stored_types |= {state, *written.values()}
    note_uniforms(entry)
    for function in _called(operator, epilogue):
        module.function(function)
    for name in read:
        module.arrays.need_elements(Role.INPUT, name, state)
    for name, t in written.items():
        module.arrays.need(Role.OUTPUT, name, t, write_buffer(t))


class Fold:
    """Writes the struct and the entry point of a pass."""

    def __init__(
        self,
        entry: EntryScope,
        operator: Operator,
        words: Mapping[str, str],
        epilogue: Function | None,
    ) -> None:
        self.entry = entry
        self._epilogue = epilogue
        self.state = entry.module.types.spell(operator.state)
        self.combine = entry.module.function(operator.combine)
        self._operator = operator
        self._words = words
        self._is_together = "is_together" in words
        self._width = width_of(operator.state)
        self.runs = runs_of(entry.kernel, _called(operator, epilogue), operator.state)
        self._name = ""
        self._kept: list[tuple[str, str, str]] = []

    def open(self, head: str) -> None:
        """Writes group memory, and the first lines of the struct."""
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
        head = f"static {self.state} folded({self.state} left, {self.state} right)"
        piece.add(f"{head} {{ return {self.combine}(left, right); }}")
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
        entry.call_body()
        element, *stored = entry.own
        for b in stored:
            entry.store(b, f"outputs.{entry.module.output(b.name)}")
        entry.piece.add(f"return outputs.{entry.module.output(element.name)};")
        entry.piece.close()

    def close(self, function: str) -> tuple[str, Piece, Piece]:
        """Writes the end of the struct, and the entry point, which calls the library's `function`.

        Returns the entry point's name, its tags and its text.
        """
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
        call = f"<{self._name}, {self.runs}, {self._width}>(rows, group.x);"
        if self._is_together:
            piece.add(f"if ({self.size('is_together')} != 0)")
            piece.indented(f"{function}Together{call}")
            piece.add("else")
            piece.indented(f"{function}Alone{call}")
        else:
            piece.add(f"{function}Alone{call}")
        if entry.module.sends_reports:
            piece.add(send_report(entry))
        piece.close()
        return name, entry.tags.piece, piece

    def size(self, name: str) -> str:
        """The text of the size in the word `name`."""
        return self.entry.module.word(Word(WordKind.SIZE, self._words[name]), name)

    def read(self, array: str, number: str) -> str:
        tag = self.entry.tags.reader(Role.INPUT, array, self._operator.state)
        return f"{self.state}.read<{tag}>({self._offset(number)})"

    def store_result(self, array: str, number: str, value: str) -> str:
        """The statement that stores the epilogue of a result."""
        t = stored_type(self._operator, self._epilogue)
        return self.store(array, t, number, self._after_epilogue(value))

    def _after_epilogue(self, value: str) -> str:
        if self._epilogue is None:
            return value
        return f"{self.entry.module.function(self._epilogue)}({value})"

    def in_row(self, epilogue: RowEpilogue, value: str) -> str:
        """The call of a row's epilogue with the result at `number` and uniforms."""
        function = epilogue.function
        uniforms = {u.name: u for u in self.entry.kernel.uniforms}
        arguments = [self._after_epilogue(value), "int(number)"]
        arguments += [self.entry.uniforms.value(uniforms[p.name]) for p in function.parameters[2:]]
        return f"{self.entry.module.function(function)}({', '.join(arguments)})"

    def store_in_row(self, array: str, epilogue: RowEpilogue, value: str) -> str:
        """The statement that stores the result of a row's epilogue."""
        number = f"({self.size('row_length')} - 1 - number)" if epilogue.is_mirrored else "number"
        return self.store(array, result_of(epilogue), number, value)

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
