"""A graph that was built before, at its arguments: called and differentiated like its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from shaderad.arrays import trees
from shaderad.arrays.traced_sizes import TracedSize
from shaderad.calls.bindable_graphs import BindableGraph
from shaderad.calls.call import device_of
from shaderad.calls.run_graph import run_graph
from shaderad.calls.signatures import GraphSignature
from shaderad.device.lines import user_span
from shaderad.diagnostics import error
from shaderad.diagnostics.tracebacks import api_boundary
from shaderad.differentiate.linearised_graphs import Bound
from shaderad.ir import sizes
from shaderad.trace.calls import TracedFunction
from shaderad.trace.traced import current_trace


class LoadedGraph(BindableGraph):
    """A graph of a folder; any sizes that its annotations allow are served by one plan."""

    def __init__(self, signature: GraphSignature, variant: TracedFunction, folder: str) -> None:
        self.__name__ = signature.name
        self._signature = signature
        self._variant = variant
        self._folder = folder
        shapes = chain(*(one.shape for one in variant.graph.outputs))
        self._extents = [one for one in shapes if not sizes.is_natural(one)]
        """Extents of results that could be negative."""
        shown = (one.size for one in trees.leaves(variant.out) if isinstance(one, TracedSize))
        self._numbers = [one for one in shown if not sizes.is_natural(one)]

    @api_boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_trace() is not None:
            raise error("SR0733", user_span(), graph=self.__name__)
        bound = self.bound(args, kwargs)
        known = bound.form.size_by_name
        found = run_graph(self._variant.graph, bound.operands, known, bound.device)
        return self._variant.result(found, known)

    def bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Bound:
        """The graph at these arguments.

        Raises:
            ShapeError: SR0345 to SR0347, SR0363 to SR0366, where they are not what it was built
                for; SR0732, where it was built for other sizes.
        """
        given = self._signature.given(args, kwargs)
        device = device_of(None, trees.leaves(given))
        arguments = self._signature.arguments(given, device)
        form = self._signature.form(arguments)
        self._check(form.size_by_name)
        return Bound(self._variant, arguments, form, device)

    def _check(self, known: Mapping[str, int]) -> None:
        """Checks that the decisions of the trace hold for these sizes."""
        try:
            self._check_rules(known)
        except ZeroDivisionError:
            self._refuse("no size is divided by 0", known)

    def _check_rules(self, known: Mapping[str, int]) -> None:
        for left, right in self._variant.equal_sizes:
            if sizes.evaluate(left, known) != sizes.evaluate(right, known):
                self._refuse(f"{left} == {right}", known)
        for one in self._variant.positive_sizes:
            if sizes.evaluate(one, known) <= 0:
                self._refuse(f"{one} > 0", known)
        for one in self._extents:
            if sizes.evaluate(one, known) < 0:
                self._refuse(f"{one} >= 0", known)
        for one in self._numbers:
            sizes.evaluate(one, known)

    def _refuse(self, rule: str, known: Mapping[str, int]) -> None:
        found = ", ".join(f"{name} = {number}" for name, number in known.items())
        raise error("SR0732", graph=self.__name__, rule=rule, found=found)

    def __repr__(self) -> str:
        names = (n for n in self._signature.skeleton if n not in self._signature.fixed)
        return f"<graph {self.__name__}({', '.join(names)}) of {self._folder}>"
