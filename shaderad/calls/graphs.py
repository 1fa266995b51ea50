"""``@sad.graph``: a Python function on arrays that is traced once and runs as one plan."""

from __future__ import annotations

import functools
import inspect
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from weakref import ReferenceType, ref

from shaderad.arrays import trees
from shaderad.arrays.arrays import Array, is_host_array
from shaderad.arrays.numbers import HostNumber
from shaderad.calls.annotations import Annotations
from shaderad.calls.arguments import (
    Arguments,
    array_of_captured,
    array_of_number,
    arrays_like,
    taken_apart,
)
from shaderad.calls.bindable_graphs import BindableGraph
from shaderad.calls.call import device_of
from shaderad.calls.run_graph import run_graph
from shaderad.calls.signatures import GraphSignature, signature_of, span_of
from shaderad.device.devices import Device
from shaderad.diagnostics import Span, error
from shaderad.diagnostics.call_errors import bound_arguments, fitting_call
from shaderad.diagnostics.notebook import ShownText
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.execute.derivative_graphs import pulled
from shaderad.execute.explained import explained
from shaderad.ir.arrays import Graph
from shaderad.ir.types import Type, is_differentiable
from shaderad.language.host import LikeFunction, caller_locals
from shaderad.plan.choices import PlanChoices
from shaderad.plan.explain import explain
from shaderad.plan.pictures import draw, svg_text
from shaderad.plan.planning import plan
from shaderad.plan.simplify import simplified
from shaderad.trace.calls import Form, TracedFunction, traced_variant
from shaderad.trace.captures import KeptTraces, Traced
from shaderad.trace.traced import current_trace

__all__ = ["graph"]

_KEPT_FORMS = 256
"""Forms of arguments of which traces are kept: each object that is an argument has its own."""


@dataclass(slots=True, eq=False)
class TracedCall:
    """A graph function at its arguments."""

    traced: Traced
    arguments: Arguments
    form: Form
    device: Device
    names: tuple[str, ...]
    """The parameters that have arguments; all others have their defaults, as in Python."""

    @property
    def variant(self) -> TracedFunction:
        return self.traced.variant

    @property
    def operands(self) -> list[Array]:
        """The arguments, then what the function captured."""
        captured = [array_of_captured(get(), self.device) for get in self.traced.captured]
        return [*self.arguments.arrays, *captured]


@dataclass(frozen=True, slots=True)
class LatestCall:
    """A call whose arrays were given as they are wanted; most calls are like the last one."""

    traced: Traced
    form: Form
    arguments: Arguments
    """All arguments."""
    positional: tuple[Any, ...]
    """The same, as the arguments were given."""
    arrays: tuple[tuple[Type, tuple[int, ...]], ...]
    device: ReferenceType[Device]
    names: tuple[str, ...]

    def again(self, args: Sequence[Any]) -> TracedCall | None:
        """The function at arguments that differ in their content at most, else nothing."""
        device = self.device()
        arrays = None if device is None else arrays_like(self.positional, tuple(args), device)
        if device is None or arrays is None:
            return None
        for x, (element, shape) in zip(arrays, self.arrays, strict=True):
            is_like_it = x.device is device and x.shape == shape
            if not (is_like_it and (x.element is element or x.element == element)):
                return None
        if not self.traced.reads.are_current():
            return None
        known = self.arguments
        arguments = Arguments(known.structure, known.leaves, tuple(arrays))
        return TracedCall(self.traced, arguments, self.form, device, self.names)


