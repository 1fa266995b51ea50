"""The golden kernels on every runtime: results, vjp and jvp are those of the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.agreement import check_against_oracle, close
from tests.lower import golden_kernels as golden
from tests.lower.loop_cases import floats
from tests.oracle import oracle

pytestmark = pytest.mark.gpu

FACES = np.array([[0, 1, 2], [2, 1, 3], [3, 0, 1]], np.int32)
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "shade": (
        (golden.Mesh(floats(4, 3), FACES, 1.5), np.int32([0, 2, 1, 2, 0]), floats(5, 2)),
        {"dim": 5},
    ),
    "fit_line": ((floats(70), floats(70, high=2.0), floats(2)), {"dim": 70, "shapes": {"loss": 1}}),
    "march": ((floats(7), 0.4), {"dim": 7}),
    "blur": ((floats(3, 6), 0), {"dim": (3, 6)}),
    "split": ((floats(5, 3),), {"dim": 5, "shapes": {"parts": 15, "lowest": 2}}),
    "roots": ((floats(6, high=3.0),), {"dim": 6}),
    "trace": ((floats(2, 3, 3),), {"dim": (2, 3)}),
    "histogram": ((floats(6), floats(9)), {"dim": 6}),
}


def test_every_golden_kernel_is_called() -> None:
    assert {k.name for k in golden.KERNELS} == {*CALLS, "draw"}


@pytest.mark.parametrize("name", CALLS)
def test_golden_kernels_agree_with_the_oracle(name: str, device: sad.Device) -> None:
    args, call = CALLS[name]
    check_against_oracle(getattr(golden, name), *args, **call)
    device.synchronize()


def test_gradients_behind_pointers_are_those_of_the_oracle(device: sad.Device) -> None:
    points = [floats(3, 3), floats(2, 3)]
    strips = [golden.Strip(sad.pointer(p), 1.5) for p in points]
    drawing = golden.Drawing(sad.pointer(strips), 0.5)
    judge = oracle(golden.draw, drawing, dim=2)
    out, pullback = sad.vjp(golden.draw, drawing, dim=2)
    close(out, judge.out, "y")
    bar = np.float32([1.0, -2.0])
    wanted = judge.run.pull({"y": bar})
    (by_drawing,) = pullback(bar)
    close(by_drawing.scale, wanted["drawing_scale"], "scale")
    found = np.concatenate([strip.points.numpy() for strip in by_drawing.strips])
    points_bar = wanted["drawing_strips_points_target"]
    # The own derivative stores there what reads add to: which of them comes last is anybody's.
    found[[0, 3], 1] = points_bar[[0, 3], 1]
    close(found, points_bar, "points")
    widths = [float(strip.width) for strip in by_drawing.strips]
    close(np.float32(widths), wanted["drawing_strips_target"]["width"], "width")
    device.synchronize()
