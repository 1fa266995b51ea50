"""Kernels of ours that convert and add whole arrays: the casts and sums of cotangents."""

from __future__ import annotations

from functools import lru_cache

from shaderad.ir import nodes, types
from shaderad.ir.arrays import operand_name
from shaderad.ir.composing import added, float_scalars, from_float_scalars
from shaderad.ir.types import Access, BufferType
from shaderad.runtime import buffers

RESULT = "result"


def cast_kernel(source: types.Type, target: types.Type) -> nodes.Kernel:
    """Converts the scalars or structs of which elements of `source` consist to those of `target`.

    What is no float is 0.
    """
    return _cast_kernel(buffers.base_of(source), buffers.base_of(target))


@lru_cache(maxsize=128)
def _cast_kernel(source: types.Type, target: types.Type) -> nodes.Kernel:
    (x,) = _loads(source, 1)
    return _kernel("array_cast", source, 1, from_float_scalars(target, float_scalars(x)))


@lru_cache(maxsize=128)
def sum_kernel(t: types.Type) -> nodes.Kernel:
    """Adds two arrays of scalars or structs `t`."""
    return _kernel("array_add", t, 2, added(*_loads(t, 2)))


_INDEX = nodes.Var(type=types.INT, name="i")


def _loads(t: types.Type, count: int) -> list[nodes.Expr]:
    names = map(operand_name, range(count))
    return [nodes.Load(type=t, buffer=name, indices=(_INDEX,)) for name in names]


def _kernel(name: str, operand: types.Type, count: int, value: nodes.Expr) -> nodes.Kernel:
    """``result[i] = value``, which reads `count` arrays of elements `operand` at ``i``."""
    operands = dict.fromkeys(map(operand_name, range(count)), BufferType(Access.IN, operand, 1))
    type_by_name = {**operands, RESULT: BufferType(Access.OUT, value.type, 1)}
    return nodes.Kernel(
        name=name,
        index_names=(_INDEX.name,),
        parameters=tuple(nodes.KernelParameter(name=n, type=t) for n, t in type_by_name.items()),
        buffers=tuple(nodes.Buffer(name=n, path=(n,), type=t) for n, t in type_by_name.items()),
        uniforms=(),
        body=(nodes.Store(buffer=RESULT, indices=(_INDEX,), value=value),),
        local_types={},
    )