class GraphFunction(LikeFunction, BindableGraph):
    """A function that is traced at its first call and for each other form of arguments."""

    _followed = ("python",)

    def __init__(self, function: Callable[..., Any], annotations: Annotations) -> None:
        self.python = function
        self._read_signature()
        self._annotations = annotations
        self._known: dict[Hashable, KeptTraces] = {}
        self._latest: Traced | None = None
        self._latest_call: LatestCall | None = None
        functools.update_wrapper(self, function)

    def _read_signature(self) -> None:
        self._signature = inspect.signature(self.python)
        self._defaults = self.python.__defaults__

    @property
    def span(self) -> Span:
        """The line that defines the function."""
        return span_of(self.python)

    @property
    def file(self) -> str:
        """The Python file that defines it."""
        return self.python.__code__.co_filename

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else partial(self, instance)

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_trace() is not None:
            call = bound_arguments(self.python, self._signature, args, kwargs)
            inner = self._annotations.conformed(self._annotations.with_defaults(call))
            return fitting_call(self.python, *inner.args, **inner.kwargs)
        bound = self.bound(args, kwargs)
        sizes = bound.form.size_by_name
        variant = bound.traced.variant
        results = run_graph(variant.graph, bound.operands, sizes, bound.device)
        return variant.result(results, sizes)

    @api_boundary
    def explain(self, *args: Any, **kwargs: Any) -> str:
        """The dispatches of a call, what they read, write and keep in memory.

        Without arguments, of the latest trace and with open sizes.
        """
        if self._latest is not None and not args and not kwargs:
            graph = self._latest.variant.graph
            return ShownText(explain(PlanChoices({}).chosen(plan(graph)), len(graph.nodes)))
        bound = self.bound(args, kwargs)
        sizes = bound.form.size_by_name
        return ShownText(explained(bound.variant.graph, bound.operands, sizes, bound.device))

    @api_boundary
    def draw(self, path: str | Path, *args: Any, **kwargs: Any) -> None:
        """Draws the function and its gradient side by side, as ``.svg``, ``.html`` or ``.dot``.

        Without arguments, as the latest trace has them. Graphviz draws where it is installed.

        Raises:
            LanguageError: SR0287, where `path` ends in something else.
        """
        is_known = self._latest is not None and not args and not kwargs
        traced = self._latest if is_known else self.bound(args, kwargs).traced
        assert traced is not None
        draw(path, self._drawn(traced))

    def __repr__(self) -> str:
        return f"<graph {self.python.__name__}({', '.join(self._signature.parameters)})>"

    def _repr_html_(self) -> str | None:
        """The latest trace, drawn beside its gradient; nothing before the first."""
        if self._latest is None:
            return None
        picture = svg_text(self._drawn(self._latest))
        return f'<div style="background: white; overflow-x: auto">{picture}</div>'

    def _drawn(self, traced: Traced) -> dict[str, Graph]:
        """The function and its gradient, by their titles."""
        primal = traced.variant.graph
        wanted, has_cotangent = (
            tuple(is_differentiable(v.element) for v in values)
            for values in (primal.inputs, primal.outputs)
        )
        graphs = {self.python.__name__: simplified(primal)}
        if any(wanted) and any(has_cotangent):
            graphs["gradient"] = simplified(pulled(primal, wanted, has_cotangent))
        return graphs

    @property
    def is_variadic(self) -> bool:
        """True if one parameter takes several positional arguments."""
        kinds = (p.kind for p in self._signature.parameters.values())
        return inspect.Parameter.VAR_POSITIONAL in kinds

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TracedCall:
        """The function at these arguments, traced if it was not before.

        Raises:
            CallError: SR0291 to SR0294 for arguments that the function has no parameters for.
            ShapeError: SR0345 to SR0347, where an argument is not what its annotation says.
        """
        call = self._latest_call
        again = None if call is None or kwargs else call.again(args)
        if again is not None:
            return again
        traced_call = self._bound(args, kwargs)
        self._latest_call = None if kwargs else self._plain_call(traced_call, args)
        return traced_call

    def _plain_call(self, bound: TracedCall, args: Sequence[Any]) -> LatestCall | None:
        """The call to compare the next one with; `None` where an array was converted or left out.

        Parameters that it left out have the defaults that the signature was read with.
        """
        arguments, arrays = bound.arguments, bound.arguments.arrays
        tree = inspect.BoundArguments(
            self._signature, OrderedDict(zip(bound.names, arguments.skeleton(), strict=True))
        )
        positional = tree.args[: len(args)]
        again = arrays_like(positional, tuple(args), bound.device)
        if again is None or not all(map(_is_same, again, arrays)):
            return None
        forms = tuple((x.element, x.shape) for x in arrays)
        device = ref(bound.device)
        return LatestCall(
            bound.traced, bound.form, arguments, positional, forms, device, bound.names
        )

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TracedCall:
        if self._defaults is not self.python.__defaults__:
            self._read_signature()
        call = self._annotations.with_defaults(
            bound_arguments(self.python, self._signature, args, kwargs)
        )
        names = tuple(call.arguments)
        device = device_of(None, trees.leaves(tuple(call.arguments.values())))
        checked = self._annotations.applied(call.arguments, device)
        arguments = taken_apart(*trees.flatten(checked), partial(array_of_number, device=device))
        form = self._annotations.form(names, arguments)
        traced = self._traced(arguments, form, call)
        return TracedCall(traced, arguments, form, device, names)

    def ahead_of_calls(self, name: str) -> tuple[GraphSignature, TracedFunction]:
        """Its trace for all calls that its annotations allow.

        Raises:
            LanguageError: SR0730, SR0731 for a parameter; SR0734, where it captures arrays.
        """
        signature = signature_of(name, self.python, self._annotations)
        names = signature.size_names
        form = Form(signature.types, {size: _sample(k) for k, size in enumerate(names)})

        def called(*arrays: Array) -> Any:
            leaves, structure = trees.flatten(signature.skeleton)
            named = Arguments(structure, leaves, ()).filled(arrays)
            bound = inspect.BoundArguments(self._signature, OrderedDict(named))
            return self.python(*bound.args, **bound.kwargs)

        variant = traced_variant(called, form, holds_vectors=True)
        if variant.captured:
            captured = trees.described(variant.captured[0])
            raise error("SR0734", span_of(self.python), graph=name, found=captured)
        return signature, variant

    def _traced(self, arguments: Arguments, form: Form, call: inspect.BoundArguments) -> Traced:
        self._latest = self._found(arguments, form, call)
        return self._latest

    def _found(self, arguments: Arguments, form: Form, call: inspect.BoundArguments) -> Traced:
        key = tuple(call.arguments), arguments.key, form.key
        traces = self._known.setdefault(key, KeptTraces())
        if len(self._known) > _KEPT_FORMS:
            del self._known[next(iter(self._known))]
        return traces.current(form.size_by_name) or self._trace(traces, arguments, form, call)

    def _trace(
        self, traces: KeptTraces, arguments: Arguments, form: Form, call: inspect.BoundArguments
    ) -> Traced:
        def called(*arrays: Array) -> Any:
            filled = arguments.filled(arrays)
            bound = inspect.BoundArguments(
                self._signature, dict(zip(call.arguments, filled, strict=True))
            )
            return self.python(*bound.args, **bound.kwargs)

        roots = [(self.python.__name__, self.python), *_objects(call.arguments)]
        return traces.trace(self.python.__name__, roots, called, form)


