"""An op and its derivatives as Slang functions, made as those of kernels are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shaderad.diagnostics import NO_SPAN
from shaderad.ir import nodes, ops
from shaderad.ir.nodes import Function, Kernel, Parameter
from shaderad.ir.types import (
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    Matrix,
    Scalar,
    Tuple,
    Type,
    Vector,
)
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.prepare.strategy import NOTHING_HOISTED
from shaderad.lower.write.functions import write_function
from shaderad.lower.write.module import Module
from shaderad.lower.write.structs import write_struct
from shaderad.rules.transforms import Transforms

SCALARS = {"float": FLOAT, "half": HALF, "double": DOUBLE}


def type_of(kind: str, shape: tuple[int, ...]) -> Type:
    scalar: Scalar = SCALARS[kind]
    if not shape:
        return scalar
    return Vector(scalar, shape[0]) if len(shape) == 1 else Matrix(scalar, *shape)


@dataclass(frozen=True)
class Spelled:
    """The names of an op's functions."""

    value: str
    push: str
    """``(x..., t...)`` -> the tuple of the value and its tangent."""
    pull: str
    """``(x..., y_bar)`` -> the tuple of the cotangents."""
    second_push: str
    """``(x..., t..., u..., 0...)`` -> the tuple of the tangent and how it moves along u."""
    second_pull: str
    """``(x..., t..., y_bar)`` -> the tuple of the cotangents by x..., of the tangent along t."""


class Functions:
    """The text of functions of ops."""

    def __init__(self) -> None:
        kernel = Kernel(
            name="ops", index_names=(), parameters=(), buffers=(), uniforms=(), body=(),
            local_types={}, span=NO_SPAN,
        )  # fmt: skip
        self._transforms = Transforms()
        variant = Variant(bounds="ignore")
        self._module = Module(
            kernel, Mode.PRIMAL, variant, NOTHING_HOISTED, self._transforms, write_function
        )

    @property
    def text(self) -> str:
        module = self._module
        tuples = [write_struct(module, t, n) for t, n in module.types.tuples.items()]
        lines = [line for piece in (*tuples, *module.pieces) for line, _ in piece.lines]
        assert not module.word_types
        return "\n".join(lines) + "\n"

    def spelled(
        self,
        op: ops.Op,
        kind: str,
        shapes: Sequence[tuple[int, ...]],
        result: tuple[int, ...],
        exponent: int | None = None,
        *,
        with_second: bool = False,
    ) -> Spelled:
        """Writes the functions of an op on operands of `shapes`."""
        types = [type_of(kind, s) for s in shapes]
        f = _function(op, types, type_of(kind, result), exponent)
        wanted = tuple(range(len(types)))
        push, pull = self._transforms.pushed(f, wanted), self._transforms.pulled(f, wanted)
        names = [self._module.function(one) for one in (f, push, pull)]
        if with_second:
            along = _tangent(f, push)
            every = tuple(range(len(along.parameters)))
            moved = self._transforms.pushed(along, every), self._transforms.pulled(along, wanted)
            names += [self._module.function(one) for one in moved]
        return Spelled(*names, *[""] * (5 - len(names)))


def _function(op: ops.Op, types: Sequence[Type], result: Type, exponent: int | None) -> Function:
    parameters = tuple(Parameter(name=f"x{k}", type=t) for k, t in enumerate(types))
    args: list[nodes.Expr] = [nodes.Var(type=p.type, name=p.name) for p in parameters]
    if op is ops.SELECT:
        zero = nodes.Const(type=types[0], value=0.0)
        args[0] = nodes.Apply(type=BOOL, op=ops.GT, args=(args[0], zero))
    if exponent is not None:
        args.append(nodes.Const(type=INT, value=exponent))
    value = nodes.Apply(type=result, op=op, args=tuple(args))
    return Function(
        name="f", parameters=parameters, result=result, body=(nodes.Return(value=value),),
        local_types={}, span=NO_SPAN,
    )  # fmt: skip


def _tangent(f: Function, push: Function) -> Function:
    """``g(x..., t...)``: the tangent alone."""
    assert isinstance(push.result, Tuple)
    args = tuple(nodes.Var(type=p.type, name=p.name) for p in push.parameters)
    both = nodes.Call(type=push.result, function=push, args=args)
    dot = nodes.Field(type=f.result, value=both, name="1")
    return Function(
        name="g", parameters=push.parameters, result=f.result, body=(nodes.Return(value=dot),),
        local_types={}, span=NO_SPAN,
    )  # fmt: skip
