"""Whole bodies -> their adjoints, of functions and of kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from shaderad.bodies.dead_code import without_dead
from shaderad.bodies.heads import structured
from shaderad.bodies.liveness import live_before
from shaderad.diagnostics import error
from shaderad.ir import nodes
from shaderad.ir.nodes import Expr, Function, Kernel, Parameter, Stmt
from shaderad.ir.types import INT, VOID, Type, is_differentiable, memory_of
from shaderad.ir.walk import all_expressions, changed, reads, rewrite_body, statements, writes
from shaderad.rules.body import Body
from shaderad.rules.pulling.activity import activity
from shaderad.rules.pulling.functions import Functions, parameters_of
from shaderad.rules.pulling.nodes import Adjoint, Place, Split
from shaderad.rules.pulling.sweeps import Sweeps
from shaderad.rules.pulling.tidying import tidied
from shaderad.rules.pushed import Pushed, PushedKernel

MEMORY = 16384
"""Bytes a thread for the states of loops."""
_SHARES = (MEMORY, MEMORY // 4, MEMORY // 16, MEMORY // 64, 0)
"""Bytes for those of one loop, as they are tried: with none, one state is kept."""


def pull_function(functions: Functions, f: Function, wanted: frozenset[int]) -> Adjoint:
    """The adjoint of a function without derivatives of its own.

    Raises:
        DerivativeError: SR0415 where the states of its loops take more than there is.
    """
    return _adjoint(f"{f.name}_bwd", f, _pulling(functions, f, wanted))


def split_function(functions: Functions, f: Function, wanted: frozenset[int]) -> Split:
    """The same in two parts: what runs forward, and the way back from what that keeps."""
    pulled, made = _fitting(f, _pulling(functions, f, wanted))
    start = pulled.back
    given = frozenset(p.name for p in pulled.parameters)
    places = frozenset(p.name for p in pulled.parameters if isinstance(p, Place))
    back = without_dead(made[start:], places)
    saved = (live_before(back, frozenset()) - given) & changed(made[:start])
    types = {**pulled.known, **pulled.body.local_types}
    kept = tuple(Parameter(name=n, type=types[n]) for n in sorted(saved))

    def keeping(*names: str) -> Adjoint:
        outs = (Place(name=n, type=types[n]) for n in (*names, *(p.name for p in kept)))
        body = without_dead(made[:start], saved.union(names))
        return _made(f"{f.name}_keeping", f, (*f.parameters, *outs), pulled, body)

    count = len(f.parameters)
    parameters = (*f.parameters, *kept, *pulled.parameters[count:])
    adjoint = _made(f"{f.name}_bwd", f, parameters, pulled, back)
    return Split(keeping(pulled.result), keeping(), adjoint, kept)


def _pulling(functions: Functions, f: Function, wanted: frozenset[int]) -> Callable[[int], _Pulled]:
    types = {**f.local_types, **{p.name: p.type for p in f.parameters}}
    plain = structured(f.body, f.result, types)

    def pulled(memory: int) -> _Pulled:
        body = Body({*plain.local_types, *reads(plain.body), *writes(plain.body)})
        bars = {
            p.name: body.fresh(f"{p.name}_bar") for k, p in enumerate(f.parameters) if k in wanted
        }
        result_bar = body.fresh("result_bar")
        active = activity(plain.body, bars, (), functions.wanted, functions.seeds)
        given = nodes.Var(type=f.result, name=result_bar) if is_differentiable(f.result) else None
        names = [p.name for p in f.parameters]
        known = plain.local_types
        result = body.local("result", f.result) if given is not None else None
        sweeps = Sweeps(functions, body, known, active, names, bars, memory, given, result)
        back = sweeps.run(plain.body)
        parameters = parameters_of(f, wanted, bars, result_bar)
        return _Pulled(body, parameters, known, sweeps, back, result.name if result else "")

    return pulled


def pull_kernel_body(
    functions: Functions,
    kernel: Kernel,
    body: tuple[Stmt, ...],
    types: Mapping[str, Type],
    given: Mapping[str, Type],
    wanted: frozenset[str],
    results: tuple[str, ...],
    kept: tuple[str, ...] = (),
) -> Adjoint:
    """The adjoint of a kernel's body, whose own outputs are locals.

    Its parameters: the Index names, `given`, a cotangent of each of `results`, a place for
    that of each of `wanted`, and one for the value of each of `kept`.

    Args:
        functions: Those of the kernel.
        kernel: Whose body it is.
        body: Without jumps.
        types: Of its locals.
        given: Uniforms and elements that were read before.
        wanted: Those whose cotangents are wanted.
        results: Locals whose cotangents are given.
        kept: Locals that it computes, too.
    """
    known = {**types, **given, **dict.fromkeys(kernel.index_names, INT)}

    def pulled(memory: int) -> _Pulled:
        written = Body({*known, *reads(body), *writes(body)})
        bars = {name: written.fresh(f"{name}_bar") for name in (*results, *sorted(wanted))}
        active = activity(body, wanted, results, functions.wanted, functions.seeds)
        names = (*kernel.index_names, *given)
        sweeps = Sweeps(functions, written, known, active, names, bars, memory)
        values = {name: written.fresh(f"{name}_value") for name in kept}
        back = sweeps.run(body, values)
        parameters = (
            *(Parameter(name=n, type=INT) for n in kernel.index_names),
            *(Parameter(name=n, type=t) for n, t in given.items()),
            *(Parameter(name=bars[n], type=known[n]) for n in results),
            *(Place(name=bars[n], type=known[n]) for n in given if n in wanted),
            *(Place(name=values[n], type=known[n]) for n in kept),
        )
        return _Pulled(written, parameters, known, sweeps, back)

    return _adjoint(f"{kernel.name}_adjoint", kernel, pulled)


@dataclass(frozen=True)
class _Pulled:
    """What both sweeps made of a body."""

    body: Body
    parameters: tuple[Parameter, ...]
    known: Mapping[str, Type]
    """Types of the names that were there before."""
    sweeps: Sweeps
    back: int
    """Where the way back starts, among the statements."""
    result: str = ""
    """The name that holds what a function returns, where that has a cotangent."""


def _adjoint(name: str, of: Function | Kernel, pull: Callable[[int], _Pulled]) -> Adjoint:
    """The adjoint that `pull` makes, whose loops keep as many states as there is room for."""
    pulled, made = _fitting(of, pull)
    places = frozenset(p.name for p in pulled.parameters if isinstance(p, Place))
    return _made(name, of, pulled.parameters, pulled, without_dead(made, places))


def _fitting(
    of: Function | Kernel, pull: Callable[[int], _Pulled]
) -> tuple[_Pulled, tuple[Stmt, ...]]:
    """What `pull` makes with as many states of loops as there is room for, and its statements."""
    for memory in _SHARES:
        pulled = pull(memory)
        taken = frozenset(p.name for p in pulled.parameters)
        places = frozenset(p.name for p in pulled.parameters if isinstance(p, Place))
        made = tidied(tuple(pulled.body.statements), pulled.body.local_types, taken)
        types = {**pulled.known, **pulled.body.local_types}
        names = _names_in(without_dead(made, places))
        kept = {n: span for n, span in pulled.sweeps.kept.items() if n in names}
        if sum(memory_of(types[n]) for n in kept) <= MEMORY:
            return pulled, made
        largest = max(kept, key=lambda n: memory_of(types[n]))
        if memory == 0:
            raise error("SR0415", kept[largest], name=of.name, bytes=MEMORY)
    raise AssertionError


def _made(
    name: str,
    of: Function | Kernel,
    parameters: tuple[Parameter, ...],
    pulled: _Pulled,
    body: tuple[Stmt, ...],
) -> Adjoint:
    places = frozenset(p.name for p in parameters if isinstance(p, Place))
    body = _without_unread_results(body, pulled.sweeps.splits, places)
    made = of.temporaries if isinstance(of, Pushed | PushedKernel) else frozenset[str]()
    buffers = of.buffers if isinstance(of, Function) else tuple(b.name for b in of.buffers)
    types = {**pulled.known, **pulled.body.local_types}
    inside = _names_in(body) - {p.name for p in parameters}
    return Adjoint(
        name=name,
        parameters=parameters,
        result=VOID,
        body=body,
        local_types={n: t for n, t in types.items() if n in inside},
        buffers=buffers,
        span=of.span,
        shown={bar: n for n, bar in pulled.sweeps.bars.items() if n in pulled.known.keys() - made},
    )


def _without_unread_results(
    body: tuple[Stmt, ...], splits: Mapping[Function, Split], places: frozenset[str]
) -> tuple[Stmt, ...]:
    """`body`, whose calls of the first parts of splits leave out results that nothing reads.

    Its caller reads what is in its `places`.
    """
    counts = Counter(e.name for e in all_expressions(body) if isinstance(e, nodes.Var))

    def change(e: Expr) -> Expr:
        if not isinstance(e, nodes.Call) or e.function not in splits:
            return e
        split = splits[e.function]
        at = len(split.keeping.parameters) - len(split.saved) - 1
        result = e.args[at]
        assert isinstance(result, nodes.Var)
        if result.name in places or counts[result.name] > 1:
            return e
        return replace(e, function=split.without_result, args=(*e.args[:at], *e.args[at + 1 :]))

    made = rewrite_body(body, change)
    # Then they may leave nothing to be run for.
    return without_dead(made, places) if made != body else body


def _names_in(body: tuple[Stmt, ...]) -> set[str]:
    loops = (s for s in statements(body) if isinstance(s, nodes.For | nodes.While))
    return reads(body) | writes(body) | {n for s in loops for n in s.exits}
