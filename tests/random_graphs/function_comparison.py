"""One random function on one device, in some modes, against PyTorch in float64.

All modes run several times while numbers and pictures change: as arguments, and as state that
the function captures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

import shaderad as sad
from shaderad import float2, float4
from tests.driver_accuracy import sine_error
from tests.random_graphs import functions
from tests.random_graphs.functions import RandomFunction, pick
from tests.random_graphs.inputs import (
    NAMES,
    PARTS,
    Data,
    Layout,
    as_tangents,
    drawn_layout,
    in_torch,
    on_device,
    parts_of,
    plain,
)
from tests.random_graphs.kernels import Inputs

ROUNDS = 3
MODES_PER_FUNCTION = 3
TOLERANCE = 1e-3
"""Some dozens of float32 operations, and differences of their results."""
TERMS = 200
"""As many errors of a sine, or of a texture unit, may meet in one result."""
ROUNDED = 2**-18
"""A relative change of the inputs, as of several roundings."""
CAPTURED_SHARE = 0.3


@sad.kernel
def _filtered(
    i: sad.Index, t: sad.Texture2D[float4], s: sad.Sampler, at: sad.In[float2],
    y: sad.Out[float4],
):  # fmt: skip
    y[i] = t.sample(s, at[i])


@cache
def filter_error(device: sad.Device) -> float:
    """How far the texture units of a device are off; their weights have eight bits or more."""
    ramp = np.float32(np.linspace(0, 1, 8))[None, :, None] * np.ones(4, np.float32)
    u = np.linspace(0.1, 0.9, 1001, dtype=np.float32)
    with device:
        at = sad.array(np.stack([u, u], -1))
        found = _filtered(sad.texture(ramp), sad.sampler("linear", "clamp"), at).numpy()[:, 0]
    return float(np.abs(found - (np.float64(u) * 8 - 0.5) / 7).max())


@dataclass(frozen=True)
class Subject:
    """A random function as users write it: some inputs are arguments, others captured."""

    function: RandomFunction
    layout: Layout
    arguments: tuple[str, ...]
    state: SimpleNamespace
    """The captured inputs, and the cotangent `bar` of the result."""

    def __call__(self, *args: Any) -> Any:
        captured = {name: getattr(self.state, name) for name in NAMES if hasattr(self.state, name)}
        given = dict(zip(self.arguments, args, strict=True))
        return self.function.on_device(Inputs(**captured, **given))

    def loss(self, *args: Any) -> Any:
        return sad.sum(self(*args) * self.state.bar)

    @property
    def differentiable(self) -> tuple[int, ...]:
        return tuple(k for k, name in enumerate(self.arguments) if name != "turn")


def function_fault(seed: int, device: sad.Device) -> str:
    """What is wrong; empty where everything agrees."""
    rng = np.random.default_rng(seed)
    function, layout = functions.drawn(rng), drawn_layout(rng)
    captured = {n for n in NAMES[1:] if rng.random() < CAPTURED_SHARE}
    arguments = tuple(n for n in NAMES if n not in captured)
    subject = Subject(function, layout, arguments, SimpleNamespace())
    modes = _modes(subject)
    chosen = [pick(rng, tuple(modes)) for _ in range(MODES_PER_FUNCTION)]
    data = layout.data(rng)
    with device:
        for k in range(ROUNDS):
            found = _round(subject, {name: modes[name] for name in chosen}, data, rng, device)
            if found:
                return f"seed {seed}, call {k + 1}, captured {sorted(captured)}: {found}"
            subject, data = _changed(subject, data, rng)
    return ""


def _changed(s: Subject, data: Data, rng: np.random.Generator) -> tuple[Subject, Data]:
    """Other numbers for half of the inputs, and sometimes a longer or shorter `x`."""
    s = replace(s, layout=s.layout.with_other_length(rng))
    new = s.layout.data(rng)
    return s, {n: x if n == "x" or rng.random() < 0.5 else data[n] for n, x in new.items()}


Mode = Callable[[tuple[Any, ...], tuple[Any, ...]], Data]
"""Arguments and their tangents -> results by name: `out`, `dot`, and gradients."""


def _modes(s: Subject) -> dict[str, Mode]:
    graph, graph_of_loss = sad.graph(s.__call__), sad.graph(s.loss)
    gradient = sad.grad(s.loss, s.differentiable)
    graph_of_gradient = sad.graph(gradient)
    value_and_grad = sad.value_and_grad(graph_of_loss, s.differentiable)
    graph_of_tangent = sad.graph(lambda args, dots: sad.jvp(s.__call__, args, dots)[1])

    def vjp(f: Any) -> Mode:
        def mode(args: tuple[Any, ...], _: Any) -> Data:
            out, pullback = sad.vjp(f, *args)
            return {"out": plain(out), **_named(s, pullback(s.state.bar))}

        return mode

    def jvp(f: Any) -> Mode:
        def mode(args: tuple[Any, ...], dots: tuple[Any, ...]) -> Data:
            out, dot = sad.jvp(f, args, dots)
            return {"out": plain(out), "dot": plain(dot)}

        return mode

    def with_value(args: tuple[Any, ...], _: Any) -> Data:
        value, gradients = value_and_grad(*args)
        return {"loss": plain(value), **_named(s, gradients, s.differentiable)}

    def moved(f: Any) -> Mode:
        def mode(args: tuple[Any, ...], dots: tuple[Any, ...]) -> Data:
            return {f"moved {n}": x for n, x in _named(s, _tuple(sad.hvp(f, args, dots))).items()}

        return mode

    return {
        "call": lambda args, _: {"out": plain(s(*args))},
        "graph": lambda args, _: {"out": plain(graph(*args))},
        "vjp": vjp(s.__call__),
        "vjp of graph": vjp(graph),
        "grad in graph": lambda args, _: _named(s, graph_of_gradient(*args), s.differentiable),
        "value_and_grad": with_value,
        "jvp": jvp(s.__call__),
        "jvp of graph": jvp(graph),
        "jvp in graph": lambda args, dots: {"dot": plain(graph_of_tangent(args, dots))},
        "hvp": moved(s.loss),
        "hvp of graph": moved(graph_of_loss),
    }


def _tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _named(s: Subject, gradients: Any, positions: Any = None) -> Data:
    """Gradients of arguments by the names of their numbers."""
    found: Data = {}
    positions = range(len(s.arguments)) if positions is None else positions
    for k, gradient in zip(positions, gradients, strict=True):
        if s.arguments[k] != "turn":
            found.update(parts_of(s.arguments[k], gradient))
        elif gradient is not None:
            found["turn"] = plain(gradient)
    return found


def _round(
    s: Subject, modes: Mapping[str, Mode], data: Data, rng: np.random.Generator, device: sad.Device
) -> str:
    """Runs all modes at `data`; what is wrong with the first that is."""
    inputs, all_dots = on_device(data, s.layout), s.layout.directions(rng)
    bar = np.float32(rng.uniform(-1, 1, s.layout.shapes["x"]))
    for name in NAMES:
        if name not in s.arguments:
            setattr(s.state, name, getattr(inputs, name))
    s.state.bar = sad.array(bar)
    args = tuple(getattr(inputs, name) for name in s.arguments)
    dots = tuple(getattr(as_tangents(all_dots, s.layout), name) for name in s.arguments)
    expected = _Expected(s, data, all_dots, bar)
    for name, mode in modes.items():
        try:
            found = mode(args, dots)
        except Exception as failure:
            return f"{name}: {type(failure).__name__}: {failure}"
        difference = expected.difference(found, device)
        if difference:
            return f"{name}: {difference}"
    return ""


class _Expected:
    """Results of a function in PyTorch."""

    def __init__(self, s: Subject, data: Data, dots: Data, bar: Any) -> None:
        self._subject, self._data, self._bar = s, data, torch.tensor(np.float64(bar))
        self._parts = [p for n in s.arguments for p in PARTS[n] if p in dots]
        self._dots = {p: torch.tensor(np.float64(dots[p])) for p in self._parts}

    def difference(self, found: Data, device: sad.Device) -> str:
        is_second = any(name.startswith("moved") for name in found)
        exact = self._at(self._data, is_second)
        allowed = max(TOLERANCE, TERMS * sine_error(device), TERMS * filter_error(device))
        others: list[Data] = []
        for name, x in found.items():
            wanted = exact[name]
            if x.shape != wanted.shape:
                return f"{name} has shape {x.shape}, not {wanted.shape}"
            scale = 1 + np.abs(wanted).max(initial=0)
            error = np.abs(x - wanted).max(initial=0) / scale
            if error <= allowed:
                continue
            others = others or [self._at(self._nearby(seed), is_second) for seed in range(4)]
            moved = max(np.abs(other[name] - wanted).max(initial=0) / scale for other in others)
            if not error <= 2 * moved:
                return f"{name} is off by {error:.1e}, and moves by {moved:.1e} with its inputs"
        return ""

    def _nearby(self, seed: int) -> Data:
        rng = np.random.default_rng(seed)

        def changed(x: Any) -> Any:
            if np.asarray(x).dtype.kind != "f":
                return x
            return np.float64(x) * (1 + ROUNDED * rng.choice((-1, 1), np.shape(x)))

        return {name: changed(x) for name, x in self._data.items()}

    def _at(self, data: Data, is_second: bool) -> Data:
        tensors = in_torch(data, self._subject.layout)

        def function(parts: Any) -> Any:
            return self._subject.function.in_torch({**tensors, **parts})

        def gradient(parts: Any) -> Any:
            return torch.func.vjp(function, parts)[1](self._bar)[0]

        parts = {p: tensors[p] for p in self._parts}
        out, dot = torch.func.jvp(function, (parts,), (self._dots,))
        results = {"out": out, "dot": dot, "loss": (out * self._bar).sum(), **gradient(parts)}
        if is_second:
            moved = torch.func.jvp(gradient, (parts,), (self._dots,))[1]
            results |= {f"moved {name}": x for name, x in moved.items()}
        return {name: x.numpy(force=True) for name, x in results.items()}
