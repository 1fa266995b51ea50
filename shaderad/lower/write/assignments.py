"""Assignments to locals and parts of them as Slang text; indices known at run time are checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shaderad.ir import ops
from shaderad.ir.nodes import (
    Apply,
    Assign,
    ElementStep,
    Expr,
    FieldStep,
    Step,
    SwizzleStep,
    Var,
    Zero,
)
from shaderad.ir.types import Type
from shaderad.ir.walk import path_value, reads, step_type
from shaderad.lower.prepare.known import with_hidden_divisor

if TYPE_CHECKING:
    from shaderad.lower.write.slang import FunctionWriter

_COMPOUND = {ops.ADD: "+=", ops.SUB: "-=", ops.MUL: "*=", ops.DIV: "/="}


def write_assign(writer: FunctionWriter, s: Assign) -> None:
    if not s.path:
        _assign_name(writer, s)
        return
    _assign_place(writer, writer.variable(s.name), writer.types[s.name], s.path, s.value, s)


def _assign_name(writer: FunctionWriter, s: Assign) -> None:
    name = writer.variable(s.name)
    is_new = not writer.is_declared(s.name)
    writer.declare(s.name)
    if isinstance(s.value, Zero):
        writer.make_zero(name, writer.types[s.name], is_new=is_new)
        return
    spelled = f"{writer.module.types.spell(writer.types[s.name])} " if is_new else ""
    if not is_new and s.name in reads((s,)):
        place = Var(type=writer.types[s.name], name=s.name)
        writer.piece.add(_update(writer, name, place, s.value))
    else:
        writer.piece.add(f"{spelled}{name} = {writer.text(s.value)};")


def _update(writer: FunctionWriter, target: str, place: Expr | None, value: Expr) -> str:
    """``target = value;``, or a compound assignment if `value` is ``place op ..``."""
    if (
        isinstance(value, Apply)
        and value.op in _COMPOUND
        and value.args[0] == place
        and not writer.expressions.has_matrix_form(value)
        and with_hidden_divisor(value, writer.folded) is value
    ):
        return f"{target} {_COMPOUND[value.op]} {writer.text(value.args[1])};"
    return f"{target} = {writer.text(value)};"


def _assign_place(
    writer: FunctionWriter, target: str, t: Type, path: tuple[Step, ...], value: Expr, s: Assign
) -> None:
    """``target<path> = value``; writes at variable indices are guarded."""
    for position, step in enumerate(path):
        if isinstance(step, ElementStep) and not writer.is_inside(step.index):
            _assign_element(writer, target, t, path[position:], value, s)
            return
        target += _step_text(writer, t, step)
        inner = step_type(t, step)
        assert inner is not None
        t = inner
    place = path_value(Var(type=writer.types[s.name], name=s.name), s.path)
    writer.piece.add(_update(writer, target, place, value))


def _step_text(writer: FunctionWriter, t: Type, step: Step) -> str:
    if isinstance(step, FieldStep):
        return f".{writer.module.field(t, step.name)}"
    if isinstance(step, SwizzleStep):
        return f".{step.components}"
    assert isinstance(step, ElementStep)
    return f"[{writer.text(step.index)}]"


def _assign_element(
    writer: FunctionWriter, target: str, t: Type, path: tuple[Step, ...], value: Expr, s: Assign
) -> None:
    step, rest = path[0], path[1:]
    assert isinstance(step, ElementStep)
    index = writer.names.make("index")
    writer.piece.add(f"uint {index} = {writer.expressions.local_index(step.index, t)};")
    inner = step_type(t, step)
    assert inner is not None
    if writer.module.is_unchecked:
        _assign_place(writer, f"{target}[{index}]", inner, rest, value, s)
        return
    writer.piece.add(f"if ({index} != outside)")
    writer.piece.add("{")
    _assign_place(writer, f"{target}[{index}]", inner, rest, value, s)
    writer.piece.add("}")
