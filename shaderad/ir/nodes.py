"""Kernel-level IR: expressions, statements, functions, kernels. Data and meaning, no passes.

Everything is typed and fully resolved: names are unique in their function, conversions are
explicit, calls point at specialised functions, array parameters are names of kernel buffers.
Semantics are those of Python, and each docstring holds on every target.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from shaderad.diagnostics import NO_SPAN, Span
from shaderad.ir.ops import Op
from shaderad.ir.pointers import POINTED
from shaderad.ir.shown import PrintForm
from shaderad.ir.types import Access, BufferType, Type


@dataclass(frozen=True, kw_only=True)
class Expr:
    """A value. Only a `Call` may have side effects."""

    type: Type
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, kw_only=True)
class Const(Expr):
    """A compile-time number or truth value of a scalar type."""

    value: float | int | bool


@dataclass(frozen=True, kw_only=True)
class Zero(Expr):
    """The all-zero value of any value type: ``sad.LocalArray[float, 8]()``."""


@dataclass(frozen=True, kw_only=True)
class Var(Expr):
    """A local, parameter, uniform or Index name."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Apply(Expr):
    """A primitive applied to operands whose types satisfy the op's rule."""

    op: Op
    args: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Logical(Expr):
    """Short-circuit ``and`` / ``or`` on bool scalars."""

    is_and: bool
    left: Expr
    right: Expr


@dataclass(frozen=True, kw_only=True)
class Conditional(Expr):
    """``a if condition else b``: only the chosen side is evaluated and differentiated."""

    condition: Expr
    if_true: Expr
    if_false: Expr


@dataclass(frozen=True, kw_only=True)
class Cast(Expr):
    """Scalar conversion of a scalar, vector or matrix; the shape stays.

    float -> int truncates; bool -> number is 0 or 1; number -> bool is ``!= 0``.
    Differentiable between float types.
    """

    value: Expr


@dataclass(frozen=True, kw_only=True)
class Bitcast(Expr):
    """Reinterprets the bits as another scalar or vector type; carries no derivative.

    A double becomes a ``uint2``, the lower word first.
    """

    value: Expr


@dataclass(frozen=True, kw_only=True)
class Construct(Expr):
    """A vector, matrix, struct, tuple or pointer from parts.

    Vector: parts are scalars and vectors whose counts add up. Matrix: rows, or all scalars.
    Struct: one part per field. Tuple: one part per element. Pointer: first element and count, two
    uints. Every part has the exact type.
    """

    parts: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Splat(Expr):
    """One scalar repeated in every component of a vector or matrix."""

    value: Expr


@dataclass(frozen=True, kw_only=True)
class Field(Expr):
    """A field of a struct value, or element ``"0"``, ``"1"``, ... of a tuple value."""

    value: Expr
    name: str


@dataclass(frozen=True, kw_only=True)
class Swizzle(Expr):
    """Vector components ``"x"``, ``"zx"``: letters of ``xyzw`` only; one letter is a scalar."""

    value: Expr
    components: str


@dataclass(frozen=True, kw_only=True)
class Element(Expr):
    """``value[index]`` of a vector, matrix (a row) or local array.

    The index is an int; out of range reads 0, has no gradient, and is reported.
    """

    value: Expr
    index: Expr


@dataclass(frozen=True, kw_only=True)
class Load(Expr):
    """One element of a kernel buffer: ``buffer[indices]``.

    Differentiable in the buffer, never in the indices. Reading an Out gives the thread's own
    local value. Out of range reads 0, has no gradient, and is reported.
    """

    buffer: str
    """Name of a `Buffer` of the kernel (array parameters of functions are specialised away)."""
    indices: tuple[Expr, ...]
    """One int per axis."""


@dataclass(frozen=True, kw_only=True)
class PointerIndex(Expr):
    """Address of ``pointer[index]``: the index of the element in the pointer's target, an int.

    Valid only as the single index of a `Load` or `AccumulateGradient` of that target. Out of the
    pointer's range reads 0, has no gradient, and is reported.
    """

    pointer: Expr
    index: Expr


@dataclass(frozen=True, kw_only=True)
class KnownNumber(Expr):
    """The linear index of an element whose bounds were checked before, a uint with a validity flag.

    Valid only as the single index of an access (of any rank) or of a part of a value.
    """

    number: Expr
    is_inside: bool = False
    """True if the element is proven to be in range."""


@dataclass(frozen=True, kw_only=True)
class PointerLength(Expr):
    """``len(pointer)``, an int."""

    pointer: Expr


@dataclass(frozen=True, kw_only=True)
class Length(Expr):
    """``a.shape[axis]`` of a kernel buffer, an int."""

    buffer: str
    axis: int


