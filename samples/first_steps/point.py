"""A struct with methods is a value like any other, with a derivative field by field."""

from __future__ import annotations

import numpy as np

import shaderad as sad


@sad.struct
class Point:
    x: float
    y: float
    label: int

    def moved(self, dx: float, dy: float) -> Point:
        return Point(self.x + dx, self.y + dy, self.label)

    def distance_squared(self, other: Point) -> float:
        return (self.x - other.x) ** 2 + (self.y - other.y) ** 2


@sad.kernel
def attraction(i: sad.Index, points: sad.In[Point], goal: Point, energy: sad.Add[float]):
    """Half the squared distance of every point, first moved up by one, from the goal."""
    energy[0] += 0.5 * points[i].moved(0.0, 1.0).distance_squared(goal)


def energy_and_gradients(points: np.ndarray, goal: Point) -> tuple[float, tuple]:
    """The energy, and its gradients by each point and by the goal."""
    by_points_and_goal = sad.value_and_grad(attraction, argnums=(0, 1))
    energy, gradients = by_points_and_goal(points, goal, dim=len(points), shapes={"energy": (1,)})
    return energy.item(), gradients


POINT = np.dtype([("x", np.float32), ("y", np.float32), ("label", np.int32)])
POINTS = np.array([(1.0, 2.0, 7), (3.0, 0.0, 8)], POINT)
GOAL = Point(1.0, 1.0, 0)


def main() -> None:
    energy, (by_points, by_goal) = energy_and_gradients(POINTS, GOAL)
    print("energy:  ", energy)
    print("by point:", by_points.numpy())
    print("by goal: ", float(by_goal.x), float(by_goal.y))


if __name__ == "__main__":
    main()
