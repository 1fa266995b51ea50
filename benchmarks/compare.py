"""shaderad's gradients against hand-written Slang, on the same device in turn; W4 also against JAX.

    python benchmarks/compare.py [W1|W2|W3|W4 ...]

Bounds checks are on, inputs are resident, zeroing and waiting count on all sides. Ratios are
medians over pairs that ran one after the other. slangpy is judged against the hand-written
program, which slangpy dispatches too; wgpu is shown beside it. Where the value is wanted besides,
that is held against the gradient alone.
"""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from jax_opponent import jax_opponent
from opponents import Opponent
from timing import Floats, alternated, dispatch_count, median_ratio, relative_error
from workloads import WORKLOADS, Workload

import shaderad as sad
from shaderad import float2, float3, int3


@sad.kernel
def interpolation_loss(
    i: sad.Index,
    attributes: sad.In[float3],
    triangles: sad.In[int3],
    face: sad.In[int],
    uv: sad.In[float2],
    target: sad.In[float3],
    loss: sad.Add[float],
):
    corner = triangles[face[i]]
    w = uv[i]
    color = (
        attributes[corner.x] * (1.0 - w.x - w.y)
        + attributes[corner.y] * w.x
        + attributes[corner.z] * w.y
    )
    miss = color - target[i]
    loss[0] += sad.dot(miss, miss)


@sad.kernel
def parabola_loss(
    i: sad.Index,
    parameters: sad.In[float],
    x: sad.In[float],
    y: sad.In[float],
    loss: sad.Add[float],
):
    miss = parameters[0] * x[i] * x[i] + parameters[1] * x[i] + parameters[2] - y[i]
    loss[0] += miss * miss


@sad.graph
def chain_loss(x: sad.Array[float, "n"]) -> sad.Array[float]:
    for _ in range(4):
        x = sad.tanh(sad.exp(0.5 * sad.sin(x)))
    return sad.sum(x)


@sad.graph
def scan_product(x: sad.Array[float, "n"]) -> sad.Array[float]:
    return sad.sum(sad.scan(sad.mul, x) * x)


@dataclass(frozen=True)
class Contest:
    loss: Callable[..., Any]
    dtypes: dict[str, Any]
    """Element types, in the order of the arguments."""
    ratio_goal: float
    """Against the hand-written program."""
    error_goal: float = 1e-5
    dispatch_goal: int | None = None
    value_goal: float | None = None
    """Of the value and the gradient, against the gradient alone."""
    dim_of: str | None = None
    """Of a kernel: the input that has one element a thread."""

    def call(self, inputs: dict[str, Floats]) -> dict[str, Any]:
        """The keywords of a call."""
        if self.dim_of is None:
            return {}
        return {"dim": len(inputs[self.dim_of]), "shapes": {"loss": (1,)}}


CONTESTS = {
    "W1": Contest(
        interpolation_loss,
        {"attributes": float3, "triangles": int3, "face": int, "uv": float2, "target": float3},
        ratio_goal=1.1,
        value_goal=1.1,
        dim_of="face",
    ),
    "W2": Contest(
        parabola_loss,
        {"parameters": float, "x": float, "y": float},
        ratio_goal=1.2,
        value_goal=1.1,
        dim_of="x",
    ),
    "W3": Contest(chain_loss, {"x": float}, ratio_goal=1.15, dispatch_goal=1),
    "W4": Contest(scan_product, {"x": float}, ratio_goal=2.0, error_goal=1e-4),
}


AND_VALUE = " and value"
"""Ends the names of sides that give the value, too."""


class Side(Protocol):
    """Somebody who finds the gradient."""

    def step(self) -> None:
        """One gradient, from inputs where they are to the end of its computation."""
        ...

    def gradient(self) -> Floats:
        """What the last step found."""
        ...


