"""A graph whose plan hosts run: the sum of ``x`` times its running product."""

# Names of sizes are strings.
# ruff: noqa: UP037, F821

from __future__ import annotations

import shaderad as sad


@sad.graph
def scan_product(x: sad.Array[float, "n"]) -> sad.Array[float]:
    return sad.sum(sad.scan(sad.mul, x) * x)
