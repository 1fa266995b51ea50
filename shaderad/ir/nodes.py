"""Kernel-level IR: expressions, statements, functions, kernels. Data and meaning, no passes.

Everything is typed and fully resolved: names are unique in their function, conversions are
explicit, calls point at specialised functions, array parameters are names of kernel buffers.
Python's meaning is already there: what a node does is what its docstring says on every target.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shaderad.diagnostics import NO_SPAN, Span
from shaderad.ir.ops import Op
from shaderad.ir.pointers import POINTED
from shaderad.ir.shown import PrintForm
from shaderad.ir.types import Access, BufferType, Type


@dataclass(frozen=True, kw_only=True)
class Expr:
    """A value. Evaluating one has no effect except through `Call`."""

    type: Type
    span: Span = field(default=NO_SPAN, compare=False)


@dataclass(frozen=True, kw_only=True)
class Const(Expr):
    """A compile-time number or truth value of a scalar type."""

    value: float | int | bool


@dataclass(frozen=True, kw_only=True)
class Zero(Expr):
    """All-zero value of any value type: ``sad.LocalArray[float, 8]()``."""


@dataclass(frozen=True, kw_only=True)
class Var(Expr):
    """A local name, parameter, uniform or Index name."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Apply(Expr):
    """A primitive on operands whose types already agree with the op's rule."""

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
    """Conversion between scalars, vectors or matrices of one shape.

    float -> int truncates; bool -> number is 0 or 1; number -> bool is ``!= 0``.
    Differentiable between float types.
    """

    value: Expr


@dataclass(frozen=True, kw_only=True)
class Bitcast(Expr):
    """The same bits read as another scalar or vector type; carries no derivative."""

    value: Expr


@dataclass(frozen=True, kw_only=True)
class Construct(Expr):
    """A vector, matrix, struct, tuple or pointer from parts.

    Vector: parts are scalars and vectors whose counts add up. Matrix: rows, or all scalars.
    Struct: one part a field. Tuple: one part an element. Pointer: first element and count, two
    uints. Every part has the exact type.
    """

    parts: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class Splat(Expr):
    """One scalar repeated in every component of a vector or matrix."""

    value: Expr


@dataclass(frozen=True, kw_only=True)
class Field(Expr):
    """A field of a struct value, or element ``"0"``, ``"1"``, .. of a tuple value."""

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
    """One int an axis."""


@dataclass(frozen=True, kw_only=True)
class PointerIndex(Expr):
    """``pointer[index]`` as the number of an element of the pointer's target, an int.

    Stands only as the one index of a `Load` or `AccumulateGradient` of that target. Out of the
    pointer's range reads 0, has no gradient, and is reported.
    """

    pointer: Expr
    index: Expr


@dataclass(frozen=True, kw_only=True)
class KnownNumber(Expr):
    """The number of an element whose indices were checked before, a uint that says so.

    Stands only as the one index of an access, whatever its axes, or of a part of a value.
    """

    number: Expr
    is_inside: bool = False
    """Whether the element is there in any case."""


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
class Call(Expr):
    """A user function; `args` are its value parameters in order. Type `Void` in `Evaluate`."""

    function: Function
    args: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class ForwardDiff(Expr):
    """``sad.fwd_diff(f)(..)``: a `Pair` of the result type.

    `args` are `Pair`s for differentiable parameters, plain values for others.
    """

    function: Function
    args: tuple[Expr, ...]


@dataclass(frozen=True, kw_only=True)
class MakePair(Expr):
    """``sad.diff_pair(primal, derivative)``; the derivative is `Zero` where none is given."""

    primal: Expr
    derivative: Expr


@dataclass(frozen=True, kw_only=True)
class PairPart(Expr):
    """``pair.p`` or ``pair.d``."""

    value: Expr
    part: str


@dataclass(frozen=True, kw_only=True)
class Detach(Expr):
    """The value of its operand; no derivative flows through."""

    value: Expr


# -- statements -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Stmt:
    """One Python statement's worth of effect."""

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
    """``out[indices]<path> = value`` on an Out buffer, any indices, as the user wrote it.

    ``bodies/outputs.py`` turns those at the thread's own index into local assignments.
    """

    buffer: str
    indices: tuple[Expr, ...]
    path: tuple[Step, ...] = ()
    value: Expr
    is_unique: bool = False
    """The user wrote ``sad.unique(..)``: no two writes of the launch share an element."""


@dataclass(frozen=True, kw_only=True)
class Accumulate(Stmt):
    """``add[indices]<path> += value`` (Add) or ``b[indices] = sad.min(b[indices], value)``.

    The buffer's access decides which. ``-=`` arrives as an addition of the negation.
    """

    buffer: str
    indices: tuple[Expr, ...]
    path: tuple[Step, ...] = ()
    value: Expr
    tangent: Expr | None = None
    """Of Min and Max in kernels with tangents: what `tangent_buffer` gets where this write wins."""
    tangent_buffer: str = ""


@dataclass(frozen=True, kw_only=True)
class AccumulateGradient(Stmt):
    """``w.d[indices]<path> += value`` inside a custom backward derivative."""

    buffer: str
    indices: tuple[Expr, ...]
    path: tuple[Step, ...] = ()
    value: Expr
    is_store: bool = False
    """``=``, behind pointers only: whichever thread comes last is right."""


