"""Results of lowering, as plain data: a program before compilation, and its compiled code.

These are the only results of `lower` that `runtime` reads. A `Program` and the library folder
determine the code byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from shaderad.diagnostics import Span
from shaderad.ir.dimensions import Dimension


class BindingAccess(Enum):
    """The way in which an entry point uses a binding, which decides its Slang type."""

    UNIFORM = "uniform"
    """`ConstantBuffer` of 32-bit words, named by `Program.parameter_words`."""
    READ = "read"
    """`StructuredBuffer`."""
    WRITE = "write"
    """`RWStructuredBuffer`, of atomics or plain words."""
    TEXTURE = "texture"
    """A texture whose texels are read, as `Binding.view` says."""
    SAMPLER = "sampler"
    """`SamplerState`."""

    @property
    def register_class(self) -> str:
        """The letter of the HLSL register."""
        return BINDINGS[self].register_class


@dataclass(frozen=True, slots=True)
class BindingRow:
    """The names of one kind of binding in the APIs of hosts."""

    register_class: str
    """The letter of the HLSL register."""
    webgpu_type: str
    """The type of a buffer, texture or sampler in a WebGPU bind group layout."""


BINDINGS = {
    BindingAccess.UNIFORM: BindingRow("b", "uniform"),
    BindingAccess.READ: BindingRow("t", "read-only-storage"),
    BindingAccess.WRITE: BindingRow("u", "storage"),
    BindingAccess.TEXTURE: BindingRow("t", "float"),
    BindingAccess.SAMPLER: BindingRow("s", "filtering"),
}
"""A row for each kind of binding."""


@dataclass(frozen=True, slots=True)
class Binding:
    """One bound buffer, texture or sampler."""

    slot: int
    name: str
    """The name that hosts bind by: `color`, `color_bar`, `parameters`, `report`."""
    access: BindingAccess
    view: Dimension | None = None
    """The shape in which it sees a texture; `None` for anything else."""
    is_filtered: bool = False
    """True if a sampler filters this texture."""


@dataclass(frozen=True, slots=True)
class Program:
    """One entry point, with its code if a build has compiled it."""

    name: str
    """The name of the entry point in the code of every target, such as `shade_bwd`."""
    slang: str
    """The module's text; it imports `shaderad`."""
    workgroup: tuple[int, int, int]
    bindings: tuple[Binding, ...]
    parameter_words: tuple[str, ...] = ()
    """The 32-bit words of the constant buffer, in order."""
    features: frozenset[str] = frozenset()
    """Required device features, a subset of `FEATURES`."""
    spans: tuple[Span | None, ...] = field(default=(), compare=False)
    """The Python source of each line of `slang`, or `None`. The text has no `#line`, so that it
    stays readable and independent of the source's folder."""
    library: Path | None = None
    """The folder of the library that `slang` imports; `None` for the installed one."""
    space: int = 0
    """The descriptor set, bind group or register space of all bindings."""
    has_user_text: bool = False
    """True if a user wrote a part of `slang`, so that errors of the compiler are the user's."""
    is_module: bool = False
    """True if `slang` has no entry point, but is imported by other programs."""
    code: Code | None = field(default=None, compare=False)
    """The code of a build; `None` if the program is compiled at its first use."""


FEATURES = frozenset({"float-atomics", "subgroups", "half", "double", "int64-atomics"})


@dataclass(frozen=True, slots=True)
class SlangDiagnostic:
    """One diagnostic of the Slang compiler; `file` is a Python file if `#line` names one."""

    severity: str
    """`error`, `warning` or `note`."""
    code: str
    """Slang's code, such as `E30015`, or empty."""
    message: str
    file: str
    line: int
    """The first line has the number 1; 0 stands for a diagnostic without a place."""
    excerpt: str
    """The lines of generated text that the compiler printed, with its markers."""


@dataclass(frozen=True, slots=True)
class Code:
    """A compiled program; text is UTF-8."""

    format: str
    """A key of `FORMATS`."""
    content: bytes
    diagnostics: tuple[SlangDiagnostic, ...] = ()
    """Warnings; errors are raised."""


def library_folder() -> Path:
    """The folder of `shaderad.slang`: in the package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "shaders"
    return inside if inside.is_dir() else package.parent / "shaders"


VIEWS = "views"
"""The module that only programs with the user's own Slang import."""
LIBRARY_MODULES = ("shaderad", "safe_math", "double_math", VIEWS)
"""The modules of the library; those of mathematics import the ones before them."""
