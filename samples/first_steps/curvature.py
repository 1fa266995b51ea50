"""Second derivatives: Newton's method by Hessian-vector products.

`sad.hvp` returns the derivative of a gradient along a direction, so conjugate gradients can solve
for Newton's step without a Hessian. The chain below is longest if each link has length 1 and the
chain is straight.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import shaderad as sad


@sad.kernel
def energy(i: sad.Index, x: sad.In[float], total: sad.Add[float]):
    link = x[i + 1] - x[i] * x[i]
    total[0] += 10.0 * link * link + (1.0 - x[i]) * (1.0 - x[i])


START = np.float32([-1.0, 0.5, 0.5, 2.0])


def chain_energy(x: sad.Array) -> sad.Array:
    return energy(x, dim=len(START) - 1, shapes={"total": 1})


def solved(
    product: Callable[[np.ndarray], np.ndarray], wanted: np.ndarray, count: int
) -> np.ndarray:
    """Conjugate gradients: `v` with ``product(v) == wanted``, or the last iterate before it."""
    v, rest = np.zeros_like(wanted), wanted
    direction = rest
    for _ in range(count):
        image = product(direction)
        curvature = direction @ image
        if curvature <= 1e-6 * (direction @ direction):  # not convex there: go downhill
            return v if v.any() else direction
        v = v + rest @ rest / curvature * direction
        smaller = rest - rest @ rest / curvature * image
        direction = smaller + smaller @ smaller / (rest @ rest + 1e-30) * direction
        rest = smaller
    return v


def newton(x: np.ndarray, count: int = 20) -> list[tuple[np.ndarray, float]]:
    """The points and energies of the steps, each halved until the energy falls."""
    path = [(x, chain_energy(x).item())]
    for _ in range(count):
        x, before = path[-1]
        slope = sad.grad(chain_energy)(x).numpy()
        step = solved(lambda v, x=x: sad.hvp(chain_energy, x, v).numpy(), -slope, len(x))
        while chain_energy(x + step).item() > before and np.abs(step).max() > 1e-6:
            step = step / 2
        path.append((x + step, min(chain_energy(x + step).item(), before)))
    return path


def main() -> None:
    for k, (x, value) in enumerate(newton(START)):
        if k % 4 == 0:
            print(f"step {k:2}: energy {value:.2e} at", *np.round(x, 3))


if __name__ == "__main__":
    main()
