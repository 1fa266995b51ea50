"""A kernel of the kernel IR while it is written: its arrays, uniforms, index and statements.

The kernel reads stored values, and takes sizes as int uniforms, so that it is compiled once for all
sizes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from shaderad.ir import composing as c
from shaderad.ir import nodes, sizes, walk
from shaderad.ir.arrays import Value
from shaderad.ir.nodes import Expr, Stmt
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import INT, Access, BufferType, Scalar, Type, Vector
from shaderad.plan.elements import Elements, View
from shaderad.plan.positions import (
    INDEX_NAMES,
    NOTHING_KNOWN,
    RANK_LIMIT,
    Indices,
    Position,
    Positions,
    add,
    constant,
    number,
    times,
)
from shaderad.plan.statements import Written, may_report, write

IsStored = Callable[[Value], bool]
"""True for values that have memory."""

Bound = Callable[[Indices, View | None], Expr]
"""Computes the elements of a value that no array of the kernel holds, such as a carry."""

WIDTH = 4
"""Elements of one load or store of several."""

Seen = tuple[Value, Shape]
"""A stored value, and the shape under which it is read."""


@dataclass(frozen=True, eq=False)
class PlanKernel:
    """A kernel, the values it reads and writes by buffer name, and what its uniforms hold."""

    kernel: nodes.Kernel
    dim: Shape
    reads: tuple[tuple[str, Value], ...]
    """Values of one element are uniforms of the kernel, all others its arrays."""
    writes: tuple[tuple[str, Value], ...]
    shapes: tuple[tuple[str, Shape], ...]
    """The shape of each array as the kernel indexes it."""
    sizes: tuple[tuple[str, Size], ...]
    bounds: str

    @property
    def scalars(self) -> frozenset[str]:
        """Names of uniforms that are values."""
        held = {u.name for u in self.kernel.uniforms}
        return frozenset(name for name, _ in self.reads if name in held)

    @property
    def stores_by_four(self) -> bool:
        """True if threads store four adjacent elements at once."""
        stored = ((self.kernel.buffer(name).type.element, value) for name, value in self.writes)
        return any(t != value.element and isinstance(t, Vector) for t, value in stored)


@dataclass
class _Facts:
    """The ways in which a kernel reads its arrays, collected while its body is written on trial."""

    ways: dict[Seen, set[str]] = field(default_factory=dict[Seen, set[str]])
    """For each array: ``own`` at the thread's own index, ``at`` elsewhere, ``checked`` where
    positions out of range are reported."""
    is_flat: bool = False
    """True if axes do not matter, as every thread reads and writes elements of its own number."""


Body = Callable[["Writer"], Sequence[Stmt]]
"""Writes the statements of a kernel; called twice, the first time on trial."""


def write_kernel(
    name: str,
    shape: Shape,
    is_stored: IsStored,
    body: Body,
    outputs: Sequence[tuple[str, Value, Access]],
    known: Mapping[str, Size] = NOTHING_KNOWN,
) -> PlanKernel:
    """The kernel of `body` over threads of `shape`.

    `outputs` are the arrays that it writes, `known` sizes that are numbers in its text.
    """
    trial = Writer(shape, is_stored, None, known=known)
    body(trial)
    trial.facts.is_flat = len(shape) != 1 and not trial.asks_index and not trial.needs_axes
    writer = Writer(shape, is_stored, trial.facts, known=known)
    return writer.finish(name, body(writer), outputs)


def four_of(element: Type) -> Vector:
    """The type of four adjacent elements, which are numbers."""
    assert isinstance(element, Scalar)
    return Vector(element, WIDTH)


def number_writer(
    shape: Shape, is_stored: IsStored, known: Mapping[str, Size] = NOTHING_KNOWN
) -> Writer:
    """A writer of a kernel over threads of `shape` that reads elements by their numbers.

    `known` are sizes that are numbers in its text.
    """
    return Writer(shape, is_stored, _Facts(ways=defaultdict(lambda: {"at"})), known=known)


class Writer:
    """Builds one kernel: its arrays, uniforms, index and statements."""

    def __init__(
        self,
        shape: Shape,
        is_stored: IsStored,
        facts: _Facts | None,
        known: Mapping[str, Size] = NOTHING_KNOWN,
    ) -> None:
        self.shape = shape
        self.facts = _Facts()
        self.local_types: dict[str, Type] = {}
        self._known = facts
        self._is_flat = facts is not None and (facts.is_flat or len(shape) > RANK_LIMIT)
        self.launch: Shape = (sizes.product(shape),) if self._is_flat or not shape else shape
        """Extents of the launch."""
        self.index_names = INDEX_NAMES[: len(self.launch)]
        self.positions = Positions(known)
        self.own = self._own_position()
        self._bound: dict[Value, Bound] = {}
        self.elements = Elements(
            self.positions, lambda v: v in self._bound or is_stored(v), self.read
        )
        self._own_number = number(self.own, shape)
        self._buffers: dict[Seen, nodes.Buffer] = {}
        self._vectors: dict[Value, nodes.Buffer] = {}
        """Arrays of numbers that are read by four."""
        self._stored_vectors: set[str] = set()
        """Names of outputs, arrays of numbers, that are stored by four."""
        self._scalars: dict[Value, nodes.Uniform] = {}
        self._numbers = count()
        self._scratch: list[tuple[nodes.Buffer, Shape]] = []

    def _own_position(self) -> Indices:
        if self._known is None or self._known.is_flat:
            # Placeholders that identify the thread's own index; their values are not used.
            names = [c.variable(f"own{axis}", INT) for axis in range(len(self.shape))]
        elif self._is_flat:
            return tuple(self.positions.unravelled(self.positions.of(self.index()[0]), self.shape))
        else:
            names = self.index()
        # Along an axis of extent 1 every thread is at 0.
        return tuple(
            constant(0) if extent == 1 else self.positions.of(name)
            for name, extent in zip(names, self.shape, strict=False)
        )

    @property
    def mirrored(self) -> Indices:
        """The mirror image ``n - 1 - i`` of the own position ``i``, along the one axis."""
        (own,), (extent,) = self.own, self.shape
        return (add(constant(sizes.subtract(extent, 1)), times(own, -1)),)

    def index(self) -> tuple[Expr, ...]:
        """The Index names as expressions."""
        return tuple(c.variable(n, INT) for n in self.index_names)

    def values(self, values: Sequence[Value], at: Indices | None = None) -> list[Expr]:
        """The elements of `values` at `at`, by default the thread's own index."""
        return [self.elements.at(v, self.own if at is None else at) for v in values]

    def written(self, values: Sequence[Expr], prefix: str = "t") -> Written:
        """Statements that compute `values`, and short expressions for their results."""
        written = write(values, prefix)
        self.local_types.update(written.local_types)
        return written

    def bind(self, value: Value, element: Bound) -> None:
        """Lets `element` compute the elements of `value`."""
        self._bound[value] = element

    def indices_in(self, value: Value, at: Indices) -> tuple[Expr, ...]:
        """The indices at which the kernel writes an element of `value`."""
        if self._out_rank(value) == len(at):
            return tuple(map(self.positions.expr, at))
        return (self.positions.expr(number(at, value.shape)),)

    @property
    def asks_index(self) -> bool:
        """True if an expression depends on where the thread is along an axis."""
        return any(self.positions.is_asked(position) for position in self.own)

    @property
    def needs_axes(self) -> bool:
        """True if an array is read at the own index and, by its axes, in checked reads."""
        return any({"own", "checked"} <= ways for ways in self.facts.ways.values())

    def local(self, name: str, t: Type) -> nodes.Var:
        """A local variable of the kernel."""
        self.local_types[name] = t
        return c.variable(name, t)

    def add_scratch(self, buffer: nodes.Buffer, shape: Shape) -> None:
        """Declares an array that the threads of one workgroup write and read."""
        self._scratch.append((buffer, shape))

    # -- reading ---------------------------------------------------------------------------

    def read(self, value: Value, at: Indices, view: View | None = None) -> Expr:
        """An element of a stored value; checked if there is a view."""
        if value in self._bound:
            return self._bound[value](at, view)
        if view is None and sizes.product(value.shape) == 1:
            return c.variable(self._scalar(value).name, value.element)
        shape = value.shape if view is None else view.shape
        if view is not None and self._known is not None:
            self._known.ways[value, shape] = {"checked"}
        buffer = self._buffer((value, shape))
        way = self._way(value, at) if view is None else "checked"
        self.note_read((value, shape), way)
        if way == "own" and (self._known is None or buffer.type.rank == len(self.launch)):
            indices = self.index()
        elif buffer.type.rank == len(at):
            indices = tuple(map(self.positions.expr, at))
        else:
            indices = (self.positions.expr(number(at, shape)),)
        span = nodes.NO_SPAN if view is None else view.span
        return nodes.Load(type=value.element, buffer=buffer.name, indices=indices, span=span)

    def read_number(self, value: Value, at: Position) -> Expr:
        """Element number `at` of a stored value."""
        seen = value, value.shape
        self.note_read(seen, "at")
        buffer = self._buffer(seen)
        places = [at] if buffer.type.rank == 1 else self.positions.unravelled(at, value.shape)
        indices = tuple(map(self.positions.expr, places))
        return nodes.Load(type=value.element, buffer=buffer.name, indices=indices)

    def read_vector(self, value: Value, quarter: Position) -> Expr:
        """Four adjacent numbers of a stored value, of which the first has number ``4 quarter``."""
        if value not in self._vectors:
            name = f"x{next(self._numbers)}"
            t = BufferType(Access.IN, four_of(value.element), 1)
            self._vectors[value] = nodes.Buffer(name=name, path=(name,), type=t)
        buffer = self._vectors[value]
        index = (self.positions.expr(quarter),)
        return nodes.Load(type=buffer.type.element, buffer=buffer.name, indices=index)

    def store_vector(self, name: str, quarter: Position, values: Sequence[Expr]) -> Stmt:
        """Stores four adjacent numbers, which no other thread does; see `read_vector`.

        All stores of this output store four.
        """
        self._stored_vectors.add(name)
        value = c.construct(four_of(values[0].type), values)
        index = (self.positions.expr(quarter),)
        return nodes.Store(buffer=name, indices=index, value=value, is_unique=True)

    @property
    def read_count(self) -> int:
        """The number of values that the kernel reads so far."""
        return len(self._buffers) + len(self._scalars)

    @property
    def values_read(self) -> tuple[Value, ...]:
        """The values that the kernel reads so far."""
        return tuple(dict.fromkeys((*self.arrays_read, *self._scalars)))

    @property
    def arrays_read(self) -> list[Value]:
        """The arrays that the kernel reads so far."""
        return [v for v, _ in self._buffers]

    def note_read(self, seen: Seen, way: str) -> None:
        """Notes the way in which the kernel reads an array: see `_Facts`."""
        self.facts.ways.setdefault(seen, set()).add(way)

    def _way(self, value: Value, at: Indices) -> str:
        is_own = number(at, value.shape) == self._own_number
        is_alike = value.shape == self.shape or self._known is None or self._known.is_flat
        is_whole = sizes.product(value.shape) == sizes.product(self.shape)
        return "own" if is_own and is_alike and is_whole else "at"

    def _scalar(self, value: Value) -> nodes.Uniform:
        if value not in self._scalars:
            name = f"x{next(self._numbers)}"
            self._scalars[value] = nodes.Uniform(name=name, path=(name,), type=value.element)
        return self._scalars[value]

    def _buffer(self, seen: Seen) -> nodes.Buffer:
        if seen not in self._buffers:
            name = f"x{next(self._numbers)}"
            t = BufferType(Access.IN, seen[0].element, self._rank(seen))
            self._buffers[seen] = nodes.Buffer(name=name, path=(name,), type=t)
        return self._buffers[seen]

    def _rank(self, seen: Seen) -> int:
        """The axes of an array in the kernel: those of its shape if reads name them, else 1."""
        if self._known is None:
            return 1
        ways, shape = self._known.ways[seen], seen[1]
        if "checked" in ways or (ways == {"own"} and shape == self.shape):
            is_numbered = "checked" not in ways and self._is_flat
            return 1 if is_numbered else max(1, len(shape))
        return 1

    # -- the kernel ------------------------------------------------------------------------

    def finish(
        self, name: str, body: Sequence[Stmt], outputs: Sequence[tuple[str, Value, Access]]
    ) -> PlanKernel:
        read = [(b, v, shape) for (v, shape), b in self._buffers.items()]
        read += [(b, v, _by_four(v)) for v, b in self._vectors.items()]
        written = [self._output(*output) for output in outputs]
        scratch = [b for b, _ in self._scratch]
        buffers = (*(b for b, _, _ in (*read, *written)), *scratch)
        scalars = {u: v for v, u in self._scalars.items()}
        lengths = (nodes.Uniform(name=n, path=(n,), type=INT) for n, _ in self.positions.uniforms)
        uniforms = (*scalars, *lengths)
        shapes = [
            (b.name, shape if b.type.rank == len(shape) else (sizes.product(shape),))
            for b, _, shape in (*read, *written)
        ]
        kernel = nodes.Kernel(
            name=name,
            index_names=self.index_names,
            parameters=tuple(
                nodes.KernelParameter(name=resource.name, type=resource.type)
                for resource in (*buffers, *uniforms)
            ),
            buffers=buffers,
            uniforms=uniforms,
            body=tuple(body),
            local_types=self.local_types,
        )
        return PlanKernel(
            kernel=kernel,
            dim=self.launch,
            reads=(*((b.name, v) for b, v, _ in read), *((u.name, v) for u, v in scalars.items())),
            writes=tuple((n, v) for n, v, _ in outputs),
            shapes=(
                *shapes,
                *((u.name, ()) for u in scalars),
                *((b.name, shape) for b, shape in self._scratch),
            ),
            sizes=self.positions.uniforms,
            bounds="raise" if self._may_report(body) else "unchecked",
        )

    def _output(self, name: str, value: Value, access: Access) -> tuple[nodes.Buffer, Value, Shape]:
        """The array of an output, and its shape in the kernel."""
        is_by_four = name in self._stored_vectors
        shape = _by_four(value) if is_by_four else value.shape
        if is_by_four:
            t = BufferType(access, four_of(value.element), 1)
        else:
            t = BufferType(access, value.element, self._out_rank(value))
        return nodes.Buffer(name=name, path=(name,), type=t), value, shape

    def _out_rank(self, value: Value) -> int:
        if value.shape == self.shape:
            return len(self.launch)
        return max(1, len(value.shape)) if len(value.shape) <= RANK_LIMIT else 1

    def _may_report(self, body: Sequence[Stmt]) -> bool:
        """True if a thread can report an error; only checked gathers may read out of range."""
        is_limited = any(
            isinstance(s, nodes.While) and s.limit is not None for s in walk.statements(body)
        )
        is_checked = any("checked" in ways for ways in self.facts.ways.values())
        return is_limited or is_checked or any(map(may_report, walk.all_expressions(body)))


def _by_four(value: Value) -> Shape:
    """The shape of the fours of a value."""
    return (sizes.floor_divide(sizes.product(value.shape), WIDTH),)
