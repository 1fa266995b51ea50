"""Random functions on arrays that call kernels, beside the same in PyTorch.

A step takes the inputs and two arrays of shape (n,) and returns a third. Steps call kernels, at
once or under a loop, a map, or a derivative, which nest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

import shaderad as sad
from tests.random_graphs.kernels import Function, Inputs, Tensors, Twin, twins

Rng = np.random.Generator
DEEPEST = 2
"""Transforms around one kernel call."""
GAINS = (0.5, -0.75, 1.25)
DIFFERENTIATED = {
    "gain": ("gain", lambda g: g, lambda g: g),
    "table": ("table", lambda g: g, lambda g: g),
    "picture": ("texels", lambda g: g.y - 0.5 * g.w, lambda g: g[..., 1] - 0.5 * g[..., 3]),
    "mask": ("bytes", lambda g: g.x, lambda g: g[..., 0]),
    "particles": ("rate", lambda g: g.spin.rate, lambda g: g),
    "lens": ("lens_gain", lambda g: g.gain, lambda g: g),
    "cloud": ("rates", lambda g: g.spins.rates, lambda g: g),
}
"""Inputs by which a function is differentiated, the number in PyTorch, and what is summed."""


@dataclass(frozen=True)
class Step:
    """A twin, and the positions of its two arrays among the values before it."""

    twin: Twin
    first: int
    second: int


@dataclass(frozen=True)
class RandomFunction:
    """Steps in a row; the result is the last value plus the one before it."""

    steps: tuple[Step, ...]

    def on_device(self, inputs: Inputs) -> Any:
        return self._run(inputs, inputs.x, lambda step: step.twin.device, sad.sin)

    def in_torch(self, inputs: Tensors) -> Any:
        return self._run(inputs, inputs["x"], lambda step: step.twin.torch, torch.sin)

    def _run(self, inputs: Any, x: Any, side: Callable[[Step], Function], sine: Any) -> Any:
        values = [x]
        for step in self.steps:
            a, b = (values[k % len(values)] for k in (step.first, step.second))
            values.append(sine(side(step)(inputs, a, b)))
        return values[-1] + 0.5 * values[-2]


def drawn(rng: Rng) -> RandomFunction:
    options = {"wrap": pick(rng, ("repeat", "clamp", "mirror")), "level": pick(rng, (0.0, 0.5))}
    kernels = tuple(twins(options).values())
    steps = [
        Step(nested(rng, kernels), int(rng.integers(9)), int(rng.integers(9)))
        for _ in range(rng.integers(1, 5))
    ]
    return RandomFunction(tuple(steps))


def pick(rng: Rng, choices: Any) -> Any:
    return choices[rng.integers(len(choices))]


def nested(rng: Rng, kernels: tuple[Twin, ...]) -> Twin:
    """A kernel call with up to `DEEPEST` transforms around it."""
    twin: Twin = pick(rng, kernels)
    for _ in range(rng.integers(DEEPEST + 1)):
        twin = pick(rng, AROUND)(rng, twin)
    return twin


# -- around a call ----------------------------------------------------------------------------


def looped(rng: Rng, f: Twin) -> Twin:
    """The array goes around, and meets a number that moves with the counter."""
    count = int(rng.integers(4))

    def device(w: Inputs, a: Any, b: Any) -> Any:
        return sad.fori_loop(count, lambda _, c: sad.sin(f.device(w, c, b)) + 0.5 * c, a)

    def in_torch(w: Tensors, a: Any, b: Any) -> Any:
        for _ in range(count):
            a = torch.sin(f.torch(w, a, b)) + 0.5 * a
        return a

    return Twin(device, in_torch)


def counted(rng: Rng, f: Twin) -> Twin:
    """The counter of the loop is an argument of the kernel."""
    first = int(rng.integers(3))

    def device(w: Inputs, a: Any, b: Any) -> Any:
        return sad.fori_loop(first, 3, lambda k, c: sad.sin(f.device(replace(w, turn=k), c, b)), a)

    def in_torch(w: Tensors, a: Any, b: Any) -> Any:
        for k in range(first, 3):
            a = torch.sin(f.torch({**w, "turn": k}, a, b))
        return a

    return Twin(device, in_torch)


def scanned(rng: Rng, f: Twin) -> Twin:
    """Rows go in one after the other, and come out; a row is an array, or the number `gain`."""
    is_number = bool(rng.integers(2))

    def device(w: Inputs, a: Any, b: Any) -> Any:
        def body(carry: Any, row: Any) -> Any:
            y = f.device(replace(w, gain=row), carry, b) if is_number else f.device(w, carry, row)
            return sad.sin(y), y * 0.5

        rows = np.float32(GAINS) if is_number else sad.stack([b, a, 0.5 * b])
        last, ys = sad.loop(body, a, rows)
        return last + sad.sum(ys, axis=0)

    def in_torch(w: Tensors, a: Any, b: Any) -> Any:
        carry, total = a, torch.zeros_like(a)
        for gain, row in zip(GAINS, (b, a, 0.5 * b), strict=True):
            gain = torch.tensor(gain, dtype=torch.float64)
            y = f.torch({**w, "gain": gain}, carry, b) if is_number else f.torch(w, carry, row)
            carry, total = torch.sin(y), total + 0.5 * y
        return carry + total

    return Twin(device, in_torch)


def bounded(rng: Rng, f: Twin) -> Twin:
    """A `while_loop` that a counter ends."""
    count = int(rng.integers(4))

    def device(w: Inputs, a: Any, b: Any) -> Any:
        def body(carry: Any) -> Any:
            return carry[0] + 1, sad.sin(f.device(w, carry[1], b))

        return sad.while_loop(lambda c: c[0] < count, body, (sad.array(0), a), limit=5)[1]

    def in_torch(w: Tensors, a: Any, b: Any) -> Any:
        for _ in range(count):
            a = torch.sin(f.torch(w, a, b))
        return a

    return Twin(device, in_torch)


def mapped(rng: Rng, f: Twin) -> Twin:
    """Over rows of the first array, of both, or over numbers."""
    kind = pick(rng, ("first", "both", "gain", "table", "turn"))

    def rows_of(stack: Any, a: Any, b: Any) -> tuple[Any, Any]:
        return stack([a, 0.5 * b, a * b]), stack([b, -a, 0.25 * a])

    def device(w: Inputs, a: Any, b: Any) -> Any:
        firsts, seconds = rows_of(sad.stack, a, b)
        if kind == "first":
            ys = sad.vmap(lambda row: f.device(w, row, b))(firsts)
        elif kind == "both":
            ys = sad.vmap(lambda row, other: f.device(w, row, other))(firsts, seconds)
        elif kind == "turn":
            ys = sad.vmap(lambda k: f.device(replace(w, turn=k), a, b))(np.int32([0, 2, 1]))
        elif kind == "gain":
            ys = sad.vmap(lambda g: f.device(replace(w, gain=g), a, b))(np.float32(GAINS))
        else:
            tables = sad.stack([w.table, 0.5 * w.table, -w.table])
            ys = sad.vmap(lambda t: f.device(replace(w, table=t), a, b))(tables)
        return ys[0] + 0.5 * ys[1] - 0.25 * ys[2]

    def in_torch(w: Tensors, a: Any, b: Any) -> Any:
        firsts, seconds = rows_of(list, a, b)
        if kind == "first":
            ys = [f.torch(w, row, b) for row in firsts]
        elif kind == "both":
            ys = [f.torch(w, row, other) for row, other in zip(firsts, seconds, strict=True)]
        elif kind == "turn":
            ys = [f.torch({**w, "turn": k}, a, b) for k in (0, 2, 1)]
        elif kind == "gain":
            gains = torch.tensor(GAINS, dtype=torch.float64)
            ys = [f.torch({**w, "gain": g}, a, b) for g in gains]
        else:
            ys = [f.torch({**w, "table": s * w["table"]}, a, b) for s in (1.0, 0.5, -1.0)]
        return ys[0] + 0.5 * ys[1] - 0.25 * ys[2]

    return Twin(device, in_torch)


def pushed(_: Rng, f: Twin) -> Twin:
    return Twin(
        lambda w, a, b: sad.jvp(lambda a: f.device(w, a, b), (a,), (b,))[1],
        lambda w, a, b: torch.func.jvp(lambda a: f.torch(w, a, b), (a,), (b,))[1],
    )


def pulled(_: Rng, f: Twin) -> Twin:
    return Twin(
        lambda w, a, b: sad.vjp(lambda a: f.device(w, a, b), a)[1](b)[0],
        lambda w, a, b: torch.func.vjp(lambda a: f.torch(w, a, b), a)[1](b)[0],
    )


def pulled_by_input(rng: Rng, f: Twin) -> Twin:
    """The sum of a gradient by a number, an array, a texture or a struct, or of a part of it."""
    name = pick(rng, tuple(DIFFERENTIATED))
    part, part_on_device, part_in_torch = DIFFERENTIATED[name]

    def device(w: Inputs, a: Any, b: Any) -> Any:
        def total(x: Any) -> Any:
            return sad.sum(f.device(replace(w, **{name: x}), a, b))

        return a + 0.1 * sad.sum(part_on_device(sad.grad(total)(getattr(w, name))))

    def in_torch(w: Tensors, a: Any, b: Any) -> Any:
        gradient = torch.func.grad(lambda x: f.torch({**w, part: x}, a, b).sum())(w[part])
        return a + 0.1 * part_in_torch(gradient).sum()

    return Twin(device, in_torch)


def checkpointed(_: Rng, f: Twin) -> Twin:
    def device(w: Inputs, a: Any, b: Any) -> Any:
        return sad.checkpoint(lambda a, b: f.device(w, a, b))(a, b)

    return Twin(device, f.torch)


def in_graph(_: Rng, f: Twin) -> Twin:
    """A graph inside of the function, which captures its inputs."""

    def device(w: Inputs, a: Any, b: Any) -> Any:
        return sad.graph(lambda a, b: f.device(w, a, b))(a, b)

    return Twin(device, f.torch)


AROUND = (
    looped, counted, scanned, bounded, mapped, mapped, pushed, pulled, pulled_by_input,
    checkpointed, in_graph,
)  # fmt: skip
