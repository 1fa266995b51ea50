"""What cannot be differentiated right is refused here, before any Slang is written.

Each check names the Python line, says why and what to do instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shaderad.bodies.injective import is_injective, repeated_write
from shaderad.diagnostics import Span, error
from shaderad.ir.nodes import (
    Accumulate,
    BackwardDiff,
    Detach,
    Expr,
    ForwardDiff,
    Function,
    Kernel,
    Load,
    Stmt,
    Store,
)
from shaderad.ir.types import (
    Access,
    BufferType,
    Kind,
    LocalArray,
    Struct,
    Tuple,
    Type,
    is_differentiable,
    scalars,
)
from shaderad.ir.walk import children, expressions, reachable, statements
from shaderad.lower.bindings import Mode
from shaderad.lower.loops import Keeping, LoopFunction
from shaderad.lower.strategy import Strategies

# The library's derivatives can themselves be differentiated once; Slang crashes beyond.
_HIGHEST_ORDER = 2


def check_kernel(kernel: Kernel, body: tuple[Stmt, ...]) -> None:
    """What no mode can run.

    Raises:
        LanguageError: SR0282 for Add, Min and Max of element types without such an atomic.
        DerivativeError: SR0410 for ``fwd_diff`` and ``bwd_diff`` of functions that touch arrays.
    """
    for b in kernel.buffers:
        kinds = {s.kind for s in scalars(b.type.element)}
        is_sum = b.access in (Access.ADD, Access.MIN, Access.MAX)
        if is_sum and kinds & {Kind.HALF, Kind.DOUBLE, Kind.BOOL}:
            raise error("SR0282", b.span, array=b.name, type=b.type)
    for part in (body, *(f.body for f in reachable(body))):
        for s in statements(part):
            if isinstance(s, BackwardDiff):
                _check_inner(s.function, s.span, "bwd_diff")
            for e in expressions(s):
                _check_expression(e)


def _check_expression(e: Expr) -> None:
    if isinstance(e, ForwardDiff):
        _check_inner(e.function, e.span, "fwd_diff")


def _check_inner(f: Function, span: Span, transform: str) -> None:
    wanted = "backward" if transform == "bwd_diff" else "forward"
    for inner in (f, *reachable(f.body)):
        if any(True for _ in _array_floats(inner.body)) and inner.backward is None:
            raise error("SR0410", span, transform=transform, function=inner.name)
        other = inner.forward if wanted == "backward" else inner.backward
        if getattr(inner, wanted) is None and other is not None:
            code = "SR0411" if wanted == "backward" else "SR0412"
            raise error(code, span, function=inner.name)


def _array_floats(body: tuple[Stmt, ...]) -> Iterator[Expr | Stmt]:
    """Differentiable array accesses; loads under ``detach`` are none."""
    for s in statements(body):
        if isinstance(s, Store | Accumulate) and is_differentiable(s.value.type):
            yield s
        for e in children(s):
            yield from _attached_loads(e)


def _attached_loads(e: Expr) -> Iterator[Expr]:
    if isinstance(e, Detach):
        return
    if isinstance(e, Load) and is_differentiable(e.type):
        yield e
    for child in children(e):
        yield from _attached_loads(child)


def check_mode(
    kernel: Kernel,
    body: tuple[Stmt, ...],
    mode: Mode,
    elsewhere: frozenset[str],
    at_zero: tuple[str, ...] = (),
) -> None:
    """What cannot be differentiated in `mode`.

    Args:
        kernel: The kernel.
        body: Its statements as they will be differentiated.
        mode: Backward or forward.
        elsewhere: Arrays that are written at other indices than the thread's own.
        at_zero: The Index names, where there is one thread at most.

    Raises:
        DerivativeError: SR0411 (no backward derivative), SR0412 (no forward one), SR0413 (result
            depends on ``bwd_diff``), SR0414 (Out written at indices that may repeat), SR0425
            (written twice all the same).
    """
    functions = reachable(body)
    for f in functions:
        if mode is Mode.BACKWARD and f.forward is not None and f.backward is None:
            raise error("SR0411", f.span, function=f.name)
        if mode is Mode.FORWARD and f.backward is not None and f.forward is None:
            raise error("SR0412", f.span, function=f.name)
    plain = [f for f in functions if f.backward is None and f.forward is None]
    for part in (body, *(f.body for f in plain)):
        inner = next((s for s in statements(part) if isinstance(s, BackwardDiff)), None)
        if inner is not None:
            raise error("SR0413", inner.span, mode="vjp" if mode is Mode.BACKWARD else "jvp")
    uniforms = frozenset(u.name for u in kernel.uniforms)
    for b in kernel.buffers:
        if b.access is not Access.OUT or b.name not in elsewhere or not is_float_element(b.type):
            continue
        if not _is_written_once(kernel, body, functions, b.name, uniforms, at_zero):
            raise error("SR0414", b.span, array=b.name, kernel=kernel.name)
        again = repeated_write(body, b.name, kernel.index_names, uniforms)
        if again is not None:
            raise error("SR0425", again.span, array=b.name, kernel=kernel.name)


def check_order(body: tuple[Stmt, ...], order: int) -> None:
    """Derivatives go up to the second; `order` counts those that `body` is part of.

    Raises:
        DerivativeError: SR0419.
    """
    functions = reachable(body)
    own = [f.forward for f in functions if f.forward is not None]
    for part in (body, *(f.body for f in (*functions, *own))):
        for s in statements(part):
            for e in (s, *expressions(s)):
                if isinstance(e, ForwardDiff | BackwardDiff):
                    if order == _HIGHEST_ORDER:
                        raise error("SR0419", e.span, function=e.function.name, order=order + 1)
                    check_order(e.function.body, order + 1)


def check_nesting(body: tuple[Stmt, ...]) -> None:
    """Values that the compiler cannot differentiate forward, then in reverse.

    Raises:
        DerivativeError: SR0428.
    """
    for part in (body, *(f.body for f in reachable(body))):
        for e in (e for s in statements(part) for e in expressions(s)):
            if not isinstance(e, ForwardDiff):
                continue
            for f in (e.function, *reachable(e.function.body)):
                nested = next(filter(_is_nested, _types_in(f)), None)
                if nested is not None:
                    raise error("SR0428", e.span, function=f.name, type=nested)


def _types_in(f: Function) -> Iterator[Type]:
    yield f.result
    yield from (p.type for p in f.parameters)
    yield from f.local_types.values()
    yield from (e.type for s in statements(f.body) for e in expressions(s))


def _is_nested(t: Type) -> bool:
    """Whether a struct or tuple with floats lies in another, or an array of floats does."""
    if isinstance(t, LocalArray):
        return _is_nested(t.element)
    fields = [f for _, f in t.fields] if isinstance(t, Struct) else []
    fields += t.elements if isinstance(t, Tuple) else ()
    return any(isinstance(f, Struct | Tuple | LocalArray) and is_differentiable(f) for f in fields)


def is_float_element(t: BufferType) -> bool:
    return is_differentiable(t.element)


def _is_written_once(
    kernel: Kernel,
    body: tuple[Stmt, ...],
    functions: list[Function],
    buffer: str,
    uniforms: frozenset[str],
    at_zero: tuple[str, ...],
) -> bool:
    for f in functions:
        stores = [s for s in statements(f.body) if isinstance(s, Store) and s.buffer == buffer]
        if any(not s.is_unique for s in stores):
            return False
    return is_injective(body, buffer, kernel.index_names, uniforms, at_zero)


def check_loops(loops: Iterable[LoopFunction]) -> None:
    """A loop whose states must be kept needs to say how many there can be.

    Raises:
        DerivativeError: SR0415 at the first such loop; its note lists the others.
    """
    carried_by_span = {
        loop.loop.span: next(n for n, t in loop.state if is_differentiable(t))
        for loop in loops
        if loop.keeping is Keeping.UNBOUNDED
    }
    if carried_by_span:
        first, *others = sorted(carried_by_span, key=lambda span: (span.file, span.line))
        also = (f"the loop at {s.place} likewise, by `{carried_by_span[s]}`" for s in others)
        raise error("SR0415", first, name=carried_by_span[first], others="\n".join(also))


def check_strategies(kernel: Kernel, strategies: Strategies) -> None:
    """Doubles can be stored or summed by one group, not added atomically.

    Raises:
        DerivativeError: SR0416.
    """
    for b in kernel.buffers:
        kinds = {s.kind for s in scalars(b.type.element)}
        if Kind.DOUBLE in kinds and "scattered" in strategies.by_name.get(b.name, ""):
            raise error("SR0416", b.span, array=b.name, type=b.type)
