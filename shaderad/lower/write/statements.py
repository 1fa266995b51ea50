"""IR statements -> Slang text, with the user's names and order, one statement per line.

Indices into locals are checked if they are known only at run time. A loop runs at most as many
iterations as its limit, and reports if it needs more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shaderad.bodies.loops import may_unroll, trip_count, unrolls
from shaderad.bodies.outputs import CheckIndex
from shaderad.bodies.ranges import InRange
from shaderad.bodies.write_numbers import NumberedAccumulate
from shaderad.ir import nodes, ops
from shaderad.ir.tables import check_rows
from shaderad.ir.types import Access, Type
from shaderad.ir.walk import path_value, step_type
from shaderad.lower.bindings import SiteKind
from shaderad.lower.prepare.known import with_hidden_divisor
from shaderad.lower.prepare.skipped_calls import needed_cotangent
from shaderad.lower.write import accumulate
from shaderad.rules.nodes import ReverseFor

if TYPE_CHECKING:
    from shaderad.lower.write.body import BodyWriter

_COMPOUND = {ops.ADD: "+=", ops.SUB: "-=", ops.MUL: "*=", ops.DIV: "/="}


def _assign(writer: BodyWriter, s: nodes.Assign) -> None:
    """``name<path> = value``; writes at variable indices are guarded."""
    target, t = writer.variable(s.name), writer.types[s.name]
    if not s.path:
        _assign_name(writer, s, target)
        return
    guard_count = 0
    for step in s.path:
        inner = step_type(t, step)
        assert inner is not None
        if isinstance(step, nodes.ElementStep) and not writer.is_inside(step.index):
            index = writer.names.make("index")
            writer.piece.add(f"uint {index} = {writer.expressions.local_index(step.index, t)};")
            if not writer.module.is_unchecked:
                writer.piece.open(f"if ({index} != outside)")
                guard_count += 1
            target += f"[{index}]"
        else:
            target += _step_text(writer, t, step)
        t = inner
    place = path_value(nodes.Var(type=writer.types[s.name], name=s.name), s.path)
    writer.piece.add(_update(writer, target, place, s.value), *"}" * guard_count)


def _assign_name(writer: BodyWriter, s: nodes.Assign, name: str) -> None:
    t = writer.types[s.name]
    is_new = s.name not in writer.declared
    writer.declared.add(s.name)
    if isinstance(s.value, nodes.Zero):
        writer.make_zero(name, t, is_new=is_new)
    elif is_new:
        writer.piece.add(f"{writer.module.types.spell(t)} {name} = {writer.text(s.value)};")
    else:
        writer.piece.add(_update(writer, name, nodes.Var(type=t, name=s.name), s.value))


def _update(writer: BodyWriter, target: str, place: nodes.Expr | None, value: nodes.Expr) -> str:
    """``target = value;``, or a compound assignment if `value` is ``place op ...``."""
    if (
        isinstance(value, nodes.Apply)
        and value.op in _COMPOUND
        and value.args[0] == place
        and not writer.expressions.has_matrix_form(value)
        and with_hidden_divisor(value, writer.folded) is value
    ):
        return f"{target} {_COMPOUND[value.op]} {writer.text(value.args[1])};"
    return f"{target} = {writer.text(value)};"


def _step_text(writer: BodyWriter, t: Type, step: nodes.Step) -> str:
    if isinstance(step, nodes.FieldStep):
        return f".{writer.module.field(t, step.name)}"
    if isinstance(step, nodes.SwizzleStep):
        return f".{step.components}"
    assert isinstance(step, nodes.ElementStep)
    return f"[{writer.text(step.index)}]"


# -- loops ------------------------------------------------------------------------------------


def _for(writer: BodyWriter, s: nodes.For) -> None:
    if trip_count(s) == 0:
        return  # Slang warns of empty loops, and slangpy prints warnings.
    variable = writer.names.make(s.variable)
    writer.bind(s.variable, variable)
    write = _unrolled_loop if unrolls(s) else _counted_loop
    write(writer, s, variable)


def _unfinished(writer: BodyWriter, s: nodes.For | nodes.While) -> list[str]:
    """The conditions that no `break` or `return` has been reached."""
    return [f"!{writer.variable(flag)}" for flag in s.exits]


def _unrolled_loop(writer: BodyWriter, s: nodes.For, variable: str) -> None:
    start, stop, step = (writer.text(e) for e in (s.start, s.stop, s.step))
    going = _unfinished(writer, s)
    is_up = isinstance(s.step, nodes.Const) and s.step.value > 0
    update = f"{variable}++" if step == "1" else f"{variable} += {step}"
    head = f"int {variable} = {start}; {variable} {'<' if is_up else '>'} {stop}; {update}"
    writer.piece.add("[ForceUnroll]", f"for ({head})")
    if going:
        writer.piece.add("{", f"if ({' && '.join(going)})")
    writer.nested(s.body)
    if going:
        writer.piece.close()


def _counted_loop(writer: BodyWriter, s: nodes.For, variable: str) -> None:
    start, stop, step = (writer.text(e) for e in (s.start, s.stop, s.step))
    going = _unfinished(writer, s)
    is_plain = start == "0" and step == "1"
    count, limit = _trips(writer, s, stop if is_plain else f"rangeCount({start}, {stop}, {step})")
    bound = _hidden(writer, s, count if limit is None else f"min({count}, {limit})")
    counter = variable if is_plain else writer.names.make("k")
    condition = " && ".join([f"{counter} < {bound}", *going])
    first, stride = writer.names.make("first"), writer.names.make("stride")
    if not is_plain:
        writer.piece.add(f"int {first} = {start};", f"int {stride} = {step};")
    _head(writer, s, f"int {counter} = 0; {condition}; {counter}++")
    position = f"int {variable} = {first} + {counter} * {stride};"
    writer.nested(s.body, first=() if is_plain else (position,))
    if limit is not None:
        _report_overrun(writer, f"{count} > {limit}", going, s)


def _trips(writer: BodyWriter, s: nodes.For, counted: str) -> tuple[str, int | None]:
    """The text of a loop's trip count, and its limit unless the loop cannot exceed it."""
    trips = trip_count(s)
    if trips is not None and (s.limit is None or trips <= s.limit):
        return str(trips), None
    count = writer.names.make("count")
    writer.piece.add(f"int {count} = {counted};")
    return count, s.limit


