"""shaderad's gradients against hand-written Slang, on the same device in turn.

    python benchmarks/compare.py [W1|W2 ..]

Bounds checks are on, inputs are resident, zeroing and waiting count on both sides. The ratio is
the median over pairs that ran one after the other. slangpy is judged against the hand-written
program, which slangpy dispatches too; wgpu is shown beside it.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opponents import WORKLOADS, Floats, Opponent, alternated, relative_error

import shaderad as sad
from shaderad import float2, float3, int3

ERROR_GOAL = 1e-5


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


@dataclass(frozen=True)
class Contest:
    kernel: Callable[..., Any]
    dtypes: dict[str, Any]
    """Element types, in the order of the kernel's parameters."""
    dim_of: str
    """The input that has one element a thread."""
    ratio_goal: float


CONTESTS = {
    "W1": Contest(
        interpolation_loss,
        {"attributes": float3, "triangles": int3, "face": int, "uv": float2, "target": float3},
        "face",
        1.25,
    ),
    "W2": Contest(parabola_loss, {"parameters": float, "x": float, "y": float}, "x", 2.0),
}


class Ours:
    """The same gradient by shaderad on one device."""

    def __init__(self, contest: Contest, inputs: dict[str, Floats], device: sad.Device) -> None:
        self._device = device
        self._arguments = [
            sad.array(inputs[name], dtype=dtype, device=device)
            for name, dtype in contest.dtypes.items()
        ]
        self._gradient_of = sad.grad(contest.kernel)
        self._dim = len(inputs[contest.dim_of])
        self._gradient: sad.Array | None = None

    def step(self) -> None:
        """One gradient: zero, dispatch, wait."""
        self._gradient = self._gradient_of(*self._arguments, dim=self._dim, shapes={"loss": (1,)})
        self._device.synchronize()

    def gradient(self) -> Floats:
        """What the last step found."""
        assert self._gradient is not None
        return self._gradient.numpy()


def compare(name: str) -> None:
    """Runs one workload on every runtime that opens here and prints a line each."""
    contest, workload = CONTESTS[name], WORKLOADS[name]()
    by_hand = Opponent(name, workload)
    ours: dict[str, Ours] = {}
    for runtime in ("slangpy", "wgpu"):
        try:
            ours[runtime] = Ours(contest, workload.inputs, sad.open_device(runtime))
        except sad.DeviceError as failure:
            print(f"{name} {runtime} not here: {failure.message}")
    times = alternated({"by hand": by_hand.step, **{key: our.step for key, our in ours.items()}})
    hand_error = relative_error(by_hand.gradient(), workload.reference)
    hand = statistics.median(times["by hand"])
    print(f"{name} {'by hand':18} {hand:8.1f} ms         error {hand_error:.1e}")
    for runtime, our in ours.items():
        ratio = statistics.median(
            a / b for a, b in zip(times[runtime], times["by hand"], strict=True)
        )
        error = relative_error(our.gradient(), workload.reference)
        missed = " ".join(
            said
            for is_missed, said in (
                (ratio > contest.ratio_goal, f"above {contest.ratio_goal}x"),
                (error > ERROR_GOAL, f"above {ERROR_GOAL:.0e}"),
            )
            if is_missed
        )
        print(
            f"{name} {'shaderad ' + runtime:18} {statistics.median(times[runtime]):8.1f} ms  "
            f"{ratio:5.2f}x error {error:.1e}  {missed}".rstrip()
        )


def main() -> None:
    for name in sys.argv[1:] or CONTESTS:
        compare(name)


if __name__ == "__main__":
    main()
