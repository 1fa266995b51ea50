"""Pushed kernels and functions, which compute tangents; their adjoints give second derivatives.

With ``y = f(x)`` and its Jacobian J at x, ``push(f)(x, x_dot) = (y, J x_dot)``. The cotangents
``(u, v)`` of its results give
    x_dot_bar = J^T v
    x_bar     = J^T u + d/dx <v, J x_dot>
With ``v = y_bar`` and ``u = y_bar_dot``, one backward dispatch of `push(f)` gives the gradient
``J^T y_bar`` and its tangent along ``x_dot``.

A function ``f(x, n)`` becomes ``f_push(x, n, x_dot)``, which returns the tuple of ``f(x, n)`` and
its tangent; only active arguments have tangents. For a function with a user-defined forward
derivative, ``f_push`` calls both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shaderad.diagnostics import error
from shaderad.ir import composing as c
from shaderad.ir import nodes
from shaderad.ir.body import Body
from shaderad.ir.nodes import Buffer, Function, Kernel, KernelParameter, Parameter
from shaderad.ir.pointers import POINTED
from shaderad.ir.types import Access, BufferType, Tuple, is_differentiable
from shaderad.ir.walk import made_name, reachable, reads, writes, writes_to
from shaderad.rules.derivatives import Derivatives
from shaderad.rules.nodes import Pushed, PushedKernel, primal_name
from shaderad.rules.pairs import DERIVATIVE
from shaderad.rules.pushing.bodies import BodyPusher


def push_kernel(
    kernel: Kernel, active: frozenset[str], derivatives: Derivatives, *, is_first: bool = False
) -> PushedKernel:
    """`kernel` with tangents of the inputs `active`.

    An element of a Min or Max array has the tangent of the write that wins.

    Args:
        kernel: Without ``fwd_diff`` and ``bwd_diff``.
        active: Arrays and uniforms of floats that have tangents.
        derivatives: The derivatives of the functions that it calls.
        is_first: True if the result is not differentiated again.

    Raises:
        DerivativeError: SR0412 or SR0429 for a function without a usable forward derivative,
            SR0752 for a kernel that was loaded from a build, SR0422 for one in Slang.
    """
    if kernel.is_built:
        raise error("SR0752", name=kernel.name)
    if not kernel.has_body:
        raise error("SR0422", kernel.span, kernel=kernel.name)
    names = {b.name for b in kernel.buffers} | {u.name for u in kernel.uniforms}
    inner = {name for f in reachable(kernel.body) for name in f.local_types}
    body = Body({*names, *inner, *kernel.index_names, *kernel.local_types,
                 *reads(kernel.body), *writes(kernel.body)})  # fmt: skip
    buffers = [b for b in kernel.buffers if _has_tangent(b, active)]
    uniforms = [u for u in kernel.uniforms if u.name in active]
    primals = (*buffers, *uniforms)
    dots = {primal.name: body.dot(primal.name) for primal in primals}
    extremes = frozenset(b.name for b in buffers if b.access in (Access.MIN, Access.MAX))
    # `lower/prepare/strategy.py` reads the original indices if the result is differentiated again.
    inputs = [b.name for b in buffers if b.access is Access.IN and is_first]
    functions = PushedFunctions(
        dots={b.name: dots[b.name] for b in buffers},
        extremes=extremes,
        derivatives=derivatives,
        is_first=is_first,
        read_together=frozenset(inputs),
    )
    types = {**kernel.local_types, **{u.name: u.type for u in kernel.uniforms}}
    constants = frozenset(u.name for u in kernel.uniforms) - active
    for name in sorted(constants & writes(kernel.body)):
        if is_differentiable(types[name]):  # A uniform that is assigned: its tangent starts at 0.
            body.add(nodes.Assign(name=body.dot(name), value=nodes.Zero(type=types[name])))
    constants -= writes(kernel.body)
    BodyPusher(functions, body, types, constants).block(kernel.body)
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


def _has_tangent(b: Buffer, active: frozenset[str]) -> bool:
    return is_differentiable(b.type) and (b.access is not Access.IN or b.name in active)


def _tangent_of(b: Buffer, name: str) -> Buffer:
    """The tangent buffer of `b`; that of a Min or Max array is Add, because it starts at 0."""
    is_extreme = b.access in (Access.MIN, Access.MAX)
    access = Access.ADD if is_extreme else b.access
    path = (name, POINTED) if b.is_pointed else (name,)
    return replace(b, name=name, path=path, type=BufferType(access, b.type.element, b.type.rank))


@dataclass
class PushedFunctions:
    """The pushed functions of one kernel."""

    dots: Mapping[str, str]
    """Buffers of the kernel -> their tangent buffers."""
    extremes: frozenset[str]
    """The Min and Max arrays in `dots`."""
    derivatives: Derivatives
    is_first: bool = False
    """True for first derivatives, which may use a user-defined derivative that is not checked."""
    read_together: frozenset[str] = frozenset()
    """Arrays whose elements and tangents are loaded with one bounds check."""
    _pushed: dict[tuple[Function, frozenset[int]], Function] = field(
        default_factory=dict[tuple[Function, frozenset[int]], Function]
    )
    _writes: dict[Function, bool] = field(default_factory=dict[Function, bool])

    def writes_tangents(self, f: Function) -> bool:
        """True if a call of `f` writes an array that has a tangent."""
        if f not in self._writes:
            self._writes[f] = writes_to(f, self.dots)
        return self._writes[f]

    def reads_tangents(self, f: Function) -> bool:
        """True if `f` accesses an array that has a tangent."""
        return any(name in self.dots for name in f.buffers)

    def of(self, f: Function, active: frozenset[int]) -> Function:
        """`f` with tangents of the parameters `active`."""
        key = (f, active)
        if key not in self._pushed:
            has_own = f.backward is not None or f.forward is not None
            self._pushed[key] = (self._own if has_own else self._make)(f, active)
        return self._pushed[key]

    def _own(self, f: Function, active: frozenset[int]) -> Function:
        """The pushed function of a function with user-defined derivatives.

        Raises:
            DerivativeError: SR0412 if it has no forward derivative, SR0429 if that is declared not
                to be the derivative of the value, and a second derivative is taken.
        """
        if f.forward is None:
            raise error("SR0412", f.span, function=f.name)
        if not (f.is_checked or self.is_first):
            raise error("SR0429", f.span, function=f.name)
        own = self.derivatives.function(f.forward)
        taken = {p.name for p in f.parameters}
        primals = tuple(c.variable(p.name, p.type) for p in f.parameters)
        dots: list[Parameter] = []
        args: list[nodes.Expr] = []
        for k, value in enumerate(primals):
            if not is_differentiable(value.type):
                args.append(value)
                continue
            dot: nodes.Expr = c.zero(value.type)
            if k in active:
                dots.append(Parameter(name=made_name(f"{value.name}_dot", taken), type=value.type))
                taken.add(dots[-1].name)
                dot = c.variable(dots[-1].name, value.type)
            args.append(nodes.Construct(type=Tuple((value.type,) * 2), parts=(value, dot)))
        value = nodes.Call(type=f.result, function=f, args=primals, span=f.span)
        both = nodes.Call(type=own.result, function=own, args=tuple(args), span=f.span)
        result = Tuple((f.result, f.result))
        parts = (value, c.field(both, DERIVATIVE))
        end = nodes.Return(value=nodes.Construct(type=result, parts=parts), span=f.span)
        return Pushed(
            name=f"{f.name}_push", parameters=(*f.parameters, *dots), result=result, body=(end,),
            local_types={}, buffers=f.buffers, span=f.span,
        )  # fmt: skip

    def _make(self, f: Function, active: frozenset[int]) -> Function:
        types = {**f.local_types, **{p.name: p.type for p in f.parameters}}
        body = Body({*types, *reads(f.body), *writes(f.body)})
        dots = tuple(
            Parameter(name=body.dot(p.name), type=p.type)
            for k, p in enumerate(f.parameters)
            if k in active
        )
        constants = {
            p.name
            for k, p in enumerate(f.parameters)
            if is_differentiable(p.type) and k not in active
        }
        changed = constants & writes(f.body)
        for name in sorted(changed):
            body.local_types[body.dot(name)] = types[name]
            body.add(nodes.Assign(name=body.dot(name), value=c.zero(types[name]), span=f.span))
        BodyPusher(self, body, types, frozenset(constants - changed)).block(f.body)
        result = Tuple((f.result, f.result)) if is_differentiable(f.result) else f.result
        return Pushed(
            name=f"{f.name}_push", parameters=(*f.parameters, *dots), result=result,
            shown=body.shown, temporaries=body.temporaries, body=tuple(body.statements),
            local_types={**f.local_types, **body.local_types},
            buffers=(*f.buffers, *(self.dots[b] for b in f.buffers if b in self.dots)),
            span=f.span,
        )  # fmt: skip
