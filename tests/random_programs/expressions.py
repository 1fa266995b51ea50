"""Random expressions of a wanted type, with values of a moderate size.

Operands are near one and functions bounded, so float32 keeps its digits; ties, zeros and
branches happen all the same, because literals and half of the inputs lie on a coarse grid.
"""

from __future__ import annotations

from collections.abc import Callable

from shaderad.ir.types import (
    BOOL,
    FLOAT,
    INT,
    UINT,
    BufferType,
    LocalArray,
    Matrix,
    Scalar,
    Struct,
    Type,
    Vector,
)
from tests.random_programs.choices import Choices
from tests.random_programs.parts import Parts
from tests.random_programs.scope import ArrayName, FunctionName, Scope
from tests.random_programs.spelling import FLOAT3, has_float, spell

# By component, on scalars, vectors and matrices; each keeps moderate values moderate.
_UNARY = (
    "(-{0})", "sad.sin({0})", "sad.cos({0})", "sad.tanh({0})", "abs({0})", "sad.atan({0})",
    "sad.saturate({0})", "sad.sqrt(1.0 + {0} * {0})", "sad.rcp(1.5 + abs({0}))",
    "sad.exp(-abs({0}))", "sad.log(1.5 + abs({0}))", "sad.detach({0})", "sad.sign({0})",
    "sad.floor({0})", "sad.frac({0})", "sad.erf({0})", "sad.rsqrt(1.0 + abs({0}))",
    "sad.asinh({0})", "({0} * {0})",
)  # fmt: skip
_BINARY = (
    "({0} + {1})", "({0} * {1})", "({0} - {1})", "sad.min({0}, {1})", "sad.max({0}, {1})",
    "({0} / (1.5 + abs({1})))", "sad.atan2({0}, 1.5 + abs({1}))", "sad.lerp({0}, {1}, 0.25)",
    "sad.hypot({0}, {1})", "sad.step({0}, {1})", "sad.copysign({0}, {1})",
)  # fmt: skip
_SCALAR_ONLY_UNARY = (
    "({0} ** 2)", "({0} ** 3)", "({0} % 0.75)", "math.sin({0})", "({0} ** 0)", "float(int({0}))",
    "sad.smoothstep(-1.0, 1.5, {0})", "math.sqrt(abs({0}) + 0.5)", "float({0} > 0.5)",
)  # fmt: skip
_DAMPED = ("sad.sin({0})", "(0.5 * {0})", "sad.tanh({0})", "sad.clamp({0}, -1.5, 1.5)")