@dataclass(frozen=True, kw_only=True)
class TeamLane(Expr):
    """The number of the thread in its team, an int.

    A team is `size` adjacent threads of a wave; `size` is a power of two. Only in kernels of plans
    whose last extent is a multiple of `size`, on devices whose waves have at least `size` threads,
    in the order of their numbers (`runtime.capabilities.Capabilities.subgroup_size`).
    """

    size: int
    is_of_group: bool = False
    """True for adjacent threads of a workgroup, on any device."""


@dataclass(frozen=True, kw_only=True)
class OfTeam(Expr):
    """The `value` of thread `lane` of the team; all its threads evaluate it.

    A scalar of 32 bits.
    """

    value: Expr
    lane: int
    size: int


@dataclass(frozen=True, kw_only=True)
class OfLane(Expr):
    """The `value` of the thread whose lane in the wave differs in the bits of `mask`.

    A scalar of 32 bits. Only where `TeamLane` is, for teams of more than `mask` threads, all of
    which evaluate it.
    """

    value: Expr
    mask: int


@dataclass(frozen=True, kw_only=True)
class OfLaneBelow(Expr):
    """The `value` of the thread `distance` lanes below in the wave, of lane 0 where there is none.

    A scalar of 32 bits. Only where `TeamLane` is; all threads of the wave evaluate it.
    """

    value: Expr
    distance: int


@dataclass(frozen=True, kw_only=True)
class LookBack(Expr):
    """A look of a group at the parts before its own: the next part, and the bits of a total.

    Stores `total`, that of part `goal`. If the next part is not `part`, or `goal` is not, the group
    computes the total of the next part and looks again. Otherwise the second word is the total of
    all parts before `part`. All threads of the group evaluate it. A pair of ints.
    """

    buffer: str
    """A States array."""
    first: Expr
    """The number of its element for the first part of the row."""
    part: Expr
    goal: Expr
    total: Expr
    """An int or uint."""
    is_by_wave: bool
    """True if a wave of the group looks at many parts at once."""


@dataclass(frozen=True, kw_only=True)
class Call(Expr):
    """A call of a user function; `args` are its value arguments. Type `Void` only in `Evaluate`."""

    function: Function
    args: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class ForwardDiff(Expr):
    """``sad.fwd_diff(f)(...)``: a `Pair` of the result type.

    `args` are `Pair`s for differentiable parameters, plain values for all others.
    """

    function: Function
    args: tuple[Expr, ...]


class TextureRead(Enum):
    """The ways in which a texture unit reads a texture."""

    __hash__ = object.__hash__
    BASE = "base"  # at a place, on level 0
    LEVEL = "level"  # at a place, on a level
    STEPS = "steps"  # at a place, on the level of its steps to the right and down


@dataclass(frozen=True, kw_only=True)
class TextureCall(Call):
    """A call whose value the device's texture unit computes.

    The value is that of the function, up to the unit's precision; the derivatives are those of the
    function, which reads texels. Its first arguments are the texture's size and the sampler's
    settings.
    """

    read: TextureRead
    texture: str
    sampler: str
    """The names of their buffers."""


@dataclass(frozen=True, kw_only=True)
class MakePair(Expr):
    """``sad.diff_pair(primal, derivative)``; an omitted derivative is `Zero`."""

    primal: Expr
    derivative: Expr


@dataclass(frozen=True, kw_only=True)
class PairPart(Expr):
    """``pair.p`` or ``pair.d``."""

    value: Expr
    part: str


@dataclass(frozen=True, kw_only=True)
class Detach(Expr):
    """Identity without a derivative: ``sad.detach(value)``."""

    value: Expr


# -- statements -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Stmt:
    """A statement."""

    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, kw_only=True)
class FieldStep:
    """``.name`` of a struct on the left-hand side."""

    name: str


@dataclass(frozen=True, kw_only=True)
class SwizzleStep:
    """``.zx`` of a vector on the left-hand side: letters of ``xyzw``, each once."""

    components: str


@dataclass(frozen=True, kw_only=True)
class ElementStep:
    """``[index]`` of a vector, matrix or local array on the left-hand side."""

    index: Expr


@dataclass(frozen=True, kw_only=True)
class PartStep:
    """``.d`` of a pair on the left-hand side."""


Step = FieldStep | SwizzleStep | ElementStep | PartStep


@dataclass(frozen=True, kw_only=True)
class Assign(Stmt):
    """``name<path> = value``; an empty path binds the whole name.

    Out-of-range dynamic elements write nothing and are reported.
    """

    name: str
    path: tuple[Step, ...] = ()
    value: Expr


@dataclass(frozen=True, kw_only=True)
class Store(Stmt):
    """``out[indices]<path> = value`` on an Out buffer, with any indices.

    ``bodies/outputs.py`` turns stores at the thread's own index into local assignments.
    """

    buffer: str
    indices: tuple[Expr, ...]
    path: tuple[Step, ...] = ()
    value: Expr
    is_unique: bool = False
    """True after ``sad.unique(...)``: no two writes of the launch share an element."""


