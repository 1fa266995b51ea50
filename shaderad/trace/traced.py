"""Arrays of a function that is being traced: they hold a value of a graph instead of content.

A `GraphTrace` is one function, or the body of a loop, while it is traced. Each value from outside
(an argument, a captured array, a value of the enclosing trace) becomes an input of its graph.
Invariant: a value belongs to one trace, and only that trace and those nested in it use it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar, copy_context
from itertools import count
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast

import numpy as np

from shaderad.arrays.arrays import Array, looked_at, noted, vector_of
from shaderad.arrays.traced_sizes import shown
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.diagnostics.call_errors import fitting_call
from shaderad.ir import building as b
from shaderad.ir import sizes
from shaderad.ir.arrays import ArrayType, Graph, Value
from shaderad.ir.nodes import Const
from shaderad.ir.sizes import Shape, Size
from shaderad.ir.types import Scalar, Type
from shaderad.language.annotations import HostVector
from shaderad.runtime import buffers
from shaderad.trace.varying import Groups

if TYPE_CHECKING:
    from shaderad.device.devices import Device

P = ParamSpec("P")
R = TypeVar("R")

OPERAND = "operand"
"""The name in messages of data whose parameter is unknown."""
_current: ContextVar[GraphTrace | None] = ContextVar("shaderad_graph_trace", default=None)


class GraphTrace:
    """The values that a function has computed so far, and its inputs from outside."""

    def __init__(
        self,
        size_by_name: dict[str, int],
        parent: GraphTrace | None = None,
        belongs_to: object = None,
    ) -> None:
        # size_by_name: the values of the symbolic sizes in the call that is traced.
        self.parent = parent
        self.belongs_to = belongs_to
        """The object whose function is traced, by which nested calls recognise it."""
        self.size_by_name = size_by_name
        self.has_named_sizes = parent is None or parent.has_named_sizes
        """True if users named the symbolic sizes; messages show only numbers for others."""
        self.holds_vectors = parent is not None and parent.holds_vectors
        """True if host vectors are constants of the graph rather than inputs."""
        self.inputs: list[Value] = []
        self.given: list[Any] = []
        """The source of each input: an array, data, or a value of the parent."""
        self.effects: list[TracedArray] = []
        """Results that stand for kernels that print or only check: see `KernelCall`."""
        self._effect_numbers = count(1) if parent is None else parent._effect_numbers
        self.constants: list[Array] = [] if parent is None else parent.constants
        """Arrays that the function put on a device while it was traced."""
        self.looked_at: list[Array] = [] if parent is None else parent.looked_at
        """Device arrays whose content the function read on the host."""
        self.equal_sizes: list[tuple[Size, Size]] = [] if parent is None else parent.equal_sizes
        """Pairs of sizes that this trace assumes to be equal; a later call must confirm them."""
        self.positive_sizes: list[Size] = [] if parent is None else parent.positive_sizes
        """Sizes that this trace assumes to be positive; a later call must confirm them."""
        self.numbers: list[float] = [] if parent is None else parent.numbers
        """The float numbers that the function has used, in order."""
        self.groups: Groups = {} if parent is None else parent.groups
        """The positions of numbers that are inputs: see `trace/varying.py`."""
        self.number_values: set[Value] = set()
        """The inputs that hold such numbers."""
        self._shared_inputs: dict[object, Value] = {}
        self._captured: dict[int, Value] = {}

    def input(self, t: ArrayType, source: Any) -> Value:
        """A new input that stands for `source`."""
        value = Value(t)
        self.inputs.append(value)
        self.given.append(source)
        return value

    def argument(self, t: ArrayType, source: Any) -> TracedArray:
        """A new input as the function sees it."""
        return TracedArray(self, self.input(t, source))

    def value_of(self, x: Array) -> Value:
        """The value that represents `x` in this trace.

        Raises:
            LanguageError: SR0322 if `x` belongs to a trace that has ended.
        """
        if isinstance(x, TracedArray) and x.owner is self:
            return x.value
        if self.parent is not None and not isinstance(x, TracedArray):
            # Through its value in the enclosing trace, so that both forms of `x` share one input.
            x = TracedArray(self.parent, self.parent.value_of(x))
        # `self.given` keeps the keyed object alive, so that its id is not reused.
        key = id(x.value) if isinstance(x, TracedArray) else id(x)
        value = self._captured.get(key)
        if value is None:
            value = self._capture(x)
            self._captured[key] = value
        return value

    def _capture(self, x: Array) -> Value:
        if self.parent is not None:
            return self.input(self.parent.value_of(x).type, x)
        if isinstance(x, TracedArray):
            raise error("SR0322", user_span())
        return self.input(ArrayType(x.element, x.shape), x)

    def source_of(self, value: Value) -> Any:
        """The source of an input; `None` for a computed value."""
        return next((x for v, x in zip(self.inputs, self.given, strict=True) if v is value), None)

    def origin_of(self, x: TracedArray) -> TracedArray:
        """`x` in the outermost trace that holds it: bodies capture values of the traces around."""
        source = x.owner.source_of(x.value)
        is_captured = x.value in x.owner._captured.values()
        return self.origin_of(source) if is_captured and isinstance(source, TracedArray) else x

    def lifted(self, x: Any, name: str = OPERAND) -> TracedArray:
        """An array or array-like as an array of this trace."""
        if isinstance(x, TracedArray) and x.owner is self:
            return x
        if isinstance(x, Array):
            return TracedArray(self, self.value_of(x)).noted_as(x.given_vector)
        data = buffers.as_numpy(x, name)
        element = buffers.inferred_type(data)
        if isinstance(x, HostVector) and self.holds_vectors:
            value = _constants(x, ArrayType(element, data.shape))
            return TracedArray(self, value).noted_as(x.element)
        array = TracedArray(self, self._of_data(ArrayType(element, data.shape), x))
        return array.noted_as(vector_of(x))

    def _of_data(self, t: ArrayType, data: Any) -> Value:
        if self.parent is None:
            return self.input(t, data)
        outer = self.parent._of_data(t, data)
        return self.value_of(TracedArray(self.parent, outer))

    def number_input(self, t: ArrayType, number: object) -> Value:
        """The input that holds a Python number; nested traces share it."""
        value = self.shared_input(t, number)
        self.number_values.add(value)
        return value

    def shared_input(self, t: ArrayType, source: object) -> Value:
        """The one input that stands for `source` and what is equal; nested traces share it."""
        value = self._shared_inputs.get(source)
        if value is None:
            if self.parent is None:
                value = self.input(t, source)
            else:
                outer = self.parent.shared_input(t, source)
                value = self.value_of(TracedArray(self.parent, outer))
            self._shared_inputs[source] = value
        return value

    def are_equal(self, a: Size, b: Size) -> bool:
        """True if two sizes are equal; the trace records it if this holds only in this call."""
        if a == b:
            return True
        if isinstance(a, int) and isinstance(b, int):
            return False
        if sizes.evaluate(a, self.size_by_name) != sizes.evaluate(b, self.size_by_name):
            return False
        self.equal_sizes.append((a, b))
        return True

    def is_positive(self, size: Size) -> bool:
        """True if a size is positive in this call; the trace records the answer."""
        return self.is_less(0, size)

    def is_less(self, a: Size, b: Size) -> bool:
        """True if ``a < b`` in this call; the trace records the answer, and other calls retrace."""
        difference = sizes.subtract(b, a)
        is_below = sizes.evaluate(difference, self.size_by_name) > 0
        if not isinstance(difference, int):
            self.positive_sizes.append(difference if is_below else sizes.subtract(1, difference))
        return is_below

    def next_effect(self) -> int:
        """The number of a call that prints or only checks."""
        return next(self._effect_numbers)

    def run(self, function: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
        """Calls `function`, whose array functions compute in this trace."""
        # The context ends with the call, so that an interrupt cannot leave it active.
        context = copy_context()
        context.run(_current.set, self)
        context.run(noted.set, self.constants)
        context.run(looked_at.set, self.looked_at)
        return context.run(fitting_call, function, *args, **keywords)

    def graph(self, outputs: Sequence[Value]) -> Graph:
        """The graph from all inputs of this trace to `outputs`."""
        return Graph(tuple(self.inputs), tuple(outputs))


def current_trace() -> GraphTrace | None:
    """The innermost function that is being traced."""
    return _current.get()


def traces() -> Iterator[GraphTrace]:
    """The functions that are being traced, the innermost first."""
    trace = _current.get()
    while trace is not None:
        yield trace
        trace = trace.parent


class TracedArray(Array):
    """An array whose content is known only when the graph runs.

    Attributes:
        owner: The trace that it belongs to.
        value: The graph value.
    """

    __slots__ = ("owner", "value")

    def __init__(self, owner: GraphTrace, value: Value) -> None:
        # A graph runs on whatever device its arguments are on.
        nowhere = cast("Device", None)
        shape = cast("tuple[int, ...]", tuple(map(shown, value.shape)))
        super().__init__(nowhere, value.element, shape, None)
        self.owner = owner
        self.value = value

    @property
    def extents(self) -> Shape:
        """The shape as the graph knows it."""
        return self.value.shape

    def __repr__(self) -> str:
        return f"Array({self.element}, shape={self.shape}, traced)"

    def __summary__(self) -> str:
        return repr(self)

    def __str__(self) -> str:
        return repr(self)

    def check_readable(self, what: str) -> NoReturn:
        raise error("SR0321", user_span(), what=f"{what} of an array")

    # Content is unknown while a graph is traced, so reading it raises.

    def numpy(self) -> np.ndarray[Any, Any]:
        self.check_readable("`.numpy()`")

    def item(self) -> Any:
        self.check_readable("`.item()`")

    def __index__(self) -> int:  # noqa: PLE0305 - it raises
        self.check_readable("an index or count of Python")

    def __bool__(self) -> bool:  # noqa: PLE0304 - it raises
        self.check_readable("a condition")

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __len__(self) -> int:
        if not self.extents:
            raise error("SR0360", user_span(), what="`len()`")
        if isinstance(self.extents[0], int):
            return self.extents[0]
        raise error("SR0320", user_span(), size=self.extents[0], what="`len()`")

    def __copy__(self) -> Array:
        return self

    def viewed(self, element: Type, shape: tuple[int, ...], skipped: int = 0) -> Array:
        raise AssertionError("a traced array has no bytes")


def _constants(x: HostVector, t: ArrayType) -> Value:
    """A host vector or matrix as an array of constants."""
    scalar = cast("Scalar", t.element)
    numbers = (b.full((1,), Const(type=scalar, value=n)) for n in x.ravel().tolist())
    return b.reshape(b.concatenate([*numbers], 0), t.shape)


def is_traced(values: Sequence[Any]) -> bool:
    """True if an operation on these values is traced instead of run."""
    return _current.get() is not None or any(isinstance(v, TracedArray) for v in values)


def is_less(a: Size, b: Size) -> bool:
    """True if ``a < b``; symbolic sizes are compared by their values in the traced call."""
    return a < b if isinstance(a, int) and isinstance(b, int) else tracing().is_less(a, b)


def tracing() -> GraphTrace:
    """The trace that operations belong to.

    Raises:
        LanguageError: SR0322 if there is none, because a traced array has escaped its function.
    """
    trace = _current.get()
    if trace is None:
        raise error("SR0322", user_span())
    return trace
