"""Numbers that fall by orders of magnitude -> a curve on a logarithmic scale, as SVG.

The text is a complete file, and can also be part of a page, because its style affects only its own
classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 62, 58, 18, 46
MOST_TICKS = 8
STYLE = """
.chart { font: 12px system-ui, sans-serif; }
.chart text { fill: #727e90; }
.chart .axis { stroke: #727e90; stroke-width: 1; fill: none; }
.chart .rule { stroke: #727e90; stroke-width: 1; stroke-opacity: 0.3; }
.chart .curve { stroke: #d9622b; stroke-width: 2.2; fill: none; stroke-linejoin: round; }
.chart .end { fill: #d9622b; }
.chart .value { fill: #d9622b; font-weight: 600; }
"""
"""Colours that are readable on white and on black, because the background is unknown."""


@dataclass(frozen=True)
class Axes:
    """The labels of the axes; the axis on the right shows the same heights in another unit."""

    title: str
    left: str
    right: str = ""
    right_labels: dict[int, str] = field(default_factory=dict[int, str])
    """The labels by the power of ten on the left."""


LOSS = Axes(
    title="Loss by step",
    left="mean squared error",
    right="PSNR, dB",
    right_labels={-k: str(10 * k) for k in range(20)},
)

VERTEX_ERROR = Axes(title="Vertex error by step", left="distance, in units of the mesh")


@dataclass(frozen=True)
class Scale:
    """Steps from 0, and whole powers of ten from `low` to `high`, on the paper."""

    last_step: int
    low: int
    high: int

    def x(self, step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / self.last_step

    def y(self, exponent: float) -> float:
        share = (exponent - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def svg(points: Sequence[tuple[int, float]], axes: Axes = LOSS) -> str:
    """The curve through `points`, each a step and a number; zeros and NaN are left out."""
    found = [(step, math.log10(y)) for step, y in points if 0 < y < math.inf]
    scale = _scale(found)
    parts = [_frame(axes), *_powers(scale, axes), *_steps(scale), *_curve(found, scale)]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" aria-label="{axes.title}">'
    )
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>\n"])


def _scale(found: Sequence[tuple[int, float]]) -> Scale:
    last_step = max([1, *(step for step, _ in found)])
    low = math.floor(min([exponent for _, exponent in found], default=0))
    high = math.ceil(max([exponent for _, exponent in found], default=1))
    return Scale(last_step, low, max(high, low + 1))


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{text}</text>'


def _frame(axes: Axes) -> str:
    middle = (TOP + HEIGHT - BOTTOM) / 2
    left = f'text-anchor="middle" transform="rotate(-90 14 {middle:.1f})"'
    right = f'text-anchor="middle" transform="rotate(90 {WIDTH - 14} {middle:.1f})"'
    return "\n".join(
        [
            f'<path class="axis" d="M{LEFT} {TOP} V{HEIGHT - BOTTOM} H{WIDTH - RIGHT}"/>',
            _text(14, middle, axes.left, left),
            _text(WIDTH - 14, middle, axes.right, right),
            _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "step", 'text-anchor="middle"'),
        ]
    )


def _powers(scale: Scale, axes: Axes) -> list[str]:
    parts: list[str] = []
    gap = _gap(scale.high - scale.low)
    for exponent in range(scale.high, scale.low - 1, -gap):
        y = scale.y(exponent)
        parts.append(f'<path class="rule" d="M{LEFT} {y:.1f} H{WIDTH - RIGHT}"/>')
        power = f'10<tspan dy="-5" font-size="9">{exponent}</tspan>'
        parts.append(_text(LEFT - 6, y + 4, power, 'text-anchor="end"'))
        parts.append(_text(WIDTH - RIGHT + 6, y + 4, axes.right_labels.get(exponent, "")))
    return parts


def _steps(scale: Scale) -> list[str]:
    base, middle = HEIGHT - BOTTOM, 'text-anchor="middle"'
    return [
        f'<path class="axis" d="M{scale.x(step):.1f} {base} v5"/>'
        + _text(scale.x(step), base + 18, str(step), middle)
        for step in range(0, scale.last_step + 1, _gap(scale.last_step))
    ]


def _gap(extent: int) -> int:
    """A round number that divides `extent` into a few parts."""
    round_numbers = (digit * 10**power for power in range(9) for digit in (1, 2, 5))
    return next(gap for gap in round_numbers if extent / gap <= MOST_TICKS)


def _curve(found: Sequence[tuple[int, float]], scale: Scale) -> list[str]:
    if not found:
        return []
    places = [(scale.x(step), scale.y(exponent)) for step, exponent in found]
    x, y = places[-1]
    line = " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
    # In the upper right, where a falling curve never is.
    said = f"{10 ** found[-1][1]:.2g} at step {found[-1][0]}"
    value = _text(WIDTH - RIGHT - 8, TOP + 18, said, 'class="value" text-anchor="end"')
    return [
        f'<polyline class="curve" points="{line}"/>',
        f'<circle class="end" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>',
        value,
    ]
