"""Results of the programs of `timed_programs.py` in NumPy, in float64 unless they are choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from timing import Floats


def softmax(rows: Floats) -> Floats:
    powers = np.exp(rows - rows.max(1, keepdims=True), dtype=np.float64)
    return powers / powers.sum(1, keepdims=True)


def convolution(image: Floats, kernel: Floats) -> Floats:
    """Of one channel with another, without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(image[0], kernel.shape[2:])
    return np.tensordot(windows, kernel[0, 0].astype(np.float64))[None]


def network_gradient(points: Floats, wanted: Floats, *weights: Floats) -> tuple[Any, Any]:
    """The loss of the network of benchmarks/arrays.py, and its gradient by the weights.

    With ``a[k+1] = max(a[k] W[k] + b[k], 0)``, the last without the maximum, and a_bar the
    cotangent of ``a[k+1]`` before the maximum: ``W_bar = a[k]^T a_bar`` and ``b_bar = sum(a_bar)``.
    """
    layers = [*zip(weights[::2], weights[1::2], strict=True)]
    activations = [points.astype(np.float64)]
    for matrix, bias in layers[:-1]:
        activations.append(np.maximum(activations[-1] @ matrix + bias, 0.0))
    miss = activations[-1] @ layers[-1][0] + layers[-1][1] - wanted
    bar = 2.0 * miss / miss.size
    gradients: list[Floats] = []
    for activation, (matrix, _) in zip(reversed(activations), reversed(layers), strict=True):
        gradients = [activation.T @ bar, bar.sum(0), *gradients]
        bar = (bar @ matrix.T) * (activation > 0)
    return np.mean(miss * miss), tuple(gradients)


def lorenz96_slope(x: Floats, direction: Floats, step: float = 1e-5) -> float:
    """The derivative of the loss of many_steps.py's `ode` along a direction, by differences."""
    forward, backward = (lorenz96_loss(x + sign * step * direction) for sign in (1.0, -1.0))
    return (forward - backward) / (2.0 * step)


def lorenz96_loss(x: Floats, count: int = 10, h: float = 0.01) -> float:
    """The mean square after `count` steps of Runge-Kutta."""

    def slope(x: Floats) -> Floats:
        return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + 8.0

    for _ in range(count):
        k1 = slope(x)
        k2 = slope(x + 0.5 * h * k1)
        k3 = slope(x + 0.5 * h * k2)
        x = x + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + slope(x + h * k3))
    return float(np.mean(x * x))


def texture_gradient(texels: Floats, uv: Floats, target: Floats) -> tuple[Any, Floats]:
    """The mean squared miss of bilinear lookups that repeat the texture, and its gradient."""
    height, width = texels.shape
    x, y = uv[:, 0] * np.float64(width) - 0.5, uv[:, 1] * np.float64(height) - 0.5
    column, row = np.floor(x).astype(int), np.floor(y).astype(int)
    places: list[Any] = []
    weights: list[Floats] = []
    for down in (0, 1):
        for right in (0, 1):
            places.append((row + down) % height * width + (column + right) % width)
            weights.append(abs(1 - down - (y - row)) * abs(1 - right - (x - column)))
    flat = texels.ravel()
    miss = sum(w * flat[place] for w, place in zip(weights, places, strict=True)) - target
    bar = 2.0 * miss / miss.size
    gradient = sum(
        np.bincount(place, w * bar, flat.size) for w, place in zip(weights, places, strict=True)
    )
    return np.mean(miss * miss), np.asarray(gradient).reshape(texels.shape)


def nearest_depths(positions: Floats, triangles: Any, size: int) -> Floats:
    """The depth of each pixel of an orthographic picture, 1 where no triangle is.

    All triangles try the k-th pixel of their bounding boxes at once, so boxes have to be small.
    """
    corners = positions[triangles].astype(np.float64)
    x = (corners[..., 0] + 1) * (size / 2) - 0.5
    y = (1 - corners[..., 1]) * (size / 2) - 0.5
    low = np.ceil(np.stack([x.min(1), y.min(1)])).astype(int)
    width, height = (np.floor(np.stack([x.max(1), y.max(1)])).astype(int) - low + 1).max(1)
    depths = np.ones(size * size)
    for k in range(width * height):
        px, py = low[0] + k % width, low[1] + k // width
        shares = _barycentrics(x, y, px, py)
        is_inside = (shares >= 0).all(0) & (px >= 0) & (px < size) & (py >= 0) & (py < size)
        depth = (shares.T[is_inside] * corners[is_inside, :, 2]).sum(1)
        np.minimum.at(depths, (py * size + px)[is_inside], depth)
    return depths.reshape(size, size)


def _barycentrics(x: Floats, y: Floats, px: Any, py: Any) -> Floats:
    """The weights of the corners of each triangle at one point; NaN for those without an area."""
    pairs = ((1, 2), (2, 0), (0, 1))
    parts = [(x[:, j] - px) * (y[:, k] - py) - (x[:, k] - px) * (y[:, j] - py) for j, k in pairs]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack(parts) / sum(parts)


def shaded_gradient(arguments: Sequence[Any], true_colors: Floats) -> tuple[Any, Floats]:
    """The loss of the mesh sample's fit of colours, and its gradient by the colours.

    A pixel is ``light * color`` with the interpolated colour of its point; the light of each pixel
    is that of the target, which has the `true_colors`.
    """
    triangles, _, colors, _, _, hits, target, _ = arguments
    face, uv = hits.face.numpy(), hits.uv.numpy().astype(np.float64)
    is_shown = face < len(triangles)
    corners, uv = triangles.numpy()[face[is_shown]], uv[is_shown]
    weights = np.stack([1 - uv.sum(1), uv[:, 0], uv[:, 1]], 1)[..., None]
    wanted = target.numpy()[is_shown].astype(np.float64)
    light = wanted / (weights * true_colors[corners]).sum(1)
    start = colors.numpy().astype(np.float64)
    miss = light * (weights * start[corners]).sum(1) - wanted
    bar = 2.0 * miss * light / miss.size
    gradient = np.zeros_like(start)
    np.add.at(gradient, corners, weights * bar[:, None])
    return np.mean(miss * miss), gradient
