"""A struct of 40 fields, each of which takes part."""

from __future__ import annotations

from typing import Any

import numpy as np

import shaderad as sad

FIELDS = 40


@sad.struct
class Many:
    a0: float
    a1: float
    a2: float
    a3: float
    a4: float
    a5: float
    a6: float
    a7: float
    a8: float
    a9: float
    a10: float
    a11: float
    a12: float
    a13: float
    a14: float
    a15: float
    a16: float
    a17: float
    a18: float
    a19: float
    a20: float
    a21: float
    a22: float
    a23: float
    a24: float
    a25: float
    a26: float
    a27: float
    a28: float
    a29: float
    a30: float
    a31: float
    a32: float
    a33: float
    a34: float
    a35: float
    a36: float
    a37: float
    a38: float
    a39: float


@sad.function
def mixed(m: Many, x: float) -> float:
    total = 0.0
    total += m.a0 * sad.sin(1.0 * x + m.a1) + m.a1 * sad.sin(2.0 * x + m.a2)
    total += m.a2 * sad.sin(3.0 * x + m.a3) + m.a3 * sad.sin(4.0 * x + m.a4)
    total += m.a4 * sad.sin(5.0 * x + m.a5) + m.a5 * sad.sin(6.0 * x + m.a6)
    total += m.a6 * sad.sin(7.0 * x + m.a7) + m.a7 * sad.sin(8.0 * x + m.a8)
    total += m.a8 * sad.sin(9.0 * x + m.a9) + m.a9 * sad.sin(10.0 * x + m.a10)
    total += m.a10 * sad.sin(11.0 * x + m.a11) + m.a11 * sad.sin(12.0 * x + m.a12)
    total += m.a12 * sad.sin(13.0 * x + m.a13) + m.a13 * sad.sin(14.0 * x + m.a14)
    total += m.a14 * sad.sin(15.0 * x + m.a15) + m.a15 * sad.sin(16.0 * x + m.a16)
    total += m.a16 * sad.sin(17.0 * x + m.a17) + m.a17 * sad.sin(18.0 * x + m.a18)
    total += m.a18 * sad.sin(19.0 * x + m.a19) + m.a19 * sad.sin(20.0 * x + m.a20)
    total += m.a20 * sad.sin(21.0 * x + m.a21) + m.a21 * sad.sin(22.0 * x + m.a22)
    total += m.a22 * sad.sin(23.0 * x + m.a23) + m.a23 * sad.sin(24.0 * x + m.a24)
    total += m.a24 * sad.sin(25.0 * x + m.a25) + m.a25 * sad.sin(26.0 * x + m.a26)
    total += m.a26 * sad.sin(27.0 * x + m.a27) + m.a27 * sad.sin(28.0 * x + m.a28)
    total += m.a28 * sad.sin(29.0 * x + m.a29) + m.a29 * sad.sin(30.0 * x + m.a30)
    total += m.a30 * sad.sin(31.0 * x + m.a31) + m.a31 * sad.sin(32.0 * x + m.a32)
    total += m.a32 * sad.sin(33.0 * x + m.a33) + m.a33 * sad.sin(34.0 * x + m.a34)
    total += m.a34 * sad.sin(35.0 * x + m.a35) + m.a35 * sad.sin(36.0 * x + m.a36)
    total += m.a36 * sad.sin(37.0 * x + m.a37) + m.a37 * sad.sin(38.0 * x + m.a38)
    total += m.a38 * sad.sin(39.0 * x + m.a39) + m.a39 * sad.sin(40.0 * x + m.a0)
    return total


@sad.kernel
def kernel(i: sad.Index, many: sad.In[Many], x: sad.In[float], y: sad.Out[float]):
    y[i] = mixed(many[i], x[i])


def inputs(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """`size` squared structs."""
    rng = np.random.default_rng(5)
    many = rng.normal(0.0, 1.0, (size * size, FIELDS)).astype(np.float32)
    x = rng.uniform(-1.0, 1.0, size * size).astype(np.float32)
    rows = {f"a{k}": many[:, k] for k in range(FIELDS)}
    return (sad.array(rows, dtype=Many), sad.array(x)), {"dim": size * size}