class Expressions(Parts):
    """Writes expressions that may read what `scope` names."""

    def __init__(self, choices: Choices, scope: Scope) -> None:
        super().__init__(choices, scope)
        self._by_type: dict[type[Type], Callable[[Type, int], str]] = {
            Vector: self._vector,
            Matrix: self._matrix,
            Struct: self._struct,
            LocalArray: self._local_array,
        }

    def value(self, t: Type, depth: int = 2) -> str:
        """An expression of type `t`, nested at most `depth` deep."""
        if depth <= 0:
            return self.leaf(t)
        if isinstance(t, Scalar):
            by_scalar = {FLOAT: self._float, INT: self._int, BOOL: self.condition, UINT: self._uint}
            return by_scalar[t](depth)
        return self._by_type[type(t)](t, depth)

    def damped(self, t: Type, depth: int = 2) -> str:
        """A value that stays moderate however often a loop repeats it."""
        if isinstance(t, Struct):
            return f"{t.name}({', '.join(self.damped(f, depth - 1) for _, f in t.fields)})"
        text = self.value(t, depth)
        is_shaped = isinstance(t, Scalar | Vector | Matrix) and has_float(t)
        return self._choices.of(_DAMPED).format(text) if is_shaped else text

    # -- calls --------------------------------------------------------------------------------

    def call(self, t: Type, depth: int) -> str | None:
        """A call that gives `t`; `None` where nothing does."""
        able = self.callable(t)
        if not able:
            return None
        function = self._choices.of(able)
        chance = 40 if self._scope.is_kernel else 12
        if function.is_pure and t == FLOAT and self._choices.chance(chance):
            return self._forward(function, depth)
        return self.call_of(function, depth)

    def callable(self, t: Type) -> list[FunctionName]:
        """The functions that give `t` and may be called here."""
        return [f for f in self._scope.functions if f.result == t and self._can_call(f)]

    def call_of(self, function: FunctionName, depth: int, shared: str = "") -> str:
        """A call; `shared` is the argument of all parameters that take a float."""
        if not function.is_pure:
            self._scope.is_pure = False
        args = ", ".join(
            shared if shared and t == FLOAT else self._argument(function, k, depth)
            for k, (_, t) in enumerate(function.parameters)
        )
        if function.owner is None:
            return f"{function.name}({args})"
        return f"{self.leaf(function.owner)}.{function.name}({args})"

    def _argument(self, function: FunctionName, position: int, depth: int) -> str:
        t = function.parameters[position][1]
        if isinstance(t, BufferType):
            return self._choices.of(self._fitting(function, position)).name
        return self.value(t, depth - 1)

    def _fitting(self, function: FunctionName, position: int) -> list[ArrayName]:
        wanted, extents = function.parameters[position][1], function.extents[position]
        return [a for a in self._scope.arrays if a.type == wanted and a.extents == extents]

    def _can_call(self, function: FunctionName) -> bool:
        return all(
            not isinstance(t, BufferType) or self._fitting(function, k)
            for k, (_, t) in enumerate(function.parameters)
        )

    def _forward(self, function: FunctionName, depth: int) -> str:
        args: list[str] = []
        for _, t in function.parameters:
            value = self.value(t, depth - 1)
            args.append(f"sad.diff_pair({value}, {self.leaf(t)})" if has_float(t) else value)
        return f"sad.fwd_diff({function.name})({', '.join(args)}).{self._choices.of('dp')}"

    # -- by type ------------------------------------------------------------------------------

    def _float(self, depth: int) -> str:
        kind = self._choices.weighted([
            (5, "leaf"), (6, "unary"), (7, "binary"), (5, "call"), (2, "scalar"), (1, "int"),
            (2, "choice"), (2, "vector"), (1, "ternary"), (1, "random"),
        ])  # fmt: skip
        v = lambda t=FLOAT: self.value(t, depth - 1)  # noqa: E731 - read seven times below
        if kind == "call":
            return self.call(FLOAT, depth) or v()
        if kind == "scalar":
            return self._choices.of(_SCALAR_ONLY_UNARY).format(v())
        if kind == "int":
            return f"float({v(INT)} % 4)"
        if kind == "vector":
            vector = self._choices.of([Vector(FLOAT, n) for n in (3, 2, 4)])
            form = self._choices.of(
                ("sad.dot({0}, {1})", "sad.length({0})", "sad.distance({0}, {1})")
            )
            return form.format(v(vector), v(vector))
        if kind == "ternary":
            form = self._choices.of(("sad.clamp({0}, {1}, {2})", "sad.lerp({0}, {1}, {2})",
                                     "sad.mad({0}, {1}, {2})"))  # fmt: skip
            return form.format(v(), v(), v())
        if kind == "random":
            return f"sad.uniform01({v(UINT)})"
        return self._shaped(kind, FLOAT, depth)

    def _shaped(self, kind: str, t: Type, depth: int) -> str:
        """Forms that scalars, vectors and matrices share."""
        if kind == "unary":
            return self._choices.of(_UNARY).format(self.value(t, depth - 1))
        if kind == "binary":
            form = self._choices.of(_BINARY)
            return form.format(self.value(t, depth - 1), self.value(t, depth - 1))
        if kind == "choice":
            return self._conditional(t, depth)
        return self.leaf(t)

    def _conditional(self, t: Type, depth: int) -> str:
        condition = self.condition(depth - 1)
        a, b = self.value(t, depth - 1), self.value(t, depth - 1)
        is_shaped = isinstance(t, Scalar | Vector)
        if is_shaped and self._choices.chance(30):
            return f"sad.select({condition}, {a}, {b})"
        return f"({a} if {condition} else {b})"

    def _vector(self, t: Type, depth: int) -> str:
        assert isinstance(t, Vector)
        if t.element != FLOAT:
            return self._int_vector(t, depth)
        kind = self._choices.weighted([
            (5, "leaf"), (4, "parts"), (4, "unary"), (5, "binary"), (2, "choice"), (3, "call"),
            (2, "scaled"), (2, "matmul"), (1, "special"), (1, "select"),
        ])  # fmt: skip
        if kind == "call":
            return self.call(t, depth) or self.leaf(t)
        if kind == "parts":
            return self._parts(t, depth)
        if kind == "scaled":
            return f"({self.value(t, depth - 1)} * {self.value(FLOAT, depth - 1)})"
        if kind == "matmul":
            return self._matrix_times_vector(t, depth)
        if kind == "special":
            return self._special(t, depth)
        if kind == "select":
            a, b = self.value(t, depth - 1), self.value(t, depth - 1)
            return f"sad.select({self.leaf(t)} > {self.leaf(t)}, {a}, {b})"
        return self._shaped(kind, t, depth)

    def _parts(self, t: Vector, depth: int) -> str:
        if t.count > 2 and self._choices.chance(40):
            pair = self.value(Vector(t.element, 2), depth - 1)
            rest = [self.value(t.element, depth - 1) for _ in range(t.count - 2)]
            return f"{t}({', '.join([pair, *rest])})"
        return f"{t}({', '.join(self.value(t.element, depth - 1) for _ in range(t.count))})"

    def _matrix_times_vector(self, t: Vector, depth: int) -> str:
        other = self._choices.of([t.count, *({2, 3} - {t.count})])
        m, v = Matrix(FLOAT, t.count, other), self.value(Vector(FLOAT, other), depth - 1)
        if self._choices.chance(50):
            return f"({v} @ {self.value(Matrix(FLOAT, other, t.count), depth - 1)})"
        return f"({self.value(m, depth - 1)} @ {v})"

    def _special(self, t: Vector, depth: int) -> str:
        a, b = self.value(t, depth - 1), self.value(t, depth - 1)
        forms = ["sad.normalize({0})", "sad.reflect({0}, sad.normalize({1}))",
                 "sad.lerp({0}, {1}, {0})"]  # fmt: skip
        if t == FLOAT3:
            forms.append("sad.cross({0}, {1})")
        return self._choices.of(forms).format(a, b)

    def _int_vector(self, t: Vector, depth: int) -> str:
        kind = self._choices.below(3)
        if kind == 0:
            return self.leaf(t)
        if kind == 1:
            return f"{t}({', '.join(self.value(INT, depth - 1) for _ in range(t.count))})"
        op = self._choices.of("+ - * & //".split())
        return f"({self.value(t, depth - 1)} {op} {self.leaf(t)})"

    def _matrix(self, t: Type, depth: int) -> str:
        assert isinstance(t, Matrix)
        kind = self._choices.weighted([
            (4, "leaf"), (3, "rows"), (2, "unary"), (3, "binary"), (1, "choice"), (2, "product"),
            (1, "transpose"), (2, "scaled"), (1, "call"), (1, "outside"),
        ])  # fmt: skip
        if kind == "call":
            return self.call(t, depth) or self.leaf(t)
        if kind == "rows":
            return f"{t}({', '.join(self.value(t.row, depth - 1) for _ in range(t.row_count))})"
        if kind == "product":
            square = Matrix(FLOAT, t.column_count, t.column_count)
            return f"({self.value(t, depth - 1)} @ {self.value(square, depth - 1)})"
        if kind == "transpose":
            other = Matrix(FLOAT, t.column_count, t.row_count)
            return f"sad.transpose({self.value(other, depth - 1)})"
        if kind == "scaled":
            return f"({self.value(t, depth - 1)} * {self.value(FLOAT, depth - 1)})"
        if kind == "outside" and t.row_count == t.column_count:
            return f"sad.inverse({t}.identity() * 3.0 + sad.tanh({self.value(t, depth - 1)}) * 0.5)"
        return self._shaped(kind, t, depth)

    def _struct(self, t: Type, depth: int) -> str:
        assert isinstance(t, Struct)
        kind = self._choices.weighted([(5, "leaf"), (4, "parts"), (2, "call"), (1, "choice")])
        if kind == "parts":
            return f"{t.name}({', '.join(self.value(f, depth - 1) for _, f in t.fields)})"
        if kind == "call":
            return self.call(t, depth) or self.leaf(t)
        return self._conditional(t, depth) if kind == "choice" else self.leaf(t)

    def _local_array(self, t: Type, depth: int) -> str:
        if self._choices.chance(30):
            return self.call(t, depth) or self.leaf(t)
        return self.leaf(t)

    def _int(self, depth: int) -> str:
        kind = self._choices.weighted([
            (6, "leaf"), (4, "sum"), (2, "bits"), (2, "divide"), (1, "choice"), (1, "float"),
            (1, "call"), (1, "shift"),
        ])  # fmt: skip
        if kind == "call":
            return self.call(INT, depth) or self.leaf(INT)
        if kind == "float":
            form = self._choices.of(("int({0} * 2.0)", "math.floor({0})", "round({0} * 1.5)"))
            return form.format(self.value(FLOAT, depth - 1))
        if kind == "choice":
            return self._conditional(INT, depth)
        if kind == "leaf":
            return self.leaf(INT)
        a = self.value(INT, depth - 1)
        if kind == "divide":
            return (
                f"({a} {self._choices.of(('//', '%'))} {self._choices.of(('3', '2', '(-3)', '5'))})"
            )
        if kind == "shift":
            return f"({a} {self._choices.of(('>>', '<<'))} {self._choices.below(3)})"
        b = self.value(INT, depth - 1)
        if kind == "bits":
            return f"({a} {self._choices.of('& | ^'.split())} {b})"
        form = self._choices.of(("({0} + {1})", "({0} - {1})", "({0} * {1})", "min({0}, {1})",
                                 "max({0}, {1})", "abs({0} - {1})"))  # fmt: skip
        return form.format(a, b)

    def _uint(self, depth: int) -> str:
        # A constant that is negative does not fit.
        return f"sad.pcg(sad.uint(abs({self.value(INT, depth - 1)})))"

    def condition(self, depth: int) -> str:
        """A bool."""
        depth = max(depth, 0)
        kind = self._choices.weighted([
            (5, "int"), (4, "float"), (1, "chain"), (2, "logic"), (1, "not"), (1, "vector"),
            (1, "leaf"), (1, "grid"),
        ])  # fmt: skip
        if kind == "float":
            symbol = self._choices.of("< > <= >=".split())
            return f"({self.value(FLOAT, depth)} {symbol} {self.literal(FLOAT)})"
        if kind == "chain":
            return f"(-0.5 < {self.value(FLOAT, depth)} <= {self.leaf(FLOAT)})"
        if kind == "logic" and depth:
            word = self._choices.of(("and", "or"))
            return f"({self.condition(depth - 1)} {word} {self.condition(depth - 1)})"
        if kind == "not" and depth:
            return f"(not {self.condition(depth - 1)})"
        if kind == "vector":
            word = self._choices.of(("any", "all"))
            return f"sad.{word}({self.value(FLOAT3, depth)} > {self.leaf(FLOAT3)})"
        if kind == "leaf":
            return self.leaf(BOOL)
        if kind == "grid":
            return f"({self.leaf(FLOAT)} == {self.leaf(FLOAT)})"
        modulus = 2 + self._choices.below(2)
        return f"({self.value(INT, depth)} % {modulus} == {self._choices.below(modulus)})"


def annotated(parameters: tuple[tuple[str, Type], ...]) -> str:
    """A parameter list."""
    return ", ".join(f"{name}: {spell(t)}" for name, t in parameters)
