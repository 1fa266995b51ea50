"""Parts of what has a name: leaves of expressions, indices, array elements, left-hand sides."""

from __future__ import annotations

from abc import ABC, abstractmethod

from shaderad.ir.types import (
    FLOAT,
    INT,
    Access,
    LocalArray,
    Matrix,
    Struct,
    TextureType,
    Type,
    Vector,
)
from tests.random_programs.choices import Choices
from tests.random_programs.scope import ArrayName, Scope, Value
from tests.random_programs.spelling import COMPONENTS, contains, zero

_FLOATS = "0.5 1.0 0.0 0.25 -0.75 1.5 2.0 -1.25 0.3".split()
_INTS = "1 0 2 3 4 7".split()


class Parts(ABC):
    """Reads and writes what `scope` names; indices are expressions again."""

    def __init__(self, choices: Choices, scope: Scope) -> None:
        self._choices = choices
        self._scope = scope

    @abstractmethod
    def value(self, t: Type, depth: int = 2) -> str:
        """An expression of type `t`, nested at most `depth` deep."""

    def leaf(self, t: Type) -> str:
        """A literal, or a part of something that has a name."""
        found = [v for v in self._scope.values if contains(v.type, t)]
        arrays = [
            a
            for a in self._scope.arrays
            if a.type.access is Access.IN and contains(a.type.element, t)
        ]
        at = self._choices.below(3 * len(found) + 3 * len(arrays) + 2)
        if at < 3 * len(found):
            value = found[at // 3]
            return self.part(value.text, value.type, t)
        at -= 3 * len(found)
        if at < 3 * len(arrays):
            array = arrays[at // 3]
            return self.part(self.load(array), array.type.element, t)
        return self.literal(t)

    def literal(self, t: Type) -> str:
        if t == FLOAT:
            return self._choices.of(_FLOATS)
        if t == INT:
            return self._choices.of(_INTS)
        if isinstance(t, Matrix) and t.row_count == t.column_count and self._choices.chance(50):
            return f"{t}.identity()"
        return zero(t)

    def part(self, text: str, t: Type, wanted: Type) -> str:
        """A part of type `wanted` of `text`, which has type `t`."""
        if t == wanted:
            return text
        if isinstance(t, Struct):
            fields = [(n, f) for n, f in t.fields if contains(f, wanted)]
            name, inner = self._choices.of(fields)
            return self.part(f"{text}.{name}", inner, wanted)
        if isinstance(t, LocalArray):
            return self.part(f"{text}[{self.index(t.count)}]", t.element, wanted)
        if isinstance(t, Matrix):
            return self._matrix_part(text, t, wanted)
        assert isinstance(t, Vector)
        if isinstance(wanted, Vector):
            return f"{text}.{self._swizzle(t, wanted.count)}"
        if self._choices.chance(25):
            return f"{text}[{self.index(t.count)}]"
        return f"{text}.{self._choices.of(COMPONENTS[: t.count])}"

    def _matrix_part(self, text: str, t: Matrix, wanted: Type) -> str:
        row = f"{text}[{self.index(t.row_count)}]"
        if wanted == t.element and self._choices.chance(50):
            column = self.index(t.column_count)
            return f"{row[:-1]}, {column}]" if self._choices.chance(50) else f"{row}[{column}]"
        return self.part(row, t.row, wanted)

    def _swizzle(self, t: Vector, count: int) -> str:
        return "".join(self._choices.of(COMPONENTS[: t.count]) for _ in range(count))

    def index(self, count: int) -> str:
        """An int below `count`, or now and then one that may lie outside."""
        kind = self._choices.below(20)
        known = [v for v in self._scope.values if v.type == INT and "[" not in v.text]
        runs = [v.text for v in known if not v.is_constant]
        if kind < 8 or not runs:
            return str(self._choices.below(count))
        if kind < 18:
            return f"{self._indices(runs)} % {count}"
        return f"{self._choices.of(runs)} - {self._choices.below(3)}"

    def _indices(self, runs: list[str]) -> str:
        first = self._choices.of(runs)
        kind = self._choices.below(4)
        if kind == 0:
            return first
        if kind == 1:
            return f"({first} + {self._choices.below(3)})"
        if kind == 2:
            return f"({first} * {self._choices.of(runs)})"
        return f"({self.value(INT, 1)})"

    def load(self, array: ArrayName) -> str:
        """``array[...]``, at the thread's own index more often than not; a read of a texture."""
        scope = self._scope
        if isinstance(array.type, TextureType):
            return self._texel(array)
        if array.extents == scope.dim and len(scope.indices) == len(array.extents):
            if self._choices.chance(70):
                return f"{array.name}[{', '.join(scope.indices)}]"
        if len(array.extents) == 1 and self._choices.chance(30):
            return f"{array.name}[({self.value(INT, 1)}) % len({array.name})]"
        indices = [self.index(n) for n in array.extents]
        return f"{array.name}[{', '.join(indices)}]"

    def _texel(self, texture: ArrayName) -> str:
        if self._choices.chance(50):
            row, column = (self.index(n) for n in texture.extents)
            return f"{texture.name}.load(int2({column}, {row}))"
        # Large coordinates and NaN are the texture unit's own.
        u, v = (f"sad.sin({self.value(FLOAT, 1)})" for _ in range(2))
        return f"{texture.name}.sample(filter, float2({u}, {v}))"

    def place(self, value: Value) -> tuple[str, Type]:
        """A part of `value` that can be assigned, and its type."""
        text, t = value.text, value.type
        while self._choices.chance(65):
            if isinstance(t, Struct):
                name, t = self._choices.of(t.fields)
                text = f"{text}.{name}"
            elif isinstance(t, LocalArray):
                text, t = f"{text}[{self.index(t.count)}]", t.element
            elif isinstance(t, Matrix):
                text, t = f"{text}[{self.index(t.row_count)}]", t.row
            elif isinstance(t, Vector):
                return self._vector_place(text, t)
            else:
                break
        return text, t

    def _vector_place(self, text: str, t: Vector) -> tuple[str, Type]:
        if self._choices.chance(30):
            return f"{text}[{self.index(t.count)}]", t.element
        letters = list(COMPONENTS[: t.count])
        count = 1 + self._choices.below(t.count)
        chosen = "".join(letters.pop(self._choices.below(len(letters))) for _ in range(count))
        return f"{text}.{chosen}", t.element if count == 1 else Vector(t.element, count)
