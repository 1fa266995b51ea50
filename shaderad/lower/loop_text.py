"""Outlined loops as text: an `ILoop` struct each, and the call that runs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shaderad.bodies.trip_counts import trip_count
from shaderad.ir.made_names import made_name
from shaderad.ir.nodes import Const, For, While
from shaderad.ir.types import INT, Type
from shaderad.lower.bindings import SiteKind
from shaderad.lower.loops import Keeping, LoopFunction
from shaderad.lower.names import member_names
from shaderad.lower.piece import Piece

if TYPE_CHECKING:
    from shaderad.lower.slang import FunctionWriter


_COUNT, _START, _STEP = map(made_name, ("loop_count", "loop_start", "loop_step"))


class LoopWriter:
    """Writes an outlined loop as an `ILoop` struct; see shaders/loops.slang."""

    def __init__(
        self,
        outer: FunctionWriter,
        f: LoopFunction,
        new_writer: Callable[[Piece], FunctionWriter],
    ) -> None:
        self._outer = outer
        self._new_writer = new_writer
        self._module = outer.module
        self._f = f
        self._name = self._module.names.make(f.name, f)
        for _, t in (*f.state, *f.captured):
            self._module.types.spell(t)
        self._fields = member_names(self._module.types.all_names())
        loop = f.loop
        self._extra: list[tuple[str, str]] = []
        if isinstance(loop, For):
            if not all(isinstance(b, Const) for b in (loop.start, loop.stop, loop.step)):
                self._extra.append((_COUNT, self._count_text(loop)))
            if not isinstance(loop.start, Const):
                self._extra.append((_START, outer.text(loop.start)))
            if not isinstance(loop.step, Const):
                self._extra.append((_STEP, outer.text(loop.step)))

    def _count_text(self, loop: For) -> str:
        start, stop, step = (self._outer.text(e) for e in (loop.start, loop.stop, loop.step))
        return stop if (start, step) == ("0", "1") else f"rangeCount({start}, {stop}, {step})"

    def field(self, name: str) -> str:
        """The field of `State` or `Captured` that holds a local."""
        return self._fields.make(name, name)

    def call(self) -> tuple[str, tuple[str, ...]]:
        """Writes the struct; returns the function that runs the loop, and its arguments."""
        self._write()
        f, name = self._f, self._name
        state = ", ".join(self._outer.variable(n) for n, _ in f.state) or "0"
        captured = ", ".join(
            [*(self._outer.variable(n) for n, _ in f.captured), *(t for _, t in self._extra)]
        )
        values = f"{name}.State({state})", f"{name}.Captured({captured or '0'})"
        if f.keeping is Keeping.ALL:
            return f"runLoop<{name}, {max(f.limit or 1, 1)}>", values
        if f.keeping is Keeping.CHECKPOINTS:
            count, length = f.segments
            return f"runCheckpointedLoop<{name}, {count}, {length}>", (*values, str(f.limit))
        limit = "noLimit" if f.limit is None else str(f.limit)
        # Unbounded ones too: `check_loop` refuses to run those in reverse.
        return f"runSummingLoop<{name}>", (*values, limit)

    def _write(self) -> None:
        piece = Piece()
        piece.span = self._f.loop.span
        kind = "for" if isinstance(self._f.loop, For) else "while"
        piece.add(f"/// A `{kind}` loop: what it carries, what it reads, and one step of it.")
        piece.open(f"struct {self._name} : ILoop")
        extra = [(n, INT) for n, _ in self._extra]
        self._write_fields(piece, "State", self._f.state)
        self._write_fields(piece, "Captured", (*self._f.captured, *extra))
        self._more(piece)
        self._step(piece)
        if self._module.twice:
            self._step_fwd(piece)
        if self._f.may_overrun:
            self._overrun(piece)
        piece.close()
        self._module.pieces.append(piece)

    def _write_fields(self, piece: Piece, name: str, fields: tuple[tuple[str, Type], ...]) -> None:
        piece.open(f"struct {name} : IDifferentiable")
        for field, t in fields:
            piece.add(f"{self._module.types.spell(t)} {self.field(field)};")
        if not fields:
            piece.add("int none;")
        piece.close()

    def _writer(self, piece: Piece) -> FunctionWriter:
        writer = self._new_writer(piece)
        for name, _ in self._f.captured:
            writer.bind(name, f"captured.{self.field(name)}")
        return writer

    def _more(self, piece: Piece) -> None:
        loop = self._f.loop
        writer = self._writer(piece)
        writer.is_differentiated = False
        for name, _ in self._f.state:
            writer.bind(name, f"state.{self.field(name)}")
        parts = [f"!{writer.variable(flag)}" for flag in loop.exits]
        if isinstance(loop, While):
            parts.append(writer.text(loop.condition, 31))
        else:
            counted = any(n == _COUNT for n, _ in self._extra)
            count = f"captured.{self.field(_COUNT)}" if counted else str(trip_count(loop))
            parts.insert(0, f"k < {count}")
        piece.open("static bool more(int k, State state, Captured captured)")
        piece.add(f"return {' && '.join(parts)};")
        piece.close()

    def _step(self, piece: Piece) -> None:
        loop = self._f.loop
        writer = self._writer(piece)
        variable = writer.parameter(loop.variable) if isinstance(loop, For) else ""
        is_plain = isinstance(loop, For) and self._is_plain(loop)
        counter = variable if is_plain else writer.names.make("k")
        piece.add("[Differentiable]")
        piece.open(f"static State step(int {counter}, State state, Captured captured)")
        if isinstance(loop, For) and counter != variable:
            piece.add(f"int {variable} = {self._position(loop, counter)};")
        for name, t in self._f.state:
            local = writer.parameter(name)
            piece.add(f"{self._module.types.spell(t)} {local} = state.{self.field(name)};")
        writer.block(self._f.body)
        results = ", ".join(writer.variable(n) for n, _ in self._f.state) or "0"
        piece.add(f"return State({results});")
        piece.close()

    def _step_fwd(self, piece: Piece) -> None:
        """The library's own text of `stepFwd`, which Slang differentiates only if it is here."""
        pairs = "DifferentialPair<State> state, DifferentialPair<Captured> captured"
        piece.add("[Differentiable]")
        piece.open(f"override static DifferentialPair<State> stepFwd(int k, {pairs})")
        piece.add("return fwd_diff(step)(k, state, captured);")
        piece.close()

    def _is_plain(self, loop: For) -> bool:
        """Whether the loop variable is the step number itself."""
        start, step = loop.start, loop.step
        if not isinstance(start, Const) or not isinstance(step, Const):
            return False
        return start.value == 0 and step.value == 1

    def _position(self, loop: For, counter: str) -> str:
        start, step = (
            str(bound.value) if isinstance(bound, Const) else f"captured.{self.field(name)}"
            for bound, name in ((loop.start, _START), (loop.step, _STEP))
        )
        return f"{start} + {counter} * {step}" if step != "1" else f"{start} + {counter}"

    def _overrun(self, piece: Piece) -> None:
        loop = self._f.loop
        site = self._module.site(SiteKind.LIMIT, loop.span, str(loop.limit))
        piece.open("override static void overrun(int limit)")
        piece.add(f"report<{self._module.report}>({site}, 0, uint(limit));")
        piece.close()