class Ours:
    """The gradient by shaderad on one device."""

    def __init__(
        self, contest: Contest, inputs: dict[str, Floats], device: sad.Device, *,
        with_value: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        self._device = device
        self._arguments = [
            sad.array(inputs[name], dtype=dtype, device=device)
            for name, dtype in contest.dtypes.items()
        ]
        self._differentiated = (
            sad.value_and_grad(contest.loss) if with_value else sad.grad(contest.loss)
        )
        self._with_value = with_value
        self._call = contest.call(inputs) | options
        self._gradient: sad.Array | None = None

    def record(self) -> Any:
        """A step that does not wait for its result, the gradient."""
        result = self._differentiated(*self._arguments, **self._call)
        self._gradient = result[1] if self._with_value else result
        return self._gradient

    def step(self) -> None:
        self.record()
        self._device.synchronize()

    def gradient(self) -> Floats:
        assert self._gradient is not None
        return self._gradient.numpy()

    def dispatch_count(self) -> int:
        """The dispatches of one step."""
        return dispatch_count(self._device, self.step)


def sides_of(name: str, workload: Workload) -> tuple[Opponent, Side | None, dict[str, Ours]]:
    """The hand-written program, JAX where it takes part, and shaderad by runtime."""
    ours: dict[str, Ours] = {}
    for runtime in ("slangpy", "wgpu"):
        try:
            device = sad.open_device(runtime)
            for what in ("", AND_VALUE):
                ours[runtime + what] = Ours(
                    CONTESTS[name], workload.inputs, device, with_value=bool(what)
                )
        except sad.DeviceError as failure:
            print(f"{name} {runtime} not here: {failure.message}")
    return Opponent(name, workload), jax_opponent(name, workload.inputs), ours


@dataclass(frozen=True)
class Line:
    """What is known of one side in the end."""

    name: str
    milliseconds: float
    error: float
    ratio: float | None = None
    ratio_to_gradient: float | None = None
    ratio_to_jax: float | None = None
    dispatch_count: int | None = None

    def text(self) -> str:
        parts = [f"{self.name:27} {self.milliseconds:8.1f} ms  error {self.error:.1e}"]
        if self.ratio is not None:
            parts.append(f"{self.ratio:.2f}x of by hand")
        if self.ratio_to_gradient is not None:
            parts.append(f"{self.ratio_to_gradient:.2f}x of the gradient")
        if self.ratio_to_jax is not None:
            parts.append(f"{self.ratio_to_jax:.2f}x of jax")
        if self.dispatch_count is not None:
            parts.append(f"dispatches {self.dispatch_count}")
        return "  ".join(parts)

    def missed(self, contest: Contest) -> list[str]:
        """The goals that one of our sides fell short of."""
        goals = (
            (self.ratio, contest.ratio_goal, f"{contest.ratio_goal}x of by hand"),
            (self.ratio_to_gradient, contest.value_goal, f"{contest.value_goal}x of the gradient"),
            (self.ratio_to_jax, 1.0, "jax"),
            (self.error, contest.error_goal, f"an error of {contest.error_goal:.0e}"),
            (self.dispatch_count, contest.dispatch_goal, f"{contest.dispatch_goal} dispatches"),
        )
        return [
            said
            for found, goal, said in goals
            if found is not None and goal is not None and found > goal
        ]


def compare(name: str, count: int | None = None, rounds: int = 15) -> list[Line]:
    """Runs one workload on every runtime that opens here and prints a line a side."""
    contest = CONTESTS[name]
    workload = WORKLOADS[name]() if count is None else WORKLOADS[name](count)
    by_hand, by_jax, ours = sides_of(name, workload)
    sides: dict[str, Side] = {"by hand": by_hand}
    sides |= {"jax, cpu": by_jax} if by_jax is not None else {}
    sides |= {f"shaderad {runtime}": our for runtime, our in ours.items()}
    times = alternated({key: side.step for key, side in sides.items()}, rounds)
    lines: list[Line] = []
    for key, side in sides.items():
        is_ours = isinstance(side, Ours)
        is_gradient = is_ours and not key.endswith(AND_VALUE)
        line = Line(
            name=key,
            milliseconds=statistics.median(times[key]),
            error=relative_error(side.gradient(), workload.reference),
            ratio=median_ratio(times[key], times["by hand"])
            if is_gradient or side is by_jax
            else None,
            ratio_to_gradient=median_ratio(times[key], times[key.removesuffix(AND_VALUE)])
            if key.endswith(AND_VALUE)
            else None,
            ratio_to_jax=median_ratio(times[key], times["jax, cpu"])
            if is_gradient and by_jax is not None
            else None,
            dispatch_count=side.dispatch_count()
            if isinstance(side, Ours) and is_gradient
            else None,
        )
        missed = line.missed(contest) if is_ours else []
        print(name, line.text(), f"  above {', '.join(missed)}" if missed else "")
        lines.append(line)
    return lines


def main() -> None:
    for name in sys.argv[1:] or CONTESTS:
        compare(name)


if __name__ == "__main__":
    main()
