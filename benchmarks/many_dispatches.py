"""A gradient step of 20 dispatches over arrays of 1,000 elements, against the same by hand.

    python benchmarks/many_dispatches.py [wgpu|slangpy ...]

The step is written as a user would write it. By hand, the same programs are recorded in raw wgpu
or slangpy; pipelines, bind groups, buffers and (in wgpu) parameters are made before. Both sides
make one submission a step and wait for its end; ours also looks for reports of bad indices.
"""

# Names of sizes stand in quotes.
# ruff: noqa: UP037, F821

from __future__ import annotations

import statistics
import sys
from typing import Any

import numpy as np
from by_hand import Bound, bound, framed, prepared, recorded
from timing import alternated, median_ratio, on_each

import shaderad as sad
from shaderad.execute.commands import Dispatch, Fill

ELEMENTS = 1000
DIFFUSIONS = 10
"""With as many backward, 20 dispatches: the difference to the target and the update are fused."""
GOAL = 1.5


@sad.kernel
def diffused(i: sad.Index, u: sad.In[float], result: sad.Out[float]):
    left = u[sad.max(i - 1, 0)]
    right = u[sad.min(i + 1, len(u) - 1)]
    result[i] = u[i] + 0.25 * (left - 2.0 * u[i] + right) - 0.1 * u[i] ** 3


def miss(u: sad.Array, target: sad.Array) -> sad.Array:
    """How far from `target` a state ends that diffuses and decays."""
    for _ in range(DIFFUSIONS):
        u = diffused(u, dim=u.shape[0])
    difference = u - target
    return sad.sum(difference * difference)


@sad.graph
def descended(u: sad.Array[float, "n"], target: sad.Array[float, "n"]) -> sad.Array[float]:
    """`u`, one step of gradient descent further."""
    return u - 0.1 * sad.grad(miss)(u, target)


class Ours:
    """The step by shaderad."""

    def __init__(self, device: sad.Device, element_count: int) -> None:
        u, target = np.random.default_rng(0).random((2, element_count), np.float32)
        self.arguments = [sad.array(x, device=device) for x in (u, target)]
        self.device = device
        self._u = self.arguments[0]

    def step(self) -> None:
        self._u = descended(self._u, self.arguments[1])
        self.device.synchronize()

    def first(self) -> np.ndarray[Any, Any]:
        """What the first step comes to."""
        return descended(*self.arguments).numpy()


class ByHand:
    """The same dispatches over buffers of their own; each step is the first.

    What gradients are added to never serves for anything else, so all of it is zeroed at the
    start of a step and one pass takes all dispatches.
    """

    def __init__(self, ours: Ours) -> None:
        plan, inputs = prepared(descended, ours.arguments, ours.device)
        self.runtime = plan.device.runtime
        self.dispatches: list[Bound] = []
        zeroed: list[Any] = []
        frame = framed(plan, inputs)
        for command in plan.commands:
            if isinstance(command, Fill):
                assert command.word == 0
                frame[command.target] = self.runtime.allocate(command.byte_count)
                zeroed.append(frame[command.target].native)
            else:
                assert isinstance(command, Dispatch)
                self.dispatches.append(bound(command, frame))
        self._result = frame[plan.outputs[0][2]]
        self.runtime.wait()
        self.step = recorded(plan.device, zeroed, self.dispatches)

    def result(self) -> np.ndarray[Any, Any]:
        (content,) = self.runtime.read([(self._result, 0, self._result.byte_count)])
        return np.frombuffer(content, np.float32)


def compare(runtime: str, element_count: int = ELEMENTS, rounds: int = 300) -> None:
    """Prints a line on one runtime."""
    device = sad.open_device(runtime)
    ours = Ours(device, element_count)
    by_hand = ByHand(ours)
    by_hand.step()
    # Neighbours add to one cotangent, in any order.
    np.testing.assert_allclose(by_hand.result(), ours.first(), rtol=1e-6)
    times = alternated({"ours": ours.step, "by hand": by_hand.step}, rounds)
    ratio = median_ratio(times["ours"], times["by hand"])
    ours_us, by_hand_us = (1e3 * statistics.median(one) for one in times.values())
    print(
        f"{runtime:8} {len(by_hand.dispatches)} dispatches a step: shaderad {ours_us:.0f} us, "
        f"by hand {by_hand_us:.0f} us, {ratio:.2f}x"
        f"{f'  above {GOAL}x' if ratio > GOAL else ''}"
    )
    device.close()


def main() -> None:
    on_each(sys.argv[1:], compare)


if __name__ == "__main__":
    main()
