"""Pushed kernels: kernels with tangents, whose adjoints give second derivatives.

With ``y = f(x)`` and its Jacobian J at x, ``push(f)(x, x_dot) = (y, J x_dot)``. The cotangents
``(u, v)`` of its results give
    x_dot_bar = J^T v
    x_bar     = J^T u + d/dx <v, J x_dot>
With ``v = y_bar`` and ``u = y_bar_dot``, one backward dispatch of `push(f)` gives the gradient
``J^T y_bar`` and its tangent along ``x_dot``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shaderad.diagnostics import error
from shaderad.ir import nodes
from shaderad.ir.nodes import Buffer, Kernel, KernelParameter
from shaderad.ir.pointers import POINTED
from shaderad.ir.types import Access, BufferType, is_differentiable
from shaderad.ir.walk import reachable, reads, writes
from shaderad.rules.body import Body
from shaderad.rules.pushed import PushedKernel, primal_name
from shaderad.rules.pushing.functions import PullProvider, PushedFunctions
from shaderad.rules.pushing.statements import push_body


def push_kernel(
    kernel: Kernel, given: Iterable[str], derivatives: PullProvider, *, is_first: bool = False
) -> PushedKernel:
    """`kernel` with tangents of the inputs `given`.

    An element of a Min or Max array has the tangent of the write that wins.

    Args:
        kernel: Without ``fwd_diff`` and ``bwd_diff``.
        given: Arrays and uniforms of floats that have tangents.
        derivatives: The other derivatives that it takes.
        is_first: True if the result is not differentiated again.

    Raises:
        DerivativeError: SR0412 or SR0429 for a function without a usable forward derivative,
            SR0752 for a kernel that was loaded from a build.
    """
    if kernel.is_built:
        raise error("SR0752", name=kernel.name)
    wanted = frozenset(given)
    names = {b.name for b in kernel.buffers} | {u.name for u in kernel.uniforms}
    inner = {name for f in reachable(kernel.body) for name in f.local_types}
    body = Body({*names, *inner, *kernel.index_names, *kernel.local_types,
                 *reads(kernel.body), *writes(kernel.body)})  # fmt: skip
    buffers = [b for b in kernel.buffers if _has_tangent(b, wanted)]
    uniforms = [u for u in kernel.uniforms if u.name in wanted]
    primals = (*buffers, *uniforms)
    dots = {primal.name: body.dot(primal.name) for primal in primals}
    extremes = frozenset(b.name for b in buffers if b.access in (Access.MIN, Access.MAX))
    # `lower/prepare/strategy.py` reads the original indices if the result is differentiated again.
    inputs = [b.name for b in buffers if b.access is Access.IN and is_first]
    functions = PushedFunctions(
        dots={b.name: dots[b.name] for b in buffers},
        extremes=extremes,
        write=push_body,
        derivatives=derivatives,
        is_first=is_first,
        read_together=frozenset(inputs),
    )
    types = {**kernel.local_types, **{u.name: u.type for u in kernel.uniforms}}
    constants = frozenset(u.name for u in kernel.uniforms) - wanted
    for name in sorted(constants & writes(kernel.body)):
        if is_differentiable(types[name]):  # A uniform that is assigned: its tangent starts at 0.
            body.add(nodes.Assign(name=body.dot(name), value=nodes.Zero(type=types[name])))
    constants -= writes(kernel.body)
    push_body(functions, body, kernel.body, types, constants)
    added = (KernelParameter(name=dots[primal.name], type=primal.type) for primal in primals)
    return PushedKernel(
        name=f"{kernel.name}_push",
        index_names=kernel.index_names,
        parameters=(*kernel.parameters, *added),
        buffers=(*kernel.buffers, *(_tangent_of(b, dots[b.name]) for b in buffers)),
        uniforms=(*kernel.uniforms,
                  *(replace(u, name=dots[u.name], path=(dots[u.name],)) for u in uniforms)),
        body=tuple(body.statements),
        local_types={**kernel.local_types, **body.local_types},
        span=kernel.span,
        primal_name=primal_name(kernel),
        dots=dots,
        shown=body.shown,
        temporaries=body.temporaries,
    )  # fmt: skip


def _has_tangent(b: Buffer, wanted: frozenset[str]) -> bool:
    return is_differentiable(b.type) and (b.access is not Access.IN or b.name in wanted)


def _tangent_of(b: Buffer, name: str) -> Buffer:
    """The tangent buffer of `b`; that of a Min or Max array is Add, because it starts at 0."""
    is_extreme = b.access in (Access.MIN, Access.MAX)
    access = Access.ADD if is_extreme else b.access
    path = (name, POINTED) if b.is_pointed else (name,)
    return replace(b, name=name, path=path, type=BufferType(access, b.type.element, b.type.rank))
