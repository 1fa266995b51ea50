"""Functions on arrays behind a mask: zero cotangents suppress NaN, at once and in a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shaderad as sad

pytestmark = pytest.mark.gpu

OF_ROWS = {
    "var": lambda x: sad.var(x, axis=1),
    "norm": lambda x: sad.norm(x, axis=1),
    "logsumexp": lambda x: sad.logsumexp(x, axis=1),
}
OF_ELEMENTS = {"softmax": sad.softmax, "gelu": sad.gelu, "silu": sad.silu}


def test_masked_functions_put_no_nan_into_gradients(device: sad.Device) -> None:
    data = np.random.default_rng(0).uniform(0.2, 1.0, (4, 4)).astype(np.float32)
    data[2, 1], data[3, 2] = np.nan, np.inf
    is_used = np.array([True, True, False, False])

    def every(x: Any, is_used: Any) -> Any:
        total: Any = 0.0
        for f in OF_ROWS.values():
            total = total + sad.sum(sad.where(is_used, f(x), 0.0))
        for f in OF_ELEMENTS.values():
            total = total + sad.sum(sad.where(is_used[:, None], f(x), 0.0))
        return total

    @sad.graph
    def products(x: Any, is_used: Any) -> Any:
        return sad.sum(sad.where(is_used, sad.prod(x, axis=1), 0.0))

    expected = sad.grad(every)(data[:2], sad.array(is_used[:2])).numpy()
    for f in (every, sad.graph(every)):
        found = sad.grad(f)(data, sad.array(is_used)).numpy()
        np.testing.assert_allclose(found[:2], expected, rtol=1e-5, atol=1e-6)
        assert not found[2:].any()
    found = sad.grad(products)(data, sad.array(is_used)).numpy()
    others = [np.delete(data[:2], k, axis=1).prod(axis=1) for k in range(4)]
    np.testing.assert_allclose(found[:2], np.transpose(others), rtol=1e-5)
    assert not found[2:].any()
