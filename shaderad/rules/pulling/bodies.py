"""Adjoints of whole functions and kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from shaderad.bodies.liveness import live_before, without_dead
from shaderad.bodies.structured import structured
from shaderad.diagnostics import error
from shaderad.ir import composing as c
from shaderad.ir import nodes, ops
from shaderad.ir.body import Body
from shaderad.ir.nodes import Expr, Function, Kernel, Parameter, Stmt
from shaderad.ir.types import INT, VOID, Type, is_differentiable, is_float, memory_of
from shaderad.ir.walk import (
    all_expressions,
    changed,
    map_blocks,
    reads,
    rewrite_body,
    statements,
    writes,
)
from shaderad.rules.derivatives import CalledAdjoints
from shaderad.rules.nodes import Adjoint, InOut, Pushed, PushedKernel, Split
from shaderad.rules.pulling.names import activity
from shaderad.rules.pulling.sweeps import Sweeps

MEMORY = 16384
"""Bytes per thread for the saved states of loops."""
_SHARES = (MEMORY, MEMORY // 4, MEMORY // 16, MEMORY // 64, 0)
"""Bytes for the states of one loop, in the order of attempts; with 0, one state is saved."""


def pull_function(adjoints: CalledAdjoints, f: Function, wanted: frozenset[int]) -> Adjoint:
    """The adjoint of a function without user-defined derivatives.

    Raises:
        DerivativeError: SR0415 if the states of its loops exceed `MEMORY`.
    """
    return _adjoint(f"{f.name}_bwd", f, _pulling(adjoints, f, wanted))


def split_function(adjoints: CalledAdjoints, f: Function, wanted: frozenset[int]) -> Split:
    """The adjoint as two functions: the forward sweep, and the reverse sweep."""
    pulled, statements = _fitting(f, _pulling(adjoints, f, wanted))
    start = pulled.back
    parameter_names = frozenset(p.name for p in pulled.parameters)
    back = without_dead(statements[start:], _in_out(pulled.parameters))
    saved = (live_before(back, frozenset()) - parameter_names) & changed(statements[:start])
    types = pulled.types
    kept = tuple(Parameter(name=n, type=types[n]) for n in sorted(saved))

    def keeping(*names: str) -> Adjoint:
        outs = (InOut(name=n, type=types[n]) for n in (*names, *(p.name for p in kept)))
        body = without_dead(statements[:start], saved.union(names))
        return _function(f"{f.name}_keeping", f, (*f.parameters, *outs), pulled, body)

    count = len(f.parameters)
    parameters = (*f.parameters, *kept, *pulled.parameters[count:])
    adjoint = _function(f"{f.name}_bwd", f, parameters, pulled, back)
    return Split(keeping(pulled.result), keeping(), adjoint, kept)


def _pulling(
    adjoints: CalledAdjoints, f: Function, wanted: frozenset[int]
) -> Callable[[int], _Pulled]:
    types = {**f.local_types, **{p.name: p.type for p in f.parameters}}
    plain = structured(f.body, f.result, types)

    def pulled(memory: int) -> _Pulled:
        body = Body({*plain.local_types, *reads(plain.body), *writes(plain.body)})
        bars = {
            p.name: body.fresh(f"{p.name}_bar") for k, p in enumerate(f.parameters) if k in wanted
        }
        result_bar = body.fresh("result_bar")
        active = activity(plain.body, bars, (), adjoints.wanted, adjoints.seeds)
        names = [p.name for p in f.parameters]
        types = plain.local_types
        result, bar_parameters = None, ()
        if is_differentiable(f.result):
            result = (body.local("result", f.result).name, c.variable(result_bar, f.result))
            bar_parameters = (Parameter(name=result_bar, type=f.result),)
        sweeps = Sweeps(adjoints, body, types, active, names, bars, memory, result)
        back = sweeps.run(plain.body)
        in_out = (InOut(name=bars[p.name], type=p.type) for p in f.parameters if p.name in bars)
        parameters = (*f.parameters, *bar_parameters, *in_out)
        seed, value = (result_bar, result[0]) if result else ("", "")
        return _Pulled(body, parameters, types, sweeps, back, value, seed)

    return pulled


def pull_kernel_body(
    adjoints: CalledAdjoints,
    kernel: Kernel,
    body: tuple[Stmt, ...],
    types: Mapping[str, Type],
    arguments: Mapping[str, Type],
    wanted: frozenset[str],
    results: tuple[str, ...],
    kept: tuple[str, ...] = (),
) -> Adjoint:
    """The adjoint of a kernel's body, in which the thread's own outputs are locals.

    Its parameters: the Index names, `arguments`, the cotangents of `results`, and `InOut`
    parameters for the cotangents of `wanted` and the values of `kept`.

    Args:
        adjoints: The adjoints of the kernel's functions.
        kernel: The kernel.
        body: Its body, without jumps.
        types: The types of its locals.
        arguments: Uniforms, and elements that were read before.
        wanted: The names in `arguments` whose cotangents are wanted.
        results: Locals whose cotangents are given.
        kept: Locals whose values are returned, too.
    """
    all_types = {**types, **arguments, **dict.fromkeys(kernel.index_names, INT)}

    def pulled(memory: int) -> _Pulled:
        builder = Body({*all_types, *reads(body), *writes(body)})
        bars = {name: builder.fresh(f"{name}_bar") for name in (*results, *sorted(wanted))}
        active = activity(body, wanted, results, adjoints.wanted, adjoints.seeds)
        names = (*kernel.index_names, *arguments)
        sweeps = Sweeps(adjoints, builder, all_types, active, names, bars, memory)
        values = {name: builder.fresh(f"{name}_value") for name in kept}
        back = sweeps.run(body, values)
        parameters = (
            *(Parameter(name=n, type=INT) for n in kernel.index_names),
            *(Parameter(name=n, type=t) for n, t in arguments.items()),
            *(Parameter(name=bars[n], type=all_types[n]) for n in results),
            *(InOut(name=bars[n], type=all_types[n]) for n in arguments if n in wanted),
            *(InOut(name=values[n], type=all_types[n]) for n in kept),
        )
        return _Pulled(builder, parameters, all_types, sweeps, back)

    return _adjoint(f"{kernel.name}_adjoint", kernel, pulled)


@dataclass(frozen=True)
class _Pulled:
    """Both sweeps over a body."""

    body: Body
    parameters: tuple[Parameter, ...]
    primal_types: Mapping[str, Type]
    sweeps: Sweeps
    back: int
    """The position among the statements at which the reverse sweep starts."""
    result: str = ""
    """The local that holds the return value, if that has a cotangent."""
    seed: str = ""
    """The parameter with that cotangent."""

    @property
    def types(self) -> dict[str, Type]:
        return {**self.primal_types, **self.body.local_types}


def _in_out(parameters: tuple[Parameter, ...]) -> frozenset[str]:
    return frozenset(p.name for p in parameters if isinstance(p, InOut))


def _adjoint(name: str, of: Function | Kernel, pull: Callable[[int], _Pulled]) -> Adjoint:
    """The adjoint from `pull`, whose loops save as many states as fit into `MEMORY`."""
    pulled, body = _fitting(of, pull)
    body = merged(without_dead(body, _in_out(pulled.parameters)))
    return _function(name, of, pulled.parameters, pulled, body)


def _fitting(
    of: Function | Kernel, pull: Callable[[int], _Pulled]
) -> tuple[_Pulled, tuple[Stmt, ...]]:
    """The sweeps from `pull` with the largest share of memory that fits, and their statements."""
    for memory in _SHARES:
        pulled = pull(memory)
        parameter_names = frozenset(p.name for p in pulled.parameters)
        body = tidied(tuple(pulled.body.statements), pulled.body.local_types, parameter_names)
        types = pulled.types
        names = _names_in(without_dead(body, _in_out(pulled.parameters)))
        kept = {n: span for n, span in pulled.sweeps.kept.items() if n in names}
        if sum(memory_of(types[n]) for n in kept) <= MEMORY:
            return pulled, body
        largest = max(kept, key=lambda n: memory_of(types[n]))
        if memory == 0:
            raise error("SR0415", kept[largest], name=of.name, bytes=MEMORY)
    raise AssertionError


def _function(
    name: str,
    of: Function | Kernel,
    parameters: tuple[Parameter, ...],
    pulled: _Pulled,
    body: tuple[Stmt, ...],
) -> Adjoint:
    body = _without_unread_results(body, pulled.sweeps.splits, _in_out(parameters))
    temporaries = of.temporaries if isinstance(of, Pushed | PushedKernel) else frozenset[str]()
    buffers = of.buffers if isinstance(of, Function) else tuple(b.name for b in of.buffers)
    inside = _names_in(body) - {p.name for p in parameters}
    local_types = {n: t for n, t in pulled.types.items() if n in inside}
    users = pulled.primal_types.keys() - temporaries
    shown = {bar: n for n, bar in pulled.sweeps.bars.items() if n in users}
    seed = pulled.seed if any(p.name == pulled.seed for p in parameters) else ""
    return Adjoint(name=name, parameters=parameters, result=VOID, body=body, shown=shown,
                   local_types=local_types, buffers=buffers, span=of.span, seed=seed)  # fmt: skip


def _without_unread_results(
    body: tuple[Stmt, ...], splits: Mapping[Function, Split], live: frozenset[str]
) -> tuple[Stmt, ...]:
    """`body`, whose calls of the forward sweeps in `splits` omit results that nothing reads.

    The names in `live` are read after the body.
    """
    counts = Counter(e.name for e in all_expressions(body) if isinstance(e, nodes.Var))

    def change(e: Expr) -> Expr:
        if not isinstance(e, nodes.Call) or e.function not in splits:
            return e
        split = splits[e.function]
        position = len(split.keeping.parameters) - len(split.saved) - 1
        result = e.args[position]
        assert isinstance(result, nodes.Var)
        if result.name in live or counts[result.name] > 1:
            return e
        args = (*e.args[:position], *e.args[position + 1 :])
        return replace(e, function=split.without_result, args=args)

    new = rewrite_body(body, change)
    # A call that saves nothing else is dead now.
    return without_dead(new, live) if new != body else body


def _names_in(body: tuple[Stmt, ...]) -> set[str]:
    loops = (s for s in statements(body) if isinstance(s, nodes.For | nodes.While))
    return reads(body) | writes(body) | {n for s in loops for n in s.exits}


def merged(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """`body`, in which adjacent ifs with one condition are one, such as those of the two sweeps."""
    out: list[Stmt] = []
    for s in body:
        match out[-1:], s:
            case [nodes.If(condition=nodes.Var() as c) as before], nodes.If() if (
                s.condition == c and c.name not in changed((before,))
            ):
                then, otherwise = before.then + s.then, before.otherwise + s.otherwise
                out[-1] = replace(before, then=then, otherwise=otherwise)
            case _:
                out.append(s)
    return tuple(map_blocks(s, merged) for s in out)


# -- sums that start at 0: the first ``x_bar += v`` of a block becomes ``x_bar = v`` ---------------


def tidied(
    body: tuple[Stmt, ...], types: Mapping[str, Type], parameter_names: frozenset[str]
) -> tuple[Stmt, ...]:
    """`body` with simplified sums; unassigned locals are 0, except those in `parameter_names`."""
    unset = {n for n, t in types.items() if is_float(t) and n not in parameter_names}
    return _block(body, unset)


def _block(body: tuple[Stmt, ...], unset: set[str]) -> tuple[Stmt, ...]:
    """Simplifies a block, and removes the names that it assigns from `unset`, those still 0."""
    out: list[Stmt] = []
    for s in body:
        match s:
            case nodes.If():
                sides = [(block, set(unset)) for block in (s.then, s.otherwise)]
                then, otherwise = (_block(block, inside) for block, inside in sides)
                out.append(replace(s, then=then, otherwise=otherwise))
            case nodes.For() | nodes.While():
                out.append(replace(s, body=_block(s.body, unset - changed(s.body))))
            case nodes.Assign(
                path=(), value=nodes.Apply(op=ops.ADD, args=(nodes.Var(name=name), more))
            ) if name == s.name and name in unset:
                out.append(replace(s, value=more))
            case _:
                out.append(s)
        unset -= changed((s,))
    return tuple(out)
