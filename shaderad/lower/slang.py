"""IR functions -> Slang text: statements, functions, outlined loops.

The user's names and order, one statement a line. Functions that take part in differentiation are
written for Slang's AD (loops outlined, accesses with derivatives); the others as plain Slang.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from shaderad.ir import ops
from shaderad.ir.nodes import (
    Accumulate,
    AccumulateGradient,
    Apply,
    Assert,
    Assign,
    BackwardDiff,
    Call,
    Const,
    ElementStep,
    Evaluate,
    Expr,
    FieldStep,
    For,
    If,
    Load,
    PartStep,
    Return,
    Step,
    Stmt,
    Store,
    SwizzleStep,
    Var,
    While,
    Zero,
)
from shaderad.ir.types import (
    LocalArray,
    Matrix,
    Pair,
    Type,
    Vector,
    Void,
    is_differentiable,
    tangent,
)
from shaderad.ir.walk import path_value, reads, statements, step_type, writes
from shaderad.lower import accumulate
from shaderad.lower.bindings import SiteKind
from shaderad.lower.expressions import ExpressionWriter, has_matrix_form
from shaderad.lower.liveness import live_before
from shaderad.lower.loop_text import LoopWriter, name_in_struct
from shaderad.lower.loops import RunLoop, trip_count
from shaderad.lower.names import Names
from shaderad.lower.piece import Piece
from shaderad.lower.write_numbers import NumberedAccumulate

if TYPE_CHECKING:
    from shaderad.lower.module import Module

_S = TypeVar("_S", bound=Stmt)
_COMPOUND = {ops.ADD: "+=", ops.SUB: "-=", ops.MUL: "*=", ops.DIV: "/="}


class FunctionWriter:
    """Writes one function body into a piece of the module."""

    def __init__(
        self,
        module: Module,
        piece: Piece,
        types: Mapping[str, Type],
        *,
        is_differentiated: bool,
        names: Names | None = None,
    ) -> None:
        self.module = module
        self.piece = piece
        self.types = dict(types)
        self.is_differentiated = is_differentiated
        self.names = names or module.names.child()
        self.expressions = ExpressionWriter(self)
        self._text_by_name: dict[str, str] = {}
        self._accumulators: dict[str, str] = {}
        self._declared: set[str] = set()
        self._changed_in_part: set[str] = set()

    # -- names ----------------------------------------------------------------------------------

    def variable(self, name: str) -> str:
        """The text that reads a local name."""
        if name not in self._text_by_name:
            self._text_by_name[name] = self.names.make(name)
        return self._text_by_name[name]

    def bind(self, name: str, text: str) -> None:
        """Makes `name` read as `text`, declared elsewhere."""
        self._text_by_name[name] = text
        self._declared.add(name)

    def parameter(self, name: str) -> str:
        self._declared.add(name)
        return self.variable(name)

    def accumulator(self, pair: str) -> str | None:
        """The local that sums ``pair.d``, where `pair` is a parameter of a backward derivative."""
        return self._accumulators.get(pair)

    def add_accumulator(self, pair: str) -> str:
        self._accumulators[pair] = self.names.make(f"{pair}_d")
        return self._accumulators[pair]

    def text(self, e: Expr, strength: int = 0) -> str:
        return self.expressions.text(e, strength)

    # -- blocks and declarations ------------------------------------------------------------------

    def block(self, body: tuple[Stmt, ...]) -> None:
        """Writes statements; a name is declared in the innermost block that holds all its uses."""
        self._changed_in_part |= {
            s.name for s in statements(body) if isinstance(s, Assign) and s.path
        }
        mentions = [_mentions(s) for s in body]
        for position, s in enumerate(body):
            self.piece.span = s.span if s.span.line else self.piece.span
            for name in sorted(mentions[position], key=self._order):
                if name in self._declared or name not in self.types:
                    continue
                elsewhere = any(name in m for k, m in enumerate(mentions) if k != position)
                if not elsewhere and _is_inside_one_block(s, name):
                    continue
                self._declare(name, s)
            self.statement(s)

    def _order(self, name: str) -> int:
        return list(self.types).index(name) if name in self.types else -1

    def _declare(self, name: str, first: Stmt) -> None:
        is_bound_whole = isinstance(first, Assign) and first.name == name and not first.path
        if is_bound_whole and name not in reads((first,)):
            return  # declared by its first assignment
        self._declared.add(name)
        t = self.types[name]
        spelled = self.module.types.spell(t)
        value = self._start(name, Zero(type=t))
        self.piece.add(f"{spelled} {self.variable(name)} = {value};")

    def _start(self, name: str, value: Expr) -> str:
        """The text of a value that all of `name` gets.

        In Slang's forward mode a constant that is changed in part under an `if` has its primal
        for tangent; `copyOf` hides that it is one.
        """
        text = self.text(value)
        is_composite = isinstance(value.type, Vector | Matrix | LocalArray)
        if not self.is_differentiated or not is_composite or not is_differentiable(value.type):
            return text
        if name not in self._changed_in_part or isinstance(value, Load | Call):
            return text
        return f"copyOf({text})"

    def statement(self, s: Stmt) -> None:
        _WRITERS[type(s)](self, s)

    def nested(self, body: tuple[Stmt, ...]) -> None:
        """A block in braces, whose declarations end with it."""
        self.piece.add("{")
        before = set(self._declared)
        self.block(body)
        self._declared = before
        self.piece.add("}")

    # -- statements -----------------------------------------------------------------------------

    def assign(self, s: Assign) -> None:
        if not s.path:
            self._assign_name(s)
            return
        if isinstance(s.path[0], PartStep):
            self._assign_part(s)
            return
        self.assign_place(self.variable(s.name), self.types[s.name], s.path, s.value, s)

    def _assign_name(self, s: Assign) -> None:
        name = self.variable(s.name)
        is_new = s.name not in self._declared
        spelled = f"{self.module.types.spell(self.types[s.name])} " if is_new else ""
        self._declared.add(s.name)
        if not is_new and s.name in reads((s,)):
            place = Var(type=self.types[s.name], name=s.name)
            self.piece.add(self._update(name, place, s.value))
        else:
            self.piece.add(f"{spelled}{name} = {self._start(s.name, s.value)};")

    def _update(self, target: str, place: Expr | None, value: Expr) -> str:
        """``target = value;``, or a compound assignment where the value starts from the target."""
        if (
            isinstance(value, Apply)
            and value.op in _COMPOUND
            and value.args[0] == place
            and not has_matrix_form(value)
        ):
            return f"{target} {_COMPOUND[value.op]} {self.text(value.args[1])};"
        return f"{target} = {self.text(value)};"

    def _assign_part(self, s: Assign) -> None:
        """``x.d = ..``: pairs are rebuilt whole, or summed in the accumulator of a parameter."""
        pair = self.types[s.name]
        assert isinstance(pair, Pair)
        t = tangent(pair.primal)
        name = self.variable(s.name)
        accumulator = self.accumulator(s.name)
        if accumulator is not None:
            self.assign_place(accumulator, t, s.path[1:], s.value, s)
            return
        part = self.names.make(f"{s.name}_d")
        self.piece.add(f"{self.module.types.differential(pair.primal)} {part} = {name}.d;")
        self.assign_place(part, t, s.path[1:], s.value, s)
        self.piece.add(f"{name} = diffPair({name}.p, {part});")

    def assign_place(
        self, target: str, t: Type, path: tuple[Step, ...], value: Expr, s: Assign
    ) -> None:
        """``target<path> = value``; elements at a variable index are guarded."""
        for position, step in enumerate(path):
            if isinstance(step, ElementStep) and not isinstance(step.index, Const):
                self._assign_element(target, t, path[position:], value, s)
                return
            target += self.step_text(t, step)
            inner = step_type(t, step)
            assert inner is not None
            t = inner
        place = path_value(Var(type=self.types[s.name], name=s.name), s.path)
        self.piece.add(self._update(target, place, value))

    def step_text(self, t: Type, step: Step) -> str:
        if isinstance(step, FieldStep):
            return f".{self.module.field(t, step.name)}"
        if isinstance(step, SwizzleStep):
            return f".{step.components}"
        assert isinstance(step, ElementStep)
        assert isinstance(step.index, Const)
        return f"[{int(step.index.value)}]"

    def _assign_element(
        self, target: str, t: Type, path: tuple[Step, ...], value: Expr, s: Assign
    ) -> None:
        step, rest = path[0], path[1:]
        assert isinstance(step, ElementStep)
        index = self.names.make("index")
        self.piece.add(f"uint {index} = {self.expressions.local_index(step.index, t)};")
        inner = step_type(t, step)
        assert inner is not None
        text = self.text(value)
        if rest:
            # Slang cannot differentiate a write through two variable indices: copy, change, store.
            part = self.names.make("part")
            read = "at" if is_differentiable(inner) else "atPlain"
            if not isinstance(t, LocalArray):
                read = "row"
            zero = f", {self.module.types.zero(inner)}" if isinstance(t, LocalArray) else ""
            spelled = self.module.types.spell(inner)
            self.piece.add(f"{spelled} {part} = {read}({target}, {index}{zero});")
            self.assign_place(part, inner, rest, value, s)
            text = part
        if self.module.is_unchecked:
            self.piece.add(f"{target}[{index}] = {text};")
            return
        self.piece.add(f"if ({index} != outside)")
        self.piece.indented(f"{target}[{index}] = {text};")

    def store(self, s: Store) -> None:
        accumulate.write_store(self, s)

    def accumulate(self, s: Accumulate) -> None:
        accumulate.write_accumulate(self, s)

    def accumulate_gradient(self, s: AccumulateGradient) -> None:
        accumulate.write_gradient(self, s)

    def evaluate(self, s: Evaluate) -> None:
        self.piece.add(f"{self.text(s.call)};")

    def backward_diff(self, s: BackwardDiff) -> None:
        name = self.module.function(s.function)
        arguments: list[str] = []
        for argument in s.args:
            text = self.text(argument)
            if isinstance(argument.type, Pair):
                # A preset `.d` is overwritten by automatic and kept by custom derivatives.
                spelled = self.module.types.spell(argument.type.primal)
                self.piece.add(f"{text} = diffPair({text}.p, {spelled}.dzero());")
            arguments.append(text)
        if not isinstance(s.function.result, Void) and is_differentiable(s.function.result):
            arguments.append(self.text(s.cotangent))
        self.piece.add(f"bwd_diff({name})({', '.join(arguments)});")

    def branch(self, s: If) -> None:
        self.piece.add(f"if ({self.text(s.condition)})")
        self.nested(s.then)
        if len(s.otherwise) == 1 and isinstance(s.otherwise[0], If):
            inner = s.otherwise[0]
            at = len(self.piece.lines)
            self.branch(inner)
            text, span = self.piece.lines[at]
            indent = len(text) - len(text.lstrip())
            self.piece.lines[at] = (f"{text[:indent]}else {text[indent:]}", span)
        elif s.otherwise:
            self.piece.add("else")
            self.nested(s.otherwise)

    def returns(self, s: Return) -> None:
        if s.value is None:
            self.piece.add("return;")
        else:
            self.piece.add(f"return {self.text(s.value)};")

    def check(self, s: Assert) -> None:
        site = self.module.site(SiteKind.ASSERT, s.span, s.text)
        self.piece.add(f"if (!({self.text(s.condition)}))")
        self.piece.indented(f"report<{self.module.report}>({site}, 0, 0);")

    # -- loops ----------------------------------------------------------------------------------

    def _writer_of_step(self, piece: Piece) -> FunctionWriter:
        """A writer for the step of an outlined loop: the same types, names of its own."""
        return FunctionWriter(self.module, piece, self.types, is_differentiated=True)

    def for_loop(self, s: For) -> None:
        variable = self.names.make(s.variable)
        self.bind(s.variable, variable)
        start, stop, step = (self.text(e) for e in (s.start, s.stop, s.step))
        going = [f"!{self.variable(f)}" for f in s.exits]
        if s.is_unrolled:
            self.piece.add("[ForceUnroll]")
            up = isinstance(s.step, Const) and s.step.value > 0
            update = f"{variable}++" if step == "1" else f"{variable} += {step}"
            compare = "<" if up else ">"
            self.piece.add(f"for (int {variable} = {start}; {variable} {compare} {stop}; {update})")
            if not going:
                self.nested(s.body)
                return
            self.piece.add("{")
            self.piece.add(f"if ({' && '.join(going)})")
            self.nested(s.body)
            self.piece.add("}")
            return
        self._counted_loop(s, variable, start, stop, step, going)

    def _counted_loop(
        self, s: For, variable: str, start: str, stop: str, step: str, going: list[str]
    ) -> None:
        is_plain = start == "0" and step == "1"
        count, limit = self._trips(s, stop if is_plain else f"rangeCount({start}, {stop}, {step})")
        bound = count if limit is None else f"min({count}, {limit})"
        counter = variable if is_plain else self.names.make("k")
        condition = " && ".join([f"{counter} < {bound}", *going])
        first = self.names.make("first")
        if not is_plain:
            self.piece.add(f"int {first} = {start};")
        stride = self.names.make("stride")
        if not is_plain:
            self.piece.add(f"int {stride} = {step};")
        self.piece.add(f"for (int {counter} = 0; {condition}; {counter}++)")
        self.piece.add("{")
        before = set(self._declared)
        if not is_plain:
            self.piece.add(f"int {variable} = {first} + {counter} * {stride};")
        self.block(s.body)
        self._declared = before
        self.piece.add("}")
        if limit is not None:
            self._report_overrun(f"{count} > {limit}", going, s)

    def _trips(self, s: For, counted: str) -> tuple[str, int | None]:
        """The number of iterations that a loop asks for, and its limit where that can matter."""
        known = trip_count(s)
        if known is not None and (s.limit is None or known <= s.limit):
            return str(known), None
        count = self.names.make("count")
        self.piece.add(f"int {count} = {counted};")
        return count, s.limit

    def _report_overrun(self, overrun: str, going: list[str], s: For | While) -> None:
        site = self.module.site(SiteKind.LIMIT, s.span, str(s.limit))
        self.piece.add(f"if ({' && '.join([overrun, *going])})")
        self.piece.indented(f"report<{self.module.report}>({site}, 0, {s.limit});")

    def while_loop(self, s: While) -> None:
        going = [f"!{self.variable(f)}" for f in s.exits]
        condition = self.text(s.condition, 31)
        if s.limit is None:
            self.piece.add(f"while ({' && '.join([*going, condition])})")
            self.nested(s.body)
            return
        steps = self.names.make("steps")
        self.piece.add(f"int {steps} = 0;")
        self.piece.add(f"while ({' && '.join([f'{steps} < {s.limit}', *going, condition])})")
        self.piece.add("{")
        before = set(self._declared)
        self.block(s.body)
        self._declared = before
        self.piece.add(f"{steps}++;")
        self.piece.add("}")
        self._report_overrun(f"{steps} == {s.limit}", [*going, condition], s)

    def run_loop(self, s: RunLoop) -> None:
        f = s.function
        call = LoopWriter(self, f, self._writer_of_step).call()
        self.piece.span = s.span
        if not f.state:
            self.piece.add(f"{call};")
            return
        after = self.names.make("after")
        self.piece.add(f"let {after} = {call};")
        for name, _ in f.state:
            self.piece.add(f"{self.variable(name)} = {after}.{name_in_struct(name)};")


def _mentions(s: Stmt) -> set[str]:
    if isinstance(s, RunLoop):
        f = s.function
        names = {n for n, _ in (*f.state, *f.captured)}
        if isinstance(f.loop, For):
            for e in (f.loop.start, f.loop.stop, f.loop.step):
                names |= reads((Evaluate(call=e),))
        return names
    found = (reads((s,)) | writes((s,))) - _loop_variables(s)
    for inner in _nested_loops(s):
        found |= _mentions(inner)
    if isinstance(s, For | While):
        found |= set(s.exits)
    return found


def _loop_variables(s: Stmt) -> set[str]:
    """Variables of loops that stay loops: their `for` declares them."""
    return {t.variable for t in statements((s,)) if isinstance(t, For)}


def _nested_loops(s: Stmt) -> list[RunLoop]:
    if isinstance(s, If):
        inner = (*s.then, *s.otherwise)
    elif isinstance(s, For | While):
        inner = s.body
    else:
        return []
    return [r for t in inner for r in ([t] if isinstance(t, RunLoop) else _nested_loops(t))]


def _is_inside_one_block(s: Stmt, name: str) -> bool:
    """Whether all uses of `name` in `s` are inside one of its blocks."""
    if isinstance(s, If):
        if name in reads((Evaluate(call=s.condition),)):
            return False
        inside = [any(name in _mentions(t) for t in b) for b in (s.then, s.otherwise)]
        return sum(inside) == 1
    if isinstance(s, For):
        head = (Evaluate(call=e) for e in (s.start, s.stop, s.step))
        return name not in s.exits and name not in reads(head) and _starts_fresh(s.body, name)
    if isinstance(s, While):
        head = (Evaluate(call=s.condition),)
        return name not in s.exits and name not in reads(head) and _starts_fresh(s.body, name)
    return False


def _starts_fresh(body: tuple[Stmt, ...], name: str) -> bool:
    """Whether an iteration assigns `name` before it reads it, so that none carries over."""
    return name not in live_before(body, frozenset())


_WRITERS: dict[type[Stmt], Callable[..., None]] = {
    Assign: FunctionWriter.assign,
    Store: FunctionWriter.store,
    Accumulate: FunctionWriter.accumulate,
    NumberedAccumulate: FunctionWriter.accumulate,
    AccumulateGradient: FunctionWriter.accumulate_gradient,
    Evaluate: FunctionWriter.evaluate,
    BackwardDiff: FunctionWriter.backward_diff,
    If: FunctionWriter.branch,
    Return: FunctionWriter.returns,
    Assert: FunctionWriter.check,
    For: FunctionWriter.for_loop,
    While: FunctionWriter.while_loop,
    RunLoop: FunctionWriter.run_loop,
}
