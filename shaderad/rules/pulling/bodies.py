"""Whole bodies -> their adjoints, of functions and of kernels."""

from __future__ import annotations

from collections.abc import Mapping

from shaderad.bodies.dead_code import without_dead
from shaderad.bodies.heads import structured
from shaderad.ir import nodes
from shaderad.ir.nodes import Function, Kernel, Parameter, Stmt
from shaderad.ir.types import INT, VOID, LocalArray, Type, is_differentiable
from shaderad.ir.walk import reads, statements, writes
from shaderad.rules.body import Body
from shaderad.rules.pulling.activity import activity
from shaderad.rules.pulling.functions import Functions, parameters_of
from shaderad.rules.pulling.loops import UNBOUNDED, kept_bytes
from shaderad.rules.pulling.nodes import Adjoint, NotPulled, Place
from shaderad.rules.pulling.sweeps import Sweeps
from shaderad.rules.pulling.tidying import tidied

MEMORY = 16384
"""Bytes a thread for the states of loops."""


def pull_function(functions: Functions, f: Function, wanted: frozenset[int]) -> Adjoint:
    """The adjoint of a function without derivatives of its own."""
    types = {**f.local_types, **{p.name: p.type for p in f.parameters}}
    plain = structured(f.body, f.result, types)
    body = Body({*plain.local_types, *reads(plain.body), *writes(plain.body)})
    bars = {p.name: body.fresh(f"{p.name}_bar") for k, p in enumerate(f.parameters) if k in wanted}
    result_bar = body.fresh("result_bar")
    active = activity(plain.body, bars, (), functions.wanted, functions.seeds)
    given = nodes.Var(type=f.result, name=result_bar) if is_differentiable(f.result) else None
    names = [p.name for p in f.parameters]
    sweeps = Sweeps(functions, body, plain.local_types, active, names, bars, given)
    sweeps.run(plain.body)
    parameters = parameters_of(f, wanted, bars, result_bar)
    return _adjoint(f"{f.name}_bwd", body, parameters, f, plain.local_types, sweeps.kept)


def pull_kernel_body(
    functions: Functions,
    kernel: Kernel,
    body: tuple[Stmt, ...],
    types: Mapping[str, Type],
    given: Mapping[str, Type],
    wanted: frozenset[str],
    results: tuple[str, ...],
) -> Adjoint:
    """The adjoint of a kernel's body, whose own outputs are locals.

    Its parameters: the Index names, `given`, a cotangent of each of `results`, and a place for
    that of each of `wanted`.

    Args:
        functions: Those of the kernel.
        kernel: Whose body it is.
        body: Without jumps.
        types: Of its locals.
        given: Uniforms and elements that were read before.
        wanted: Those whose cotangents are wanted.
        results: Locals whose cotangents are given.
    """
    known = {**types, **given, **dict.fromkeys(kernel.index_names, INT)}
    written = Body({*known, *reads(body), *writes(body)})
    bars = {name: written.fresh(f"{name}_bar") for name in (*results, *sorted(wanted))}
    active = activity(body, wanted, results, functions.wanted, functions.seeds)
    sweeps = Sweeps(functions, written, known, active, (*kernel.index_names, *given), bars)
    sweeps.run(body)
    parameters = (
        *(Parameter(name=n, type=INT) for n in kernel.index_names),
        *(Parameter(name=n, type=t) for n, t in given.items()),
        *(Parameter(name=bars[n], type=known[n]) for n in results),
        *(Place(name=bars[n], type=known[n]) for n in given if n in wanted),
    )
    return _adjoint(f"{kernel.name}_adjoint", written, parameters, kernel, known, sweeps.kept)


def _adjoint(
    name: str,
    body: Body,
    parameters: tuple[Parameter, ...],
    of: Function | Kernel,
    known: Mapping[str, Type],
    kept: set[str],
) -> Adjoint:
    places = frozenset(p.name for p in parameters if isinstance(p, Place))
    taken = {p.name for p in parameters}
    made = without_dead(tidied(tuple(body.statements), body.local_types, frozenset(taken)), places)
    types = {**known, **body.local_types}
    names = reads(made) | writes(made)
    names |= {
        n for s in statements(made) if isinstance(s, nodes.For | nodes.While) for n in s.exits
    }
    _check_memory([types[n] for n in sorted(kept & names)])
    buffers = of.buffers if isinstance(of, Function) else tuple(b.name for b in of.buffers)
    return Adjoint(
        name=name,
        parameters=parameters,
        result=VOID,
        body=made,
        local_types={n: t for n, t in types.items() if n in names and n not in taken},
        buffers=buffers,
        span=of.span,
    )


def _check_memory(kept: list[Type]) -> None:
    """States of loops are kept whole, where there is room."""
    if any(isinstance(t, LocalArray) and t.count == UNBOUNDED for t in kept):
        raise NotPulled("states of a loop without a limit")
    if kept_bytes(kept) > MEMORY:
        raise NotPulled("too many states of loops")
