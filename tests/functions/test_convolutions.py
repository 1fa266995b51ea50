"""`conv` is the sum of its definition, with derivatives to any order, on every runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shaderad as sad
from tests.tracing import check_derivatives, run

CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "a row": ((2, 3, 11), (4, 3, 3), {}),
    "an image": ((2, 3, 7, 9), (5, 3, 3, 2), {}),
    "a volume": ((1, 2, 4, 3, 5), (2, 2, 2, 3, 1), {"padding": 1}),
    "a point": ((2, 3, 5, 4), (9, 3, 1, 1), {"stride": 2}),
    "strided": ((2, 2, 8, 7), (3, 2, 3, 3), {"stride": (2, 3), "padding": 1}),
    "dilated": ((2, 2, 9, 8), (3, 2, 3, 2), {"stride": 2, "padding": 2, "dilation": (2, 3)}),
    "padded by sides": ((1, 2, 5, 4), (2, 2, 3, 3), {"padding": ((0, 3), (2, 1))}),
    "padded by axes": ((1, 2, 5, 4), (2, 2, 3, 3), {"padding": (2, 0)}),
    "same": ((2, 2, 7, 6), (3, 2, 3, 4), {"padding": "same"}),
    "same, strided": ((2, 2, 7, 6), (3, 2, 3, 4), {"padding": "same", "stride": (3, 2)}),
    "valid": ((2, 2, 5, 6), (3, 2, 3, 4), {"padding": "valid"}),
    "a kernel wider than the axis": ((2, 2, 2, 3), (3, 2, 4, 5), {"padding": 2}),
    "a stride beyond the kernel": ((1, 1, 13), (2, 1, 2), {"stride": 5}),
    "no batch": ((3, 7), (2, 3, 3), {}),
    "axes of batches": ((2, 1, 3, 3, 7), (2, 3, 3), {}),
    "groups": ((2, 6, 5, 4), (4, 3, 2, 2), {"groups": 2, "padding": 1}),
    "each channel": ((2, 3, 6), (6, 1, 3), {"groups": 3}),
    "an empty batch": ((0, 3, 7, 9), (5, 3, 3, 2), {}),
    "no channels": ((2, 0, 7), (5, 0, 3), {}),
    "no output channels": ((2, 3, 7), (0, 3, 3), {}),
    "no elements": ((2, 3, 0), (4, 3, 3), {"padding": "same"}),
}


def expected(
    x: Any, w: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """The definition, in float64: a sum over positions of the kernel."""
    rank = w.ndim - 2
    strides, dilations = (
        (one,) * rank if isinstance(one, int) else one for one in (stride, dilation)
    )
    spans = [d * (k - 1) + 1 for d, k in zip(dilations, w.shape[2:], strict=True)]
    pads = padded(padding, x.shape[-rank:], spans, strides)
    x = np.pad(x.astype(np.float64), [(0, 0)] * (x.ndim - rank) + pads)
    counts = [
        (n - span) // s + 1 for n, span, s in zip(x.shape[-rank:], spans, strides, strict=True)
    ]
    total = np.zeros((*x.shape[: -rank - 1], w.shape[0], *counts))
    own, channels = w.shape[0] // groups, w.shape[1]
    for g in range(groups):
        part = x[(..., slice(g * channels, (g + 1) * channels), *(slice(None),) * rank)]
        target = (..., slice(g * own, (g + 1) * own), *(slice(None),) * rank)
        for k in np.ndindex(w.shape[2:]):
            window = tuple(
                slice(d * j, d * j + s * n, s)
                for d, j, s, n in zip(dilations, k, strides, counts, strict=True)
            )
            # The last window may end before its stride does.
            read = np.moveaxis(part[(..., *window)], -rank - 1, -1)
            weights = w[(slice(g * own, (g + 1) * own), slice(None), *k)]
            total[target] += np.moveaxis(read @ weights.T.astype(np.float64), -1, -rank - 1)
    return total


def padded(padding: Any, extents: Any, spans: Any, strides: Any) -> list[tuple[int, int]]:
    if padding == "same":
        lacking = [
            max((-(-n // s) - 1) * s + span - n, 0)
            for n, span, s in zip(extents, spans, strides, strict=True)
        ]
        return [(n // 2, n - n // 2) for n in lacking]
    if padding == "valid" or isinstance(padding, int):
        return [(0 if padding == "valid" else padding,) * 2] * len(extents)
    return [(one, one) if isinstance(one, int) else one for one in padding]


def draw(*shape: int) -> Any:
    return np.random.default_rng(3).normal(size=shape)


@pytest.mark.parametrize("name", CASES)
def test_conv_is_its_definition_with_derivatives_of_second_order(name: str) -> None:
    of_x, of_w, keywords = CASES[name]
    x, w = draw(*of_x), draw(*of_w)
    found = run(lambda x, w: sad.conv(x, w, **keywords), x, w)
    np.testing.assert_allclose(found, expected(x, w, **keywords), rtol=1e-12, atol=1e-12)
    check_derivatives(lambda x, w: sad.conv(x, w, **keywords), x, w, order=2)


@pytest.mark.gpu
@pytest.mark.sample(2)  # NumPy runs every case above.
@pytest.mark.parametrize("name", CASES)
def test_devices_convolve_and_pull_as_the_definition_says(name: str, device: sad.Device) -> None:
    of_x, of_w, keywords = CASES[name]
    x, w = draw(*of_x).astype(np.float32), draw(*of_w).astype(np.float32)
    out, pullback = sad.vjp(lambda x, w: sad.conv(x, w, **keywords), x, w)
    wanted = expected(x, w, **keywords)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-5, atol=1e-5)
    bar, x_dot, w_dot = draw(*wanted.shape), draw(*of_x), draw(*of_w)
    by_x, by_w = (bars.numpy() for bars in pullback(bar.astype(np.float32)))
    for found, dot, moved in (
        (by_x, x_dot, expected(x_dot, w, **keywords)),
        (by_w, w_dot, expected(x, w_dot, **keywords)),
    ):
        assert found.shape == dot.shape
        np.testing.assert_allclose((found * dot).sum(), (bar * moved).sum(), rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
def test_conv_passes_gradcheck_and_has_second_derivatives(device: sad.Device) -> None:
    x, w = draw(2, 2, 5, 6).astype(np.float32), draw(3, 2, 3, 2).astype(np.float32)

    def loss(x: Any, w: Any) -> Any:
        return sad.sum(sad.conv(x, w, stride=2, padding=1) ** 3.0)

    sad.gradcheck(lambda x, w: sad.conv(x, w, stride=2, padding=1), x, w)
    dots = draw(*x.shape).astype(np.float32), 0.5 * draw(*w.shape).astype(np.float32)
    found = sad.hvp(loss, (x, w), dots)
    y, moved = expected(x, w, 2, 1), expected(dots[0], w, 2, 1) + expected(x, dots[1], 2, 1)
    by_x = [6 * y * moved, 3 * y * y]
    # <v, H u>: the derivative of 3 y^2 y_dot(v) along u.
    other = draw(*x.shape)[::-1].copy()
    wanted = (by_x[0] * expected(other, w, 2, 1)).sum()
    wanted += (by_x[1] * expected(other, dots[1], 2, 1)).sum()
    assert float((found[0].numpy() * other).sum()) == pytest.approx(wanted, rel=1e-3)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("dtype", "numpy", "tolerance"),
    [(sad.half, np.float16, 1e-3), (sad.double, np.float64, 1e-12), (int, np.int32, 0.0)],
)
def test_elements_may_be_of_any_type_of_numbers(
    dtype: Any, numpy: Any, tolerance: float, device: sad.Device
) -> None:
    x, w = (4.0 * draw(2, 3, 6, 5)).astype(numpy), (4.0 * draw(4, 3, 3, 2)).astype(numpy)
    operands = [sad.array(one, dtype=dtype) for one in (x, w)]
    found = sad.conv(*operands, padding=1)
    assert found.dtype == operands[0].dtype
    wanted = expected(x, w, padding=1)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=tolerance, atol=10 * tolerance)
    if dtype is not int:
        _, pullback = sad.vjp(lambda w: sad.conv(operands[0], w, padding=1), operands[1])
        (by_w,) = pullback(sad.array(np.ones(wanted.shape, numpy), dtype=dtype))
        assert by_w.dtype == operands[1].dtype
        basis = np.zeros((4, 3, 3, 2))
        basis[1, 2, 0, 1] = 1.0
        sum_of_read = expected(x, basis, padding=1).sum()
        assert float(by_w.numpy()[1, 2, 0, 1]) == pytest.approx(
            sum_of_read, rel=tolerance, abs=60 * tolerance
        )


@pytest.mark.gpu
def test_one_graph_serves_every_size(device: sad.Device) -> None:
    @sad.graph
    def smoothed(x: Any, w: Any) -> Any:
        return sad.conv(x, w, stride=2, padding="same")

    for of_x, of_w in (((2, 3, 9, 8), (4, 3, 3, 3)), ((1, 2, 4, 5), (3, 2, 2, 5))):
        x, w = draw(*of_x).astype(np.float32), draw(*of_w).astype(np.float32)
        wanted = expected(x, w, 2, "same")
        np.testing.assert_allclose(smoothed(x, w).numpy(), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.gpu
def test_conv_of_mapped_functions_convolves_each(device: sad.Device) -> None:
    x, w = draw(4, 2, 3, 7).astype(np.float32), draw(4, 5, 3, 2).astype(np.float32)
    wanted = [expected(p, q, padding=1) for p, q in zip(x, w, strict=True)]
    kernels = sad.array(w)
    rows = sad.iota(4)
    found = sad.map(lambda k: sad.conv(sad.array(x)[k], kernels[k], padding=1), rows).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    shared = sad.map(lambda k: sad.conv(sad.array(x)[k], w[0], padding=1), rows).numpy()
    np.testing.assert_allclose(
        shared, [expected(p, w[0], padding=1) for p in x], rtol=1e-5, atol=1e-5
    )


@pytest.mark.gpu
def test_a_convolution_and_its_cotangents_are_sums_over_tiles(device: sad.Device) -> None:
    x, w = draw(2, 4, 8, 8).astype(np.float32), draw(8, 4, 3, 3).astype(np.float32)

    @sad.graph
    def forward(x: Any, w: Any) -> Any:
        return sad.max(sad.conv(x, w, padding=1), 0.0)

    @sad.graph
    def pulled(x: Any, w: Any, bar: Any) -> Any:
        return sad.vjp(lambda x, w: sad.conv(x, w, stride=2, padding=1), x, w)[1](bar)

    steps = [line for line in forward.explain(x, w).splitlines() if line[:4].strip(" .").isdigit()]
    assert len(steps) == 1
    assert "tiles" in steps[0]
    text = pulled.explain(x, w, draw(2, 8, 4, 4).astype(np.float32))
    assert text.count("sum over tiles") == 2
    assert "scatter" not in text
    assert "reduce" not in text


X, W = np.zeros((2, 3, 5, 4), np.float32), np.zeros((4, 3, 3, 3), np.float32)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("SR0803", lambda: sad.conv(X, W[:, :2])),
        ("SR0803", lambda: sad.conv(X, W[0, 0])),
        ("SR0803", lambda: sad.conv(X[0, 0], W)),
        ("SR0803", lambda: sad.conv(X[..., :2], W)),
        ("SR0803", lambda: sad.conv(X, W, dilation=3)),
        ("SR0803", lambda: sad.conv(X, W[:, :1], groups=3)),
        ("SR0804", lambda: sad.conv(X, W, groups=0)),
        ("SR0804", lambda: sad.conv(X, W, stride=0)),
        ("SR0804", lambda: sad.conv(X, W, stride=(1, 2, 3))),
        ("SR0804", lambda: sad.conv(X, W, dilation=1.5)),
        ("SR0804", lambda: sad.conv(X, W, padding=-1)),
        ("SR0804", lambda: sad.conv(X, W, padding="full")),
        ("SR0804", lambda: sad.conv(X, W, padding=(1, 2, 3))),
        ("SR0804", lambda: sad.conv(X, W, padding=((1, 2), (1, 2, 3)))),
        ("SR0326", lambda: sad.conv(X > 0, W)),
        ("SR0330", lambda: sad.conv(X, sad.array(W, dtype=sad.double))),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    code: str, call: Callable[[], Any], device: sad.Device
) -> None:
    with pytest.raises(sad.ShapeError) as caught:
        call()
    assert caught.value.code == code