def _hidden(writer: BodyWriter, s: nodes.For, number: str) -> str:
    """The bound of `s`; if the loop must not be unrolled, compilers cannot fold its bound.

    `[loop]` is not enough: naga drops attributes, and Mesa infers counts from the sizes of arrays.
    Not all drivers hoist the bound out of the condition, so it is a local.
    """
    if may_unroll(s):
        return number
    bound = writer.names.make("bound")
    writer.piece.add(f"int {bound} = countAtRunTime({number}, {writer.module.zero()});")
    return bound


def _head(writer: BodyWriter, s: nodes.For, head: str) -> None:
    if not may_unroll(s):
        writer.piece.add("[loop]")
    writer.piece.add(f"for ({head})")


def _report_overrun(
    writer: BodyWriter, overrun: str, going: list[str], s: nodes.For | nodes.While
) -> None:
    site = writer.module.site(SiteKind.LIMIT, s.span, str(s.limit))
    report = f"report<{writer.module.report}>({site}, 0, {s.limit});"
    writer.piece.guarded(f"if ({' && '.join([overrun, *going])})", report)


def _reverse(writer: BodyWriter, s: ReverseFor) -> None:
    """Writes a loop of an adjoint; the forward loop has reported."""
    if isinstance(s.start, nodes.Const) and s.start.value < 0:
        return  # Slang warns of empty loops.
    outer, writer.is_silent = writer.is_silent, True
    variable = writer.names.make(s.variable)
    writer.bind(s.variable, variable)
    last = _hidden(writer, s, writer.text(s.start))
    _head(writer, s, f"int {variable} = {last}; {variable} >= 0; {variable}--")
    writer.nested(s.body)
    writer.is_silent = outer


