"""Expressions that share parts -> statements in which nothing is computed twice.

A shared part becomes a local in the innermost block in which all its uses lie. Sides of a choice
become blocks of an `If` where they need locals. Invariants: a part that reads other elements or may
report is evaluated only in blocks that use it, unless these are more than `COPY_LIMIT`; no
expression is nested deeper than `DEPTH_LIMIT`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shaderad.ir import nodes, ops, walk
from shaderad.ir.dags import in_order
from shaderad.ir.equality import Expressions
from shaderad.ir.nodes import Assign, Conditional, Expr, If, Stmt, Var
from shaderad.ir.types import Type, is_integer
from shaderad.ir.walk import children, map_children
from shaderad.plan.positions import INDEX_NAMES, is_size_name

DEPTH_LIMIT = 12
"""Operators that may be nested in one expression, so that a reader can follow it."""
COPY_LIMIT = 8
"""Blocks in which one part may be evaluated."""


Path = tuple[tuple[int, int], ...]
"""A block: the choices around it, outermost first, each as its identity and the operand taken."""


@dataclass
class Written:
    """Statements, the values that they compute, and the types of their locals."""

    body: tuple[Stmt, ...]
    values: tuple[Expr, ...]
    local_types: dict[str, Type]
    ends: tuple[int, ...]
    """For each value, the statements of `body` after which it and those before it are known."""

    def in_turn(self) -> Iterator[tuple[Sequence[Stmt], Expr]]:
        """Each value, and the statements that it needs besides those of the values before it."""
        start = 0
        for value, end in zip(self.values, self.ends, strict=True):
            yield self.body[start:end], value
            start = max(start, end)


def write(values: Sequence[Expr], prefix: str = "t") -> Written:
    """Statements after which `values` are short expressions."""
    expressions = Expressions()
    return _Writer([expressions.shared(v) for v in values], prefix).run()


class _Writer:
    def __init__(self, values: Sequence[Expr], prefix: str) -> None:
        self._values = values
        self._prefix = prefix
        self._order = _in_order(values)
        self._homes: dict[int, list[Path]] = {}
        """For each part, the blocks in which it is evaluated."""
        self._parts: defaultdict[Path, list[Expr]] = defaultdict(list)
        """For each block, the parts that are evaluated in it, operands last."""
        self._uses: dict[tuple[int, Path], int] = {}
        self._text: dict[tuple[int, Path], Expr] = {}
        self._depth: dict[tuple[int, Path], int] = {}
        self._local_types: dict[str, Type] = {}
        self._ends: dict[tuple[int, Path], int] = {}
        """For each evaluation, the statements of its block after which it is known."""

    def run(self) -> Written:
        self._place()
        body = self._write_block(())
        values = tuple(self._text[id(v), ()] for v in self._values)
        ends = tuple(self._ends[id(v), ()] for v in self._values)
        return Written(tuple(body), values, self._local_types, ends)

    # -- where each part stands ------------------------------------------------------------

    def _place(self) -> None:
        risky = _risky(self._order)
        uses: defaultdict[int, Counter[Path]] = defaultdict(Counter)
        for value in self._values:
            uses[id(value)][()] += 1
        for part in reversed(self._order):
            count_by_path = uses[id(part)]
            homes = _outermost(count_by_path) if id(part) in risky else []
            if not 0 < len(homes) <= COPY_LIMIT:
                homes = [_common(count_by_path)]
            self._homes[id(part)] = homes
            for home in homes:
                inside = (n for path, n in count_by_path.items() if _leads(home, path))
                self._uses[id(part), home] = sum(inside)
                self._parts[home].append(part)
                for k, child in enumerate(children(part)):
                    uses[id(child)][_side(part, k, home)] += 1

    # -- text ------------------------------------------------------------------------------

    def _write_block(self, path: Path) -> list[Stmt]:
        body: list[Stmt] = []
        for part in reversed(self._parts[path]):
            if isinstance(part, Conditional):
                self._write_conditional(part, path, body)
            else:
                text = map_children(part, lambda child: self._text[self._at(child, path)])
                self._put(part, path, text, body)
            self._ends[id(part), path] = len(body)
        return body

    def _at(self, part: Expr, path: Path) -> tuple[int, Path]:
        """The evaluation of `part` that a block sees."""
        return id(part), next(h for h in self._homes[id(part)] if _leads(h, path))

    def _put(self, part: Expr, path: Path, text: Expr, body: list[Stmt]) -> None:
        parts = [self._at(e, _side(part, k, path)) for k, e in enumerate(children(part))]
        depth = 1 + max((self._depth[child] for child in parts), default=-1)
        key = (id(part), path)
        is_shared = self._uses[key] > 1 and bool(parts) and not _is_cheap(part)
        if is_shared or depth > DEPTH_LIMIT:
            name = self._local(part.type)
            body.append(Assign(name=name, value=text))
            text, depth = Var(type=part.type, name=name), 0
        self._text[key], self._depth[key] = text, depth

    def _write_conditional(self, part: Conditional, path: Path, body: list[Stmt]) -> None:
        then, otherwise = (self._write_block(_side(part, k, path)) for k in (1, 2))
        condition, if_true, if_false = (
            self._text[self._at(e, _side(part, k, path))] for k, e in enumerate(children(part))
        )
        if not then and not otherwise:
            plain = Conditional(
                type=part.type, condition=condition, if_true=if_true, if_false=if_false
            )
            self._put(part, path, plain, body)
            return
        name = self._local(part.type)
        then.append(Assign(name=name, value=if_true))
        otherwise.append(Assign(name=name, value=if_false))
        body.append(If(condition=condition, then=tuple(then), otherwise=tuple(otherwise)))
        key = (id(part), path)
        self._text[key], self._depth[key] = Var(type=part.type, name=name), 0

    def _local(self, t: Type) -> str:
        name = f"{self._prefix}{len(self._local_types)}"
        self._local_types[name] = t
        return name


def _is_cheap(part: Expr) -> bool:
    """True if writing it twice is no more than naming it, or a name would not say what it says."""
    if isinstance(part, nodes.KnownNumber):
        return True
    return isinstance(part, nodes.Field | nodes.Swizzle) and isinstance(part.value, Var)


def _in_order(values: Sequence[Expr]) -> list[Expr]:
    return list({id(part): part for value in values for part in in_order(value)}.values())


def _risky(order: Sequence[Expr]) -> set[int]:
    """Identities of parts that read other elements or may report, and of parts around them."""
    risky: set[int] = set()
    for part in order:
        if _reaches_out(part) or may_report(part) or any(id(e) in risky for e in children(part)):
            risky.add(id(part))
    return risky


def _reaches_out(part: Expr) -> bool:
    """True if it reads at a position which may be out of range where it is not needed."""
    if not isinstance(part, nodes.Load):
        return False
    return not all(isinstance(e, Var) and e.name in INDEX_NAMES for e in part.indices)


def _side(part: Expr, k: int, home: Path) -> Path:
    """The block in which operand `k` of a part is used."""
    return (*home, (id(part), k)) if k and isinstance(part, Conditional) else home


def _leads(block: Path, path: Path) -> bool:
    """True if the block `path` is `block`, or is inside it."""
    return path[: len(block)] == block


def _outermost(paths: Iterable[Path]) -> list[Path]:
    """The paths that are in no other."""
    outermost: list[Path] = []
    for path in sorted(paths, key=len):
        if not any(_leads(block, path) for block in outermost):
            outermost.append(path)
    return outermost


def _common(paths: Iterable[Path]) -> Path:
    """The innermost block that holds all."""
    first, *others = paths
    while not all(_leads(first, path) for path in others):
        first = first[:-1]
    return first


def may_report(e: Expr) -> bool:
    """True if the value of this node, apart from its operands, can go wrong at run time."""
    if isinstance(e, nodes.Element):
        return not isinstance(e.index, nodes.Const | nodes.KnownNumber)
    if isinstance(e, nodes.Apply) and e.op in (ops.FLOOR_DIV, ops.MOD):
        return is_integer(e.type) and not _is_positive(e.args[1])
    if isinstance(e, nodes.Call):
        return not _is_quiet(e.function)
    return isinstance(e, nodes.ForwardDiff | nodes.PointerIndex)


def _is_quiet(function: nodes.Function) -> bool:
    """True for generated functions that only compute, such as compositions of affine maps."""
    bodies = [function.body, *(f.body for f in walk.reachable(function.body))]
    is_ours = function.span == nodes.NO_SPAN
    return is_ours and not any(map(_does_more, bodies))


_ARITHMETIC = (nodes.Assign, nodes.BackwardDiff, nodes.Return)


def _does_more(body: Sequence[Stmt]) -> bool:
    is_plain = all(isinstance(s, _ARITHMETIC) for s in walk.statements(body))
    parts = walk.all_expressions(body)
    return not is_plain or any(
        isinstance(e, nodes.Load) or (not isinstance(e, nodes.Call) and may_report(e))
        for e in parts
    )


def _is_positive(divisor: Expr) -> bool:
    """True for positive constants, and for extents, which are not 0 where a thread runs."""
    if isinstance(divisor, nodes.Cast):
        return isinstance(divisor.value, nodes.Var) and is_size_name(divisor.value.name)
    return isinstance(divisor, nodes.Const) and divisor.value > 0