@dataclass(frozen=True, kw_only=True)
class Accumulate(Stmt):
    """``add[indices]<path> += value`` (Add) or ``b[indices] = sad.min(b[indices], value)``.

    The buffer's access decides which. ``-=`` arrives as an addition of the negation. Greatest and
    Lists arrays, which only our own kernels have, take whole elements: see
    `language/own_arrays.py`.
    """

    buffer: str
    indices: tuple[Expr, ...]
    path: tuple[Step, ...] = ()
    value: Expr
    tangent: Expr | None = None
    """For Min and Max in kernels with tangents: stored in `tangent_buffer` if this write wins."""
    tangent_buffer: str = ""


@dataclass(frozen=True, kw_only=True)
class AccumulateGradient(Stmt):
    """``w.d[indices]<path> += value`` inside a custom backward derivative."""

    buffer: str
    indices: tuple[Expr, ...]
    path: tuple[Step, ...] = ()
    value: Expr
    is_store: bool = False
    """True for ``=``, which only pointers allow: any write order is valid."""


@dataclass(frozen=True, kw_only=True)
class Evaluate(Stmt):
    """A call whose result is discarded."""

    call: Expr


@dataclass(frozen=True, kw_only=True)
class BackwardDiff(Stmt):
    """``sad.bwd_diff(f)(x, y, d_out)``: overwrites ``.d`` of the `Pair` variables among `args`.

    `args` are `Var`s of type `Pair` for differentiable parameters, plain values for all others.
    """

    function: Function
    args: tuple[Expr, ...]
    cotangent: Expr


@dataclass(frozen=True, kw_only=True)
class If(Stmt):
    """Python's ``if``; ``elif`` nests in `otherwise`."""

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()


@dataclass(frozen=True, kw_only=True)
class For(Stmt):
    """``for variable in range(start, stop, step)``.

    The bounds are evaluated once. The body never assigns `variable`, and nothing reads it after
    the loop: if the Python code does either, the front end copies it into another name.
    """

    variable: str
    start: Expr
    stop: Expr
    step: Expr
    limit: int | None = None
    """The iteration limit of ``sad.range(..., limit=)``, or `None`."""
    is_unrolled: bool = False
    """True for ``sad.static_range``, whose bounds are `Const`."""
    is_in_registers: bool = False
    """True if registers hold what iterations share: the loop is unrolled, whatever its size."""
    exits: tuple[str, ...] = ()
    """Bool locals that end the loop when true; ``bodies/structured.py`` introduces them."""
    body: tuple[Stmt, ...]

    @property
    def bounds(self) -> tuple[Expr, Expr, Expr]:
        return self.start, self.stop, self.step


@dataclass(frozen=True, kw_only=True)
class While(Stmt):
    """``while condition``, with the optional limit of ``sad.limit(condition, n)``."""

    condition: Expr
    limit: int | None = None
    exits: tuple[str, ...] = ()
    body: tuple[Stmt, ...]


@dataclass(frozen=True, kw_only=True)
class Break(Stmt):
    """Leaves the innermost loop."""


@dataclass(frozen=True, kw_only=True)
class Continue(Stmt):
    """Continues with the next iteration of the innermost loop."""


@dataclass(frozen=True, kw_only=True)
class Return(Stmt):
    """Returns from the function; `value` is `None` in kernels and functions without a result."""

    value: Expr | None = None


@dataclass(frozen=True, kw_only=True)
class Assert(Stmt):
    """Reports `text` if the condition is false; changes no value."""

    condition: Expr
    text: str


@dataclass(frozen=True, kw_only=True)
class Print(Stmt):
    """``print(...)`` of `values`; the host formats and writes the text.

    Derivatives replay the primal without it (`ir/prints.py`). Carries no derivative.
    """

    form: PrintForm
    values: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Barrier(Stmt):
    """Waits for all threads of the workgroup, which then see each other's earlier writes.

    Only in kernels of plans, and where all threads arrive. Threads past the end of the launch
    repeat its last thread.
    """


# -- functions and kernels --------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A value parameter of a function."""

    name: str
    type: Type