def _while(writer: BodyWriter, s: nodes.While) -> None:
    going = _unfinished(writer, s)
    condition = writer.text(s.condition, 31)
    if s.limit is None:
        writer.piece.add(f"while ({' && '.join([*going, condition])})")
        writer.nested(s.body)
        return
    steps = writer.names.make("steps")
    head = " && ".join([f"{steps} < {s.limit}", *going, condition])
    writer.piece.add(f"int {steps} = 0;", f"while ({head})")
    writer.nested(s.body, last=(f"{steps}++;",))
    _report_overrun(writer, f"{steps} == {s.limit}", [*going, condition], s)


# -- other statements -------------------------------------------------------------------------


def _evaluate(writer: BodyWriter, s: nodes.Evaluate) -> None:
    call = s.call
    if isinstance(call, CheckIndex) and (writer.is_silent or isinstance(call.indices[0], InRange)):
        return
    needed = None
    if isinstance(call, nodes.Call):
        needed = needed_cotangent(call, writer.module.is_uniform)
    if needed is None:
        writer.piece.add(f"{writer.text(call)};")
    else:
        writer.piece.guarded(f"if (changesSum({writer.text(needed)}))", f"{writer.text(call)};")


def _if(writer: BodyWriter, s: nodes.If, keyword: str = "if") -> None:
    writer.piece.add(f"{keyword} ({writer.text(s.condition)})")
    writer.nested(s.then)
    if len(s.otherwise) == 1 and isinstance(s.otherwise[0], nodes.If):
        _if(writer, s.otherwise[0], "else if")
    elif s.otherwise:
        writer.piece.add("else")
        writer.nested(s.otherwise)


def _return(writer: BodyWriter, s: nodes.Return) -> None:
    writer.piece.add("return;" if s.value is None else f"return {writer.text(s.value)};")


def _assert(writer: BodyWriter, s: nodes.Assert) -> None:
    if writer.is_silent:
        return
    site = writer.module.site(SiteKind.ASSERT, s.span, s.text)
    report = f"report<{writer.module.report}>({site}, 0, 0);"
    writer.piece.guarded(f"if (!({writer.text(s.condition)}))", report)


def _print(writer: BodyWriter, s: nodes.Print) -> None:
    site = writer.module.print_site(s)
    words = [word for value in s.values for word in accumulate.words_of(writer, value)]
    start = writer.names.make("printed")
    writer.piece.add(f"uint {start} = startPrint<Printer>({site}, {len(words)});")
    for k, word in enumerate(words):
        writer.piece.add(f"printWord<Printer>({start}, {k}, {word});")


def _barrier(writer: BodyWriter, _: nodes.Barrier) -> None:
    buffers = writer.module.kernel.buffers
    is_in_memory = any(b.access is Access.SCRATCH for b in buffers)
    writer.piece.add(f"{'All' if is_in_memory else 'Group'}MemoryBarrierWithGroupSync();")


WRITERS: dict[type[nodes.Stmt], Callable[..., None]] = {
    nodes.Assign: _assign,
    nodes.Store: accumulate.write_store,
    nodes.Accumulate: accumulate.write_accumulate,
    NumberedAccumulate: accumulate.write_accumulate,
    nodes.AccumulateGradient: accumulate.write_gradient,
    nodes.Evaluate: _evaluate,
    nodes.If: _if,
    nodes.Return: _return,
    nodes.Assert: _assert,
    nodes.Print: _print,
    nodes.Barrier: _barrier,
    nodes.For: _for,
    ReverseFor: _reverse,
    nodes.While: _while,
}
# Earlier passes replaced jumps and derivatives inside kernels by other statements.
check_rows(WRITERS, nodes.STATEMENTS, but=(nodes.BackwardDiff, nodes.Break, nodes.Continue))
