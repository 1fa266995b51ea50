"""Loops as Slang statements: unrolled, counted, `while`, and those that go back.

A loop with a limit runs at most that many iterations, and reports when it wanted more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shaderad.bodies.code_size import may_unroll, unrolls
from shaderad.bodies.trip_counts import trip_count
from shaderad.ir.nodes import Const, For, While
from shaderad.lower.bindings import SiteKind
from shaderad.rules.pulling import ReverseFor

if TYPE_CHECKING:
    from shaderad.lower.slang import FunctionWriter


def write_for(writer: FunctionWriter, s: For) -> None:
    trips = trip_count(s)
    if trips == 0:
        return  # Slang warns of loops that do nothing, and slangpy prints what Slang says.
    variable = writer.names.make(s.variable)
    writer.bind(s.variable, variable)
    if unrolls(s):
        _unrolled_loop(writer, s, variable)
    else:
        _counted_loop(writer, s, variable)


def _unfinished(writer: FunctionWriter, s: For | While) -> list[str]:
    """Conditions: no `break` or `return` has been reached."""
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
    first = writer.names.make("first")
    if not is_plain:
        writer.piece.add(f"int {first} = {start};")
    stride = writer.names.make("stride")
    if not is_plain:
        writer.piece.add(f"int {stride} = {step};")
    _head(writer, s, f"int {counter} = 0; {condition}; {counter}++")
    position = f"int {variable} = {first} + {counter} * {stride};"
    writer.nested(s.body, first="" if is_plain else position)
    if limit is not None:
        _report_overrun(writer, f"{count} > {limit}", going, s)


def _trips(writer: FunctionWriter, s: For, counted: str) -> tuple[str, int | None]:
    """The number of iterations that a loop asks for, and its limit where that can matter."""
    known = trip_count(s)
    if known is not None and (s.limit is None or known <= s.limit):
        return str(known), None
    count = writer.names.make("count")
    writer.piece.add(f"int {count} = {counted};")
    return count, s.limit


def _hidden(writer: FunctionWriter, s: For, number: str) -> str:
    """What `s` counts to or from, at run time where compilers must not unroll it.

    naga drops attributes, and Mesa guesses counts from the sizes of arrays: it takes both.
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
    """What a loop ran is run again step by step, in silence."""
    if isinstance(s.start, Const) and s.start.value < 0:
        return  # As above.
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
