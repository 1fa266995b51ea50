"""What cannot be differentiated right is refused here, before any Slang is written.

Each check names the Python line, says why and what to do instead.
"""

from __future__ import annotations

from shaderad.bodies.injective import is_injective, repeated_write
from shaderad.diagnostics import error
from shaderad.ir.nodes import (
    Function,
    Kernel,
    Stmt,
    Store,
)
from shaderad.ir.types import (
    Access,
    BufferType,
    Kind,
    is_differentiable,
    scalars,
)
from shaderad.ir.walk import reachable, statements
from shaderad.lower.strategy import Strategies
from shaderad.rules.pushed import primal_name


def check_kernel(kernel: Kernel) -> None:
    """What no mode can run.

    Raises:
        LanguageError: SR0282 for Add, Min and Max of element types without such an atomic.
    """
    for b in kernel.buffers:
        kinds = {s.kind for s in scalars(b.type.element)}
        is_sum = b.access in (Access.ADD, Access.MIN, Access.MAX)
        if is_sum and kinds & {Kind.HALF, Kind.DOUBLE, Kind.BOOL}:
            raise error("SR0282", b.span, array=b.name, type=b.type)


def check_writes(
    kernel: Kernel, body: tuple[Stmt, ...], elsewhere: frozenset[str], at_zero: tuple[str, ...] = ()
) -> None:
    """Out elements are written once, where derivatives are asked for.

    Args:
        kernel: The kernel.
        body: Its statements as they will be differentiated.
        elsewhere: Arrays that are written at other indices than the thread's own.
        at_zero: The Index names, where there is one thread at most.

    Raises:
        DerivativeError: SR0414 (Out written at indices that may repeat), SR0425 (written twice
            all the same).
    """
    functions = reachable(body)
    uniforms = frozenset(u.name for u in kernel.uniforms)
    for b in kernel.buffers:
        if b.access is not Access.OUT or b.name not in elsewhere or not is_float_element(b.type):
            continue
        if not _is_written_once(kernel, body, functions, b.name, uniforms, at_zero):
            raise error("SR0414", b.span, array=b.name, kernel=primal_name(kernel))
        again = repeated_write(body, b.name, kernel.index_names, uniforms)
        if again is not None:
            raise error("SR0425", again.span, array=b.name, kernel=primal_name(kernel))


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


def check_strategies(kernel: Kernel, strategies: Strategies) -> None:
    """Doubles can be stored or summed by one group, not added atomically.

    Raises:
        DerivativeError: SR0416.
    """
    for b in kernel.buffers:
        kinds = {s.kind for s in scalars(b.type.element)}
        if Kind.DOUBLE in kinds and "scattered" in strategies.by_name.get(b.name, ""):
            raise error("SR0416", b.span, array=b.name, type=b.type)
