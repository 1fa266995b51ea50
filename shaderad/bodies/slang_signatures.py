"""A kernel in Slang -> the parameters that the user's functions for it take.

A function takes its parameters by name, in any order: those of the kernel, the cotangents
``y_bar`` of its results, its gradients ``x_bar``, and the tangents ``x_dot`` and ``y_dot``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from shaderad.ir.nodes import Buffer, Kernel, Uniform
from shaderad.ir.types import Access, BufferType, Type, is_differentiable

X = TypeVar("X", Buffer, Buffer | Uniform)

BAR, DOT = "_bar", "_dot"
"""The ends of the names of cotangents and gradients, and of tangents."""


class Passed(Enum):
    """The content of a parameter."""

    __hash__ = object.__hash__

    UNIFORM = "uniform"
    INPUT = "input"
    RESULT = "result"
    COTANGENT = "cotangent"
    GRADIENT = "gradient"
    TANGENT = "tangent"
    RESULT_TANGENT = "result tangent"


@dataclass(frozen=True, slots=True)
class Expected:
    """A parameter that a function may have."""

    name: str
    type: str
    passed: Passed
    of: Buffer | Uniform
    """The array or uniform that it is, or whose derivative it is."""

    def __str__(self) -> str:
        return f"{self.type} {self.name}"


def primal_parameters(kernel: Kernel) -> Sequence[Expected]:
    """The parameters of the kernel, in order."""
    return [
        *_inputs(kernel),
        *(Expected(b.name, _view(b.access, b.type), Passed.RESULT, b) for b in _results(kernel)),
    ]


def backward_parameters(kernel: Kernel) -> Sequence[Expected]:
    """Inputs, the cotangents of results, and the gradients of inputs."""
    return [
        *_inputs(kernel),
        *(Expected(f"{b.name}{BAR}", _view(Access.IN, b.type), Passed.COTANGENT, b)
          for b in _floats(_results(kernel))),
        *(Expected(f"{x.name}{BAR}", _view(Access.ADD, x.type), Passed.GRADIENT, x)
          for x in _floats(p.of for p in _inputs(kernel))),
    ]  # fmt: skip


def forward_parameters(kernel: Kernel) -> Sequence[Expected]:
    """Inputs, their tangents, and the tangents of results."""
    return [
        *_inputs(kernel),
        *(Expected(f"{p.name}{DOT}", p.type, Passed.TANGENT, p.of)
          for p in _inputs(kernel) if is_differentiable(p.of.type)),
        *(Expected(f"{b.name}{DOT}", _view(b.access, b.type), Passed.RESULT_TANGENT, b)
          for b in _floats(_results(kernel))),
    ]  # fmt: skip


def _inputs(kernel: Kernel) -> list[Expected]:
    arrays = {b.name: Expected(b.name, _view(Access.IN, b.type), Passed.INPUT, b)
              for b in kernel.buffers if b.access is Access.IN}  # fmt: skip
    uniforms = {u.name: Expected(u.name, str(u.type), Passed.UNIFORM, u) for u in kernel.uniforms}
    both = arrays | uniforms
    return [both[p.name] for p in kernel.parameters if p.name in both]


def _results(kernel: Kernel) -> list[Buffer]:
    return [b for b in kernel.buffers if b.access is not Access.IN]


def _floats(items: Iterable[X]) -> list[X]:
    return [x for x in items if is_differentiable(x.type)]


def _view(access: Access, t: Type) -> str:
    """The Slang type of an array, or of the gradient of a uniform."""
    element, rank = (t.element, t.rank) if isinstance(t, BufferType) else (t, 1)
    return f"{access.value}<{element}>" if rank == 1 else f"{access.value}<{element}, {rank}>"
