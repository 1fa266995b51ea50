"""Numbers for the writes of a thread to Min and Max arrays, so that its first winner is known.

The number is made from the place of the write and the counters of the loops around it. It is
the same in every mode, in whatever order reverse mode comes by.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from shaderad.diagnostics import error
from shaderad.ir import ops
from shaderad.ir.nodes import (
    Accumulate,
    Apply,
    Assign,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Stmt,
    Var,
    While,
)
from shaderad.ir.types import UINT, Access, Type, is_differentiable
from shaderad.ir.walk import called, statements

# Odd multiplier of Knuth's multiplicative hashing (TAOCP vol. 3, section 6.4).
_MULTIPLIER = 0x9E3779B1


@dataclass(frozen=True, kw_only=True)
class NumberedAccumulate(Accumulate):
    """A Min or Max write with its number, a uint."""

    number: Expr


@dataclass
class _Numbering:
    extremes: frozenset[str]
    local_types: dict[str, Type]
    site_count: int = 0
    counters: list[str] = field(default_factory=list[str])

    def block(self, body: tuple[Stmt, ...], key: Expr) -> tuple[Stmt, ...]:
        return tuple(new for s in body for new in self.statement(s, key))

    def statement(self, s: Stmt, key: Expr) -> tuple[Stmt, ...]:
        if isinstance(s, Accumulate) and s.buffer in self.extremes:
            self.site_count += 1
            number = _mixed(key, Const(type=UINT, value=self.site_count))
            return (
                NumberedAccumulate(buffer=s.buffer, indices=s.indices, path=s.path,
                                   value=s.value, span=s.span, number=number),
            )  # fmt: skip
        if isinstance(s, If):
            then, otherwise = self.block(s.then, key), self.block(s.otherwise, key)
            return (replace(s, then=then, otherwise=otherwise),)
        if isinstance(s, For | While) and any(
            isinstance(t, Accumulate) and t.buffer in self.extremes for t in statements(s.body)
        ):
            return self._loop(s, key)
        return (s,)

    def _loop(self, s: For | While, key: Expr) -> tuple[Stmt, ...]:
        counter = self._local("write_step")
        inner = self._local("write_number")
        step = Apply(type=UINT, op=ops.ADD, args=(counter, Const(type=UINT, value=1)))
        head = (
            Assign(name=counter.name, value=step),
            Assign(name=inner.name, value=_mixed(key, counter)),
        )
        start = Assign(name=counter.name, value=Const(type=UINT, value=0))
        return (start, replace(s, body=(*head, *self.block(s.body, inner))))

    def _local(self, stem: str) -> Var:
        name, number = stem, 1
        while name in self.local_types:
            number += 1
            name = f"{stem}_{number}"
        self.local_types[name] = UINT
        return Var(type=UINT, name=name)


def _mixed(key: Expr, part: Expr) -> Expr:
    mixed = Apply(type=UINT, op=ops.BIT_XOR, args=(key, part))
    if isinstance(key, Const) and isinstance(part, Const):
        return Const(type=UINT, value=int(key.value) ^ int(part.value))
    return Apply(type=UINT, op=ops.MUL, args=(mixed, Const(type=UINT, value=_MULTIPLIER)))


def number_writes(
    kernel: Kernel, body: tuple[Stmt, ...], local_types: dict[str, Type]
) -> tuple[tuple[Stmt, ...], dict[str, Type]]:
    """`body` with its writes to Min and Max arrays of floats numbered.

    Raises:
        DerivativeError: SR0418 for a function that writes one: it may run more than once.
    """
    extremes = frozenset(
        b.name
        for b in kernel.buffers
        if b.access in (Access.MIN, Access.MAX) and is_differentiable(b.type.element)
    )
    if not extremes:
        return body, local_types
    for f in set(called(body)):
        shared = sorted(extremes & set(f.buffers))
        if shared:
            raise error("SR0418", f.span, function=f.name, array=shared[0])
    types = dict(local_types)
    numbering = _Numbering(extremes, types)
    return numbering.block(body, Const(type=UINT, value=0)), types
