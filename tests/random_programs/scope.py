"""What a piece of a random program may name: values, arrays, functions, and where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from shaderad.ir.types import BufferType, Struct, Type

# Words that mean something in Slang, in the library or in emitted text, and nothing in Python.
_TROUBLED = (
    "vector matrix out inout ref uniform groupshared interface extension let var func property "
    "module load store index parameters point line sample texture precise register this result "
    "state carried loop Outputs true double4 dpX detach at primal total count"
).split()


@dataclass(frozen=True)
class Value:
    """What can be read; `is_bound` names may be rebound, `is_own` ones changed in part."""

    text: str
    type: Type
    is_bound: bool = False
    is_own: bool = False
    is_constant: bool = False
    """A number of the program: an index made of it is checked while compiling."""


@dataclass(frozen=True)
class ArrayName:
    """An array parameter and the extents it is called with."""

    name: str
    type: BufferType
    extents: tuple[int, ...]


@dataclass(frozen=True)
class FunctionName:
    """A function or method that later code may call."""

    name: str
    parameters: tuple[tuple[str, Type], ...]
    """Without ``self``."""
    result: Type | None
    owner: Struct | None = None
    is_pure: bool = False
    """No array and no derivative for one mode only: ``fwd_diff`` may be taken of it."""
    extents: tuple[tuple[int, ...], ...] = ()
    """Of its array parameters, which its body was written for."""


@dataclass
class Names:
    """Fresh names for a whole program."""

    used: dict[str, int] = field(default_factory=dict[str, int])

    def fresh(self, letter: str) -> str:
        count = self.used.get(letter, 0)
        self.used[letter] = count + 1
        return f"{letter}{count}"

    def troubled(self, number: int) -> str | None:
        name = _TROUBLED[number % len(_TROUBLED)]
        if name in self.used:
            return None
        self.used[name] = 1
        return name


@dataclass
class Scope:
    """The surroundings of one body."""

    names: Names
    functions: list[FunctionName]
    structs: list[Struct]
    values: list[Value] = field(default_factory=list[Value])
    arrays: list[ArrayName] = field(default_factory=list[ArrayName])
    indices: tuple[str, ...] = ()
    """Index names of a kernel; empty in functions."""
    dim: tuple[int, ...] = ()
    result: Type | None = None
    """What a function returns; `None` in kernels and functions without a result."""
    is_kernel: bool = False
    loop_depth: int = 0
    is_pure: bool = True
    """Whether the body calls nothing that touches an array."""

    @contextmanager
    def block(self, *, is_loop: bool = False) -> Iterator[None]:
        """Names that are first assigned inside are forgotten after it."""
        count = len(self.values)
        self.loop_depth += is_loop
        yield
        self.loop_depth -= is_loop
        del self.values[count:]