@dataclass(frozen=True, kw_only=True, eq=False)
class Function:
    """A user function, specialised for its array and constant arguments.

    Compared by identity: the front end makes one object per specialisation.
    """

    name: str
    """Name in the source; methods are ``Struct_method``. ``lower/write/names.py`` makes it
    unique."""
    parameters: tuple[Parameter, ...]
    result: Type
    body: tuple[Stmt, ...]
    local_types: dict[str, Type]
    """Type of every local that the body assigns or loops over."""
    buffers: tuple[str, ...] = ()
    """Kernel buffers that a call accesses, directly or in further calls."""
    backward: Function | None = None
    """User-defined backward derivative. Its parameters are those of this function, differentiable
    ones as `Pair`; the cotangent of the result comes last."""
    forward: Function | None = None
    """User-defined forward derivative: takes and returns `Pair`s."""
    is_checked: bool = True
    """False after ``backward_derivative(check=False)``: gradcheck skips the kernel."""
    commutes: bool = False
    """True for a function of two arguments that may be exchanged."""
    span: Span = NO_SPAN


@dataclass(frozen=True, kw_only=True, eq=False)
class Chooser(Function):
    """Returns the number of the branch that a long ``elif`` chain takes.

    Synthesised by the front end from the conditions. Writes nothing and carries no derivative.
    """


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """An array, texture or sampler that the kernel binds: a parameter, a field of a struct
    parameter, or the pool of elements behind all pointers of one path.
    """

    name: str
    """A unique, valid identifier: ``mesh_vertices`` for field ``vertices`` of ``mesh``."""
    path: tuple[str, ...]
    """Path in the arguments: ``("mesh", "vertices")``; `POINTED` follows a pointer."""
    type: BufferType
    span: Span = NO_SPAN
    count: int = 0
    """The elements of an array in group memory."""

    @property
    def is_pointed(self) -> bool:
        """True for the pool of elements behind pointers."""
        return self.path[-1:] == (POINTED,)

    @property
    def shown_name(self) -> str:
        """Name in messages: ``scene.meshes`` for the pool behind that pointer."""
        return ".".join(p for p in self.path if p != POINTED) if self.is_pointed else self.name

    @property
    def access(self) -> Access:
        return self.type.access


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """A value that is constant during a launch."""

    name: str
    path: tuple[str, ...]
    type: Type
    span: Span = NO_SPAN


@dataclass(frozen=True, kw_only=True)
class KernelParameter:
    """One Python parameter of a kernel after the Index parameters, as the caller sees it.

    `type` is a `BufferType`, a value type, or a `Struct`, whose fields may be buffers.
    `is_const` marks ``sad.Const``: the value is compiled in and there is no uniform.
    """

    name: str
    type: Type
    is_const: bool = False

    @property
    def is_given(self) -> bool:
        """True if the caller passes this parameter; written arrays are returned instead."""
        return not (isinstance(self.type, BufferType) and self.type.access is not Access.IN)


@dataclass(frozen=True, kw_only=True, eq=False)
class Kernel:
    """A kernel specialised for its constants: one thread runs `body` for one index."""

    name: str
    index_names: tuple[str, ...]
    parameters: tuple[KernelParameter, ...]
    buffers: tuple[Buffer, ...]
    uniforms: tuple[Uniform, ...]
    body: tuple[Stmt, ...]
    local_types: dict[str, Type]
    span: Span = NO_SPAN
    built_axes: tuple[tuple[tuple[str, int], ...], ...] | None = None
    """If it was loaded from a build: for each Index, the arrays and axes with its extent."""

    @property
    def is_built(self) -> bool:
        """True if it was loaded from a build: it has no body, so it cannot be transformed."""
        return self.built_axes is not None

    @property
    def has_body(self) -> bool:
        """False if its code is no IR: it can be run, but not transformed."""
        return not self.is_built

    @property
    def reported_name(self) -> str:
        """Name in run-time errors; empty if array functions synthesised the kernel."""
        return "" if self.span == NO_SPAN else self.name

    def buffer(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)


@dataclass(frozen=True, kw_only=True)
class SlangParameter:
    """A parameter of an entry point in a user's Slang."""

    name: str
    type: str
    """As written, without spaces and modifiers."""
    semantic: str
    """The system value that it takes, such as ``SV_GroupIndex``, or empty."""


@dataclass(frozen=True, kw_only=True)
class SlangEntry:
    """A function in a user's Slang that every thread of a launch calls."""

    name: str
    parameters: tuple[SlangParameter, ...]
    span: Span


@dataclass(frozen=True, kw_only=True, eq=False)
class SlangKernel(Kernel):
    """A kernel in Slang of the user's own, as are its derivatives; it has no body in the IR."""

    lines: tuple[tuple[str, Span], ...]
    """The user's text with the place of each line."""
    features: frozenset[str]
    """The features of devices that the text needs."""
    group: tuple[int, ...]
    """Threads of a workgroup along each Index."""
    primal: SlangEntry
    backward: SlangEntry | None
    forward: SlangEntry | None

    @property
    def has_body(self) -> bool:
        return False


EXPRESSIONS = (*Expr.__subclasses__(), TextureCall)
STATEMENTS = tuple(Stmt.__subclasses__())
"""The nodes above, for tables with a row for each."""
