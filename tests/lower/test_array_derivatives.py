"""What rules make of scans by functions is Slang that the compiler takes, function by function."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from shaderad.compiler.compile import compile_program
from shaderad.ir import arrays, nodes
from shaderad.ir import composing as c
from shaderad.ir.arrays import Graph
from shaderad.ir.dags import in_order, substitute
from shaderad.ir.nodes import Expr
from shaderad.ir.types import INT, Access, BufferType, Tuple, Type
from shaderad.lower.bindings import Mode, Variant
from shaderad.lower.kernels import lower_kernel
from shaderad.rules.arrays import jvp, vjp
from tests.array_check import array
from tests.rules.arrays.test_reductions import AFFINE, FLOAT2, affine_maps, recurrence

Transform = Callable[[Graph, Sequence[bool]], Graph]


def kernel_of(e: Expr) -> nodes.Kernel:
    """``result[i] = e`` where each variable is an element of an array of its name."""
    types = {v.name: v.type for v in in_order(e) if isinstance(v, nodes.Var)}
    at = (c.variable("i", INT),)
    loads: dict[str, Expr] = {n: nodes.Load(type=t, buffer=n, indices=at) for n, t in types.items()}
    buffers = [buffer_of(n, Access.IN, t) for n, t in types.items()]
    buffers.append(buffer_of("result", Access.OUT, e.type))
    store = nodes.Store(buffer="result", indices=at, value=substitute(e, loads))
    parameters = tuple(nodes.KernelParameter(name=b.name, type=b.type) for b in buffers)
    return nodes.Kernel(name="derived", index_names=("i",), parameters=parameters,
                        buffers=tuple(buffers), uniforms=(), body=(store,),
                        local_types={})  # fmt: skip


def buffer_of(name: str, access: Access, t: Type) -> nodes.Buffer:
    return nodes.Buffer(name=name, path=(name,), type=BufferType(access, t, 1))


def expressions_of(graph: Graph) -> list[Expr]:
    """What is computed by element, and the operators of scans on two elements."""
    found: list[Expr] = []
    for node in graph.nodes:
        if isinstance(node, arrays.Elementwise) and node.operands:
            found.append(node.expr)
        if isinstance(node, arrays.Scan) and isinstance(node.op, nodes.Function):
            t = node.op.result
            pair = (c.variable("left", t), c.variable("right", t))
            found.append(nodes.Call(type=t, function=node.op, args=pair))
    return found


@pytest.mark.parametrize("mode", [jvp, vjp])
@pytest.mark.parametrize(("op", "t"), [(recurrence(), FLOAT2), (affine_maps(), AFFINE)],
                         ids=["a vector", "a struct of six floats and an int"])  # fmt: skip
def test_derivatives_of_scans_compile(op: nodes.Function, t: Type, mode: Transform) -> None:
    x = array((4,), t)
    graph = Graph((x,), arrays.Scan(operands=(x,), op=op).results)
    derived = mode(graph, [True])
    made = expressions_of(derived)
    assert made
    for e in made:
        assert not isinstance(e.type, Tuple)
        variant = Variant(launch_shaped=frozenset({"result"}))
        for one in lower_kernel(kernel_of(e), Mode.PRIMAL, variant):
            assert compile_program(one.program, "spirv").content
