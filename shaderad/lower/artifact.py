"""What lowering hands on: a program before compilation, and its compiled code.

Plain data, the one thing that `runtime` reads of `lower`. A `Program` is complete: together with
the library folder it determines the code byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from shaderad.diagnostics import Span


class Access(Enum):
    """How an entry point uses a binding, and with that its Slang type."""

    UNIFORM = "uniform"
    """`ConstantBuffer`: flat 32-bit words, named by `Program.parameter_words`."""
    READ = "read"
    """`StructuredBuffer`."""
    WRITE = "write"
    """`RWStructuredBuffer`, atomics included."""

    @property
    def register_class(self) -> str:
        """The letter of its registers in HLSL."""
        return {Access.UNIFORM: "b", Access.READ: "t", Access.WRITE: "u"}[self]


@dataclass(frozen=True, slots=True)
class Binding:
    """One resource."""

    slot: int
    name: str
    """What the host binds by: `color`, `color_bar`, `parameters`, `report`."""
    access: Access


@dataclass(frozen=True, slots=True)
class Program:
    """One entry point, before compilation, or with code that was compiled before."""

    name: str
    """The entry point, such as `shade_bwd`; code of every target keeps it."""
    slang: str
    """The module's text; it imports `shaderad`."""
    workgroup: tuple[int, int, int]
    bindings: tuple[Binding, ...]
    parameter_words: tuple[str, ...] = ()
    """The 32-bit words of the constant buffer, in order."""
    features: frozenset[str] = frozenset()
    """What the device must have, out of `FEATURES`."""
    spans: tuple[Span | None, ...] = field(default=(), compare=False)
    """The Python source of each line of `slang`, where it has one. The text itself carries no
    `#line`: it stays readable, and the same wherever the source lies."""
    library: Path | None = None
    """The folder of the library that `slang` imports, where it is not the installed one."""
    space: int = 0
    """The descriptor set, bind group or register space of all bindings."""
    is_module: bool = False
    """It has no entry point: other programs import it."""
    code: Code | None = field(default=None, compare=False)
    """What a build compiled it to; `None`: it is compiled when it is needed."""


FEATURES = frozenset({"float-atomics", "subgroups", "half", "double", "int64-atomics"})


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One complaint of the Slang compiler; `file` is Python wherever `#line` said so."""

    severity: str
    """`error`, `warning` or `note`."""
    code: str
    """Slang's own, such as `E30015`; empty where it gave none."""
    message: str
    file: str
    line: int
    """Counted from 1; 0 where the compiler gave no place."""
    excerpt: str
    """The generated text with its marks, as the compiler showed it."""


@dataclass(frozen=True, slots=True)
class Code:
    """A compiled program; text targets hold UTF-8."""

    target: str
    content: bytes
    diagnostics: tuple[Diagnostic, ...] = ()
    """Warnings; an error is raised, never returned."""


def library_folder() -> Path:
    """The folder of `shaderad.slang`: inside the package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "shaders"
    return inside if inside.is_dir() else package.parent / "shaders"
