"""Loops as Slang statements: unrolled, counted, `while`, and reversed.

A loop runs at most as many iterations as its limit, and reports the need of more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shaderad.bodies.loops import may_unroll, trip_count, unrolls
from shaderad.ir.nodes import Const, For, While
from shaderad.lower.bindings import SiteKind
from shaderad.rules.nodes import ReverseFor

if TYPE_CHECKING:
    from shaderad.lower.write.slang import FunctionWriter


def write_for(writer: FunctionWriter, s: For) -> None:
    trips = trip_count(s)
    if trips == 0:
        return  # Slang warns of empty loops, and slangpy prints warnings.
    variable = writer.names.make(s.variable)
    writer.bind(s.variable, variable)
    if unrolls(s):
        _unrolled_loop(writer, s, variable)
    else:
        _counted_loop(writer, s, variable)


def _unfinished(writer: FunctionWriter, s: For | While) -> list[str]:
    """The conditions that no `break` or `return` has been reached."""
    return [f"!{writer.variable(flag)}" for flag in s.exits]


def _unrolled_loop(writer: FunctionWriter, s: For, variable: str) -> None:
    start, stop, step = (writer.text(e) for e in (s.start, s.stop, s.step))
    going = _unfinished(writer, s)
    writer.piece.add("[ForceUnroll]")
    up = isinstance(s.step, Const) and s.step.value > 0
    update = f"{variable}++" if step == "1" else f"{variable} += {step}"
    compare = "<" if up else ">"
    writer.piece.add(f"for (int {variable} = {start}; {variable} {compare} {stop}; {update})")
    if not going:
        writer.nested(s.body)
        return
    writer.piece.add("{")
    writer.piece.add(f"if ({' && '.join(going)})")
    writer.nested(s.body)
    writer.piece.add("}")


def _counted_loop(writer: FunctionWriter, s: For, variable: str) -> None:
    start, stop, step = (writer.text(e) for e in (s.start, s.stop, s.step))
    going = _unfinished(writer, s)
    is_plain = start == "0" and step == "1"
    count, limit = _trips(writer, s, stop if is_plain else f"rangeCount({start}, {stop}, {step})")
    bound = count if limit is None else f"min({count}, {limit})"
    bound = _hidden(writer, s, bound)
    counter = variable if is_plain else writer.names.make("k")
    condition = " && ".join([f"{counter} < {bound}", *going])
    first, stride = writer.names.make("first"), writer.names.make("stride")
    if not is_plain:
        writer.piece.add(f"int {first} = {start};")
        writer.piece.add(f"int {stride} = {step};")
    _head(writer, s, f"int {counter} = 0; {condition}; {counter}++")
    position = f"int {variable} = {first} + {counter} * {stride};"
    writer.nested(s.body, first="" if is_plain else position)
    if limit is not None:
        _report_overrun(writer, f"{count} > {limit}", going, s)


def _trips(writer: FunctionWriter, s: For, counted: str) -> tuple[str, int | None]:
    """The text of a loop's trip count, and its limit unless the loop cannot exceed it."""
    trips = trip_count(s)
    if trips is not None and (s.limit is None or trips <= s.limit):
        return str(trips), None
    count = writer.names.make("count")
    writer.piece.add(f"int {count} = {counted};")
    return count, s.limit


def _hidden(writer: FunctionWriter, s: For, number: str) -> str:
    """The bound of `s`, which a compiler that must not unroll the loop cannot fold.

    `[loop]` is not enough: naga drops attributes, and Mesa infers counts from the sizes of arrays.
    """
    return number if may_unroll(s) else f"countAtRunTime({number}, {writer.module.zero()})"


def _head(writer: FunctionWriter, s: For, head: str) -> None:
    if not may_unroll(s):
        writer.piece.add("[loop]")
    writer.piece.add(f"for ({head})")


def _report_overrun(writer: FunctionWriter, overrun: str, going: list[str], s: For | While) -> None:
    site = writer.module.site(SiteKind.LIMIT, s.span, str(s.limit))
    writer.piece.add(f"if ({' && '.join([overrun, *going])})")
    writer.piece.indented(f"report<{writer.module.report}>({site}, 0, {s.limit});")


def write_reverse(writer: FunctionWriter, s: ReverseFor) -> None:
    """Writes a loop of an adjoint; the forward loop has reported."""
    if isinstance(s.start, Const) and s.start.value < 0:
        return  # Slang warns of empty loops.
    outer, writer.is_silent = writer.is_silent, True
    variable = writer.names.make(s.variable)
    writer.bind(s.variable, variable)
    last = _hidden(writer, s, writer.text(s.start))
    _head(writer, s, f"int {variable} = {last}; {variable} >= 0; {variable}--")
    writer.nested(s.body)
    writer.is_silent = outer


def write_while(writer: FunctionWriter, s: While) -> None:
    going = _unfinished(writer, s)
    condition = writer.text(s.condition, 31)
    if s.limit is None:
        writer.piece.add(f"while ({' && '.join([*going, condition])})")
        writer.nested(s.body)
        return
    steps = writer.names.make("steps")
    writer.piece.add(f"int {steps} = 0;")
    writer.piece.add(f"while ({' && '.join([f'{steps} < {s.limit}', *going, condition])})")
    writer.nested(s.body, last=f"{steps}++;")
    _report_overrun(writer, f"{steps} == {s.limit}", [*going, condition], s)
