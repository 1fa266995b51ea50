"""Bodies, user functions and their derivatives as Slang functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from shaderad.bodies.liveness import live_before
from shaderad.bodies.structured import Structured, structured
from shaderad.ir import nodes
from shaderad.ir.composing import holds_array
from shaderad.ir.types import Type
from shaderad.ir.walk import blocks, children, reads, statements, writes
from shaderad.lower.bindings import Mode
from shaderad.lower.prepare.known import Folded, folded_names
from shaderad.lower.prepare.watches import Watch
from shaderad.lower.write.body import BodyWriter
from shaderad.lower.write.expressions import ExpressionWriter
from shaderad.lower.write.statements import WRITERS
from shaderad.lower.write.text import Piece
from shaderad.rules.nodes import Adjoint, InOut, Pushed

if TYPE_CHECKING:
    from shaderad.lower.write.module import Module


class FunctionWriter(BodyWriter):
    """Writes a function body into a piece of the module."""

    def __init__(
        self,
        module: Module,
        piece: Piece,
        types: Mapping[str, Type],
        *,
        folded: Mapping[str, Folded] | None = None,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(module, piece, types, folded or {})
        self._watch = watch or Watch(module.mode, {})
        self.expressions = ExpressionWriter(self)

    def text(self, e: nodes.Expr, strength: int = 0) -> str:
        return self.expressions.text(e, strength)

    # -- blocks and declarations ------------------------------------------------------------------

    def block(self, body: tuple[nodes.Stmt, ...]) -> None:
        """Writes statements; declares each local in the innermost block that has all its uses."""
        mentioned = [_mentions(s) for s in body]
        count_by_name = Counter(name for names in mentioned for name in names)
        for s, names in zip(body, mentioned, strict=True):
            self.piece.span = s.span if s.span.line else self.piece.span
            inner = _names_inside_one_block(s)
            for name in self.types:
                if name not in names or name in self.declared:
                    continue
                if count_by_name[name] > 1 or name not in inner:
                    self._write_declaration(name, s)
            self.statement(s)

    def _write_declaration(self, name: str, first: nodes.Stmt) -> None:
        is_bound_whole = isinstance(first, nodes.Assign) and first.name == name and not first.path
        if is_bound_whole and name not in reads((first,)):
            return  # The first assignment declares it.
        self.declared.add(name)
        self.make_zero(self.variable(name), self.types[name], is_new=True)

    def statement(self, s: nodes.Stmt) -> None:
        if self.module.variant.checks == "nan":
            s = self._watch.statement(s)
        WRITERS[type(s)](self, s)

    def nested(
        self, body: tuple[nodes.Stmt, ...], *, first: Sequence[str] = (), last: Sequence[str] = ()
    ) -> None:
        outer = set(self.declared)
        self.piece.add("{", *first)
        self.block(body)
        self.piece.add(*last, "}")
        self.declared = outer


def _mentions(s: nodes.Stmt) -> set[str]:
    """The locals that a statement reads or writes, without variables that a `for` declares."""
    variables = {t.variable for t in statements((s,)) if isinstance(t, nodes.For)}
    exits = s.exits if isinstance(s, nodes.For | nodes.While) else ()
    return ((reads((s,)) | writes((s,))) - variables).union(exits)


def _names_inside_one_block(s: nodes.Stmt) -> set[str]:
    """The names whose uses in `s` are all inside one of its blocks."""
    if not isinstance(s, nodes.If | nodes.For | nodes.While):
        return set()
    names, *others = [set[str]().union(*map(_mentions, block)) for block in blocks(s)]
    for other in others:
        names ^= other
    if not isinstance(s, nodes.If):
        # An iteration that reads a name before it assigns it needs the value of an earlier one.
        names -= live_before(s.body, frozenset()).union(s.exits)
    return names - reads(nodes.Evaluate(call=e) for e in children(s))


def write_function(module: Module, f: nodes.Function, name: str) -> Piece:
    """A user function, or a derivative of one."""
    piece = Piece(f.span)
    types = {**f.local_types, **{p.name: p.type for p in f.parameters}}
    plain = (
        Structured(body=f.body, local_types=types)
        if isinstance(f, Adjoint)
        else structured(f.body, f.result, types)
    )
    folded = folded_names(plain.body, module.folded_parameters.get(f, {}))
    watch = _watch_of(f, module.mode)
    writer = FunctionWriter(module, piece, plain.local_types, folded=folded, watch=watch)
    derivatives = module.derivatives.get(f)
    parameters = [
        f"{_modifier(p, is_exported=derivatives is not None)}{module.types.spell(p.type)} "
        f"{writer.parameter(p.name)}"
        for p in f.parameters
    ]
    head = f"{module.types.spell(f.result)} {name}({', '.join(parameters)})"
    if derivatives:
        piece.add(*derivatives.attributes)
        head = f"public {head}"
    piece.open(head)
    assigned = writes(plain.body)
    for p in f.parameters:
        if p.name in assigned and not isinstance(p, InOut):
            writer.copy_parameter(p.name)
    writer.block(plain.body)
    piece.close()
    return piece


def _modifier(p: nodes.Parameter, *, is_exported: bool) -> str:
    """The modifier of a parameter: compilers copy arrays, and Slang's derivatives take values."""
    if isinstance(p, InOut):
        return "inout "
    return "__constref " if holds_array(p.type) and not is_exported else ""


def _watch_of(f: nodes.Function, mode: Mode) -> Watch:
    """The watch of `f`; a custom derivative computes values, like the primal."""
    if isinstance(f, Adjoint):
        return Watch(Mode.PRIMAL if f.is_own else mode, f.shown)
    return Watch(mode, f.shown if isinstance(f, Pushed) else {})