def _is_same(x: Array, y: Array) -> bool:
    """True for one array, and for equal numbers of one type."""
    if isinstance(x, HostNumber) and isinstance(y, HostNumber):
        return (x.element, x.words) == (y.element, y.words)
    return x is y


def _sample(k: int) -> int:
    """The size number `k` while a graph is traced for all sizes: not 0, 1, small, or a
    sum or product of others, so that nothing is decided that holds for a few calls only.
    """
    return 1009 + 310 * k + 7 * k * k


def _objects(arguments: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The leaves of arguments that are neither arrays nor numbers."""
    for name, tree in arguments.items():
        for leaf in trees.leaves(tree):
            if not isinstance(leaf, Array | bool | int | float | str) and not is_host_array(leaf):
                yield name, leaf


@api_boundary
def graph(function: Callable[..., Any]) -> GraphFunction:
    """Makes a function on arrays one that is traced, planned, and runs as one submission.

    One trace serves every size: ``x.shape[k]`` is a symbol in it. It is reused only if everything
    that the function read while it was traced would read the same now. Arrays on the device that
    the function captures are read at each call.

    Args:
        function: Takes and gives arrays, numbers, structs, and tuples, lists and dicts of them;
            annotations such as ``sad.Array[float, "n"]`` are checked. A bound method such as
            ``self.step`` is one, too, and the decorator stands above methods as well.

    Returns:
        A function of the same arguments, differentiable as `function` is.

    Raises:
        LanguageError: SR0103 for what is no function; when called, SR0338 for an array that nothing
            leads to, SR0339 for captured host arrays of more than 16 MiB.
    """
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        raise error("SR0103", None, found=f"`{function!r}`")
    return GraphFunction(function, Annotations(function, caller_locals(3)))
