"""A fluid on a periodic grid, with smoke in it, and a step of the fit of its first velocities.

Each time step moves velocities and smoke along the velocities. It then subtracts the gradient of a
pressure, computed by Jacobi sweeps, so that the fluid is not compressed. Each loop fits into one
workgroup, so a step of the fit takes a handful of dispatches. `shaderad build` compiles this file
for the web page.

Stam, "Stable fluids", 1999; Treuille et al., "Keyframe control of smoke simulations", 2003.
"""

# Names of sizes are strings.
# ruff: noqa: UP037, F821

from __future__ import annotations

from typing import Any, TypedDict

import shaderad as sad
from shaderad import float2, float3

TIME_STEPS, SWEEPS = 100, 10
SMOOTHING = 2.0
"""Cells over which the fitted velocities are smoothed, because smoke does not show single cells."""
ADAM = sad.optim.Adam(0.02, beta2=0.99)
PAPER, INK = (0.93, 0.92, 0.89), (0.07, 0.1, 0.17)


class State(TypedDict):
    """The state of `ADAM` between steps."""

    mean: sad.Array[float2, "n", "n"]
    square: sad.Array[float2, "n", "n"]
    mean_weight: float
    square_weight: float


@sad.struct
class Corners:
    """The four cells around a point, and the weights of those to the right and below."""

    left: int
    right: int
    top: int
    bottom: int
    share: float2


@sad.function
def around(place: float2, n: int) -> Corners:
    low = sad.floor(place)
    x, y = int(low.x) % n, int(low.y) % n
    return Corners(x, (x + 1) % n, y, (y + 1) % n, place - low)


@sad.kernel
def advect(
    y: sad.Index,
    x: sad.Index,
    velocity: sad.In[float2, 2],
    smoke: sad.In[float, 2],
    new_velocity: sad.Out[float2, 2],
    new_smoke: sad.Out[float, 2],
):
    """Moves velocity and smoke by a time step: each cell reads its source, bilinearly."""
    c = around(float2(x, y) - velocity[y, x], smoke.shape[0])
    new_velocity[y, x] = sad.lerp(
        sad.lerp(velocity[c.top, c.left], velocity[c.top, c.right], c.share.x),
        sad.lerp(velocity[c.bottom, c.left], velocity[c.bottom, c.right], c.share.x),
        c.share.y,
    )
    new_smoke[y, x] = sad.lerp(
        sad.lerp(smoke[c.top, c.left], smoke[c.top, c.right], c.share.x),
        sad.lerp(smoke[c.bottom, c.left], smoke[c.bottom, c.right], c.share.x),
        c.share.y,
    )


@sad.kernel
def divergence(y: sad.Index, x: sad.Index, velocity: sad.In[float2, 2], out: sad.Out[float, 2]):
    n = velocity.shape[0]
    across = velocity[y, (x + 1) % n].x - velocity[y, (x + n - 1) % n].x
    along = velocity[(y + 1) % n, x].y - velocity[(y + n - 1) % n, x].y
    out[y, x] = 0.5 * (across + along)


@sad.kernel
def sweep(
    y: sad.Index,
    x: sad.Index,
    pressure: sad.In[float, 2],
    excess: sad.In[float, 2],
    out: sad.Out[float, 2],
):
    n = pressure.shape[0]
    beside = pressure[y, (x + 1) % n] + pressure[y, (x + n - 1) % n]
    above = pressure[(y + 1) % n, x] + pressure[(y + n - 1) % n, x]
    out[y, x] = 0.25 * (beside + above - excess[y, x])


@sad.kernel
def relieve(
    y: sad.Index,
    x: sad.Index,
    velocity: sad.In[float2, 2],
    pressure: sad.In[float, 2],
    out: sad.Out[float2, 2],
):
    n = pressure.shape[0]
    across = pressure[y, (x + 1) % n] - pressure[y, (x + n - 1) % n]
    along = pressure[(y + 1) % n, x] - pressure[(y + n - 1) % n, x]
    out[y, x] = velocity[y, x] - 0.5 * float2(across, along)


def incompressible(velocity: Any) -> Any:
    """`velocity` without the part that would compress the fluid."""
    excess = divergence(velocity)
    pressure = sad.fori_loop(SWEEPS, lambda _, p: sweep(p, excess), sad.zeros(excess.shape))
    return relieve(velocity, pressure)


def moved(velocity: Any, smoke: Any) -> tuple[Any, Any]:
    """Velocity and smoke after one time step."""
    velocity, smoke = advect(velocity, smoke)
    return incompressible(velocity), smoke


def smeared(velocity: Any) -> Any:
    """`velocity` convolved with a bell curve of the width `SMOOTHING`."""
    reach = int(3 * SMOOTHING)
    bell = sad.exp(-0.5 * (sad.arange(-reach, reach + 1) / SMOOTHING) ** 2)
    weights = bell[:, None] * bell / sad.sum(bell) ** 2
    parts = sad.stack([velocity.x, velocity.y])[:, None]
    x, y = sad.conv(parts, weights[None, None], padding=reach)[:, 0]
    return float2(x, y)


def error(velocity: Any, start: Any, goal: Any) -> Any:
    """The mean squared difference between `goal` and the smoke after all time steps."""
    carry = incompressible(smeared(velocity)), start
    _, smoke = sad.fori_loop(TIME_STEPS, lambda _, carry: moved(*carry), carry)
    return sad.mean((smoke - goal) ** 2)


@sad.graph
def step(
    start: sad.Array[float, "n", "n"],
    goal: sad.Array[float, "n", "n"],
    velocity: sad.Array[float2, "n", "n"],
    state: State,
) -> Any:
    """The error of the first velocities, and the velocities and state after one step of the fit."""
    value, gradient = sad.value_and_grad(error)(velocity, start, goal)
    return value, *ADAM.step(velocity, gradient, state)


@sad.graph
def film(
    start: sad.Array[float, "n", "n"], velocity: sad.Array[float2, "n", "n"]
) -> sad.Array[float3]:
    """Pictures of the smoke before the first time step and after each."""

    def seen(carry: Any, _: Any) -> Any:
        velocity, smoke = moved(*carry)
        return (velocity, smoke), smoke

    carry = incompressible(smeared(velocity)), start
    _, smoke = sad.loop(seen, carry, sad.arange(TIME_STEPS))
    return drawn(sad.concatenate([start[None], smoke]))


@sad.graph
def wanted(goal: sad.Array[float, "n", "n"]) -> sad.Array[float3]:
    """A picture of the target."""
    return drawn(goal)


def drawn(smoke: Any) -> Any:
    """The smoke as ink on paper."""
    return float3(*(paper + (ink - paper) * smoke for paper, ink in zip(PAPER, INK, strict=True)))
