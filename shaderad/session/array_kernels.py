"""The kernels behind array arithmetic, slicing and conversion, built as IR.

Each builder is cached, because a device keeps what it compiled by the kernel's identity.
Differentiation needs nothing more: these kernels are lowered like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from shaderad.ir import nodes, ops, types
from shaderad.ir.types import Access, BufferType

RESULT = "result"


@dataclass(frozen=True)
class Operand:
    """One operand of an elementwise kernel.

    Attributes:
        type: Its element type.
        varies: By axis of the result, whether the operand has that axis; a host number (a
            uniform of the kernel) has `None`.
    """

    type: types.Type
    varies: tuple[bool, ...] | None


def operand_name(k: int) -> str:
    """The parameter of operand `k`."""
    return "abc"[k]


def index_names(rank: int) -> tuple[str, ...]:
    """The Index names of a kernel over `rank` axes."""
    return ("i", "j", "k", "l")[:rank] if rank <= 4 else tuple(f"i{axis}" for axis in range(rank))


def whole(value: int) -> nodes.Const:
    """An int constant."""
    return nodes.Const(type=types.INT, value=value)


def indices(names: Sequence[str]) -> tuple[nodes.Expr, ...]:
    """Index names as expressions."""
    return tuple(nodes.Var(type=types.INT, name=name) for name in names)


@lru_cache(maxsize=512)
def elementwise(
    name: str,
    operands: tuple[Operand, ...],
    rank: int,
    result: types.Type,
    value: Callable[..., nodes.Expr],
) -> nodes.Kernel:
    """``result[i, ..] = value(a[i, ..], b[i, ..])``; axes an operand lacks are read at 0."""
    names = index_names(rank)
    buffers: list[nodes.Buffer] = []
    uniforms: list[nodes.Uniform] = []
    arguments: list[nodes.Expr] = []
    for k, operand in enumerate(operands):
        own = operand_name(k)
        if operand.varies is None:
            uniforms.append(nodes.Uniform(name=own, path=(own,), type=operand.type))
            arguments.append(nodes.Var(type=operand.type, name=own))
            continue
        buffers.append(_input(own, operand.type, rank))
        at = tuple(
            index if varies else whole(0)
            for index, varies in zip(indices(names), operand.varies, strict=True)
        )
        arguments.append(nodes.Load(type=operand.type, buffer=own, indices=at))
    store = nodes.Store(buffer=RESULT, indices=indices(names), value=value(*arguments))
    return _kernel(name, names, buffers, uniforms, result, rank, (store,))


@lru_cache(maxsize=128)
def strided_copy(element: types.Type, is_kept: tuple[bool, ...]) -> nodes.Kernel:
    """``result[i, ..] = a[start0 + i * step0, start1, ..]``; axes not kept are at their start."""
    names = index_names(sum(is_kept))
    remaining = iter(indices(names))
    uniforms: list[nodes.Uniform] = []
    at: list[nodes.Expr] = []

    def uniform(name: str) -> nodes.Expr:
        uniforms.append(nodes.Uniform(name=name, path=(name,), type=types.INT))
        return nodes.Var(type=types.INT, name=name)

    for axis, kept in enumerate(is_kept):
        position = uniform(f"start{axis}")
        if kept:
            moved = _apply(ops.MUL, types.INT, next(remaining), uniform(f"step{axis}"))
            position = _apply(ops.ADD, types.INT, position, moved)
        at.append(position)
    load = nodes.Load(type=element, buffer="a", indices=tuple(at))
    store = nodes.Store(buffer=RESULT, indices=indices(names), value=load)
    buffers = [_input("a", element, len(is_kept))]
    return _kernel("array_slice", names, buffers, uniforms, element, len(names), (store,))


@lru_cache(maxsize=128)
def by_leaf(
    name: str,
    operand_types: tuple[types.Struct, ...],
    result: types.Struct,
    leaf: Callable[..., nodes.Expr],
) -> nodes.Kernel:
    """Structs of one shape, float scalar by float scalar; other scalars of the result are 0."""
    names = index_names(1)
    buffers = [_input(operand_name(k), t, 1) for k, t in enumerate(operand_types)]
    loaded = [
        nodes.Load(type=t, buffer=operand_name(k), indices=indices(names))
        for k, t in enumerate(operand_types)
    ]
    value = "value"
    body: list[nodes.Stmt] = [nodes.Assign(name=value, value=nodes.Zero(type=result))]
    for target in types.leaves(result):
        if target.scalar.kind not in types.FLOAT_KINDS:
            continue
        parts = [_at_leaf(one, target.path) for one in loaded]
        steps = _steps(target.path)
        body.append(nodes.Assign(name=value, path=steps, value=leaf(target.scalar, *parts)))
    stored = nodes.Var(type=result, name=value)
    body.append(nodes.Store(buffer=RESULT, indices=indices(names), value=stored))
    return _kernel(name, names, buffers, [], result, 1, tuple(body), {value: result})


def _kernel(
    name: str,
    names: tuple[str, ...],
    buffers: list[nodes.Buffer],
    uniforms: list[nodes.Uniform],
    result: types.Type,
    rank: int,
    body: tuple[nodes.Stmt, ...],
    local_types: dict[str, types.Type] | None = None,
) -> nodes.Kernel:
    out = nodes.Buffer(name=RESULT, path=(RESULT,), type=BufferType(Access.OUT, result, rank))
    parameters = [nodes.KernelParameter(name=b.name, type=b.type) for b in buffers]
    parameters += [nodes.KernelParameter(name=u.name, type=u.type) for u in uniforms]
    return nodes.Kernel(
        name=name,
        index_names=names,
        parameters=(*parameters, nodes.KernelParameter(name=RESULT, type=out.type)),
        buffers=(*buffers, out),
        uniforms=tuple(uniforms),
        body=body,
        local_types=local_types or {},
    )


def _input(name: str, element: types.Type, rank: int) -> nodes.Buffer:
    return nodes.Buffer(name=name, path=(name,), type=BufferType(Access.IN, element, rank))


def _apply(op: ops.Op, t: types.Type, *args: nodes.Expr) -> nodes.Expr:
    return nodes.Apply(type=t, op=op, args=args)


def _at_leaf(value: nodes.Expr, path: tuple[str | int, ...]) -> nodes.Expr:
    for part in path:
        if isinstance(part, str):
            assert isinstance(value.type, types.Struct)
            t = value.type.type_by_field[part]
            value = nodes.Field(type=t, value=value, name=part)
        else:
            value = nodes.Element(type=_part_type(value.type), value=value, index=whole(part))
    return value


def _steps(path: tuple[str | int, ...]) -> tuple[nodes.Step, ...]:
    steps: list[nodes.Step] = []
    for part in path:
        if isinstance(part, str):
            steps.append(nodes.FieldStep(name=part))
        else:
            steps.append(nodes.ElementStep(index=whole(part)))
    return tuple(steps)


def _part_type(t: types.Type) -> types.Type:
    if isinstance(t, types.Matrix):
        return t.row
    assert isinstance(t, types.Vector | types.LocalArray)
    return t.element