@dataclass(frozen=True, kw_only=True)
class Evaluate(Stmt):
    """A call made for its effect."""

    call: Expr


@dataclass(frozen=True, kw_only=True)
class BackwardDiff(Stmt):
    """``sad.bwd_diff(f)(x, y, d_out)``: overwrites ``.d`` of the `Pair` variables among `args`.

    `args` are `Var`s of type `Pair` for differentiable parameters, plain values for others.
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

    The bounds are evaluated once. The body never assigns `variable`, and nothing reads it
    after the loop: where Python code does, the front end copies it into another name.
    """

    variable: str
    start: Expr
    stop: Expr
    step: Expr
    limit: int | None = None
    """Most iterations that run, from ``sad.range(.., limit=)``; `None` where none is given."""
    is_unrolled: bool = False
    """``sad.static_range``: bounds are `Const`."""
    exits: tuple[str, ...] = ()
    """Bool locals that end the loop when true; ``bodies/jumps.py`` makes them."""
    body: tuple[Stmt, ...]


@dataclass(frozen=True, kw_only=True)
class While(Stmt):
    """``while condition``, with the limit of ``sad.limit(condition, n)`` where given."""

    condition: Expr
    limit: int | None = None
    exits: tuple[str, ...] = ()
    body: tuple[Stmt, ...]


@dataclass(frozen=True, kw_only=True)
class Break(Stmt):
    """Leaves the innermost loop."""


@dataclass(frozen=True, kw_only=True)
class Continue(Stmt):
    """Goes to the next iteration of the innermost loop."""


@dataclass(frozen=True, kw_only=True)
class Return(Stmt):
    """Leaves the function; `value` is `None` in kernels and in functions without a result."""

    value: Expr | None = None


@dataclass(frozen=True, kw_only=True)
class Assert(Stmt):
    """A false condition is reported with `text` and changes no value."""

    condition: Expr
    text: str


@dataclass(frozen=True, kw_only=True)
class Print(Stmt):
    """``print(..)``: a text with `values` in it, which the host writes.

    Only the primal prints: derivatives run without it (`ir/prints.py`). Carries no derivative.
    """

    form: PrintForm
    values: tuple[Expr, ...]


# -- functions and kernels --------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A value parameter of a function."""

    name: str
    type: Type


@dataclass(frozen=True, kw_only=True, eq=False)
class Function:
    """A user function, specialised for the arrays and constants it is given.

    Compared by identity: the front end hands out one object a specialisation.
    """

    name: str
    """The user's; methods are ``Struct_method``. ``lower/names.py`` makes it unique."""
    parameters: tuple[Parameter, ...]
    result: Type
    body: tuple[Stmt, ...]
    local_types: dict[str, Type]
    """Every local name that the body assigns or loops over, with its type."""
    buffers: tuple[str, ...] = ()
    """Kernel buffers that the body or anything it calls touches."""
    backward: Function | None = None
    """The user's backward derivative: its parameters are `Pair` where this one's are
    differentiable; the cotangent of the result comes last."""
    forward: Function | None = None
    """The user's forward derivative: takes and returns `Pair`s."""
    is_checked: bool = True
    """False after ``backward_derivative(check=False)``: gradcheck skips the kernel."""
    span: Span = NO_SPAN


@dataclass(frozen=True, kw_only=True, eq=False)
class Chooser(Function):
    """Says which branch of a long chain is taken: the front end makes it of their conditions.

    It writes nothing, and nothing flows back through it.
    """


@dataclass(frozen=True, kw_only=True)
class Buffer:
    """An array that the kernel binds: a parameter, an array field of a struct parameter, or what
    all pointers of one path lead to.
    """

    name: str
    """Unique, a valid identifier: ``mesh_vertices`` for field ``vertices`` of ``mesh``."""
    path: tuple[str, ...]
    """Where the host finds it: ``("mesh", "vertices")``; `POINTED` follows a pointer."""
    type: BufferType
    span: Span = NO_SPAN

    @property
    def is_pointed(self) -> bool:
        """Whether its elements are reached through pointers only."""
        return self.path[-1:] == (POINTED,)

    @property
    def shown_name(self) -> str:
        """What messages call it: ``scene.meshes`` for what that pointer leads to."""
        return ".".join(p for p in self.path if p != POINTED) if self.is_pointed else self.name

    @property
    def access(self) -> Access:
        return self.type.access


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """A value that is the same for the whole launch."""

    name: str
    path: tuple[str, ...]
    type: Type
    span: Span = NO_SPAN


@dataclass(frozen=True, kw_only=True)
class KernelParameter:
    """One Python parameter of a kernel after the Index ones, as the caller sees it.

    `type` is a `BufferType`, a value type, or a `Struct`, whose fields may be buffers.
    `is_const` marks ``sad.Const``: its value is compiled in and it is no uniform.
    """

    name: str
    type: Type
    is_const: bool = False


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
    is_built: bool = False
    """It was compiled before and has no body here: nothing can be made of that."""

    @property
    def reported_name(self) -> str:
        """The name in run-time errors; empty where array functions made the kernel."""
        return "" if self.span == NO_SPAN else self.name

    def buffer(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)


EXPRESSIONS = tuple(Expr.__subclasses__())
STATEMENTS = tuple(Stmt.__subclasses__())
"""The nodes above, for tables with a row for each."""
