"""Prints kernel IR as Python-like text, for people and tests.

Invariant: the text shows every decision of the front end: types of locals, conversions,
specialisations of calls. Two kernels with the same text are equivalent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from shaderad.ir import nodes as ir
from shaderad.ir.tables import check_rows
from shaderad.ir.types import Type
from shaderad.ir.walk import reachable

_INDENT = "    "
_INFIX = re.compile(r"^\{0\} (\S+) \{1\}$")


def kernel_text(kernel: ir.Kernel) -> str:
    """The functions that `kernel` calls, then the kernel."""
    parts = [_function(f) for f in reachable(kernel.body)]
    parameters = [*kernel.index_names]
    parameters += [f"{b.name}: {b.type}" for b in kernel.buffers]
    parameters += [f"{u.name}: {u.type}" for u in kernel.uniforms]
    head = f"kernel {kernel.name}({', '.join(parameters)})"
    return "\n\n".join([*parts, _definition(head, kernel.local_types, kernel.body)]) + "\n"


def expression_text(value: ir.Expr) -> str:
    """The text of one expression."""
    return _EXPRESSIONS[type(value)](value)


def _function(function: ir.Function) -> str:
    parameters = ", ".join(f"{p.name}: {p.type}" for p in function.parameters)
    head = f"function {function.name}({parameters}) -> {function.result}"
    if function.buffers:
        head += f" on {', '.join(function.buffers)}"
    text = _definition(head, function.local_types, function.body)
    for kind, derivative in (("backward", function.backward), ("forward", function.forward)):
        if derivative is not None:
            text += f"\n{kind} {_function(derivative)}"
    return text


def _definition(head: str, local_types: Mapping[str, Type], body: tuple[ir.Stmt, ...]) -> str:
    lines = [f"{head}:"]
    lines += [f"{_INDENT}local {name}: {t}" for name, t in local_types.items()]
    lines += _block(body)
    return "\n".join(lines)


# -- statements -------------------------------------------------------------------------------


def _block(body: tuple[ir.Stmt, ...]) -> list[str]:
    lines = [line for statement in body for line in _STATEMENTS[type(statement)](statement)]
    return [_INDENT + line for line in lines or ["pass"]]


def _if(s: ir.If) -> list[str]:
    lines = [f"if {expression_text(s.condition)}:", *_block(s.then)]
    return [*lines, "else:", *_block(s.otherwise)] if s.otherwise else lines


def _for(s: ir.For) -> list[str]:
    bounds = ", ".join(map(expression_text, s.bounds))
    limit = "" if s.limit is None else f", limit={s.limit}"
    name = "static_range" if s.is_unrolled else "range"
    return [f"for {s.variable} in {name}({bounds}{limit}):{_exits(s)}", *_block(s.body)]


def _while(s: ir.While) -> list[str]:
    limit = "" if s.limit is None else f", limit={s.limit}"
    return [f"while {expression_text(s.condition)}{limit}:{_exits(s)}", *_block(s.body)]


def _exits(loop: ir.For | ir.While) -> str:
    return f"  # until {', '.join(loop.exits)}" if loop.exits else ""


def _store(s: ir.Store) -> list[str]:
    mark = "  # unique" if s.is_unique else ""
    return [f"{_place(s.buffer, s.indices, s.path)} = {expression_text(s.value)}{mark}"]


def _place(root: str, indices: tuple[ir.Expr, ...], path: tuple[ir.Step, ...]) -> str:
    return f"{root}[{_list(indices)}]{''.join(map(_step, path))}"


def _step(step: ir.Step) -> str:
    if isinstance(step, ir.FieldStep):
        return f".{step.name}"
    if isinstance(step, ir.SwizzleStep):
        return f".{step.components}"
    return f"[{expression_text(step.index)}]" if isinstance(step, ir.ElementStep) else ".d"


_STATEMENTS: dict[type[ir.Stmt], Callable[[Any], list[str]]] = {
    ir.Assign: lambda s: [f"{s.name}{''.join(map(_step, s.path))} = {expression_text(s.value)}"],
    ir.Store: _store,
    ir.Accumulate: lambda s: [
        f"{_place(s.buffer, s.indices, s.path)} accumulates {expression_text(s.value)}"
        + (f", tangent {expression_text(s.tangent)}" if s.tangent else "")
    ],
    ir.AccumulateGradient: lambda s: [
        f"{_place(f'{s.buffer}.d', s.indices, s.path)} {'=' if s.is_store else '+='} "
        f"{expression_text(s.value)}"
    ],
    ir.Evaluate: lambda s: [expression_text(s.call)],
    ir.BackwardDiff: lambda s: [f"bwd_diff({s.function.name})({_list((*s.args, s.cotangent))})"],
    ir.If: _if,
    ir.For: _for,
    ir.While: _while,
    ir.Break: lambda _: ["break"],
    ir.Continue: lambda _: ["continue"],
    ir.Return: lambda s: ["return" if s.value is None else f"return {expression_text(s.value)}"],
    ir.Assert: lambda s: [f"assert {expression_text(s.condition)}, {s.text!r}"],
    ir.Barrier: lambda _: ["barrier"],
    ir.Print: lambda s: [f"print({_list(s.values)}) as {'{}'.join(s.form.texts)!r}"],
}
check_rows(_STATEMENTS, ir.STATEMENTS)


# -- expressions ------------------------------------------------------------------------------


def _list(values: tuple[ir.Expr, ...]) -> str:
    return ", ".join(map(expression_text, values))


def _apply(e: ir.Apply) -> str:
    infix = _INFIX.match(e.op.slang)
    if infix is not None:
        left, right = map(expression_text, e.args)
        return f"({left} {infix[1]} {right})"
    return f"{e.op.name}({_list(e.args)})"


def _logical(e: ir.Logical) -> str:
    word = "and" if e.is_and else "or"
    return f"({expression_text(e.left)} {word} {expression_text(e.right)})"


def _conditional(e: ir.Conditional) -> str:
    sides = [expression_text(s) for s in (e.if_true, e.if_false)]
    return f"({sides[0]} if {expression_text(e.condition)} else {sides[1]})"


def _const(e: ir.Const) -> str:
    return repr(e.value) if str(e.type) in ("float", "int", "bool") else f"{e.type}({e.value!r})"


_EXPRESSIONS: dict[type[ir.Expr], Callable[[Any], str]] = {
    ir.Const: _const,
    ir.Zero: lambda e: f"{e.type}()",
    ir.Var: lambda e: e.name,
    ir.Apply: _apply,
    ir.Logical: _logical,
    ir.Conditional: _conditional,
    ir.Cast: lambda e: f"{e.type}({expression_text(e.value)})",
    ir.Bitcast: lambda e: f"bitcast({e.type}, {expression_text(e.value)})",
    ir.Construct: lambda e: f"{e.type}({_list(e.parts)})",
    ir.Splat: lambda e: f"{e.type}({expression_text(e.value)})",
    ir.Field: lambda e: f"{expression_text(e.value)}.{e.name}",
    ir.Swizzle: lambda e: f"{expression_text(e.value)}.{e.components}",
    ir.Element: lambda e: f"{expression_text(e.value)}[{expression_text(e.index)}]",
    ir.Load: lambda e: f"{e.buffer}[{_list(e.indices)}]",
    ir.PointerIndex: lambda e: f"{expression_text(e.pointer)} at {expression_text(e.index)}",
    ir.PointerLength: lambda e: f"len({expression_text(e.pointer)})",
    ir.Length: lambda e: f"{e.buffer}.shape[{e.axis}]",
    ir.TeamLane: lambda e: f"lane of {e.size}",
    ir.OfLane: lambda e: f"{expression_text(e.value)} of lane ^ {e.mask}",
    ir.OfLaneBelow: lambda e: f"{expression_text(e.value)} of lane - {e.distance}",
    ir.OfTeam: lambda e: f"{expression_text(e.value)} of lane {e.lane} of {e.size}",
    ir.LookBack: lambda e: f"look back in {e.buffer}({_list((e.first, e.part, e.goal, e.total))})",
    ir.Call: lambda e: f"{e.function.name}({_list(e.args)})",
    ir.TextureCall: lambda e: f"{e.texture}.{e.read.value}({e.sampler}, {_list(e.args[2:])})",
    ir.ForwardDiff: lambda e: f"fwd_diff({e.function.name})({_list(e.args)})",
    ir.MakePair: lambda e: f"pair({_list((e.primal, e.derivative))})",
    ir.PairPart: lambda e: f"{expression_text(e.value)}.{e.part}",
    ir.Detach: lambda e: f"detach({expression_text(e.value)})",
}
check_rows(_EXPRESSIONS, ir.EXPRESSIONS, but=(ir.KnownNumber,))
